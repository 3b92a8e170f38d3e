"""Sinusoidal positions against their formula, mpmath and Hugging Face."""

import math

import mpmath
import pytest
import torch

from course_lib.positions import SinusoidalPositions, sinusoidal_table
from tests.helpers.positions import BASES, BATCH, D_MODEL, by_formula, check, learned
from tests.helpers.tensors import DTYPES, HALVES, in_float64

# --- sines and cosines -----------------------------------------------------------------------


def check_sinusoids(ledger, table):
    """What every sinusoidal table is compared with; `table` is `sinusoidal_table` or should be."""
    for base in BASES:
        for size in (2, 8, 14):
            ours = table(20, size, base, dtype=torch.float64)
            ledger.compare(
                ours, by_formula(range(20), size, base), within=1e-12 * max(1, 20 / base)
            )


def check_rotation(ledger, table):
    """Row p + k is row p, each pair rotated by the angle that row k stands for."""
    for base in BASES:
        rows = table(30, 14, base, dtype=torch.float64).unflatten(-1, (-1, 2))
        turns = torch.complex(rows[..., 1], rows[..., 0])  # cosine + i sine
        for k in (1, 2, 7, 15):
            ledger.compare(
                torch.view_as_real(turns[k:]),
                torch.view_as_real(turns[:-k] * turns[k]),
                within=1e-12,
            )


@pytest.mark.verifies(
    "course_lib.positions.sinusoidal_table",
    against="its formula, number by number, in Python's math",
)
def test_sinusoidal_table_equals_its_formula(ledger):
    check_sinusoids(ledger, sinusoidal_table)
    theirs = by_formula(range(50), D_MODEL)
    ours = sinusoidal_table(50, D_MODEL)
    assert ours.dtype == torch.float32
    ledger.compare(ours, theirs, within=1e-7)
    assert sinusoidal_table(3, 4, dtype=torch.float16).dtype == torch.float16


@pytest.mark.verifies(
    "course_lib.positions.sinusoidal_table", against="row p + k is row p, rotated"
)
def test_sinusoidal_table_shifted_is_rotated(ledger):
    check_rotation(ledger, sinusoidal_table)


@pytest.mark.verifies("course_lib.positions.sinusoidal_table", against="mpmath, 40 digits")
def test_sinusoidal_table_is_exact_at_large_positions(ledger):
    ours = {dtype: sinusoidal_table(100_001, 6, dtype=dtype) for dtype in DTYPES}
    with mpmath.workdps(40):
        for p in (12_345, 99_999, 100_000):
            row = []
            for i in range(3):
                angle = mpmath.mpf(p) / mpmath.mpf(10000) ** (mpmath.mpf(2 * i) / 6)
                row += [float(mpmath.sin(angle)), float(mpmath.cos(angle))]
            theirs = torch.tensor(row, dtype=torch.float64)
            ledger.compare(ours[torch.float64][p], theirs, within=1e-10)
            ledger.compare(ours[torch.float32][p], theirs, within=1e-7)


@pytest.mark.verifies(
    "course_lib.positions.sinusoidal_table", against="Hugging Face DistilBERT, Marian, M2M100"
)
def test_sinusoidal_table_equals_hugging_face(ledger):
    from transformers.models.distilbert import modeling_distilbert as distilbert
    from transformers.models.m2m_100 import modeling_m2m_100 as m2m_100
    from transformers.models.marian import modeling_marian as marian

    out = torch.empty(40, 14)
    distilbert.create_sinusoidal_embeddings(40, 14, out)
    ours = sinusoidal_table(40, 14)
    ledger.compare(ours, out, within=1e-6)
    sines, cosines = ours[:, 0::2], ours[:, 1::2]
    theirs = marian.MarianSinusoidalPositionalEmbedding(40, 14).create_weight()
    ledger.compare(torch.cat([sines, cosines], -1), theirs, within=1e-6)
    # tensor2tensor counts its last wavelength in: the same as another base.
    theirs = m2m_100.M2M100SinusoidalPositionalEmbedding.get_embedding(40, 14)
    ours = sinusoidal_table(40, 14, 10000 ** (7 / 6))
    ledger.compare(torch.cat([ours[:, 0::2], ours[:, 1::2]], -1), theirs, within=1e-5)


def with_other_angles(sine, cosine):
    """A table whose pair i has the angles that these two functions of (position, i, size, base) say."""

    def table(length, size, base=10000.0, *, dtype=torch.float32):
        rows = [
            [
                turn(angle(p, i, size, base))
                for i in range(size // 2)
                for turn, angle in ((math.sin, sine), (math.cos, cosine))
            ]
            for p in range(length)
        ]
        return torch.tensor(rows, dtype=torch.float64).to(dtype)

    return table


def angle(p, i, size, base):
    return p / base ** (2 * i / size)


def doubled(p, i, size, base):
    return p / base ** (2 * 2 * i / size)


def next_column(p, i, size, base):
    return p / base ** ((2 * i + 1) / size)


def test_wrong_sinusoidal_frequencies_are_detected(ledger):
    check_sinusoids(ledger, with_other_angles(angle, angle))
    check_rotation(ledger, with_other_angles(angle, angle))
    wrong = {
        "doubled": (doubled, doubled),
        "a frequency per column": (angle, next_column),
        "another pair's": (next_column, next_column),
        "none": (lambda p, *_: p, lambda p, *_: p),
    }
    for sine, cosine in wrong.values():
        with pytest.raises(AssertionError, match="differs from the oracle"):
            check_sinusoids(ledger, with_other_angles(sine, cosine))
    with pytest.raises(AssertionError, match="differs from the oracle"):
        check_rotation(ledger, with_other_angles(*wrong["a frequency per column"]))


@pytest.mark.verifies(
    "course_lib.positions.SinusoidalPositions",
    against="its formula, number by number, in Python's math",
)
@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_sinusoidal_positions_with_offset_equal_the_formula(ledger, dtype, base):
    positions = SinusoidalPositions(6, base).to(dtype)
    # The buffer starts with 64 rows: up to its end, across it, one row behind it, far behind, and back.
    for length, offset in ((5, 0), (64, 0), (7, 57), (7, 58), (1, 128), (90, 7), (3, 700), (5, 0)):
        x = torch.randn(BATCH, length, 6, dtype=dtype, requires_grad=True)
        (oracle,) = in_float64(x)
        theirs = oracle + by_formula(range(offset, offset + length), 6, base)
        ours = positions(x, offset) if offset else positions(x)
        # Half a float32 of the largest sum (a base below 1 has angles of some 1,000).
        check(ledger, ours, [x], theirs, [oracle], 1e-6)


def test_sinusoidal_positions_have_no_parameters_and_no_state():
    positions = SinusoidalPositions(6)
    assert not learned(positions) and not positions.state_dict()
    positions(torch.zeros(1, 3, 6), 200)
    assert not positions.state_dict()


@pytest.mark.parametrize("dtype", HALVES)
def test_sinusoidal_positions_keep_the_dtype(dtype):
    for positions in (SinusoidalPositions(6), SinusoidalPositions(6).to(dtype)):
        for offset in (0, 100):
            ours = positions(torch.zeros(1, 3, 6, dtype=dtype), offset)
            assert ours.dtype == dtype
            near = by_formula(range(offset, offset + 3), 6)
            assert (ours[0].double() - near).abs().max() < 0.005
