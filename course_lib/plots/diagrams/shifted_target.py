"""Decoder input and labels: the same target, shifted by one position."""

import matplotlib
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from course_lib.plots.diagrams.page import Page
from course_lib.plots.diagrams.words import WORDS
from course_lib.plots.style import COLOURS, STYLE

TARGETS = (("<bos>", "3", "1", "4", "<eos>"), ("<bos>", "7", "<eos>", "<pad>", "<pad>"))
CELL, HEIGHT = 0.62, 0.36


@matplotlib.rc_context(STYLE)
def shifted_target_diagram() -> Figure:
    """A batch of 2 targets of 5 tokens, and the 4 inputs and 4 labels that teacher forcing makes of each.

    The targets are <bos> 3 1 4 <eos> and <bos> 7 <eos> <pad> <pad>. The decoder input is the target without
    its last token, target[:, :-1]; the labels are the target without its first token, target[:, 1:]. In each
    column the label is the token that follows the input. Labels that are padding do not count in the loss.
    """
    page = Page(9, 2.6)
    rows = (("target", "target"), ("input", "target[:, :-1]"), ("labels", "target[:, 1:]"))
    ys = (0.75, 1.45, 2.15)
    for (name, code), y in zip(rows, ys, strict=True):
        page.words(0.2, y - 0.09, WORDS[name], code if code != name else "", ha="left")
    for left, target, name in zip((1.95, 5.6), TARGETS, ("first", "second"), strict=True):
        page.note(left, 0.3, WORDS[f"{name} target"], ha="left")
        _cells(page, left, ys[0], target, "truth")
        _cells(page, left, ys[1], target[:-1], "main")
        _cells(page, left, ys[2], target[1:], "second")
        for column in range(4):
            x = left + CELL * (column + 0.5)
            page.arrow((x, ys[1] + HEIGHT / 2), (x, ys[2] - HEIGHT / 2), colour="truth")
    return page.figure


def _cells(page: Page, left: float, y: float, tokens: tuple, colour: str) -> None:
    """Draw a row of tokens; padding is empty where it is a label."""
    for column, token in enumerate(tokens):
        ignored = token == "<pad>" and colour == "second"
        fill = "white" if ignored else to_rgba(COLOURS[colour], 0.18)
        line = ":" if ignored else "-"
        corner = left + CELL * column, y - HEIGHT / 2
        style = {"fc": fill, "ec": COLOURS[colour], "lw": 1, "ls": line}
        page.axes.add_patch(Rectangle(corner, CELL, HEIGHT, **style))
        page.note(corner[0] + CELL / 2, y, token)
