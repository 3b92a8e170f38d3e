"""Train and be killed, for `test_training_resume`.

`python -m tests.helpers.killed_training FILE` starts the same training again and again, each in its own process,
and kills it at one step after the other, and before and after it replaces a checkpoint.
"""

import os
import signal
import sys
from dataclasses import fields

import torch
from torch import nn

from course_lib.train import Evaluation, TrainingConfig, fit

STEPS, SAVE_EVERY = 14, 3
RUNS = ("float32", "bfloat16", "momentum")  # the last one with an optimizer of the caller's


class Tied(nn.Module):
    """Dropout, a buffer that learns, and one matrix under two names."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.first, self.norm, self.last = nn.Linear(6, 6), nn.BatchNorm1d(6), nn.Linear(6, 6)
        self.last.weight = self.first.weight
        self.dropout = nn.Dropout(0.3)

    def forward(self, x):
        return self.last(self.dropout(self.norm(self.first(x)).relu()))


class Batches:
    """Fresh noise from the global generator on numbers that are the same each time."""

    def __iter__(self):
        own = torch.Generator().manual_seed(1)
        while True:
            x = torch.randn(int(torch.randint(3, 9, (), generator=own)), 6, generator=own)
            yield x + 0.1 * torch.randn(x.shape)


def loss(model, x):
    """Learn to turn the numbers around."""
    return (model(x) - x.flip(-1)).float().square().mean()


def score(model):
    """Falls in the end, so that the best weights are not the last; draws random numbers."""
    return -abs(model.last.bias[0].item() - 0.04) + 1e-6 * torch.rand(()).item()


def train(file, run, lr=lambda step: 0.05 / step, **changed):
    """Train, or resume; settings that change may be those of `fit` or of its two configurations."""
    model = Tied()
    settings = {"steps": STEPS, "lr": lr, "seed": 3, "evaluate": score, "every": 2, "patience": 9}
    settings |= {"max_grad_norm": 0.5, "gradient_accumulation_steps": 2, "token_count": len}
    settings |= {"precision": "bfloat16" if run == "bfloat16" else "float32", "resume": True}
    settings |= {"checkpoint_path": f"{file}.{run}", "checkpoint_every": SAVE_EVERY}
    if run == "momentum":
        settings["optimizer"] = torch.optim.SGD(model.parameters(), momentum=0.9)
    settings |= changed
    parts = [
        {one.name: settings.pop(one.name) for one in fields(kind) if one.name in settings}
        for kind in (Evaluation, TrainingConfig)
    ]
    evaluation = Evaluation(**parts[0]) if parts[0]["evaluate"] else None
    settings |= {"evaluation": evaluation, "config": TrainingConfig(**parts[1])}
    return model, fit(model, Batches(), loss, **settings)


def killed(where, at, file, run):
    """Train in a child until it kills itself; say by which signal it ended."""
    if child := os.fork():
        return os.WTERMSIG(os.waitpid(child, 0)[1])
    now, replace = [0], os.replace

    def reached(place):
        if (where, at) == (place, now[0]):
            os.kill(os.getpid(), signal.SIGKILL)  # as when the power goes

    def lr(step):
        now[0] = step
        reached("at the step")
        return 0.05 / step

    def put_in_place(part, whole):
        reached("before the replace")
        replace(part, whole)
        reached("after the replace")

    os.replace = put_in_place
    torch.rand(at)  # what was drawn before must not matter
    train(file, run, lr)
    os._exit(1)  # it was to be killed


def main(file):
    """Do as the command line says."""
    for run in RUNS:
        train(f"{file}.warm", run)  # loads what PyTorch loads late, once for all children
        for step in range(1, STEPS + 1) if run == "float32" else (2, 3, 10):
            saves = ("before the replace", "after the replace") if step % SAVE_EVERY == 0 else ()
            for where in ("at the step", *saves):
                assert killed(where, step, file, run) == signal.SIGKILL, (where, step)
        assert killed("before the replace", STEPS, file, run) == signal.SIGKILL
        assert os.path.exists(f"{file}.{run}.course_lib.part")


if __name__ == "__main__":
    main(*sys.argv[1:])
