"""A sentence in large type."""

from matplotlib.axes import Axes

from course_lib.plots.panel import Panel
from course_lib.plots.style import blank
from course_lib.plots.words import Words, fitted, width

_SIZES = range(22, 8, -1)  # points
_LINES, _STEP = 2, 1.35  # at most so many lines, and the height of one per size
_SMALLEST_LINE = 15  # points: a larger text has one line


class HeadlinePanel(Panel):
    """A text in the largest type that fits, on one line or two; the end of a longer one is cut.

    Args:
        axes: where to draw; its title says what the text is.
    """

    def __init__(self, axes: Axes) -> None:
        super().__init__(axes)
        blank(axes, (0, 1), (1, 0))
        self._words = Words(axes)
        self.artists = [self._words]
        self.text = ""

    def update(self, text: str) -> None:
        """Show another text."""
        self.text = text
        box = self.axes.get_window_extent()
        across, down = (side * 72 / self.axes.figure.dpi for side in (box.width, box.height))
        for size in _SIZES:
            lines = _broken(text, size, 0.98 * across)
            fits = len(lines) * _STEP * size <= down
            if len(lines) == 1 or (size <= _SMALLEST_LINE and len(lines) <= _LINES and fits):
                break
        lines[_LINES - 1 :] = [" ".join(lines[_LINES - 1 :])] * (len(lines) >= _LINES)
        lines = [fitted(line, size, 0.98 * across) for line in lines]
        middle = (len(lines) - 1) / 2
        places = [(0.01, 0.5 + (n - middle) * _STEP * size / down) for n in range(len(lines))]
        self._words.show(lines, places, size=size, align=0)

    def data(self) -> dict:
        """How many characters the text has."""
        return {"characters": [len(self.text)]}


def _broken(text: str, size: float, room: float) -> list[str]:
    """Break a text into lines between its words."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and width(longer, size) <= room:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines or [""]
