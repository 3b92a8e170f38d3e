#!/usr/bin/env bash
# Seen with transformers 5.24.0, torch 2.13.0.
# Guess: the indexer of GLM-5.3-Flash, which pools 16 keys to one, keeps a sixteenth of what DeepSeek-V3.2's keeps.
# Seen: it keeps more than twice as much: every token's key, a gate of the same size and a number for padding. It pools anew at
# each step; what shrinks is the number of scores.
# Output: numbers that the indexers keep per token, for keys of 8 numbers: {'DeepSeek-V3.2': 8, 'GLM-5.3-Flash': 17}
# Why it matters: a cache counted from the pooled length is too small by a factor of 32.
set -euo pipefail
folder=${FINDINGS_ENV:-$(mktemp -d)}  # set it to use one environment for several of these
[ -n "${FINDINGS_ENV:-}" ] || trap 'rm -rf "$folder"' EXIT
[ -x "$folder/bin/python" ] || python3 -m venv "$folder"
"$folder/bin/pip" install -q torch==2.13.0 transformers==5.24.0
"$folder/bin/python" - <<'END'
import torch
from transformers.models.deepseek_v32 import modeling_deepseek_v32 as deepseek
from transformers.models.glm5_next import modeling_glm5_next as glm

sizes = dict(
    hidden_size=32, num_attention_heads=4, num_key_value_heads=4, q_lora_rank=8, kv_lora_rank=6, v_head_dim=6,
    qk_nope_head_dim=4, num_hidden_layers=4, intermediate_size=16, moe_intermediate_size=16, n_routed_experts=4,
    num_experts_per_tok=2, n_group=1, topk_group=1, vocab_size=32, index_n_heads=2, index_head_dim=8, index_topk=32,
    pad_token_id=0, bos_token_id=1, eos_token_id=2, attn_implementation="eager",
)
first = deepseek.DeepseekV32Model(deepseek.DeepseekV32Config(**sizes, qk_rope_head_dim=4))
second = glm.Glm5NextTextModel(
    glm.Glm5NextTextConfig(**sizes, qk_rope_head_dim=0, linear_head_dim=6, linear_num_heads=2, hc_mult=2)
)


def kept(thing):  # the tensors of the indexer in a cache layer
    return {k: v for k, v in vars(thing).items() if isinstance(v, torch.Tensor) and "index" in k}


numbers = {}
for name, model in {"DeepSeek-V3.2": first, "GLM-5.3-Flash": second}.items():
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.05)
    totals = []
    for length in (32, 48):
        with torch.no_grad():
            output = model(torch.randint(3, 32, (1, length)), use_cache=True)
        cache = output.cache if "cache" in output else output.past_key_values
        layer = next(one for one in cache.layers if kept(one))
        totals.append(sum(tensor.numel() for tensor in kept(layer).values()))
    numbers[name] = (totals[1] - totals[0]) // 16
print("numbers that the indexers keep per token, for keys of 8 numbers:", numbers)
assert numbers == {"DeepSeek-V3.2": 8, "GLM-5.3-Flash": 17}
END
