r"""How does the loss of a language model fall with its size and with the amount of text?

`DecoderOnly` models of nine sizes read the docstrings of four packages byte by byte. Every pair of a size
and a number of training tokens is trained for itself, with a learning rate that falls to 0 at its last step, and
with a peak learning rate of its own: factors of 2 are tried with seed 0 until the best one lies between two worse
ones, and seeds 1 and 2 train with the best::

    python -m course_lib.experiments.scaling_ladder

trains all pairs up to $6 \cdot 10^{11}$ FLOPs per run. On record is what PyTorch 2.13.0 gave on x86-64, with one
thread per model; a loss of null is that of a training that diverged.
"""

import math
import random
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.data import BYTE_VOCABULARY, docstring_text, text_windows
from course_lib.experiments.runs import fill, grid, read, where
from course_lib.topics.scaling import (
    LossSurface,
    fit_loss_surface,
    flops_per_token,
    parameter_count,
)
from course_lib.train import fit, linear_schedule_with_warmup
from course_lib.transformer import DecoderOnly, TransformerConfig
from course_lib.validation import require_one_of, require_positive, require_whole

#: d_model × layers → d_model, layers, heads; the FFN has 4 d_model hidden units.
SIZES = {
    "8x1": (8, 1, 1),
    "16x1": (16, 1, 1),
    "16x2": (16, 2, 1),
    "24x2": (24, 2, 2),
    "32x2": (32, 2, 2),
    "48x2": (48, 2, 3),
    "64x3": (64, 3, 4),
    "96x3": (96, 3, 6),
    "128x4": (128, 4, 8),
}
#: Bytes that each window predicts, windows per step.
LENGTH, BATCH = 64, 16
#: Training tokens of a run: 32 steps, 64, 128 …
TOKENS = tuple(LENGTH * BATCH * 2**k for k in range(5, 13))
#: Training tokens per parameter, at least and at most: the best sizes of all budgets lie between.
RATIOS = (0.5, 800)
#: Fits use runs of this many tokens, 256 steps, and more. The first steps follow no power law; with fewer runs, one
#: size decides about the exponents. Half or twice as many tokens give other exponents.
FITTED_FROM = 2**18
SEEDS = 3
#: Share of the steps in which the learning rate rises.
WARMUP = 0.1
#: Held-out windows on which the final loss is measured.
EVALUATED = 512
#: The largest run, in FLOPs as 6 · parameters · tokens.
LARGEST_RUN = 6e11


def ladder_config(size: str) -> TransformerConfig:
    """Return the configuration of one of `SIZES`: pre-norm, GELU, rotary positions, no dropout."""
    require_one_of(SIZES, size=size)
    d_model, layers, heads = SIZES[size]
    return TransformerConfig(
        target_vocabulary=BYTE_VOCABULARY,
        d_model=d_model,
        num_heads=heads,
        decoder_layers=layers,
        d_ff=4 * d_model,
        dropout=0.0,
        norm="pre",
        activation="gelu",
        positions="rotary",
    )


def next_byte_loss(model: nn.Module, windows: Int[Tensor, "window bytes"]) -> Float[Tensor, ""]:
    """Return the mean cross-entropy, in nats per byte, of every byte of the windows but the first."""
    logits = model(windows[:, :-1])  # (window, LENGTH, BYTE_VOCABULARY)
    return F.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())


def training_batches(seed: int) -> Iterator[Int[Tensor, "window bytes"]]:
    """Yield batches of windows in a random order; each window once per pass over the text."""
    epoch = 0
    while True:
        windows = text_windows(docstring_text().training, LENGTH, seed=1000 * epoch + seed)
        yield from windows[: len(windows) // BATCH * BATCH].split(BATCH)
        epoch += 1


def held_out_windows() -> Int[Tensor, "window bytes"]:
    """Return the windows on which every model is evaluated."""
    return text_windows(docstring_text().held_out, LENGTH, seed=0)[:EVALUATED]


@torch.no_grad()
def held_out_loss(model: nn.Module) -> float:
    """Return the loss on held-out windows, the same for every model."""
    losses = [next_byte_loss(model, part).item() for part in held_out_windows().split(64)]
    return sum(losses) / len(losses)


def train_size(size: str, tokens: int, lr: float, *, seed: int = 0) -> float:
    """Train a model of one size, and return its held-out loss in nats per byte; infinity if it diverged.

    Args:
        size: one of `SIZES`.
        tokens: how many bytes it is trained to predict; rounded to whole steps.
        lr: the peak learning rate, after a linear warm-up and before a linear decay to 0.
        seed: of the initialisation and the order of the text.

    Raises:
        ValueError: for an unknown size, fewer tokens than two steps, and a learning rate that is not above 0.
    """
    require_whole(2 * LENGTH * BATCH, tokens=tokens)
    require_positive(lr=lr)
    torch.manual_seed(seed)
    model = DecoderOnly(ladder_config(size))
    steps = round(tokens / (LENGTH * BATCH))
    warmup = max(1, round(WARMUP * steps))
    try:
        fit(
            model,
            training_batches(seed),
            next_byte_loss,
            steps=steps,
            lr=lambda step: linear_schedule_with_warmup(step, lr, steps, warmup),
            optimizer=torch.optim.Adam(model.parameters(), betas=(0.9, 0.99), fused=True),
            seed=seed,
        )
    except FloatingPointError:
        return math.inf
    return held_out_loss(model)


# --- the record ------------------------------------------------------------------------------


class LadderPoint(NamedTuple):
    """One pair of a size and a number of tokens.

    Attributes:
        size: one of `SIZES`.
        parameters: of the model, all of them.
        tokens: how many it was trained with.
        lr: its best learning rate.
        losses: the held-out losses at that learning rate, one per seed, in nats per byte.
    """

    size: str
    parameters: int
    tokens: int
    lr: float
    losses: tuple[float, ...]

    @property
    def loss(self) -> float:
        """The mean over the seeds."""
        return sum(self.losses) / len(self.losses)

    @property
    def flops(self) -> float:
        r"""The compute of a run, $6 N D$."""
        return 6.0 * self.parameters * self.tokens

    @property
    def counted_flops(self) -> float:
        """The compute of a run with every matrix product counted, those of attention scores too."""
        count = flops_per_token(ladder_config(self.size), LENGTH, training=True)
        return count.total * self.tokens

    @property
    def without_embeddings(self) -> int:
        """The parameters without embedding and output layer."""
        return parameter_count(ladder_config(self.size), embeddings=False).total


def recorded_points() -> list[LadderPoint]:
    """Return every pair that was trained with all seeds, the smallest sizes first."""
    points = []
    for size in SIZES:
        parameters = parameter_count(ladder_config(size)).total
        for tokens in sorted({row["tokens"] for row in where(read("scaling_ladder"), size=size)}):
            lr = best_lr(size, tokens)
            losses = tuple(run["loss"] for run in runs(size, tokens, lr) if run["loss"] < math.inf)
            if len(losses) == SEEDS:
                points.append(LadderPoint(size, parameters, tokens, lr, losses))
    return points


def runs(size: str, tokens: int, lr: float) -> list[dict]:
    """Return the recorded runs, one per seed."""
    rows = where(read("scaling_ladder"), size=size, tokens=tokens, lr=lr)
    return sorted(rows, key=lambda row: row["seed"])


def sweep(size: str, tokens: int, rows: list[dict] | None = None) -> dict[float, float]:
    """Return learning rate → loss of seed 0; of the recorded runs where `rows` is left out."""
    rows = where(read("scaling_ladder") if rows is None else rows, size=size, tokens=tokens, seed=0)
    return dict(sorted((row["lr"], row["loss"]) for row in rows))


def best_lr(size: str, tokens: int) -> float:
    """Return the recorded learning rate with the lowest loss of seed 0.

    Raises:
        ValueError: for a size and a number of tokens that are not recorded.
    """
    if not (tried := sweep(size, tokens)):
        known = sorted({row["tokens"] for row in where(read("scaling_ladder"), size=size)})
        raise ValueError(f"tokens={tokens} is not recorded for {size=}; {known} are")
    return min(tried, key=tried.get)


def fitted_points() -> list[LadderPoint]:
    """Return the recorded points with enough steps for a power law: `FITTED_FROM` tokens or more."""
    return [point for point in recorded_points() if point.tokens >= FITTED_FROM]


def fit_points(points: list[LadderPoint], **options) -> LossSurface:
    """Fit the loss surface to some points; the options are those of `fit_loss_surface`."""
    sizes, tokens = [p.parameters for p in points], [p.tokens for p in points]
    return fit_loss_surface(sizes, tokens, [p.loss for p in points], **options)


@cache
def recorded_surface() -> LossSurface:
    """Return the loss surface fitted to the `fitted_points` by least squares of the logarithms."""
    return fit_points(fitted_points(), delta=10)


def resampled_surfaces(
    points: list[LadderPoint], *, samples: int = 100, seed: int = 0
) -> list[LossSurface]:
    """Fit the surface again and again, to the means of seeds drawn with replacement at every point.

    The spread of their exponents is the bootstrap interval from seed to seed. Which points are fitted can matter
    more than which seeds.
    """
    draw, start, surfaces = random.Random(seed), fit_points(points), []
    for _ in range(samples):
        drawn = [p._replace(losses=draw.choices(p.losses, k=len(p.losses))) for p in points]
        surfaces.append(fit_points(drawn, start=start))
    return surfaces


def pairs(largest_run: float = LARGEST_RUN) -> list[tuple[str, int]]:
    """Return all sizes and numbers of tokens of the ladder: the smallest run of each size, then small runs first."""
    flops: dict[tuple[str, int], float] = {}
    first = set()
    for size in SIZES:
        count = parameter_count(ladder_config(size)).total
        fitting = [tokens for tokens in TOKENS if RATIOS[0] <= tokens / count <= RATIOS[1]]
        flops |= {(size, tokens): 6.0 * count * tokens for tokens in fitting}
        first.add((size, fitting[0]))
    ordered = sorted(flops, key=lambda pair: (pair not in first, flops[pair]))
    return [pair for pair in ordered if flops[pair] <= largest_run]


def plan(rows: list[dict]) -> Iterator[dict]:
    """Find the best learning rate of every pair with seed 0, then train with the other seeds.

    A sweep begins with the best learning rate for half as many tokens, and its half.
    """
    todo = pairs()
    for size, tokens in todo:
        half = {"size": size, "tokens": tokens // 2}
        if (size, tokens // 2) in todo and not where(rows, **half, seed=SEEDS - 1):
            continue  # until it is known where to begin
        before = sweep(**half, rows=rows)
        start = 2.0 ** round(math.log2(0.5 / SIZES[size][0]))
        start = min(before, key=before.get) if before else start
        tried = sweep(size, tokens, rows)
        if tried:
            best = min(tried, key=tried.get)
            ends = {min(tried): best / 2, max(tried): best * 2}
            lrs, seeds = ([ends[best]], [0]) if best in ends else ([best], range(SEEDS))
        else:
            lrs, seeds = [start, start / 2], [0]
        yield from grid(size=[size], tokens=[tokens], lr=lrs, seed=seeds)


def run(**setting) -> list[dict]:
    """Train once; return the held-out loss."""
    return [{"loss": train_size(**setting)}]


if __name__ == "__main__":
    fill("scaling_ladder", run, plan, __doc__, spec=".5f")
