"""What a KV cache stores while a sequence is generated token by token."""

import matplotlib
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from course_lib.plots.diagrams.page import Box, Page
from course_lib.plots.diagrams.words import WORDS
from course_lib.plots.style import COLOURS, STYLE

CELL = 0.15
SIZE = 4  # d_head, as drawn


@matplotlib.rc_context(STYLE)
def cache_diagram() -> Figure:
    """What is computed at decoding step 4: left with a cache, right without one.

    Self-attention with a cache: keys and values of tokens 1 to 3 are cached, those of token 4 are computed
    and appended, (batch, heads, 4, d_head). There is one query, that of token 4, (batch, heads, 1, d_head),
    and so one row of scores, (batch, heads, 1, 4). Without a cache: queries, keys and values of all 4 tokens
    are computed, and scores (batch, heads, 4, 4), of which only the last row is new; all else repeats
    earlier steps. Cross-attention with a cache: keys and values of the source,
    (batch, heads, source, d_head), were computed at the first step and never change; with one query the
    scores are (batch, heads, 1, source). Without a cache they are computed again at every step, for scores
    (batch, heads, 4, source), of which only the last row is new.
    """
    page = Page(9, 7.3)
    page.rule((4.5, 0.2), (4.5, 6.75), "faint", 1)
    page.rule((0.2, 3.67), (8.8, 3.67), "faint", 1)
    for left, cache, words, keys, queries in (
        (0.25, "with", ("KeyValueCache", "CrossAttentionCache"), ("kkkn", "kkkkk"), "n"),
        (4.75, "without", ("", ""), ("aaan", "aaaaa"), "aaan"),
    ):
        page.words(left, 0.27, WORDS[f"{cache} cache"], ha="left")
        _attention(page, left, 0.6, f"self {cache}", words[0], keys[0], queries, "4")
        _attention(page, left, 3.92, f"cross {cache}", words[1], keys[1], queries, "source")
    for x, state, word in ((0.35, "k", "cached"), (2.6, "n", "new"), (4.75, "a", "again")):
        _cells(page, x, 7.1, [state], "truth")
        page.note(x + 0.15, 7.1, WORDS[word], ha="left")
    return page.figure


def _attention(page, left, top, title, cache: str, keys: str, queries: str, length: str) -> None:
    """Draw keys, values, queries and scores; a letter per token gives its state."""
    first, second, upper, lower = left + 1.0, left + 3.15, top + 1.33, top + 2.27
    kind = WORDS["self-attention" if length == "4" else "cross-attention"]
    page.words(left, top, kind, WORDS[title], ha="left")
    k = _cells(page, first, upper, [state * SIZE for state in keys], "second")
    v = _cells(page, second, upper, [state * SIZE for state in keys], "third")
    q = _cells(page, first, lower, [state * SIZE for state in queries], "main")
    s = _cells(page, second, lower, [state * len(keys) for state in queries], "truth")
    page.words(k.x, k.top[1] - 0.33, "key", f"(batch, heads, {length}, d_head)")
    page.words(v.x, v.top[1] - 0.33, "value", f"(batch, heads, {length}, d_head)")
    page.words(q.x, q.bottom[1] + 0.1, "query", f"(batch, heads, {len(queries)}, d_head)")
    page.words(s.x, s.bottom[1] + 0.1, "scores", f"(batch, heads, {len(queries)}, {length})")
    page.arrow(q.right, s.left, step="query @ key.mT")
    if cache:
        page.frame((k.x + v.x) / 2, upper, v.x - k.x + 1, k.height + 0.06, line="--")
        page.note(left + (2.02 if length == "4" else 2.07), upper, cache)
    for box, rows in [(q, queries)] + [(k, keys), (v, keys)] * (length == "4"):
        for i in range(len(rows)):  # number the tokens of the target; the last is token 4
            y = box.y + CELL * (i + 0.5 - len(rows) / 2)
            page.note(box.left[0] - 0.03, y, str(5 - len(rows) + i), ha="right")


def _cells(page: Page, x: float, y: float, states: list, colour: str) -> Box:
    """Draw cells that are cached ("k"), new ("n") or computed again ("a")."""
    colour = COLOURS[colour]
    styles = {
        "k": {"fc": to_rgba(colour, 0.55), "ec": to_rgba(colour, 0.7), "lw": 0.6},
        "a": {"fc": "white", "ec": to_rgba(colour, 0.7), "lw": 0.6, "hatch": "//////"},
        "n": {"fc": "white", "ec": colour, "lw": 1.8, "zorder": 1.5},
    }
    box = Box(x, y, CELL * len(states[0]) + 0.08, CELL * len(states) + 0.08)
    for i, row in enumerate(states):
        for j, state in enumerate(row):
            corner = x + CELL * (j - len(row) / 2), y + CELL * (i - len(states) / 2)
            page.axes.add_patch(Rectangle(corner, CELL, CELL, **styles[state]))
    return box
