"""The folder of a run: settings, subwords, a checkpoint to continue from, weights to use, and what was measured."""

import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, load_model, save_file
from torch import Tensor, nn

from course_lib.data.subwords import Subwords
from course_lib.train.settings import Settings
from course_lib.train.translator import SubwordTranslator
from course_lib.transformer import Transformer

FORMAT = "course_lib.train, 1"


class RunFolder:
    """The files of a run; none is ever replaced before the new one is complete.

    Args:
        path: made if it does not exist.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.settings, self.subwords = self.path / "settings.json", self.path / "subwords.json"
        self.checkpoint = self.path / "checkpoint.pt"
        self.model, self.result = self.path / "model.safetensors", self.path / "result.json"

    def start(self, settings: Settings, subwords: Subwords) -> None:
        """Write what stays the same."""
        self.path.mkdir(parents=True, exist_ok=True)
        _replace(self.subwords, subwords.write)
        _replace(self.settings, settings.write)

    def holds_a_run(self) -> bool:
        """Whether anything was trained here."""
        weights = (
            one for kind in ("step", "average") for one in self.path.glob(f"{kind}-*.safetensors")
        )
        return any(one.exists() for one in (self.checkpoint, self.model, *weights))

    def require_usable(self, resume: bool) -> None:
        """Refuse a path that can be no folder, and one with a run that nobody wants to continue.

        Raises:
            ValueError: says which.
        """
        made = next(one for one in (self.path, *self.path.absolute().parents) if one.exists())
        if not made.is_dir() or not os.access(made, os.W_OK):
            raise ValueError(f"{made} is no folder that can be written to; name another --folder")
        if self.holds_a_run() and not resume:
            raise ValueError(
                f"{self.path} holds a run already; continue it with --resume, or name another --folder"
            )

    def save(self, state: dict[str, Any]) -> None:
        """Write the checkpoint."""
        _replace(self.checkpoint, lambda path: torch.save({"format": FORMAT, **state}, path))

    def load(self) -> dict[str, Any] | None:
        """Return what `save` wrote; None before the first time.

        Raises:
            ValueError: for a damaged file.
        """
        if not self.checkpoint.exists():
            return None
        return read(self.checkpoint)

    def weights(self, step: int) -> Path:
        """Return the file of the weights after a step."""
        return self.path / f"step-{step:07d}.safetensors"

    def save_weights(self, model: nn.Module, step: int, keep: int) -> None:
        """Write the weights after a step; only the last `keep` of such files stay."""
        write_weights(model, self.weights(step))
        self._keep("step", keep)

    def save_for_average(self, model: nn.Module, step: int, keep: int) -> None:
        """Write the weights after a step, to be averaged with those of the calls before; the last `keep` stay."""
        write_weights(model, self.path / f"average-{step:07d}.safetensors")
        self._keep("average", keep)

    def average(self) -> dict[str, Tensor]:
        """Return the mean of the weights that were saved for it."""
        kept = [load_file(path) for path in sorted(self.path.glob("average-*.safetensors"))]
        return {name: sum(one[name] for one in kept) / len(kept) for name in kept[0]}

    def translator(self) -> SubwordTranslator:
        """Return the trained model: the kept weights, or before the end of the run the newest.

        Raises:
            ValueError: where nothing was trained yet, and for a damaged file.
        """
        newest = [self.model] if self.model.exists() else sorted(self.path.glob("step-*"))[-1:]
        if not newest:
            raise ValueError(
                f"{self.path} holds no trained model; make one with python -m course_lib.train --folder {self.path}"
            )
        subwords = Subwords.read(self.subwords)
        model = Transformer(Settings.read(self.settings).model_config(len(subwords)))
        try:
            load_model(model, newest[0])
        except (RuntimeError, SafetensorError) as error:
            raise ValueError(f"{newest[0]} does not fit, or is damaged: {error}") from None
        return SubwordTranslator(model.eval(), subwords)

    def _keep(self, kind: str, count: int) -> None:
        for old in sorted(self.path.glob(f"{kind}-*.safetensors"))[:-count]:
            old.unlink()

    def write_result(self, result: dict[str, Any]) -> None:
        """Write what was measured, as JSON."""
        text = json.dumps(result, indent=1, ensure_ascii=False) + "\n"
        _replace(self.result, lambda path: path.write_text(text, encoding="utf-8"))


def write_weights(model: nn.Module, path: Path) -> None:
    """Write a model's weights; a matrix that several layers share is written once."""
    seen: set[int] = set()
    weights = {}
    for name, tensor in model.state_dict().items():
        if tensor.data_ptr() not in seen:
            seen.add(tensor.data_ptr())
            weights[name] = tensor.contiguous()
    _replace(path, lambda part: save_file(weights, part))


def _replace(path: Path, write: Callable[[Path], Any]) -> None:
    """Write beside the file, and put it into its place when it is whole."""
    part = path.with_name(f"{path.name}.part")
    try:
        write(part)
        with open(part, "rb") as file:
            os.fsync(file.fileno())
        os.replace(part, path)
    except (
        OSError,
        RuntimeError,
    ) as error:  # torch.save and safetensors raise RuntimeErrors on a full disk
        kept = f"; the file before it is intact: {path}" if path.exists() else ""
        raise OSError(f"{path} could not be written ({error}){kept}") from error
    finally:
        part.unlink(missing_ok=True)


def read(path: Path) -> dict[str, Any]:
    """Return what was written; nothing in the file is run.

    Args:
        path: of the file.

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
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        writer = FORMAT.partition(",")[0].rpartition(".")[2]
        raise ValueError(
            f"{str(path)!r} is no checkpoint of {writer}, or is damaged; delete it, or name another file or folder"
        )
    return state
