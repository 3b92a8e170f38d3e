#!/usr/bin/env bash
# Seen with torch 2.13.0, on a CPU.
# Guess: scaled_dot_product_attention with is_causal=True equals the same call with a lower triangular mask, for every scale.
# Seen: with a scale below 0 (attend to what is least alike) the fused kernel returns NaN, in bfloat16 for long sequences partly
# finite numbers that are wrong by more than 1; with the mask, the same kernel is right. The likely reason: the kernel masks
# with minus infinity before it multiplies by the scale, which makes plus infinity of it.
# Output: float32, 8 tokens: 112 of 128 numbers NaN; bfloat16, 600 tokens: 1392 of 9600 NaN, others wrong by up to 2.9
# Why it matters: a learned temperature or an ablation with the sign of the scores turned round passes through the fast path.
set -euo pipefail
folder=${FINDINGS_ENV:-$(mktemp -d)}  # set it to use one environment for several of these
[ -n "${FINDINGS_ENV:-}" ] || trap 'rm -rf "$folder"' EXIT
[ -x "$folder/bin/python" ] || python3 -m venv "$folder"
"$folder/bin/pip" install -q torch==2.13.0 numpy
"$folder/bin/python" - <<'END'
import torch
import torch.nn.functional as F

torch.manual_seed(0)
for dtype, length in ((torch.float32, 8), (torch.bfloat16, 600)):
    query, key, value = torch.randn(3, 1, 1, length, 16).to(dtype)
    mask = torch.ones(length, length, dtype=torch.bool).tril()
    right = F.scaled_dot_product_attention(query, key, value, mask, scale=-1.0)
    causal = F.scaled_dot_product_attention(query, key, value, is_causal=True, scale=-1.0)
    wrong = (causal - right).abs()
    print(dtype, length, "NaN:", causal.isnan().sum().item(), "of", causal.numel(), "others wrong by", wrong.nan_to_num(0).max().item())
    assert right.isfinite().all() and causal.isnan().any()
END
