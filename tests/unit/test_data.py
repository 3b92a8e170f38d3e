"""The series against NumPy, and the Nile against the table it was published as."""

import math

import numpy as np
import pytest
import torch
from statsmodels import datasets

from course_lib.data import CoastMap, Series, coast_map, nile_series, wave, wave_series


@pytest.mark.verifies("course_lib.data.wave", against="Python's `math`")
@pytest.mark.parametrize(("dtype", "within"), [(torch.float64, 1e-14), (torch.float32, 1e-6)])
def test_wave_is_its_formula(ledger, dtype, within):
    x = torch.linspace(-3, 7, 50, dtype=dtype).requires_grad_()
    (slope,) = torch.autograd.grad(wave(x).sum(), x)
    values = [math.sin(2 * point) + point / 2 for point in x.tolist()]
    slopes = [2 * math.cos(2 * point) + 0.5 for point in x.tolist()]
    ledger.compare(wave(x), torch.tensor(values, dtype=torch.float64), within=within)
    theirs = torch.tensor(slopes, dtype=torch.float64)
    ledger.compare(slope, theirs, within=within, backward=True)


@pytest.mark.verifies("course_lib.data.wave_series", against="moments of 20,000 draws")
def test_wave_series_has_the_noise_it_is_asked_for(ledger):
    series = wave_series(count=20_000, noise=0.4, seed=5)
    noise = series.values.double() - wave(series.keys.double())
    ledger.compare(noise.std(), torch.tensor(0.4), within=0.01)
    ledger.compare(noise.mean(), torch.tensor(0.0), within=0.01)
    assert 0 <= series.keys.min() and series.keys.max() <= 5
    assert series.keys.mean().item() == pytest.approx(2.5, abs=0.05)


@pytest.mark.verifies(
    "course_lib.data.nile_series", against="Cobb (1978), as printed in Durbin and Koopman"
)
def test_the_nile_is_the_published_series(ledger):
    nile = nile_series()
    assert len(nile) == 100 and nile.keys.tolist() == list(range(1871, 1971))
    first = [1120, 1160, 963, 1210, 1160, 1160, 813, 1230, 1370, 1140]
    ledger.compare(nile.values[:10], torch.tensor(first), within=0)
    ledger.compare(nile.values[-3:], torch.tensor([718, 714, 740]), within=0)
    ledger.compare(nile.values.mean(), torch.tensor(919.35), within=1e-3)
    assert nile.values.tolist() == datasets.nile.load_pandas().data["volume"].tolist()


@pytest.mark.verifies("course_lib.data.Series", against="Python's `dataclasses`")
def test_a_series_is_sorted_and_the_same_seed_gives_the_same(ledger):
    series = wave_series(count=5, seed=3)
    assert isinstance(series, Series) and len(series) == 5
    assert series.keys.tolist() == sorted(series.keys.tolist())
    assert torch.equal(series.values, wave_series(count=5, seed=3).values)
    assert not torch.equal(series.values, wave_series(count=5, seed=4).values)
    ledger.holds()


def distance_on_a_sphere(one, other):
    """The haversine formula, in km; points are (latitude, longitude) in degrees."""
    (a, b), (c, d) = (map(math.radians, point) for point in (one, other))
    chord = math.sin((c - a) / 2) ** 2 + math.cos(a) * math.cos(c) * math.sin((d - b) / 2) ** 2
    return 2 * 6371 * math.asin(math.sqrt(chord))


@pytest.mark.verifies(
    "course_lib.data.coast_map", against="places in an atlas; haversine distances"
)
def test_the_coast_is_that_of_vancouver_island(ledger):
    coast = coast_map()
    rows, columns = coast.shape
    longitude = np.linspace(234.0167, 237.9834, columns)
    latitude = np.linspace(49.984, 48.016, rows)

    def cell(north, west):
        row, column = abs(latitude - north).argmin(), abs(longitude - (360 - west)).argmin()
        return row * columns + column

    places = {
        (49.66, 125.75): 1,  # the Golden Hinde, the highest mountain of the island
        (48.75, 124.1): 1,  # south of the island
        (49.75, 122.5): 1,  # mountains on the mainland
        (49.3, 123.9): 0,  # Strait of Georgia
        (48.3, 124.0): 0,  # Strait of Juan de Fuca
        (48.3, 125.7): 0,  # Pacific
    }
    found = torch.tensor([coast.labels[cell(*place)].item() for place in places])
    ledger.compare(found, torch.tensor(list(places.values())), within=0)
    one, other = (49.66, 125.75), (49.3, 123.9)
    ours = (coast.positions[cell(*one)] - coast.positions[cell(*other)]).norm()
    theirs = torch.tensor(distance_on_a_sphere(one, other), dtype=torch.float64)
    ledger.compare(ours.double(), theirs, within=3)  # cells of 2.4 km


@pytest.mark.verifies(
    "course_lib.data.CoastMap", against="its shapes, and the cells of the picture"
)
def test_the_cells_of_the_coast_fill_the_picture_from_north_to_south(ledger):
    coast = coast_map()
    assert isinstance(coast, CoastMap) and coast.positions.shape == (91 * 120, 2)
    assert set(coast.labels.tolist()) == {0, 1} and coast.positions.dtype == torch.float32
    west, east, south, north = coast.extent
    grid = coast.positions.reshape(*coast.shape, 2)
    step = torch.tensor([(east - west) / 120, -(north - south) / 91])
    first = torch.tensor([west, north]) + step / 2
    where = torch.stack(torch.meshgrid(torch.arange(120), torch.arange(91), indexing="xy"), dim=-1)
    ledger.compare(grid, first + step * where, within=1.2)  # rows of a Mercator map
