"""Teacher forcing in a Transformer: which inputs each position attends to, and its label."""

import matplotlib
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from course_lib.plots.diagrams.page import Page
from course_lib.plots.diagrams.words import WORDS
from course_lib.plots.style import COLOURS, STYLE

TARGET = ("<bos>", "le", "chat", "dort", ".", "<eos>", "<pad>", "<pad>")
_CELL, _HIGH = 0.62, 0.33


@matplotlib.rc_context(STYLE)
def teacher_forcing_diagram() -> Figure:
    """The shifted target as a grid: a row for each position of the decoder input, a column for each input token.

    The target is <bos> le chat dort . <eos> <pad> <pad>. The decoder input is the target without its last token,
    seven tokens from <bos> to the first <pad>; the labels are the target without its first token. In each row the
    filled cells are the input tokens that this position may attend to: itself and those before it, a lower
    triangle. Behind each row stands its label, the next token: le for <bos>, and <eos> for the full stop. The last
    two rows have the label <pad>, which does not count in the loss. The column of <pad> is filled in the
    last row only, so no position with a label attends to padding.
    """
    inputs, labels = TARGET[:-1], TARGET[1:]
    size, left, top = len(inputs), 1.5, 0.95
    page = Page(9, 3.4)
    page.words(left - 0.12, 0.3, WORDS["decoder input"], "target[:, :-1]", ha="right")
    page.words(left + size * _CELL + 0.55, 0.3, WORDS["labels"], "target[:, 1:]", ha="left")
    page.note(left + size * _CELL / 2, 0.3, WORDS["may attend to"])
    for row, (token, label) in enumerate(zip(inputs, labels, strict=True)):
        y, counts = top + (row + 0.5) * _HIGH, label != "<pad>"
        x = left + size * _CELL
        page.note(left + (row + 0.5) * _CELL, top - 0.14, token)
        _cell(page, left - 0.85, y, token, "main")
        for column in range(size):
            fill = to_rgba(COLOURS["main"], 0.45 if counts else 0.12) if column <= row else "white"
            corner = left + column * _CELL, y - _HIGH / 2
            style = {"fc": fill, "ec": COLOURS["faint"], "lw": 1}
            page.axes.add_patch(Rectangle(corner, _CELL, _HIGH, **style))
        page.arrow((x + 0.08, y), (x + 0.48, y), colour="truth")
        _cell(page, x + 0.55, y, label, "second", counts=counts)
        if not counts:
            page.note(x + 1.4, y, WORDS["not in the loss"], ha="left")
    return page.figure


def _cell(page: Page, left: float, y: float, token: str, colour: str, *, counts=True) -> None:
    """Draw a token in a cell, dotted where it does not count."""
    style = {"fc": to_rgba(COLOURS[colour], 0.18), "ec": COLOURS[colour], "lw": 1}
    style |= {} if counts else {"fc": "white", "ls": ":"}
    page.axes.add_patch(Rectangle((left, y - _HIGH / 2), 0.75, _HIGH, **style))
    page.note(left + 0.375, y, token)
