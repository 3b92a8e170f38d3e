"""Draw every picture in `img/`: ``python -m course_lib.workshop.pictures``."""

from collections.abc import Callable
from pathlib import Path

from course_lib.data import nile_series
from course_lib.widgets import kernel_regression_explorer

IMAGES = Path(__file__).parents[2] / "img"


def _kernel_regression_explorer() -> bytes:
    explorer = kernel_regression_explorer(nile_series(), bandwidth=5.0, query=1899.0)
    return explorer.picture.figure.svg(explorer.summary)


#: File name in `img/` → what draws it.
PICTURES: dict[str, Callable[[], bytes]] = {
    "kernel_regression_explorer.svg": _kernel_regression_explorer,
}


def main() -> None:
    """Draw them all."""
    IMAGES.mkdir(exist_ok=True)
    for name, draw in PICTURES.items():
        (IMAGES / name).write_bytes(draw())
        print(f"img/{name}")


if __name__ == "__main__":
    main()
