"""From token numbers to the vectors that enter the first block."""

import math

from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.blocks import Dropout
from course_lib.inputs import require_tokens, require_whole
from course_lib.positions import LearnedPositions, make_positions
from course_lib.transformer.config import TransformerConfig


class TokenEmbedding(nn.Module):
    r"""A learned vector per token, times $\sqrt{d_\text{model}}$.

    $$E_t\, \sqrt{d_\text{model}}, \qquad E_{t,i} \sim \mathcal{N}(0,\ 1/d_\text{model}) \text{ at first}$$

    The table starts small because it may serve as the output layer too, whose scores would be too large
    otherwise. The factor brings the vectors back to numbers of size 1, the size of the positions that are
    added to them.

    Args:
        vocabulary: how many tokens.
        d_model: the size of a vector.

    Raises:
        ValueError: for numbers below 1.

    Source: Vaswani and others (2017), section 3.4.
    """

    def __init__(self, vocabulary: int, d_model: int) -> None:
        super().__init__()
        require_whole(vocabulary=vocabulary, d_model=d_model)
        self.table = nn.Embedding(vocabulary, d_model)
        nn.init.normal_(self.table.weight, std=d_model**-0.5)

    def forward(self, tokens: Int[Tensor, "batch length"]) -> Float[Tensor, "batch length d_model"]:
        """Look the tokens up.

        Raises:
            ValueError: for what is not whole numbers of shape (batch, length) below `vocabulary`.
        """
        require_tokens(self.table.num_embeddings, tokens=tokens)
        return self.table(tokens) * math.sqrt(self.table.embedding_dim)


class ModelInput(nn.Module):
    """Embed, add positions where the encoding is one that is added, drop.

    Args:
        vocabulary: how many tokens.
        config: of the model.
    """

    def __init__(self, vocabulary: int, config: TransformerConfig) -> None:
        super().__init__()
        self.embedding = TokenEmbedding(vocabulary, config.d_model)
        self.positions = make_positions(
            config.positions, config.d_model, config.num_heads, max_length=config.max_length
        ).added
        self.dropout = Dropout(config.dropout)

    def forward(
        self, offset: int = 0, **tokens: Int[Tensor, "batch length"]
    ) -> Float[Tensor, "batch length d_model"]:
        """Turn one tensor of tokens, given by its name, into vectors; the first stands at `offset`.

        Raises:
            ValueError: for tokens that are not in the vocabulary, and more than learned positions reach.
        """
        ((name, ids),) = tokens.items()
        require_tokens(self.embedding.table.num_embeddings, **tokens)
        if isinstance(self.positions, LearnedPositions):
            room, needed = len(self.positions.table), offset + ids.shape[1]
            if needed > room:
                raise ValueError(
                    f"{name} reaches position {needed - 1}, but the model was made with "
                    f"max_length={room}: learned positions end at {room - 1}"
                )
        x = self.embedding(ids)  # (batch, length, d_model)
        return self.dropout(x if self.positions is None else self.positions(x, offset))
