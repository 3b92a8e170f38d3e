"""Sure, possible and predicted links between the words of a sentence and its translation."""

from collections.abc import Collection, Sequence

import matplotlib
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Rectangle

from course_lib.plots.diagrams.page import Page
from course_lib.plots.diagrams.words import WORDS
from course_lib.plots.style import COLOURS, STYLE

_WIDE, _HIGH = 0.57, 0.3


@matplotlib.rc_context(STYLE)
def alignment_diagram(
    source: Sequence[str],
    target: Sequence[str],
    sure: Collection[tuple[int, int]],
    possible: Collection[tuple[int, int]],
    predicted: Collection[tuple[int, int]],
) -> Figure:
    """A row for each word of the target, a column for each of the source, and the links in the cells.

    Args:
        source, target: the words.
        sure, possible: (position in the source, position in the target) of the true links; a sure link is also
            possible.
        predicted: the links of an aligner. A filled dot is a predicted link that is possible, a cross one that is
            not. Without any, the legend leaves them out.
    """
    left, top = 1.5, 0.55
    width = max(left + _WIDE * len(source) + 2.3, 6.4)
    page = Page(width, top + _HIGH * len(target) + 0.2)
    for column, word in enumerate(source):
        page.note(left + (column + 0.5) * _WIDE, top - 0.16, word)
    for row, word in enumerate(target):
        page.note(left - 0.1, top + (row + 0.5) * _HIGH, word, ha="right")
        for column in range(len(source)):
            link, x, y = (column, row), left + column * _WIDE, top + row * _HIGH
            kind = "sure" if link in sure else "possible" if link in possible else ""
            _cell(page, x, y, kind, link in predicted)
    x = left + _WIDE * len(source) + 0.25
    legend = (("sure", False), ("possible", False), ("sure", True), ("", True))
    for number, (kind, dot) in enumerate(legend[: 4 if predicted else 2]):
        y = top + 0.36 * number
        _cell(page, x, y, "" if dot else kind, dot, good=bool(kind))
        page.note(x + _WIDE + 0.08, y + _HIGH / 2, WORDS["links"][number], ha="left")
    return page.figure


def _cell(page: Page, x: float, y: float, kind: str, dot: bool, *, good=None) -> None:
    """Draw a cell: shaded for a true link, with a dot or a cross for a predicted one."""
    fill = {"sure": to_rgba(COLOURS["main"], 0.6), "possible": to_rgba(COLOURS["main"], 0.2)}
    style = {"fc": fill.get(kind, "white"), "ec": COLOURS["faint"], "lw": 1}
    page.axes.add_patch(Rectangle((x, y), _WIDE, _HIGH, **style))
    centre = x + _WIDE / 2, y + _HIGH / 2
    if dot and (kind if good is None else good):
        page.axes.add_patch(Circle(centre, 0.075, fc=COLOURS["second"], ec="white", lw=1))
    elif dot:
        page.axes.plot(*centre, "x", color=COLOURS["second"], markersize=8, markeredgewidth=2)
