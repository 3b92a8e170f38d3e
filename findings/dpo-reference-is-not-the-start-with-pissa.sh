#!/usr/bin/env bash
# Seen with trl 1.16.0, peft 0.21.2, transformers 5.24.0, torch 2.13.0.
# Guess: with a new LoRA adapter DPO starts at a loss of log 2 and rewards of 0, however the adapter is initialised: policy and reference
# are the same model, and every initialisation leaves the outputs as they were.
# Seen: with PiSSA and OLoRA the policy is the given model, the reference is not. They take the adapter's start out of the base
# weights; trl takes the base weights without the adapter for the reference. The first loss is far from log 2. No warning.
# Output (loss before the first update, mean reward of the chosen): default 0.6931 0.00, pissa 0.7882 -0.04, olora 0.4506 0.61
# Why it matters: the rewards, the margins and the pull to the reference are all measured from a damaged model.
set -euo pipefail
folder=${FINDINGS_ENV:-$(mktemp -d)}  # set it to use one environment for several of these
[ -n "${FINDINGS_ENV:-}" ] || trap 'rm -rf "$folder"' EXIT
[ -x "$folder/bin/python" ] || python3 -m venv "$folder"
"$folder/bin/pip" install -q torch==2.13.0 transformers==5.24.0 trl==1.16.0 peft==0.21.2 datasets==5.2.0
export HF_HUB_OFFLINE=1
"$folder/bin/python" -W ignore - "$folder/dpo" <<'END'
import sys

import torch
from datasets import Dataset
from peft import LoraConfig
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import DPOConfig, DPOTrainer

words = ["<pad>", "<eos>", "<unk>", *"abcdefgh"]
splitter = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
splitter.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=splitter, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>")
pairs = Dataset.from_list([{"prompt": "a b c", "chosen": " d e f", "rejected": " g h"}] * 2)
found = {}
for start in (True, "pissa", "olora"):
    torch.manual_seed(0)
    config = LlamaConfig(
        hidden_size=32, num_attention_heads=4, num_key_value_heads=2, intermediate_size=64, num_hidden_layers=2,
        vocab_size=len(words), pad_token_id=0, eos_token_id=1, bos_token_id=None, initializer_range=0.3,
    )
    trainer = DPOTrainer(
        model=LlamaForCausalLM(config),
        args=DPOConfig(
            output_dir=sys.argv[1], max_steps=1, per_device_train_batch_size=2, logging_steps=1, report_to=[],
            use_cpu=True, bf16=False, disable_tqdm=True, save_strategy="no",
        ),
        train_dataset=pairs,
        processing_class=tokenizer,
        peft_config=LoraConfig(r=4, init_lora_weights=start, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"),
    )
    trainer.train()
    log = trainer.state.log_history[0]  # of the first batch, before any update
    found["default" if start is True else start] = log["loss"], log["rewards/chosen"]
print({name: (round(loss, 4), round(reward, 2)) for name, (loss, reward) in found.items()})
assert abs(found["default"][0] - 0.6931) < 1e-3 and found["default"][1] == 0
assert all(abs(found[name][0] - 0.6931) > 0.03 for name in ("pissa", "olora"))
END
