#!/usr/bin/env bash
# Seen with transformers 5.24.0, torch 2.13.0.
# Guess: the tokens that DeepSeek-V3.2's indexer selects for a query are tokens up to it.
# Seen: a query with fewer than k tokens before it gets k numbers all the same, those of later tokens among them. Nothing looks at
# them, because the causal mask is applied once more afterwards.
# Output: k = 4; numbers selected for query 0 that lie after it: 3
# Why it matters: code that gathers by these numbers and drops the mask, as the selection seems to allow, leaks the future.
set -euo pipefail
folder=${FINDINGS_ENV:-$(mktemp -d)}  # set it to use one environment for several of these
[ -n "${FINDINGS_ENV:-}" ] || trap 'rm -rf "$folder"' EXIT
[ -x "$folder/bin/python" ] || python3 -m venv "$folder"
"$folder/bin/pip" install -q torch==2.13.0 transformers==5.24.0
"$folder/bin/python" - <<'END'
import torch
from transformers.models.deepseek_v32 import modeling_deepseek_v32 as deepseek

torch.manual_seed(0)
config = deepseek.DeepseekV32Config(
    hidden_size=32, q_lora_rank=8, index_n_heads=2, index_head_dim=8, qk_rope_head_dim=4, index_topk=4
)
indexer = deepseek.DeepseekV32Indexer(config, 0)
x, latent = torch.randn(1, 9, 32), torch.randn(1, 9, 8)
angle = torch.outer(torch.arange(9.0), torch.tensor([1.0, 0.01])).repeat(1, 2)[None]
mask = torch.zeros(1, 9, 9).masked_fill(torch.ones(9, 9).triu(1).bool(), float("-inf"))
chosen = indexer(x, latent, (angle.cos(), angle.sin()), mask, None)
late = int((chosen[0, 0] > 0).sum())
print("k = 4; numbers selected for query 0 that lie after it:", late)
assert chosen.shape == (1, 9, 4) and late == 3
END
