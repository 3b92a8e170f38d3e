r"""Scoring functions: a score turns a query and a key into a number, however the two are made.

Every score is a module with one interface, $(\dots, \text{query}, d_q)$ and
$(\dots, \text{key}, d_k)$ to $(\dots, \text{query}, \text{key})$. `Attention` joins a score with the
masked softmax and the weighted sum: compare, softmax, average.
"""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from course_lib.inputs import (
    require_alike,
    require_floating,
    require_made_for,
    require_positive,
    require_probability,
    require_same_batch,
    require_size,
    require_vectors,
    require_whole,
)
from course_lib.masks import masked_softmax
from course_lib.pooling import Attended

__all__ = [
    "AdditiveScore",
    "Attention",
    "ConcatScore",
    "DotScore",
    "GaussianScore",
    "GeneralScore",
    "ScaledDotScore",
    "attend",
]

Queries = Float[Tensor, "*#batch query query_size"]
Keys = Float[Tensor, "*#batch key key_size"]
Scores = Float[Tensor, "*#batch query key"]


class DotScore(nn.Module):
    r"""$a(q, k) = q^\top k$: how far two vectors point the same way, times their lengths. No parameters.

    Source: Luong, Pham and Manning (2015), section 3.1, "dot".
    """

    def forward(self, query: Queries, key: Keys) -> Scores:
        """Score every query against every key.

        Raises:
            ValueError: unless the vectors of both have the same size, dtype and device.
        """
        _require_pair(query, key)
        _require_equal_sizes(query, key)
        return query @ key.mT


class ScaledDotScore(DotScore):
    r"""$a(q, k) = q^\top k / \sqrt{d}$ with $d$ the size of both: its variance does not grow with $d$.

    Source: Vaswani and others (2017), equation 1.
    """

    def forward(self, query: Queries, key: Keys) -> Scores:
        """Score every query against every key; raises as `DotScore` does."""
        return super().forward(query, key) / math.sqrt(query.shape[-1])


class GeneralScore(nn.Module):
    r"""$a(q, k) = q^\top W k$: a learned bilinear form, so the sizes may differ. No scale, no bias.

    $W$ has shape (query_size, key_size).

    Source: Luong, Pham and Manning (2015), section 3.1, "general".
    """

    def __init__(self, query_size: int, key_size: int) -> None:
        super().__init__()
        require_whole(query_size=query_size, key_size=key_size)
        self.W = nn.Linear(key_size, query_size, bias=False)

    def forward(self, query: Queries, key: Keys) -> Scores:
        """Score every query against every key.

        Raises:
            ValueError: for sizes other than those the score was made with, another dtype than that of
                its parameters, and a query and a key of different dtype or device.
        """
        _require_pair(query, key)
        require_made_for(self.W, "score", query=query)
        _require_sizes(query, key, *self.W.weight.shape)
        return query @ self.W(key).mT  # (…, query, query_size) @ (…, query_size, key)


class ConcatScore(nn.Module):
    r"""$a(q, k) = v^\top \tanh(W\,[q; k])$: a small network reads both vectors, one behind the other.

    $W$ has shape (hidden_size, query_size + key_size), $v$ (hidden_size,). Written as it stands: the
    pairs are built, which takes query × key × (query_size + key_size) numbers. `AdditiveScore` computes
    the same function without them.

    Source: Luong, Pham and Manning (2015), section 3.1, "concat".
    """

    def __init__(self, query_size: int, key_size: int, hidden_size: int) -> None:
        super().__init__()
        require_whole(query_size=query_size, key_size=key_size, hidden_size=hidden_size)
        self.sizes = (query_size, key_size)
        self.W = nn.Linear(query_size + key_size, hidden_size, bias=False)
        self.v = nn.Linear(hidden_size, 1, bias=False)

    def forward(self, query: Queries, key: Keys) -> Scores:
        """Score every query against every key; raises as `GeneralScore` does."""
        _require_pair(query, key)
        require_made_for(self.W, "score", query=query)
        _require_sizes(query, key, *self.sizes)
        batch = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2])
        each = (*batch, query.shape[-2], key.shape[-2], -1)  # (…, query, key, size)
        pairs = torch.cat(
            [query[..., :, None, :].expand(each), key[..., None, :, :].expand(each)], -1
        )
        return self.v(torch.tanh(self.W(pairs))).squeeze(-1)


class AdditiveScore(nn.Module):
    r"""$a(q, k) = v^\top \tanh(W q + U k)$: both are projected to one size and added.

    $W$ has shape (hidden_size, query_size), $U$ (hidden_size, key_size), $v$ (hidden_size,). With
    $[W\; U]$ for the matrix of `ConcatScore` the two are equal. The sum takes
    query × key × hidden_size numbers.

    Source: Bahdanau, Cho and Bengio (2015), appendix A.1.2.
    """

    def __init__(self, query_size: int, key_size: int, hidden_size: int) -> None:
        super().__init__()
        require_whole(query_size=query_size, key_size=key_size, hidden_size=hidden_size)
        self.W = nn.Linear(query_size, hidden_size, bias=False)
        self.U = nn.Linear(key_size, hidden_size, bias=False)
        self.v = nn.Linear(hidden_size, 1, bias=False)

    def forward(self, query: Queries, key: Keys) -> Scores:
        """Score every query against every key; raises as `GeneralScore` does."""
        _require_pair(query, key)
        require_made_for(self.W, "score", query=query)
        _require_sizes(query, key, self.W.in_features, self.U.in_features)
        together = self.W(query)[..., :, None, :] + self.U(key)[..., None, :, :]
        scores = self.v(torch.tanh(together))  # (…, query, key, 1)
        return scores.squeeze(-1)


class GaussianScore(nn.Module):
    r"""$a(q, k) = -\lVert q - k \rVert^2 / 2h^2$: the score of kernel regression, for vectors.

    The bandwidth $h$, in the units of the vectors, is learned; the parameter is $\log h$.

    Source: Nadaraya (1964), Watson (1964).
    """

    def __init__(self, bandwidth: float = 1.0) -> None:
        super().__init__()
        require_positive(bandwidth=bandwidth)
        self.log_bandwidth = nn.Parameter(torch.tensor(math.log(bandwidth)))

    def forward(self, query: Queries, key: Keys) -> Scores:
        """Score every query against every key; raises as `DotScore` does."""
        _require_pair(query, key)
        _require_equal_sizes(query, key)
        apart = query[..., :, None, :] - key[..., None, :, :]  # (…, query, key, size)
        return -(apart / self.log_bandwidth.exp()).square().sum(-1) / 2


def attend(
    scores: Scores,
    value: Float[Tensor, "*#batch key value_size"],
    mask: Bool[Tensor, "..."] | None = None,
    *,
    dropout: float = 0.0,
    training: bool = False,
) -> Attended:
    r"""Turn scores into weights, and average the values with them.

    $$\alpha = \mathrm{softmax}(a), \qquad \text{output} = \mathrm{dropout}(\alpha)\, V$$

    Args:
        scores: $a$, shape (…, query, key).
        value: $V$, shape (…, key, value_size).
        mask: boolean, True = may attend, broadcastable to (…, query, key).
        dropout: the probability of dropping a weight; the kept ones are divided by 1 − dropout.
        training: whether to drop at all.

    Returns:
        `Attended(output, weights)`, the weights as they were before dropout.

    Raises:
        ValueError: for keys and values of unequal number, tensors of different dtype or device, a
            dropout outside [0, 1), and whatever `masked_softmax` refuses.
    """
    require_floating(scores=scores, value=value)
    require_probability(dropout=dropout)
    for name, tensor, axes in (
        ("scores", scores, "query, key"),
        ("value", value, "key, value_size"),
    ):
        if tensor.dim() < 2:
            raise ValueError(f"{name} has shape {tuple(tensor.shape)}; it must be (…, {axes})")
    if scores.dtype != value.dtype and torch.is_autocast_enabled(value.device.type):
        scores = scores.to(value.dtype)  # the scores came in autocast's own dtype
    require_alike(scores=scores, value=value)
    if scores.shape[-1] != value.shape[-2]:
        raise ValueError(
            f"scores has shape {tuple(scores.shape)}, that is {scores.shape[-1]} keys, but value has "
            f"shape {tuple(value.shape)}, that is {value.shape[-2]} values; there must be one value per key"
        )
    require_same_batch(scores=scores, value=value)
    weights = masked_softmax(scores, mask)
    return Attended(F.dropout(weights, dropout, training) @ value, weights)


class Attention(nn.Module):
    r"""Attention with any score: compare, softmax, average.

    $$\text{output}_i = \sum_j \alpha_{ij}\, v_j, \qquad \alpha_{ij} = \mathrm{softmax}_j\, a(q_i, k_j)$$

    Args:
        score: a module from (…, query, d_q) and (…, key, d_k) to (…, query, key).
        dropout: of the weights, while training.
    """

    def __init__(self, score: nn.Module, dropout: float = 0.0) -> None:
        super().__init__()
        if isinstance(score, type) or not callable(score):
            what = f"the class {score.__name__}" if isinstance(score, type) else repr(score)
            raise ValueError(f"score is {what}; it must be a module, e.g. DotScore()")
        require_probability(dropout=dropout)
        self.score, self.dropout = score, dropout

    def forward(
        self,
        query: Queries,
        key: Keys,
        value: Float[Tensor, "*#batch key value_size"],
        mask: Bool[Tensor, "..."] | None = None,
    ) -> Attended:
        """Attend; raises as the score and `attend` do."""
        return attend(
            self.score(query, key), value, mask, dropout=self.dropout, training=self.training
        )


def _require_pair(query: Tensor, key: Tensor) -> None:
    require_vectors(query=query, key=key)
    require_alike(query=query, key=key)
    require_same_batch(query=query, key=key)


def _require_equal_sizes(query: Tensor, key: Tensor) -> None:
    require_size(
        query.shape[-1], f"this score needs as many as query has, {query.shape[-1]}", key=key
    )


def _require_sizes(query: Tensor, key: Tensor, query_size: int, key_size: int) -> None:
    require_size(query_size, f"the score was made with query_size={query_size}", query=query)
    require_size(key_size, f"the score was made with key_size={key_size}", key=key)
