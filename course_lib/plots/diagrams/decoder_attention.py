"""Bahdanau's and Luong's decoders side by side."""

import matplotlib
from matplotlib.figure import Figure

from course_lib.plots.diagrams.page import Page
from course_lib.plots.diagrams.words import WORDS
from course_lib.plots.style import STYLE

TOKEN, STATE, ATTENTION = 0.75, 2.15, 3.75  # columns
ROWS = (1.0, 1.8, 2.6, 3.4, 4.2)


@matplotlib.rc_context(STYLE)
def decoder_attention_diagram() -> Figure:
    """Step i of Bahdanau's decoder (left) and of Luong's (right).

    Bahdanau: the query is the previous hidden state. 1. Attention over the memory gives the context vector.
    2. The GRU reads the previous token and the context vector, and gives the hidden state. 3. The readout
    predicts the next token from the hidden state, the previous token and the context vector.
    Luong: the query is the current hidden state. 1. The GRU reads the previous token and gives the hidden
    state. 2. Attention over the memory gives the context vector. 3. Context vector and hidden state are
    combined in the attentional hidden state, from which the readout predicts the next token. Dashed: with
    input feeding, the attentional hidden state of the previous step is a second input of the GRU.
    """
    page = Page(9.2, 4.75)
    page.rule((4.6, 0.25), (4.6, 4.5), "faint", 1)
    _bahdanau(page, 0.0)
    _luong(page, 4.75)
    return page.figure


def _bahdanau(page: Page, left: float) -> None:
    """Draw attention above the GRU."""
    token, state, attention = left + TOKEN, left + STATE, left + ATTENTION
    first, second, third, fourth, fifth = ROWS
    page.words(left + 0.2, 0.3, WORDS["bahdanau"], WORDS["previous query"], ha="left")
    before = page.box(state, first, "$s_{i-1}$", "", "third", 0.8, 0.4)
    memory = page.box(attention, first, r"$h_1 \ldots h_n$", "", "main", 1.15, 0.4)
    attend = page.box(attention, second, WORDS["attend"].format(step=1), "", "second", 1.3, 0.4)
    context = page.box(attention, third, "$c_i$", "", "second", 0.8, 0.4)
    word = page.box(token, third, "$y_{i-1}$", "", "truth", 0.8, 0.4)
    gru = page.box(state, third, "2. GRU", "", "third", 0.95, 0.4)
    after = page.box(state, fourth, "$s_i$", "", "third", 0.8, 0.4)
    readout = page.box(state, fifth, WORDS["readout"], "", "ink", 1.15, 0.4)
    page.arrow(memory.bottom, attend.top, colour="main")
    page.arrow((state + 0.2, first + 0.2), (state + 0.2, second), attend.left, colour="third")
    page.note(state + 0.28, second - 0.12, WORDS["query"], ha="left")
    page.arrow(before.bottom, gru.top, colour="third")
    page.arrow(attend.bottom, context.top, colour="second")
    page.arrow(context.left, gru.right, colour="second")
    page.arrow(word.right, gru.left, colour="truth")
    page.arrow(gru.bottom, after.top, colour="third")
    page.arrow(after.bottom, readout.top, colour="third")
    page.arrow(context.bottom, (attention, fifth), readout.right, colour="second")
    page.arrow(word.bottom, (token, fifth), readout.left, colour="truth")


def _luong(page: Page, left: float) -> None:
    """Draw the GRU above attention."""
    token, state, attention = left + TOKEN, left + STATE, left + ATTENTION
    first, second, third, fourth, fifth = ROWS
    page.words(left + 0.2, 0.3, WORDS["luong"], WORDS["current query"], ha="left")
    before = page.box(state, first, "$s_{i-1}$", "", "third", 0.8, 0.4)
    memory = page.box(attention, first, r"$h_1 \ldots h_n$", "", "main", 1.15, 0.4)
    word = page.box(token, second, "$y_{i-1}$", "", "truth", 0.8, 0.4)
    gru = page.box(state, second, "1. GRU", "", "third", 0.95, 0.4)
    after = page.box(state, third, "$s_i$", "", "third", 0.8, 0.4)
    attend = page.box(attention, third, WORDS["attend"].format(step=2), "", "second", 1.3, 0.4)
    context = page.box(attention, fourth, "$c_i$", "", "second", 0.8, 0.4)
    combined = page.box(state, fourth, r"$\tilde s_i$", "", "third", 0.8, 0.4)
    readout = page.box(state, fifth, WORDS["readout"], "", "ink", 1.15, 0.4)
    page.arrow(memory.bottom, attend.top, colour="main")
    page.arrow(before.bottom, gru.top, colour="third")
    page.arrow(word.right, gru.left, colour="truth")
    page.arrow(gru.bottom, after.top, colour="third")
    page.arrow(after.right, attend.left, colour="third")
    page.note((after.right[0] + attend.left[0]) / 2, third - 0.12, WORDS["query"])
    page.arrow(attend.bottom, context.top, colour="second")
    page.arrow(after.bottom, combined.top, colour="third")
    page.arrow(context.left, combined.right, colour="second")
    page.arrow(combined.bottom, readout.top, colour="third")
    fed = page.frame(token, third, 0.8, 0.4, line="--")
    page.note(token, third, r"$\tilde s_{i-1}$")
    page.note(token, third + 0.42, WORDS["input feeding"])
    page.arrow(
        fed.right,
        (state - 0.7, third),
        (state - 0.7, second + 0.12),
        (gru.left[0], second + 0.12),
        colour="data",
        line="--",
    )
    page.arrow(
        (state - 0.2, fourth + 0.2),
        (state - 0.2, fourth + 0.36),
        (token + 0.35, fourth + 0.36),
        colour="data",
        line="--",
    )
    page.note(token + 0.3, fourth + 0.36, WORDS["to next step"], ha="right")
