#!/usr/bin/env bash
# Seen with transformers 5.24.0, torch 2.13.0.
# Guess: rms_norm_eps of a configuration is the eps of every RMSNorm of the model.
# Seen: in DeepSeek-V3 the norms of the latent vectors of queries and keys keep 1e-6; only the norms of the blocks follow.
# Output: {1e-06: ['kv_a_layernorm', 'q_a_layernorm'], 0.01: ['input_layernorm', 'norm', 'post_attention_layernorm']}
# Why it matters: a port that passes the eps on to all norms differs wherever it is not 1e-6, as in GLM-5 with 1e-5.
set -euo pipefail
folder=${FINDINGS_ENV:-$(mktemp -d)}  # set it to use one environment for several of these
[ -n "${FINDINGS_ENV:-}" ] || trap 'rm -rf "$folder"' EXIT
[ -x "$folder/bin/python" ] || python3 -m venv "$folder"
"$folder/bin/pip" install -q torch==2.13.0 transformers==5.24.0
"$folder/bin/python" - <<'END'
from transformers import DeepseekV3Config, DeepseekV3ForCausalLM

config = DeepseekV3Config(
    rms_norm_eps=1e-2, hidden_size=32, num_attention_heads=2, num_key_value_heads=2, q_lora_rank=8, kv_lora_rank=8,
    qk_nope_head_dim=4, qk_rope_head_dim=4, v_head_dim=4, num_hidden_layers=1, intermediate_size=16, vocab_size=32,
    pad_token_id=0,
)
found = {}
for name, module in DeepseekV3ForCausalLM(config).named_modules():
    if hasattr(module, "variance_epsilon"):
        found.setdefault(module.variance_epsilon, set()).add(name.rpartition(".")[2])
found = {eps: sorted(names) for eps, names in sorted(found.items())}
print(found)
assert found == {
    1e-06: ["kv_a_layernorm", "q_a_layernorm"],
    0.01: ["input_layernorm", "norm", "post_attention_layernorm"],
}
END
