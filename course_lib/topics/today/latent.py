"""Multi-head latent attention: a token leaves one short vector, from which every head makes its keys and values."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from course_lib.transformer.cache import KeyValueCache
from course_lib.transformer.masks import causal_mask
from course_lib.transformer.positions import RotaryPositions


class LatentAttention(nn.Module):
    r"""Causal attention whose cache holds a latent vector $c_j$ and one rotated key $k^R_j$ per token.

    $$c_j = \mathrm{RMSNorm}(W^{DKV} x_j), \qquad k_{j,h} = [\,W^{UK}_h c_j;\; k^R_j\,], \qquad v_{j,h} = W^{UV}_h c_j$$

    The rotation of RoPE depends on the position, so it cannot be part of $W^{UK}$; it acts on a few components of their
    own, whose key all heads share. With `absorbed=True` the same output is computed without a key or value per head:

    $$q^\top W^{UK}_h c_j = (W^{UK\top}_h q)^\top c_j, \qquad
      \sum_j a_j W^{UV}_h c_j = W^{UV}_h \sum_j a_j c_j$$

    so $c_j$ itself is key and value of one shared head: cheaper when one token meets a long cache.

    Args:
        d_model: the dimension of input and output.
        num_heads: the number of heads.
        d_latent: of $c_j$.
        d_nope: of the components of a query and key without positions.
        d_rope: of the rotated components, even.
        d_value: of a head's value.
        d_query: of the latent vector of the queries; None for one matrix instead.
        base: RoPE θ.
        layout: of the rotated pairs, "interleaved" or "half".
        eps: of the normalisation of the latent vectors.

    Source: DeepSeek-AI (2024), "DeepSeek-V2", section 2.1 and appendix C.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        d_latent: int,
        d_nope: int,
        d_rope: int,
        d_value: int,
        d_query: int | None = None,
        base: float = 10000.0,
        layout: str = "interleaved",
        eps: float = 1e-6,
    ) -> None:
        super().__init__()
        self.num_heads, self.d_latent, self.d_nope, self.d_rope = (
            num_heads,
            d_latent,
            d_nope,
            d_rope,
        )
        self.d_value = d_value
        width = num_heads * (d_nope + d_rope)
        self.q_down = nn.Linear(d_model, d_query, bias=False) if d_query else nn.Identity()
        self.q_norm = nn.RMSNorm(d_query, eps=eps) if d_query else nn.Identity()
        self.q_up = nn.Linear(d_query or d_model, width, bias=False)
        self.kv_down = nn.Linear(d_model, d_latent + d_rope, bias=False)
        self.kv_norm = nn.RMSNorm(d_latent, eps=eps)
        self.kv_up = nn.Linear(d_latent, num_heads * (d_nope + d_value), bias=False)
        self.out_proj = nn.Linear(num_heads * d_value, d_model, bias=False)
        self.rope = RotaryPositions(d_rope, base, layout=layout)

    def forward(
        self,
        x: Float[Tensor, "batch length d_model"],
        *,
        cache: KeyValueCache | None = None,
        absorbed: bool = False,
    ) -> Float[Tensor, "batch length d_model"]:
        """Attend from each token to itself and to those before it.

        Args:
            x: the new tokens.
            cache: of the tokens before, whose `key` is the latent vector and whose `value` is the rotated key.
            absorbed: whether the latent vectors are the keys and values. The output is the same.
        """
        offset = cache.length if cache is not None else 0
        query = self.q_up(self.q_norm(self.q_down(x))).unflatten(-1, (self.num_heads, -1))
        content, rotated = query.transpose(1, 2).split([self.d_nope, self.d_rope], dim=-1)
        latent, shared = self.kv_down(x).split([self.d_latent, self.d_rope], dim=-1)
        rotated, shared = self.rope.rotate(rotated, shared[:, None], offset)
        latent = self.kv_norm(latent)[:, None]  # (batch, 1, length, d_latent)
        if cache is not None:
            latent, shared = cache.update(latent, shared)
        weight = self.kv_up.weight.view(self.num_heads, -1, self.d_latent)
        to_key, to_value = weight.split([self.d_nope, self.d_value], dim=1)  # (heads, ·, d_latent)
        if absorbed:
            query = torch.cat([content @ to_key, rotated], dim=-1)  # (batch, heads, query, ·)
            key = torch.cat([latent, shared], dim=-1)  # (batch, 1, key, d_latent + d_rope)
            # (batch, heads, query, d_value)
            attended = self._attend(query, key, latent) @ to_value.mT
        else:
            key = torch.cat([latent @ to_key.mT, shared.expand(-1, self.num_heads, -1, -1)], dim=-1)
            query = torch.cat([content, rotated], dim=-1)
            attended = self._attend(query, key, latent @ to_value.mT)
        return self.out_proj(attended.transpose(1, 2).flatten(2))

    def _attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        mask = causal_mask(query.shape[-2], key.shape[-2], device=query.device)
        key, value = (x.expand(-1, self.num_heads, -1, -1) for x in (key, value))
        scale = (self.d_nope + self.d_rope) ** -0.5
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scale)
