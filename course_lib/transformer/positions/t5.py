"""T5's relative position bias: one learned scalar per head and bucket of offsets, added to the scores."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.transformer.positions.base import AttentionPositions, relative_positions


def t5_bucket(
    relative: Int[Tensor, "*shape"],
    *,
    bidirectional: bool = True,
    num_buckets: int = 32,
    max_distance: int = 128,
) -> Int[Tensor, "*shape"]:
    r"""Map relative positions $j - i$ to buckets: one bucket per short distance, shared ones for long distances.

    With $b$ buckets for one direction, $e = \lfloor b/2 \rfloor$ and the distance $n$:

    $$\text{bucket} = n \text{ if } n < e, \text{ else }
      \min\!\Big(b - 1,\; e + \Big\lfloor \frac{\ln(n/e)}{\ln(\text{max\_distance}/e)} (b - e) \Big\rfloor\Big)$$

    Each direction takes half of `num_buckets`, keys after the query the upper half. In the causal case
    all buckets are for keys before the query, and keys after it share bucket 0.

    Args:
        relative: $j - i$, whole numbers of any shape.
        bidirectional: whether keys after the query have buckets of their own.
        num_buckets: of both directions together.
        max_distance: from this distance on, all share the last bucket.

    Source: Raffel et al. (2020), "T5", section 2.1 and their code.
    """
    exact = num_buckets // (4 if bidirectional else 2)
    if exact < 1 or max_distance <= exact or (bidirectional and num_buckets % 2):
        raise ValueError(
            f"num_buckets={num_buckets}, max_distance={max_distance}: there must be at least 2 buckets for each "
            f"direction, an even number for two, and max_distance must be above {exact}, as so many distances "
            f"have a bucket alone"
        )
    relative = relative.clamp(-max_distance, max_distance)  # beyond it, all share one bucket
    buckets = torch.zeros_like(relative)
    if bidirectional:
        num_buckets //= 2
        buckets = (relative > 0) * num_buckets
        distance = relative.abs()
    else:
        distance = (-relative).clamp(min=0)
    # In float32, as in T5's code: the edges of the buckets depend on the rounding.
    ratio = torch.log(distance.clamp(min=1).float() / exact) / math.log(max_distance / exact)
    far = exact + (ratio * (num_buckets - exact)).long()
    return buckets + torch.where(distance < exact, distance, far.clamp(max=num_buckets - 1))


class T5RelativeBias(AttentionPositions):
    r"""Add $b_{h,\,\text{bucket}(j - i)}$ to the scores of head $h$; the vectors stay as they are.

    Args:
        num_heads: of the queries.
        bidirectional, num_buckets, max_distance: as for `t5_bucket`.
    """

    def __init__(
        self,
        num_heads: int,
        *,
        bidirectional: bool = True,
        num_buckets: int = 32,
        max_distance: int = 128,
    ) -> None:
        super().__init__()
        self.layer_sizes = {"num_heads": num_heads}
        self.bidirectional, self.max_distance = bidirectional, max_distance
        self.table = nn.Parameter(0.02 * torch.randn(num_buckets, num_heads))

    def forward(self, query_length: int, key_length: int) -> Float[Tensor, "heads query key"]:
        """Return the bias of every head; with more keys than queries, the queries are the last ones."""
        buckets = t5_bucket(
            relative_positions(query_length, key_length, self.table.device),
            bidirectional=self.bidirectional,
            num_buckets=len(self.table),
            max_distance=self.max_distance,
        )  # (query, key)
        return self.table[buckets].permute(2, 0, 1)

    def bias(self, query: Tensor, key_length: int) -> Float[Tensor, "heads query key"]:
        """Return the bias, in the dtype of the queries."""
        return self(query.shape[-2], key_length).to(query.dtype)
