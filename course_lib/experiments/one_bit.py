"""How far does a recurrent network carry one bit, and how reliably does it learn to?

A text consists of the letter A, half of the texts have a single B. After the last letter a model says whether there
was one. Each cell is trained on texts of 20 letters with every learning rate of `RATES`::

    python -m course_lib.experiments.one_bit

trains with five seeds and measures, after each of `BUDGETS`, the accuracy on texts of up to 640 letters: with the B
anywhere, and with the B as the first letter, which is the farthest to carry.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.experiments.runs import fill, grid, read, where

RATES = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
BUDGETS = (200, 600, 2000)
#: Letters in a text in training, and of those that are tested.
TRAINED, TESTED = 20, (5, 10, 20, 40, 80, 160, 320, 640)
#: A model that has learned the task is right on this share of texts as long as those in training.
LEARNED = 0.98
#: Of this arm, the texts of the first steps have 5 letters: arm → number of steps.
SHORT_FIRST = {"RNN, 5 letters first": 100}


class DetectB(nn.Module):
    """From letters, 0 for A and 1 for B, to the logit of "there was a B".

    Args:
        recurrent: `nn.RNN` or `nn.GRU`.
        size: dimension of the embeddings and of the hidden state.
    """

    def __init__(self, recurrent: Callable[..., nn.Module], size: int = 8) -> None:
        super().__init__()
        self.letters = nn.Embedding(2, size)
        self.layer = recurrent(size, size, batch_first=True)
        self.answer = nn.Linear(size, 1)

    def forward(self, letters: Tensor) -> Tensor:
        """Return one logit per text, (batch,), for letters (batch, length)."""
        states, _ = self.layer(self.letters(letters))  # (batch, length, size)
        return self.answer(states[:, -1])[:, 0]


def orthogonal_rnn() -> DetectB:
    """Return a model whose matrix from state to state starts orthogonal: it keeps the norm of a vector."""
    model = DetectB(nn.RNN)
    nn.init.orthogonal_(model.layer.weight_hh_l0)
    return model


CELLS: dict[str, Callable[[], DetectB]] = {
    "RNN": lambda: DetectB(nn.RNN),
    "RNN, orthogonal": orthogonal_rnn,
    "RNN, 5 letters first": lambda: DetectB(nn.RNN),
    "GRU": lambda: DetectB(nn.GRU),
}


def random_texts(
    count: int, length: int, generator: torch.Generator, *, first: bool = False
) -> tuple[Tensor, Tensor]:
    """Sample letters, (count, length), and which texts have a B, (count,); with `first`, it is the first letter."""
    letters = torch.zeros(count, length, dtype=torch.long)
    has_b = torch.rand(count, generator=generator) < 0.5
    position = torch.randint(1 if first else length, (count,), generator=generator)
    letters[has_b, position[has_b]] = 1
    return letters, has_b.float()


@torch.no_grad()
def accuracy(model: DetectB, length: int, *, first: bool = False, count: int = 400) -> float:
    """Return the accuracy on new texts."""
    letters, has_b = random_texts(count, length, torch.Generator().manual_seed(9), first=first)
    return ((model(letters) > 0) == has_b.bool()).float().mean().item()


def train_cell(
    cell: str,
    lr: float,
    *,
    seed: int = 0,
    budgets: tuple[int, ...] = BUDGETS,
    evaluate: Callable[[DetectB], object] = lambda model: model,
) -> list:
    """Train a model with Adam at a constant learning rate; return what `evaluate` gives after each budget.

    Args:
        cell: a key of `CELLS`.
        lr: the learning rate.
        seed: of the initialisation and the texts.
        budgets: numbers of training steps, of 64 texts each, rising.
        evaluate: of the model; by default the model itself, which changes as training goes on.
    """
    torch.manual_seed(seed)
    model, found = CELLS[cell](), []
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for step in range(1, budgets[-1] + 1):
        length = 5 if step <= SHORT_FIRST.get(cell, 0) else TRAINED
        letters, has_b = random_texts(64, length, generator)
        loss = F.binary_cross_entropy_with_logits(model(letters), has_b)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step in budgets:
            found.append(evaluate(model))
    return found


def evaluated(model: DetectB) -> dict[str, list[float]]:
    """Return the accuracies by length, with the B "anywhere" and with the B "first"."""
    cases = {"anywhere": False, "first": True}
    return {
        name: [accuracy(model, n, first=first) for n in TESTED] for name, first in cases.items()
    }


def runs(cell: str, budget: int, lr: float, case: str = "anywhere") -> list[list[float]]:
    """Return the recorded accuracies by length of an arm, one list per seed."""
    return [row[case] for row in where(read("one_bit"), cell=cell, lr=lr, budget=budget)]


def learned(cell: str, budget: int, lr: float) -> list[bool]:
    """Return which seeds have learned the task, on texts as long as those in training."""
    at = TESTED.index(TRAINED)
    return [accuracies[at] >= LEARNED for accuracies in runs(cell, budget, lr)]


def run(**setting) -> list[dict]:
    """Train once; return the accuracies by length after each budget."""
    found = train_cell(**setting, evaluate=evaluated)
    return [{"budget": n} | one for n, one in zip(BUDGETS, found, strict=True)]


PLAN = grid(seed=range(5), cell=CELLS, lr=RATES)

if __name__ == "__main__":
    fill("one_bit", run, PLAN, __doc__)
