r"""What does the factor $1/\sqrt d$ of scaled dot-product attention change in training?

A layer of dot-product attention learns which of 16 random keys a query was made from. Each scale of the scores is
trained with ten learning rates, because a comparison at one learning rate mixes the effect of the scale with that of
the learning rate. Without a scale, it is also trained from initialisations that are multiplied by $1/\sqrt d$ or
$1/d$, and on the scores in place of the output::

    python -m course_lib.experiments.scale
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from course_lib.experiments.runs import by_rate, fill, grid, read, where

#: The factor of the dot product, as a function of the dimension d of queries and keys.
SCALES = {"1": lambda d: 1.0, "1/√d": lambda d: d**-0.5, "1/d": lambda d: 1.0 / d}
DIMENSIONS, BUDGETS = (16, 64, 256), (400, 1200)
#: Learning rate, as the table has it → as it is used.
RATES = {float(f"{10 ** (k / 2):.2g}"): 10 ** (k / 2) for k in range(-8, 2)}
#: Keys per query, dimension of the values, standard deviation of the noise, queries per step.
KEYS, VALUE_SIZE, NOISE, BATCH = 16, 8, 0.5, 64


def rotation(d: int, generator: torch.Generator) -> Float[Tensor, "d d"]:
    """Return a random orthogonal matrix."""
    return torch.linalg.qr(torch.randn(d, d, generator=generator)).Q


def retrieval_batch(
    rotated: Float[Tensor, "d d"], generator: torch.Generator, count: int = BATCH
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    r"""Sample keys and values with variance 1, and a query made from one of the keys: $q = R\,k + \epsilon$.

    Returns:
        query (count, 1, d), key (count, 16, d), value (count, 16, 8), and the target (count, 1, 8): the value of the
        key that the query was made from.
    """
    d = len(rotated)
    key = torch.randn(count, KEYS, d, generator=generator)
    value = torch.randn(count, KEYS, VALUE_SIZE, generator=generator)
    index = torch.randint(KEYS, (count,), generator=generator)
    every = torch.arange(count)
    noise = NOISE * torch.randn(count, 1, d, generator=generator)
    return key[every, index][:, None] @ rotated.mT + noise, key, value, value[every, index][:, None]


def train_scale(
    scale: str,
    d: int,
    lr: float,
    *,
    seed: int = 0,
    steps: int = 400,
    start: float = 1.0,
    on_scores: bool = False,
) -> list[float]:
    r"""Train $W_q$ with Adam; return the loss of every step, each on a new batch.

    The scores are $s \cdot (W_q q)^\top k$. The loss is the mean squared error between the attention output and
    the value of the key that the query was made from. $W_q$ is sampled so that the components of $W_q q$ have
    a variance near 1, and multiplied by `start`. With `on_scores`, it is trained on the cross-entropy of the weights.

    With Adam, a run with scale $s$ and learning rate $\eta$ has the losses of a run with scale 1, learning
    rate $s\,\eta$ and `start` $s$, apart from Adam's $\epsilon$.
    """
    generator = torch.Generator().manual_seed(seed)
    rotated, factor = rotation(d, generator), SCALES[scale](d)
    W_q = (start * torch.randn(d, d, generator=generator) / d**0.5).requires_grad_()
    optimizer, losses = torch.optim.Adam([W_q], lr=lr), []
    for _ in range(steps):
        query, key, value, target = retrieval_batch(rotated, generator)
        scores = factor * (query @ W_q.mT) @ key.mT  # (count, 1, 16)
        output = torch.softmax(scores, dim=-1) @ value  # (count, 1, 8)
        loss = (output - target).square().mean()
        losses.append(loss.item())
        if on_scores:
            index = (value == target).all(dim=-1).int().argmax(dim=-1)  # (count,)
            loss = F.cross_entropy(scores[:, 0], index)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return losses


def final_loss(losses: list[float], budget: int) -> float:
    """Return the mean loss of the last 50 steps of a budget, 3200 new queries."""
    return sum(losses[budget - 50 : budget]) / 50


def losses(
    d: int, scale: str, budget: int, *, start: str = "1", on_scores: bool = False
) -> dict[float, list[float]]:
    """Return the recorded losses of a sweep: learning rate → one per seed.

    `start` names the factor of the initialisation in `SCALES`, as `scale` that of the dot product.
    """
    arm = {"d": d, "scale": scale, "start": start, "on_scores": on_scores, "steps": 1200}
    return by_rate(where(read("scale"), budget=budget, **arm), "loss")


def best(d: int, scale: str, budget: int, **arm) -> tuple[float, list[float]]:
    """Return the learning rate with the lowest mean recorded loss, and its losses, one per seed."""
    return min(losses(d, scale, budget, **arm).items(), key=lambda item: sum(item[1]))


SWEEP = {"lr": RATES, "steps": [1200], "seed": range(3)}
ONE_RATE = {"lr": [0.001], "steps": [400], "seed": range(3)}
PLAN = (
    *grid(d=DIMENSIONS, scale=SCALES, start=["1"], on_scores=[False], **SWEEP),
    *grid(d=DIMENSIONS, scale=["1"], start=SCALES, on_scores=[False], **ONE_RATE),
    *grid(d=DIMENSIONS, scale=["1"], start=["1", "1/√d"], on_scores=[True], **ONE_RATE),
    *grid(d=[64], scale=["1"], start=["1", "1/√d"], on_scores=[True], **SWEEP),
)


def run(d: int, start: str, lr: float, steps: int, **setting) -> list[dict]:
    """Train once; return the final loss of each budget."""
    losses = train_scale(d=d, start=SCALES[start](d), lr=RATES[lr], steps=steps, **setting)
    return [{"budget": n, "loss": final_loss(losses, n)} for n in BUDGETS if n <= steps]


if __name__ == "__main__":
    fill("scale", run, PLAN, __doc__, spec=".3g")
