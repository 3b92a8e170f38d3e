"""The scaling explorer: a budget of compute, and what a model of some size makes of it, by three laws."""

import math

import numpy as np

from course_lib.experiments.scaling_ladder import recorded_points, recorded_surface
from course_lib.plots import LinesPanel, figure
from course_lib.topics.scaling import LossSurface
from course_lib.widgets.controls import Powers
from course_lib.widgets.explorer import View, explorer, short

#: Powers of ten of the budgets, and the step of their slider.
BUDGETS, STEP = (9, 14), 0.25
#: Sizes as multiples of the best one.
SIZES = tuple(2.0**k for k in range(-4, 5))
#: Published laws. Sources: Hoffmann et al. (2022), section D.3; Besiroglu et al. (2024), table 1, a refit.
PUBLISHED = {
    "Hoffmann 2022": LossSurface(1.69, 406.4, 0.34, 410.7, 0.28),
    "Besiroglu 2024": LossSurface(1.8172, 482.01, 0.3478, 2085.43, 0.3658),
}
_GRID = 161


def compute_share(surface: LossSurface, relative_size: float | np.ndarray) -> float | np.ndarray:
    r"""Return the share of the compute with which the best size has the same loss as a size that is not the best.

    At the optimum $\alpha A N^{-\alpha} = \beta B D^{-\beta}$, so with $r$ times the best size and the tokens
    divided by $r$, the loss above $E$ is $(r^{-\alpha} / \alpha + r^\beta / \beta) / (1 / \alpha + 1 / \beta)$ times
    the lowest one. On the frontier $L - E \propto C^{-\alpha\beta / (\alpha + \beta)}$. The budget cancels.
    """
    alpha, beta = surface.size_exponent, surface.token_exponent
    above = relative_size**-alpha / alpha + relative_size**beta / beta
    return (above / (1 / alpha + 1 / beta)) ** (-1 / alpha - 1 / beta)


@explorer
def scaling_explorer(
    surface: LossSurface | None = None, *, flops: float = 1e12, relative_size: float = 1.0
) -> View:
    """Choose a budget of compute and a size of the model; see the tokens, the loss, and what the best size gives.

    The left panel shows what a wrong size wastes, by this law and by two published ones: none of the three curves
    depends on the budget. The right panel shows the losses of this law.

    Args:
        surface: a fitted `LossSurface`; that of the recorded ladder where left out.
        flops: the budget $C = 6 N D$, from 1e9 to 1e14.
        relative_size: the size of the model as a multiple of the best one for this budget, one of `SIZES`: 1/16,
            1/8, …, 16.
    """
    measured = math.inf if surface else max(point.flops for point in recorded_points())
    surface = surface or recorded_surface()
    budgets = np.logspace(*BUDGETS, _GRID)
    best = np.array([surface.optimal(budget).loss for budget in budgets])
    laws = {"this law" if measured == math.inf else "this ladder": surface} | PUBLISHED
    relative = np.geomspace(SIZES[0], SIZES[-1], _GRID)
    top = surface.irreducible + 1.6 * (best[0] - surface.irreducible)
    limits = (min(surface.irreducible, best[-1]) * 0.98, top)

    fig, (left, right) = figure(10.4, 3.8, columns=2)
    left.set(title="what the best size would need", xlabel="size, in units of the best")
    left.set(ylabel="share of compute that suffices")
    right.set(title="loss by compute", xlabel="compute in FLOPs", ylabel="loss in nats")
    lines = {name: compute_share(law, relative) for name, law in laws.items()}
    waste = LinesPanel(left, relative, lines, log_x=True, y_limits=(0, 1.05), legend="lower center")
    lines = {"best size": best, "this size": 0 * best}
    frontier = LinesPanel(right, budgets, lines, log_x=True, y_limits=limits)

    def update(flops: float, relative_size: float) -> dict[str, str]:
        optimum = surface.optimal(flops)
        size = relative_size * optimum.parameters
        tokens = flops / 6 / size
        loss = surface.predict(size, tokens)
        shares = {name: compute_share(law, relative_size) for name, law in laws.items()}
        waste.update(marker=(relative_size, next(iter(shares.values()))))
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
        enough = ", ".join(f"{share:.0%} ({name})" for name, share in shares.items())
        return facts | {"compute with which the best size has this loss": enough}

    controls = {
        "flops": Powers(*(10.0**power for power in BUDGETS), STEP, ".2e"),
        "relative_size": {f"{short(one)} ×": one for one in SIZES},
    }
    labels = {"flops": "budget", "relative_size": "size"}
    return View("Scaling", [waste, frontier], update, controls, "scaling", labels)
