"""How many heads does a lookup need, and what is lost when heads share keys and values?

Two tasks in which one query must retrieve four letters::

    python -m course_lib.experiments.heads

trains every arm from three seeds at each learning rate of a sweep and from two more at the best one, and records
the result beside this file (twenty minutes of CPU time). With names of arms behind it, it trains these alone and
keeps what is recorded of the others.
"""

from collections.abc import Iterator
from pathlib import Path

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.experiments.record import read, run_arms
from course_lib.train import Evaluation, History, fit
from course_lib.transformer.multihead import MultiHeadAttention
from course_lib.validation import require_one_of, require_whole

RECORD = Path(__file__).with_suffix(".json")
LETTERS, ITEMS, ASKED = 8, 12, 4
BATCH = 128
HEADS = (1, 2, 4, 8, 16, 32)
KV_HEADS = (4, 2, 1)
PATHS = ("attention only", "residual", "residual and FFN")
START = 5e-3  # the first learning rate of a sweep
SEEDS, MORE_SEEDS = range(3), range(3, 5)  # at every learning rate; at the best one

Batch = tuple[Tensor, Tensor, Tensor]


def by_position(count: int, generator: torch.Generator) -> Batch:
    """Sample letters, four different positions, and the letters at these positions.

    Returns:
        Letters (count, item), positions asked for (count, asked), and the labels (count, asked).
    """
    letters = torch.randint(LETTERS, (count, ITEMS), generator=generator)
    asked = torch.rand(count, ITEMS, generator=generator).argsort(dim=-1)[:, :ASKED]
    return letters, asked, letters.gather(1, asked)


def by_attribute(count: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Sample items with a letter and four attributes; each question names one value of each attribute.

    The twelve items of an example have twelve different values of each attribute.

    Returns:
        Letters (count, item), attributes (count, item, asked), values asked for (count, asked), and the letters
        of the items that have them (count, asked).
    """
    letters = torch.randint(LETTERS, (count, ITEMS), generator=generator)
    attributes = torch.rand(count, ITEMS, ASKED, generator=generator).argsort(dim=1)
    asked = torch.randint(ITEMS, (count, ASKED), generator=generator)
    item = (attributes == asked[:, None, :]).int().argmax(dim=1)  # (count, asked)
    return letters, attributes, asked, letters.gather(1, item)


class Retrieval(nn.Module):
    """One query, which encodes the whole question, attends to twelve items.

    Args:
        num_heads: query heads.
        num_kv_heads: key/value heads; as many where left out.
        path: what stands between attention and the output: one of `PATHS`.
        attributes: whether items are asked for by their attributes instead of their positions.
        d_model: of embeddings and layer.
        d_head: of each head; `d_model / num_heads` where left out.
        d_value: of the values of each head; `d_head` where left out.
    """

    def __init__(
        self,
        num_heads: int,
        *,
        num_kv_heads: int | None = None,
        path: str = "attention only",
        attributes: bool = False,
        d_model: int = 32,
        d_head: int | None = None,
        d_value: int | None = None,
    ) -> None:
        super().__init__()
        require_one_of(PATHS, path=path)
        self.path, self.attributes = path, attributes
        self.letter = nn.Embedding(LETTERS, d_model)
        self.item = nn.Embedding(ASKED * ITEMS if attributes else ITEMS, d_model)
        self.asked = nn.Embedding(ASKED * ITEMS, d_model)  # one vector for each rank and value
        inner = d_model if d_head is None else num_heads * d_head
        self.attention = MultiHeadAttention(
            inner, num_heads, num_kv_heads=num_kv_heads, kdim=d_model, vdim=d_model
        )
        if inner != d_model:
            self.attention.q_proj = nn.Linear(d_model, inner)
            self.attention.out_proj = nn.Linear(inner, d_model)
        if d_value is not None:
            kv_heads = self.attention.num_kv_heads
            self.attention.v_proj = nn.Linear(d_model, kv_heads * d_value)
            self.attention.out_proj = nn.Linear(num_heads * d_value, d_model)
        self.feed_forward = nn.Sequential(
            nn.Linear(d_model, 4 * d_model), nn.ReLU(), nn.Linear(4 * d_model, d_model)
        )
        self.out = nn.Linear(d_model, ASKED * LETTERS)

    def forward(self, letters: Int[Tensor, "batch item"], *rest: Tensor) -> Float[Tensor, "..."]:
        """Return the logits, (batch, asked, letter)."""
        ranks = ITEMS * torch.arange(ASKED)
        items = self.item.weight
        if self.attributes:
            items = self.item(rest[0] + ranks).sum(dim=-2)  # (batch, item, d_model)
        keys = self.letter(letters) + items  # (batch, item, d_model)
        question = self.asked(rest[-1] + ranks).sum(dim=1, keepdim=True)  # (batch, 1, d_model)
        x = self.attention(question, keys, need_weights=True).output  # (batch, 1, d_model)
        if self.path != "attention only":
            x = question + x
        if self.path == "residual and FFN":
            x = x + self.feed_forward(x)
        return self.out(x).view(-1, ASKED, LETTERS)


def trained(*, seed: int = 0, steps: int = 600, lr: float = 5e-3, **options) -> Retrieval:
    """Train a `Retrieval` with batches of 128 new questions.

    Args:
        seed: of the initialisation and the batches.
        steps, lr: of training, with Adam.
        options: of `Retrieval`.
    """
    return training(seed=seed, steps=steps, lr=lr, **options)[0]


def training(
    *,
    seed: int = 0,
    steps: int = 600,
    lr: float = 5e-3,
    evaluation: Evaluation | None = None,
    **options,
) -> tuple[Retrieval, History]:
    """Train as `trained` does; return the model and what happened, with the scores of an evaluation."""
    require_whole(steps=steps)
    torch.manual_seed(seed)
    model, generator = Retrieval(**options), torch.Generator().manual_seed(seed)
    sample = by_attribute if model.attributes else by_position

    def batches() -> Iterator[Batch]:
        while True:
            yield sample(BATCH, generator)

    def loss(model: nn.Module, batch: Batch) -> Tensor:
        *inputs, labels = batch
        return F.cross_entropy(model(*inputs).flatten(0, 1), labels.flatten())

    history = fit(model, batches(), loss, steps=steps, lr=lr, seed=seed, evaluation=evaluation)
    return model, history


def accuracy(model: Retrieval, *, count: int = 2000) -> float:
    """Return the share of letters that are right, over new questions."""
    sample = by_attribute if model.attributes else by_position
    *inputs, labels = sample(count, torch.Generator().manual_seed(12345))
    with torch.no_grad():
        return (model(*inputs).argmax(dim=-1) == labels).float().mean().item()


#: Name of an arm → options of `trained`.
ARMS: dict[str, dict] = {f"attention only, {heads} heads": {"num_heads": heads} for heads in HEADS}
ARMS |= {f"{path}, 1 heads": {"num_heads": 1, "path": path} for path in PATHS[1:]}
ARMS |= {
    f"{kv_heads} KV heads": {
        "num_heads": 4,
        "num_kv_heads": kv_heads,
        "attributes": True,
        "steps": 1500,
    }
    for kv_heads in KV_HEADS
}
#: Controls: fewer parameters with four KV heads, and more with one.
for heads, d_model in ((4, 24), (1, 40), (1, 64)):
    ARMS[f"{heads} KV heads, d_model {d_model}"] = ARMS[f"{heads} KV heads"] | {"d_model": d_model}
LONGER = ", 3 × the steps"
#: Arms that are also trained three times as long, from three seeds, at the best learning rate and at half of it.
LONG = (
    *(f"attention only, {heads} heads" for heads in (2, 32)),
    "residual and FFN, 1 heads",
    "1 KV heads",
)
ARMS |= {arm + LONGER: ARMS[arm] | {"steps": 3 * ARMS[arm].get("steps", 600)} for arm in LONG}


def runs(arm: str, lr: float, seeds: range) -> list[float]:
    """Train one arm from several seeds; return the accuracies."""
    return [round(accuracy(trained(seed=seed, lr=lr, **ARMS[arm])), 3) for seed in seeds]


def _sweep(arm: str) -> dict[str, list[float]]:
    """Train one arm at one learning rate after the other; return learning rate → accuracies.

    The learning rate is halved and doubled until the best one is neither the largest nor the smallest, or until
    it takes every seed to 0.99. Then two more seeds are trained at the best one. The arms that are trained for
    longer have two learning rates: the one that was best before, and half of it.
    """
    short = arm.removesuffix(LONGER)
    if short != arm:
        most = float(best_rate(recorded()[short]))
        return {f"{lr:g}": runs(arm, lr, SEEDS) for lr in (most / 2, most)}
    found = {f"{START:g}": runs(arm, START, SEEDS)}
    while min(max(found.values(), key=sum)) < 0.99:
        largest, smallest = (end(map(float, found)) for end in (max, min))
        best = float(best_rate(found))
        if smallest < best < largest:
            break
        lr = smallest / 2 if best == smallest else 2 * largest
        found[f"{lr:g}"] = runs(arm, lr, SEEDS)
    found[best_rate(found)] += runs(arm, float(best_rate(found)), MORE_SEEDS)
    return {lr: found[lr] for lr in sorted(found, key=float)}


def best_rate(found: dict[str, list[float]]) -> str:
    """Return the learning rate with the largest mean."""
    return max(found, key=lambda lr: sum(found[lr]) / len(found[lr]))


def recorded() -> dict[str, dict[str, list[float]]]:
    """Return the recorded result: arm → learning rate → an accuracy per seed."""
    return read(RECORD)


def best(arm: str) -> list[float]:
    """Return the accuracies, one per seed, at the best learning rate."""
    return recorded()[arm][best_rate(recorded()[arm])]


def main() -> None:
    """Run the long version and record it."""
    run_arms(RECORD, ARMS, _sweep, __doc__, last=[arm + LONGER for arm in LONG])


if __name__ == "__main__":
    main()
