"""Which query heads share which key/value heads: MHA, GQA and MQA."""

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from course_lib.plots.diagrams.page import Page
from course_lib.plots.diagrams.words import WORDS
from course_lib.plots.style import STYLE

QUERY_HEADS, LENGTH, SIZE = 4, 4, 2  # as drawn
KV_HEADS = (4, 2, 1)


@matplotlib.rc_context(STYLE)
def kv_heads_diagram() -> Figure:
    """One decode step with 4 query heads: MHA, GQA and MQA side by side.

    In multi-head attention (MHA) each query head has its own keys and values in the cache. In grouped-query
    attention (GQA), drawn with 2 key/value heads, heads 0 and 1 share the keys and values of one head, and
    heads 2 and 3 those of the other. In multi-query attention (MQA) all query heads share one. Keys and values
    are (batch, kv_heads, key, d_head), so the cache shrinks to a half and to a quarter.
    """
    page = Page(9, 3.3)
    for x in (3.0, 6.0):
        page.rule((x, 0.2), (x, 3.1), "faint", 1)
    for left, kv_heads, title in zip((0, 3, 6), KV_HEADS, WORDS["kv heads"], strict=True):
        page.words(left + 1.5, 0.27, title, WORDS["share"][kv_heads])
        centres = left + 0.45 + 0.7 * np.arange(QUERY_HEADS)
        queries = [
            page.matrix(x, 1.2, np.full((1, SIZE), 0.55), ["main"], cell=0.14) for x in centres
        ]
        page.note(left + 1.5, 0.97, WORDS["query heads"])
        for group in np.split(np.arange(QUERY_HEADS), kv_heads):
            middle = centres[group].mean()
            cells = np.full((LENGTH, SIZE), 0.55)
            page.matrix(middle - 0.15, 2.3, cells, ["second"], cell=0.12)
            page.matrix(middle + 0.15, 2.3, cells, ["third"], cell=0.12)
            for head in group:
                page.arrow(queries[head].bottom, (middle, 2.02))
        page.note(left + 1.5, 2.72, WORDS["keys and values"])
        page.note(left + 1.5, 2.95, f"(batch, {kv_heads}, key, d_head)")
    return page.figure
