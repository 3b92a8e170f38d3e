"""FlashAttention by hand against PyTorch's attention: any tiles, any mask, forward and backward."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from course_lib.topics.efficient import flash_attention
from tests.helpers import attention as small
from tests.helpers.efficient import compare, dense, triple

FLASH = pytest.mark.verifies(
    "course_lib.topics.efficient.flash_attention",
    against="PyTorch `F.scaled_dot_product_attention`",
)


@FLASH
@pytest.mark.parametrize("mask", small.MASKS)
@pytest.mark.parametrize(("dtype", "block_size"), [(torch.float64, 2), (torch.float32, 64)])
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
def test_flash_attention_for_any_length(ledger, queries, more, block_size, causal):
    keys = queries + more
    mask = torch.rand(2, 1, queries, keys) < 0.7
    both = mask & torch.ones(queries, keys, dtype=torch.bool).tril(more) if causal else mask
    compare(
        ledger,
        lambda q, k, v: flash_attention(
            q, k, v, mask, causal=causal, block_size=block_size, scale=0.7
        ),
        lambda q, k, v: dense(q, k, v, both, 0.7),
        triple(queries, keys=keys),
    )


def test_large_scores_do_not_overflow():
    q = torch.tensor([[30.0], [-30.0]])
    key = torch.tensor([[-30.0], [0.0], [30.0]])
    output = flash_attention(q, key, torch.eye(3), block_size=1, scale=1.0)
    assert output.tolist() == [[0, 0, 1], [1, 0, 0]]  # exp(900) is infinite


def test_a_second_derivative_is_refused():
    q = torch.randn(4, 3, requires_grad=True)
    (slope,) = torch.autograd.grad(flash_attention(q, q, q).sum(), q, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable|does not require grad"):
        slope.sum().backward()
