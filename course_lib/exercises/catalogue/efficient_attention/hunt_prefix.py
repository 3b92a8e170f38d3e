"""Bug hunt `hunt_prefix` of notebook 10."""

from functools import partial

import torch
import torch.nn.functional as F

from course_lib.efficient import linear_attention
from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.exercise import Case, Exercise, Mistake


def causal_linear(q, k, v):
    q, k = F.elu(q) + 1, F.elu(k) + 1
    S = (k[:, :, None] * v[:, None, :]).cumsum(dim=0)  # (n, d, d_value)
    z = k.cumsum(dim=0)  # (n, d): of the same keys as S
    return torch.einsum("nd,nde->ne", q, S) / (q * z).sum(dim=-1, keepdim=True)


def _prefix(x):
    return x.cumsum(dim=0)


def _all(x):
    return x.sum(dim=0, keepdim=True).expand_as(x)


def _before(x):
    return x.cumsum(dim=0) - x


def _suffix(x):
    return x.flip(0).cumsum(dim=0).flip(0)


def _features(x):
    return F.elu(x) + 1


def _causal(q, k, v, *, of_values=_prefix, of_keys=_prefix, query=_features, key=_features):
    q, k = query(q), key(k)
    S = of_values(k[:, :, None] * v[:, None, :])
    return torch.einsum("nd,nde->ne", q, S) / (q * of_keys(k)).sum(dim=-1, keepdim=True)


EXERCISE = Exercise(
    name="hunt_prefix",
    notebook="10_efficient_attention",
    title="Bug hunt: causal linear attention",
    reference=partial(linear_attention, causal=True),
    solution=causal_linear,
    cases=(
        Case(  # φ of these is 1, 2, 3
            q=torch.tensor([[0.0], [1.0]]),
            k=torch.tensor([[1.0], [2.0]]),
            v=torch.tensor([[5.0], [10.0]]),
        ),
        Case(
            q=random_tensor(5, 3, seed=1),
            k=random_tensor(5, 3, seed=2),
            v=random_tensor(5, 2, seed=3),
        ),
        Case(
            q=random_tensor(4, 4, seed=4),
            k=random_tensor(4, 4, seed=5),
            v=random_tensor(4, 4, seed=6),
        ),
    ),
    mistakes=(
        Mistake(
            "not_causal",
            partial(_causal, of_values=_all, of_keys=_all),
            "The weights sum to 1 again, but now every query attends to all keys. Both sums must end at the query.",
        ),
        Mistake(
            "not_normalised",
            lambda q, k, v: torch.einsum(
                "nd,nde->ne",
                _features(q),
                _prefix(_features(k)[:, :, None] * v[:, None, :]),
            ),
            "Nothing is divided by any more, so the weights do not sum to 1.",
        ),
        Mistake(
            "before_itself",
            partial(_causal, of_keys=_before),
            "The denominator leaves out the query's own key, which the numerator contains. For the first position it is "
            "0.",
        ),
        Mistake(
            "both_before_itself",
            partial(_causal, of_values=_before, of_keys=_before),
            "Both sums now leave out the query's own position, and the first query gets 0 / 0. A query may attend to "
            "itself.",
        ),
        Mistake(
            "future",
            partial(_causal, of_values=_suffix, of_keys=_suffix),
            "Your sums run from the end: each query attends to itself and to later positions.",
        ),
        Mistake(
            "denominator_from_the_end",
            partial(_causal, of_keys=_suffix),
            "Your denominator sums over later keys, and the numerator over earlier ones.",
        ),
        Mistake(
            "only_the_denominator",
            partial(_causal, of_values=_all),
            "Now the denominator is a prefix sum, but the numerator contains all keys.",
        ),
        Mistake(
            "along_the_features",
            partial(_causal, of_keys=lambda k: k.cumsum(dim=-1)),
            "Your cumsum runs over the components of each key. The prefix is along the positions: dim=0.",
        ),
        Mistake(
            "by_position",
            lambda q, k, v: (
                torch.einsum(
                    "nd,nde->ne",
                    _features(q),
                    _prefix(_features(k)[:, :, None] * v[:, None, :]),
                )
                / torch.arange(1.0, len(q) + 1, dtype=q.dtype)[:, None]
            ),
            "You divide by the number of keys. The weights are φ(q) · φ(k), so their sum is φ(q) · z.",
        ),
        Mistake(
            "no_features",
            partial(_causal, query=lambda q: q, key=lambda k: k),
            "The feature map is missing: q · k can be negative, and the sum of the weights zero.",
        ),
    ),
    hints=(
        "Let all values be 1. What should the output be, and what is it?",
        "Which keys are in S[0], and which are in z?",
        "z must be a prefix sum too: one vector for each position, k.cumsum(dim=0).",
    ),
    given=partial(_causal, of_keys=_all),
)
