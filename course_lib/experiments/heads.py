"""How many heads does a lookup need, and what is lost when heads share keys and values?

Two tasks in which one query must retrieve four letters::

    python -m course_lib.experiments.heads

trains every arm from three seeds at each learning rate of a sweep, and from two more at the best one (twenty minutes
of CPU time).
"""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.experiments.runs import best as best_of
from course_lib.experiments.runs import by_rate, fill, read, where
from course_lib.train import Evaluation, History, fit
from course_lib.transformer.multihead import MultiHeadAttention
from course_lib.validation import require_one_of

LETTERS, ITEMS, ASKED = 8, 12, 4
BATCH = 128
PATHS = ("attention only", "residual", "residual and FFN")

Batch = tuple[Tensor, ...]


def by_position(count: int, generator: torch.Generator) -> Batch:
    """Sample letters, four different positions, and the letters at these positions.

    Returns:
        Letters (count, item), positions asked for (count, asked), and the labels (count, asked).
    """
    letters = torch.randint(LETTERS, (count, ITEMS), generator=generator)
    asked = torch.rand(count, ITEMS, generator=generator).argsort(dim=-1)[:, :ASKED]
    return letters, asked, letters.gather(1, asked)


def by_attribute(count: int, generator: torch.Generator) -> Batch:
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

    def sample(self, count: int, generator: torch.Generator) -> Batch:
        """Sample the model's task."""
        return (by_attribute if self.attributes else by_position)(count, generator)


def trained(*, seed: int = 0, steps: int = 600, lr: float = 5e-3, **options) -> Retrieval:
    """Train a `Retrieval`, made with the `options`, by Adam with batches of 128 new questions."""
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
    torch.manual_seed(seed)
    model, generator = Retrieval(**options), torch.Generator().manual_seed(seed)
    batches = (model.sample(BATCH, generator) for _ in range(steps))

    def loss(model: nn.Module, batch: Batch) -> Tensor:
        *inputs, labels = batch
        return F.cross_entropy(model(*inputs).flatten(0, 1), labels.flatten())

    return model, fit(model, batches, loss, steps=steps, lr=lr, seed=seed, evaluation=evaluation)


def accuracy(model: Retrieval, *, count: int = 2000) -> float:
    """Return the share of letters that are right, over new questions."""
    *inputs, labels = model.sample(count, torch.Generator().manual_seed(12345))
    with torch.no_grad():
        return (model(*inputs).argmax(dim=-1) == labels).float().mean().item()


#: Name of an arm → options of `trained`.
ARMS: dict[str, dict] = {
    f"attention only, {heads} heads": {"num_heads": heads} for heads in (1, 2, 4, 8, 16, 32)
}
ARMS |= {f"{path}, 1 heads": {"num_heads": 1, "path": path} for path in PATHS[1:]}
SHARED = {"num_heads": 4, "attributes": True, "steps": 1500}
ARMS |= {f"{kv} KV heads": SHARED | {"num_kv_heads": kv} for kv in (4, 2, 1)}
#: Controls: fewer parameters with four KV heads, and more with one.
for kv, d_model in ((4, 24), (1, 40), (1, 64)):
    ARMS[f"{kv} KV heads, d_model {d_model}"] = ARMS[f"{kv} KV heads"] | {"d_model": d_model}
LONGER = ", 3 × the steps"
#: Arms that are also trained three times as long, from three seeds, at the best learning rate and at half of it.
LONG = (
    *(f"attention only, {heads} heads" for heads in (2, 32)),
    "residual and FFN, 1 heads",
    "1 KV heads",
)
ARMS |= {arm + LONGER: ARMS[arm] | {"steps": 3 * ARMS[arm].get("steps", 600)} for arm in LONG}


def best(arm: str) -> list[float]:
    """Return the recorded accuracies, one per seed, at the best learning rate."""
    return best_of(where(read("heads"), arm=arm), "right")[1]


def plan(rows: list[dict]) -> Iterator[dict]:
    """Sweep each arm; then take two more seeds at its best learning rate, and the longer trainings.

    The learning rate is halved and doubled until the best one is neither the largest nor the smallest, or until it
    takes every seed to 0.99.
    """
    for arm in ARMS:
        short = arm.removesuffix(LONGER)
        tried = [row for row in where(rows, arm=short) if row["seed"] < 3]
        rates, wanted = by_rate(tried, "right"), 5e-3
        if rates:
            at, right = best_of(tried, "right")
            ends = {max(rates): 2 * at, min(rates): at / 2}
            wanted = ends.get(at) if min(right) < 0.99 else None
        if wanted:
            settings = [(wanted, range(3))] if arm == short else []  # the longer trainings wait
        else:
            settings = [(at, range(3, 5))] if arm == short else [(at / 2, range(3)), (at, range(3))]
        yield from (
            {"arm": arm, "lr": lr, "seed": seed} for lr, seeds in settings for seed in seeds
        )


def run(arm: str, **setting) -> list[dict]:
    """Train once; return the share of letters that are right."""
    return [{"right": accuracy(trained(**ARMS[arm], **setting))}]


if __name__ == "__main__":
    fill("heads", run, plan, __doc__, spec=".3f")
