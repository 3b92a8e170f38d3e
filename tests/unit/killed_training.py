"""Train and be killed, for `test_training_resume`.

`python killed_training.py train FILE RESULT` trains to the end and writes losses, scores and weights.
`python killed_training.py kill FILE` starts the same training over and over, each in a process of its
own, and kills it at one step after the other, and before and after it puts a saved file in its place.
"""

import os
import signal
import sys

import torch
from torch import nn

from course_lib.training import fit

STEPS, SAVE_EVERY = 14, 3
PRECISIONS = ("float32", "bfloat16")


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


def train(file, precision, rate=lambda step: 0.05 / step, **settings):
    """Train, or go on."""
    model = Tied()
    history = fit(
        model,
        Batches(),
        loss,
        **{"steps": STEPS, "rate": rate, "clip": 0.5, "accumulate": 2, "weight": len, "every": 2}
        | {"evaluate": score, "patience": 9, "precision": precision, "seed": 3}
        | {"save_to": f"{file}.{precision}", "save_every": SAVE_EVERY, "resume": True}
        | settings,
    )
    return model, history


def die():
    """As when the power goes."""
    os.kill(os.getpid(), signal.SIGKILL)


def killed(where, at, file, precision):
    """Train in a child until it kills itself; say by which signal it ended."""
    if child := os.fork():
        return os.WTERMSIG(os.waitpid(child, 0)[1])
    now, replace = [0], os.replace

    def rate(step):
        now[0] = step
        if (where, at) == ("at the step", step):
            die()
        return 0.05 / step

    def put_in_place(part, whole):
        if (where, at) == ("before the replace", now[0]):
            die()
        replace(part, whole)
        if (where, at) == ("after the replace", now[0]):
            die()

    os.replace = put_in_place
    torch.rand(at)  # what was drawn before must not matter
    train(file, precision, rate)
    os._exit(1)  # it was to be killed


def main(what, file, result=None):
    """Do as the command line says."""
    if what == "train":
        results = {}
        for precision in PRECISIONS:
            model, history = train(file, precision)
            results[precision] = [history.losses, history.scores, model.state_dict()]
        torch.save(results, result)
        return
    for precision in PRECISIONS:
        train(f"{file}.warm", precision)  # loads what PyTorch loads late, once for all children
        for step in range(1, STEPS + 1):
            saves = ("before the replace", "after the replace") if step % SAVE_EVERY == 0 else ()
            for where in ("at the step", *saves):
                assert killed(where, step, file, precision) == signal.SIGKILL, (where, step)
        assert killed("before the replace", STEPS, file, precision) == signal.SIGKILL
        assert os.path.exists(f"{file}.{precision}.part")


if __name__ == "__main__":
    main(*sys.argv[1:])
