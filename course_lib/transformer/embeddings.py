"""Embeddings: from token ids to vectors, with positions where they are added."""

import math

from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.transformer.config import TransformerConfig
from course_lib.transformer.layers import Dropout
from course_lib.transformer.positions import EmbeddingPositions
from course_lib.validation import is_traced, require_tokens

__all__ = ["InputEmbedding", "TokenEmbedding"]


class TokenEmbedding(nn.Embedding):
    r"""A learned vector per token, times $\sqrt{d_\text{model}}$ unless `scale` is False.

    $$E_t\, \sqrt{d_\text{model}}, \qquad E_{t,i} \sim \mathcal{N}(0,\ 1/d_\text{model}) \text{ at initialisation}$$

    The standard deviation is small because the same matrix may serve as the output layer, whose logits would
    be too large otherwise. The factor brings the components of an embedding back to a standard deviation of
    1, comparable with the positional encodings that are added to them.

    Args:
        vocabulary: the number of tokens.
        d_model: the dimension of an embedding.
        scale: whether to multiply; GPT-2 and LLaMA do not.

    Source: Vaswani et al. (2017), section 3.4.
    """

    def __init__(self, vocabulary: int, d_model: int, *, scale: bool = True) -> None:
        super().__init__(vocabulary, d_model)
        self.factor = math.sqrt(d_model) if scale else 1.0
        nn.init.normal_(self.weight, std=d_model**-0.5)

    def forward(self, tokens: Int[Tensor, "batch length"]) -> Float[Tensor, "batch length d_model"]:
        """Look up the tokens."""
        if tokens.dim() != 2:  # with an axis more, each token would be a sequence of its own
            raise ValueError(f"tokens has shape {tuple(tokens.shape)}; it must be (batch, length)")
        if not is_traced():
            require_tokens(self.num_embeddings, tokens=tokens)
        return super().forward(tokens) * self.factor


class InputEmbedding(nn.Module):
    """Token embeddings, plus positions where the encoding is of the kind that is added, then dropout."""

    def __init__(
        self, vocabulary: int, config: TransformerConfig, positions: EmbeddingPositions | None
    ) -> None:
        super().__init__()
        self.token_embedding = TokenEmbedding(
            vocabulary, config.d_model, scale=config.scale_embeddings
        )
        self.positions = positions
        self.dropout = Dropout(config.dropout)

    def forward(
        self, tokens: Int[Tensor, "batch length"], offset: int | Int[Tensor, ""] = 0
    ) -> Float[Tensor, "batch length d_model"]:
        """Return a vector per token; the first token has position `offset`."""
        x = self.token_embedding(tokens)  # (batch, length, d_model)
        return self.dropout(x if self.positions is None else self.positions(x, offset))
