"""Which written dates does an encoder-decoder get wrong, and what happens after its first mistake?

Models with and without attention are trained on dates as in `bottleneck`, each arm at its best learning rate there::

    python -m course_lib.experiments.date_styles

trains each arm of `ARMS` from three seeds and evaluates it on held-out days in every format of training. One arm gets
additional Swedish dates in training, the only format that starts with the year.
"""

import random
from datetime import timedelta
from functools import cache
from itertools import chain
from typing import NamedTuple

import torch
from torch import Tensor

from course_lib.data import DATE_STYLES, HELD_OUT_STYLE, pad, write_date
from course_lib.data.dates import FIRST_DAY, LAST_DAY, WrittenDate, is_held_out
from course_lib.experiments.bottleneck import (
    FIELDS,
    SEEDS,
    date_pairs,
    encode_dates,
    right_tokens,
    train_model,
)
from course_lib.experiments.runs import fill, grid
from course_lib.topics.recurrent import Seq2Seq

#: The format that is ISO 8601 already.
ISO_STYLE = ("sv", "short")
#: Held-out days in every format of the test, and further Swedish dates in training.
DAYS, FURTHER = 150, 1650


class Arm(NamedTuple):
    """What is trained: a decoder, its budget and learning rate, and how many Swedish dates are added."""

    decoder: str
    steps: int
    lr: float
    further: int = 0


ARMS = {
    "fixed context, 750 steps": Arm("fixed context", 750, 0.02),
    "fixed context, 3000 steps": Arm("fixed context", 3000, 0.02),
    "fixed context, 750 steps, more Swedish": Arm("fixed context", 750, 0.02, FURTHER),
    "Bahdanau, 220 steps": Arm("Bahdanau", 220, 0.01),
    "Bahdanau, 750 steps": Arm("Bahdanau", 750, 0.01),
}


def days(held_out: bool, count: int, seed: int = 0) -> list:
    """Sample days that training has, or has not, seen."""
    every = (FIRST_DAY + timedelta(n) for n in range((LAST_DAY - FIRST_DAY).days + 1))
    return random.Random(seed).sample([day for day in every if is_held_out(day) == held_out], count)


def training_pairs(further: int) -> tuple[list[Tensor], list[Tensor]]:
    """Return the 20,000 pairs of training, and so many further Swedish dates."""
    pairs = date_pairs("train", 20_000)
    added = encode_dates([write_date(day, *ISO_STYLE) for day in days(False, further)])
    return tuple([*old, *new] for old, new in zip(pairs, added, strict=True))


@cache
def tests() -> dict[str, list[WrittenDate]]:
    """Return the test: "language style" → the same held-out days in each format of training."""
    held_out = days(True, DAYS)
    styles = [style for style in DATE_STYLES if style != HELD_OUT_STYLE]
    return {" ".join(style): [write_date(day, *style) for day in held_out] for style in styles}


def by_style(model: Seq2Seq) -> dict[str, float]:
    """Return the exact-match accuracy of each format, "language style" → a share."""
    found = {name: right_tokens(model, *encode_dates(dates)) for name, dates in tests().items()}
    return {name: right.all(dim=1).float().mean().item() for name, right in found.items()}


@torch.no_grad()
def exposure(model: Seq2Seq) -> dict[str, list[float]]:
    """Return three accuracies by teacher forcing, and the same by autoregressive decoding.

    They are those of the characters after the first mistake (None without one), of all characters, and of whole dates.
    The first mistake is the same in both.
    """
    sources, targets = encode_dates(list(chain(*tests().values()))[::7])
    source, labels = pad(sources), pad(targets)[:, 1:]
    forced = model(source, pad(targets)[:, :-1]).logits.argmax(dim=-1) == labels
    free = right_tokens(model, sources, targets)
    wrong = (~forced).long()
    after = wrong.cumsum(dim=1) - wrong > 0  # (date, character)
    parts = {}
    for name, right in {"teacher forcing": forced, "autoregressive": free}.items():
        later = right[after].float().mean().item() if after.any() else None
        parts[name] = [later, right.float().mean().item(), right.all(dim=1).float().mean().item()]
    return parts


def run(arm: str, seed: int) -> list[dict]:
    """Train and evaluate one model."""
    decoder, steps, lr, further = ARMS[arm]
    pairs = training_pairs(further) if further else None
    model = train_model("dates", decoder, steps=steps, lr=lr, seed=seed, pairs=pairs)
    dates = tests()[" ".join(ISO_STYLE)]
    right = right_tokens(model, *encode_dates(dates))
    wrong = [(~right[:, digits].all(dim=1)).float().mean().item() for digits in FIELDS.values()]
    return [{"styles": by_style(model), "Swedish fields wrong": wrong, "exposure": exposure(model)}]


PLAN = grid(arm=ARMS, seed=SEEDS)

if __name__ == "__main__":
    fill("date_styles", run, PLAN, __doc__, spec=".4f")
