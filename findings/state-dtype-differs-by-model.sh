#!/usr/bin/env bash
# Seen with transformers 5.24.0, torch 2.13.0.
# Guess: a model in bfloat16 keeps its recurrent states in bfloat16, as it keeps its keys and values.
# Seen: the state of the gated delta rule (Qwen3.5) is in float32, twice the bytes; that of lightning attention (MiniMax) is in
# bfloat16.
# Output: {'Qwen3.5': 'torch.float32', 'MiniMax': 'torch.bfloat16'}
# Why it matters: bytes counted as "numbers times two" are too few for one family, and right for the other.
set -euo pipefail
folder=${FINDINGS_ENV:-$(mktemp -d)}  # set it to use one environment for several of these
[ -n "${FINDINGS_ENV:-}" ] || trap 'rm -rf "$folder"' EXIT
[ -x "$folder/bin/python" ] || python3 -m venv "$folder"
"$folder/bin/pip" install -q torch==2.13.0 transformers==5.24.0
"$folder/bin/python" - <<'END'
import torch
from transformers import MiniMaxConfig, MiniMaxForCausalLM, Qwen3_5ForCausalLM, Qwen3_5TextConfig

sizes = dict(
    hidden_size=32, num_attention_heads=4, num_key_value_heads=2, head_dim=8, intermediate_size=16, vocab_size=32,
    num_hidden_layers=2, layer_types=["linear_attention", "full_attention"], pad_token_id=0, bos_token_id=1, eos_token_id=2,
)
delta = dict(linear_num_key_heads=2, linear_num_value_heads=2, linear_key_head_dim=8, linear_value_head_dim=8)
models = {
    "Qwen3.5": Qwen3_5ForCausalLM(Qwen3_5TextConfig(**sizes, **delta)),
    "MiniMax": MiniMaxForCausalLM(MiniMaxConfig(**sizes, num_local_experts=4, num_experts_per_tok=2)),
}


def tensors(thing):
    if isinstance(thing, torch.Tensor):
        yield thing
    elif isinstance(thing, dict):
        for one in thing.values():
            yield from tensors(one)
    elif isinstance(thing, (list, tuple)):
        for one in thing:
            yield from tensors(one)
    elif type(thing).__module__.startswith("transformers"):
        yield from tensors({k: v for k, v in vars(thing).items() if k != "config"})


found = {}
for name, model in models.items():
    with torch.no_grad():
        output = model.to(torch.bfloat16).eval()(torch.randint(3, 32, (1, 9)), use_cache=True)
    cache = output.cache if "cache" in output else output.past_key_values
    state = next(one for one in tensors(cache) if one.shape[-2:] == (8, 8))
    found[name] = str(state.dtype)
print(found)
assert found == {"Qwen3.5": "torch.float32", "MiniMax": "torch.bfloat16"}
END
