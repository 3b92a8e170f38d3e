"""The parts of a Transformer: the residual connection around a sublayer, and the two blocks."""

import matplotlib
from matplotlib.figure import Figure

from course_lib.plots.diagrams.page import Box, Page
from course_lib.plots.diagrams.words import WORDS
from course_lib.plots.style import STYLE


@matplotlib.rc_context(STYLE)
def residual_diagram() -> Figure:
    """Pre-norm and post-norm residual connections: two sublayers, left with norm="pre", right with "post".

    Both start at the bottom with x (batch, length, d_model), whose shape never changes. With "pre", each
    sublayer is x + f(norm(x)): a thick line carries x past the sublayer, and the result of norm, sublayer
    and dropout is added to it. Only sums are on this line, the residual stream, so it is unbroken from the
    bottom to the final norm after the last sum. With "post", each sublayer is norm(x + f(x)): the result of
    sublayer and dropout is added to the line, and a norm after each sum interrupts it.
    """
    page = Page(9, 5.8)
    page.rule((4.5, 0.2), (4.5, 5.6), "faint", 1)
    _sublayers(page, 0.1, "pre", "x + f(norm(x))")
    _sublayers(page, 4.6, "post", "norm(x + f(x))")
    return page.figure


def _sublayers(page: Page, left: float, norm: str, formula: str) -> None:
    """Draw two sublayers and their residual connections, from the bottom to the top."""
    line, beside, start = left + 2.1, left + 3.42, (left + 2.1, 5.45)
    page.words(left + 0.2, 0.3, f'norm="{norm}"', ha="left")
    page.code(left + 0.2, 0.58, formula)
    page.note(left + 0.2, 1.5, WORDS[norm], ha="left", va="top")
    page.words(line, 5.6, "x")
    page.note(line - 0.1, 5.32, "(batch, length, d_model)", ha="right")
    for bottom, name in zip(
        (5.1, 3.0), WORDS["sublayers"], strict=True
    ):  # of each residual connection
        y = bottom - (0.92 if norm == "pre" else 0.45)
        boxes = [
            page.box(beside, y, name, "", "ink", 1.35, 0.3),
            page.box(beside, y - 0.45, "dropout", "", "data", 1.35, 0.3),
        ]
        if norm == "pre":
            boxes.insert(0, page.box(beside, y + 0.52, "norm", "", "third", 1.35, 0.3))
        f = page.frame(beside, y - 0.225, 1.51, 0.91, line="--")
        page.code(f.right[0] + 0.08, f.y, "f")
        plus = page.plus(line, y - 0.83, "main")
        page.arrow((line, bottom), (beside, bottom), boxes[0].bottom)
        for lower, upper in zip(boxes, boxes[1:], strict=False):
            page.arrow(lower.top, upper.bottom)
        page.arrow(boxes[-1].top, (beside, plus.y), plus.right)
        if norm == "post":
            box = page.box(line, plus.y - 0.42, "norm", "", "third", 0.8, 0.3)
            page.arrow(start, box.bottom, colour="main", thick=True)
            start = box.top
    if norm == "pre":
        box = page.box(line, 0.78, WORDS["final norm"], "", "third", 1.0, 0.3)
        page.arrow(start, box.bottom, colour="main", thick=True)
        start = box.top
    page.arrow(start, (line, 0.25), colour="main", thick=True)


@matplotlib.rc_context(STYLE)
def blocks_diagram() -> Figure:
    """The encoder block and the decoder block, drawn from the bottom to the top with norm="pre".

    In the encoder block, x (batch, length, d_model) passes through two sublayers: masked self-attention with
    weights (batch, heads, length, length), and the feed-forward network, which transforms each position
    separately. In the decoder block, x (batch, target, d_model) passes through three: masked self-attention
    with weights (batch, heads, target, target); cross-attention with weights
    (batch, heads, target, source); and the feed-forward network. The keys and values of the cross-attention
    come from memory (batch, source, d_model), the output of the encoder, with memory_mask; its queries come
    from x. Each sublayer has a norm before it and a residual connection around it. Both blocks return
    the shape of their input.
    """
    page = Page(9, 6.4)
    end, attention, _ = _block(page, 0.62, "EncoderBlock", "length", "second", ["length"])
    page.arrow((0.15, attention.y), attention.left, colour="truth")
    page.words(0.35, attention.y + 0.14, "mask")
    _, own, across, _ = _block(page, 5.6, "DecoderBlock", "target", "main", ["target", "source"])
    for block, up, down, name, shape, colour in (
        (own, 0, 0.14, "mask", "(batch, target, target)", "truth"),
        (across, 0.2, -0.36, "memory", "(batch, source, d_model)", "second"),
        (across, -0.2, 0.14, "memory_mask", "(batch, target, source)", "truth"),
    ):
        x, y = block.left[0], block.y - up
        page.arrow((3.65, y), (x, y), colour=colour)
        page.words(4.55, y + down, name, shape)
    page.note(4.55, across.y - 0.09, WORDS["key and value"])
    page.note(across.x + 0.08, across.bottom[1] + 0.1, "query", ha="left")
    over = end.y - 0.22
    path = (end.x, end.y - 0.05), (end.x, over), (4.55, over), (4.55, across.y - 0.66)
    page.arrow(*path, colour="second", line="--")
    page.note(4.2, over - 0.12, WORDS["further blocks"])
    page.note(0.3, 0.4, WORDS["drawn pre"], ha="left", va="top")
    return page.figure


def _block(page: Page, left: float, name: str, length: str, colour: str, seen: list) -> list[Box]:
    """Draw a block with an attention to each sequence in `seen`; return its output and its sublayers."""
    beside, line, y = left + 1.18, left + 2.5, 5.5
    sublayers = [
        (
            WORDS["self-attention" if other == length else "cross-attention"],
            f"{WORDS['weights']}\n(batch, heads, {length}, {other})",
            0.7,
        )
        for other in seen
    ]
    sublayers.append((WORDS["feed-forward"], WORDS["each position"], 0.45))
    height = sum(0.95 + size for *_, size in sublayers) + 0.37
    top = y + 0.17 - height
    page.frame(left + 1.36, top + height / 2, 2.72, height)
    page.words(left + 0.12, top + 0.17, name, ha="left")
    page.words(line, y + 0.6, "x", f"(batch, {length}, d_model)")
    page.arrow((line, y + 0.45), (line, top - 0.35), colour=colour, thick=True)
    page.note(line - 0.12, top - 0.17, f"(batch, {length}, d_model)", ha="right")
    boxes = [Box(line, top - 0.35, 0, 0)]
    for sublayer, note, size in sublayers:
        norm = page.box(beside, y - 0.27, "norm", "", "third", 0.8, 0.28)
        sublayer_box = page.box(
            beside, norm.top[1] - 0.2 - size / 2, sublayer, note, colour, 2.12, size
        )
        plus = page.plus(line, sublayer_box.top[1] - 0.16, colour)
        page.arrow((line, y), (beside, y), norm.bottom)
        page.arrow(norm.top, sublayer_box.bottom)
        page.arrow(sublayer_box.top, (beside, plus.y), plus.left)
        y = plus.y - 0.18
        boxes.append(sublayer_box)
    return boxes
