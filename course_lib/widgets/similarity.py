"""The opening explorer of notebook 02: one query, five keys, and what a score makes of them."""

import math

import torch
import torch.nn.functional as F

from course_lib.plots import BarsPanel, VectorsPanel, figure
from course_lib.transformer.scoring import DotScore, GaussianScore
from course_lib.widgets.controls import Numbers
from course_lib.widgets.explorer import View, explorer

#: Name → score of a query (1, 2) and keys (key, 2).
SCORES = {
    "dot": DotScore(),
    "cosine": lambda query, key: DotScore()(F.normalize(query, dim=-1), F.normalize(key, dim=-1)),
    "Gaussian": GaussianScore().requires_grad_(False),
}

#: Direction in degrees and norm of each key.
KEYS = ((20, 1.0), (60, 2.0), (130, 1.0), (200, 1.5), (300, 0.5))
_LONGEST = 4.0
#: From the tip of a unit vector to its label: 40° to the right, so that a parallel query does not hide it.
_ASIDE = 0.55 * torch.tensor([[0.77, 0.64], [-0.64, 0.77]])


@explorer
def similarity_explorer(*, score: str = "dot", direction: int = 40, norm: float = 1.0) -> View:
    """Rotate and lengthen a query in the plane; see its score with each of five keys, and the weights.

    Args:
        score: a name of `SCORES`.
        direction: of the query, in degrees, a multiple of 5 from 0 to 355.
        norm: of the query, a multiple of 0.25 from 0.25 to 4.
    """
    keys = torch.stack([_vector(*one) for one in KEYS])  # (key, 2)

    fig, (left, right) = figure(8.6, 3.8, columns=2, width_ratios=(1, 1.25))
    limits = -_LONGEST - 0.2, _LONGEST + 0.2
    left.set(xlim=limits, ylim=limits, title="query (blue) and keys (orange)")
    left.set(xlabel="component 0", ylabel="component 1")
    for number, key in enumerate(keys):
        x, y = key + _ASIDE @ key / key.norm()
        left.text(x, y, f"k{number}", ha="center", va="center")
    plane = VectorsPanel(left, [(0, 0)], ("query", "keys"), widths=(3, 2.2))
    right.set(xlabel="attention weight", title="scores, and their softmax")
    bars = BarsPanel(right, len(keys), names=("key", "weight", ""), name_width=0.45)

    def update(score: str, direction: int, norm: float) -> dict[str, str]:
        query = _vector(direction, norm)  # (2,)
        scores = SCORES[score](query[None], keys)[0]  # (key,)
        weights = torch.softmax(scores, dim=-1)
        plane.update(query[None], keys, weights=weights)
        shown = [f"{round(number, 2) + 0.0:+.2f}" for number in scores.tolist()]  # no -0.00
        names = [f"k{j}: {number}" for j, number in enumerate(shown)]
        bars.update(names, weights, colours=["second"] * len(keys))
        return {
            "score": score,
            "direction": f"{direction}°",
            "norm": f"{norm:g}",
            "scores": " ".join(shown),
            "weights": " ".join(f"{number:.3f}" for number in weights.tolist()),
        }

    controls = {
        "score": list(SCORES),
        "direction": range(0, 360, 5),
        "norm": Numbers(0.25, _LONGEST, 0.25),
    }
    return View("One query and five keys", [plane, bars], update, controls, "similarity")


def _vector(direction: float, norm: float) -> torch.Tensor:
    angle = math.radians(direction)
    return norm * torch.tensor([math.cos(angle), math.sin(angle)])
