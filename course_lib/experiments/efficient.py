"""Which kinds of attention can retrieve over long distances?

Two tasks over 32 positions: in one all positions need the same fact, in the other each position needs another::

    python -m course_lib.experiments.efficient

trains every arm on both tasks from three seeds at each of five learning rates, and scores it after 500 and after 1,500
steps (half an hour of CPU time).
"""

import copy
import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call, grad, stack_module_state, vmap

from course_lib.experiments.runs import best as best_of
from course_lib.experiments.runs import fill, grid, read, where
from course_lib.topics.efficient import attention_pattern
from course_lib.train import fit
from course_lib.transformer.layers import FeedForward
from course_lib.transformer.multihead import merge_heads, split_heads
from course_lib.validation import require_one_of

LENGTH, LETTERS = 32, 16
D_MODEL, NUM_HEADS = 32, 2
WINDOW, GLOBAL, RANK = 4, 2, 8
BATCH = 16
BUDGETS = (500, 1500)
RATES = (1e-3, 2e-3, 4e-3, 8e-3, 1.6e-2)
SEEDS = (0, 1, 2)
#: Name of a group of distances between a position and its answer → the smallest and the largest distance.
DISTANCES = {"0 to 4": (0, 4), "5 to 8": (5, 8), "9 to 16": (9, 16), "17 to 31": (17, 31)}

Batch = tuple[Tensor, ...]


def one_fact(count: int, generator: torch.Generator) -> Batch:
    """Sample letters of which one is marked; every position has to name the marked letter.

    Returns:
        Whether a position is marked (count, length), letters (count, length), zeros in place of questions, the
        labels (count, length), and the position of each answer (count, length).
    """
    letters = torch.randint(LETTERS, (count, LENGTH), generator=generator)
    place = torch.randint(LENGTH, (count, 1), generator=generator).expand(-1, LENGTH)
    marked = (torch.arange(LENGTH) == place).long()
    return marked, letters, torch.zeros_like(letters), letters.gather(1, place), place


def own_fact(count: int, generator: torch.Generator) -> Batch:
    """Sample items with a name and a letter; each position names an item and has to answer its letter.

    Returns:
        Names (count, length), all different, letters (count, length), the names asked for (count, length), the
        labels (count, length), and the position of each answer (count, length).
    """
    names = torch.rand(count, LENGTH, generator=generator).argsort(dim=-1)
    letters = torch.randint(LETTERS, (count, LENGTH), generator=generator)
    asked = torch.rand(count, LENGTH, generator=generator).argsort(dim=-1)  # each name once
    place = names.argsort(dim=-1).gather(1, asked)
    return names, letters, asked, letters.gather(1, place), place


#: Name of a task → its sampler.
TASKS = {"one fact": one_fact, "own fact": own_fact}
#: Name of an arm → the kinds of attention in its two layers, and options of `Retriever`.
ARMS: dict[str, dict] = {
    "dense": {"kinds": ("dense", "dense")},
    "window": {"kinds": ("window", "window")},
    "window, then dense": {"kinds": ("window", "dense")},
    "window and global tokens": {"kinds": ("longformer", "longformer")},
    "Linformer, random E and F": {"kinds": ("linformer", "linformer")},
    "Linformer, identity rows": {"kinds": ("linformer", "linformer"), "start": "identity"},
    "linear, 16 features": {"kinds": ("linear", "linear"), "features": 16},
    "linear, 4 features": {"kinds": ("linear", "linear"), "features": 4},
    "Performer, 16 features": {"kinds": ("performer", "performer"), "features": 16},
    "Performer, 64 features": {"kinds": ("performer", "performer"), "features": 64},
}
#: How the matrices of "linformer" begin, both learned afterwards: normal numbers, or rows of the identity matrix,
#: so that each of the mixed keys is at first the key of one position.
STARTS = ("random", "identity")


def pattern(kind: str) -> Tensor:
    """Return which position attends to which, (query, key)."""
    name = "sliding_window" if kind == "window" else kind
    return attention_pattern(name, LENGTH, WINDOW, range(GLOBAL))


def positive_features(x: Tensor, projection: Tensor, *, dim: tuple[int, ...]) -> Tensor:
    """Return Performer's features of queries or keys that are scaled by d^(-1/4).

    They are divided by the largest along `dim`, a factor that cancels in attention if it is the same for all keys.
    """
    exponent = x @ projection.mT - x.square().sum(dim=-1, keepdim=True) / 2
    return torch.exp(exponent - exponent.amax(dim, keepdim=True).detach())


class Attention(nn.Module):
    """One of the kinds of attention, with heads.

    Args:
        kind: "dense", "window", "longformer", "linformer", "linear", or "performer".
        features: of each head: for "performer" the random features, for "linear" how many of the components of
            queries and keys are used.
        rank: for "linformer", how many mixtures of the keys there are.
        start: for "linformer", one of `STARTS`.
    """

    def __init__(
        self, kind: str, features: int = 0, rank: int = RANK, start: str = STARTS[0]
    ) -> None:
        super().__init__()
        require_one_of(STARTS, start=start)
        self.kind, self.features = kind, features
        self.in_proj = nn.Linear(D_MODEL, 3 * D_MODEL)
        self.out_proj = nn.Linear(D_MODEL, D_MODEL)
        d_head = D_MODEL // NUM_HEADS
        if kind == "linformer":
            self.keys, self.values = (
                nn.Parameter(
                    torch.randn(rank, LENGTH) / math.sqrt(LENGTH)
                    if start == "random"
                    else torch.eye(LENGTH).repeat(-(-rank // LENGTH), 1)[:rank]
                )
                for _ in range(2)
            )
        elif kind == "performer":
            self.register_buffer("projection", torch.randn(NUM_HEADS, features, d_head))
        elif kind != "linear":
            self.register_buffer("mask", pattern(kind))

    def forward(self, x: Float[Tensor, "batch length d_model"]) -> Tensor:
        """Attend; the result has the shape of `x`."""
        q, k, v = (split_heads(part, NUM_HEADS) for part in self.in_proj(x).chunk(3, dim=-1))
        if self.kind == "linear":
            q, k = (F.elu(part[..., : self.features]) + 1 for part in (q, k))
            output = _normalised(q, k, v)
        elif self.kind == "performer":
            q, k = (part / q.shape[-1] ** 0.25 for part in (q, k))
            k = positive_features(k, self.projection, dim=(-2, -1))
            output = _normalised(positive_features(q, self.projection, dim=(-1,)), k, v)
        elif self.kind == "linformer":
            output = _softmax(q, self.keys @ k, self.values @ v)
        else:
            output = _softmax(q, k, v, self.mask)
        return self.out_proj(merge_heads(output))


def _softmax(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return torch.softmax(scores, dim=-1) @ v


def _normalised(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Linear attention over features, (batch, heads, length, features)."""
    return q @ (k.mT @ v) / (q @ k.sum(dim=-2, keepdim=True).mT + 1e-6)


class Retriever(nn.Module):
    """A pre-norm encoder with learned positions.

    Args:
        kinds: of attention, one for each layer.
        options: of `Attention`.
    """

    def __init__(self, kinds: tuple[str, ...], **options: int | str) -> None:
        super().__init__()
        self.name, self.letter, self.asked = (
            nn.Embedding(count, D_MODEL) for count in (LENGTH, LETTERS, LENGTH)
        )
        self.position = nn.Parameter(torch.randn(LENGTH, D_MODEL))
        self.attention = nn.ModuleList(Attention(kind, **options) for kind in kinds)
        self.ffn = nn.ModuleList(FeedForward(D_MODEL, 2 * D_MODEL) for _ in kinds)
        self.norms = nn.ModuleList(nn.LayerNorm(D_MODEL) for _ in range(2 * len(kinds) + 1))
        self.out = nn.Linear(D_MODEL, LETTERS)

    def forward(self, names: Tensor, letters: Tensor, asked: Tensor) -> Tensor:
        """Return the logits of the letters at each position."""
        x = self.name(names) + self.letter(letters) + self.asked(asked) + self.position
        for layer, (attention, ffn) in enumerate(zip(self.attention, self.ffn, strict=True)):
            x = x + attention(self.norms[2 * layer](x))
            x = x + ffn(self.norms[2 * layer + 1](x))
        return self.out(self.norms[-1](x))  # (batch, length, letter)


def train(
    task: str,
    arm: str | dict,
    rates: Sequence[float],
    *,
    seeds: Sequence[int] = SEEDS,
    budgets: Sequence[int] = BUDGETS,
) -> tuple[dict[int, Tensor], Tensor]:
    """Train an arm at several learning rates from several seeds, all at once, with Adam and a warm-up.

    The models are trained side by side, as one batch: at this size the fixed cost of each operation is most of its
    time.

    Args:
        task: one of `TASKS`.
        arm: one of `ARMS`, or the options of a `Retriever`.
        rates, seeds: one model is trained for each pair.
        budgets: after how many steps the models are scored; the last one ends training.

    Returns:
        Budget → accuracies (rate, seed); and, after the last step, the accuracies by distance (rate, seed, group).
    """
    require_one_of(TASKS, task=task)
    if isinstance(arm, str):
        require_one_of(ARMS, arm=arm)
        arm = ARMS[arm]
    models = []
    for seed in seeds:
        torch.manual_seed(seed)
        models.append(Retriever(**arm))
    parameters, buffers = stack_module_state(models * len(rates))
    parameters = {name: one.detach().clone() for name, one in parameters.items()}
    skeleton = copy.deepcopy(models[0]).to("meta")

    def logits(parameters, buffers, *inputs):
        return functional_call(skeleton, (parameters, buffers), inputs)

    def loss(parameters, buffers, *inputs, labels):
        return F.cross_entropy(logits(parameters, buffers, *inputs).flatten(0, 1), labels.flatten())

    def scored():
        *inputs, labels, place = TASKS[task](500, torch.Generator().manual_seed(12345))
        with torch.no_grad():
            found = vmap(logits, in_dims=(0, 0, None, None, None))(parameters, buffers, *inputs)
        right = (found.argmax(dim=-1) == labels).float()  # (model, count, length)
        distance = (place - torch.arange(LENGTH)).abs()
        groups = [
            right[:, (distance >= low) & (distance <= high)].mean(dim=-1)
            for low, high in DISTANCES.values()
        ]
        return right.mean(dim=(1, 2)), torch.stack(groups, dim=-1)

    gradients = vmap(lambda p, b, *inputs: grad(loss)(p, b, *inputs[:-1], labels=inputs[-1]))
    lr = torch.tensor(rates).repeat_interleave(len(seeds))
    first, second = ({name: 0 * one for name, one in parameters.items()} for _ in range(2))
    generators, accuracies = [torch.Generator().manual_seed(seed) for seed in seeds], {}
    for step in range(1, budgets[-1] + 1):
        batches = zip(*(TASKS[task](BATCH, one)[:4] for one in generators), strict=True)
        batch = (torch.cat([torch.stack(part)] * len(rates)) for part in batches)
        found = gradients(parameters, buffers, *batch)
        for name, one in parameters.items():
            first[name].lerp_(found[name], 0.1)
            second[name].lerp_(found[name].square(), 0.001)
            root = (second[name] / (1 - 0.999**step)).sqrt() + 1e-8
            rate = lr * min(1, step / 100) / (1 - 0.9**step)
            one -= rate.view(-1, *[1] * (one.dim() - 1)) * first[name] / root
        if step in budgets:
            accuracy, by_distance = scored()
            accuracies[step] = accuracy.view(len(rates), len(seeds))
    return accuracies, by_distance.view(len(rates), len(seeds), -1)


def trained(
    task: str, arm: str, *, lr: float = 8e-3, steps: int = BUDGETS[0], seed: int = 0
) -> Retriever:
    """Train one model of an arm, as `train` does."""
    require_one_of(TASKS, task=task)
    require_one_of(ARMS, arm=arm)
    torch.manual_seed(seed)
    model, generator = Retriever(**ARMS[arm]), torch.Generator().manual_seed(seed)

    def loss(model: nn.Module, batch: Batch) -> Tensor:
        *inputs, labels, _ = batch
        return F.cross_entropy(model(*inputs).flatten(0, 1), labels.flatten())

    batches = (TASKS[task](BATCH, generator) for _ in range(steps))
    fit(model, batches, loss, steps=steps, lr=lambda step: lr * min(1, step / 100), seed=seed)
    return model


def accuracy(model: Retriever, task: str, *, count: int = 500) -> float:
    """Return the share of positions that answer right, over new sequences."""
    *inputs, labels, _ = TASKS[task](count, torch.Generator().manual_seed(12345))
    with torch.no_grad():
        return (model(*inputs).argmax(dim=-1) == labels).float().mean().item()


def attention_maps(model: Retriever, task: str) -> Float[Tensor, "layer head query key"]:
    """Return the attention weights of a model with dense attention on one new sequence."""
    *inputs, _, _ = TASKS[task](1, torch.Generator().manual_seed(12345))
    maps = []

    def record(attention: Attention, inputs: tuple[Tensor]) -> None:
        q, k, _ = (split_heads(x, NUM_HEADS) for x in attention.in_proj(inputs[0]).chunk(3, dim=-1))
        maps.append(torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1)[0])

    hooks = [one.register_forward_pre_hook(record) for one in model.attention]
    with torch.no_grad():
        model(*inputs)
    for hook in hooks:
        hook.remove()
    return torch.stack(maps)


def rows_of(accuracies: dict[int, Tensor], rates: Sequence[float]) -> list[dict]:
    """Return what `train` returns first as rows of a table."""
    return [
        {"budget": budget, "lr": lr, "seed": seed, "accuracy": one}
        for budget, found in accuracies.items()
        for lr, each in zip(rates, found.tolist(), strict=True)
        for seed, one in zip(SEEDS, each, strict=True)
    ]


def run(task: str, arm: str) -> list[dict]:
    """Train an arm at every learning rate from every seed; at the best, return the accuracies by distance too."""
    accuracies, by_distance = train(task, arm, RATES)
    rows = rows_of(accuracies, RATES)
    best = accuracies[BUDGETS[-1]].mean(dim=1).argmax()
    for row in where(rows, budget=BUDGETS[-1], lr=RATES[best]):
        found = by_distance[best, row["seed"]].tolist()
        row["by distance"] = dict(zip(DISTANCES, found, strict=True))
    return rows


def best(task: str, arm: str, budget: int = BUDGETS[-1]) -> list[float]:
    """Return the accuracies, one per seed, at the best learning rate of a budget."""
    return best_of(where(read("efficient"), task=task, arm=arm, budget=budget), "accuracy")[1]


PLAN = grid(task=TASKS, arm=ARMS)

if __name__ == "__main__":
    fill("efficient", run, PLAN, __doc__, spec=".3f")
