"""Where positional encodings enter a Transformer."""

import matplotlib
from matplotlib.figure import Figure

from course_lib.plots.diagrams.page import Page
from course_lib.plots.diagrams.words import WORDS
from course_lib.plots.style import STYLE


@matplotlib.rc_context(STYLE)
def positions_diagram() -> Figure:
    """Where positional encodings enter, from token embeddings on the left to the output of attention on the right.

    (1) Sinusoidal and learned tables are added to the token embeddings once, before the first layer. The sum
    is projected to queries, keys and values, in every layer. (2) RoPE rotates queries and keys, and not the
    values. The dot products of queries and keys give the scores. (3) Shaw, T5 and ALiBi change the scores
    before the softmax; Shaw also adds vectors to the values. The softmax gives the weights of a sum of the values.
    """
    page = Page(9.4, 3.5)
    middle, top, bottom = 1.75, 0.95, 2.55
    page.frame(5.75, 1.72, 6.85, 2.9, line="--")
    page.note(9.05, 3.05, WORDS["each layer"], ha="right")
    start = page.box(0.85, middle, WORDS["token"], "", "ink", 1.2, 0.5)
    plus = page.plus(1.85, middle, "main")
    added = page.box(1.2, 0.5, WORDS["added table"], WORDS["tables"], "main", 1.9, 0.6)
    page.arrow(start.right, plus.left)
    page.arrow((plus.x, added.bottom[1]), plus.top, colour="main")
    q, k, v = (
        page.box(3.15, y, name, "", "ink", 0.95, 0.36)
        for y, name in ((top, "query"), (middle, "key"), (bottom, "value"))
    )
    for box in (q, k, v):
        page.arrow(plus.right, box.left)
    page.note(3.15, 0.5, WORDS["projections"])
    rope = page.box(4.6, (top + middle) / 2, "RoPE", WORDS["rotates"], "third", 1.15, 1.2)
    dot = page.box(6.0, (top + middle) / 2, WORDS["scores"], "q · k / √d", "ink", 1.1, 0.6)
    for box in (q, k):
        page.arrow(box.right, (rope.left[0], box.y))
    page.arrow(rope.right, dot.left)
    plus = page.plus(7.0, dot.y, "second")
    page.arrow(dot.right, plus.left)
    bias = page.box(6.7, 0.62, WORDS["bias"], WORDS["biases"], "second", 2.2, 0.55)
    page.arrow((plus.x, bias.bottom[1]), plus.top, colour="second")
    soft = page.box(8.2, dot.y, "softmax", "", "ink", 1.0, 0.36)
    page.arrow(plus.right, soft.left)
    out = page.box(8.2, bottom, WORDS["weighted sum"], "", "ink", 1.3, 0.36)
    page.arrow(soft.bottom, out.top)
    page.arrow(v.right, out.left)
    page.note(5.6, bottom + 0.14, WORDS["values"])
    return page.figure
