"""An encoder and a decoder, connected by one context vector."""

import matplotlib
from matplotlib.figure import Figure

from course_lib.plots.diagrams.page import Page
from course_lib.plots.diagrams.words import WORDS
from course_lib.plots.style import STYLE

SOURCE, TARGET = ("3", "1", "4"), ("<bos>", "3", "1", "4", "<eos>")


@matplotlib.rc_context(STYLE)
def encoder_decoder_diagram() -> Figure:
    """An encoder–decoder without attention that copies the digits 3, 1, 4.

    Left: the encoder reads one token per step and passes its hidden state on, h₁, h₂, h₃. The last hidden
    state is the context vector c. Right: the decoder starts from c and reads c again at every step. Its input
    is the token of the step before, <bos>, 3, 1, 4; it predicts the next one, 3, 1, 4, <eos>. Everything
    that the decoder knows about the source has passed through the single vector c.
    """
    page, state_y, token_y, context_y = Page(9, 3.5), 1.9, 2.95, 1.12
    page.words(0.3, 0.3, WORDS["encoder"], ha="left")
    page.words(5.1, 0.3, WORDS["decoder"], ha="left")
    previous = None
    for step, token in enumerate(SOURCE):
        x = 0.7 + 1.05 * step
        state = page.box(x, state_y, f"$h_{step + 1}$", "", "main", 0.62)
        page.words(x, token_y, token)
        page.arrow((x, token_y - 0.16), state.bottom, colour="truth")
        if previous is not None:
            page.arrow(previous.right, state.left, colour="main")
        previous = state
    page.note(1.75, token_y + 0.28, WORDS["source tokens"])
    context = page.box(4.05, state_y, "$c = h_3$", "", "second", 0.95, 0.62)
    page.note(4.05, state_y + 0.5, WORDS["context vector"])
    page.arrow(previous.right, context.left, colour="main", thick=True)

    previous = context
    page.rule((4.05, context.top[1]), (4.05, context_y), "second", 1.2)
    page.rule((4.05, context_y), (8.45 - 0.2, context_y), "second", 1.2)
    for step, (token, label) in enumerate(zip(TARGET[:-1], TARGET[1:], strict=True)):
        x = 5.45 + 1.0 * step
        state = page.box(x, state_y, f"$s_{step + 1}$", "", "third", 0.62)
        page.words(x, token_y, token)
        page.words(x + 0.12, 0.65, label)
        page.arrow((x, token_y - 0.16), state.bottom, colour="truth")
        page.arrow((x - 0.2, context_y), (x - 0.2, state.top[1]), colour="second")
        page.arrow((x + 0.12, state.top[1]), (x + 0.12, 0.81), colour="truth")
        page.arrow(previous.right, state.left, colour="second" if step == 0 else "third")
        previous = state
    page.note(6.95, token_y + 0.28, WORDS["previous tokens"])
    page.note(8.85, 0.35, WORDS["predicted tokens"], ha="right")
    return page.figure
