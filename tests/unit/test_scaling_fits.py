"""Power laws and loss surfaces: known constants found again, SciPy, published values, by hand."""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import curve_fit, minimize

from course_lib.topics.scaling import (
    Allocation,
    IsoflopMinimum,
    LossSurface,
    PowerLaw,
    fit_loss_surface,
    fit_power_law,
    isoflop_minimum,
)

#: Hoffmann et al. (2022), equation 10; Besiroglu et al. (2024), who fitted the same runs again.
HOFFMANN = LossSurface(1.69, 406.4, 0.34, 410.7, 0.28)
BESIROGLU = LossSurface(1.8172, 482.01, 0.3478, 2085.43, 0.3658)
#: Their runs, roughly: sizes and tokens.
GRID = [
    grid.flatten()
    for grid in torch.meshgrid(
        torch.logspace(7.5, 10, 7, dtype=torch.float64),
        torch.logspace(9, 11.5, 6, dtype=torch.float64),
        indexing="ij",
    )
]
SIZES = torch.logspace(3, 6, 8, dtype=torch.float64)


def noisy(loss, noise, *runs):
    shape = (*loss.shape, *runs)
    return loss.reshape(*loss.shape, *[1] * len(runs)) * torch.exp(
        noise * torch.randn(shape, dtype=torch.float64)
    )


def constants(law):
    return torch.tensor([law.exponent, law.coefficient, law.irreducible], dtype=torch.float64)


@pytest.mark.verifies(
    "course_lib.topics.scaling.fit_power_law", against="the constants behind the data"
)
@pytest.mark.parametrize("irreducible", [True, False])
@pytest.mark.parametrize("exponent", [0.05, 0.34, 1.2])
@pytest.mark.parametrize("limit", [0.02, 1.3])
def test_known_constants_are_found_again(ledger, exponent, limit, irreducible):
    limit = limit if irreducible else 0.0
    law = PowerLaw(exponent, 2.5 * 1e3**exponent, limit)
    found = fit_power_law(SIZES, law.predict(SIZES), irreducible=irreducible)
    scale = constants(law).clamp(min=1e-9)
    ledger.compare(constants(found) / scale, constants(law) / scale, within=1e-6)


@pytest.mark.verifies("course_lib.topics.scaling.fit_power_law", against="`curve_fit` of SciPy")
@pytest.mark.verifies("course_lib.topics.scaling.PowerLaw", against="`curve_fit` of SciPy")
@pytest.mark.parametrize("seed", range(3))
def test_noisy_data_give_what_scipy_finds(ledger, seed):
    torch.manual_seed(seed)
    loss = noisy(PowerLaw(0.3, 20.0, 1.2).predict(SIZES), 0.01)
    ours = fit_power_law(SIZES, loss)

    def log_law(x, exponent, log_a, log_e):
        return np.logaddexp(log_a - exponent * np.log(x), log_e)

    theirs, _ = curve_fit(
        log_law, SIZES.numpy(), loss.log().numpy(), p0=(0.4, 3.5, 0.0), xtol=1e-14, ftol=1e-14
    )
    expected = torch.tensor([theirs[0], math.exp(theirs[1]), math.exp(theirs[2])])
    ledger.compare(constants(ours) / expected, torch.ones(3), within=1e-4)
    straight = fit_power_law(SIZES, loss, irreducible=False)
    slope, level = np.polyfit(SIZES.log().numpy(), loss.log().numpy(), 1)
    ledger.compare(
        constants(straight)[:2], torch.tensor([-slope, math.exp(level)]).double(), within=1e-9
    )


@pytest.mark.verifies(
    "course_lib.topics.scaling.fit_loss_surface", against="the constants behind the data"
)
@pytest.mark.verifies("course_lib.topics.scaling.LossSurface", against="published constants")
@pytest.mark.parametrize("surface", [HOFFMANN, BESIROGLU])
def test_published_surfaces_are_found_again(ledger, surface):
    found = fit_loss_surface(*GRID, surface.predict(*GRID))
    ours, theirs = (
        torch.tensor(list(vars(one).values()), dtype=torch.float64) for one in (found, surface)
    )
    ledger.compare(ours / theirs, torch.ones(5), within=1e-3)


@pytest.mark.verifies("course_lib.topics.scaling.fit_loss_surface", against="SciPy's Nelder-Mead")
def test_noisy_runs_give_the_lowest_huber_loss(ledger):
    loss = noisy(BESIROGLU.predict(*GRID), 0.005)
    found = fit_loss_surface(*GRID, loss)
    log_N, log_D, log_loss = (v.log().numpy() for v in (*GRID, loss))

    def huber(theta):
        e, a, alpha, b, beta = theta
        terms = [np.full_like(log_N, e), a - alpha * log_N, b - beta * log_D]
        error = np.abs(np.logaddexp.reduce(terms) - log_loss)
        return np.where(error < 1e-3, error**2 / 2, 1e-3 * (error - 5e-4)).sum() * 1e3

    def theta(surface):
        e, a, alpha, b, beta = vars(surface).values()
        return np.array([math.log(e), math.log(a), alpha, math.log(b), beta])

    options = {"maxiter": 20_000, "maxfev": 20_000, "xatol": 1e-10, "fatol": 1e-12}
    starts = [theta(found), theta(BESIROGLU), theta(HOFFMANN)]
    theirs = min(minimize(huber, s, method="Nelder-Mead", options=options).fun for s in starts)
    assert huber(theta(found)) <= theirs * 1.01
    assert huber(theta(found)) < huber(theta(BESIROGLU))
    ledger.holds()


def test_a_start_near_the_minimum_gives_the_same_minimum():
    loss = noisy(BESIROGLU.predict(*GRID), 0.005)
    found, again = fit_loss_surface(*GRID, loss), fit_loss_surface(*GRID, loss, start=BESIROGLU)
    assert again.a == pytest.approx(found.a, abs=0.01)
    assert again.irreducible == pytest.approx(found.irreducible, abs=0.02)


def test_one_bad_run_moves_the_huber_fit_less_than_least_squares():
    loss = noisy(BESIROGLU.predict(*GRID), 0.001)
    loss[3] *= 1.5
    robust, squares = fit_loss_surface(*GRID, loss), fit_loss_surface(*GRID, loss, delta=10.0)
    assert abs(robust.a - BESIROGLU.a) < 0.02 < abs(squares.a - BESIROGLU.a)


@pytest.mark.verifies("course_lib.topics.scaling.LossSurface", against="a search over sizes")
@pytest.mark.verifies("course_lib.topics.scaling.Allocation", against="a search over sizes")
@pytest.mark.parametrize("surface", [HOFFMANN, BESIROGLU])
@pytest.mark.parametrize("flops", [1e15, 5.76e23])
def test_the_optimal_size_is_what_a_search_finds(ledger, surface, flops):
    sizes = torch.logspace(4, 13, 200_001, dtype=torch.float64)
    losses = surface.predict(sizes, flops / 6 / sizes)
    best = surface.optimal(flops)
    assert isinstance(best, Allocation)
    assert best.parameters == pytest.approx(sizes[losses.argmin()].item(), rel=1e-3)
    assert best.parameters * best.tokens * 6 == pytest.approx(flops)
    assert best.loss == pytest.approx(losses.min().item(), abs=1e-9)
    larger = surface.optimal(10 * flops)
    assert math.log10(larger.parameters / best.parameters) == pytest.approx(surface.a)
    assert math.log10(larger.tokens / best.tokens) == pytest.approx(surface.b)
    counted = surface.optimal(flops, flops_per_parameter=8.0)
    assert counted.parameters * counted.tokens * 8 == pytest.approx(flops)
    ledger.holds()


@pytest.mark.verifies("course_lib.topics.scaling.LossSurface", against="Hoffmann et al. (2022)")
def test_published_predictions(ledger):
    """Gopher's compute, 5.76e23 FLOPs, spent on Chinchilla: 70 billion parameters, 1.4 trillion tokens."""
    assert (HOFFMANN.a, HOFFMANN.b) == pytest.approx((0.46, 0.54), abs=0.01)
    assert HOFFMANN.predict(70e9, 1.4e12) < HOFFMANN.predict(280e9, 300e9)  # Chinchilla, Gopher
    again = BESIROGLU.optimal(5.76e23)
    assert 60e9 < again.parameters < 80e9 and 15 < again.tokens / again.parameters < 25
    ledger.holds()


@pytest.mark.verifies("course_lib.topics.scaling.isoflop_minimum", against="`np.polyfit`")
@pytest.mark.verifies("course_lib.topics.scaling.IsoflopMinimum", against="`np.polyfit`")
def test_the_bottom_of_an_isoflop_curve(ledger):
    sizes = torch.logspace(7, 9, 6, dtype=torch.float64)
    loss = 2.2 + 0.1 * (sizes / 8e7).log() ** 2
    found = isoflop_minimum(sizes, loss)
    assert isinstance(found, IsoflopMinimum) and found.interpolated
    assert found.parameters == pytest.approx(8e7) and found.loss == pytest.approx(2.2)
    drawn = loss + 0.05 * torch.rand(6, dtype=torch.float64)
    a, b, c = np.polyfit(sizes.log(), drawn, 2)
    ours = isoflop_minimum(sizes.tolist(), drawn.tolist())
    assert math.log(ours.parameters) == pytest.approx(-b / (2 * a), abs=1e-6)
    assert ours.loss == pytest.approx(c - b * b / (4 * a), abs=1e-6)
    assert not isoflop_minimum(sizes[3:], loss[3:]).interpolated
    ledger.holds()


GOOD, LOSS = [1e3, 1e4, 1e5, 1e6], [3.0, 2.5, 2.2, 2.1]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: fit_power_law(GOOD[:2], LOSS[:2]), "x holds 2 distinct values; .* at least 3"),
        (lambda: fit_power_law(GOOD, [3.0, -2.5, 2.2, 2.1]), "loss holds -2.5; all must be"),
        (lambda: fit_power_law(GOOD, [3.0, 2.5, 2.2, math.inf]), "loss holds inf"),
        (lambda: fit_power_law(GOOD, LOSS[:3]), "x has 4 points but loss has 3"),
        (lambda: fit_loss_surface(GOOD, GOOD, LOSS), "4 distinct pairs"),
        (lambda: fit_loss_surface([1e3] * 4, GOOD, LOSS), "parameters holds 1"),
        (lambda: isoflop_minimum(GOOD, [1.0, 2.0, 2.0, 1.0]), "no minimum"),
    ],
)
def test_bad_input_is_named(call, says):
    with pytest.raises(ValueError, match=says):
        call()
