"""Dequantised weights in the user's cache directory: a safetensors file that is either whole or not there."""

import contextlib
import json
import os
import warnings
from collections.abc import Mapping
from pathlib import Path

import platformdirs
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from course_lib.topics.pretrained.weights_file import SHA256
from course_lib.validation import short_name


def cache_file(dtype: torch.dtype) -> Path:
    """Return where the weights are stored."""
    folder = platformdirs.user_cache_path("attention-course", appauthor=False)
    return folder / f"smollm2-{SHA256[:12]}-{short_name(dtype)}.safetensors"


def load(path: Path, shapes: Mapping[str, torch.Size]) -> tuple[dict[str, Tensor] | None, dict]:
    """Return weights of these shapes and the plain data of the tokenizer; None and {} where there are none."""
    try:
        with safe_open(path, "pt") as file:
            weights = {name: _aligned(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118
            tokenizer = json.loads(file.metadata()["tokenizer"])
    except Exception:  # damaged bytes may mislead a reader into any error
        return None, {}
    if {name: weight.shape for name, weight in weights.items()} != dict(shapes):
        return None, {}
    return weights, tokenizer


def _aligned(weight: Tensor) -> Tensor:
    """Copy bfloat16 weights out of the mapped file: from an aligned address, products are an eighth faster."""
    return weight.clone() if weight.dtype == torch.bfloat16 else weight


def store(path: Path, weights: dict[str, Tensor], tokenizer: dict) -> None:
    """Write the file, or warn: where there is no space, the next call dequantises again."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        save_file(weights, part, {"tokenizer": json.dumps(tokenizer)})
        os.replace(part, path)
    except Exception as error:  # safetensors has errors of its own for a full disk
        warnings.warn(
            f"The dequantised weights could not be stored in {str(path.parent)!r} ({error}). The model works, "
            f"but takes some seconds more to load each time.",
            stacklevel=4,
        )
    finally:
        with contextlib.suppress(OSError):
            part.unlink()
