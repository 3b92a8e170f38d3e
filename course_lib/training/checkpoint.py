"""A file with everything that training needs to resume after it was killed."""

from collections.abc import Iterator
from dataclasses import fields
from itertools import zip_longest
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.training.config import TrainingConfig
from course_lib.training.evaluation import Evaluation, Evaluator
from course_lib.training.history import History
from course_lib.training.step import next_batches
from course_lib.training.storage import read, write
from course_lib.validation import short_name

_FREE = {"checkpoint_path", "checkpoint_every", "resume"}  # may differ from run to run


class Checkpoint:
    """The checkpoint file of one training: tensors and plain containers, so reading it runs no code.

    It holds the weights, the state of the optimizer, of the random generators and of the evaluation,
    the history, and the settings that a training which resumes must share. Without
    `config.checkpoint_path` nothing is written or read. `settings` are those of `fit` that `config` lacks.
    """

    def __init__(
        self,
        config: TrainingConfig,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        evaluator: Evaluator,
        history: History,
        **settings: object,
    ) -> None:
        self.config, self.model, self.optimizer = config, model, optimizer
        self.evaluator, self.history = evaluator, history
        self.device = next(model.parameters()).device
        settings |= _settings(config, evaluator.evaluation) | {"device": self.device.type}
        self.settings = {name: _plain(value) for name, value in settings.items()}
        self.optimizer_layout = _optimizer_layout(optimizer, with_lr=settings["lr"] is None)
        path = config.checkpoint_path
        if path is not None and not config.resume and Path(path).exists():
            read(Path(path))  # overwrite a checkpoint, and no other file

    def save(self) -> None:
        """Write the file if it is due; killed meanwhile, the previous file is still whole."""
        path, step = self.config.checkpoint_path, len(self.history.losses)
        due = self.history.stopped or step % self.config.checkpoint_every == 0
        if path is None or not due:
            return
        state = {
            "settings": self.settings,
            "model layout": _model_layout(self.model),
            "optimizer layout": self.optimizer_layout,
            "weights": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "evaluation": self.evaluator.state_dict(),
            "history": vars(self.history),
            "random": _random_state(self.device),
        }
        write(Path(path), state)

    def resume(self, source: Iterator[Any], steps: int) -> None:
        """Put everything back if the file exists, and skip the batches of `source` that were used.

        Raises:
            ValueError: unless the file was written with the same settings and at most `steps` steps.
        """
        path = self.config.checkpoint_path
        if not self.config.resume or not Path(path).exists():
            return
        state = read(Path(path))
        self._compare(state)
        self._require_parts(state)
        done, stopped = len(state["history"]["losses"]), state["history"]["stopped"]
        if done > steps:
            raise ValueError(
                f"steps={steps}, but {path} has {done} steps; it must be {done} or more"
            )
        self.model.load_state_dict(state["weights"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.evaluator.load_state_dict(state["evaluation"])
        vars(self.history).update(state["history"])
        if stopped in (None, "steps"):
            self.history.stopped = "steps" if done == steps else None
        if self.history.stopped is None:
            for step in range(1, done + 1):
                next_batches(source, self.config.gradient_accumulation_steps, step)
        _set_random_state(state["random"], self.device)

    def _require_parts(self, state: dict) -> None:
        """Refuse a file that lacks something, before anything is overwritten."""
        parts = {
            "weights": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "evaluation": self.evaluator.state_dict(),
            "history": vars(self.history),
            "random": _random_state(self.device),
        }
        for name, needed in parts.items():
            missing = needed.keys() - state[name].keys()
            if missing:
                raise ValueError(
                    f"{self.config.checkpoint_path} lacks {min(missing)!r} in its {name}; start anew with "
                    f"resume=False"
                )

    def _compare(self, state: dict) -> None:
        """Refuse a file that another model, optimizer or setting has written."""
        path = self.config.checkpoint_path
        otherwise = "resume with what it was written with, or start anew with resume=False"
        for name, came in self.settings.items():
            if state["settings"][name] != came:
                raise ValueError(
                    f"{name}={came!r}, but {path} has {name}={state['settings'][name]!r}; {otherwise}"
                )
        layouts = {"model": _model_layout(self.model), "optimizer": self.optimizer_layout}
        for what, layout in layouts.items():
            pairs = zip_longest(layout, state[f"{what} layout"], fillvalue="nothing more")
            for came, had in pairs:
                if came != had:
                    raise ValueError(f"{what} has {came}, but {path} has {had}; {otherwise}")


def _settings(config: TrainingConfig, evaluation: Evaluation | None) -> dict[str, object]:
    """Return by name what must be the same when training resumes."""
    names = [field.name for field in fields(config) if field.name not in _FREE]
    settings = {name: getattr(config, name) for name in names}
    return settings | {
        field.name: getattr(evaluation, field.name, None) for field in fields(Evaluation)
    }


def _plain(value: object) -> object:
    """Return a setting as a number, a string or None; of a function no more than that it is one."""
    if callable(value):
        return "a function"
    if isinstance(value, Real) and not isinstance(value, bool):
        return int(value) if isinstance(value, Integral) else float(value)
    return value


def _model_layout(model: nn.Module) -> list[str]:
    """Name, dtype and shape of every tensor; for one that has a second name, its first."""
    lines, first = [], {}
    for name, value in model.state_dict(keep_vars=True).items():
        known = first.setdefault(id(value), name)
        same = known if known != name else f"{short_name(value.dtype)} {tuple(value.shape)}"
        lines.append(f"{name}: {same}")
    return lines


def _optimizer_layout(optimizer: torch.optim.Optimizer, *, with_lr: bool) -> list[str]:
    """Class and hyperparameters; `with_lr` where the optimizer's own learning rate is used."""
    lines = [f"class {type(optimizer).__name__}"]
    for number, group in enumerate(optimizer.param_groups):
        lines.append(f"{len(group['params'])} parameters in group {number}")
        names = [name for name in group if name not in ("params", *([] if with_lr else ["lr"]))]
        lines += [f"{name}={group[name]!r} in group {number}" for name in names]
    return lines


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
