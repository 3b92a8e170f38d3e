"""Hyper-connections: several residual streams, mixed by matrices whose rows and columns sum to 1."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from course_lib.validation import require_whole


def doubly_stochastic(
    logits: Float[Tensor, "*batch n n"], iterations: int = 20, eps: float = 1e-6
) -> Float[Tensor, "*batch n n"]:
    r"""Divide by the sums of the rows and of the columns in turn, until both are 1 (Sinkhorn–Knopp).

    It begins with a softmax over the rows and ends with the columns, whose sums are 1 up to `eps`; those of the rows nearly so.

    Args:
        logits: of the entries.
        iterations: how often the columns are divided.
        eps: added to the entries and to the sums.

    Source: Sinkhorn and Knopp (1967), "Concerning nonnegative matrices and doubly stochastic matrices"; Xie et al. (2025),
    "mHC: manifold-constrained hyper-connections", section 4.
    """
    require_whole(iterations=iterations)
    matrix = logits.softmax(-1) + eps
    matrix = matrix / (matrix.sum(-2, keepdim=True) + eps)
    for _ in range(iterations - 1):
        matrix = matrix / (matrix.sum(-1, keepdim=True) + eps)
        matrix = matrix / (matrix.sum(-2, keepdim=True) + eps)
    return matrix


class HyperConnection(nn.Module):
    r"""What takes the place of the residual connection of one sublayer $f$ when $n$ streams $X$ carry the result.

    $$X' = M^\top X + \text{post}\; f\big(\text{pre}^\top X\big)^\top, \qquad M \text{ doubly stochastic}$$

    One linear layer computes $M$ and the positive weights pre and post from the streams of each token. Rows of $M$ that sum
    to 1 keep the mean of the streams; with columns that do, too, mixing alone never makes them grow. With $n = 1$ and
    weights of 1 it is $x + f(x)$.

    Args:
        d_model: of one stream.
        streams: $n$.
        iterations, eps: of `doubly_stochastic`.
        norm_eps: of the normalisation of the flattened streams.

    Source: Zhu et al. (2024), "Hyper-connections"; Xie et al. (2025), "mHC"; as in DeepSeek-V4.
    """

    def __init__(
        self,
        d_model: int,
        streams: int = 4,
        *,
        iterations: int = 20,
        eps: float = 1e-6,
        norm_eps: float = 1e-6,
    ) -> None:
        super().__init__()
        self.n, self.iterations, self.eps, self.norm_eps = streams, iterations, eps, norm_eps
        self.weight = nn.Parameter(torch.randn((2 + streams) * streams, streams * d_model) * 0.02)
        self.base = nn.Parameter(torch.zeros((2 + streams) * streams))
        self.scale = nn.Parameter(torch.ones(3))

    def forward(
        self, streams: Float[Tensor, "*batch n d_model"]
    ) -> tuple[
        Float[Tensor, "*batch d_model"], Float[Tensor, "*batch n"], Float[Tensor, "*batch n n"]
    ]:
        """Return the input of the sublayer, post, and $M$."""
        n, flat = self.n, streams.flatten(-2)
        sizes = [n, n, n * n]
        flat = F.linear(F.rms_norm(flat, flat.shape[-1:], eps=self.norm_eps), self.weight)
        pre, post, mix = (
            one * scale + base
            for one, scale, base in zip(
                flat.split(sizes, dim=-1), self.scale, self.base.split(sizes), strict=True
            )
        )
        pre, post = pre.sigmoid() + self.eps, 2 * post.sigmoid()
        mix = doubly_stochastic(mix.unflatten(-1, (n, n)), self.iterations, self.eps)
        return (pre[..., None] * streams).sum(-2), post, mix

    @staticmethod
    def add(
        streams: Float[Tensor, "*batch n d_model"],
        output: Float[Tensor, "*batch d_model"],
        post: Float[Tensor, "*batch n"],
        mix: Float[Tensor, "*batch n n"],
    ) -> Float[Tensor, "*batch n d_model"]:
        """Mix the streams and add the output of the sublayer to each."""
        return mix.mT @ streams + post[..., None] * output[..., None, :]
