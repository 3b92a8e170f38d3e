"""The beam-search explorer: a tree of candidates that grows."""

from collections.abc import Sequence
from numbers import Real

import ipywidgets
import matplotlib
import numpy as np

from course_lib.decoding.by_prefix import Table
from course_lib.inputs import require_whole
from course_lib.plots import TreePanel, figure
from course_lib.plots.style import STYLE
from course_lib.plots.tree import COLUMNS
from course_lib.translator import PhraseTranslator
from course_lib.widgets.explorer import Explorer, probability
from course_lib.widgets.live_figure import LiveFigure
from course_lib.widgets.search_tree import Node, searcher

_WIDEST, _MOST_PENALTY, _MOST_NODES = 5, 2.0, 40


def beam_explorer(
    source: PhraseTranslator | Table,
    text: str | None = None,
    *,
    step: int | None = None,
    beam_size: int = 3,
    length_penalty: float = 1.0,
    title: str = "Beam search",
    measured: bool = False,
) -> Explorer:
    """Watch a beam search: each step's candidates, which the beam keeps, which are finished.

    A column per step, the most probable candidate on top; the number is the probability of the whole
    beginning. A line is as thick as the token is probable behind its parent. At most 40 candidates are
    drawn: those of the step with their ancestors, then what the beam kept, the most probable first; and the
    last 8 steps.

    Args:
        source: a translator, and then there is a box to type in; or a table for `table_model`, beginning →
            {token: probability}.
        text: what stands in the box at first.
        step: how far the search has come; to its end where left out.
        beam_size: 1 to 5.
        length_penalty: 0 to 2.
        title: the first words of the summary.
        measured: as for `Explorer`; true for a model that was trained in the notebook.

    Raises:
        ValueError: for a source of another kind, a missing or needless text, one that the translator
            refuses, a table that `table_model` refuses, and numbers out of range.
    """
    require_whole(beam_size=beam_size)
    if beam_size > _WIDEST:
        raise ValueError(f"beam_size={beam_size} must be at most {_WIDEST}")
    number = isinstance(length_penalty, Real) and not isinstance(length_penalty, bool)
    if not number or not 0 <= length_penalty <= _MOST_PENALTY:
        raise ValueError(f"length_penalty={length_penalty!r} must be 0 to {_MOST_PENALTY:g}")
    search, longest = searcher(source, text, widest=(_WIDEST, _MOST_PENALTY))
    steps = search(text, beam_size, length_penalty)[-1].step
    step = steps if step is None else step
    require_whole(step=step)
    if step > steps:
        raise ValueError(f"step={step}, but this search has {steps} steps")

    with matplotlib.rc_context(STYLE):
        drawn, axes = figure(10.4, 4.6)
        tree = TreePanel(
            axes,
            title="filled: kept, dashed: dropped, square: finished, orange: best finished\n"
            "number: probability up to here; line: the thicker, the more probable the token is\n",
            value_name="log-probability",
        )
        live = LiveFigure(drawn, [tree])

    def update(
        step: int, beam_size: int, length_penalty: float, text: str | None = None
    ) -> dict[str, str]:
        every = search(text, beam_size, length_penalty)
        last = min(step, every[-1].step)
        nodes = [node for node in every if node.step <= last]
        done = [n for n, node in enumerate(nodes) if node.kind == "finished"]

        def score(n: int) -> float:
            return nodes[n].log_p / nodes[n].step ** length_penalty

        best = max(done, key=score, default=None)
        path = [] if best is None else _line(nodes, best)
        _draw(tree, nodes, path, height=max(2 * beam_size, 4))
        now = [n for n, node in enumerate(nodes) if node.step == last]
        facts = {"text": repr(text)} if text is not None else {}
        kinds = [nodes[n].kind for n in now]
        first = next((n for n in now if nodes[n].kind == "kept"), None)
        return facts | {
            "beam size": str(beam_size),
            "length penalty": f"{length_penalty:g}",
            "step": f"{last} of {every[-1].step}",
            "candidates": ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds)),
            "best beginning": "none" if first is None else _said(nodes, first),
            "finished so far": str(len(done)),
            "best finished": "none"
            if best is None
            else f"{_said(nodes, best)}, log-probability {nodes[best].log_p:.3f}, score {score(best):.3f}",
            "drawn": f"{np.count_nonzero(tree.columns)} of {len(nodes) - 1} candidates",
        }

    controls = {} if text is None else {"text": ipywidgets.Text(value=text, description="text")}
    controls |= {
        "step": ipywidgets.IntSlider(step, min=1, max=longest, description="step"),
        "beam_size": ipywidgets.IntSlider(beam_size, min=1, max=_WIDEST, description="beam size"),
        "length_penalty": ipywidgets.FloatSlider(
            length_penalty, min=0, max=_MOST_PENALTY, step=0.1, description="length penalty"
        ),
    }
    return Explorer(title, controls, live, update, name="beam_search", measured=measured)


def _line(nodes: Sequence[Node], n: int) -> list[int]:
    """The numbers of the nodes from the first token to this one."""
    line = []
    while n > 0:
        line.append(n)
        n = nodes[n].parent
    return line[::-1]


def _said(nodes: Sequence[Node], n: int) -> str:
    words = " ".join(nodes[one].token for one in _line(nodes, n))
    return f"{words!r} ({probability(np.exp(nodes[n].log_p))})"


def _draw(tree: TreePanel, nodes: Sequence[Node], path: list[int], height: int) -> None:
    """Draw the last steps: the newest nodes with their ancestors, then what was kept, then the others."""
    last = nodes[-1].step
    newest = {one for n, node in enumerate(nodes) if node.step == last for one in _line(nodes, n)}
    first = {0, *path, *newest}
    seen = [n for n, node in enumerate(nodes) if node.step > last - COLUMNS]
    seen.sort(key=lambda n: (n not in first, nodes[n].kind == "dropped", -nodes[n].log_p))
    chosen = sorted(seen[: _MOST_NODES + (0 in seen)])
    number = {n: place for place, n in enumerate(chosen)}
    drawn = [nodes[n] for n in chosen]
    tree.update(
        [node.step for node in drawn],
        [node.rank for node in drawn],
        [number.get(node.parent, -1) for node in drawn],
        [node.kind for node in drawn],
        [node.token for node in drawn],
        [probability(np.exp(node.log_p)) if node.step else "" for node in drawn],
        values=[node.log_p for node in drawn],
        shares=[np.exp(node.log_p - nodes[max(node.parent, 0)].log_p) for node in drawn],
        path=[number[n] for n in path if n in number],
        height=height,
    )
