"""The explorer of notebook 02: scores of random vectors, and what a softmax makes of them."""

import math

import ipywidgets
import matplotlib
import numpy as np
import torch
from torch import Tensor

from course_lib.inputs import require_one_of, require_whole
from course_lib.plots import HistogramPanel, LinesPanel, StemsPanel, figure
from course_lib.plots.style import STYLE
from course_lib.scoring import DotScore
from course_lib.widgets.explorer import Explorer, short
from course_lib.widgets.live_figure import LiveFigure

#: What the dot product is multiplied by, as a function of the size d of the vectors.
SCALES = {"1": lambda d: 1.0, "1/√d": lambda d: d**-0.5, "1/d": lambda d: 1.0 / d}

_SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
_QUERIES, _KEYS = 64, 32
_EDGES = np.linspace(-40.25, 40.25, 162)


def score_explorer(*, size: int = 64, scale: str = "1", query: int = 0, seed: int = 0) -> Explorer:
    """Change the size of the vectors and the scale; watch scores, weights, entropy and gradient.

    64 queries and 32 keys are drawn from a standard normal distribution. A larger size adds numbers to
    the vectors and keeps those that were there.

    Args:
        size: $d$, where its slider starts: 1, 2, 3, 4, 6, 8, … 1024.
        scale: a key of `SCALES`: "1", "1/√d" or "1/d".
        query: whose weights are drawn, 0 to 63.
        seed: of the draw.

    Raises:
        ValueError: for a size, scale or query that the explorer does not have.
    """
    require_whole(size=size)
    require_whole(0, query=query)
    require_one_of(SCALES, scale=scale)
    if size not in _SIZES:
        raise ValueError(f"size={size} must be one of {', '.join(map(str, _SIZES))}")
    if query >= _QUERIES:
        raise ValueError(f"query={query} must be below {_QUERIES}")
    draw = torch.Generator().manual_seed(seed)
    queries = torch.randn(_QUERIES, _SIZES[-1], generator=draw)
    keys = torch.randn(_KEYS, _SIZES[-1], generator=draw)
    dots = {d: DotScore()(queries[:, :d], keys[:, :d]) for d in _SIZES}  # (query, key) each

    def weights_at(d: int, scale: str) -> Tensor:
        return torch.softmax(dots[d] * SCALES[scale](d), dim=-1)

    curves = {
        scale: {
            "entropy": [entropy(weights_at(d, scale)).median().item() for d in _SIZES],
            "gradient": [gradient_norm(weights_at(d, scale)).median().item() for d in _SIZES],
        }
        for scale in SCALES
    }
    with matplotlib.rc_context(STYLE):
        drawn, (left, middle, right) = figure(10.4, 3.4, columns=3)
        histogram = HistogramPanel(left, _EDGES, x_label="score", title="all scores", largest=0.4)
        stems = StemsPanel(middle, np.arange(_KEYS), title="weights of this query")
        lines = LinesPanel(
            right,
            np.array(_SIZES),
            {name: np.zeros(len(_SIZES)) for name in ("entropy", "gradient")},
            x_label="d, the size of the vectors",
            y_label="median over the queries",
            title="by size of the vectors",
            log_x=True,
            y_limits=(0, 1.25),  # room for the legend
        )
        live = LiveFigure(drawn, [histogram, stems, lines])

    def update(size: int, scale: str, query: int) -> dict[str, str]:
        require_one_of(SCALES, scale=scale)
        scores, weights = dots[size] * SCALES[scale](size), weights_at(size, scale)
        histogram.update(scores)
        stems.update(weights[query])
        place = _SIZES.index(size)
        now = {name: curve[place] for name, curve in curves[scale].items()}
        lines.update(marker=([size, size], list(now.values())), **curves[scale])
        largest = weights[query].argmax().item()
        return {
            "d": str(size),
            "scale": scale,
            "variance of the scores": short(scores.var().item()),
            "scores outside the picture": f"{100 * (scores.abs() > _EDGES[-1]).float().mean():.0f} %",
            "query": str(query),
            "largest weight": f"{weights[query, largest].item():.2f} at key {largest}",
            "median entropy": f"{now['entropy']:.2f} of log {_KEYS}",
            "median gradient": f"{now['gradient']:.3f}",
        }

    controls = {
        "size": ipywidgets.SelectionSlider(value=size, options=_SIZES, description="d"),
        "scale": ipywidgets.Dropdown(value=scale, options=list(SCALES), description="scale"),
        "query": ipywidgets.IntSlider(value=query, min=0, max=_QUERIES - 1, description="query"),
    }
    return Explorer("Scores of random vectors", controls, live, update, name="scores")


def entropy(weights: Tensor) -> Tensor:
    r"""$-\sum_j \alpha_j \log \alpha_j$ of each row, as a share of its largest value $\log n$."""
    return torch.special.entr(weights).sum(-1) / math.log(weights.shape[-1])


def gradient_norm(weights: Tensor) -> Tensor:
    r"""How much the weights of each row answer to their scores: the Frobenius norm of the Jacobian.

    $$\frac{\partial \alpha_i}{\partial a_j} = \alpha_i ([i = j] - \alpha_j)$$
    """
    jacobian = torch.diag_embed(weights) - weights[..., :, None] * weights[..., None, :]
    return torch.linalg.matrix_norm(jacobian)
