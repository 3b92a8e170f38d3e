"""The scaling explorer: a budget of compute, and what a model of some size makes of it."""

import math

import numpy as np

from course_lib.experiments.scaling_ladder import recorded_points, recorded_surface
from course_lib.plots import LinesPanel, figure
from course_lib.scaling import LossSurface
from course_lib.widgets.controls import Powers
from course_lib.widgets.explorer import View, explorer, short

#: Powers of ten of the budgets, and the step of their slider.
BUDGETS, STEP = (9, 14), 0.25
#: Sizes as multiples of the best one.
SIZES = tuple(2.0**k for k in range(-4, 5))
_GRID = 161


@explorer
def scaling_explorer(
    surface: LossSurface | None = None, *, flops: float = 1e12, relative_size: float = 1.0
) -> View:
    """Choose a budget of compute and a size of the model; see the tokens, the loss, and what the best size gives.

    Args:
        surface: a fitted `LossSurface`; the recorded one of `course_lib.experiments.scaling_ladder` where left
            out.
        flops: the budget $C = 6 N D$, from 1e9 to 1e14.
        relative_size: the size of the model as a multiple of the best one for this budget, one of `SIZES`: 1/16,
            1/8, …, 16.
    """
    measured = math.inf if surface else max(point.flops for point in recorded_points())
    surface = surface or recorded_surface()
    budgets = np.logspace(*BUDGETS, _GRID)
    best = np.array([surface.optimal(budget).loss for budget in budgets])
    sizes = np.geomspace(
        surface.optimal(budgets[0]).parameters / 4,
        surface.optimal(budgets[-1]).parameters * 3,
        _GRID,
    )
    top = surface.irreducible + 1.6 * (best[0] - surface.irreducible)
    limits = (min(surface.irreducible, best[-1]) * 0.98, top)

    fig, (left, right) = figure(10.4, 3.8, columns=2)
    left.set(title="same compute, other sizes", xlabel="parameters", ylabel="loss in nats")
    right.set(title="loss by compute", xlabel="compute in FLOPs", ylabel="loss in nats")
    lines = {"this budget": 0 * sizes, "10 × the budget": 0 * sizes}
    curve = LinesPanel(left, sizes, lines, log_x=True, y_limits=limits, legend="lower left")
    lines = {"best size": best, "this size": 0 * best}
    frontier = LinesPanel(right, budgets, lines, log_x=True, y_limits=limits)

    def along(budget: float) -> np.ndarray:
        losses = surface.predict(sizes, budget / 6 / sizes).numpy()
        return np.where(losses <= top, losses, np.nan)

    # on the frontier L − E ∝ C^−γ with γ = αβ / (α + β)
    gamma = surface.size_exponent * surface.a

    def update(flops: float, relative_size: float) -> dict[str, str]:
        optimum = surface.optimal(flops)
        size = relative_size * optimum.parameters
        tokens = flops / 6 / size
        loss = surface.predict(size, tokens)
        curve.update(
            marker=(size, loss),
            **{"this budget": along(flops), "10 × the budget": along(10 * flops)},
        )
        fixed = surface.predict(size, budgets / 6 / size).numpy()
        frontier.update(
            marker=(flops, loss), **{"this size": np.where(fixed <= top, fixed, np.nan)}
        )
        facts = {
            "budget": f"{flops:.2g} FLOPs",
            "size": f"{short(size)} parameters, {short(relative_size)} × the best",
            "tokens": f"{short(tokens)}, {short(tokens / size)} per parameter",
            "loss": f"{loss:.3f} nats",
            "loss of the best size": f"{optimum.loss:.3f} nats",
        }
        if flops > measured:
            beyond = f", {short(flops / measured)} × the largest recorded run: extrapolated"
            facts["budget"] += beyond
        excess = (loss - surface.irreducible) / (optimum.loss - surface.irreducible)
        share = excess ** (-1 / gamma)
        return facts | {"compute that the best size needs for this loss": f"{share:.0%}"}

    controls = {
        "flops": Powers(*(10.0**power for power in BUDGETS), STEP, ".2e"),
        "relative_size": {f"{short(one)} ×": one for one in SIZES},
    }
    labels = {"flops": "budget", "relative_size": "size"}
    return View("Scaling", [curve, frontier], update, controls, "scaling", labels)
