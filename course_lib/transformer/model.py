"""The encoder–decoder Transformer."""

from dataclasses import dataclass
from typing import NamedTuple

from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.transformer.cache import ModelCache
from course_lib.transformer.config import TransformerConfig
from course_lib.transformer.embeddings import InputEmbedding
from course_lib.transformer.layers import DecoderLayer, EncoderLayer
from course_lib.transformer.masks import padding_mask_from_tokens
from course_lib.transformer.stacks import initialise, make_final_norm, make_layers, unless_all

__all__ = ["Memory", "Transformer"]


class Memory(NamedTuple):
    """The output of the encoder.

    Attributes:
        vectors: (batch, source, d_model).
        mask: (batch, 1, source), True where the source is not padding.
    """

    vectors: Tensor
    mask: Tensor


@dataclass
class TransformerState:
    """What a model keeps between two decode steps.

    Attributes:
        cache: from `new_cache`.
        memory: from `encode`; None for a model without an encoder.
    """

    cache: ModelCache
    memory: Memory | None = None

    def reorder(self, rows: Int[Tensor, " new_batch"], *, same_sources: bool = False) -> None:
        """Keep these sequences of the batch, in this order; see `ModelCache.reorder`."""
        self.cache.reorder(rows, same_sources=same_sources)
        if self.memory is not None and not same_sources:
            self.memory = Memory(*(part.index_select(0, rows) for part in self.memory))


class Transformer(nn.Module):
    r"""Encode a source, then decode the target token by token.

    $$p(y_t \mid y_1, \dots, y_{t-1}, x) = \mathrm{softmax}\big(W\, \mathrm{Decoder}(y_1, \dots, y_{t-1},
      \mathrm{Encoder}(x))_{t-1}\big)$$

    Source: Vaswani et al. (2017), "Attention is all you need", section 3.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        source_vocabulary = config.source_vocabulary or config.target_vocabulary
        both, left = (
            config.make_positions(bidirectional=True),
            config.make_positions(bidirectional=False),
        )
        self.source_embedding = InputEmbedding(source_vocabulary, config, both.embedding)
        self.target_embedding = InputEmbedding(config.target_vocabulary, config, left.embedding)
        self.encoder = make_layers(
            EncoderLayer, config.encoder_layers, config, both, bidirectional=True
        )
        self.decoder = make_layers(
            DecoderLayer, config.decoder_layers, config, left, bidirectional=False
        )
        self.encoder_norm, self.decoder_norm = make_final_norm(config), make_final_norm(config)
        self.lm_head = nn.Linear(config.d_model, config.target_vocabulary, bias=False)
        initialise(self)
        if config.tie_embeddings:
            self.lm_head.weight = self.target_embedding.token_embedding.weight
            if config.source_vocabulary is None:
                self.source_embedding.token_embedding.weight = self.lm_head.weight

    def forward(
        self, source: Int[Tensor, "batch source"], target: Int[Tensor, "batch target"]
    ) -> Float[Tensor, "batch target vocabulary"]:
        """Teacher forcing: the logits at position i are for the token that follows `target[:, i]`."""
        return self.decode(target, self.encode(source))

    def encode(self, source: Int[Tensor, "batch source"]) -> Memory:
        """Encode the source, all tokens at once."""
        x = self.source_embedding(source)  # (batch, source, d_model)
        mask = padding_mask_from_tokens(source, self.config.pad_id)  # (batch, 1, source)
        for block in self.encoder:
            x = block(x, mask)  # (batch, source, d_model)
        return Memory(self.encoder_norm(x), mask)

    def decode(
        self,
        target: Int[Tensor, "batch target"],
        memory: Memory,
        *,
        cache: ModelCache | None = None,
    ) -> Float[Tensor, "batch target vocabulary"]:
        """Return logits for the token after each of these, given the tokens up to it and the memory.

        Args:
            target: the tokens so far; with a cache, only the new ones.
            memory: from `encode`; with a cache, it is read at the first call only.
            cache: from `new_cache`; keeps the keys and values for later tokens.
        """
        x = self.target_embedding(target, cache.length if cache else 0)  # (batch, target, d_model)
        padding = padding_mask_from_tokens(target, self.config.pad_id)  # (batch, 1, target)
        if cache:
            padding = cache.update_padding(padding)  # (batch, 1, cached + target)
        mask = unless_all(padding)
        for layer, block in enumerate(self.decoder):
            x = block(
                x,
                memory.vectors,
                mask,
                memory.mask,
                cache=cache.blocks[layer] if cache else None,
                is_causal=True,
            )  # (batch, target, d_model)
        return self.lm_head(self.decoder_norm(x))  # (batch, target, vocabulary)

    def new_cache(self) -> ModelCache:
        """Return an empty cache for one batch."""
        return ModelCache(len(self.decoder))

    # --- what `course_lib.transformer.decoding` asks of a model ---

    @property
    def vocabulary_size(self) -> int:
        """How many tokens the target has."""
        return self.config.target_vocabulary

    @property
    def pad_id(self) -> int:
        """The padding token."""
        return self.config.pad_id

    def prefill(
        self, source: Int[Tensor, "batch source"], *, bos_id: int
    ) -> tuple[Float[Tensor, "batch vocabulary"], TransformerState]:
        """Encode the source and decode the start token; return logits for the first token, and the state."""
        state = TransformerState(memory=self.encode(source), cache=self.new_cache())
        return self.decode_step(source.new_full((len(source),), bos_id), state), state

    def decode_step(
        self, token: Int[Tensor, " batch"], state: TransformerState
    ) -> Float[Tensor, "batch vocabulary"]:
        """Decode one more token; return logits for the next one, and update the state."""
        return self.decode(token[:, None], state.memory, cache=state.cache)[:, -1]
