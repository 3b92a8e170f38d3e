"""The decoder-only Transformer: a language model."""

from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.transformer.cache import ModelCache, StaticCache
from course_lib.transformer.config import TransformerConfig
from course_lib.transformer.embeddings import InputEmbedding
from course_lib.transformer.layers import EncoderLayer
from course_lib.transformer.masks import padding_mask_from_tokens
from course_lib.transformer.model import TransformerState
from course_lib.transformer.positions import AttentionPositions, EmbeddingPositions
from course_lib.transformer.stacks import initialise, make_final_norm, make_layers, unless_all

__all__ = ["DecoderOnly"]


class DecoderOnly(nn.Module):
    r"""Continue a sequence: encoder layers under a causal mask, without cross-attention.

    $$p(y_t \mid y_1, \dots, y_{t-1})$$

    Of the configuration, the fields of encoder and source do not count.

    Source: Liu et al. (2018), "Generating Wikipedia by summarizing long sequences"; Radford et al. (2018).
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        positions = config.make_positions(bidirectional=False)
        self.embedding = InputEmbedding(config.target_vocabulary, config, positions.embedding)
        self.blocks = make_layers(
            EncoderLayer, config.decoder_layers, config, positions, bidirectional=False
        )
        self.norm = make_final_norm(config)
        self.lm_head = nn.Linear(config.d_model, config.target_vocabulary, bias=False)
        initialise(self)
        if config.tie_embeddings:
            self.lm_head.weight = self.embedding.token_embedding.weight

    def forward(
        self, tokens: Int[Tensor, "batch length"], *, cache: ModelCache | None = None
    ) -> Float[Tensor, "batch length vocabulary"]:
        """Return logits for the token after each of these.

        Args:
            tokens: the sequence so far; with a cache, only the new tokens.
            cache: from `new_cache`; keeps the keys and values for later tokens.
        """
        return self.lm_head(self.hidden_states(tokens, cache=cache))  # (batch, length, vocabulary)

    def hidden_states(
        self, tokens: Int[Tensor, "batch length"], *, cache: ModelCache | None = None
    ) -> Float[Tensor, "batch length d_model"]:
        """Return what `lm_head` turns into logits; arguments as for `forward`."""
        x = self.embedding(tokens, cache.length if cache else 0)  # (batch, length, d_model)
        padding = padding_mask_from_tokens(tokens, self.config.pad_id)  # (batch, 1, length)
        if cache:
            padding = cache.update_padding(padding)  # (batch, 1, cached + length)
        mask = unless_all(padding)
        for layer, block in enumerate(self.blocks):
            kept = cache.blocks[layer].self_attention if cache else None
            x = block(x, mask, cache=kept, is_causal=True)  # (batch, length, d_model)
        return self.norm(x)

    def new_cache(self) -> ModelCache:
        """Return an empty cache for one batch."""
        return ModelCache(len(self.blocks))

    # --- what `course_lib.transformer.decoding` asks of a model ---

    @property
    def vocabulary_size(self) -> int:
        """How many tokens there are."""
        return self.config.target_vocabulary

    @property
    def pad_id(self) -> int:
        """The padding token."""
        return self.config.pad_id

    def prefill(
        self, source: Int[Tensor, "batch length"], *, bos_id: int | None = None
    ) -> tuple[Float[Tensor, "batch vocabulary"], TransformerState]:
        """Read the prompts; return logits for the token after each, and the state. `bos_id` is ignored."""
        padding = source == self.pad_id  # (batch, length)
        if padding[:, -1].any():
            raise ValueError(
                f"source[{padding[:, -1].nonzero()[0].item()}] ends in padding (pad_id={self.pad_id}), and a "
                f"DecoderOnly continues after the last token; pad on the left, or give sequences of equal length"
            )
        shift_invariant = all(getattr(part, "shift_invariant", True) for part in self.modules())
        if padding.any() and not shift_invariant:
            raise ValueError(
                f"source[{padding.any(dim=1).nonzero()[0].item()}] holds padding (pad_id={self.pad_id}), which "
                f"moves its tokens to later positions, and positions={self.config.positions!r} counts them from "
                f"the start; give sequences of equal length"
            )
        state = TransformerState(cache=self.new_cache())
        last = self.hidden_states(source, cache=state.cache)[:, -1]  # only it needs logits
        return self.lm_head(last), state

    def reserve(self, state: TransformerState, tokens: int) -> None:
        """Make room for so many more tokens, so that decode steps copy no keys and values; see `StaticCache`.

        With as many positions as the model has, if these are fewer. On a GPU, sequences are then best decoded
        with room for few tokens more than they get: attention reads all of it.
        """
        weight, length = self.lm_head.weight, state.cache.length + tokens
        if weight.device.type == "mps":  # has no float64, of which angles are computed
            return
        for part in self.modules():
            if isinstance(part, EmbeddingPositions | AttentionPositions):
                length = min(length, getattr(part, "max_length", None) or length)
        for part in self.modules():
            if isinstance(part, EmbeddingPositions | AttentionPositions):
                part.reserve(length, weight)
        state.cache = StaticCache(state.cache, length)

    def decode_step(
        self, token: Int[Tensor, " batch"], state: TransformerState
    ) -> Float[Tensor, "batch vocabulary"]:
        """Read one more token; return logits for the next one, and update the state."""
        return self(token[:, None], cache=state.cache)[:, -1]
