"""The explorer of notebook 04: a mask in four conventions, and its effect on the attention weights."""

import numpy as np
import torch
from torch import Tensor

from course_lib.plots import MapPanel, figure
from course_lib.plots.map import numbers_of
from course_lib.transformer.masks import causal_mask, combine_masks, masked_softmax, padding_mask
from course_lib.widgets.explorer import View, explorer

_WORDS = ("the", "old", "fox", "runs", "fast")
_MOST = len(_WORDS)
_SPACE = (0.15, 0.16, 0.0)  # for the words
KINDS = ("none", "padding", "causal", "both")

#: Conventions of libraries: name → the entry where a query may attend, and where it may not.
CONVENTIONS = {
    "True = may attend": ("True", "False"),
    "True = masked": ("False", "True"),
    "integer attention_mask": ("1", "0"),
    "added to the scores": ("0", "−∞"),
}


@explorer
def mask_explorer(
    *,
    kind: str = "both",
    length: int = 4,
    queries: int = 5,
    convention: str = "True = may attend",
) -> View:
    """Choose a mask; see it in four conventions, and the resulting attention weights.

    Args:
        kind: a name of `KINDS`.
        length: how many of the five keys are not padding; 0 to 5.
        queries: how many queries there are, at the last of the five positions; 1 to 5.
        convention: a key of `CONVENTIONS`.
    """
    scores = torch.randn(_MOST, _MOST, generator=torch.Generator().manual_seed(0))

    fig, axes = figure(10.4, 3.2, columns=3)
    for one, title in zip(axes, ("scores", "mask", "weights"), strict=True):
        one.set(title=title, xlabel="key", ylabel="query")
    scales = zip(axes, ("signed", "signed", "linear"), strict=True)
    panels = [MapPanel(one, scale=scale, bar=False, space=_SPACE) for one, scale in scales]

    def update(kind: str, length: int, queries: int, convention: str) -> dict[str, str]:
        everything = torch.ones(queries, _MOST, dtype=torch.bool)
        parts = [padding_mask(torch.tensor([length]), _MOST)[0]] * (kind in ("padding", "both"))
        parts += [causal_mask(queries, _MOST)] * (kind in ("causal", "both"))
        mask = combine_masks(everything, *parts)  # (query, key)
        weights = masked_softmax(scores[-queries:], mask)  # (query, key)
        for panel, numbers, largest in ((panels[0], scores[-queries:], 3), (panels[2], weights, 1)):
            shown = _aligned(numbers)
            panel.update(shown, _WORDS, _WORDS, largest=largest, texts=numbers_of(shown))
        allowed, masked = CONVENTIONS[convention]
        shown = _aligned(mask.float() * 2 - 1)  # orange where allowed, blue where masked
        words = np.where(np.isnan(shown), "", np.where(shown > 0, allowed, masked)).tolist()
        panels[1].update(shown, _WORDS, _WORDS, texts=words)
        return {
            "mask": kind,
            "convention": convention,
            "allowed pairs": f"{mask.sum().item()} of {mask.numel()}",
            "fully masked rows": str((~mask.any(-1)).sum().item()),
            "weights of the last query": " ".join(*numbers_of(weights[-1:])),
        }

    def limits(kind: str, **_) -> dict[str, int | None]:
        return {"length": _MOST if kind in ("padding", "both") else None}

    controls = {
        "kind": KINDS,
        "length": range(_MOST + 1),
        "queries": range(1, _MOST + 1),
        "convention": list(CONVENTIONS),
    }
    labels = {"kind": "mask"}
    return View("Masks", panels, update, controls, "masks", labels, limits=limits)


def _aligned(rows: Tensor) -> np.ndarray:
    """Put the queries at the last positions; NaN above them."""
    aligned = np.full((_MOST, _MOST), np.nan)
    aligned[-len(rows) :] = rows
    return aligned
