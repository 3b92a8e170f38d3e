#!/usr/bin/env bash
# Seen with transformers 5.24.0, torch 2.13.0.
# Guess: AutoModelForCausalLM makes a model from the configuration of every class that ends in ForCausalLM.
# Seen: Mistral4ForCausalLM can be imported and made, but Mistral4Config is not in the mapping of AutoModelForCausalLM.
# Output: {'Mistral4': False, 'DeepseekV3': True} Mistral4ForCausalLM
# Why it matters: code that asks the auto class whether a configuration is a language model says no to one that is.
set -euo pipefail
folder=${FINDINGS_ENV:-$(mktemp -d)}  # set it to use one environment for several of these
[ -n "${FINDINGS_ENV:-}" ] || trap 'rm -rf "$folder"' EXIT
[ -x "$folder/bin/python" ] || python3 -m venv "$folder"
"$folder/bin/pip" install -q torch==2.13.0 transformers==5.24.0
"$folder/bin/python" - <<'END'
from transformers import AutoModelForCausalLM, DeepseekV3Config
from transformers.models.mistral4 import Mistral4Config, Mistral4ForCausalLM

known = AutoModelForCausalLM._model_mapping
found = {"Mistral4": Mistral4Config in known, "DeepseekV3": DeepseekV3Config in known}
print(found, Mistral4ForCausalLM.__name__)
assert found == {"Mistral4": False, "DeepseekV3": True}
END
