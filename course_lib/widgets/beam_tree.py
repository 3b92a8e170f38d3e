"""The beam-search explorer: the tree of candidates, step by step."""

from collections.abc import Sequence

import numpy as np

from course_lib.data.table_model import Table
from course_lib.plots import TreePanel, figure
from course_lib.plots.tree import COLUMNS
from course_lib.train.translator import PhraseTranslator
from course_lib.widgets.controls import Numbers, Text
from course_lib.widgets.explorer import View, explorer, probability
from course_lib.widgets.search_tree import LARGEST_BEAM, MOST_PENALTY, Node, searcher

_MOST_NODES = 40


@explorer
def beam_explorer(
    source: PhraseTranslator | Table,
    text: str | None = None,
    *,
    step: int | None = None,
    beam_size: int = 3,
    length_penalty: float = 1.0,
    title: str = "Beam search",
    approximate: bool = False,
) -> View:
    """Step through a beam search: the candidates of each step, which the beam keeps, which are complete.

    There is a column per step, with the most probable candidate on top; the number is the probability of the
    whole hypothesis. The thickness of a line is the probability of the token given its parent. At most 40
    candidates of the last 8 steps are shown: those of the current step with their ancestors, then those that
    the beam kept, the most probable first.

    Args:
        source: a translator, and then there is a box to type in; or a table for `table_model`, prefix →
            {token: probability}.
        text: initial content of the text box.
        step: the current step of the search; the last one where left out.
        beam_size: 1 to 5.
        length_penalty: α of the score log p / lengthᵅ, 0 to 2; a larger one favours longer hypotheses.
        title: the first words of the summary.
        approximate: as for `Explorer`; true for a model that was trained in the notebook.

    Raises:
        ValueError: for a source of another kind, a missing or needless text, one that the translator
            refuses, and a table that `table_model` refuses.
    """
    search, longest = searcher(source, text)

    fig, axes = figure(10.4, 4.6)
    axes.set_title(
        "filled: kept, dashed: dropped, square: set aside as complete, orange: the best of these\n"
        "number: probability of the hypothesis; line: the thicker, the more probable its last token\n"
    )
    tree = TreePanel(axes, "log-probability", columns=min(COLUMNS, longest + 1))

    def update(step: int, beam_size: int, length_penalty: float, text: str | None) -> dict:
        every = search(text, beam_size, length_penalty)
        last = min(step, every[-1].step)
        nodes = [node for node in every if node.step <= last]
        done = [n for n, node in enumerate(nodes) if node.kind == "complete"]

        def score(n: int) -> float:
            return nodes[n].log_p / nodes[n].step ** length_penalty

        best = max(done, key=score, default=None)
        path = [] if best is None else _path(nodes, best)
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
            "best partial hypothesis": "none" if first is None else _phrase(nodes, first),
            "complete hypotheses": str(len(done)),
            "best complete hypothesis": "none"
            if best is None
            else f"{_phrase(nodes, best)}, log-probability {nodes[best].log_p:.3f}, score {score(best):.3f}",
            "shown": f"{np.count_nonzero(tree.columns)} of {len(nodes) - 1} candidates",
        }

    def limits(beam_size: int, length_penalty: float, text: str | None, **_) -> dict:
        return {"step": search(text, beam_size, length_penalty)[-1].step}

    controls = {
        "text": Text(getattr(source, "rule", ""), tuple(getattr(source, "known", ()))),
        "step": range(1, longest + 1),
        "beam_size": range(1, LARGEST_BEAM + 1),
        "length_penalty": Numbers(0, MOST_PENALTY, 0.1),
    }
    return View(
        title, [tree], update, controls, "beam_search",
        labels={"beam_size": "beam size", "length_penalty": "length penalty"},
        start={"step": longest if step is None else step},
        approximate=approximate, limits=limits,
    )  # fmt: skip


def _path(nodes: Sequence[Node], n: int) -> list[int]:
    """Return the indices of the nodes from the first token to this one."""
    path = []
    while n > 0:
        path.append(n)
        n = nodes[n].parent
    return path[::-1]


def _phrase(nodes: Sequence[Node], n: int) -> str:
    words = " ".join(nodes[one].token for one in _path(nodes, n))
    return f"{words!r} ({probability(np.exp(nodes[n].log_p))})"


def _draw(tree: TreePanel, nodes: Sequence[Node], path: list[int], height: int) -> None:
    """Draw the last steps: the newest nodes with their ancestors, then what was kept, then the others."""
    last = nodes[-1].step
    newest = {one for n, node in enumerate(nodes) if node.step == last for one in _path(nodes, n)}
    first = {0, *path, *newest}
    seen = [n for n, node in enumerate(nodes) if node.step > last - COLUMNS]
    seen.sort(key=lambda n: (n not in first, nodes[n].kind == "dropped", -nodes[n].log_p))
    chosen = sorted(seen[: _MOST_NODES + (0 in seen)])
    number = {n: index for index, n in enumerate(chosen)}
    shown = [nodes[n] for n in chosen]
    tree.update(
        [node.step for node in shown],
        [node.rank for node in shown],
        [number.get(node.parent, -1) for node in shown],
        [node.kind for node in shown],
        [node.token for node in shown],
        [probability(np.exp(node.log_p)) if node.step else "" for node in shown],
        values=[node.log_p for node in shown],
        shares=[np.exp(node.log_p - nodes[max(node.parent, 0)].log_p) for node in shown],
        path=[number[n] for n in path if n in number],
        height=height,
    )
