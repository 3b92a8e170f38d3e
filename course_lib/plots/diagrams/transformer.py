"""The whole Transformer."""

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from course_lib.plots.diagrams.page import LINE, Box, Page
from course_lib.plots.diagrams.words import WORDS
from course_lib.plots.style import COLOURS, STYLE


@matplotlib.rc_context(STYLE)
def transformer_diagram() -> Figure:
    """The Transformer from the bottom to the top, the encoder left and the decoder right.

    Left, source tokens (batch, source) are embedded and scaled by √d_model; positions are added; N encoder
    blocks of self-attention and feed-forward network and a final norm give memory (batch, source, d_model).
    Right, target tokens (batch, target) are embedded by their own embedding and scaled by √d_model;
    positions are added; N decoder blocks of self-attention, cross-attention and feed-forward network, a
    final norm and lm_head give logits (batch, target, vocabulary). Every cross-attention takes its keys and
    values from memory. The padding mask of the source (batch, 1, source) is the mask of the encoder's
    self-attention and of the decoder's cross-attention; the causal and padding mask (batch, target, target)
    is that of the decoder's self-attention. A dashed line ties the target embedding to lm_head: they may
    share one table.
    """
    page = Page(9, 6.2)
    left, right = 1.85, 6.6
    block = ["self-attention", "feed-forward"]
    source, encoder_boxes, memory = _stack(page, left, "source", "encoder", block, "second", -1)
    block.insert(1, "cross-attention")
    target, decoder_boxes, last = _stack(page, right, "target", "decoder", block, "main", 1)

    # memory
    across = decoder_boxes[1]
    y = across.y - 0.12
    page.arrow(memory.right, (4.3, memory.y), (4.3, y), (across.left[0], y), colour="second")
    page.words(3.4, memory.y - 0.33, "memory", "(batch, source, d_model)")
    page.note(4.36, y - 0.1, WORDS["key and value"], ha="left")

    # masks
    y = across.y + 0.12
    page.words(3.48, source.y - LINE / 2, WORDS["padding"], "(batch, 1, source)")
    page.arrow(source.right, (2.9, source.y), colour="truth")
    page.arrow(
        (3.48, source.y - 0.25), (3.48, encoder_boxes[0].y), encoder_boxes[0].right, colour="truth"
    )
    page.arrow((3.48, encoder_boxes[0].y), (3.48, y), (across.left[0], y), colour="truth")
    page.words(4.87, target.y - 0.17, WORDS["causal"])
    page.note(4.87, target.y + 0.1, "(batch, target, target)")
    page.arrow(target.left, (5.63, target.y), colour="truth")
    page.arrow(
        (4.87, target.y - 0.4), (4.87, decoder_boxes[0].y), decoder_boxes[0].left, colour="truth"
    )

    # logits
    lm_head = page.box(right, last.y - 0.52, "lm_head", "", "ink", 1.2, 0.3)
    page.arrow(last.top, lm_head.bottom, colour="main")
    page.arrow(lm_head.top, (right, 0.52), colour="main")
    page.words(right, 0.28, "logits", "(batch, target, vocabulary)")
    embedding = right + 0.7, target.y - 0.6
    path = embedding, (8.45, embedding[1]), (8.45, lm_head.y), lm_head.right
    page.axes.plot(*np.transpose(path), color=COLOURS["ink"], lw=1.2, ls="--")
    page.words(8.52, (lm_head.y + embedding[1]) / 2, WORDS["tied"], ha="left")
    page.note(0.3, 0.3, WORDS["drawn"], ha="left", va="top")
    return page.figure


def _stack(page, x, name, block, sublayers: list, colour, side: int) -> tuple[Box, list, Box]:
    """Draw one column from its tokens to its final norm, with shapes on one side (-1: left, 1: right).

    Return the boxes of the tokens, of the sublayers, and of the final norm.
    """
    away = {"ha": "left" if side > 0 else "right"}
    shape = f"(batch, {name}, d_model)"
    tokens = Box(x, 5.85, 1.2, 0.4)
    page.words(x, tokens.y - LINE / 2, name, f"(batch, {name})")
    embedding = page.box(x, 5.25, WORDS["embedding"], "· √d_model", colour, 1.4, 0.42)
    page.arrow(tokens.top, embedding.bottom, colour=colour)
    plus = page.plus(x, 4.62, colour)
    page.arrow(embedding.top, plus.bottom, colour=colour)
    page.note(x + side * 0.08, 4.89, shape, **away)
    page.words(x + side * 0.75, plus.y, WORDS["positions"], **away)
    page.arrow((x + side * 0.7, plus.y), (x + side * 0.12, plus.y))
    y, below, boxes = 3.87, plus, []
    for sublayer in sublayers:
        box = page.box(x, y, WORDS[sublayer], "", colour, 1.95, 0.4)
        page.arrow(below.top, box.bottom, colour=colour)
        boxes.append(box)
        below, y = box, y - 0.63
    frame = page.frame(x, (box.y + boxes[0].y) / 2 - 0.14, 2.4, 0.63 * len(sublayers) + 0.37)
    page.words(x - 1.1, frame.top[1] + 0.15, WORDS[block], WORDS["blocks"], ha="left")
    norm = page.box(x, frame.top[1] - 0.45, WORDS["final norm"], "", "third", 1.2, 0.3)
    page.arrow(box.top, norm.bottom, colour=colour)
    page.note(x + side * 0.08, frame.top[1] - 0.15, shape, **away)
    return tokens, boxes, norm
