"""Which scores find the key that a query was made from?

A question consists of a query and six keys; the query is a noisy copy of one of them, with its components in
the keys' order or in another one. Scores with parameters are trained with several learning rates::

    python -m course_lib.experiments.scores

trains each from five seeds and records the accuracy beside this file.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.experiments.record import read, write
from course_lib.scoring import AdditiveScore, DotScore, GaussianScore, GeneralScore
from course_lib.validation import require_one_of, require_positive, require_whole

RECORD = Path(__file__).with_suffix(".json")
RATES, SEEDS, BUDGETS = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3), 5, (500, 1500)
#: Keys per question, components of a vector, hidden units of additive scores, standard deviation of the noise.
KEYS, SIZE, HIDDEN, NOISE = 6, 4, 32, 0.3
#: The components of the keys in the order in which a query holds them.
ORDERS = {"same": (0, 1, 2, 3), "other": (1, 2, 3, 0)}


class Normalised(nn.Module):
    """A score of L2-normalised queries and keys; of a dot product, the cosine similarity."""

    def __init__(self, score: nn.Module) -> None:
        super().__init__()
        self.score = score

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        """Normalise every query and key, then score."""
        return self.score(F.normalize(query, dim=-1), F.normalize(key, dim=-1))


def additive(*, bias: bool) -> nn.Module:
    r"""Make the score $v^\top \tanh(W q + U k + b)$, or the same without $b$."""
    score = AdditiveScore(SIZE, SIZE, HIDDEN)
    if bias:
        score.W = nn.Linear(SIZE, HIDDEN)
    return score


#: Name → how a score is made. Scaled dot products rank keys as dot products do, and concat is additive.
SCORES: dict[str, Callable[[], nn.Module]] = {
    "dot": DotScore,
    "cosine": lambda: Normalised(DotScore()),
    "Gaussian": GaussianScore,
    "general": lambda: GeneralScore(SIZE, SIZE),
    "general, normalised": lambda: Normalised(GeneralScore(SIZE, SIZE)),
    "additive": lambda: additive(bias=True),
    "additive, no bias": lambda: additive(bias=False),
}


def questions(count: int, order: str, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Sample queries (count, 1, 4), keys (count, 6, 4) and the index of the right key (count,).

    The components of keys are standard normal, as is the noise, times 0.3, that a query adds to its key.
    """
    key = torch.randn(count, KEYS, SIZE, generator=generator)
    right = torch.randint(KEYS, (count,), generator=generator)
    query = key[torch.arange(count), right][:, list(ORDERS[order])]  # (count, 4)
    query = query + NOISE * torch.randn(count, SIZE, generator=generator)
    return query[:, None], key, right


def accuracy(
    name: str,
    order: str,
    lr: float = 0.01,
    *,
    seed: int = 0,
    budgets: tuple[int, ...] = BUDGETS,
) -> list[float]:
    """Train a score with Adam on the cross-entropy of its weights; return its accuracy after each budget.

    Args:
        name: of a score in `SCORES`; one without parameters is not trained.
        order: "same" or "other".
        lr: the learning rate.
        seed: of the initialisation and the questions.
        budgets: numbers of training steps, of 64 questions each, rising.

    Raises:
        ValueError: for an unknown score or order, a learning rate that is not above 0, and a budget below 1.
    """
    require_one_of(SCORES, name=name)
    require_one_of(ORDERS, order=order)
    require_positive(lr=lr)
    for budget in budgets:
        require_whole(budget=budget)
    torch.manual_seed(seed)
    generator, score = torch.Generator().manual_seed(seed + 1), SCORES[name]()
    test = questions(5000, order, torch.Generator().manual_seed(10_000 + seed))
    parameters = list(score.parameters())
    optimizer = torch.optim.Adam(parameters, lr=lr) if parameters else None
    found = []
    for step in range(1, budgets[-1] + 1):
        if parameters:
            query, key, right = questions(64, order, generator)
            loss = F.cross_entropy(score(query, key)[:, 0], right)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if step in budgets:
            query, key, right = test
            chosen = score(query, key)[:, 0].argmax(dim=-1)  # (count,)
            found.append((chosen == right).float().mean().item())
    return found


@cache
def recorded() -> dict[str, dict]:
    """Return the recorded result: order → score → learning rate → budget → an accuracy per seed."""
    return read(RECORD)


def best(order: str, name: str, budget: int) -> tuple[float, list[float]]:
    """Return the learning rate with the highest mean recorded accuracy, and its accuracies."""
    arms = recorded()[order][name]
    rate = max(arms, key=lambda lr: sum(arms[lr][str(budget)]))
    return float(rate), arms[rate][str(budget)]


def main() -> None:
    """Train everything and record it."""
    torch.set_num_threads(1)
    result: dict[str, dict] = {}
    for order in ORDERS:
        result[order] = {}
        for name in SCORES:
            result[order][name] = {}
            learns = any(True for _ in SCORES[name]().parameters())
            for lr in RATES if learns else RATES[:1]:
                runs = [accuracy(name, order, lr, seed=seed) for seed in range(SEEDS)]
                found = result[order][name][str(lr)] = {
                    str(budget): [round(run[n], 4) for run in runs]
                    for n, budget in enumerate(BUDGETS)
                }
                print(order, name, lr, found, flush=True)
    write(RECORD, result, indent=None)


if __name__ == "__main__":
    main()
