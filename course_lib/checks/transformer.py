"""Checks of `course_lib.transformer`."""

import torch
from torch import Tensor

from course_lib.blocks import ACTIVATIONS, NORM_TYPES, NORMS
from course_lib.cache import ModelCache
from course_lib.checks.multihead import require_same_memory
from course_lib.positions import ENCODINGS, make_positions
from course_lib.validation import (
    require_bool,
    require_divides,
    require_one_of,
    require_positive,
    require_probability,
    require_same_dtype_and_device_as,
    require_sequence,
    require_tokens,
    require_whole,
    short_name,
)


def config(self):
    """Sizes that fit each other and the encoding, and choices that exist."""
    for name in (
        "target_vocabulary", "d_model", "num_heads", "d_ff", "max_length", "encoder_layers",
        "decoder_layers",
    ):  # fmt: skip
        require_whole(**{name: getattr(self, name)})
    require_divides(num_heads=self.num_heads, d_model=self.d_model)
    if self.num_kv_heads is not None:
        require_divides(num_kv_heads=self.num_kv_heads, num_heads=self.num_heads)
    require_probability(dropout=self.dropout)
    require_one_of(NORMS, norm=self.norm)
    require_one_of(ENCODINGS, positions=self.positions)
    require_one_of(NORM_TYPES, norm_type=self.norm_type)
    require_positive(norm_eps=self.norm_eps)
    require_one_of(ACTIVATIONS, activation=self.activation)
    for name in ("tie_embeddings", "scale_embeddings", "bias"):
        require_bool(**{name: getattr(self, name)})
    if self.final_norm is not None:
        require_bool(final_norm=self.final_norm)
    if self.source_vocabulary is not None:
        require_whole(source_vocabulary=self.source_vocabulary)
    require_whole(0, pad_id=self.pad_id)
    for name in ("source_vocabulary", "target_vocabulary"):
        size = getattr(self, name)
        if size is not None and self.pad_id >= size:
            raise ValueError(f"pad_id={self.pad_id} must be below {name}={size}")
    _require_encoding(self)


def _require_encoding(config):
    """Refuse sizes that the encoding refuses."""
    try:
        with torch.device("meta"):  # neither memory nor random numbers are used
            make_positions(
                config.positions, config.d_model, config.num_heads, max_length=config.max_length,
                rope_theta=config.rope_theta, rope_layout=config.rope_layout,
            )  # fmt: skip
    except ValueError as error:
        raise ValueError(
            f"positions={config.positions!r} does not fit d_model={config.d_model} and "
            f"num_heads={config.num_heads}, that is heads of dimension {config.d_head}: {error}"
        ) from None


def model_init(self, config):
    """A configuration."""
    if type(config).__name__ != "TransformerConfig":
        raise ValueError(
            f"config is a {type(config).__name__}; it must be a TransformerConfig, "
            f"e.g. TransformerConfig(target_vocabulary=1000)"
        )


def token_embedding_init(self, vocabulary, d_model, *, scale=True):
    """Sizes above 0."""
    require_whole(vocabulary=vocabulary, d_model=d_model)
    require_bool(scale=scale)


def token_embedding_forward(self, tokens):
    """Tokens of the vocabulary."""
    require_tokens(self.num_embeddings, tokens=tokens)


def _require_input(embedding, offset=0, **tokens):
    """Tokens of the vocabulary, up to the last position of a learned table."""
    require_tokens(embedding.token_embedding.num_embeddings, **tokens)
    ((name, ids),) = tokens.items()
    limit = None if embedding.positions is None else embedding.positions.max_length
    if limit is not None and offset + ids.shape[1] > limit:
        raise ValueError(
            f"{name} reaches position {offset + ids.shape[1] - 1}, but the model was made with "
            f"max_length={limit}: learned positions end at {limit - 1}"
        )


def transformer_forward(self, source, target):
    """Tokens of the two vocabularies, and as many sources as targets."""
    encode(self, source)
    _require_input(self.target_embedding, target=target)
    _require_pairs(target, source)


def encode(self, source):
    """Tokens of the source vocabulary."""
    _require_input(self.source_embedding, source=source)


def decode(self, target, memory, *, cache=None):
    """Tokens of the target vocabulary, a memory of their sources, and the cache of this batch."""
    _require_memory(self, memory)
    if isinstance(target, Tensor) and target.dim() == 2:
        _require_pairs(target, memory.vectors)
    _require_cache(self, cache)
    _require_input(self.target_embedding, 0 if cache is None else cache.length, target=target)
    if cache is not None:
        _require_batch(cache, target)
        require_same_memory(cache.blocks[0].cross_attention, memory.vectors)


def decode_step(self, token, state):
    """One token per sequence, and the state that `prefill` returned; `decode` checks the rest."""
    if type(state).__name__ != "TransformerState":
        raise ValueError(
            f"state is a {type(state).__name__}; it must be the state that prefill returned"
        )
    if not isinstance(token, Tensor) or token.dim() != 1:
        came = tuple(token.shape) if isinstance(token, Tensor) else type(token).__name__
        raise ValueError(
            f"token is {came}; it must be a tensor of shape (batch,), one token per sequence"
        )


def decoder_only_forward(self, tokens, *, cache=None):
    """Tokens of the vocabulary, and the cache of this batch."""
    _require_cache(self, cache)
    _require_input(self.embedding, 0 if cache is None else cache.length, tokens=tokens)
    if cache is not None:
        _require_batch(cache, tokens)


def decoder_only_prefill(self, source, *, bos_id=None):
    """Prompts of the vocabulary, without padding where it would change what is generated."""
    require_tokens(self.vocabulary_size, source=source)
    padding = source == self.pad_id  # (batch, length)
    if padding[:, -1].any():
        row = padding[:, -1].nonzero()[0].item()
        raise ValueError(
            f"source[{row}] ends in padding (pad_id={self.pad_id}), and a DecoderOnly continues after the "
            f"last token; pad on the left, or give sequences of equal length"
        )
    shift_invariant = all(getattr(part, "shift_invariant", True) for part in self.modules())
    if not shift_invariant and padding.any():
        row = padding.any(dim=1).nonzero()[0].item()
        raise ValueError(
            f"source[{row}] holds padding (pad_id={self.pad_id}), which moves its tokens to later positions, "
            f"and positions={self.config.positions!r} counts them from the start; give sequences of equal "
            f"length"
        )


def _require_pairs(target, source):
    if len(target) != len(source):
        raise ValueError(
            f"target has {len(target)} sequences, but the source had {len(source)}; they belong "
            f"together pair by pair"
        )


def _require_cache(model, cache):
    """Refuse what is neither None nor a cache of this model."""
    if cache is None:
        return
    if not isinstance(cache, ModelCache):
        raise ValueError(
            f"cache is a {type(cache).__name__}; it must be what model.new_cache() returns"
        )
    if not cache.belongs_to(model):
        raise ValueError(
            "cache was made by another model, so its keys are of no use to this one; use "
            "model.new_cache() of the model that generates"
        )


def _require_batch(cache, tokens):
    kept = cache.padding_mask
    if kept is not None and len(kept) != len(tokens):
        raise ValueError(
            f"cache has {len(kept)} sequences, but the new tokens are of {len(tokens)}; "
            f"use a new cache for each batch"
        )


def _require_memory(self, memory):
    """Refuse what `encode` would not return."""
    if type(memory).__name__ != "Memory":
        raise ValueError(
            f"memory is a {type(memory).__name__}; it must be a Memory(vectors, mask), as encode returns"
        )
    vectors, mask = memory
    require_sequence(self.config.d_model, **{"memory.vectors": vectors})
    require_same_dtype_and_device_as(self.lm_head, "model", **{"memory.vectors": vectors})
    shape = (len(vectors), 1, vectors.shape[1])
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool or mask.shape != shape:
        came = f"is a {type(mask).__name__}"
        if isinstance(mask, Tensor):
            came = f"has shape {tuple(mask.shape)} and dtype {short_name(mask.dtype)}"
        raise ValueError(
            f"memory.mask {came}; it must be boolean of shape (batch, 1, source) = {shape}, as encode returns"
        )
