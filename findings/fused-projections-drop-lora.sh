#!/usr/bin/env bash
# Seen with diffusers 0.42.1, peft 0.21.2, torch 2.13.0.
# Guess: fuse_qkv_projections is an optimisation of memory traffic: a LoRA adapter on the projections of queries, keys and values is fused
# along with them, or an error says that it cannot be.
# Seen: whether it is added before or after the call, the adapter no longer counts: the model computes with the bare weights. It is
# still listed as active, and counts again after unfuse_qkv_projections.
# Output: largest change of the output by the adapter: 0.10; fused after it was added 0.00; added after fusing 0.00; unfused 0.10
# Why it matters: a pipeline sped up for use forgets what it was fine-tuned on; LoRA training of a fused model trains nothing.
set -euo pipefail
folder=${FINDINGS_ENV:-$(mktemp -d)}  # set it to use one environment for several of these
[ -n "${FINDINGS_ENV:-}" ] || trap 'rm -rf "$folder"' EXIT
[ -x "$folder/bin/python" ] || python3 -m venv "$folder"
"$folder/bin/pip" install -q torch==2.13.0 transformers==5.24.0 diffusers==0.42.1 peft==0.21.2
"$folder/bin/python" -W ignore - <<'END'
import torch
from diffusers import FluxTransformer2DModel
from peft import LoraConfig

torch.manual_seed(0)
options = dict(
    patch_size=1, in_channels=4, num_layers=1, num_single_layers=1, attention_head_dim=16, num_attention_heads=2,
    joint_attention_dim=32, pooled_projection_dim=32, axes_dims_rope=(4, 4, 8),
)
first, second = (FluxTransformer2DModel(**options).eval() for _ in range(2))
second.load_state_dict(first.state_dict())
inputs = dict(
    hidden_states=torch.randn(1, 16, 4), encoder_hidden_states=torch.randn(1, 6, 32), timestep=torch.ones(1),
    pooled_projections=torch.randn(1, 32), img_ids=torch.randn(16, 3), txt_ids=torch.zeros(6, 3),
)
adapter = LoraConfig(r=4, init_lora_weights=False, target_modules=["to_q", "to_k", "to_v"])


@torch.no_grad()
def change(model):
    return (model(**inputs).sample - bare).abs().max().item()


with torch.no_grad():
    bare = first(**inputs).sample
found = {}
first.add_adapter(adapter)
found["added"] = change(first)
first.fuse_qkv_projections()
found["fused after it was added"] = change(first)
second.fuse_qkv_projections()
second.add_adapter(adapter)
found["added after fusing"] = change(second)
second.unfuse_qkv_projections()
found["unfused"] = change(second)
print({name: f"{value:.2f}" for name, value in found.items()}, first.active_adapters(), second.active_adapters())
assert found["added"] > 0.01 and found["unfused"] > 0.01
assert found["fused after it was added"] < 1e-5 and found["added after fusing"] < 1e-5
assert first.active_adapters() == second.active_adapters() == ["default"]
END
