"""The facts of the models, as `python -m course_lib.tools.model_facts` reads them from `transformers`."""

import json
from functools import cache
from pathlib import Path

FACTS = Path(__file__).with_name("facts.json")
#: What no anatomy depends on.
LEFT_OUT = (
    "attention_dropout", "bos_token_id", "eos_token_id", "pad_token_id", "architectures", "transformers_version", "dtype",
    "id2label", "label2id", "problem_type", "return_dict", "output_hidden_states", "output_attentions", "use_cache",
    "chunk_size_feed_forward", "is_encoder_decoder", "initializer_range", "output_router_logits", "router_aux_loss_coef",
    "router_jitter_noise", "pretraining_tp", "embd_pdrop", "attn_pdrop", "resid_pdrop", "hidden_dropout",
    "embedding_dropout", "resid_dropout", "embd_dropout", "_name_or_path", "summary_type", "summary_use_proj",
    "summary_activation", "summary_proj_to_labels", "summary_first_dropout",
)  # fmt: skip


@cache
def stored() -> dict:
    """Return what the file holds: the version of `transformers`, and class and configuration of each model."""
    return json.loads(FACTS.read_text(encoding="utf-8"))
