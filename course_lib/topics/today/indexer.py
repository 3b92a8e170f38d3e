"""A lightning indexer: a few small heads score all earlier tokens, and attention looks at the best of them alone."""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.transformer.masks import causal_mask
from course_lib.transformer.positions import rotary
from course_lib.validation import require_whole


def index_scores(
    query: Float[Tensor, "batch heads query d_index"],
    key: Float[Tensor, "batch key d_index"],
    weight: Float[Tensor, "batch query heads"],
) -> Float[Tensor, "batch query key"]:
    r"""Score every key for every query, with one key for all heads and no softmax.

    $$I_{ij} = \sum_h w_{i,h}\; \mathrm{ReLU}\big(q_{i,h}^\top k_j\big)$$

    Args:
        query, key: of the indexer's heads, much smaller than those of attention.
        weight: $w_{i,h}$, of each query's heads, with the scale in it.

    Source: DeepSeek-AI (2025), "DeepSeek-V3.2-Exp", equation 1.
    """
    heads = F.relu(query @ key[:, None].mT)  # (batch, heads, query, key)
    return torch.einsum("bhqk,bqh->bqk", heads, weight)


def keep_best(
    scores: Float[Tensor, "*batch query key"],
    k: int,
    mask: Bool[Tensor, "*#batch query key"],
    *,
    block: int = 1,
    local: int = 0,
) -> Bool[Tensor, "*batch query key"]:
    r"""Return the mask of the `k` allowed keys with the highest scores, or of the best blocks of keys.

    A query with fewer than `k` allowed keys keeps them all. A block has the score of its best allowed key, and a
    block that is kept is masked again: its keys after the query are not attended to.

    Args:
        scores: of each pair, such as `index_scores`.
        k: how many keys or blocks.
        mask: True where a query may attend.
        block: the number of keys in a block; 1 chooses single keys.
        local: how many of the newest allowed blocks are always among the `k`; MiniMax-M3 has 1, the query's own.

    Source: DeepSeek-AI (2025), equation 2, for keys; MiniMax-M3 (2026) for blocks.
    """
    require_whole(k=k, block=block)
    allowed = scores.masked_fill(~mask, -torch.inf)
    length = scores.shape[-1]
    allowed = F.pad(allowed, (0, -length % block), value=-torch.inf).unflatten(-1, (-1, block))
    best = allowed.amax(dim=-1)  # (…, query, block)
    is_allowed = best > -torch.inf
    age = is_allowed.flip(-1).cumsum(-1).flip(-1)  # 1 of the newest allowed block
    choice = best.masked_fill(is_allowed & (age <= local), torch.inf)
    chosen = choice.topk(min(k, best.shape[-1]), dim=-1).indices
    kept = torch.zeros_like(best, dtype=torch.bool).scatter(-1, chosen, True)
    return kept.repeat_interleave(block, dim=-1)[..., :length] & mask


def attend_to(
    query: Float[Tensor, "batch heads 1 d_head"],
    key: Float[Tensor, "batch heads key d_head"],
    value: Float[Tensor, "batch heads key d_value"],
    chosen: Int[Tensor, "batch kept"],
) -> Float[Tensor, "batch heads 1 d_value"]:
    """Attend from one query to the chosen keys alone: a step whose cost grows with `kept`, not with `key`.

    Args:
        query: of the newest token.
        key, value: of the cache.
        chosen: which keys, the same of all heads, such as `scores.topk(k).indices`.

    Source: DeepSeek-AI (2025), "DeepSeek-V3.2-Exp", equation 2.
    """
    key, value = (  # (batch, heads, kept, ·): index_select copies whole rows
        torch.stack([one.index_select(-2, rows) for one, rows in zip(x, chosen, strict=True)])
        for x in (key, value)
    )
    return F.scaled_dot_product_attention(query, key, value)


class Indexer(nn.Module):
    r"""Choose for each query the `k` earlier tokens that attention will look at.

    $q_{i,h}$ comes from the latent vector of the queries of `LatentAttention`, $k_j$ and $w_{i,h}$ from $x$; the first
    `d_rope` components of queries and keys are rotated.

    Args:
        d_model, d_query: the dimension of $x$ and of the latent vector of the queries.
        num_heads, d_head: of the indexer.
        d_rope: how many components are rotated, even.
        k: how many keys are kept.
        base: RoPE θ.
        layout: of the rotated pairs; DeepSeek-V3.2 has "half" here and "interleaved" in the attention beside it.

    Source: DeepSeek-AI (2025), "DeepSeek-V3.2-Exp", section 2.
    """

    def __init__(
        self,
        d_model: int,
        d_query: int,
        num_heads: int,
        d_head: int,
        *,
        d_rope: int,
        k: int,
        base: float = 10000.0,
        layout: str = "half",
    ) -> None:
        super().__init__()
        self.num_heads, self.d_head, self.d_rope = num_heads, d_head, d_rope
        self.k, self.base, self.layout = k, base, layout
        self.q_proj = nn.Linear(d_query, num_heads * d_head, bias=False)
        self.k_proj = nn.Linear(d_model, d_head, bias=False)
        self.k_norm = nn.LayerNorm(d_head, eps=1e-6)
        self.weight_proj = nn.Linear(d_model, num_heads, bias=False)

    def scores(
        self,
        x: Float[Tensor, "batch length d_model"],
        latent: Float[Tensor, "batch length d_query"],
    ) -> Float[Tensor, "batch length length"]:
        """Return the score of every pair, the future included."""
        query = self.q_proj(latent).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
        query, key = self._rotate(query), self._rotate(self.k_norm(self.k_proj(x)))
        scale = (self.num_heads * self.d_head) ** -0.5
        return index_scores(query, key, self.weight_proj(x) * scale)

    def forward(
        self,
        x: Float[Tensor, "batch length d_model"],
        latent: Float[Tensor, "batch length d_query"],
    ) -> Bool[Tensor, "batch length length"]:
        """Return which keys each query attends to: the best `k` of those up to its own position."""
        mask = causal_mask(x.shape[1], device=x.device)
        return keep_best(self.scores(x, latent), self.k, mask)

    def _rotate(self, x: Tensor) -> Tensor:
        positions = torch.arange(x.shape[-2], device=x.device)
        first, rest = x.split([self.d_rope, self.d_head - self.d_rope], dim=-1)
        return torch.cat([rotary(first, positions, self.base, layout=self.layout), rest], dim=-1)
