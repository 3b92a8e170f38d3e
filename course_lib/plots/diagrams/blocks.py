"""What a Transformer is stacked from: the way around a sublayer, and the two blocks."""

import matplotlib
from matplotlib.figure import Figure

from course_lib.plots.diagrams.page import Page, Place
from course_lib.plots.diagrams.words import WORDS
from course_lib.plots.style import STYLE


@matplotlib.rc_context(STYLE)
def residual_diagram() -> Figure:
    """Where the norm stands: two sublayers after each other, left with norm="pre", right with "post".

    Both ways begin below with x (batch, length, d_model), whose shape never changes. With "pre", each
    sublayer is x + f(norm(x)): x runs past it on a thick line, and beside the line go norm, sublayer and
    dropout, whose result is added to the line. Nothing else stands on the line, so it is unbroken from
    below to the final norm behind the last sum. With "post", each sublayer is norm(x + f(x)): beside the
    line go sublayer and dropout, and behind each sum a norm stands on the line and breaks it.
    """
    page = Page(9, 5.8)
    page.rule((4.5, 0.2), (4.5, 5.6), "faint", 1)
    _way(page, 0.1, "pre", "x + f(norm(x))")
    _way(page, 4.6, "post", "norm(x + f(x))")
    return page.figure


def _way(page: Page, left: float, norm: str, formula: str) -> None:
    """Draw two sublayers and the way around them, from the bottom to the top."""
    line, beside, start = left + 2.1, left + 3.42, (left + 2.1, 5.45)
    page.words(left + 0.2, 0.3, f'norm="{norm}"', ha="left")
    page.code(left + 0.2, 0.58, formula)
    page.note(left + 0.2, 1.5, WORDS[norm], ha="left", va="top")
    page.words(line, 5.6, "x")
    page.note(line - 0.1, 5.32, "(batch, length, d_model)", ha="right")
    for bottom, name in zip((5.1, 3.0), WORDS["sublayers"], strict=True):  # where the ways part
        y = bottom - (0.92 if norm == "pre" else 0.45)
        places = [
            page.box(beside, y, name, "", "ink", 1.35, 0.3),
            page.box(beside, y - 0.45, "dropout", "", "data", 1.35, 0.3),
        ]
        if norm == "pre":
            places.insert(0, page.box(beside, y + 0.52, "norm", "", "third", 1.35, 0.3))
        f = page.frame(beside, y - 0.225, 1.51, 0.91, line="--")
        page.code(f.right[0] + 0.08, f.y, "f")
        plus = page.plus(line, y - 0.83, "main")
        page.arrow((line, bottom), (beside, bottom), places[0].bottom)
        for lower, upper in zip(places, places[1:], strict=False):
            page.arrow(lower.top, upper.bottom)
        page.arrow(places[-1].top, (beside, plus.y), plus.right)
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

    In the encoder block x (batch, length, d_model) goes through two sublayers: self-attention under a mask,
    with weights (batch, heads, length, length), and the network, which works on each token by itself. In
    the decoder block x (batch, target, d_model) goes through three: self-attention under a mask, with
    weights (batch, heads, target, target); cross-attention, with weights (batch, heads, target, source);
    and the network. Keys and values of the cross-attention come from memory (batch, source, d_model), the
    encoder's output, under memory_mask; its queries come from x. Each sublayer has a norm before it and a
    line around it, to which its result is added. Both blocks return the shape that came in.
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
    way = (end.x, end.y - 0.05), (end.x, over), (4.55, over), (4.55, across.y - 0.66)
    page.arrow(*way, colour="second", line="--")
    page.note(4.2, over - 0.12, WORDS["further blocks"])
    page.note(0.3, 0.4, WORDS["drawn pre"], ha="left", va="top")
    return page.figure


def _block(page: Page, left: float, name: str, length: str, colour: str, seen: list) -> list[Place]:
    """Draw a block with an attention to each sequence seen; return the end of its line and its sublayers."""
    beside, line, y = left + 1.18, left + 2.5, 5.5
    sublayers = [
        (
            WORDS["self-attention" if other == length else "cross-attention"],
            f"{WORDS['weights']}\n(batch, heads, {length}, {other})",
            0.7,
        )
        for other in seen
    ]
    sublayers.append((WORDS["network"], WORDS["each token"], 0.45))
    height = sum(0.95 + size for *_, size in sublayers) + 0.37
    top = y + 0.17 - height
    page.frame(left + 1.36, top + height / 2, 2.72, height)
    page.words(left + 0.12, top + 0.17, name, ha="left")
    page.words(line, y + 0.6, "x", f"(batch, {length}, d_model)")
    page.arrow((line, y + 0.45), (line, top - 0.35), colour=colour, thick=True)
    page.note(line - 0.12, top - 0.17, f"(batch, {length}, d_model)", ha="right")
    places = [Place(line, top - 0.35, 0, 0)]
    for sublayer, note, size in sublayers:
        norm = page.box(beside, y - 0.27, "norm", "", "third", 0.8, 0.28)
        place = page.box(beside, norm.top[1] - 0.2 - size / 2, sublayer, note, colour, 2.12, size)
        plus = page.plus(line, place.top[1] - 0.16, colour)
        page.arrow((line, y), (beside, y), norm.bottom)
        page.arrow(norm.top, place.bottom)
        page.arrow(place.top, (beside, plus.y), plus.left)
        y = plus.y - 0.18
        places.append(place)
    return places
