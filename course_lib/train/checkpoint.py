"""A file with everything that a training needs to continue, bit for bit, after it was killed."""

import os
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import nn

from course_lib.validation import short_name

__all__: list[str] = []

FORMAT = "course_lib.train.fit, 3"
_FREE = ("checkpoint_path", "checkpoint_every", "resume")  # may differ from run to run


@dataclass
class Checkpoint:
    """What `fit` trains and remembers, and the file for it: tensors and plain values, no code.

    `settings` are those of `fit` by name; a training that resumes must share them.
    """

    path: str | Path
    model: nn.Module
    optimizer: torch.optim.Optimizer
    history: Any
    best: dict[str, Any]
    settings: dict[str, object]

    def __post_init__(self) -> None:
        self.path, self.device = Path(self.path).resolve(), next(self.model.parameters()).device
        if self.path.is_dir() or not self.path.parent.is_dir():
            raise ValueError(f"checkpoint_path='{self.path}' is no file in a folder that exists")
        if self.path.exists():
            read(self.path)  # overwrite a checkpoint, and no other file
        same = self.settings | {"device": self.device.type}
        for name, value in self.model.state_dict().items():
            same[f"model.{name}"] = f"{short_name(value.dtype)} {tuple(value.shape)}"
        same["optimizer"] = type(self.optimizer).__name__
        for number, group in enumerate(self.optimizer.param_groups):
            group = group | {"params": len(group["params"])}
            if same["lr"] is not None:
                del group["lr"]  # it is not used
            for name, value in group.items():
                same[f"optimizer.param_groups[{number}].{name}"] = value
        self.settings = {name: _plain(same[name]) for name in same if name not in _FREE}

    def save(self) -> None:
        """Write the file; killed meanwhile, the file before it is still whole."""
        state = {
            "format": FORMAT,
            "settings": self.settings,
            "weights": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "history": vars(self.history),
            "best": self.best,
            "random": torch.get_rng_state(),
        }
        if self.device.type == "cuda":
            state["random on CUDA"] = torch.cuda.get_rng_state(self.device)
        part = self.path.with_name(f"{self.path.name}.course_lib.part")  # no other file's name
        try:
            with open(part, "wb") as file:
                torch.save(state, file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, self.path)
        finally:
            part.unlink(missing_ok=True)

    def resume(self, source: Iterator[Any], batches_per_step: int, steps: int) -> None:
        """Put everything back, and skip the batches of `source` that were used."""
        state = read(self.path)
        for name in state["settings"] | self.settings:
            had, came = state["settings"].get(name), self.settings.get(name)
            if had != came:
                raise ValueError(
                    f"{name}={came!r}, but {self.path} has {name}={had!r}; resume with what it was "
                    f"written with, or start anew with resume=False"
                )
        done, stopped = len(state["history"]["losses"]), state["history"]["stopped"]
        if done > steps:
            raise ValueError(
                f"steps={steps}, but {self.path} has {done}; it must be {done} or more"
            )
        self.model.load_state_dict(state["weights"])
        self.optimizer.load_state_dict(state["optimizer"])
        vars(self.history).update(state["history"])
        self.best.update(state["best"])
        if stopped in (None, "steps"):  # not ended by a score
            self.history.stopped = "steps" if done == steps else None
        if self.history.stopped is None:
            for _ in islice(source, done * batches_per_step):
                pass
        torch.set_rng_state(state["random"])
        if self.device.type == "cuda":
            torch.cuda.set_rng_state(state["random on CUDA"], self.device)


def read(path: Path, written_as: str = FORMAT) -> dict[str, Any]:
    """Return what was written; nothing in the file is run.

    Args:
        path: of the file.
        written_as: the format that its writer put into it.

    Raises:
        ValueError: for a file that is damaged, or was written by something else.
    """
    try:
        with zipfile.ZipFile(path) as archive:  # torch.load does not look at the checksums
            damaged = archive.testzip()
        state = None if damaged else torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, MemoryError):
        raise
    except Exception:  # damaged bytes may mislead a reader into any error
        state = None
    if not isinstance(state, dict) or state.get("format") != written_as:
        writer = written_as.partition(",")[0].rpartition(".")[2]
        raise ValueError(
            f"{str(path)!r} is no checkpoint of {writer}, or is damaged; delete it, or name another file or folder"
        )
    return state


def _plain(value: Any) -> object:
    """Return a setting as plain Python; of a function no more than that it is one."""
    if callable(value):
        return "a function"
    return value.item() if hasattr(value, "item") else value
