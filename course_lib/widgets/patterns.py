"""The explorer of notebook 10: a sparse pattern, what it costs, and how much attention it loses."""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from course_lib.plots import LinesPanel, MapPanel, figure
from course_lib.topics.efficient import PATTERNS, attention_pattern, pattern_cost
from course_lib.widgets.explorer import View, explorer, short

_LENGTHS = 2 ** np.arange(7, 17)  # 128 to 65,536
_EXAMPLE = 8192  # the length whose cost is told in words
_D_HEAD = 64
_MOST_GLOBAL = 8


@explorer
def pattern_explorer(
    weights: Float[Tensor, "query key"],
    *,
    kind: str = "sliding_window",
    window: int = 4,
    global_tokens: int = 1,
) -> View:
    """Choose a pattern; see it, which attention weights of a dense model it loses, and what it costs.

    The weights that the pattern excludes are lost. If the others are divided by their sum, as the softmax of
    sparse attention does, then the lost share of a row is its total variation distance from the dense row.

    Args:
        weights: a map of dense attention, (query, key), whose rows sum to 1; 4 to 256 of each.
        kind: a name of `PATTERNS`.
        window: of the pattern, or the size of its blocks; from 1 to the number of keys.
        global_tokens: how many tokens, from the first one on, are global in "longformer"; 0 to 8.

    Raises:
        ValueError: for weights that are not a square map of attention.
    """
    length = len(weights)
    if tuple(weights.shape) != (length, length) or not 4 <= length <= 256:
        raise ValueError(
            f"weights has shape {tuple(weights.shape)}; it must be square, 4 to 256 tokens"
        )
    if not ((weights >= 0).all() and ((weights.sum(-1) - 1).abs() < 0.01).all()):
        raise ValueError("weights has rows that do not sum to 1; attention weights are needed")
    most_global = min(_MOST_GLOBAL, length)
    weights = weights.detach().float().cpu()
    brightest = weights.max().item()

    dense = _LENGTHS.astype(float) ** 2 * 4 / 2**20
    fig, axes = figure(10.4, 3.7, columns=3, width_ratios=(1, 1.25, 1.25))
    axes[0].set(title="may attend (orange)", xlabel="key", ylabel="query")
    axes[1].set(title="weights: kept (orange), lost (blue)", xlabel="key", ylabel="query")
    axes[2].set(title="scores of one head, float32", xlabel="length of the sequence", ylabel="MiB")
    pattern = MapPanel(axes[0], scale="signed", bar=False)
    sides, space = ("lost", "kept"), (0.1, 0.05, 0.24)
    kept = MapPanel(axes[1], scale="signed", sides=sides, text="weight", space=space)
    lines, limits_ = {"dense": dense, "this pattern": dense}, (1e-4, dense[-1] * 2)
    cost = LinesPanel(
        axes[2], _LENGTHS, lines, log_x=True, log_y=True, y_limits=limits_, legend="upper left"
    )

    def update(kind: str, window: int, global_tokens: int) -> dict[str, str]:
        # (query, key)
        mask = attention_pattern(kind, length, window, range(global_tokens), block_size=window)
        pattern.update(mask.float() * 2 - 1)
        kept.update(torch.where(mask, weights, -weights), largest=brightest)
        pairs = np.array([allowed_pairs(kind, int(n), window, global_tokens) for n in _LENGTHS])
        at = int(np.flatnonzero(_LENGTHS == _EXAMPLE)[0])
        mebibytes = pairs * 4 / 2**20
        cost.update(marker=(_EXAMPLE, mebibytes[at]), **{"this pattern": mebibytes})
        lost = weights.masked_fill(mask, 0.0).sum(-1)  # (query,)
        sizes = {"window": str(window)} if "window" in kind or kind == "longformer" else {}
        sizes |= {"block size": str(window)} if "block" in kind else {}
        sizes |= {"global tokens": str(global_tokens)} if kind == "longformer" else {}
        here, flops = pattern_cost(mask, _D_HEAD), 4 * _D_HEAD * pairs[at]
        return {
            "pattern": kind,
            **sizes,
            "scores": f"{here.scores:,} of {mask.numel():,} ({100 * here.fraction:.1f} %)",
            "attention lost": f"{lost.mean():.3f} on average, {lost.max():.3f} for query {lost.argmax()}",
            f"at length {_EXAMPLE:,}": f"{short(mebibytes[at])} MiB of scores and {short(flops / 1e9)} GFLOP "
            f"per head of {_D_HEAD}, {short(100 * pairs[at] / _EXAMPLE**2)} % of dense attention",
        }

    def limits(kind: str, **_) -> dict[str, int | None]:
        return {
            "window": None if kind in ("dense", "causal") else length,
            "global_tokens": most_global if kind == "longformer" else None,
        }

    controls = {
        "kind": PATTERNS,
        "window": range(1, length + 1),
        "global_tokens": range(most_global + 1),
    }
    labels = {"kind": "pattern", "window": "window or block size", "global_tokens": "global tokens"}
    panels = [pattern, kept, cost]
    return View("Sparse pattern", panels, update, controls, "patterns", labels, limits=limits)


def allowed_pairs(kind: str, length: int, window: int, global_tokens: int) -> int:
    """Count the scores of a pattern, query by query, without a matrix.

    Args:
        kind, length, window, global_tokens: as for `pattern_explorer`.
    """
    query = np.arange(length)
    first, end = np.zeros_like(query), np.full_like(query, length)  # of the keys near each query
    if "window" in kind or kind == "longformer":
        first = np.maximum(0, query - window + ("causal" in kind))
        end = np.minimum(length, query + window + 1)
    if "block" in kind:
        first = query // window * window
        end = np.minimum(length, first + window)
    if "causal" in kind:
        end = query + 1
    count = end - first
    if kind == "longformer":
        count += np.minimum(global_tokens, first) + np.maximum(0, global_tokens - end)
        count[:global_tokens] = length
    return int(count.sum())
