"""A colour bar for a map whose scale changes while the map stays where it is."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap

from course_lib.plots.panel import short

WIDTH = 0.035  # of the bar, as a share of the map
_SPACE = 0.02  # between map and bar
_STEPS = 64


class ColourBar:
    """A bar to the right of a map that fills 0 to 1, with a number at its lower end, middle and upper end.

    Only its numbers change. `artists` are static artists of the map's panel, so that they vanish with the map.

    Args:
        axes: of the map, with row 0 at the top.
        colours: a matplotlib colour map, or its name.
        label: what the numbers are.
    """

    def __init__(self, axes: Axes, colours: Colormap | str, label: str) -> None:
        left = 1 + _SPACE
        strip = axes.pcolormesh(
            [left, left + WIDTH],
            np.linspace(1, 0, _STEPS + 1),
            np.linspace(0, 1, _STEPS)[:, None],
            cmap=colours,
            clip_on=False,
        )
        right, style = left + WIDTH + 0.012, {"fontsize": 9, "clip_on": False}
        self.texts = [
            axes.text(right, height, "", va=align, **style)
            for height, align in ((1, "bottom"), (0.5, "center"), (0, "top"))
        ]
        name = axes.text(left, 1.015, label, va="top", ha="left", **style)
        self.artists = [strip, name, *self.texts]

    def show(self, numbers: Sequence[float]) -> None:
        """Write other numbers: at the lower end, in the middle, at the upper end."""
        for text, number in zip(self.texts, numbers, strict=True):
            text.set_text(short(float(f"{number:.2g}")))

    def numbers(self) -> tuple[str, ...]:
        """Return the numbers as written."""
        return tuple(text.get_text() for text in self.texts)
