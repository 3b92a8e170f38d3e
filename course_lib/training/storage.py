"""Plain data in a file that is either whole or not there."""

import os
import zipfile
from pathlib import Path

import torch

FORMAT = "course_lib.training.fit, 2"


def write(path: Path, state: dict) -> None:
    """Write tensors and plain containers; killed meanwhile, the file before it is still there."""
    part = path.with_name(path.name + ".part")
    try:
        with open(part, "wb") as file:
            torch.save({"format": FORMAT} | state, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def read(path: Path) -> dict:
    """Return what was written; nothing in the file is run.

    Raises:
        ValueError: for a file that is damaged, or was written by something else.
    """
    try:
        with zipfile.ZipFile(path) as archive:  # torch.load does not look at the checksums
            broken = archive.testzip()
        state = None if broken else torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, MemoryError):
        raise
    except Exception:  # damaged bytes may mislead a reader into any error
        state = None
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise ValueError(
            f"{str(path)!r} is no checkpoint of fit, or is damaged; start anew with resume=False, which "
            f"overwrites it, or name another file as checkpoint_path"
        )
    return state
