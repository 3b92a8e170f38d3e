"""How does the loss of a small language model change beyond the context length of its training?

A decoder-only Transformer with two blocks predicts the characters of Python's own reference manual (the text of
`help("assert")` and its like, which ships with Python as `pydoc_data`). It is trained on windows of 64 characters,
and its loss on the same held-out characters is measured with windows of 64, 128, 256 and 512::

    python -m course_lib.experiments.context_length

sweeps the learning rate of each encoding on seed 0, keeps the one with the lowest held-out loss at 64 characters, and
trains with it from three seeds for 800 steps; T5 is measured also after the untrained buckets got the bias of the last
trained one. Then it extends the context of the RoPE models to 256 characters, by position interpolation (of all pairs,
and of the fast or the slow ones alone) and by a larger base, before and after 100 steps of fine-tuning.
"""

import copy
import math
from collections.abc import Callable, Iterator
from functools import cache

import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Tensor

from course_lib.experiments.runs import fill, grid, read, where
from course_lib.train import fit, linear_schedule_with_warmup
from course_lib.transformer import DecoderOnly, TransformerConfig
from course_lib.transformer.positions import RotaryPositions, t5_bucket
from course_lib.transformer.positions.sinusoidal import frequencies
from course_lib.validation import require_one_of

ENCODINGS = ("none", "sinusoidal", "t5", "rotary", "alibi")
TRAINED, EXTENDED = 64, 256
FACTOR = EXTENDED / TRAINED
LENGTHS = (64, 128, 256, 512)
LEARNING_RATES = (1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
FINE_TUNING_RATES = (1e-3, 3e-3, 1e-2, 3e-2)
SEEDS = (0, 1, 2)
STEPS, FINE_TUNING_STEPS = 800, 100
_BATCH = 16 * TRAINED  # characters per training step
_SCORED = 32  # characters at the end of each window


@cache
def text() -> tuple[Tensor, Tensor, str]:
    """Return the characters for training and the held-out ones as whole numbers from 1, and the alphabet."""
    from pydoc_data.topics import topics  # half a megabyte, so only when it is needed

    whole = "\n".join(topics[name] for name in sorted(topics))
    alphabet = "".join(sorted(set(whole)))
    number = {character: n for n, character in enumerate(alphabet, start=1)}
    numbers = torch.tensor([number[character] for character in whole])
    return *numbers.tensor_split([int(0.9 * len(numbers))]), alphabet


def make_model(encoding: str) -> DecoderOnly:
    """Return an untrained model with two blocks, four heads and d_model = 64."""
    config = TransformerConfig(
        target_vocabulary=len(text()[2]) + 1,  # number 0 would be padding
        d_model=64,
        num_heads=4,
        decoder_layers=2,
        d_ff=128,
        dropout=0.0,
        norm="pre",
        positions=encoding,
    )
    return DecoderOnly(config)


def train(model: DecoderOnly, *, length: int, steps: int, lr: float, seed: int) -> None:
    """Train on windows of `length` characters, 1,024 characters a step."""
    training, _, _ = text()
    generator = torch.Generator().manual_seed(seed)

    def batches():
        while True:
            starts = torch.randint(
                len(training) - length, (_BATCH // length, 1), generator=generator
            )
            yield training[starts + torch.arange(length + 1)]

    def loss(model: DecoderOnly, window: Int[Tensor, "batch length"]) -> Tensor:
        return F.cross_entropy(model(window[:, :-1]).flatten(0, 1), window[:, 1:].flatten())

    def schedule(step: int) -> float:
        return linear_schedule_with_warmup(step, lr, steps, warmup=max(1, steps // 10))

    fit(model, batches(), loss, steps=steps, lr=schedule, seed=seed)


def trained(encoding: str, *, lr: float, seed: int = 0, steps: int = STEPS) -> DecoderOnly:
    """Train a new model on windows of 64 characters."""
    torch.manual_seed(seed)
    model = make_model(encoding)
    train(model, length=TRAINED, steps=steps, lr=lr, seed=seed)
    return model


def losses(
    model: DecoderOnly, *, count: int = 128, lengths: tuple[int, ...] = LENGTHS
) -> list[float]:
    """Return the loss in nats per character at each length, always of the same held-out characters.

    They are the last 32 of each of `count` windows; a longer window only adds characters before them.
    """
    _, held_out, _ = text()
    ends = torch.linspace(max(LENGTHS) + 1, len(held_out), count).long()
    return [_loss_at(model, held_out, ends, length) for length in lengths]


def _loss_at(model: DecoderOnly, held_out: Tensor, ends: Tensor, length: int) -> float:
    windows = held_out[ends[:, None] + torch.arange(-length - 1, 0)]  # (count, length + 1)
    total = 0.0
    for some in windows.split(16):
        with torch.no_grad():
            logits = model(some[:, :-1])[:, -_SCORED:]
        total += F.cross_entropy(logits.flatten(0, 1), some[:, -_SCORED:].flatten()).item() * len(
            some
        )
    return total / len(windows)


class InterpolatedRotary(RotaryPositions):
    """RoPE with positions divided by `scale`: position interpolation (Chen et al., 2023).

    `which` pairs are divided: "all" of them, those that are "fast" (they complete a rotation within the training
    length) or those that are "slow" (they do not).
    """

    def __init__(self, d_head: int, base: float = 10000.0, *, scale: float, which: str) -> None:
        super().__init__(d_head, base)
        fast = 2 * math.pi / frequencies(d_head, base) <= TRAINED  # (pair,)
        divided = {"all": torch.ones_like(fast), "fast": fast, "slow": ~fast}[which]
        self.frequencies = self.frequencies / (1 + (scale - 1) * divided.double())  # (pair,)


#: Name → from the dimension of a head to RoPE for a context that is `EXTENDED / TRAINED` times as long.
EXTENSIONS: dict[str, Callable[[int], RotaryPositions]] = {
    "unchanged": RotaryPositions,
    "position interpolation": lambda d: InterpolatedRotary(d, scale=FACTOR, which="all"),
    "larger base (NTK-aware)": lambda d: RotaryPositions(d, ntk_base(d, FACTOR)),
    "fast pairs interpolated": lambda d: InterpolatedRotary(d, scale=FACTOR, which="fast"),
    "slow pairs interpolated": lambda d: InterpolatedRotary(d, scale=FACTOR, which="slow"),
}


def ntk_base(d_head: int, scale: float, base: float = 10000.0) -> float:
    """Return the base that slows the slowest pair down by `scale`, and leaves the fastest as it is."""
    return base * math.pow(scale, d_head / (d_head - 2))


def extended(model: DecoderOnly, extension: str) -> DecoderOnly:
    """Return a copy of a RoPE model with other rotations; they have no parameters."""
    require_one_of(EXTENSIONS, extension=extension)
    model = copy.deepcopy(model)
    for block in model.blocks:
        attention = block.attention
        attention.positions = EXTENSIONS[extension](model.config.d_head)
    return model


def repaired(model: DecoderOnly) -> DecoderOnly:
    """Return a copy of a T5 model whose untrained buckets have the bias of the last one that was trained."""
    model = copy.deepcopy(model)
    last_trained = t5_bucket(torch.tensor(1 - TRAINED), bidirectional=False)
    for block in model.blocks:
        table = block.attention.positions.table.data  # (bucket, heads)
        table[last_trained + 1 :] = table[last_trained]
    return model


def recorded(measure: str = "loss", **arm: str) -> list[list[float]]:
    """Return what is recorded of an arm (`encoding=` or `extension=`): one list per seed, one loss per length."""
    return [row[measure] for row in where(read("context_length"), **arm)]


def run(encoding: str | None = None, extension: str | None = None) -> list[dict]:
    """Sweep the learning rate on the first seed; return it, and the losses of all seeds at the best one."""
    return _extended(extension) if encoding is None else _trained(encoding)


def _trained(encoding: str) -> list[dict]:
    swept = {lr: trained(encoding, lr=lr, seed=SEEDS[0]) for lr in LEARNING_RATES}
    lr = min(swept, key=lambda lr: losses(swept[lr], lengths=(TRAINED,)))
    rows = []
    for seed in SEEDS:
        model = swept[lr] if seed == SEEDS[0] else trained(encoding, lr=lr, seed=seed)
        rows.append({"lr": lr, "seed": seed, "loss": losses(model)})
        if encoding == "t5":
            rows[-1]["repaired"] = losses(repaired(model))
    return rows


def _extended(extension: str) -> list[dict]:
    """Extend the context of RoPE models; measure the losses before and after fine-tuning."""
    rotary = where(read("context_length"), encoding="rotary")[0]["lr"]
    models = {seed: extended(trained("rotary", lr=rotary, seed=seed), extension) for seed in SEEDS}

    def tuned(seed: int, lr: float) -> DecoderOnly:
        model = copy.deepcopy(models[seed])
        train(model, length=EXTENDED, steps=FINE_TUNING_STEPS, lr=lr, seed=100 + seed)
        return model

    swept = {lr: tuned(SEEDS[0], lr) for lr in FINE_TUNING_RATES}
    lr = min(swept, key=lambda lr: losses(swept[lr], lengths=(EXTENDED,)))
    return [
        {"lr": lr, "seed": seed, "before": losses(models[seed]), "after": losses(tuned(seed, lr))}
        for seed in SEEDS
    ]


def plan(rows: list[dict]) -> Iterator[dict]:
    """Train with each encoding; when that of RoPE is done, extend its context."""
    yield from grid(encoding=ENCODINGS)
    if where(rows, encoding="rotary"):
        yield from grid(extension=EXTENSIONS)


if __name__ == "__main__":
    fill("context_length", run, plan, __doc__, spec=".4f")
