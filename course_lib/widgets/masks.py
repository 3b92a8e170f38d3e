"""The explorer of notebook 04: a mask, as three conventions write it, and what it does to the weights."""

import ipywidgets
import matplotlib
import numpy as np
import torch
from torch import Tensor

from course_lib.inputs import require_one_of, require_whole
from course_lib.masks import causal_mask, combine_masks, masked_softmax, padding_mask
from course_lib.plots import GridPanel, figure
from course_lib.plots.style import STYLE
from course_lib.widgets.explorer import Explorer
from course_lib.widgets.live_figure import LiveFigure

_WORDS = ("the", "old", "fox", "runs", "fast")
_MOST = len(_WORDS)
KINDS = ("none", "padding", "causal", "both")

#: How libraries write a mask: name → what stands where a query may attend, and where it may not.
CONVENTIONS = {
    "True = may attend": ("True", "False"),
    "True = hidden": ("False", "True"),
    "added to the scores": ("0", "−∞"),
}


def mask_explorer(
    *, kind: str = "both", length: int = 4, queries: int = 5, seed: int = 0
) -> Explorer:
    """Choose a mask; see it in three conventions, and the weights that are left.

    Args:
        kind: a name of `KINDS`.
        length: how many of the five keys are real, the rest being padding; 0 to 5.
        queries: how many queries there are, the last of the five positions; 1 to 5.
        seed: of the scores, drawn from a normal distribution.

    Raises:
        ValueError: for a kind, a length or a number of queries that the explorer does not have.
    """
    require_one_of(KINDS, kind=kind)
    require_whole(0, length=length)
    require_whole(queries=queries)
    for name, number in (("length", length), ("queries", queries)):
        if number > _MOST:
            raise ValueError(f"{name}={number} must be at most {_MOST}")
    scores = torch.randn(_MOST, _MOST, generator=torch.Generator().manual_seed(seed))

    with matplotlib.rc_context(STYLE):
        drawn, axes = figure(10.4, 3.2, columns=3)
        panels = [
            GridPanel(one, _WORDS, _WORDS, title=title, limits=limits)
            for one, title, limits in zip(
                axes, ("scores", "mask", "weights"), ((-3, 3), (-1, 1), (0, 1)), strict=True
            )
        ]
        live = LiveFigure(drawn, panels)

    def update(kind: str, length: int, queries: int, convention: str) -> dict[str, str]:
        mask = _mask(kind, length, queries)  # (query, key)
        weights = masked_softmax(scores[-queries:], mask)  # (query, key)
        panels[0].update(_placed(scores[-queries:]))
        allowed, hidden = CONVENTIONS[convention]
        shown = _placed(mask.float() * 2 - 1)  # orange where allowed, blue where hidden
        panels[1].update(shown, [allowed if cell > 0 else hidden for cell in shown.flat])
        panels[2].update(_placed(weights))
        lonely = (~mask.any(-1)).sum().item()
        return {
            "mask": kind,
            "convention": convention,
            "pairs that may attend": f"{mask.sum().item()} of {mask.numel()}",
            "queries that may attend to nothing": str(lonely),
            "weights of the last query": " ".join(
                f"{weight:.2f}" for weight in weights[-1].tolist()
            ),
        }

    controls = {
        "kind": ipywidgets.Dropdown(value=kind, options=KINDS, description="mask"),
        "length": ipywidgets.IntSlider(length, min=0, max=_MOST, description="length"),
        "queries": ipywidgets.IntSlider(queries, min=1, max=_MOST, description="queries"),
        "convention": ipywidgets.Dropdown(options=list(CONVENTIONS), description="written"),
    }
    return Explorer("Masks", controls, live, update, name="masks")


def _mask(kind: str, length: int, queries: int) -> Tensor:
    everyone = torch.ones(queries, _MOST, dtype=torch.bool)
    padding = (
        padding_mask(torch.tensor([length]), _MOST)[0] if kind in ("padding", "both") else None
    )
    causal = causal_mask(queries, _MOST) if kind in ("causal", "both") else None
    return combine_masks(everyone, padding, causal)


def _placed(rows: Tensor) -> np.ndarray:
    """The queries at their places, the last ones; nothing above them."""
    placed = np.full((_MOST, _MOST), np.nan)
    placed[-len(rows) :] = rows
    return placed
