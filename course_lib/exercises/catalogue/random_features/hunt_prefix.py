"""Bug hunt: causal linear attention."""

from functools import partial

import torch
import torch.nn.functional as F

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.topics.efficient import linear_attention


def causal_linear(q, k, v):
    q, k = F.elu(q) + 1, F.elu(k) + 1
    S = (k[:, :, None] * v[:, None, :]).cumsum(dim=0)  # (n, d, d_value)
    z = k.cumsum(dim=0)  # (n, d): of the same keys as S
    return torch.einsum("nd,nde->ne", q, S) / (q * z).sum(dim=-1, keepdim=True)


PREFIX = "v[:, None, :]).cumsum(dim=0)"
WEIGHTS = "(q * z).sum(dim=-1, keepdim=True)"
MISTAKES = f"""
.cumsum(dim=0) => .sum(dim=0, keepdim=True)
    Every query attends to all keys now. Both sums must end at the query.
/ {WEIGHTS} ->
    Nothing is divided by any more, so the weights do not sum to 1.
z = k.cumsum(dim=0) -> z = k.cumsum(dim=0) - k
z = k.cumsum(dim=0) -> z = k.cumsum(dim=0) - k
+ {WEIGHTS} -> ({WEIGHTS} + 1e-6)
    The denominator leaves out the query's own key, which the numerator contains. For the first position nothing is
    left of it.
z = k.cumsum(dim=0) -> z = k.cumsum(dim=0) - k
+ {PREFIX} -> {PREFIX} - k[:, :, None] * v[:, None, :]
    Both sums now leave out the query's own position, and the first query gets 0 / 0. A query may attend to itself.
.cumsum(dim=0) => .flip(0).cumsum(dim=0).flip(0)
    Your sums run from the end: each query attends to itself and to later positions.
z = k.cumsum(dim=0) -> z = k.flip(0).cumsum(dim=0).flip(0)
    Your denominator sums over later keys, and the numerator over earlier ones.
{PREFIX} -> v[:, None, :]).sum(dim=0, keepdim=True)
    Now the denominator is a prefix sum, but the numerator contains all keys.
z = k.cumsum(dim=0) -> z = k.cumsum(dim=-1)
    Your cumsum runs over the components of each key. The prefix is along the positions: dim=0.
{WEIGHTS} -> torch.arange(1.0, len(q) + 1)[:, None]
    You divide by the number of keys. The weights are φ(q) · φ(k), so their sum is φ(q) · z.
F.elu(q) + 1, F.elu(k) + 1 -> q, k
    The feature map is missing: q · k can be negative, and the sum of the weights zero.
z = k.cumsum(dim=0) -> z = k
    Your denominator is the weight of the query's own key only. It is the sum over all keys up to the query: a prefix
    sum.
{WEIGHTS} -> (q @ z)[:, None]
    z has a row for each position now, and q @ z is a product of two matrices. Each query needs its own row: (q *
    z).sum(dim=-1, keepdim=True).
{WEIGHTS} -> q @ z.T
    q @ z.T multiplies every query with every prefix sum. Each query needs its own row only: (q * z).sum(dim=-1,
    keepdim=True).
{WEIGHTS} -> (q @ z.T).sum(dim=-1, keepdim=True)
    You add up the products of a query with the prefix sums of all positions. Each query needs its own prefix sum
    only: (q * z).sum(dim=-1, keepdim=True).
{WEIGHTS} -> (q * z).sum(dim=-1)
    The denominator has one axis, so its positions are aligned with the components of the output. It must be (n, 1):
    keepdim=True.
{WEIGHTS} -> (q * z).sum()
{WEIGHTS} -> (q * z).sum(dim=0, keepdim=True)
    Your denominator adds up different queries. Sum over the components only: dim=-1, keepdim=True.
{WEIGHTS} -> (q * z)
    The denominator is not a number for each query: sum q * z over the components.
{WEIGHTS} -> z.sum(dim=-1, keepdim=True)
    Your denominator does not depend on the query. The weights are φ(q) · φ(k), so their sum is φ(q) · z.
F.elu(q) + 1, F.elu(k) + 1 -> F.elu(q), F.elu(k)
    elu(x) can be negative. The feature map is elu(x) + 1.
F.elu(q) + 1, F.elu(k) + 1 -> F.elu(q) + 1, k
    The keys need the feature map too: elu(k) + 1.
F.elu(q) + 1, F.elu(k) + 1 -> q, F.elu(k) + 1
    The queries need the feature map too: elu(q) + 1.
z = k.cumsum(dim=0) -> z = k.cumsum(dim=0) / torch.arange(1.0, len(k) + 1)[:, None]
    Your z is a mean over the keys, and S is a sum. Both must be sums.
"""

GIVEN = "z = k.cumsum(dim=0) -> z = k.sum(dim=0)"
reference = partial(linear_attention, causal=True)
CASES = (
    dict(  # φ of these is 1, 2, 3
        q=torch.tensor([[0.0], [1.0]]),
        k=torch.tensor([[1.0], [2.0]]),
        v=torch.tensor([[5.0], [10.0]]),
    ),
    dict(
        q=random_tensor(5, 3, seed=1),
        k=random_tensor(5, 3, seed=2),
        v=random_tensor(5, 2, seed=3),
    ),
    dict(
        q=random_tensor(4, 4, seed=4),
        k=random_tensor(4, 4, seed=5),
        v=random_tensor(4, 4, seed=6),
    ),
)
HINTS = """
Let all values be 1. What should the output be, and what is it?
Which keys are in S[0], and which are in z?
z must be a prefix sum too: one vector for each position, k.cumsum(dim=0).
"""
