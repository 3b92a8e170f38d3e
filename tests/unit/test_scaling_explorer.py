"""The scaling explorer: what it draws and says is what the surface gives, computed by hand."""

import numpy as np
import pytest

from course_lib.experiments.scaling_ladder import recorded_points, recorded_surface
from course_lib.scaling import LossSurface
from course_lib.widgets import scaling_explorer
from tests.helpers.explorers import fact, move, panels

E, A, ALPHA, B, BETA = 0.9, 60.0, 0.35, 400.0, 0.4
SURFACE = LossSurface(E, A, ALPHA, B, BETA)
ENDS = [(1e9, 1 / 16), (1e9, 16.0), (10**12.25, 0.5), (1e14, 1.0), (1e14, 16.0)]


def loss_by_hand(size, tokens):
    return E + A / size**ALPHA + B / tokens**BETA


@pytest.mark.parametrize(("flops", "relative_size"), ENDS)
def test_the_markers_and_curves_are_those_of_the_surface(flops, relative_size):
    explorer = move(scaling_explorer(SURFACE), flops=flops, relative_size=relative_size)
    left, right = (panel.data() for panel in panels(explorer))
    sizes = np.geomspace(1, 1e12, 400_001)
    losses = loss_by_hand(sizes, flops / 6 / sizes)
    size = relative_size * sizes[losses.argmin()]
    shown = left["marker at"].item()
    loss = loss_by_hand(shown, flops / 6 / shown)
    assert shown == pytest.approx(size, rel=1e-3)
    assert right["marker at"] == pytest.approx(flops)
    assert left["height"] == pytest.approx(loss, abs=1e-6) == right["height"]
    assert float(fact(explorer, "loss").split()[0]) == pytest.approx(loss, abs=6e-4)
    best = float(fact(explorer, "loss of the best size").split()[0])
    assert best == pytest.approx(losses.min(), abs=6e-4)
    at = left["this budget"][np.isfinite(left["this budget"])]
    assert at.min() == pytest.approx(losses.min(), abs=1e-3)
    lower = left["10 × the budget"]
    assert np.nanmin(lower) < at.min()
    drawn = np.isfinite(right["this size"])
    assert (right["this size"][drawn] >= right["best size"][drawn] - 1e-9).all()


@pytest.mark.parametrize("relative_size", [0.25, 1.0, 4.0])
def test_the_share_of_compute_is_the_budget_with_which_the_best_size_has_that_loss(relative_size):
    explorer = move(scaling_explorer(SURFACE), flops=1e12, relative_size=relative_size)
    share = int(fact(explorer, "compute that the best size needs for this loss")[:-1]) / 100
    loss = panels(explorer)[1].data()["height"][0]
    enough, little = (SURFACE.optimal(1e12 * (share + one)).loss for one in (0.006, -0.006))
    assert enough <= loss <= little


def test_the_recorded_surface_is_the_default_and_a_budget_beyond_it_is_extrapolated():
    explorer = scaling_explorer(flops=1e11)
    best = recorded_surface().optimal(1e11)
    assert fact(explorer, "loss of the best size") == f"{best.loss:.3f} nats"
    assert "extrapolated" not in fact(explorer, "budget")
    assert 1e14 > max(point.flops for point in recorded_points())
    assert "extrapolated" in fact(move(explorer, flops=1e14), "budget")
    assert "extrapolated" not in fact(scaling_explorer(SURFACE, flops=1e14), "budget")
