r"""Scoring functions: each compares a query with a key and returns one number, the score.

Every score is a module with one interface, $(\dots, \text{query}, d_q)$ and
$(\dots, \text{key}, d_k)$ to $(\dots, \text{query}, \text{key})$. `course_lib.transformer.attention.Attention` applies the
masked softmax to the scores and averages the values with the weights.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from course_lib.validation import require_positive

__all__ = [
    "AdditiveScore",
    "ConcatScore",
    "DotScore",
    "GaussianScore",
    "GeneralScore",
    "ScaledDotScore",
]

Queries = Float[Tensor, "*#batch query query_size"]
Keys = Float[Tensor, "*#batch key key_size"]
Scores = Float[Tensor, "*#batch query key"]


class DotScore(nn.Module):
    r"""$a(q, k) = q^\top k$, the product of both norms and the cosine similarity. No parameters.

    Source: Luong, Pham and Manning (2015), section 3.1, "dot".
    """

    def forward(self, query: Queries, key: Keys) -> Scores:
        """Score every query against every key."""
        return query @ key.mT  # (…, query, d) @ (…, d, key)


class ScaledDotScore(nn.Module):
    r"""$a(q, k) = q^\top k / \sqrt{d}$ with $d$ the dimension of both: its variance does not grow with $d$.

    Source: Vaswani et al. (2017), equation 1.
    """

    def forward(self, query: Queries, key: Keys) -> Scores:
        """Score every query against every key."""
        return query @ key.mT / math.sqrt(query.shape[-1])  # (…, query, key)


class GeneralScore(nn.Module):
    r"""$a(q, k) = q^\top W k$: a learned bilinear form; the dimensions may differ. No scale, no bias.

    $W$ has shape (query_size, key_size).

    Args:
        query_size: the dimension of a query.
        key_size: the dimension of a key.

    Source: Luong, Pham and Manning (2015), section 3.1, "general".
    """

    def __init__(self, query_size: int, key_size: int) -> None:
        super().__init__()
        self.W = nn.Linear(key_size, query_size, bias=False)

    def forward(self, query: Queries, key: Keys) -> Scores:
        """Score every query against every key."""
        return query @ self.W(key).mT  # (…, query, query_size) @ (…, query_size, key)


class ConcatScore(nn.Module):
    r"""$a(q, k) = v^\top \tanh(W\,[q; k])$: a network with one hidden layer reads both vectors, concatenated.

    $W$ has shape (hidden_size, query_size + key_size), $v$ (hidden_size,). This is the formula as the paper
    writes it: all pairs are built, in a tensor of query × key × (query_size + key_size) elements.
    `AdditiveScore` computes the same function without it.

    Args:
        query_size: the dimension of a query.
        key_size: the dimension of a key.
        hidden_size: the number of hidden units.

    Source: Luong, Pham and Manning (2015), section 3.1, "concat".
    """

    def __init__(self, query_size: int, key_size: int, hidden_size: int) -> None:
        super().__init__()
        self.W = nn.Linear(query_size + key_size, hidden_size, bias=False)
        self.v = nn.Linear(hidden_size, 1, bias=False)

    def forward(self, query: Queries, key: Keys) -> Scores:
        """Score every query against every key."""
        batch = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2])
        shape = (*batch, query.shape[-2], key.shape[-2], -1)
        query = query[..., :, None, :].expand(shape)  # (…, query, key, query_size)
        key = key[..., None, :, :].expand(shape)  # (…, query, key, key_size)
        scores = self.v(torch.tanh(self.W(torch.cat([query, key], dim=-1))))  # (…, query, key, 1)
        return scores.squeeze(-1)


class AdditiveScore(nn.Module):
    r"""$a(q, k) = v^\top \tanh(W q + U k)$: both are projected to `hidden_size` dimensions and added.

    $W$ has shape (hidden_size, query_size), $U$ (hidden_size, key_size), $v$ (hidden_size,). If $[W\; U]$ is
    the matrix of a `ConcatScore`, the two scores are equal. The sum, broadcast over all pairs, has
    query × key × hidden_size elements.

    Args:
        query_size: the dimension of a query.
        key_size: the dimension of a key.
        hidden_size: the number of hidden units.

    Source: Bahdanau, Cho and Bengio (2015), appendix A.1.2.
    """

    def __init__(self, query_size: int, key_size: int, hidden_size: int) -> None:
        super().__init__()
        self.W = nn.Linear(query_size, hidden_size, bias=False)
        self.U = nn.Linear(key_size, hidden_size, bias=False)
        self.v = nn.Linear(hidden_size, 1, bias=False)

    def forward(self, query: Queries, key: Keys) -> Scores:
        """Score every query against every key."""
        query = self.W(query)[..., :, None, :]  # (…, query, 1, hidden_size)
        key = self.U(key)[..., None, :, :]  # (…, 1, key, hidden_size)
        return self.v(torch.tanh(query + key)).squeeze(-1)  # (…, query, key)


class GaussianScore(nn.Module):
    r"""$a(q, k) = -\lVert q - k \rVert^2 / 2h^2$: the score of kernel regression, for vectors.

    The bandwidth $h$, in the units of the vectors, is learned; the parameter is $\log h$.

    Args:
        bandwidth: the initial $h$, above 0.

    Source: Nadaraya (1964), Watson (1964).
    """

    def __init__(self, bandwidth: float = 1.0) -> None:
        super().__init__()
        require_positive(bandwidth=bandwidth)
        self.log_bandwidth = nn.Parameter(torch.tensor(math.log(bandwidth)))

    def forward(self, query: Queries, key: Keys) -> Scores:
        """Score every query against every key."""
        if query.shape[-1] != key.shape[-1]:
            raise ValueError(
                f"query has dimension {query.shape[-1]}, key {key.shape[-1]}; they must be equal"
            )
        differences = query[..., :, None, :] - key[..., None, :, :]  # (…, query, key, d)
        return -(differences / self.log_bandwidth.exp()).square().sum(-1) / 2  # (…, query, key)
