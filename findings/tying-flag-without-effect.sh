#!/usr/bin/env bash
# Seen with transformers 5.24.0, torch 2.13.0.
# Guess: `tie_word_embeddings=True` makes the output layer of any causal language model share the matrix of its embeddings.
# Seen: some classes of today ignore it without a word (Kimi Linear, Ling 3.0's Bailing Hybrid, Nemotron-H, xLSTM): the model
# has two matrices, which train apart, and so does the file that it saves. For LLaMA the flag works.
# Output: Llama one matrix; KimiLinear two; BailingHybrid two; NemotronH two; xLSTM two; all configurations say tied
# Why it matters: a count of parameters, or a small model, that relies on the flag is wrong by vocabulary × width.
set -euo pipefail
folder=${FINDINGS_ENV:-$(mktemp -d)}  # set it to use one environment for several of these
[ -n "${FINDINGS_ENV:-}" ] || trap 'rm -rf "$folder"' EXIT
[ -x "$folder/bin/python" ] || python3 -m venv "$folder"
"$folder/bin/pip" install -q torch==2.13.0 transformers==5.24.0
"$folder/bin/python" - <<'END'
import warnings

import torch
import transformers

warnings.simplefilter("error", UserWarning)  # nothing warns
found = {}
for name in ("Llama", "KimiLinear", "BailingHybrid", "NemotronH", "xLSTM"):
    config = getattr(transformers, f"{name}Config")(tie_word_embeddings=True)
    with torch.device("meta"):
        model = getattr(transformers, f"{name}ForCausalLM")(config)
    assert model.config.tie_word_embeddings is True
    one = model.get_input_embeddings().weight is model.get_output_embeddings().weight
    assert model.get_output_embeddings().weight.shape == model.get_input_embeddings().weight.shape
    found[name] = "one matrix" if one else "two"
print("; ".join(f"{name} {said}" for name, said in found.items()) + "; all configurations say tied")
assert found.pop("Llama") == "one matrix" and set(found.values()) == {"two"}
END
