#!/usr/bin/env bash
# Seen with peft 0.21.2, transformers 5.24.0, torch 2.13.0.
# Guess: a prompt-tuned model generates after its learned prompt, and a prefix-tuned model after its prefix, with or without a cache.
# Seen: with the cache, which is the default, prompt tuning puts its virtual tokens before every new token and not only before
# the first, and prefix tuning loses the prefix: generate gives the logits of the bare model. No error; of prefix tuning
# a FutureWarning about names tells. The likely reason: generate now hands on its cache by the name `cache`, and peft looks for
# `past_key_values`.
# Output: positions of the steps with the cache: 0 to 12, 13 to 18, 19 to 24; without: 0 to 12, 0 to 13, 0 to 14
# logits of the second token against forward: 2e+00 with the cache, 1e-06 without; prefix tuning and the bare model: 1e-06
# Why it matters: a prompt that is trained right, and that scores right in forward, generates as if it were bad or not there.
set -euo pipefail
folder=${FINDINGS_ENV:-$(mktemp -d)}  # set it to use one environment for several of these
[ -n "${FINDINGS_ENV:-}" ] || trap 'rm -rf "$folder"' EXIT
[ -x "$folder/bin/python" ] || python3 -m venv "$folder"
"$folder/bin/pip" install -q torch==2.13.0 transformers==5.24.0 peft==0.21.2 numpy
"$folder/bin/python" -W ignore - <<'END'
import torch
from peft import PrefixTuningConfig, PromptTuningConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
config = LlamaConfig(
    hidden_size=32, num_attention_heads=4, num_key_value_heads=2, intermediate_size=64, num_hidden_layers=2, vocab_size=24,
    initializer_range=0.3, eos_token_id=None,
)
bare, tokens, rotated = LlamaForCausalLM(config).eval(), torch.randint(3, 24, (1, 8)), []


def generate(model, **options):  # 3 tokens
    return model.generate(
        input_ids=tokens, max_new_tokens=3, do_sample=False, return_dict_in_generate=True, output_logits=True, **options
    )


def tuned(kind):
    model = LlamaForCausalLM(config)
    model.load_state_dict(bare.state_dict())
    return get_peft_model(model, kind(task_type="CAUSAL_LM", num_virtual_tokens=5)).eval()


expected = generate(bare)
model, errors, positions = tuned(PromptTuningConfig), {}, {}
model.get_base_model().model.rotary_emb.register_forward_pre_hook(
    lambda module, args, kwargs: rotated.append(kwargs["position_ids"]), with_kwargs=True
)
for cached in (True, False):
    rotated.clear()
    generated = generate(model, use_cache=cached)
    positions[cached] = [(int(one[0, 0]), int(one[0, -1])) for one in rotated]
    with torch.no_grad():
        scored = model(input_ids=generated.sequences).logits[0, 5 + 8]  # after 5 virtual tokens, 8 given and 1 generated
    errors[cached] = (generated.logits[1][0] - scored).abs().max().item()
prefix = generate(tuned(PrefixTuningConfig))
same = max((a - b).abs().max().item() for a, b in zip(prefix.logits, expected.logits))
print("first and last position of each step, by use_cache:", positions)
print(f"second token against forward: {errors[True]:.0e} with, {errors[False]:.0e} without; prefix and bare model: {same:.0e}")
assert positions[True] == [(0, 12), (13, 18), (19, 24)] and positions[False] == [(0, 12), (0, 13), (0, 14)]
assert errors[True] > 0.1 and errors[False] < 1e-4 and same < 1e-4
END
