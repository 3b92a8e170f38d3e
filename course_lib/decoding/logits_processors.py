"""Logits processors: functions from logits to logits that shape the distribution before sampling."""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from course_lib.checks import decoding as checks
from course_lib.validation import validated

LogitsProcessor = Callable[[Tensor], Tensor]


@validated(checks.temperature)
def temperature(
    logits: Float[Tensor, "*batch vocabulary"], t: float
) -> Float[Tensor, "*batch vocabulary"]:
    r"""Divide by the temperature $t$: below 1 it sharpens the distribution, above 1 it flattens it.

    $$\mathrm{softmax}(z / t) \to \text{one-hot at the maximum as } t \to 0, \quad
      \to \text{uniform as } t \to \infty$$

    It acts on logits. Dividing probabilities instead has no effect, because they are normalised again.

    Raises:
        ValueError: for a $t$ that is not above 0.

    Source: Ackley, Hinton and Sejnowski (1985), "A learning algorithm for Boltzmann machines".
    """
    return logits / t


@validated(checks.top_k)
def top_k(logits: Float[Tensor, "*batch vocabulary"], k: int) -> Float[Tensor, "*batch vocabulary"]:
    r"""Keep the $k$ largest logits and all that tie with the last of them; set the others to minus infinity.

    Args:
        logits: one score per token.
        k: how many to keep; all are kept where there are no more.

    Raises:
        ValueError: for a $k$ below 1.

    Source: Fan, Lewis and Dauphin (2018), "Hierarchical neural story generation", section 5.
    """
    smallest = logits.topk(min(k, logits.shape[-1]), dim=-1).values[..., -1:]  # (…, 1)
    return logits.masked_fill(logits < smallest, -torch.inf)


@validated(checks.top_p)
def top_p(
    logits: Float[Tensor, "*batch vocabulary"], p: float
) -> Float[Tensor, "*batch vocabulary"]:
    r"""Nucleus sampling: keep the most probable tokens whose probabilities sum to at least $p$.

    The token that crosses $p$ is kept, because without it the sum would be below $p$; so at least one token
    is left. The code works from the other end: it drops the least probable tokens while their sum is at
    most $1 - p$.

    Args:
        logits: one score per token, in any order.
        p: above 0, at most 1.

    Raises:
        ValueError: for a $p$ outside (0, 1].

    Source: Holtzman and others (2020), "The curious case of neural text degeneration", section 3.1.
    """
    ascending, order = logits.sort(dim=-1)  # (…, vocabulary)
    cumulative = ascending.softmax(dim=-1).cumsum(dim=-1)  # of a token and all less probable ones
    drop = cumulative <= 1 - p
    drop[..., -1] = False
    return logits.masked_fill(drop.scatter(-1, order, drop), -torch.inf)


def apply_processors(processors: Sequence[LogitsProcessor], logits: Tensor) -> Tensor:
    """Apply logits processors in order.

    Raises:
        ValueError: unless the result is logits of the same shape that leave at least one token.
    """
    for processor in processors:
        processed = processor(logits)
        checks.processed(processed, logits)
        logits = processed
    checks.distribution(logits)
    return logits
