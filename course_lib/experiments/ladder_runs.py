"""How should the runs of a ladder be trained? With a schedule of their own or not, on new text or repeated text.

::

    python -m course_lib.experiments.ladder_runs

trains two sizes of `scaling_ladder` from three seeds (three minutes of CPU time): 16x2 at two peak learning rates, for
each of several numbers of steps as a run of its own, and longer runs that are evaluated at the same steps and stopped
at the last of them; 32x2, always 256 steps, on all the text they need, a quarter of it, and so on.
"""

from collections.abc import Iterable

import torch

from course_lib.data import docstring_text, text_windows
from course_lib.experiments.runs import fill, grid, read, where
from course_lib.experiments.scaling_ladder import (
    BATCH,
    LENGTH,
    SEEDS,
    WARMUP,
    best_lr,
    held_out_loss,
    ladder_config,
    next_byte_loss,
)
from course_lib.transformer import DecoderOnly

SCHEDULED, RATES = "16x2", (0.0625, 0.03125)
CHECKED = (64, 128, 256, 512, 1024)
#: Steps of the longer runs; they are evaluated at those of `CHECKED` up to their half.
LONG = (512, 2048)
REPEATED, STEPS, EPOCHS = "32x2", 256, (1, 4, 16, 64)


def train(
    size: str,
    steps: int,
    lr: float,
    seed: int,
    *,
    unique: int | None = None,
    checked: Iterable[int] = (),
) -> dict[int, float]:
    """Train with a schedule for `steps` steps, and return step → held-out loss.

    Args:
        size: one of `scaling_ladder.SIZES`.
        steps: after which the learning rate is 0.
        lr: the peak learning rate.
        seed: of the initialisation and the order of the text.
        unique: how many windows are read, again and again; all of them where left out.
        checked: the steps after which it is evaluated, the last of which ends the run; where empty, `steps`.
    """
    checked = tuple(checked) or (steps,)
    torch.manual_seed(seed)
    model = DecoderOnly(ladder_config(size))
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.99))
    windows = text_windows(docstring_text().training, LENGTH, seed=seed)[:unique]
    losses = {}
    for n in range(1, max(checked) + 1):
        rise, fall = n / (WARMUP * steps), (steps + 1 - n) / ((1 - WARMUP) * steps)
        optimizer.param_groups[0]["lr"] = lr * min(1, rise, fall)
        batch = windows[torch.arange(n * BATCH - BATCH, n * BATCH) % len(windows)]
        optimizer.zero_grad()
        next_byte_loss(model, batch).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if n in checked:
            losses[n] = held_out_loss(model)
    return losses


def losses(**setting) -> list[float]:
    """Return the recorded losses with these settings, one per seed."""
    return [row["loss"] for row in where(read("ladder_runs"), **setting)]


def run(size: str, steps: int, seed: int, lr: float | None = None, epochs: int = 1) -> list[dict]:
    """Train once; return the loss after the last step, and of a longer run those at the steps that are checked."""
    if size == REPEATED:
        lr, unique, checked = (
            best_lr(size, STEPS * BATCH * LENGTH),
            STEPS * BATCH // epochs,
            [steps],
        )
    else:
        unique = None
        checked = [n for n in CHECKED if n == steps or (steps in LONG and n <= steps / 2)]
    found = train(size, steps, lr, seed, unique=unique, checked=checked)
    return [{"step": step, "loss": loss} for step, loss in found.items()]


PLAN = (
    *grid(size=[SCHEDULED], lr=RATES, steps=sorted({*CHECKED, *LONG}), seed=range(SEEDS)),
    *grid(size=[REPEATED], steps=[STEPS], epochs=EPOCHS, seed=range(SEEDS)),
)

if __name__ == "__main__":
    fill("ladder_runs", run, PLAN, __doc__, spec=".4f")
