"""`generate` of Hugging Face for its GPT-2 and for models of ours."""

import functools
import math

import torch
from transformers import GPT2Config, GPT2LMHeadModel

from course_lib.transformer import DecoderOnly, TransformerConfig
from course_lib.transformer.decoding import Beams
from tests.helpers.decoding import BOS, EOS, PAD


@functools.cache
def wrapper():
    """A Hugging Face model class around one of our models; without cache, it gets source and tokens."""
    from transformers import GenerationMixin, PreTrainedConfig, PreTrainedModel
    from transformers.modeling_outputs import CausalLMOutput

    class Config(PreTrainedConfig):
        model_type = "ours"

    class Wrapped(PreTrainedModel, GenerationMixin):
        config_class = Config
        main_input_name = "input_ids"

        def __init__(self, ours):
            super().__init__(
                Config(
                    vocab_size=ours.config.target_vocabulary, pad_token_id=PAD, bos_token_id=BOS,
                    eos_token_id=EOS, num_hidden_layers=1, use_cache=False,
                )
            )  # fmt: skip
            self.ours = ours

        def forward(self, input_ids, source=None, attention_mask=None, return_dict=True):
            if source is None:
                return CausalLMOutput(logits=self.ours(input_ids))
            return CausalLMOutput(logits=self.ours(source, input_ids))

        def prepare_inputs_for_generation(self, input_ids, source=None, **kwargs):
            return {"input_ids": input_ids, "source": source}

    return Wrapped


def gpt2(**sizes: int) -> GPT2LMHeadModel:
    """A GPT-2 with random weights that neither pads nor stops by itself."""
    config = GPT2Config(
        activation_function="gelu", bos_token_id=1, eos_token_id=EOS, pad_token_id=PAD, **sizes
    )
    return GPT2LMHeadModel(config).eval()


def from_gpt2(theirs: GPT2LMHeadModel) -> DecoderOnly:
    """Our model with the weights of theirs."""
    sizes = theirs.config
    ours = DecoderOnly(
        TransformerConfig(
            target_vocabulary=sizes.vocab_size,
            d_model=sizes.n_embd,
            num_heads=sizes.n_head,
            decoder_layers=sizes.n_layer,
            d_ff=sizes.n_inner,
            max_length=sizes.n_positions,
            dropout=0.0,
            norm="pre",
            positions="learned",
            activation="gelu",
            pad_id=PAD,
        )
    ).to(theirs.dtype)
    state = theirs.transformer.state_dict()
    made = {
        "embedding.token_embedding.weight": state["wte.weight"] / math.sqrt(sizes.n_embd),
        "embedding.positions.table": state["wpe.weight"],
        "lm_head.weight": theirs.lm_head.weight,
    }
    names = {
        "attention.out_proj": "attn.c_proj",
        "feed_forward.up_proj": "mlp.c_fc",
        "feed_forward.down_proj": "mlp.c_proj",
        "norm1": "ln_1",
        "norm2": "ln_2",
    }
    for what in ("weight", "bias"):
        made[f"norm.{what}"] = state[f"ln_f.{what}"]
        for place in range(sizes.n_layer):
            thirds = state[f"h.{place}.attn.c_attn.{what}"].chunk(3, -1)
            for part, third in zip(("q_proj", "k_proj", "v_proj"), thirds, strict=True):
                made[f"blocks.{place}.attention.{part}.{what}"] = third.T if third.dim() > 1 else third  # fmt: skip
            for mine, hers in names.items():
                tensor = state[f"h.{place}.{hers}.{what}"]
                made[f"blocks.{place}.{mine}.{what}"] = tensor.T if tensor.dim() > 1 else tensor
    ours.load_state_dict(made)
    return ours.eval()


def beams_of(theirs, prompt: torch.Tensor, written: int, *, num_beams: int, **choices) -> Beams:
    """What `generate` finds: as many sequences per prompt as the beam is wide."""
    found = theirs.generate(
        prompt, attention_mask=torch.ones_like(prompt), num_beams=num_beams,
        num_return_sequences=num_beams,
        max_new_tokens=written, do_sample=False, early_stopping="never", output_scores=True,
        return_dict_in_generate=True, **choices,
    )  # fmt: skip
    tokens = found.sequences[:, prompt.shape[1] :].unflatten(0, (len(prompt), num_beams))
    return Beams(tokens, found.sequences_scores.unflatten(0, (len(prompt), num_beams)))
