r"""What does the factor $1/\sqrt d$ of scaled dot-product attention change in training?

A layer of dot-product attention learns which of 16 random keys a query was made from. Each scale of the
scores is trained with ten learning rates, because a comparison at one learning rate mixes the effect of the
scale with that of the learning rate::

    python -m course_lib.experiments.scale

trains every scale, dimension and learning rate from three seeds and records the result beside this file;
`python -m course_lib.experiments.scale 64` records one dimension anew. `… scale start` records the second part:
no scale, one learning rate, an initialisation that is multiplied by $1$, $1/\sqrt d$ or $1/d$, and a loss on
the output or on the scores. `… scale scores` records the third: the loss on the scores with every learning
rate at $d = 64$, without a scale, from an initialisation that is multiplied by $1$ or $1/\sqrt d$.
"""

import sys
from functools import cache
from pathlib import Path

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from course_lib.experiments.record import read, write
from course_lib.validation import require_one_of, require_positive, require_whole

RECORD = Path(__file__).with_suffix(".json")
#: The factor of the dot product, as a function of the dimension d of queries and keys.
SCALES = {"1": lambda d: 1.0, "1/√d": lambda d: d**-0.5, "1/d": lambda d: 1.0 / d}
DIMENSIONS = (16, 64, 256)
RATES = tuple(10 ** (k / 2) for k in range(-8, 2))
SEEDS, BUDGETS = 3, (400, 1200)
#: Learning rate and steps of the runs that differ in their initialisation or loss only.
START_RATE, START_STEPS = 0.001, 400
#: The dimension at which the loss on the scores is trained with every learning rate.
SCORED = 64
#: Keys per query, dimension of the values, standard deviation of the noise, queries per step.
KEYS, VALUE_SIZE, NOISE, BATCH = 16, 8, 0.5, 64


def rotation(d: int, generator: torch.Generator) -> Float[Tensor, "d d"]:
    """Return a random orthogonal matrix."""
    return torch.linalg.qr(torch.randn(d, d, generator=generator)).Q


def retrieval_batch(
    rotated: Float[Tensor, "d d"], generator: torch.Generator, count: int = BATCH
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    r"""Sample keys and values with variance 1, and a query made from one of the keys.

    The query is the key, rotated, plus noise: $q = R\,k + \epsilon$.

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
    a variance near 1, and multiplied by `start`.

    With Adam, a run with scale $s$ and learning rate $\eta$ has the losses of a run with scale 1, learning
    rate $s\,\eta$ and `start` $s$, apart from Adam's $\epsilon$.

    Args:
        scale: the name of $s$ in `SCALES`.
        d: the dimension of queries and keys.
        lr: the learning rate.
        seed: of the rotation, the initialisation and the batches.
        steps: number of training steps.
        start: factor of the initialisation of $W_q$.
        on_scores: train on the cross-entropy of the weights instead; the losses returned are the same.

    Raises:
        ValueError: for an unknown scale, a dimension or a number of steps below 1, and a learning rate or a
            `start` that is not above 0.
    """
    require_one_of(SCALES, scale=scale)
    require_whole(d=d, steps=steps)
    require_positive(lr=lr, start=start)
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


@cache
def recorded() -> dict[str, dict]:
    """Return the recorded result: dimension → scale → learning rate → budget → a final loss per seed.

    The dimension, the rate (as `f"{lr:.2g}"`) and the budget are strings. Under "start" are the runs without a
    scale: dimension → factor of the initialisation, by its name in `SCALES` → a final loss per seed; `f"{name},
    on scores"` was trained on the scores. Under "scores" are the runs without a scale that were trained on the
    scores: dimension → factor of the initialisation → learning rate → budget → a final loss per seed.
    """
    return read(RECORD)


def best(d: int, scale: str, budget: int, *, on_scores: bool = False) -> tuple[float, list[float]]:
    """Return the learning rate with the lowest mean recorded loss, and its losses, one per seed.

    With `on_scores`, of the runs that were trained on the scores; `scale` is then the factor of the initialisation.
    """
    record = recorded()["scores"] if on_scores else recorded()
    arms = record[str(d)][scale]
    rate = min(arms, key=lambda lr: sum(arms[lr][str(budget)]))
    return float(rate), arms[rate][str(budget)]


def _final(runs: list[list[float]], budget: int) -> list[float]:
    return [float(f"{final_loss(run, budget):.3g}") for run in runs]


def _sweep(d: int, settings: dict[str, dict]) -> dict[str, dict]:
    """Train every arm with every learning rate, from every seed."""
    arms: dict[str, dict] = {}
    for name, setting in settings.items():
        arms[name] = {}
        for lr in RATES:
            runs = [
                train_scale(d=d, lr=lr, seed=s, steps=BUDGETS[-1], **setting) for s in range(SEEDS)
            ]
            found = arms[name][f"{lr:.2g}"] = {str(b): _final(runs, b) for b in BUDGETS}
            print(d, name, f"{lr:.2g}", found, flush=True)
    return arms


def _trained_on_scores(d: int, names: tuple[str, ...] = ("1", "1/√d")) -> dict[str, dict]:
    """The settings without a scale and with a loss on the scores, by the factor of the initialisation."""
    return {name: {"scale": "1", "start": SCALES[name](d), "on_scores": True} for name in names}


def _starts(d: int) -> dict[str, list[float]]:
    """Train without a scale: from initialisations of three sizes, and with a loss on the scores."""
    settings: dict[str, dict] = {
        name: {"scale": "1", "start": factor(d)} for name, factor in SCALES.items()
    }
    for name, setting in _trained_on_scores(d).items():
        settings[f"{name}, on scores"] = setting
    found = {}
    for name, setting in settings.items():
        setting |= {"d": d, "lr": START_RATE, "steps": START_STEPS}
        runs = [train_scale(seed=s, **setting) for s in range(SEEDS)]
        found[name] = _final(runs, START_STEPS)
        print("start", d, name, found[name], flush=True)
    return found


def main(parts: list[str]) -> None:
    """Train everything, or some dimensions or one of the parts "start" and "scores", and record the result."""
    torch.set_num_threads(1)
    every = (*map(str, DIMENSIONS), "start", "scores")
    result = read(RECORD)
    for part in parts or every:
        if part == "start":
            result[part] = {str(d): _starts(d) for d in DIMENSIONS}
        elif part == "scores":
            result[part] = {str(SCORED): _sweep(SCORED, _trained_on_scores(SCORED))}
        else:
            result[part] = _sweep(int(part), {name: {"scale": name} for name in SCALES})
        ordered = {name: result[name] for name in every if name in result}
        write(RECORD, ordered, indent=None)


if __name__ == "__main__":
    main(sys.argv[1:])
