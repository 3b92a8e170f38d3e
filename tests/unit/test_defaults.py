"""What arguments are where they are left out: as in the papers and the libraries that have them."""

import inspect
from dataclasses import MISSING, fields

import pytest
import torch
from torch import nn
from transformers import LlamaConfig, T5Config

from course_lib import train, transformer
from course_lib.topics import bleu, pooling, recurrent
from course_lib.transformer import (
    attention,
    decoding,
    layers,
    masks,
    multihead,
    norms,
    positions,
    scoring,
)

T5, LLAMA = T5Config(), LlamaConfig()
NORM = inspect.signature(nn.LayerNorm).parameters["eps"].default
ROPE = {
    "base": LLAMA.rope_parameters["rope_theta"],
    "layout": "interleaved",
    "partial_rotary_factor": 1.0,
}
BUCKETS = {
    "bidirectional": True,
    "num_buckets": T5.relative_attention_num_buckets,
    "max_distance": T5.relative_attention_max_distance,
}
ATTEND = {"dropout": 0.0, "training": False, "need_weights": False, "is_causal": False}
BLOCK = {"norm": "pre", "norm_type": "layer", "norm_eps": NORM, "dropout": 0.0}
SPECIAL = {"bos_id": 1, "eos_id": 2}  # the order of `data.Vocabulary`: padding, start, end
DECODING = {"max_length": 50, **SPECIAL}

# fmt: off
DEFAULTS = {
    pooling.NadarayaWatson: {"bandwidth": 1.0},
    pooling.attention_pooling: {"kernel": "gaussian", "bandwidth": 1.0},
    pooling.leave_one_out_error: {"kernel": "gaussian", "bandwidth": 1.0},
    masks.masked_softmax: {"dim": -1},
    masks.to_additive: {"dtype": torch.float32},
    scoring.GaussianScore: {"bandwidth": 1.0},
    attention.attend: {"dropout": 0.0, "training": False},
    attention.scaled_dot_product_attention: ATTEND | {"need_weights": True, "enable_gqa": False},
    multihead.MultiHeadAttention: {"dropout": 0.0, "bias": True},
    bleu.bleu: {"max_n": 4},  # Papineni et al. (2002)
    positions.RotaryPositions: ROPE,
    positions.rotary: ROPE,
    positions.ShawRelativePositions: {"max_distance": 16},  # Shaw et al. (2018), section 4.1
    positions.SinusoidalPositions: {"base": 10_000.0},
    positions.AttentionPositions.attend: ATTEND | {"offset": 0},
    positions.ShawRelativePositions.attend: ATTEND | {"offset": 0},
    positions.AttentionPositions.rotate: {"offset": 0},
    positions.RotaryPositions.rotate: {"offset": 0},
    positions.EmbeddingPositions.forward: {"offset": 0},
    positions.sinusoidal_table: {"base": 10_000.0, "dtype": torch.float32},
    positions.T5RelativeBias: BUCKETS,
    positions.t5_bucket: BUCKETS,
    layers.EncoderLayer: {**BLOCK, "activation": "relu", "bias": True},
    layers.DecoderLayer: {**BLOCK, "activation": "relu", "bias": True},
    layers.FeedForward: {"dropout": 0.0, "activation": "relu", "bias": True},
    norms.LayerNorm: {"eps": NORM},
    norms.make_norm: {"eps": NORM},
    transformer.TokenEmbedding: {"scale": True},
    decoding.DecodingSession: {"bos_id": 1},
    decoding.greedy: DECODING,
    decoding.stream: DECODING,
    decoding.sample: {"logits_processors": (), "num_samples": 1, **DECODING},
    decoding.beam_search: {"beam_size": 4, "length_penalty": 1.0, **DECODING},
    recurrent.BahdanauDecoder: {"readout_size": 32},
    recurrent.FixedContextDecoder: {"readout_size": 32},
    recurrent.LuongDecoder: {"score": "general", "input_feeding": False},
    recurrent.GRUEncoder: {"pad_id": 0},
    recurrent.Seq2Seq: {**SPECIAL, "pad_id": 0},
    train.next_token_loss: {"pad_id": 0, "smoothing": 0.0},
    train.train_step: {"max_grad_norm": 1.0, "precision": "float32"},
    # The base model of Vaswani et al. (2017), table 3.
    transformer.TransformerConfig: {
        "d_model": 512, "num_heads": 8, "encoder_layers": 6, "decoder_layers": 6, "d_ff": 2048, "dropout": 0.1,
        "norm": "post", "norm_type": "layer", "norm_eps": NORM, "activation": "relu", "bias": True, "pad_id": 0,
        "positions": "sinusoidal", "rope_theta": ROPE["base"], "rope_layout": "interleaved", "partial_rotary_factor": 1.0,
        "max_length": 512,
        "scale_embeddings": True, "tie_embeddings": False,
    },
    train.Evaluation: {"every": 100},
    train.History: {"seconds": 0.0},
}
# fmt: on


def defaults(of):
    """The default of each argument that has one other than None."""
    if hasattr(of, "__dataclass_fields__"):
        found = {field.name: field.default for field in fields(of)}
    else:
        found = {one.name: one.default for one in inspect.signature(of).parameters.values()}
    return {n: d for n, d in found.items() if d not in (None, MISSING, inspect.Parameter.empty)}


@pytest.mark.parametrize("of", DEFAULTS, ids=lambda of: of.__qualname__)
def test_defaults(of):
    assert defaults(of) == DEFAULTS[of]
