#!/usr/bin/env bash
# Seen with transformers 5.24.0, torch 2.13.0.
# Guess: the defaults of a configuration class are the model that its documentation names ("Qwen/Qwen3-8B").
# Seen: they are a model that nobody has published: 12.0 billion parameters, 32 layers and 32 key/value heads. Qwen3-8B has
# 8.2 billion, 36 layers and 8.
# Output: Qwen3Config() 12.05 billion; with the sizes of the checkpoint 8.19 billion
# Why it matters: a table of models that is read from the classes is wrong for some of them, and right for others.
set -euo pipefail
folder=${FINDINGS_ENV:-$(mktemp -d)}  # set it to use one environment for several of these
[ -n "${FINDINGS_ENV:-}" ] || trap 'rm -rf "$folder"' EXIT
[ -x "$folder/bin/python" ] || python3 -m venv "$folder"
"$folder/bin/pip" install -q torch==2.13.0 transformers==5.24.0
"$folder/bin/python" - <<'END'
import torch
from transformers import Qwen3Config, Qwen3ForCausalLM


def billions(config):
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in Qwen3ForCausalLM(config).parameters()) / 1e9


default = billions(Qwen3Config())
checkpoint = billions(Qwen3Config(intermediate_size=12288, num_hidden_layers=36, num_key_value_heads=8))
print(f"Qwen3Config() {default:.2f} billion; with the sizes of the checkpoint {checkpoint:.2f} billion")
assert round(default, 2) == 12.05 and round(checkpoint, 2) == 8.19
END
