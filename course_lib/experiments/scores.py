"""Which scores find the key that a query was made from?

An example consists of a query and six keys; the query is a noisy copy of the target key, with its components as
they are or permuted. Scores with parameters are trained with several learning rates::

    python -m course_lib.experiments.scores

trains each from five seeds, and additive scores also on vectors that are shifted away from 0.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.experiments.runs import best as best_of
from course_lib.experiments.runs import fill, grid, read, where
from course_lib.transformer.scoring import AdditiveScore, DotScore, GaussianScore, GeneralScore

RATES, BUDGETS = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3), (500, 1500)
#: Keys per example, components of a vector, hidden units of additive scores, standard deviation of the noise.
KEYS, SIZE, HIDDEN, NOISE = 6, 4, 32, 0.3
#: Which component of the target key each component of a query is a noisy copy of.
ORDERS = {"identity": (0, 1, 2, 3), "permuted": (1, 2, 3, 0)}
#: What is added to every component of the keys, and the scores that are trained on them.
SHIFTS, SHIFTED = (0.5, 1.0, 2.0), ("additive", "additive, no bias")


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


def examples(
    count: int, order: str, generator: torch.Generator, *, shift: float = 0.0
) -> tuple[Tensor, Tensor, Tensor]:
    """Sample queries (count, 1, 4), keys (count, 6, 4) and the index of the target key (count,).

    The components of keys are standard normal, plus the shift; the noise that a query adds to its key is normal, with
    a standard deviation of 0.3.
    """
    key = torch.randn(count, KEYS, SIZE, generator=generator) + shift
    target = torch.randint(KEYS, (count,), generator=generator)
    query = key[torch.arange(count), target][:, list(ORDERS[order])]  # (count, 4)
    query = query + NOISE * torch.randn(count, SIZE, generator=generator)
    return query[:, None], key, target


def accuracy(
    name: str,
    order: str,
    lr: float = 0.01,
    *,
    seed: int = 0,
    shift: float = 0.0,
    budgets: tuple[int, ...] = BUDGETS,
) -> list[float]:
    """Train a score with Adam on the cross-entropy of its weights; return its accuracy after each budget.

    Args:
        name: of a score in `SCORES`; one without parameters is not trained.
        order: "identity" or "permuted".
        lr: the learning rate.
        seed: of the initialisation and the examples.
        shift: what is added to every component of the keys.
        budgets: numbers of training steps, of 64 examples each, rising.
    """
    torch.manual_seed(seed)
    generator, score = torch.Generator().manual_seed(seed + 1), SCORES[name]()
    test = examples(5000, order, torch.Generator().manual_seed(10_000 + seed), shift=shift)
    parameters = list(score.parameters())
    optimizer = torch.optim.Adam(parameters, lr=lr) if parameters else None
    found = []
    for step in range(1, budgets[-1] + 1):
        if parameters:
            query, key, target = examples(64, order, generator, shift=shift)
            loss = F.cross_entropy(score(query, key)[:, 0], target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if step in budgets:
            query, key, target = test
            chosen = score(query, key)[:, 0].argmax(dim=-1)  # (count,)
            found.append((chosen == target).float().mean().item())
    return found


def best(order: str, name: str, budget: int, *, shift: float = 0.0) -> tuple[float, list[float]]:
    """Return the learning rate with the highest mean recorded accuracy, and its accuracies, one per seed."""
    arm = {"order": order, "score": name, "shift": shift, "budget": budget}
    return best_of(where(read("scores"), **arm), "accuracy")


LEARNED = [name for name, make in SCORES.items() if any(True for _ in make().parameters())]
FIXED = [name for name in SCORES if name not in LEARNED]
PLAN = (
    *grid(order=ORDERS, shift=[0.0], score=FIXED, lr=RATES[:1], seed=range(5)),
    *grid(order=ORDERS, shift=[0.0], score=LEARNED, lr=RATES, seed=range(5)),
    *grid(order=["identity"], shift=SHIFTS, score=SHIFTED, lr=RATES, seed=range(5)),
)


def run(score: str, order: str, lr: float, **setting) -> list[dict]:
    """Train once; return the accuracy after each budget."""
    found = accuracy(score, order, lr, **setting)
    return [{"budget": n, "accuracy": one} for n, one in zip(BUDGETS, found, strict=True)]


if __name__ == "__main__":
    fill("scores", run, PLAN, __doc__)
