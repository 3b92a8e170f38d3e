"""Do positional encodings generalise beyond the training length, with and without a causal mask?

One small model, two tasks, every encoding that has no last position, both kinds of attention; trained at 16 tokens,
evaluated at 16, 32, 64 and 128::

    python -m course_lib.experiments.positions

sweeps the learning rate of each arm (encoding, task, mask) on seed 0, keeps the one with the lowest loss on new
sequences of the training length, and trains with it from three seeds for 1,000 steps. Rates that all solve the task (a
loss below 0.01) differ by noise only; then it keeps 0.01 if that is one of them, and the rows of the sweep show how the
others extrapolate. RoPE is also trained at the next lower rate, T5 is also tried with the biases of far offsets set to
the last trained ones.
"""

import copy
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.experiments.runs import fill, grid, read, where
from course_lib.train import fit
from course_lib.transformer.masks import causal_mask
from course_lib.transformer.multihead import MultiHeadAttention
from course_lib.transformer.positions import (
    ENCODINGS,
    AttentionPositions,
    Positions,
    ShawRelativePositions,
    T5RelativeBias,
    make_positions,
    t5_bucket,
)
from course_lib.validation import require_one_of, require_whole

SYMBOLS, TRAINED = 16, 16
LENGTHS = (16, 32, 64, 128)
#: Name of the mask → whether it is causal.
MASKS = {"bidirectional": False, "causal": True}
#: The rates of the sweep. It begins with `FIRST_RATES`, and goes on while the best is at the edge and solves nothing.
LEARNING_RATES = (3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
FIRST_RATES = (3e-3, 1e-2, 3e-2)
SOLVED = 0.01  # nats
SEEDS = (0, 1, 2)
STEPS = 1000
_NAMES = {"none": "NoPE", "shaw": "Shaw", "t5": "T5", "rotary": "RoPE", "alibi": "ALiBi"}
#: Other sizes of two encodings: where offsets begin to share parameters. Name → from `causal` to one layer's encoding.
VARIANTS: dict[str, Callable[[bool], AttentionPositions]] = {
    "shaw 4": lambda causal: ShawRelativePositions(8, max_distance=4),
    "shaw 8": lambda causal: ShawRelativePositions(8, max_distance=8),
    "shaw 15": lambda causal: ShawRelativePositions(8, max_distance=15),
    "t5 8": lambda causal: T5RelativeBias(
        4, bidirectional=not causal, num_buckets=8, max_distance=8 if causal else 4
    ),
}
#: The arms that are compared: a learned table has no positions beyond the training length.
ARMS = (*(name for name in ENCODINGS if name != "learned"), *VARIANTS)
#: What papers call the encodings.
LABELS = {name: _NAMES.get(name, name) for name in ENCODINGS} | {
    "shaw 4": "Shaw, clip 4",
    "shaw 8": "Shaw, clip 8",
    "shaw 15": "Shaw, clip 15",
    "t5 8": "T5, 8 buckets",
}
_IGNORED = -100  # the default `ignore_index` of `F.cross_entropy`


def _three_back(tokens: Int[Tensor, "batch length"]) -> Int[Tensor, "batch length"]:
    labels = tokens.roll(3, dims=1)
    labels[:, :3] = _IGNORED
    return labels


def _the_first(tokens: Int[Tensor, "batch length"]) -> Int[Tensor, "batch length"]:
    labels = tokens[:, :1].expand(tokens.shape).clone()
    labels[:, 0] = _IGNORED
    return labels


#: Task → from the tokens to the labels of each position: one needs a relative, one an absolute position.
TASKS: dict[str, Callable[[Tensor], Tensor]] = {
    "three back": _three_back,
    "the first": _the_first,
}


#: A name, or a function that makes an encoding for one layer.
Encoding = str | Callable[[], AttentionPositions]


class SmallModel(nn.Module):
    """A Transformer with two layers, four heads and d_model = 32.

    Args:
        encoding: one of `ENCODINGS`, or a function that makes an encoding for one layer.
        causal: whether attention has a causal mask.
    """

    def __init__(self, encoding: Encoding, *, causal: bool = False) -> None:
        super().__init__()
        self.causal, d_model, num_heads = causal, 32, 4
        options = {"max_length": TRAINED, "bidirectional": not causal}
        made = [
            Positions(attention=encoding())
            if callable(encoding)
            else make_positions(encoding, d_model, num_heads, **options)
            for _ in range(2)
        ]
        self.embedding = nn.Embedding(SYMBOLS, d_model)
        self.position_embedding = made[0].embedding
        self.attention = nn.ModuleList(
            MultiHeadAttention(d_model, num_heads, positions=one.attention) for one in made
        )
        self.feed_forward = nn.ModuleList(
            nn.Sequential(nn.Linear(d_model, 64), nn.ReLU(), nn.Linear(64, d_model)) for _ in made
        )
        self.norm = nn.ModuleList(nn.LayerNorm(d_model) for _ in range(2 * len(made)))
        self.lm_head = nn.Linear(d_model, SYMBOLS)

    def forward(
        self,
        tokens: Int[Tensor, "batch length"],
        mask: Bool[Tensor, "query key"] | None = None,
    ) -> Float[Tensor, "batch length symbols"]:
        """Return the logits of every position; `mask`, if given, takes the place of the model's own."""
        x = self.embedding(tokens)  # (batch, length, d_model)
        if self.position_embedding is not None:
            x = self.position_embedding(x)
        if mask is None and self.causal:
            mask = causal_mask(tokens.shape[1])
        for layer, (attention, feed_forward) in enumerate(
            zip(self.attention, self.feed_forward, strict=True)
        ):
            x = x + attention(self.norm[2 * layer](x), mask=mask).output
            x = x + feed_forward(self.norm[2 * layer + 1](x))
        return self.lm_head(x)


def trained(
    encoding: Encoding,
    task: str,
    *,
    seed: int = 0,
    steps: int = 300,
    lr: float = 3e-3,
    causal: bool = False,
) -> SmallModel:
    """Train a `SmallModel` on random sequences of 16 tokens, 32 at a time.

    Raises:
        ValueError: for an unknown encoding or task.
    """
    require_one_of(TASKS, task=task)
    require_whole(steps=steps)
    torch.manual_seed(seed)
    model, generator = SmallModel(encoding, causal=causal), torch.Generator().manual_seed(seed)

    def batches() -> Iterator[Tensor]:
        while True:
            yield torch.randint(SYMBOLS, (32, TRAINED), generator=generator)

    fit(
        model,
        batches(),
        lambda model, tokens: _loss(model, task, tokens),
        steps=steps,
        lr=lr,
        seed=seed,
    )
    return model


def _loss(model: nn.Module, task: str, tokens: Int[Tensor, "batch length"]) -> Tensor:
    return F.cross_entropy(model(tokens).flatten(0, 1), TASKS[task](tokens).flatten())


def _new_sequences(count: int, length: int, generator: torch.Generator) -> Tensor:
    return torch.randint(SYMBOLS, (count, length), generator=generator)


def held_out_loss(model: SmallModel, task: str, *, count: int = 500) -> float:
    """Return the loss on new sequences of the training length."""
    tokens = _new_sequences(count, TRAINED, torch.Generator().manual_seed(54321))
    with torch.no_grad():
        return _loss(model, task, tokens).item()


def accuracies(model: SmallModel, task: str, *, count: int = 100) -> list[float | None]:
    """Return the accuracy in the second half of new sequences, at each of `LENGTHS`.

    None where the encoding has too few positions for the length.
    """
    generator, shares = torch.Generator().manual_seed(12345), []
    for length in LENGTHS:
        tokens = _new_sequences(count, length, generator)
        try:
            with torch.no_grad():
                predicted = model(tokens).argmax(dim=-1)
        except ValueError:  # a learned table has no more positions
            shares.append(None)
            continue
        correct = predicted == TASKS[task](tokens)
        shares.append(correct[:, length // 2 :].float().mean().item())
    return shares


def recorded(
    mask: str, task: str, arm: str, part: str = "chosen", measure: str = "accuracy"
) -> list:
    """Return what is recorded of an arm: one list per seed, one accuracy per length.

    Args:
        mask, task, arm: of `MASKS`, `TASKS`, `ARMS`.
        part: "chosen", the models of the learning rate that was kept; "lower", of RoPE, those at the next lower one;
            "swept": the other rates of the sweep.
        measure: "accuracy"; of T5 also "repaired", that of `repaired` models.
    """
    rows = where(read("positions"), mask=mask, task=task, arm=arm, part=part)
    return [row[measure] for row in rows if measure in row]


def arm_of(name: str, causal: bool) -> Encoding:
    """Return what `trained` takes for an arm."""
    return (lambda: VARIANTS[name](causal)) if name in VARIANTS else name


def repaired(model: SmallModel) -> SmallModel:
    """Return a copy of a T5 model whose untrained buckets have the bias of the last trained one of their side."""
    model = copy.deepcopy(model)
    far = torch.arange(TRAINED, 10_000)
    for layer in model.attention:
        table = layer.positions.table.data  # (bucket, heads)
        options = {"bidirectional": not model.causal, "num_buckets": len(table)}
        for side in (-1, 1):  # keys before and after the query
            last = t5_bucket(torch.tensor(side * (TRAINED - 1)), **options)
            untrained = t5_bucket(side * far, **options).unique()
            table[untrained[untrained > last]] = table[last].clone()
    return model


def run(mask: str, task: str, arm: str) -> list[dict]:
    """Sweep the learning rate of an arm on the first seed; return the accuracies of all seeds at the best one."""
    causal, models, loss, to_try = MASKS[mask], {}, {}, list(FIRST_RATES)

    def model(lr: float, seed: int) -> SmallModel:
        if (lr, seed) not in models:
            options = {"seed": seed, "steps": STEPS, "lr": lr, "causal": causal}
            models[lr, seed] = trained(arm_of(arm, causal), task, **options)
        return models[lr, seed]

    while to_try:
        loss |= {lr: held_out_loss(model(lr, SEEDS[0]), task) for lr in to_try}
        best = min(loss, key=loss.get)
        if loss[best] < SOLVED:
            best = 1e-2 if loss[1e-2] < SOLVED else best
            break
        at = LEARNING_RATES.index(best)
        to_try = [lr for lr in LEARNING_RATES[max(0, at - 1) : at + 2] if lr not in loss]
    parts = [("chosen", best, seed) for seed in SEEDS]
    if arm == "rotary":
        lower = LEARNING_RATES[LEARNING_RATES.index(best) - 1]
        parts += [("lower", lower, seed) for seed in SEEDS]
    parts += [("swept", lr, SEEDS[0]) for lr in sorted(loss) if lr not in (one[1] for one in parts)]
    rows = []
    for part, lr, seed in parts:
        row = {"part": part, "lr": lr, "seed": seed}
        row["accuracy"] = accuracies(model(lr, seed), task, count=300)
        if seed == SEEDS[0] and lr in loss:
            row["loss"] = loss[lr]
        if arm == "t5" and part == "chosen":
            row["repaired"] = accuracies(repaired(model(lr, seed)), task, count=300)
        rows.append(row)
    return rows


PLAN = [
    *grid(mask=["bidirectional"], task=TASKS, arm=ARMS),
    *grid(
        mask=["causal"], task=TASKS, arm=[one for one in ARMS if one not in ("shaw 8", "shaw 15")]
    ),
]

if __name__ == "__main__":
    fill("positions", run, PLAN, __doc__, spec=".3g")
