"""Sinusoidal positions against their formula, mpmath and Hugging Face."""

import mpmath
import pytest
import torch

from course_lib.transformer.positions import SinusoidalPositions, sinusoidal_table
from tests.helpers.positions import BASES, BATCH, by_formula
from tests.helpers.tensors import DTYPES, HALVES, check, in_float64


@pytest.mark.verifies(
    "course_lib.transformer.positions.sinusoidal_table",
    against="its formula, number by number, in Python's math",
)
def test_sinusoidal_table_equals_its_formula(ledger):
    for base in BASES:
        for size in (2, 14):
            ours, theirs = sinusoidal_table(20, size, base, dtype=torch.float64), by_formula(range(20), size, base)  # fmt: skip
            ledger.compare(ours, theirs, within=1e-12 * max(1, 20 / base))
    ledger.compare(sinusoidal_table(50, 24), by_formula(range(50), 24), within=1e-7)
    assert sinusoidal_table(3, 4, dtype=torch.float16).dtype == torch.float16


@pytest.mark.verifies(
    "course_lib.transformer.positions.sinusoidal_table", against="mpmath, 40 digits"
)
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
    "course_lib.transformer.positions.sinusoidal_table",
    against="Hugging Face DistilBERT, Marian, M2M100",
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


@pytest.mark.verifies(
    "course_lib.transformer.positions.SinusoidalPositions",
    against="its formula, number by number, in Python's math",
)
@pytest.mark.parametrize("base", [10000.0, 0.5])
@pytest.mark.parametrize("dtype", DTYPES)
def test_sinusoidal_positions_with_offset_equal_the_formula(ledger, dtype, base):
    positions = SinusoidalPositions(6, base).to(dtype)
    for length, offset in ((5, 0), (7, 57), (1, 128), (3, 700)):
        x = torch.randn(BATCH, length, 6, dtype=dtype, requires_grad=True)
        (oracle,) = in_float64(x)
        theirs = oracle + by_formula(range(offset, offset + length), 6, base)
        ours = positions(x, offset) if offset else positions(x)
        # Half a float32 of the largest sum (a base below 1 has angles of some 1,000).
        check(ledger, ours, [x], theirs, [oracle], 1e-6)


@pytest.mark.parametrize("dtype", HALVES)
def test_sinusoidal_positions_keep_the_dtype(dtype):
    for positions in (SinusoidalPositions(6), SinusoidalPositions(6).to(dtype)):
        for offset in (0, 100):
            ours = positions(torch.zeros(1, 3, 6, dtype=dtype), offset)
            assert ours.dtype == dtype
            near = by_formula(range(offset, offset + 3), 6)
            assert (ours[0].double() - near).abs().max() < 0.005
