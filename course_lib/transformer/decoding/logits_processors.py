"""Logits processors: functions from logits to logits that shape the distribution before sampling."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from course_lib.validation import require_positive, require_whole

LogitsProcessor = Callable[[Tensor], Tensor]


def temperature(
    logits: Float[Tensor, "*batch vocabulary"], t: float
) -> Float[Tensor, "*batch vocabulary"]:
    r"""Divide by the temperature $t$: below 1 it sharpens the distribution, above 1 it flattens it.

    $$\mathrm{softmax}(z / t) \to \text{one-hot at the maximum as } t \to 0, \quad
      \to \text{uniform as } t \to \infty$$

    The limit at 0 is `greedy`. It acts on logits. Dividing probabilities instead has no effect, because they are
    normalised again.

    Source: Ackley, Hinton and Sejnowski (1985), "A learning algorithm for Boltzmann machines".
    """
    if t == 0:
        raise ValueError(
            "t=0 is not a finite number above 0; for the most probable token use greedy decoding: `greedy`, or "
            "`stream` without logits processors"
        )
    require_positive(t=t)
    return logits / t


def top_k(logits: Float[Tensor, "*batch vocabulary"], k: int) -> Float[Tensor, "*batch vocabulary"]:
    r"""Keep the $k$ largest logits and all that tie with the last of them; set the others to minus infinity.

    All are kept where there are no more than $k$.

    Source: Fan, Lewis and Dauphin (2018), "Hierarchical neural story generation", section 5.
    """
    require_whole(k=k)
    smallest = logits.topk(min(k, logits.shape[-1]), dim=-1).values[..., -1:]  # (…, 1)
    return logits.masked_fill(logits < smallest, -torch.inf)


def top_p(
    logits: Float[Tensor, "*batch vocabulary"], p: float
) -> Float[Tensor, "*batch vocabulary"]:
    r"""Nucleus sampling: keep the most probable tokens whose probabilities sum to at least $p$.

    The token that crosses $p$ is kept, because without it the sum would be below $p$; so at least one token
    is left. The code works from the other end: it drops the least probable tokens while their sum is at
    most $1 - p$.

    Source: Holtzman and others (2020), "The curious case of neural text degeneration", section 3.1.
    """
    if not 0 < p <= 1:
        raise ValueError(f"p={p} must be a probability, above 0 and at most 1")
    ascending, order = logits.sort(dim=-1)  # (…, vocabulary)
    cumulative = ascending.softmax(dim=-1).cumsum(dim=-1)  # of a token and all less probable ones
    drop = cumulative <= 1 - p
    drop[..., -1] = False
    return logits.masked_fill(drop.scatter(-1, order, drop), -torch.inf)


def require_distribution(logits: Float[Tensor, "*batch vocabulary"]) -> None:
    """Refuse logits of which softmax makes no distribution: NaN, or minus infinity for every token."""
    largest = logits.amax(dim=-1)  # NaN where a row holds NaN
    if not largest.isfinite().all():
        if largest.isneginf().any():
            raise ValueError("every logit is minus infinity, so there is nothing to choose from")
        raise ValueError("logits holds NaN or plus infinity, so softmax makes no distribution")
