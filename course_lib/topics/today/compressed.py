"""DeepSeek-V4's attention: one head that is key and value, a window of tokens, and summaries of finished blocks."""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from course_lib.topics.today.indexer import index_scores, keep_best
from course_lib.transformer.masks import causal_mask
from course_lib.transformer.positions import rotary
from course_lib.validation import require_divides, require_whole


def summaries(
    values: Float[Tensor, "*batch length channels"],
    gates: Float[Tensor, "*batch length channels"],
    bias: Float[Tensor, "m channels"],
    *,
    overlap: bool = False,
) -> Float[Tensor, "*batch blocks d"]:
    r"""Return one vector per `m` tokens: their mean, weighed by a softmax over the block, component by component.

    $$s_w = \sum_{j=0}^{m-1} \mathrm{softmax}_j\,(z_{wm+j} + b_j) \odot c_{wm+j}$$

    Tokens that fill no block have no summary.

    Args:
        values, gates: $c$ and $z$ of each token.
        bias: $b$, for each place in a block.
        overlap: whether a summary also covers the block before. The channels are then two halves of `d` each: the first
            is what a token gives to the next block's summary, the second to that of its own.

    Source: DeepSeek-AI (2026), "DeepSeek-V4", section 2.3.
    """
    m = len(bias)
    blocks = values.shape[-2] // m
    c, z = (x[..., : blocks * m, :].unflatten(-2, (blocks, m)) for x in (values, gates))
    z = z + bias  # (…, blocks, m, channels)
    if overlap:
        c, z = _with_block_before(c, 0.0), _with_block_before(z, -torch.inf)
    return (z.softmax(dim=-2) * c).sum(dim=-2)


def _with_block_before(x: Tensor, fill: float) -> Tensor:
    """Return 2 m vectors per block: the first halves of the block before it, the second halves of its own."""
    before, own = x.chunk(2, dim=-1)
    before = F.pad(before, (0, 0, 0, 0, 1, 0), value=fill)[..., :-1, :, :]
    return torch.cat([before, own], dim=-2)


def summary_mask(
    length: int, m: int, *, device: torch.device | None = None
) -> Bool[Tensor, "query summary"]:
    """Let each query attend to the summaries of `m` tokens whose last token is not after it."""
    require_whole(m=m)
    last = torch.arange(1, length // m + 1, device=device) * m - 1
    return last <= torch.arange(length, device=device)[:, None]


class Summaries(nn.Module):
    """What summaries are made of: projections of the tokens, a bias, a norm, and a rotation by each block's first position.

    Args:
        d_model: the dimension of a token.
        d_head: of a summary.
        rate: how many tokens a summary stands for.
        d_rope: how many of its last components are rotated, even.
        overlap: as in `summaries`.
        base: RoPE θ.
        eps: of the norm.

    Source: DeepSeek-AI (2026), "DeepSeek-V4", section 2.3.
    """

    def __init__(
        self,
        d_model: int,
        d_head: int,
        rate: int,
        *,
        d_rope: int,
        overlap: bool = False,
        base: float = 160_000.0,
        eps: float = 1e-6,
    ) -> None:
        super().__init__()
        require_whole(rate=rate)
        channels = d_head * (1 + overlap)
        self.rate, self.d_rope, self.overlap, self.base = rate, d_rope, overlap, base
        self.value_proj = nn.Linear(d_model, channels, bias=False)
        self.gate_proj = nn.Linear(d_model, channels, bias=False)
        self.bias = nn.Parameter(torch.zeros(rate, channels))
        self.norm = nn.RMSNorm(d_head, eps=eps)

    def forward(
        self, x: Float[Tensor, "batch length d_model"]
    ) -> Float[Tensor, "batch blocks d_head"]:
        """Return the rotated summaries of the whole blocks."""
        made = summaries(self.value_proj(x), self.gate_proj(x), self.bias, overlap=self.overlap)
        first = torch.arange(made.shape[-2], device=x.device) * self.rate
        return _rotate_last(self.norm(made), first, self.d_rope, self.base)


class CompressedAttention(nn.Module):
    r"""Causal attention to the last `window` tokens, and beside them to summaries; keys and values are the same vectors.

    $$o_{i,h} = R_{-i} \sum_j a_{ij,h}\, u_j, \qquad a_{i\cdot,h} = \mathrm{softmax}\big(q_{i,h}^\top u_j / \sqrt{d},\; s_h\big)$$

    $u_j$ is a rotated token $R_j\, \mathrm{RMSNorm}(W^{KV} x_j)$ or a summary, $s_h$ a sink, whose weight is dropped. The
    values are rotated, as the keys are; $R_{-i}$ takes it back, so that the output depends on distances alone. Every
    finished block has a summary, those inside the window included. $q_{i,h}$ is rotated, too, after an RMSNorm without a
    scale. Groups of heads are projected to `d_out` components each, then all together to `d_model`. The scaling of the
    frequencies by YaRN, which DeepSeek-V4 has beside summaries, is left out.

    Args:
        d_model: the dimension of input and output.
        num_heads, d_head: of the queries.
        d_query: of the latent vector of the queries.
        d_rope: how many of the last components of a head are rotated, even.
        window: how many tokens a query sees, itself included.
        groups, d_out: of the output projection.
        rate: how many tokens a summary stands for; None for no summaries.
        overlap: as in `summaries`.
        indexer: heads and dimension of an indexer with summaries of its own; None lets a query see all summaries.
        k: how many summaries it keeps.
        base: RoPE θ.
        eps: of the norms.

    Source: DeepSeek-AI (2026), "DeepSeek-V4", section 2.3.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_head: int,
        *,
        d_query: int,
        d_rope: int,
        window: int,
        groups: int,
        d_out: int,
        rate: int | None = None,
        overlap: bool = False,
        indexer: tuple[int, int] | None = None,
        k: int | None = None,
        base: float = 160_000.0,
        eps: float = 1e-6,
    ) -> None:
        super().__init__()
        require_divides(groups=groups, num_heads=num_heads)
        require_whole(window=window)
        if (indexer is None) != (k is None) or (indexer is not None and rate is None):
            raise ValueError(
                f"indexer={indexer}, k={k} and rate={rate}: an indexer needs k, and summaries to choose from"
            )
        self.num_heads, self.d_rope, self.base, self.eps = num_heads, d_rope, base, eps
        self.window, self.groups, self.k = window, groups, k
        self.q_down = nn.Linear(d_model, d_query, bias=False)
        self.q_norm = nn.RMSNorm(d_query, eps=eps)
        self.q_up = nn.Linear(d_query, num_heads * d_head, bias=False)
        self.kv_proj = nn.Linear(d_model, d_head, bias=False)
        self.kv_norm = nn.RMSNorm(d_head, eps=eps)
        self.sinks = nn.Parameter(torch.zeros(num_heads))
        width = num_heads * d_head // groups
        self.out_down = nn.Parameter(torch.randn(groups * d_out, width) * width**-0.5)
        self.out_proj = nn.Linear(groups * d_out, d_model, bias=False)
        options = {"d_rope": d_rope, "overlap": overlap, "base": base, "eps": eps}
        self.summaries = None if rate is None else Summaries(d_model, d_head, rate, **options)
        if indexer is not None:
            heads, d_index = indexer
            self.index_summaries = Summaries(d_model, d_index, rate, **options)
            self.index_q = nn.Linear(d_query, heads * d_index, bias=False)
            self.index_weight = nn.Linear(d_model, heads, bias=False)

    def forward(
        self, x: Float[Tensor, "batch length d_model"]
    ) -> Float[Tensor, "batch length d_model"]:
        """Attend from each token of a whole text."""
        length, heads = x.shape[1], self.num_heads
        positions = torch.arange(length, device=x.device)
        latent = self.q_norm(self.q_down(x))
        q = self.q_up(latent).unflatten(-1, (heads, -1)).transpose(1, 2)
        q = self._rotate(F.rms_norm(q, q.shape[-1:], eps=self.eps), positions)
        kv = self._rotate(self.kv_norm(self.kv_proj(x)), positions)
        mask = causal_mask(length, device=x.device)
        mask = (mask & ~mask.tril(-self.window)).expand(len(x), -1, -1)
        if self.summaries is not None:
            kv = torch.cat([kv, self.summaries(x)], dim=1)  # (batch, length + blocks, d_head)
            mask = torch.cat([mask, self._visible(x, latent, positions)], dim=-1)
        scores = q @ kv[:, None].mT * q.shape[-1] ** -0.5  # (batch, heads, length, length + blocks)
        scores = scores.masked_fill(~mask[:, None], -torch.inf)
        sinks = self.sinks[:, None, None].expand(len(x), -1, length, 1)
        weights = torch.cat([scores, sinks], dim=-1).softmax(dim=-1)[..., :-1]
        attended = self._rotate(weights @ kv[:, None], -positions)
        grouped = attended.transpose(1, 2).reshape(*x.shape[:2], self.groups, -1)
        down = self.out_down.view(self.groups, -1, grouped.shape[-1])
        return self.out_proj(torch.einsum("blgw,gow->blgo", grouped, down).flatten(2))

    def _visible(self, x: Tensor, latent: Tensor, positions: Tensor) -> Tensor:
        """Which summaries each query sees: those of its past, or the best `k` of them."""
        mask = summary_mask(len(positions), self.summaries.rate, device=x.device)
        if self.k is None:
            return mask.expand(len(x), -1, -1)
        weight = self.index_weight(x)
        q = self.index_q(latent).unflatten(-1, (weight.shape[-1], -1)).transpose(1, 2)
        weight = weight * (weight.shape[-1] * q.shape[-1]) ** -0.5
        scores = index_scores(self._rotate(q, positions), self.index_summaries(x), weight)
        return keep_best(scores, self.k, mask)

    def _rotate(self, x: Tensor, positions: Tensor) -> Tensor:
        return _rotate_last(x, positions, self.d_rope, self.base)


def _rotate_last(x: Tensor, positions: Tensor, d_rope: int, base: float) -> Tensor:
    """Rotate the last components, in interleaved pairs."""
    rest, last = x.split([x.shape[-1] - d_rope, d_rope], dim=-1)
    return torch.cat([rest, rotary(last, positions, base)], dim=-1)
