"""Linformer: keys and values are projected from the length of the sequence to a fixed rank."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from course_lib.transformer.attention import AttentionOutput, scaled_dot_product_attention
from course_lib.transformer.multihead import merge_heads, split_heads
from course_lib.validation import require_divides


class LinformerAttention(nn.Module):
    r"""Multi-head self-attention to $r$ learned mixtures of the $n$ tokens: O(n · r) time and memory.

    $$\text{head} = \mathrm{softmax}\!\left(\frac{Q (E K)^\top}{\sqrt{d_\text{head}}}\right) F V, \qquad
      E, F \in \mathbb{R}^{r \times n}$$

    $E$ and $F$ are parameters of the layer, shared by its heads. They fix the largest length, and they mix all
    positions into every row of $EK$, so that there is no causal Linformer. A shorter sequence uses their first
    columns, which is the same as padding it with zeros.

    Args:
        d_model: the dimension of inputs and output.
        num_heads: how many heads, which divides `d_model`.
        length: $n$, the largest length of a sequence.
        rank: $r$, the number of projected keys; at most `length`.
        shared: whether $F$ is $E$ ("key-value sharing").
        bias: whether the four projections add one.

    Source: Wang et al. (2020), "Linformer: self-attention with linear complexity", equation 7.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        length: int,
        rank: int,
        *,
        shared: bool = False,
        bias: bool = True,
    ) -> None:
        super().__init__()
        require_divides(num_heads=num_heads, d_model=d_model)
        self.num_heads, self.length, self.rank = num_heads, length, rank
        self.q_proj = nn.Linear(d_model, d_model, bias)
        self.k_proj = nn.Linear(d_model, d_model, bias)
        self.v_proj = nn.Linear(d_model, d_model, bias)
        self.out_proj = nn.Linear(d_model, d_model, bias)
        self.key_length_proj = nn.Parameter(torch.randn(rank, length) / rank**0.5)  # E
        self.value_length_proj = (  # F
            self.key_length_proj if shared else nn.Parameter(torch.randn(rank, length) / rank**0.5)
        )

    def forward(
        self,
        x: Float[Tensor, "batch length d_model"],
        padding_mask: Bool[Tensor, "..."] | None = None,
        *,
        need_weights: bool = False,
    ) -> AttentionOutput:
        """Attend to the projected keys.

        Args:
            x: at most as long as the layer was made for.
            padding_mask: boolean, True = may attend, broadcastable to (batch, 1, length); keys and values of
                padding are replaced by zeros before they are projected.
            need_weights: whether to return the weights over the projected keys, (batch, heads, query, rank).
        """
        q, k, v = (
            split_heads(proj(x), self.num_heads)  # (batch, heads, length, d_head)
            for proj in (self.q_proj, self.k_proj, self.v_proj)
        )
        if padding_mask is not None:
            real = padding_mask.expand(len(x), 1, x.shape[1])[..., None]  # (batch, 1, length, 1)
            k, v = torch.where(real, k, 0.0), torch.where(real, v, 0.0)
        k = self.key_length_proj[:, : x.shape[1]] @ k  # (batch, heads, rank, d_head)
        v = self.value_length_proj[:, : x.shape[1]] @ v
        output, weights = scaled_dot_product_attention(q, k, v, need_weights=need_weights)
        return AttentionOutput(self.out_proj(merge_heads(output)), weights)
