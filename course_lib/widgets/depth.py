"""The depth explorer: the effect of the norm and of warm-up on a deep stack of blocks."""

import numpy as np

from course_lib.blocks import NORMS
from course_lib.experiments.depth import DEPTHS, EVERY, PROBED, STEPS, WARMUPS, name_of, recorded
from course_lib.plots import LinesPanel, figure
from course_lib.widgets.explorer import View, explorer

_SMALLEST, _LARGEST = 1e-7, 10.0  # of the axis of gradient norms


@explorer
def depth_explorer(*, depth: int = 12, norm: str = "post", warmup: int = 0, after: int = 0) -> View:
    """See the gradient norm of each block, and the training loss.

    Everything was recorded by `python -m course_lib.experiments.depth`; curves are means over three seeds.

    Args:
        depth, norm, warmup, after: initial values of the controls: one of `DEPTHS`, "pre" or "post", one of
            `WARMUPS`, and the step after which the gradients are shown, one of `PROBED`.
    """
    blocks, steps = np.arange(max(DEPTHS)), np.arange(EVERY, STEPS + 1, EVERY)
    fig, (left, right) = figure(10.4, 3.6, columns=2)
    left.set(title="gradient norm by block", xlabel="block (0 = the first)", ylabel="gradient norm")
    right.set(title="training", xlabel="step", ylabel="loss in nats")
    lines = {name: np.full(len(blocks), np.nan) for name in NORMS}
    style = {"log_y": True, "y_limits": (_SMALLEST, _LARGEST), "legend": "lower right"}
    gradients = LinesPanel(left, blocks, lines, **style)  # no curve reaches this corner
    left.set_xlim(-0.5, max(DEPTHS) - 0.5)
    left.xaxis.get_major_locator().set_params(integer=True)
    losses = LinesPanel(right, steps, {name: 0 * steps for name in NORMS}, y_limits=(0, 4))

    def update(depth: int, norm: str, warmup: int, after: int) -> dict[str, str]:
        runs = {name: recorded()[name_of(depth, name, warmup)] for name in NORMS}
        by_block = {name: _by_block(run, after, len(blocks)) for name, run in runs.items()}
        gradients.update(emphasise=norm, **by_block)
        mean_losses = {name: np.mean(run["losses"], axis=0) for name, run in runs.items()}
        losses.update(emphasise=norm, **mean_losses)
        mine, ends = by_block[norm][:depth], [losses[-1] for losses in runs[norm]["losses"]]
        return {
            "norm": norm,
            "depth": str(depth),
            "warm-up": f"{warmup} steps",
            f"gradient norm of block 0 after {after} steps": f"{mine[0]:.2g}",
            f"of block {depth - 1}": f"{mine[-1]:.2g}",
            "final losses of three seeds": ", ".join(f"{end:.2g}" for end in sorted(ends)),
        }

    controls = {"depth": DEPTHS, "norm": NORMS, "warmup": WARMUPS, "after": PROBED}
    labels = {"warmup": "warm-up", "after": "after step"}
    return View("Depth", [gradients, losses], update, controls, "depth", labels)


def _by_block(run: dict, after: int, count: int) -> np.ndarray:
    """Return the geometric mean over the seeds, padded with NaN to `count` blocks."""
    seeds = np.array(run["gradients"][str(after)])  # (seed, block)
    norms = np.full(count, np.nan)
    norms[: seeds.shape[1]] = np.exp(np.log(np.maximum(seeds, 1e-12)).mean(axis=0))
    return norms
