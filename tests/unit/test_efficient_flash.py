"""FlashAttention by hand against PyTorch's attention: any tiles, any mask, forward and backward."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from course_lib.efficient import flash_attention
from course_lib.profiling import peak_memory
from tests.helpers import attention as small
from tests.helpers.efficient import compare, dense, pairs, triple
from tests.helpers.tensors import DTYPES, HALVES

FLASH = pytest.mark.verifies(
    "course_lib.efficient.flash_attention", against="PyTorch `F.scaled_dot_product_attention`"
)


@FLASH
@pytest.mark.parametrize("mask", small.MASKS)
@pytest.mark.parametrize("block_size", [1, 2, 3, 64])
@pytest.mark.parametrize("dtype", DTYPES)
def test_flash_attention_equals_pytorch(ledger, dtype, block_size, mask):
    mask = small.MASKS[mask]()
    compare(
        ledger,
        lambda q, k, v: flash_attention(q, k, v, mask, block_size=block_size),
        lambda q, k, v: dense(q, k, v, mask),
        small.triple(dtype),
    )


@FLASH
@given(st.integers(1, 20), st.integers(0, 20), st.integers(1, 9), st.booleans())
@small.COLLECTS
def test_flash_attention_for_any_length(ledger, queries, more, block_size, causal):
    keys = queries + more
    mask = torch.rand(2, 1, queries, keys) < 0.7
    both = mask & torch.ones(queries, keys, dtype=torch.bool).tril(more) if causal else mask
    compare(
        ledger,
        lambda q, k, v: flash_attention(q, k, v, mask, causal=causal, block_size=block_size),
        lambda q, k, v: dense(q, k, v, both),
        triple(queries, keys=keys),
    )


@pytest.mark.verifies(
    "course_lib.efficient.flash_attention", against="a double loop over queries and keys"
)
@pytest.mark.parametrize("causal", [False, True])
def test_flash_attention_equals_a_double_loop(ledger, causal):
    leaves = triple(7)
    mask = pairs(7, lambda i, j: j <= i or not causal)
    compare(
        ledger,
        lambda q, k, v: flash_attention(q, k, v, causal=causal, block_size=3, scale=0.7),
        lambda q, k, v: small.by_double_loop(q, k, v, mask, scale=0.7).output,
        leaves,
    )


def test_leading_axes_broadcast():
    q, k, v = torch.randn(4, 1, 5, 3), torch.randn(2, 6, 3), torch.randn(6, 7)
    ours = flash_attention(q, k, v, block_size=4)
    assert ours.shape == (4, 2, 5, 7)
    torch.testing.assert_close(ours, dense(q, k.expand(4, 2, 6, 3), v.expand(4, 2, 6, 7)))
    torch.testing.assert_close(flash_attention(q[0, 0], k[0], v), ours[0, 0])


def test_large_scores_do_not_overflow():
    q = torch.tensor([[30.0], [-30.0]])
    key = torch.tensor([[-30.0], [0.0], [30.0]])
    output = flash_attention(q, key, torch.eye(3), block_size=1, scale=1.0)
    assert output.tolist() == [[0, 0, 1], [1, 0, 0]]  # exp(900) is infinite


@pytest.mark.parametrize("dtype", HALVES)
def test_flash_attention_in_half_precision_and_under_autocast(dtype):
    leaves = triple(33, torch.float32)
    exact = flash_attention(*leaves)
    half = flash_attention(*(x.to(dtype) for x in leaves))
    with torch.autocast("cpu", dtype):
        mixed = flash_attention(*leaves)
        theirs = F.scaled_dot_product_attention(*leaves)
    for output in (half, mixed):
        assert output.dtype == theirs.dtype == dtype
        torch.testing.assert_close(output.float(), exact, rtol=0, atol=0.02)
    mixed.float().square().sum().backward()
    assert all(x.grad.dtype == torch.float32 and x.grad.isfinite().all() for x in leaves)


def test_flash_attention_holds_one_tile_and_saves_one_number_per_query():
    """Bytes of new tensors in forward and backward: linear in the length, where explicit attention is quadratic."""

    def peak(length, call):
        q, k, v = (torch.randn(1, length, 8, requires_grad=True) for _ in range(3))
        return peak_memory(lambda: call(q, k, v).sum().backward())

    def explicit(q, k, v):
        return torch.softmax(q @ k.mT / math.sqrt(8), -1) @ v

    flash = [peak(n, lambda q, k, v: flash_attention(q, k, v, block_size=32)) for n in (512, 1024)]
    full = [peak(n, explicit) for n in (512, 1024)]
    assert flash[1] / flash[0] < 2.05 and full[1] / full[0] > 3.7
    assert flash[1] < full[1] / 16


def test_a_second_derivative_is_refused():
    q = torch.randn(4, 3, requires_grad=True)
    (slope,) = torch.autograd.grad(flash_attention(q, q, q).sum(), q, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable|does not require grad"):
        slope.sum().backward()
