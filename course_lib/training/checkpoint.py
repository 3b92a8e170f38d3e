"""A file with everything that training needs to go on after a kill."""

from collections.abc import Iterator, Mapping
from itertools import zip_longest
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.inputs import require_whole, short_name
from course_lib.training.evaluation import Evaluation
from course_lib.training.history import History
from course_lib.training.step import Stepper
from course_lib.training.storage import read, write


class Checkpoint:
    """The file of one training run: tensors and plain containers, and nothing that runs when read.

    It holds the weights, the state of the optimizer, of the random generators and of the evaluation,
    the history, why training stopped (None: it did not), and the settings that a run which goes on must
    share.

    Args:
        path: the file; its folder must exist.
        every: save every so many steps.
        settings: name → what came to `fit`.
        stepper, evaluation, history: whose state is written and put back.

    Raises:
        ValueError: for a path where no file can be, and a model whose state is not all tensors.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        every: int,
        settings: Mapping[str, object],
        stepper: Stepper,
        evaluation: Evaluation,
        history: History,
    ) -> None:
        require_whole(save_every=every)
        self.path, self.every = Path(path), every
        if self.path.is_dir() or not self.path.parent.is_dir():
            raise ValueError(f"save_to={str(path)!r} must be a file in a folder that exists")
        for name, value in stepper.model.state_dict().items():
            if not isinstance(value, Tensor):
                raise ValueError(
                    f"model has a {type(value).__name__} as {name} in its state; save_to needs tensors"
                )
        self.settings = {name: _plain(value) for name, value in settings.items()}
        self.settings["device"] = stepper.device.type
        self._stepper, self._evaluation, self._history = stepper, evaluation, history

    def save(self, stopped: str | None) -> None:
        """Write the file; killed meanwhile, the one before it is still there, and whole."""
        stepper = self._stepper
        state = {
            "settings": self.settings,
            "layout": _layout(stepper.model),
            "weights": stepper.model.state_dict(),
            "optimizer": stepper.optimizer.state_dict(),
            "evaluation": self._evaluation.state(),
            "history": vars(self._history) | {"stopped": stopped},
            "random": _random_state(stepper.device),
        }
        write(self.path, state)

    def load(self, source: Iterator[Any], steps: int) -> str | None:
        """Put everything back, and skip the batches of `source` that were used.

        Returns:
            Why training stopped; None where it is to go on.

        Raises:
            ValueError: unless the file was written with the same settings and at most `steps` steps.
        """
        state = read(self.path)
        self._require_same(state)
        history, stepper = state["history"], self._stepper
        done, stopped = len(history["losses"]), history["stopped"]
        if done > steps:
            raise ValueError(
                f"steps={steps}, but {self.path} has {done} steps; it must be {done} or more"
            )
        stepper.model.load_state_dict(state["weights"])
        stepper.optimizer.load_state_dict(state["optimizer"])
        vars(self._evaluation).update(state["evaluation"])
        vars(self._history).update(history)
        if stopped in (None, "steps"):
            stopped = "steps" if done == steps else None
        if stopped is None:
            for step in range(1, done + 1):
                stepper.batches(source, step)
        _set_random_state(state["random"], stepper.device)
        return stopped

    def _require_same(self, state: dict) -> None:
        otherwise = "resume with what it was written with, or start anew with resume=False"
        for name, came in self.settings.items():
            if state["settings"][name] != came:
                raise ValueError(
                    f"{name}={came!r}, but {self.path} has {name}={state['settings'][name]!r}; {otherwise}"
                )
        pairs = zip_longest(_layout(self._stepper.model), state["layout"], fillvalue="nothing more")
        for came, had in pairs:
            if came != had:
                raise ValueError(f"model has {came}, but {self.path} has {had}; {otherwise}")


def _random_state(device: torch.device) -> dict[str, Tensor]:
    """Of PyTorch's generators, on the CPU and on a device that is CUDA."""
    state = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        state["cuda"] = torch.cuda.get_rng_state(device)
    return state


def _set_random_state(state: dict[str, Tensor], device: torch.device) -> None:
    torch.set_rng_state(state["cpu"])
    if "cuda" in state:
        torch.cuda.set_rng_state(state["cuda"], device)


def _plain(value: object) -> object:
    """A setting as a number, a word or None; of a function no more than that it is one."""
    if callable(value):
        return "a function"
    if isinstance(value, Real) and not isinstance(value, bool):
        return int(value) if isinstance(value, Integral) else float(value)
    return value


def _layout(model: nn.Module) -> list[str]:
    """Name, dtype and shape of every tensor; for one that has a second name, its first."""
    lines, first = [], {}
    for name, value in model.state_dict(keep_vars=True).items():
        known = first.setdefault(id(value), name)
        same = known if known != name else f"{short_name(value.dtype)} {tuple(value.shape)}"
        lines.append(f"{name}: {same}")
    return lines
