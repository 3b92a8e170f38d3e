"""Rotary position embedding (RoPE) against complex numbers, LLaMA, GPT-J and RoFormer."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from course_lib.transformer.positions import RotaryPositions, rotary
from tests.helpers.positions import (
    BASES,
    D_HEAD,
    HEADS,
    LENGTH,
    by_complex_numbers,
    by_formula,
    heads,
)
from tests.helpers.tensors import DTYPES, HALVES, ROUNDING, check, in_float64

LAYOUTS = ["interleaved", "half"]


def exact(positions, base=10000.0, size=D_HEAD):
    """Sines and cosines of the angles, (position, pair) each."""
    table = by_formula(positions, size, base)
    return table[:, 0::2], table[:, 1::2]


def by_llama(x, positions, base=10000.0, layout="half"):
    from transformers.models.llama import modeling_llama

    sine, cosine = (table.repeat(1, 2)[None] for table in exact(positions, base))
    return modeling_llama.apply_rotary_pos_emb(x, x, cosine, sine)[0]


def by_gptj(x, positions, base=10000.0, layout="interleaved"):
    from transformers.models.gptj import modeling_gptj

    sine, cosine = (table[None] for table in exact(positions, base))
    return modeling_gptj.apply_rotary_pos_emb(x.transpose(1, 2), sine, cosine).transpose(1, 2)


def by_roformer(x, positions, base=10000.0, layout="interleaved"):
    from transformers.models.roformer.modeling_roformer import RoFormerSelfAttention

    table = torch.cat(exact(positions, base), -1)[None, None]
    return RoFormerSelfAttention.apply_rotary_position_embeddings(table, x, x)[0]


# fmt: off
ROTATIONS = [
    pytest.param(by_complex_numbers, "interleaved", marks=pytest.mark.verifies("course_lib.transformer.positions.rotary", against="a multiplication of complex numbers")),
    pytest.param(by_complex_numbers, "half", marks=pytest.mark.verifies("course_lib.transformer.positions.rotary", against="a multiplication of complex numbers")),
    pytest.param(by_llama, "half", marks=pytest.mark.verifies("course_lib.transformer.positions.rotary", against="Hugging Face LLaMA `apply_rotary_pos_emb`")),
    pytest.param(by_gptj, "interleaved", marks=pytest.mark.verifies("course_lib.transformer.positions.rotary", against="Hugging Face GPT-J `apply_rotary_pos_emb`")),
    pytest.param(by_roformer, "interleaved", marks=pytest.mark.verifies("course_lib.transformer.positions.rotary", against="Hugging Face RoFormer `apply_rotary_position_embeddings`")),
]
# fmt: on
PLACES = [0, 1, 2, 17, 4000]


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("oracle", "layout"), ROTATIONS)
def test_rope_rotates_each_pair_by_its_angle(ledger, oracle, layout, dtype, base):
    x = heads(HEADS, LENGTH, D_HEAD, dtype=dtype)
    (copied,) = in_float64(x)
    ours, theirs = rotary(x, torch.tensor(PLACES), base, layout=layout), oracle(copied, PLACES, base, layout)  # fmt: skip
    check(ledger, ours, [x], theirs, [copied], ROUNDING[dtype] * max(1, 1 / base))


def test_rope_without_batch_axes_and_in_half_precision():
    x = torch.randn(LENGTH, D_HEAD, dtype=torch.float64)
    theirs = by_complex_numbers(x, range(LENGTH))
    torch.testing.assert_close(rotary(x, torch.arange(LENGTH)), theirs)
    for dtype in HALVES:
        ours = rotary(x.to(dtype), torch.arange(LENGTH))
        assert ours.dtype == dtype and (ours - theirs).abs().max() < 0.03


def test_rope_is_exact_at_large_positions():
    x = torch.randn(3, D_HEAD, dtype=torch.float64)
    places = [2**24, 2**24 + 1, 2**24 + 3]  # float32 has the first alone
    ours = rotary(x, torch.tensor(places))
    assert (ours - by_complex_numbers(x, places)).abs().max() < 1e-7


@pytest.mark.verifies(
    "course_lib.transformer.positions.rotary", against="only the difference of positions matters"
)
@pytest.mark.parametrize("layout", LAYOUTS)
@given(
    m=st.integers(0, 500),
    n=st.integers(0, 500),
    shift=st.integers(-500, 5000),
    base=st.sampled_from([10000.0, 10, 500_000.0]),
    pairs=st.integers(1, 5),
    seed=st.integers(0, 1000),
)
def test_rope_products_depend_on_the_relative_position(
    ledger, layout, m, n, shift, base, pairs, seed
):
    seed = torch.Generator().manual_seed(seed)
    q, k = torch.randn(2, 1, 2 * pairs, generator=seed, dtype=torch.float64)

    def turned(vector, place):
        return rotary(vector, torch.tensor([place]), base, layout=layout)

    def product(at, other):
        return (turned(q, at) * turned(k, other)).sum()

    ledger.compare(product(m + shift, n + shift), product(m, n), within=1e-10)
    ledger.compare(product(m, m), (q * k).sum(), within=1e-10)


@pytest.mark.verifies(
    "course_lib.transformer.positions.RotaryPositions",
    against="a multiplication of complex numbers",
)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_rope_rotates_queries_and_keys_from_the_offset(ledger, layout, dtype):
    base = 500_000.0
    positions = RotaryPositions(D_HEAD, base, layout=layout)
    # Within the first table, at its end, across it, far behind it, and back.
    for offset, length in ((0, 5), (3, 1), (0, 64), (60, 5), (127, 2), (1000, 3), (0, 2)):
        query = heads(HEADS, length, D_HEAD, dtype=dtype)
        key = heads(1, length, D_HEAD, dtype=dtype)
        oracles = in_float64(query, key)
        places = range(offset, offset + length)
        ours = positions.rotate(query, key, offset) if offset else positions.rotate(query, key)
        for mine, leaf, copied in zip(ours, (query, key), oracles, strict=True):
            theirs = by_complex_numbers(copied, places, base, layout)
            check(ledger, mine, [leaf], theirs, [copied], ROUNDING[dtype])


def test_rope_layer_on_every_device():
    positions, x = RotaryPositions(D_HEAD), torch.randn(1, 1, LENGTH, D_HEAD)
    for device in ("cpu", "meta", "cpu"):
        ours, _ = positions.rotate(x.to(device), x.to(device))
        assert ours.device.type == device
    torch.testing.assert_close(ours, rotary(x, torch.arange(LENGTH)))


@pytest.mark.parametrize("how", ["in place", "anew"])
def test_rope_with_changed_frequencies(how):
    positions, x = RotaryPositions(D_HEAD), torch.randn(1, 1, LENGTH, D_HEAD)
    positions.rotate(x, x)
    if how == "in place":
        positions.frequencies *= 0.5
    else:
        positions.frequencies = positions.frequencies / 2
    halved = rotary(x[:, :, ::2], torch.arange(3))
    torch.testing.assert_close(positions.rotate(x, x)[0][:, :, ::2], halved)


def test_one_rope_layer_serves_every_dtype():
    positions = RotaryPositions(D_HEAD)
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float64):
        x = torch.randn(1, 1, 9, D_HEAD, dtype=dtype)
        for ours in positions.rotate(x, x, 50):
            assert ours.dtype == dtype
            theirs = by_complex_numbers(x.double(), range(50, 59))
            near = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 0.02}[dtype]
            torch.testing.assert_close(ours.double(), theirs, rtol=near, atol=near)
    assert not positions.state_dict()


def test_rope_first_used_in_inference_mode_backpropagates_later():
    positions, x = RotaryPositions(D_HEAD), heads(HEADS, LENGTH, D_HEAD)
    with torch.inference_mode():
        positions.rotate(x, x)
    positions.rotate(x, x)[0].sum().backward()
