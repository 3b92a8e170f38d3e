"""What is done to logits before a token is drawn: small functions that can follow each other."""

import torch
from jaxtyping import Float
from torch import Tensor

from course_lib.inputs import require_floating, require_positive, require_whole


def temperature(
    logits: Float[Tensor, "*batch vocabulary"], t: float
) -> Float[Tensor, "*batch vocabulary"]:
    r"""Divide by $t$: below 1 the probable gets more probable, above 1 all become alike.

    $$\mathrm{softmax}(z / t) \to \text{the largest alone as } t \to 0, \quad
      \to \text{all alike as } t \to \infty$$

    It works on logits. Applied to probabilities, it would change nothing that lasts: they are made to add
    up to 1 again.

    Raises:
        ValueError: for a $t$ that is not above 0.

    Source: Ackley, Hinton and Sejnowski (1985), "A learning algorithm for Boltzmann machines".
    """
    require_logits(logits)
    if t == 0:
        raise ValueError(
            "t=0 would divide by 0; for the largest alone use top_k(logits, 1) or greedy"
        )
    require_positive(t=t)
    return logits / t


def top_k(logits: Float[Tensor, "*batch vocabulary"], k: int) -> Float[Tensor, "*batch vocabulary"]:
    r"""Keep the $k$ largest and set the others to minus infinity. What ties with the last one is kept too.

    Args:
        logits: a score per token.
        k: how many; all are kept where there are no more.

    Raises:
        ValueError: for a $k$ below 1.

    Source: Fan, Lewis and Dauphin (2018), "Hierarchical neural story generation", section 5.
    """
    require_logits(logits)
    require_whole(k=k)
    last = logits.topk(min(k, logits.shape[-1]), dim=-1).values[..., -1:]  # (…, 1)
    return logits.masked_fill(logits < last, -torch.inf)


def top_p(
    logits: Float[Tensor, "*batch vocabulary"], p: float
) -> Float[Tensor, "*batch vocabulary"]:
    r"""Keep the most probable tokens that together have a probability of at least $p$.

    The token that crosses $p$ is kept: without it they would have less. So one is always left. Worked out
    from the other end: from the least probable on, drop what together has at most $1 - p$.

    Args:
        logits: a score per token, in any order.
        p: above 0, at most 1.

    Raises:
        ValueError: for a $p$ outside (0, 1].

    Source: Holtzman and others (2020), "The curious case of neural text degeneration", section 3.1.
    """
    require_logits(logits)
    require_positive(p=p)
    if p > 1:
        raise ValueError(f"p={p} is above 1; it is a probability, above 0 and at most 1")
    ascending, order = logits.sort(dim=-1)  # (…, vocabulary)
    below = ascending.softmax(dim=-1).cumsum(dim=-1)  # of each and all that are less probable
    drop = below <= 1 - p
    drop[..., -1] = False
    return logits.masked_fill(drop.scatter(-1, order, drop), -torch.inf)


def require_logits(logits: Tensor) -> None:
    """Refuse what cannot be drawn from."""
    require_floating(logits=logits)
    if logits.dim() == 0 or logits.shape[-1] == 0:
        raise ValueError(
            f"logits has shape {tuple(logits.shape)}; it must be (…, vocabulary), one score per token"
        )
    if not (logits < torch.inf).all():
        came = "NaN" if logits.isnan().any() else "plus infinity"
        raise ValueError(f"logits holds {came}; every score must be a number or minus infinity")
    if logits.isneginf().all(dim=-1).any():
        raise ValueError(
            "logits are minus infinity for every token, so there is nothing to choose from; "
            "what came before has ruled out all"
        )
