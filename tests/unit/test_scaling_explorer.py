"""The scaling explorer: what it draws and says is what the surface gives, computed by hand."""

import numpy as np
import pytest

from course_lib.experiments.scaling_ladder import recorded_points, recorded_surface
from course_lib.topics.scaling import LossSurface
from course_lib.widgets import scaling_explorer
from course_lib.widgets.scaling import PUBLISHED, compute_share
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
    loss = loss_by_hand(size, flops / 6 / size)
    assert left["marker at"] == pytest.approx(relative_size)
    assert right["marker at"] == pytest.approx(flops)
    assert right["height"] == pytest.approx(loss, rel=1e-4)
    assert float(fact(explorer, "loss").split()[0]) == pytest.approx(loss, abs=6e-4)
    best = float(fact(explorer, "loss of the best size").split()[0])
    assert best == pytest.approx(losses.min(), abs=6e-4)
    drawn = np.isfinite(right["this size"])
    assert (right["this size"][drawn] >= right["best size"][drawn] - 1e-9).all()


@pytest.mark.parametrize("flops", [1e10, 1e12])
@pytest.mark.parametrize("relative_size", [0.25, 1.0, 4.0])
def test_the_share_of_compute_is_the_budget_with_which_the_best_size_has_that_loss(
    flops, relative_size
):
    explorer = move(scaling_explorer(SURFACE), flops=flops, relative_size=relative_size)
    left = panels(explorer)[0].data()
    for name, law in {"this law": SURFACE, **PUBLISHED}.items():
        best = law.optimal(flops)
        size = relative_size * best.parameters
        share = compute_share(law, relative_size)
        loss = law.predict(size, flops / 6 / size)
        assert law.optimal(share * flops).loss == pytest.approx(loss)
        said = fact(explorer, "compute with which the best size has this loss")
        assert f"{share:.0%} ({name})" in said
        drawn = compute_share(law, np.geomspace(1 / 16, 16, len(left[name])))
        assert left[name] == pytest.approx(drawn)


def test_the_recorded_surface_is_the_default_and_a_budget_beyond_it_is_extrapolated():
    explorer = scaling_explorer(flops=1e11)
    best = recorded_surface().optimal(1e11)
    assert fact(explorer, "loss of the best size") == f"{best.loss:.3f} nats"
    assert "extrapolated" not in fact(explorer, "budget")
    assert 1e14 > max(point.flops for point in recorded_points())
    assert "extrapolated" in fact(move(explorer, flops=1e14), "budget")
    assert "extrapolated" not in fact(scaling_explorer(SURFACE, flops=1e14), "budget")
