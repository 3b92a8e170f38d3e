"""The layers of a Transformer: feed-forward network, encoder layer, decoder layer.

A layer adds to its input what each of its sublayers makes of it (the residual connection of He et al., 2016).
With $f$ for the sublayer, the normalisation LN stands before it or after the sum:

$$\\text{pre:}\\quad x + f(\\mathrm{LN}(x)) \\qquad\\qquad \\text{post:}\\quad \\mathrm{LN}(x + f(x))$$

With "pre" (Xiong et al., 2020) the path from input to output is the identity at any depth; its output grows with
depth, so the last layer is followed by one more normalisation. With "post" (Vaswani et al., 2017) every sum is
normalised.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from course_lib.transformer.cache import KeyValueCache, LayerCache
from course_lib.transformer.multihead import MultiHeadAttention
from course_lib.transformer.norms import make_norm
from course_lib.transformer.positions import AttentionPositions
from course_lib.validation import require_one_of

__all__ = [
    "ACTIVATIONS",
    "DecoderLayer",
    "Dropout",
    "EncoderLayer",
    "FeedForward",
    "NORMS",
]

#: The activation functions by name; that of "swiglu" is applied to the gate.
ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = MappingProxyType(
    {"relu": F.relu, "gelu": F.gelu, "swiglu": F.silu}
)
#: Where the normalisation is: before the sublayer, inside the residual branch, or after the sum.
NORMS = ("pre", "post")

Vectors = Float[Tensor, "*batch d_model"]


class Dropout(nn.Dropout):
    """`nn.Dropout`, on a CPU with uniform random numbers: forward and backward then take two thirds of the time."""

    def forward(self, x: Vectors) -> Vectors:
        """In training mode, set components to zero with probability p and divide the others by 1 − p."""
        if not self.training or self.p == 0:
            return x
        if not x.is_cpu:  # four kernels in place of one
            return super().forward(x)
        kept = torch.rand(x.shape, device=x.device).ge_(self.p)  # 0 or 1
        return x * kept.to(x.dtype).div_(1 - self.p)


class FeedForward(nn.Module):
    r"""Two linear layers with an activation function between them, applied to each position independently.

    $$\mathrm{FFN}(x) = W_2\, \phi(W_1 x + b_1) + b_2, \qquad \phi(u) = \max(0, u) \text{ for "relu"}$$

    `up_proj` is $W_1$ and expands each vector to `d_ff` hidden units; `down_proj` is $W_2$ and projects back.
    For "swiglu" a third matrix, `gate_proj`, gives each hidden unit a factor that depends on the input:

    $$\mathrm{FFN}(x) = W_2\, (\mathrm{SiLU}(W_g x) \odot W_1 x), \qquad
      \mathrm{SiLU}(u) = u\, / (1 + e^{-u}) \text{, here without biases}$$

    Args:
        d_model: the dimension of input and output.
        d_ff: the number of hidden units; four times `d_model` in the paper.
        dropout: of the hidden units, in training mode.
        activation: $\phi$, one of `ACTIVATIONS`.
        bias: whether the linear layers add one.

    Source: Vaswani et al. (2017), equation 2; Hendrycks and Gimpel (2016) for "gelu"; Shazeer
    (2020), "GLU variants improve Transformer", for "swiglu".
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        *,
        dropout: float = 0.0,
        activation: str = "relu",
        bias: bool = True,
    ) -> None:
        super().__init__()
        require_one_of(ACTIVATIONS, activation=activation)
        self.activation = activation
        self.up_proj = nn.Linear(d_model, d_ff, bias)
        self.gate_proj = nn.Linear(d_model, d_ff, bias) if activation == "swiglu" else None
        self.dropout = Dropout(dropout)
        self.down_proj = nn.Linear(d_ff, d_model, bias)

    def forward(self, x: Vectors) -> Vectors:
        """Transform each position, whatever the others are."""
        phi = ACTIVATIONS[self.activation]
        if self.gate_proj is None:
            hidden = phi(self.up_proj(x))  # (…, d_ff)
        else:
            hidden = phi(self.gate_proj(x)) * self.up_proj(x)  # (…, d_ff)
        return self.down_proj(self.dropout(hidden))  # (…, d_model)


class EncoderLayer(nn.Module):
    """Self-attention mixes information across positions, then the FFN transforms each position independently.

    With a causal mask, and a cache during generation, it is the layer of a decoder-only model.

    Args:
        d_model: the dimension of the vectors.
        num_heads: of the attention; divides `d_model`.
        d_ff: the number of hidden units of the FFN.
        norm: "pre" or "post"; see the top of this module.
        norm_type: "layer" for layer normalisation, "rms" for RMSNorm.
        norm_eps: its epsilon.
        dropout: of attention weights, of the hidden units of the FFN, and of the output of each sublayer.
        activation: of the FFN, one of `ACTIVATIONS`.
        bias: whether the linear layers add one.
        num_kv_heads: the number of key/value heads; as many as query heads where left out.
        positions: an encoding inside attention.

    Source: Vaswani et al. (2017), section 3.1 and figure 1, left.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        *,
        norm: str = "pre",
        norm_type: str = "layer",
        norm_eps: float = 1e-5,
        dropout: float = 0.0,
        activation: str = "relu",
        bias: bool = True,
        num_kv_heads: int | None = None,
        positions: AttentionPositions | None = None,
    ) -> None:
        super().__init__()
        require_one_of(NORMS, norm=norm)
        heads = {"num_kv_heads": num_kv_heads, "dropout": dropout, "bias": bias}
        ffn = {"dropout": dropout, "activation": activation, "bias": bias}
        self.norm_first = norm == "pre"
        self.attention = MultiHeadAttention(d_model, num_heads, positions=positions, **heads)
        self.feed_forward = FeedForward(d_model, d_ff, **ffn)
        self.norm1 = make_norm(norm_type, d_model, norm_eps)
        self.norm2 = make_norm(norm_type, d_model, norm_eps)
        self.dropout = Dropout(dropout)

    def forward(
        self,
        x: Float[Tensor, "batch length d_model"],
        mask: Bool[Tensor, "..."] | None = None,
        *,
        cache: KeyValueCache | None = None,
        is_causal: bool = False,
    ) -> Float[Tensor, "batch length d_model"]:
        """Attend, then apply the feed-forward network.

        Args:
            x: one vector per token.
            mask: True = may attend, broadcastable to (batch, query, key).
            cache: keys and values of the tokens before `x`; see `MultiHeadAttention`.
            is_causal: True for `causal_mask` beside the mask.
        """
        if self.norm_first:
            attended = self.attention(self.norm1(x), mask=mask, cache=cache, is_causal=is_causal)
            x = x + self.dropout(attended.output)
            return x + self.dropout(self.feed_forward(self.norm2(x)))
        attended = self.attention(x, mask=mask, cache=cache, is_causal=is_causal)
        x = self.norm1(x + self.dropout(attended.output))
        return self.norm2(x + self.dropout(self.feed_forward(x)))


class DecoderLayer(nn.Module):
    """Self-attention over the target so far, cross-attention to the encoder's output, then the FFN.

    The weights of the cross-attention are (batch, heads, target, source).

    Args:
        d_model: the dimension of the vectors, of the target and of the memory.
        num_heads, num_kv_heads: of both attentions.
        positions: an encoding inside self-attention.
        d_ff, norm, norm_type, norm_eps, dropout, activation, bias: as for `EncoderLayer`.

    Source: Vaswani et al. (2017), section 3.1 and figure 1, right.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        *,
        norm: str = "pre",
        norm_type: str = "layer",
        norm_eps: float = 1e-5,
        dropout: float = 0.0,
        activation: str = "relu",
        bias: bool = True,
        num_kv_heads: int | None = None,
        positions: AttentionPositions | None = None,
    ) -> None:
        super().__init__()
        require_one_of(NORMS, norm=norm)
        heads = {"num_kv_heads": num_kv_heads, "dropout": dropout, "bias": bias}
        ffn = {"dropout": dropout, "activation": activation, "bias": bias}
        self.norm_first = norm == "pre"
        self.self_attention = MultiHeadAttention(d_model, num_heads, positions=positions, **heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads, **heads)
        self.feed_forward = FeedForward(d_model, d_ff, **ffn)
        self.norm1 = make_norm(norm_type, d_model, norm_eps)
        self.norm2 = make_norm(norm_type, d_model, norm_eps)
        self.norm3 = make_norm(norm_type, d_model, norm_eps)
        self.dropout = Dropout(dropout)

    def forward(
        self,
        x: Float[Tensor, "batch target d_model"],
        memory: Float[Tensor, "batch source d_model"],
        mask: Bool[Tensor, "..."] | None = None,
        memory_mask: Bool[Tensor, "..."] | None = None,
        *,
        cache: LayerCache | None = None,
        is_causal: bool = False,
    ) -> Float[Tensor, "batch target d_model"]:
        """Attend twice, then apply the feed-forward network.

        Args:
            x: one vector per target token.
            memory: the output of the encoder.
            mask: of self-attention, True = may attend, broadcastable to (batch, target, target).
            memory_mask: of cross-attention, broadcastable to (batch, target, source).
            cache: keys and values of the tokens before `x`, and of the memory.
            is_causal: True for `causal_mask` beside the mask of self-attention; a decoder needs it, in training
                and at inference time.
        """
        own, cross = cache or (None, None)
        if self.norm_first:
            attended = self.self_attention(self.norm1(x), mask=mask, cache=own, is_causal=is_causal)
            x = x + self.dropout(attended.output)
            attended = self.cross_attention(self.norm2(x), memory, mask=memory_mask, cache=cross)
            x = x + self.dropout(attended.output)
            return x + self.dropout(self.feed_forward(self.norm3(x)))
        attended = self.self_attention(x, mask=mask, cache=own, is_causal=is_causal)
        x = self.norm1(x + self.dropout(attended.output))
        attended = self.cross_attention(x, memory, mask=memory_mask, cache=cross)
        x = self.norm2(x + self.dropout(attended.output))
        return self.norm3(x + self.dropout(self.feed_forward(x)))
