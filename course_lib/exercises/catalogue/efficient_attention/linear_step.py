"""Exercise `linear_step` of notebook 10."""

from functools import partial

import torch
import torch.nn.functional as F

from course_lib.efficient import LinearAttentionState, linear_attention_step
from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.exercise import Case, Exercise, Mistake


def linear_step(S, z, q, k, v):
    q, k = F.elu(q) + 1, F.elu(k) + 1
    S = S + k[:, None] * v  # (d, d_value)
    z = z + k
    return q @ S / (q @ z)


def _features(x):
    return F.elu(x) + 1


def _step(S, z, q, k, v, *, query=_features, key=_features, state=None, total=None, divide=True):
    q, k = query(q), key(k)
    new = S + torch.outer(k, v) if state is None else state(S, k, v)
    weight = q @ (z + k if total is None else total(z, k))
    return q @ new / weight if divide else q @ new


def _reference(S, z, q, k, v):
    state = LinearAttentionState(S, z)
    return linear_attention_step(q[None], k[None], v[None], state)[0][0]


def _case(tokens, d, d_value, seed):
    k, v = random_tensor(tokens, d, seed=seed), random_tensor(tokens, d_value, seed=seed + 1)
    phi = _features(k[:-1])
    q = random_tensor(d, seed=seed + 2)
    return Case(S=phi.mT @ v[:-1], z=phi.sum(dim=0), q=q, k=k[-1], v=v[-1])


EXERCISE = Exercise(
    name="linear_step",
    notebook="10_efficient_attention",
    title="A decode step of linear attention",
    reference=_reference,
    solution=linear_step,
    cases=(
        Case(  # φ(q) = (1, 2), φ(k) = (3, 1)
            S=torch.tensor([[2.0, 0.0], [1.0, 3.0]]),
            z=torch.tensor([1.0, 2.0]),
            q=torch.tensor([0.0, 1.0]),
            k=torch.tensor([2.0, 0.0]),
            v=torch.tensor([1.0, -1.0]),
        ),
        _case(3, 3, 3, seed=20),
        _case(5, 4, 3, seed=10),
    ),
    mistakes=(
        Mistake(
            "not_itself",
            partial(_step, state=lambda S, k, v: S, total=lambda z, k: z),
            "The new token does not attend to itself: add it to S and z first.",
        ),
        Mistake(
            "total_not_updated",
            partial(_step, total=lambda z, k: z),
            "S contains the new token and z does not, so the weights sum to more than 1. Update both.",
        ),
        Mistake(
            "state_not_updated",
            partial(_step, state=lambda S, k, v: S),
            "z contains the new token and S does not, so the weights sum to less than 1. Update both.",
        ),
        Mistake(
            "outer_product_transposed",
            partial(
                _step,
                state=lambda S, k, v: (
                    S + (torch.outer(v, k) if len(k) == len(v) else torch.outer(k, v))
                ),
            ),
            "The outer product is transposed: a row of S belongs to a component of the key, k[:, None] * v.",
        ),
        Mistake(
            "not_divided",
            partial(_step, divide=False),
            "The sum of the weights is missing: divide by φ(q) · z.",
        ),
        Mistake(
            "query_without_features",
            partial(_step, query=lambda q: q),
            "The query needs the feature map too: elu(q) + 1.",
        ),
        Mistake(
            "key_without_features",
            partial(_step, key=lambda k: k),
            "The new key needs the feature map, like the keys in the state: elu(k) + 1.",
        ),
        Mistake(
            "no_features",
            partial(_step, query=lambda q: q, key=lambda k: k),
            "The feature map is missing in query and key. S and z contain features: elu(x) + 1.",
        ),
        Mistake(
            "relu",
            partial(_step, query=F.relu, key=F.relu),
            "Your features are relu(x). The feature map here is elu(x) + 1.",
        ),
        Mistake(
            "elu_without_one",
            partial(_step, query=F.elu, key=F.elu),
            "elu(x) can be negative. The feature map is elu(x) + 1.",
        ),
        Mistake(
            "softmax_weight",
            partial(_step, query=torch.exp, key=torch.exp),
            "Your features are exp(x). The feature map here is elu(x) + 1.",
        ),
        Mistake(
            "itself_only",
            partial(_step, state=lambda S, k, v: torch.outer(k, v), total=lambda z, k: k),
            "The tokens so far are forgotten: the new one must be added to S and z.",
        ),
    ),
    hints=(
        "Which two sums are in the state, and what does the new token add to each?",
        "S gets the outer product of φ(k) and v, z gets φ(k).",
        "The output is φ(q) @ S / (φ(q) @ z), with the new S and z.",
    ),
)
