#!/usr/bin/env bash
# Seen with transformers 5.24.0, torch 2.13.0.
# Guess: a model converted to float64 computes in float64, so that two exact implementations agree to 1e-12.
# Seen: the router of DeepSeek-V3 casts to float32 whatever the model is in, so its weights are exact to 1e-8 only. Those of
# Qwen3-Next cast their probabilities to float32 as well; gpt-oss stays in float64.
# Output: largest error of the weights in float64: DeepSeek-V3 5e-08, gpt-oss 0e+00
# Why it matters: a comparison in float64 that asks for 1e-10 fails, and the fault is in neither implementation.
set -euo pipefail
folder=${FINDINGS_ENV:-$(mktemp -d)}  # set it to use one environment for several of these
[ -n "${FINDINGS_ENV:-}" ] || trap 'rm -rf "$folder"' EXIT
[ -x "$folder/bin/python" ] || python3 -m venv "$folder"
"$folder/bin/pip" install -q torch==2.13.0 transformers==5.24.0
"$folder/bin/python" - <<'END'
import torch
from transformers.models.deepseek_v3 import modeling_deepseek_v3 as deepseek
from transformers.models.gpt_oss import modeling_gpt_oss as gpt_oss

torch.manual_seed(0)
x = torch.randn(200, 32, dtype=torch.float64)
config = deepseek.DeepseekV3Config(
    hidden_size=32, n_routed_experts=16, num_experts_per_tok=4, n_group=1, topk_group=1, routed_scaling_factor=1.0
)
first = deepseek.DeepseekV3TopkRouter(config).double()
first.weight.data.normal_(std=0.3)
_, weights, experts = first(x)
exact = (x @ first.weight.T).sigmoid().gather(1, experts)
error = (weights - exact / exact.sum(-1, keepdim=True)).abs().max().item()

second = gpt_oss.GptOssTopKRouter(gpt_oss.GptOssConfig(hidden_size=32, num_local_experts=16)).double()
second.weight.data.normal_(std=0.3)
_, weights, experts = second(x)
exact = (x @ second.weight.T).gather(1, experts).softmax(-1)
other = (weights - exact).abs().max().item()
print(f"largest error of the weights in float64: DeepSeek-V3 {error:.0e}, gpt-oss {other:.0e}")
assert error > 1e-9 and other < 1e-15
END
