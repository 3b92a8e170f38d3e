"""A decode step of linear attention."""

import torch
import torch.nn.functional as F

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.topics.efficient import LinearAttentionState, linear_attention_step


def linear_step(S, z, q, k, v):
    q, k = F.elu(q) + 1, F.elu(k) + 1
    S = S + k[:, None] * v  # (d, d_value)
    z = z + k
    return q @ S / (q @ z)


def reference(S, z, q, k, v):
    state = LinearAttentionState(S, z)
    return linear_attention_step(q[None], k[None], v[None], state)[0][0]


def _case(tokens, d, d_value, seed):
    k, v = random_tensor(tokens, d, seed=seed), random_tensor(tokens, d_value, seed=seed + 1)
    phi = F.elu(k[:-1]) + 1
    q = random_tensor(d, seed=seed + 2)
    return dict(S=phi.mT @ v[:-1], z=phi.sum(dim=0), q=q, k=k[-1], v=v[-1])


FEATURES = "q, k = F.elu(q) + 1, F.elu(k) + 1"
MISTAKES = f"""
S = S + k[:, None] * v -> S = S
+ z = z + k -> z = z
    The new token does not attend to itself: add it to S and z first.
z = z + k -> z = z
    S contains the new token and z does not, so the weights sum to more than 1. Update both.
S = S + k[:, None] * v -> S = S
    z contains the new token and S does not, so the weights sum to less than 1. Update both.
k[:, None] * v -> torch.outer(v, k)
    The outer product is transposed: a row of S belongs to a component of the key, k[:, None] * v.
/ (q @ z) ->
    The sum of the weights is missing: divide by φ(q) · z.
q, k = F.elu(q) + 1 -> q, k = q
    The query needs the feature map too: elu(q) + 1.
F.elu(k) + 1 -> k
    The new key needs the feature map, like the keys in the state: elu(k) + 1.
{FEATURES} ->
    The feature map is missing in query and key. S and z contain features: elu(x) + 1.
{FEATURES} -> q, k = F.relu(q), F.relu(k)
    Your features are relu(x). The feature map here is elu(x) + 1.
{FEATURES} -> q, k = F.relu(q) + 1, F.relu(k) + 1
    Your features are relu(x) + 1. The feature map here is elu(x) + 1, which is exp(x) below 0.
{FEATURES} -> q, k = F.elu(q), F.elu(k)
    elu(x) can be negative. The feature map is elu(x) + 1.
{FEATURES} -> q, k = torch.exp(q), torch.exp(k)
    Your features are exp(x). The feature map here is elu(x) + 1.
S = S + -> S =
+ z = z + k -> z = k
    The tokens so far are forgotten: the new one must be added to S and z.
{FEATURES} -> key, q, k = k, F.elu(q) + 1, F.elu(k) + 1
+ z = z + k -> z = z + key
    z is a sum of features: add φ(k), not k.
{FEATURES} -> key, q, k = k, F.elu(q) + 1, F.elu(k) + 1
+ k[:, None] * v -> key[:, None] * v
    S is a sum of outer products of features and values: add φ(k) vᵀ, not k vᵀ.
k[:, None] * v -> k[:, None] * (F.elu(v) + 1)
    The value goes into S as it is. The feature map belongs to queries and keys.
k[:, None] * v -> k * v
    k * v multiplies component by component. The outer product is needed, k[:, None] * v.
q @ S -> S @ q
    S is (d, d_value) and its rows belong to the components of the key: φ(q) @ S.
(q @ z) -> (q * z)
    You divide by the products of the components. Divide by their sum: φ(q) @ z.
(q @ z) -> z.sum()
    Your denominator does not depend on the query. The weights are φ(q) · φ(k), so their sum is φ(q) · z.
z = z + k -> z = z + 1
z = z + k -> z = z + v.sum()
    z is a sum of features: add φ(k).
S = S + -> S =
    Your S contains the new token only. Add it to the S of the tokens so far.
z = z + k -> z = k
    Your z contains the new token only. Add it to the z of the tokens so far.
q @ S / (q @ z) -> q @ S / (q @ z) / len(q) ** 0.5
{FEATURES} -> q, k = F.elu(q / len(q) ** 0.5) + 1, F.elu(k) + 1
    You divide by √d. Linear attention has no such scale.
q, k = F.elu(q) + 1, F.elu(k) + 1 -> q, k = F.elu(q + 1), F.elu(k + 1)
    You add 1 before elu, so a feature can be negative. Add it afterwards: elu(x) + 1.
"""

CASES = (
    dict(  # φ(q) = (1, 2), φ(k) = (3, 1)
        S=torch.tensor([[2.0, 0.0], [1.0, 3.0]]),
        z=torch.tensor([1.0, 2.0]),
        q=torch.tensor([0.0, 1.0]),
        k=torch.tensor([2.0, 0.0]),
        v=torch.tensor([1.0, -1.0]),
    ),
    _case(3, 3, 3, seed=20),
    _case(5, 4, 3, seed=10),
)
HINTS = """
Which two sums are in the state, and what does the new token add to each?
S gets the outer product of φ(k) and v, z gets φ(k).
The output is φ(q) @ S / (φ(q) @ z), with the new S and z.
"""
DIFFERENTIABLE = False
