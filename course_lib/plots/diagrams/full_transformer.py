"""Figure 1 of the paper, with every residual connection and norm, and a shape on every arrow."""

import matplotlib
from matplotlib.figure import Figure

from course_lib.plots.diagrams.page import Box, Page
from course_lib.plots.diagrams.words import WORDS
from course_lib.plots.style import STYLE

_HIGH, _GAP = 0.3, 0.27  # of a box, and between two


@matplotlib.rc_context(STYLE)
def full_transformer_diagram() -> Figure:
    """Figure 1 of Vaswani et al. (2017), from the bottom to the top, the encoder left and the decoder right.

    B is the batch, S the length of the source, T the length of the decoder input, d is d_model, V the size of
    the target vocabulary. Left, source tokens (B, S) are embedded, multiplied by √d and added to positions (S, d):
    (B, S, d). N encoder layers follow: self-attention, Add & Norm, feed-forward network, Add & Norm. Right, the
    target shifted right (B, T) is embedded, multiplied by √d and added to positions (T, d): (B, T, d). N decoder
    layers follow: masked self-attention, Add & Norm, cross-attention, Add & Norm, feed-forward network, Add &
    Norm. Every sublayer has a residual connection from its input to its Add & Norm, which adds the two and
    normalises the sum. The output of the encoder, memory (B, S, d), gives the keys and values of every
    cross-attention; the decoder gives its queries. A padding mask (B, 1, S) belongs to the encoder's
    self-attention and to cross-attention, a causal mask (T, T) to the decoder's self-attention. At the top lm_head
    makes logits (B, T, V), and a softmax makes probabilities (B, T, V).
    """
    page = Page(9, 7.9)
    self_attention, cross, ffn = (
        WORDS[name] for name in ("self-attention", "cross-attention", "feed-forward")
    )
    bottom = 7.7
    encoder = _stack(page, 2.8, bottom, "source", "S", "second", (self_attention, ffn))
    sublayers = (WORDS["masked self-attention"], cross, ffn)
    decoder = _stack(page, 6.5, bottom, "target", "T", "main", sublayers)

    # memory: from the last Add & Norm of the encoder to the cross-attention
    top, across = encoder[-1], decoder[3]
    y = across.y - 0.06
    path = (top.x, top.top[1]), (top.x, top.top[1] - 0.5), (4.45, top.top[1] - 0.5), (4.45, y)
    page.arrow(*path, (across.left[0], y), colour="second")
    page.words(2.7, top.top[1] - 0.42, WORDS["memory"], "", ha="right")
    page.note(3.6, top.top[1] - 0.6, "(B, S, d)")
    page.note(4.5, y - 0.5, WORDS["key and value"].replace("and ", "and\n"), ha="left")

    # masks
    own, last = encoder[1], decoder[1]
    page.words(4.25, bottom - 0.9, WORDS["padding"], "(B, 1, S)")
    mask = (4.25, bottom - 1.02)
    page.arrow(mask, (4.25, own.y), own.right, colour="truth")
    page.arrow(
        (4.25, own.y), (4.25, across.y + 0.08), (across.left[0], across.y + 0.08), colour="truth"
    )
    page.words(8.4, bottom - 0.9, WORDS["causal mask"], "(T, T)")
    page.arrow((8.4, bottom - 1.02), (8.4, last.y), last.right, colour="truth")

    # output
    below = decoder[-1]
    for name, note, shape in (
        ("lm_head", WORDS["linear"], "(B, T, d)"),
        ("softmax", "", WORDS["logits of shape"]),
    ):
        box = page.box(6.5, below.top[1] - 0.42 - 0.15, name, "", "ink", 1.9, _HIGH)
        page.arrow(below.top, box.bottom, colour="main")
        page.note(6.58, (below.top[1] + box.bottom[1]) / 2, shape, ha="left")
        page.note(box.right[0] + 0.08, box.y, note, ha="left")
        below = box
    page.arrow(below.top, (6.5, below.top[1] - 0.3), colour="main")
    page.note(6.58, below.top[1] - 0.16, WORDS["probabilities of shape"], ha="left")
    page.note(0.3, 0.6, WORDS["drawn full"], ha="left", va="top")
    return page.figure


def _stack(page, x, bottom, name, length, colour, sublayers) -> list[Box]:
    """Draw one column up to its last Add & Norm; return the sum at the bottom, sublayers and Add & Norms."""
    shape = f"(B, {length}, d)"
    tokens = Box(x, bottom, 1.8, 0.24)
    page.axes.text(
        x, bottom, WORDS[f"{name} tokens below"], ha="center", va="center", weight="bold"
    )
    embedding = page.box(x, bottom - 0.55, WORDS["embedding · √d"], "", colour, 1.9, _HIGH)
    plus = page.plus(x, bottom - 1.12, colour)
    page.note(x + 0.08, (tokens.top[1] + embedding.bottom[1]) / 2, f"(B, {length})", ha="left")
    page.note(x + 0.08, (embedding.top[1] + plus.bottom[1]) / 2, shape, ha="left")
    page.arrow(tokens.top, embedding.bottom, colour=colour)
    page.arrow(embedding.top, plus.bottom, colour=colour)
    page.words(x - 0.72, plus.y - 0.08, WORDS["positions"], f"({length}, d)", ha="right")
    page.arrow((x - 0.67, plus.y), plus.left)
    boxes, below = [plus], plus
    for number, sublayer in enumerate(sublayers):
        low = below.top[1]
        branch = low - (0.36 if number == 0 else 0.22)
        box = page.box(x, branch - 0.28 - _HIGH / 2, sublayer, "", colour, 1.9, _HIGH)
        norm = page.box(
            x, box.top[1] - _GAP - _HIGH / 2, WORDS["add and norm"], "", "third", 1.9, _HIGH
        )
        _into(page, below, box, branch, colour, attention=sublayer != sublayers[-1])
        page.arrow(box.top, norm.bottom, colour=colour)
        page.arrow((x, branch), (x - 1.22, branch), (x - 1.22, norm.y), norm.left, colour=colour)
        for y in (
            (low + branch) / 2 + (0.03 if number == 0 else 0),
            (box.top[1] + norm.bottom[1]) / 2,
        ):
            page.note(x + 0.08, y, shape, ha="left")
        if number == 1 and len(sublayers) == 3:
            page.note(x + 0.08, (branch + box.bottom[1]) / 2 - 0.02, WORDS["query"], ha="left")
        boxes += [box, norm]
        below = norm
    first, last = boxes[1], boxes[-1]
    top, floor = last.top[1] - 0.1, first.bottom[1] + 0.36
    page.frame(x - 0.13, (top + floor) / 2, 2.5, floor - top, line="--")
    label = {"second": "encoder layer", "main": "decoder layer"}[colour]
    side = -1.43 if length == "S" else 1.17
    align = "right" if length == "S" else "left"
    page.words(x + side, (top + floor) / 2 - 0.6, WORDS[label], "× N", ha=align)
    return boxes


def _into(page, below: Box, box: Box, branch: float, colour: str, *, attention: bool) -> None:
    """Draw what enters a sublayer: queries, keys and values of self-attention, or one arrow."""
    start, end = below.top, box.bottom
    page.arrow(start, end, colour=colour)
    if attention and below.width < 1:  # self-attention: the same vectors three times
        for side in (-0.5, 0.5):
            path = (start[0], branch), (start[0] + side, branch), (start[0] + side, end[1])
            page.arrow(*path, colour=colour)
        for side, letter in ((-0.56, "Q"), (-0.06, "K"), (0.44, "V")):
            page.note(start[0] + side, (branch + end[1]) / 2, letter, ha="right")
