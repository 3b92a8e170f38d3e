"""T5's relative bias: one learned number per head and bucket of distances, added to the scores."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.inputs import require_even, require_whole, short_name
from course_lib.positions.base import AttentionPositions, relative_positions


def t5_bucket(
    relative: Int[Tensor, "*shape"],
    *,
    bidirectional: bool = True,
    num_buckets: int = 32,
    max_distance: int = 128,
) -> Int[Tensor, "*shape"]:
    r"""Sort relative positions $j - i$ into buckets: near ones each alone, far ones together.

    With $b$ buckets for one direction, $e = \lfloor b/2 \rfloor$ and the distance $n$:

    $$\text{bucket} = n \text{ if } n < e, \text{ else }
      \min\!\Big(b - 1,\; e + \Big\lfloor \frac{\ln(n/e)}{\ln(\text{max\_distance}/e)} (b - e) \Big\rfloor\Big)$$

    Both directions take half of `num_buckets` each, the keys behind the query the upper half. In the
    causal case all buckets are for keys before the query, and those behind it share bucket 0.

    Args:
        relative: $j - i$, whole numbers of any shape.
        bidirectional: whether keys behind the query have buckets of their own.
        num_buckets: of both directions together.
        max_distance: from here on all share the last bucket.

    Raises:
        ValueError: for what is not whole numbers, an odd number of buckets in both directions, too few of them, and a `max_distance`
            that leaves nothing to share.

    Source: Raffel and others (2020), "T5", section 2.1 and their code.
    """
    _require_buckets(bidirectional, num_buckets, max_distance)
    if not isinstance(relative, Tensor) or relative.dtype not in (torch.int64, torch.int32):
        came = (
            short_name(relative.dtype) if isinstance(relative, Tensor) else type(relative).__name__
        )
        raise ValueError(
            f"relative is {came}; it must be a tensor of whole numbers (int64 or int32)"
        )
    buckets = torch.zeros_like(relative)
    if bidirectional:
        num_buckets //= 2
        buckets = (relative > 0) * num_buckets
        distance = relative.abs()
    else:
        distance = (-relative).clamp(min=0)
    exact = num_buckets // 2
    # As T5 computes it, in float32: the edges of the buckets hang on the rounding.
    ratio = torch.log(distance.clamp(min=1).float() / exact) / math.log(max_distance / exact)
    far = exact + (ratio * (num_buckets - exact)).long()
    return buckets + torch.where(distance < exact, distance, far.clamp(max=num_buckets - 1))


def _require_buckets(bidirectional: bool, num_buckets: int, max_distance: int) -> None:
    require_whole(2, num_buckets=num_buckets)
    require_whole(max_distance=max_distance)
    if bidirectional:
        require_even(num_buckets=num_buckets)
        if num_buckets < 4:
            raise ValueError(f"num_buckets={num_buckets} is below 4, two for each direction")
    exact = num_buckets // (4 if bidirectional else 2)
    if max_distance <= exact:
        raise ValueError(
            f"max_distance={max_distance} must be above {exact}: so many distances have a bucket alone"
        )


class T5RelativeBias(AttentionPositions):
    r"""Add $b_{h,\,\text{bucket}(j - i)}$ to the scores: a scalar, and nothing to the vectors.

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
        require_whole(num_heads=num_heads)
        _require_buckets(bidirectional, num_buckets, max_distance)
        self.made_for = {"num_heads": num_heads}
        self.sorting = {
            "bidirectional": bidirectional,
            "num_buckets": num_buckets,
            "max_distance": max_distance,
        }
        self.table = nn.Parameter(0.02 * torch.randn(num_buckets, num_heads))

    def forward(self, query_length: int, key_length: int) -> Float[Tensor, "heads query key"]:
        """Return the bias of every head; with more keys than queries, the queries are the last ones.

        Raises:
            ValueError: for lengths below 1, and fewer keys than queries.
        """
        relative = relative_positions(query_length, key_length, self.table.device)
        return self.table[t5_bucket(relative, **self.sorting)].permute(2, 0, 1)

    def bias(self, query: Tensor, key_length: int) -> Float[Tensor, "heads query key"]:
        """Return the bias, in the dtype of the queries."""
        return self(query.shape[-2], key_length).to(query.dtype)
