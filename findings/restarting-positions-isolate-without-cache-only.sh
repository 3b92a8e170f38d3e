#!/usr/bin/env bash
# Seen with transformers 5.24.0, torch 2.13.0.
# Guess: position_ids that start again at 0 either keep the sequences packed in one row apart, or they do not; use_cache and gradient
# checkpointing change memory and speed, never the numbers.
# Seen: with use_cache=True (the default, in training mode too) tokens attend to the sequence packed before theirs; with
# use_cache=False they do not. Gradient checkpointing switches the cache off, and so separates them. An attention mask of
# ones joins them again.
# Output: largest difference from the second sequence alone: default 1e+01, use_cache=False 3e-06, gradient checkpointing 3e-06,
# use_cache=False with a mask of ones 1e+01
# Why it matters: a run with checkpointing trains on separate examples, and its evaluation without it measures joined ones.
set -euo pipefail
folder=${FINDINGS_ENV:-$(mktemp -d)}  # set it to use one environment for several of these
[ -n "${FINDINGS_ENV:-}" ] || trap 'rm -rf "$folder"' EXIT
[ -x "$folder/bin/python" ] || python3 -m venv "$folder"
"$folder/bin/pip" install -q torch==2.13.0 transformers==5.24.0 numpy
"$folder/bin/python" -W ignore - <<'END'
import torch
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
model = LlamaForCausalLM(
    LlamaConfig(
        hidden_size=32, num_attention_heads=4, num_key_value_heads=2, intermediate_size=64, num_hidden_layers=2,
        vocab_size=64, initializer_range=0.3,
    )
).train()  # it has no dropout
tokens, positions = torch.randint(3, 64, (1, 8)), torch.arange(4).repeat(1, 2)  # two sequences of 4 tokens
alone, ones = model(tokens[:, 4:]).logits, torch.ones_like(tokens)


def difference(**options):
    return (model(tokens, position_ids=positions, **options).logits[:, 4:] - alone).abs().max().item()


found = {
    "default": difference(),
    "use_cache=False": difference(use_cache=False),
    "use_cache=False with a mask of ones": difference(use_cache=False, attention_mask=ones),
}
model.gradient_checkpointing_enable()
found["gradient checkpointing"] = difference()
print({name: f"{value:.0e}" for name, value in found.items()})
joined = {name for name, value in found.items() if value > 0.1}
assert joined == {"default", "use_cache=False with a mask of ones"}
assert all(value < 1e-4 for name, value in found.items() if name not in joined)
END
