"""The explorer of notebook 02: scores of random vectors, and their softmax."""

import math

import numpy as np
import torch
from torch import Tensor

from course_lib.plots import HistogramPanel, LinesPanel, StemsPanel, figure
from course_lib.topics.attention_maps import entropy
from course_lib.transformer.scoring import DotScore
from course_lib.widgets.explorer import View, explorer, short

#: The factor of the dot product, as a function of the dimension d of the vectors.
SCALES = {"1": lambda d: 1.0, "1/√d": lambda d: d**-0.5, "1/d": lambda d: 1.0 / d}

_DIMENSIONS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
_QUERIES, _KEYS = 64, 32
_EDGES = np.linspace(-40.25, 40.25, 162)


@explorer
def score_explorer(*, d: int = 64, scale: str = "1", query: int = 0) -> View:
    """Change the dimension of the vectors and the scale; see scores, weights, entropy and the norm of the Jacobian.

    64 queries and 32 keys are sampled from a standard normal distribution. A larger dimension adds components
    to the vectors and keeps the others.

    Args:
        d: the dimension, initial value of its slider: 1, 2, 3, 4, 6, 8, … 1024.
        scale: a key of `SCALES`: "1", "1/√d" or "1/d".
        query: whose weights are shown, 0 to 63.
    """
    generator = torch.Generator().manual_seed(0)
    queries = torch.randn(_QUERIES, _DIMENSIONS[-1], generator=generator)
    keys = torch.randn(_KEYS, _DIMENSIONS[-1], generator=generator)
    dots = {d: DotScore()(queries[:, :d], keys[:, :d]) for d in _DIMENSIONS}  # (query, key) each

    def weights_at(d: int, scale: str) -> Tensor:
        return torch.softmax(dots[d] * SCALES[scale](d), dim=-1)

    curves = {
        scale: {
            "normalised entropy": [
                entropy(weights_at(d, scale)).median().item() / math.log(_KEYS) for d in _DIMENSIONS
            ],
            "norm of the Jacobian": [
                gradient_norm(weights_at(d, scale)).median().item() for d in _DIMENSIONS
            ],
        }
        for scale in SCALES
    }
    fig, (left, middle, right) = figure(10.4, 3.4, columns=3)
    left.set(title="all scores", xlabel="score")
    middle.set(title="weights of this query", xlabel="key")
    right.set(title="by dimension", xlabel="dimension d", ylabel="median over the queries")
    histogram, stems = (
        HistogramPanel(left, _EDGES, largest=0.4),
        StemsPanel(middle, np.arange(_KEYS)),
    )
    limits = (0, 1.25)  # with space for the legend
    lines = LinesPanel(right, np.array(_DIMENSIONS), curves["1"], log_x=True, y_limits=limits)

    def update(d: int, scale: str, query: int) -> dict[str, str]:
        scores, weights = dots[d] * SCALES[scale](d), weights_at(d, scale)
        histogram.update(scores)
        stems.update(weights[query])
        index = _DIMENSIONS.index(d)
        now = {name: curve[index] for name, curve in curves[scale].items()}
        lines.update(marker=([d, d], list(now.values())), **curves[scale])
        largest = weights[query].argmax().item()
        return {
            "d": str(d),
            "scale": scale,
            "variance of the scores": short(scores.var().item()),
            "scores outside the picture": f"{100 * (scores.abs() > _EDGES[-1]).float().mean():.0f} %",
            "query": str(query),
            "largest weight": f"{weights[query, largest].item():.2f} at key {largest}",
            "median entropy": f"{now['normalised entropy']:.2f} of log {_KEYS}",
            "median norm of the Jacobian": f"{now['norm of the Jacobian']:.3f}",
        }

    controls = {"d": _DIMENSIONS, "scale": list(SCALES), "query": range(_QUERIES)}
    panels = [histogram, stems, lines]
    return View("Scores of random vectors", panels, update, controls, "scores")


def gradient_norm(weights: Tensor) -> Tensor:
    r"""Return the Frobenius norm of the Jacobian of the softmax, per row.

    $$\frac{\partial \alpha_i}{\partial a_j} = \alpha_i ([i = j] - \alpha_j)$$
    """
    jacobian = torch.diag_embed(weights) - weights[..., :, None] * weights[..., None, :]
    return torch.linalg.matrix_norm(jacobian)
