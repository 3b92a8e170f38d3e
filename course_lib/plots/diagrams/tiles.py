"""How attention is computed in tiles: FlashAttention, and a sliding window in blocks."""

import matplotlib
import numpy as np
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from course_lib.plots.diagrams.page import Page
from course_lib.plots.diagrams.words import WORDS
from course_lib.plots.style import COLOURS, STYLE

TILES, SIDE = 4, 0.5  # FlashAttention: tiles along each axis, and the side of one
NOW = (1, 2)  # the tile being computed: block of queries, block of keys
LENGTH, WINDOW, CELL = 12, 3, 0.18


@matplotlib.rc_context(STYLE)
def flash_diagram() -> Figure:
    """FlashAttention: the map of scores is computed one tile at a time and never stored.

    Queries are rows, cut into 4 blocks; keys and values are columns, cut into 4 blocks. The tile of the second
    block of queries and the third block of keys is being computed, in fast memory on the chip. The tiles before
    it in the row are finished: all that is left of them are the running maximum m, the running sum ℓ and the
    running output o of each query. The other tiles are not yet computed.
    """
    page = Page(8.6, 3.55)
    left, top = 1.55, 1.05
    for row in range(TILES):
        for column in range(TILES):
            done = row < NOW[0] or (row == NOW[0] and column < NOW[1])
            colour, dark = ("faint", 1.0) if done else ("data", 0.0)
            if (row, column) == NOW:
                colour, dark = "main", 0.6
            _cell(page, left + column * SIDE, top + row * SIDE, SIDE, colour, dark)
    for index in range(TILES):
        at_row, at_column = index == NOW[0], index == NOW[1]
        dark = 0.7 if at_row else 0.25
        _cell(page, left - 0.45, top + index * SIDE, 0.3, "second", dark, SIDE)
        for above, colour in ((0.45, "third"), (0.8, "truth")):
            strong = 0.7 if at_column else 0.25
            _cell(page, left + index * SIDE, top - above, SIDE, colour, strong, 0.3)
        for step in range(3):
            x = left + 2.35 + 0.34 * step
            width = 0.26 if step < 2 else 0.8
            _cell(page, x, top + index * SIDE + 0.05, width, "second", dark, 0.4)
    page.words(left - 0.62, top + 0.75, "Q", WORDS["blocks of queries"], ha="right")
    page.note(left - 0.12, top - 0.65, "V", ha="right")
    page.note(left - 0.12, top - 0.3, "K", ha="right")
    for step, name in enumerate(("m", "ℓ")):
        page.note(left + 2.48 + 0.34 * step, top - 0.15, name)
    page.note(left + 3.43, top - 0.15, "o")
    right = left + 4.5
    _cell(page, right - 0.35, top + 0.02, 0.22, "main", 0.6)
    _cell(page, right - 0.35, top + 1.02, 0.22, "faint", 1.0)
    page.words(right, top + 0.1, WORDS["tile now"], WORDS["tile on chip"], ha="left")
    page.words(right, top + 1.1, WORDS["tiles done"], WORDS["tiles gone"], ha="left")
    middle = left + TILES * SIDE / 2
    page.note(middle, top + TILES * SIDE + 0.25, WORDS["never stored"])
    page.note(left + 3.07, top + TILES * SIDE + 0.25, WORDS["kept per query"])
    return page.figure


@matplotlib.rc_context(STYLE)
def window_blocks_diagram() -> Figure:
    """A sliding window of 3 positions on each side over 12 positions, as a map and as blocks.

    Left: the map, 12 queries by 12 keys. Filled cells are inside the window; a frame holds the scores that one
    block of 3 queries computes. Right: these blocks one below the other, 3 queries by 9 keys each, 108 scores
    instead of 144. Crossed keys lie before the first or after the last position: padding, masked like the cells
    outside the window.
    """
    page = Page(8.4, 3.5)
    left, top = 0.75, 0.75
    near = np.abs(np.subtract.outer(np.arange(LENGTH), np.arange(LENGTH))) <= WINDOW
    for (i, j), inside in np.ndenumerate(near):
        _cell(page, left + j * CELL, top + i * CELL, CELL, *_tint(inside, i))
    for block in range(LENGTH // WINDOW):
        first = max(0, (block - 1) * WINDOW)
        width = min(LENGTH, (block + 2) * WINDOW) - first
        corner = (left + first * CELL, top + block * WINDOW * CELL)
        _outline(page, corner, width * CELL, WINDOW * CELL)
    page.words(left + LENGTH * CELL / 2, 0.32, WORDS["window map"], "(12, 12)")
    start, gap = 4.4, 0.14
    for block in range(LENGTH // WINDOW):
        y = 0.75 + block * (WINDOW * CELL + gap)
        for row in range(WINDOW):
            for column in range(3 * WINDOW):
                i, j = block * WINDOW + row, (block - 1) * WINDOW + column
                x = start + column * CELL
                padding = not 0 <= j < LENGTH
                _cell(
                    page, x, y + row * CELL, CELL, *_tint(abs(i - j) <= WINDOW and not padding, i)
                )
                if padding:
                    page.rule((x, y + row * CELL), (x + CELL, y + (row + 1) * CELL), "data", 0.8)
        _outline(page, (start, y), 3 * WINDOW * CELL, WINDOW * CELL)
        queries, keys = (f"{a}–{b}" for a, b in _ranges(block))
        page.note(start - 0.12, y + 0.27, WORDS["queries of"].format(range=queries), ha="right")
        page.note(start + 1.75, y + 0.27, WORDS["keys of"].format(range=keys), ha="left")
    page.words(start + 0.81, 0.32, WORDS["window blocks"], "(4, 3, 9)")
    return page.figure


def _ranges(block: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the first and last query of a block, and its first and last key."""
    first = block * WINDOW
    return (first, first + WINDOW - 1), (
        max(0, first - WINDOW),
        min(LENGTH, first + 2 * WINDOW) - 1,
    )


def _tint(inside: bool | np.bool_, query: int) -> tuple[str, float]:
    return ("main" if query // WINDOW % 2 else "second", 0.6) if inside else ("data", 0.0)


def _cell(page, x, y, width, colour, dark, height=None) -> None:
    style = {"fc": to_rgba(COLOURS[colour], dark), "ec": COLOURS["data"], "lw": 0.6}
    page.axes.add_patch(Rectangle((x, y), width, height or width, **style))


def _outline(page, corner, width, height) -> None:
    page.axes.add_patch(Rectangle(corner, width, height, fill=False, ec=COLOURS["ink"], lw=1.4))
