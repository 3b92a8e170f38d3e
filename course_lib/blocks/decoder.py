"""The decoder block: attention to what was written, attention to the source, then the network."""

from jaxtyping import Bool, Float
from torch import Tensor, nn

from course_lib.blocks.carry import carry_layer, settings_of
from course_lib.blocks.feed_forward import FeedForward
from course_lib.blocks.residual import Residual
from course_lib.cache import BlockCache
from course_lib.cache.model import require_block_cache
from course_lib.inputs import require_made_for, require_sequence
from course_lib.multihead import MultiHeadAttention
from course_lib.positions import AttentionPositions


class DecoderBlock(nn.Module):
    """Tokens look at those before them, then at the encoder's output, then each is changed by itself.

    The cross-attention's weights are (batch, heads, target, source).

    Args:
        d_model: the size of the vectors, of the target and of the memory.
        num_heads: of both attentions; divides `d_model`.
        d_ff: the inner size of the network.
        norm: "pre" or "post", see `Residual`.
        dropout: of attention weights, of the network's inside, and of what each sublayer adds.
        activation: of the network, "relu" or "gelu".
        num_kv_heads: how many heads keys and values have; as many as the queries where left out.
        positions: an encoding that works inside self-attention.

    Raises:
        ValueError: for what its parts refuse.

    Source: Vaswani and others (2017), section 3.1 and figure 1, right.
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
        options = {"num_kv_heads": num_kv_heads, "dropout": dropout}
        self.self_attention = MultiHeadAttention(d_model, num_heads, positions=positions, **options)
        self.cross_attention = MultiHeadAttention(d_model, num_heads, **options)
        self.network = FeedForward(d_model, d_ff, dropout=dropout, activation=activation)
        self.residuals = nn.ModuleList(
            Residual(d_model, norm=norm, dropout=dropout) for _ in range(3)
        )

    def forward(
        self,
        x: Float[Tensor, "batch target d_model"],
        memory: Float[Tensor, "batch source d_model"],
        mask: Bool[Tensor, "..."] | None = None,
        memory_mask: Bool[Tensor, "..."] | None = None,
        *,
        cache: BlockCache | None = None,
    ) -> Float[Tensor, "batch target d_model"]:
        """Attend twice, then work on each token.

        Args:
            x: the vectors of the target.
            memory: what the encoder made of the source.
            mask: of self-attention, True = may attend, broadcastable to (batch, target, target); a decoder
                that must not see what it has to write needs `causal_mask`, in training and after it.
            memory_mask: of cross-attention, broadcastable to (batch, target, source).
            cache: what is kept of the tokens before `x`, and of the memory.

        Raises:
            ValueError: for vectors, masks or a cache that do not fit.
        """
        require_sequence(self.self_attention.query.in_features, x=x, memory=memory)
        require_made_for(self.cross_attention.key, "block", x=x, memory=memory)
        _require_pairs(x, memory)
        require_block_cache(cache)
        written, read = cache if cache is not None else (None, None)
        around_self, around_cross, around_network = self.residuals
        x = around_self(x, lambda x: self.self_attention(x, mask=mask, cache=written).output)
        x = around_cross(
            x, lambda x: self.cross_attention(x, memory, mask=memory_mask, cache=read).output
        )
        return around_network(x, self.network)

    @classmethod
    def from_torch(cls, layer: nn.TransformerDecoderLayer) -> "DecoderBlock":
        """Copy the weights of PyTorch's layer. (Its masks are the other way round: there True hides.)

        Raises:
            ValueError: for any other layer, one without biases, and one with another activation.
        """
        made = cls(**settings_of(layer, nn.TransformerDecoderLayer))
        parts = {"self_attention": layer.self_attn, "cross_attention": layer.multihead_attn}
        return carry_layer(layer, made, parts, (layer.norm1, layer.norm2, layer.norm3))


def _require_pairs(x: Tensor, memory: Tensor) -> None:
    if len(x) != len(memory):
        raise ValueError(
            f"x has {len(x)} sequences, but memory has {len(memory)}; they belong together pair by pair"
        )
