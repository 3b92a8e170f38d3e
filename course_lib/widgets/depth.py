"""The depth explorer: the effect of the norm and of warm-up on a deep stack of blocks."""

import numpy as np

from course_lib.experiments.depth import DEPTHS, PROBED, WARMUPS
from course_lib.experiments.runs import read, where
from course_lib.plots import LinesPanel, figure
from course_lib.transformer.layers import NORMS
from course_lib.widgets.explorer import View, explorer

_SMALLEST, _LARGEST = 1e-7, 10.0  # of the axis of gradient norms


@explorer
def depth_explorer(
    *, depth: int = 12, norm: str = "post", warmup: int = 0, after: int = 10
) -> View:
    """See the gradient norm of each block at a step of training.

    Everything was recorded by `python -m course_lib.experiments.depth`; curves are geometric means over three seeds.

    Args:
        depth, norm, warmup, after: initial values of the controls: one of `DEPTHS`, "pre" or "post", one of
            `WARMUPS`, and the step after which the gradients are shown, one of `PROBED`.
    """
    blocks, rows = np.arange(max(DEPTHS)), read("depth")
    fig, ax = figure(8, 3.6)
    ax.set(xlabel="block (0 = the first)", ylabel="gradient norm")
    lines = {name: np.full(len(blocks), np.nan) for name in NORMS}
    style = {"log_y": True, "y_limits": (_SMALLEST, _LARGEST), "legend": "lower right"}
    gradients = LinesPanel(ax, blocks, lines, **style)  # no curve reaches this corner
    ax.set_xlim(-0.5, max(DEPTHS) - 0.5)
    ax.xaxis.get_major_locator().set_params(integer=True)

    def update(depth: int, norm: str, warmup: int, after: int) -> dict[str, str]:
        runs = {name: where(rows, depth=depth, norm=name, warmup=warmup) for name in NORMS}
        by_block = {name: _by_block(each, after, len(blocks)) for name, each in runs.items()}
        gradients.update(emphasise=norm, **by_block)
        mine = by_block[norm][:depth]
        return {
            "norm": norm,
            "depth": str(depth),
            "warm-up": f"{warmup} steps",
            f"gradient norm of block 0 after {after} steps": f"{mine[0]:.2g}",
            f"of block {depth - 1}": f"{mine[-1]:.2g}",
        }

    controls = {"depth": DEPTHS, "norm": NORMS, "warmup": WARMUPS, "after": PROBED}
    labels = {"warmup": "warm-up", "after": "after step"}
    return View("Depth", [gradients], update, controls, "depth", labels)


def _by_block(runs: list[dict], after: int, count: int) -> np.ndarray:
    """Return the geometric mean over the seeds, padded with NaN to `count` blocks."""
    seeds = np.array([run["gradients"][PROBED.index(after)] for run in runs])  # (seed, block)
    norms = np.full(count, np.nan)
    norms[: seeds.shape[1]] = np.exp(np.log(np.maximum(seeds, 1e-12)).mean(axis=0))
    return norms
