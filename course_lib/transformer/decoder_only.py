"""The decoder-only Transformer: a language model."""

from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.cache import ModelCache
from course_lib.masks import causal_mask, combine_masks, token_mask
from course_lib.transformer.config import TransformerConfig
from course_lib.transformer.embedding import ModelInput
from course_lib.transformer.model import require_config, require_model_cache
from course_lib.transformer.stack import initialise, make_decoder, make_final_norm


class DecoderOnly(nn.Module):
    r"""Continue a sequence: the encoder's blocks under a causal mask, and nothing to look across at.

    $$p(y_t \mid y_1, \dots, y_{t-1})$$

    Args:
        config: of its fields `decoder_layers` and `target_vocabulary` count; those of the encoder and the
            source do not.

    Raises:
        ValueError: for what is not a `TransformerConfig`.

    Source: Liu and others (2018), "Generating Wikipedia by summarizing long sequences"; Radford and
    others (2018).
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        require_config(config)
        self.config = config
        self.input = ModelInput(config.target_vocabulary, config)
        self.blocks = make_decoder(config, memory=False)
        self.norm = make_final_norm(config)
        self.out = nn.Linear(config.d_model, config.target_vocabulary, bias=False)
        initialise(self)
        if config.tie_embeddings:
            self.out.weight = self.input.embedding.table.weight

    def forward(
        self, tokens: Int[Tensor, "batch length"], *, cache: ModelCache | None = None
    ) -> Float[Tensor, "batch length vocabulary"]:
        """Return logits for the token behind each of these.

        Args:
            tokens: the sequence so far; with a cache, only what it has not seen.
            cache: from `new_cache`; keeps what later tokens need of these.

        Raises:
            ValueError: for tokens that are not in the vocabulary, sequences that are longer than learned
                positions reach, and a cache of another model or batch.
        """
        require_model_cache(cache, self)
        past = 0 if cache is None else cache.length
        x = self.input(past, tokens=tokens)  # (batch, length, d_model)
        real = token_mask(tokens, self.config.pad_id)  # (batch, 1, length)
        real = real if cache is None else cache.extend(real)  # (batch, 1, past + length)
        length = tokens.shape[1]
        mask = combine_masks(causal_mask(length, past + length, device=tokens.device), real)
        for number, block in enumerate(self.blocks):
            x = block(x, mask, cache=None if cache is None else cache.blocks[number].written)
        return self.out(self.norm(x))  # (batch, length, vocabulary)

    def new_cache(self) -> ModelCache:
        """Return an empty cache for one batch."""
        return ModelCache(self, len(self.blocks))
