"""The encoder–decoder Transformer."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.cache import ModelCache
from course_lib.inputs import require_sequence, short_name
from course_lib.masks import causal_mask, combine_masks, token_mask
from course_lib.transformer.carry import carry_stacks, config_of
from course_lib.transformer.config import TransformerConfig
from course_lib.transformer.embedding import ModelInput
from course_lib.transformer.stack import (
    initialise,
    make_decoder,
    make_encoder,
    make_final_norm,
)


class Memory(NamedTuple):
    """What the encoder made of the source.

    `vectors` (batch, source, d_model), and `mask` (batch, 1, source): True where the source is no padding.
    """

    vectors: Tensor
    mask: Tensor


class Transformer(nn.Module):
    r"""Read a source, then write a target token by token.

    $$p(y_t \mid y_1, \dots, y_{t-1}, x) = \mathrm{softmax}\big(W\, \mathrm{Decoder}(y_1, \dots, y_{t-1},
      \mathrm{Encoder}(x))_{t-1}\big)$$

    Args:
        config: its sizes and choices.

    Raises:
        ValueError: for what is not a `TransformerConfig`.

    Source: Vaswani and others (2017), "Attention is all you need", section 3.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        require_config(config)
        self.config = config
        source_vocabulary = config.source_vocabulary or config.target_vocabulary
        self.source_input = ModelInput(source_vocabulary, config)
        self.target_input = ModelInput(config.target_vocabulary, config)
        self.encoder = make_encoder(config)
        self.decoder = make_decoder(config, memory=True)
        self.encoder_norm, self.decoder_norm = make_final_norm(config), make_final_norm(config)
        self.out = nn.Linear(config.d_model, config.target_vocabulary, bias=False)
        initialise(self)
        if config.tie_embeddings:
            self.out.weight = self.target_input.embedding.table.weight
            if config.source_vocabulary is None:
                self.source_input.embedding.table.weight = self.out.weight

    def forward(
        self, source: Int[Tensor, "batch source"], target: Int[Tensor, "batch target"]
    ) -> Float[Tensor, "batch target vocabulary"]:
        """Teacher forcing: the logits at place i are for the token that follows `target[:, i]`.

        Raises:
            ValueError: for tokens that are not in their vocabulary, unequal batches, and sequences that
                are longer than learned positions reach.
        """
        return self.decode(target, self.encode(source))

    def encode(self, source: Int[Tensor, "batch source"]) -> Memory:
        """Read the source, all of it at once.

        Raises:
            ValueError: as for `forward`.
        """
        x = self.source_input(source=source)  # (batch, source, d_model)
        mask = token_mask(source, self.config.pad_id)  # (batch, 1, source)
        for block in self.encoder:
            x = block(x, mask)
        return Memory(self.encoder_norm(x), mask)

    def decode(
        self,
        target: Int[Tensor, "batch target"],
        memory: Memory,
        *,
        cache: ModelCache | None = None,
    ) -> Float[Tensor, "batch target vocabulary"]:
        """Return logits for the token behind each of these; a token sees those before it and the memory.

        Args:
            target: the tokens so far; with a cache, only those that it has not seen.
            memory: from `encode`.
            cache: from `new_cache`; keeps what later tokens need of these.

        Raises:
            ValueError: as for `forward`, for a memory of another size or batch, and for a cache of another
                model or batch.
        """
        _require_memory(memory, target, self.config.d_model)
        require_model_cache(cache, self)
        _require_same_memory(cache, memory)
        past = 0 if cache is None else cache.length
        x = self.target_input(past, target=target)  # (batch, target, d_model)
        real = token_mask(target, self.config.pad_id)  # (batch, 1, target)
        real = real if cache is None else cache.extend(real)  # (batch, 1, past + target)
        length = target.shape[1]
        mask = combine_masks(causal_mask(length, past + length, device=target.device), real)
        kept = [None] * len(self.decoder) if cache is None else cache.blocks
        for block, one in zip(self.decoder, kept, strict=True):
            x = block(x, memory.vectors, mask, memory.mask, cache=one)
        return self.out(self.decoder_norm(x))  # (batch, target, vocabulary)

    def new_cache(self) -> ModelCache:
        """Return an empty cache for one batch."""
        return ModelCache(self, len(self.decoder))

    @classmethod
    def from_torch(
        cls,
        layer: nn.Transformer,
        *,
        target_vocabulary: int,
        source_vocabulary: int | None = None,
        **choices,
    ) -> "Transformer":
        """Make a model around the weights of PyTorch's, which has neither embeddings nor an output layer.

        Args:
            layer: whose two stacks, norms included, are copied.
            target_vocabulary, source_vocabulary: as in `TransformerConfig`.
            choices: fields of `TransformerConfig` that PyTorch's layer says nothing about: positions,
                max_length, tie_embeddings, pad_id.

        Raises:
            ValueError: for any other layer, one without biases, one with stacks of its own kind or of unequal
                layers, and for other choices.
        """
        config = config_of(
            layer,
            target_vocabulary=target_vocabulary,
            source_vocabulary=source_vocabulary,
            **choices,
        )
        return carry_stacks(layer, cls(config))


def require_config(config: object) -> None:
    """Refuse what is not a `TransformerConfig`."""
    if not isinstance(config, TransformerConfig):
        raise ValueError(
            f"config is a {type(config).__name__}; it must be a TransformerConfig, "
            f"e.g. TransformerConfig(target_vocabulary=1000)"
        )


def require_model_cache(cache: object, model: nn.Module) -> None:
    """Refuse what is neither None nor a cache of this model."""
    if cache is None:
        return
    if not isinstance(cache, ModelCache):
        raise ValueError(
            f"cache is a {type(cache).__name__}; it must be what model.new_cache() returns"
        )
    cache.require_made_by(model)


def _require_same_memory(cache: ModelCache | None, memory: Memory) -> None:
    if cache is not None:
        cache.require_memory(memory.vectors)


def _require_memory(memory: object, target: object, d_model: int) -> None:
    """Refuse what `encode` would not return for the sources of `target`."""
    if not isinstance(memory, Memory):
        raise ValueError(
            f"memory is a {type(memory).__name__}; it must be a Memory(vectors, mask), as encode returns"
        )
    vectors, mask = memory
    require_sequence(d_model, **{"memory.vectors": vectors})
    shape = (len(vectors), 1, vectors.shape[1])
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool or mask.shape != shape:
        came = f"is a {type(mask).__name__}"
        if isinstance(mask, Tensor):
            came = f"has shape {tuple(mask.shape)} and dtype {short_name(mask.dtype)}"
        raise ValueError(
            f"memory.mask {came}; it must be boolean of shape (batch, 1, source) = {shape}, as encode returns"
        )
    if isinstance(target, Tensor) and target.dim() == 2 and len(target) != len(vectors):
        raise ValueError(
            f"target has {len(target)} sequences, but the source had {len(vectors)}; they belong "
            f"together pair by pair"
        )
