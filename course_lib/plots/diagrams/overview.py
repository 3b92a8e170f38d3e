"""The Transformer in small, and the axes that norms average over."""

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from course_lib.plots.diagrams.page import Page
from course_lib.plots.diagrams.words import WORDS
from course_lib.plots.style import STYLE

SENTENCES, LENGTH, D_MODEL = 2, 3, 6  # as drawn


@matplotlib.rc_context(STYLE)
def overview_diagram() -> Figure:
    """The Transformer of Vaswani et al. (2017), figure 1, in small, from left to right.

    Upper row, the encoder: source tokens, embedding plus positions, N encoder blocks, and out comes memory.
    Lower row, the decoder: target tokens, embedding plus positions, N decoder blocks, then a linear layer and a
    softmax give the probabilities of the next token. Memory gives the keys and values of the cross-attention in
    every decoder block. A frame marks the two kinds of blocks: this notebook builds them.
    """
    page = Page(9, 4.1)
    page.frame(4.75, 2.05, 2.9, 3.8, line="--")
    page.note(4.75, 0.28, WORDS["this notebook"])
    rows = (
        (1.05, "source tokens", "encoder block", ("self-attention", "FFN"), "second"),
        (
            2.95,
            "target tokens",
            "decoder block",
            ("self-attention", "cross-attention", "FFN"),
            "main",
        ),
    )
    blocks = []
    for y, tokens, block, sublayers, colour in rows:
        page.words(0.68, y, WORDS[tokens])
        embedding = page.box(
            2.2, y, WORDS["embedding"], WORDS["plus positions"], colour, 1.35, 0.55
        )
        size = 0.5 + 0.19 * (len(sublayers) + 1)
        box = page.box(
            4.75,
            y,
            WORDS[block] + " × N",
            "\n".join([*sublayers, WORDS["residual and norm"]]),
            colour,
            2.4,
            size,
        )
        page.arrow((1.3, y), embedding.left, colour=colour)
        page.arrow(embedding.right, box.left, colour=colour)
        blocks.append(box)
    encoder, decoder = blocks
    page.arrow(encoder.bottom, decoder.top, colour="second", thick=True)
    page.words(4.85, 1.98, "memory", ha="left")
    output = page.box(7.1, decoder.y, "linear", "softmax", "ink", 1.0, 0.5)
    page.arrow(decoder.right, output.left, colour="main")
    page.arrow(output.right, (7.95, output.y), colour="main")
    page.words(8.0, output.y - 0.09, WORDS["next token"], ha="left")
    page.note(8.0, output.y + 0.12, WORDS["probabilities"], ha="left")
    for x, y, name in ((2.2, 3.45, "notebook 6"), (7.1, 3.45, "notebook 8")):
        page.note(x, y, WORDS[name])
    return page.figure


@matplotlib.rc_context(STYLE)
def norm_axes_diagram() -> Figure:
    """Over which elements LayerNorm and BatchNorm average, in a batch of 2 sentences of 3 tokens.

    Both panels show the same matrix: a row is the vector of one token, a column is one component of all tokens.
    LayerNorm, and RMSNorm, compute their statistics over one row: one token, all d_model components. BatchNorm
    computes them over one column: one component, all tokens of all sentences.
    """
    page = Page(8, 2.95)
    cell, rng = 0.28, np.random.default_rng(1)
    tints = rng.uniform(0.15, 0.6, (SENTENCES * LENGTH, D_MODEL))
    for x, name, outlined in (
        (2.35, "layer norm", {"row": 1}),
        (6.15, "batch norm", {"column": 2}),
    ):
        grid = page.matrix(x, 1.62, tints, ["main"], cell=cell, **outlined)
        page.words(x, 0.25, *WORDS[name])
        middle = x - D_MODEL * cell / 2
        for sentence in range(SENTENCES):
            y = 1.62 + (sentence - 0.5) * LENGTH * cell
            page.note(middle - 0.15, y, WORDS["sentence"].format(number=sentence), ha="right")
        page.rule((middle - 0.85, 1.62), (middle - 0.03, 1.62), "truth", 1)
        page.note(x, grid.bottom[1] + 0.13, WORDS["components"])
    return page.figure
