"""The series against NumPy, and the Nile against the table it was published as."""

import math

import numpy as np
import pytest
import torch

from course_lib.data import Series, nile_series, wave, wave_series


@pytest.mark.verifies("course_lib.data.wave", against="Python's `math`")
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_wave_is_its_formula(ledger, dtype):
    x = torch.linspace(-3, 7, 50, dtype=dtype).requires_grad_()
    theirs = torch.tensor(
        [math.sin(2 * point) + point / 2 for point in x.tolist()], dtype=torch.float64
    )
    ours = wave(x)
    ledger.compare(ours, theirs, within=1e-14 if dtype == torch.float64 else 1e-6)
    (slope,) = torch.autograd.grad(ours.sum(), x)
    theirs = torch.tensor(
        [2 * math.cos(2 * point) + 0.5 for point in x.tolist()], dtype=torch.float64
    )
    ledger.compare(slope, theirs, within=1e-14 if dtype == torch.float64 else 1e-6, backward=True)


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
    ledger.compare(
        nile.values[:10],
        torch.tensor([1120, 1160, 963, 1210, 1160, 1160, 813, 1230, 1370, 1140]),
        within=0,
    )
    ledger.compare(nile.values[-3:], torch.tensor([718, 714, 740]), within=0)
    ledger.compare(nile.values.mean(), torch.tensor(919.35), within=1e-3)


@pytest.mark.verifies("course_lib.data.Series", against="Python's `dataclasses`")
def test_a_series_is_frozen_and_knows_its_length(ledger):
    series = wave_series(count=5)
    assert isinstance(series, Series) and len(series) == 5
    with pytest.raises(AttributeError):
        series.name = "other"
    ledger.holds()


def test_the_same_seed_gives_the_same_series():
    assert torch.equal(wave_series(seed=3).values, wave_series(seed=3).values)
    assert not torch.equal(wave_series(seed=3).values, wave_series(seed=4).values)


def test_the_keys_are_sorted():
    keys = wave_series().keys.numpy()
    assert np.array_equal(keys, np.sort(keys))


def test_bad_settings_are_refused():
    with pytest.raises(ValueError, match="count=1 is too few"):
        wave_series(count=1)
    with pytest.raises(ValueError, match="noise=-1 is not"):
        wave_series(noise=-1)
