"""Plain data in a file that is either whole or not there."""

import os
import zipfile
from pathlib import Path

import torch

FORMAT = "course_lib.training.fit, 2"
#: What every checkpoint has.
PARTS = {
    "settings",
    "model layout",
    "optimizer layout",
    "weights",
    "optimizer",
    "evaluation",
    "history",
    "random",
}


def write(path: Path, state: dict) -> None:
    """Write tensors and plain containers; killed meanwhile, the file before it is still there.

    Where `path` is a symbolic link, the file that it points to is written.
    """
    path = path.resolve()
    part = path.with_name(f"{path.name}.course_lib.part")  # a name that no other file has
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
    whole = isinstance(state, dict) and state.get("format") == FORMAT and state.keys() >= PARTS
    if not whole:
        raise ValueError(
            f"{str(path)!r} is no checkpoint of fit, or is damaged; delete it, or name another file as "
            f"checkpoint_path"
        )
    return state
