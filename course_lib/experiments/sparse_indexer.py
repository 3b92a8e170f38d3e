"""What does a sparse indexer miss? Keys are chosen by an indexer that is trained as in DeepSeek-V3.2.

At each step a name shows a letter, and a question asks for the letter of a name: one key holds it, or several that have
to be compared::

    python -m course_lib.experiments.sparse_indexer

trains, where one key holds it, dense attention; then the indexer alone, to predict its weights; then both together with the
best keys alone, with and without the stage before. Every stage has three seeds, at rates that double or halve until the best
has a worse one on both sides (four minutes of CPU time).
"""

from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from itertools import chain

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.experiments.delta_recall import AGES, LAST, recall_by_age
from course_lib.experiments.runs import best as best_of
from course_lib.experiments.runs import fill, grid, read, sweep, where
from course_lib.topics.today import Indexer, keep_best
from course_lib.train import fit
from course_lib.transformer.layers import FeedForward
from course_lib.transformer.masks import causal_mask
from course_lib.transformer.multihead import MultiHeadAttention
from course_lib.transformer.positions import RotaryPositions
from course_lib.validation import require_one_of

LENGTH, LETTERS, D_MODEL, NUM_HEADS, BATCH = 64, 16, 32, 2, 16
#: Task → how many names there are, and how often a name shows its own letter and not any letter.
TASKS = {"one key": (LENGTH, 1.0), "several keys": (8, 0.5)}
#: Size of an indexer → its heads and their dimension, half of which is rotated.
SIZES = {"1 × 4": (1, 4), "1 × 32": (1, 32), "4 × 4": (4, 4), "4 × 8": (4, 8)}
#: How many keys are kept where a trained indexer is measured.
KEPT = (1, 2, 4, 8, 16, 32)
#: With how many keys attention is trained in the last stage.
TRAINED_WITH = 2
#: Steps of each stage.
STEPS = {"dense": 600, "indexer": 300, "sparse": 300}
#: Groups of distances from a question back to its answer.
DISTANCES = AGES

Batch = tuple[Tensor, ...]


def sample(task: str, count: int, generator: torch.Generator) -> Batch:
    """Sample steps that each show a letter of a name and ask for the letter of a name.

    "one key": no name comes twice, so one key holds the answer. "several keys": each name comes eight times, and
    each time it shows its own letter, which is the answer, or, as often, any letter.

    Returns:
        Names, letters, names asked for, labels, and how far back a key of the name asked for is; (count, length) each.
    """
    require_one_of(TASKS, task=task)
    (num_names, share), shape = TASKS[task], (count, LENGTH)
    names = torch.rand(shape, generator=generator).argsort(dim=-1) % num_names
    own = torch.randint(LETTERS, (count, num_names), generator=generator)
    any_letter = torch.randint(LETTERS, shape, generator=generator)
    shown = torch.rand(shape, generator=generator) < share
    letters = torch.where(shown, own.gather(1, names), any_letter)
    steps = torch.arange(LENGTH)
    place = (torch.rand(shape, generator=generator) * (steps + 1)).long()
    asked = names.gather(1, place)
    return names, letters, asked, own.gather(1, asked), steps - place


class Reader(nn.Module):
    """One layer of attention with an indexer beside it.

    Args:
        size: of the indexer, one of `SIZES`.
    """

    def __init__(self, size: str = "4 × 8") -> None:
        super().__init__()
        require_one_of(SIZES, size=size)
        num_heads, d_head = SIZES[size]
        self.name, self.letter, self.asked = (
            nn.Embedding(count, D_MODEL) for count in (LENGTH, LETTERS, LENGTH)
        )
        self.norms = nn.ModuleList(nn.RMSNorm(D_MODEL) for _ in range(3))
        positions = RotaryPositions(D_MODEL // NUM_HEADS, partial_rotary_factor=0.5)
        self.attention = MultiHeadAttention(D_MODEL, NUM_HEADS, positions=positions)
        self.ffn = FeedForward(D_MODEL, 2 * D_MODEL)
        self.out = nn.Linear(D_MODEL, LETTERS)
        self.indexer = Indexer(D_MODEL, D_MODEL, num_heads, d_head, d_rope=d_head // 2, k=1)

    def forward(
        self,
        names: Int[Tensor, "batch length"],
        letters: Int[Tensor, "batch length"],
        asked: Int[Tensor, "batch length"],
        keep: int | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the logits, the mean weights of the heads, and the indexer's scores, `-inf` where not attended to.

        Args:
            names, letters, asked: of each step.
            keep: how many keys the indexer keeps; None keeps all.
        """
        x = self.embed(names, letters, asked)
        inputs, mask = self.norms[0](x), causal_mask(LENGTH)
        scores = self.indexer.scores(inputs.detach(), inputs.detach())  # (batch, length, length)
        if keep is not None:
            mask = keep_best(scores.detach(), keep, mask)
        return *self.attend(x, inputs, mask), scores.masked_fill(~mask, -torch.inf)

    def embed(self, names: Tensor, letters: Tensor, asked: Tensor) -> Tensor:
        """Return the vectors of the steps, (batch, length, d_model)."""
        return self.name(names) + self.letter(letters) + self.asked(asked)

    def attend(self, x: Tensor, inputs: Tensor, mask: Bool[Tensor, "..."]) -> tuple[Tensor, Tensor]:
        """Return the logits and the mean weights of the heads, where the mask is True."""
        attended = self.attention(inputs, mask=mask, need_weights=True)
        x = x + attended.output
        x = x + self.ffn(self.norms[1](x))
        return self.out(self.norms[2](x)), attended.weights.mean(dim=1)


def indexer_loss(weights: Tensor, scores: Tensor) -> Float[Tensor, ""]:
    r"""Return the mean over queries of $\mathrm{KL}(p \,\|\, \mathrm{softmax}(I))$; $p$ are the weights, held fixed.

    Source: DeepSeek-AI (2025), "DeepSeek-V3.2-Exp", equations 3 and 4.
    """
    p = weights.detach()
    logarithms = scores.log_softmax(dim=-1).masked_fill(scores == -torch.inf, 0)
    return (torch.xlogy(p, p) - p * logarithms).sum(dim=-1).mean()


def batches(task: str, seed: int) -> Iterator[Batch]:
    """Yield new steps without an end."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        yield sample(task, BATCH, generator)


def losses(model: Reader, batch: Batch, keep: int | None = None) -> tuple[Tensor, Tensor]:
    """Return the cross-entropy of the letters, and the loss of the indexer."""
    logits, weights, scores = model(*batch[:3], keep)
    letters = F.cross_entropy(logits.flatten(0, 1), batch[3].flatten())
    return letters, indexer_loss(weights, scores)


def train(
    stage: str, model: Reader, task: str, lr: float, seed: int, keep: int | None = None
) -> Reader:
    """Train with the loss of a stage, with Adam and a warm-up of 50 steps; it has gradients for what the stage trains."""

    def loss(model: Reader, batch: Batch) -> Float[Tensor, ""]:
        letters, indexer = losses(model, batch, keep)
        return {"dense": letters, "indexer": indexer, "sparse": letters + indexer}[stage]

    rate = lambda step: lr * min(1, step / 50)  # noqa: E731
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    source = batches(task, seed + 100 * list(STEPS).index(stage))
    fit(model, source, loss, steps=STEPS[stage], lr=rate, optimizer=optimizer, seed=seed)
    return model


@torch.no_grad()
def measured(model: Reader, task: str, keep: int | None = None, *, by: str = "indexer") -> dict:
    """Return what 500 new sequences show with the `keep` best keys, over the questions of the `LAST` steps.

    Args:
        model: that answers.
        task: one of `TASKS`.
        keep: how many keys; None for all.
        by: what chooses them: the "indexer", or the "weights" of dense attention.

    Returns:
        "accuracy"; "kept", the share of the dense weights that is on the kept keys; and "by distance", the accuracies.
    """
    *inputs, labels, distances = sample(task, 500, torch.Generator().manual_seed(12345))
    logits, dense, scores = model(*inputs)
    mask = causal_mask(LENGTH)
    if keep is not None:
        x = model.embed(*inputs)
        mask = keep_best({"indexer": scores, "weights": dense}[by], keep, mask)
        logits, _ = model.attend(x, model.norms[0](x), mask)
    right = logits.argmax(dim=-1) == labels
    return {
        "accuracy": right[:, -LAST:].float().mean().item(),
        "kept": (dense * mask).sum(dim=-1)[:, -LAST:].mean().item(),
        "by distance": recall_by_age(right, distances),
    }


@torch.no_grad()
def held_out(stage: str, model: Reader, task: str, keep: int | None) -> float:
    """Return the loss by which learning rates are compared: that of the indexer in its stage, else that of the letters."""
    batch = sample(task, 500, torch.Generator().manual_seed(54321))
    return losses(model, batch, keep)[stage == "indexer"].item()


@cache
def dense(task: str, lr: float, seed: int) -> Reader:
    """Return a model after the first stage."""
    torch.manual_seed(seed)
    return train("dense", Reader(), task, lr, seed)


def with_new_indexer(task: str, size: str, seed: int) -> Reader:
    """Return a model between the first two stages."""
    trained = dense(task, best_lr(stage="dense", task=task), seed).state_dict()
    torch.manual_seed(seed)
    model = Reader(size)
    rest = {name: x for name, x in trained.items() if not name.startswith("indexer")}
    model.load_state_dict(rest, strict=False)
    return model


@cache
def warm(task: str, size: str, lr: float, seed: int) -> Reader:
    """Return a model after the second stage."""
    return train("indexer", with_new_indexer(task, size, seed), task, lr, seed)


def run(stage: str, task: str, lr: float, seed: int, **arm) -> list[dict]:
    """Train one stage; return what is measured with each number of keys."""
    keep, choices = None, [(k, "indexer") for k in KEPT]
    if stage == "dense":
        model, choices = dense(task, lr, seed), [(None, "indexer"), *((k, "weights") for k in KEPT)]
    elif stage == "indexer":
        model = warm(task, arm["size"], lr, seed)
    else:
        keep, size = TRAINED_WITH, "4 × 8"
        choices = [(keep, "indexer")]
        if arm["warm"]:
            rate = best_lr(stage="indexer", task=task, size=size)
            model = deepcopy(warm(task, size, rate, seed))
        else:
            model = with_new_indexer(task, size, seed)
        train("sparse", model, task, lr, seed, keep)
    loss = held_out(stage, model, task, keep)
    return [{"k": k, "loss": loss} | measured(model, task, k, by=by) for k, by in choices]


#: Stage → its arms, and where the sweep begins.
ARMS = {
    "dense": ([{}], 0.008),
    "indexer": (grid(size=SIZES), 0.016),
    "sparse": (grid(warm=[True, False]), 0.004),
}


def best_lr(**arm) -> float:
    """Return the learning rate with the lowest held-out loss, from the runs of an arm with the first seed."""
    return best_of(where(read("sparse_indexer"), **arm, seed=0), "loss", min)[0]


def arms(stage: str) -> list[dict]:
    """Return the settings of the recorded arms of a stage, without rate and seed."""
    return [{"stage": stage, "task": "one key"} | arm for arm in ARMS[stage][0]]


def plan(rows: list[dict]) -> Iterator[dict]:
    """Sweep the learning rate of each arm, as `sweep` does; a stage begins when the one before has ended."""
    for stage, (_, start) in ARMS.items():
        sweeps = (sweep(rows, arm, "loss", start=start, better=min) for arm in arms(stage))
        planned = list(chain.from_iterable(sweeps))
        yield from planned
        if not all(where(rows, **one) for one in planned):
            break


def best(**arm) -> list[dict]:
    """Return the recorded rows of an arm at its best learning rate."""
    return where(read("sparse_indexer"), **arm, lr=best_lr(**arm))


if __name__ == "__main__":
    fill("sparse_indexer", run, plan, __doc__, spec=".4g")
