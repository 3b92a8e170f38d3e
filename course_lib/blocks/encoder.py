"""The encoder block: attention, then the network."""

from jaxtyping import Bool, Float
from torch import Tensor, nn

from course_lib.blocks.carry import carry_layer, settings_of
from course_lib.blocks.feed_forward import FeedForward
from course_lib.blocks.residual import Residual
from course_lib.cache import KeyValueCache
from course_lib.inputs import require_made_for, require_sequence
from course_lib.multihead import MultiHeadAttention
from course_lib.positions import AttentionPositions


class EncoderBlock(nn.Module):
    """Every token looks at every other, then each is changed by itself; (batch, length, d_model) → the same.

    With a causal mask, and a cache while writing, it is the block of a decoder-only model.

    Args:
        d_model: the size of the vectors.
        num_heads: of the attention; divides `d_model`.
        d_ff: the inner size of the network.
        norm: "pre" or "post", see `Residual`.
        dropout: of attention weights, of the network's inside, and of what each sublayer adds.
        activation: of the network, "relu" or "gelu".
        num_kv_heads: how many heads keys and values have; as many as the queries where left out.
        positions: an encoding that works inside attention.

    Raises:
        ValueError: for what its parts refuse.

    Source: Vaswani and others (2017), section 3.1 and figure 1, left.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        *,
        norm: str = "pre",
        dropout: float = 0.0,
        activation: str = "relu",
        num_kv_heads: int | None = None,
        positions: AttentionPositions | None = None,
    ) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(
            d_model, num_heads, num_kv_heads=num_kv_heads, dropout=dropout, positions=positions
        )
        self.network = FeedForward(d_model, d_ff, dropout=dropout, activation=activation)
        self.residuals = nn.ModuleList(
            Residual(d_model, norm=norm, dropout=dropout) for _ in range(2)
        )

    def forward(
        self,
        x: Float[Tensor, "batch length d_model"],
        mask: Bool[Tensor, "..."] | None = None,
        *,
        cache: KeyValueCache | None = None,
    ) -> Float[Tensor, "batch length d_model"]:
        """Attend, then work on each token.

        Args:
            x: the vectors.
            mask: True = may attend, broadcastable to (batch, query, key).
            cache: keys and values of the tokens before `x`; see `MultiHeadAttention`.

        Raises:
            ValueError: for vectors, a mask or a cache that do not fit.
        """
        require_sequence(self.attention.query.in_features, x=x)
        require_made_for(self.attention.query, "block", x=x)
        around_attention, around_network = self.residuals
        x = around_attention(x, lambda x: self.attention(x, mask=mask, cache=cache).output)
        return around_network(x, self.network)

    @classmethod
    def from_torch(cls, layer: nn.TransformerEncoderLayer) -> "EncoderBlock":
        """Copy the weights of PyTorch's layer. (Its masks are the other way round: there True hides.)

        Raises:
            ValueError: for any other layer, one without biases, and one with another activation.
        """
        made = cls(**settings_of(layer, nn.TransformerEncoderLayer))
        parts = {"attention": layer.self_attn}
        return carry_layer(layer, made, parts, (layer.norm1, layer.norm2))
