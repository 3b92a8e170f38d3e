"""What holds of every efficient attention: memory, precision, the past, one graph; and what each refuses."""

import pytest
import torch

from course_lib.topics.efficient import (
    LinformerAttention,
    attention_pattern,
    block_attention,
    flash_attention,
    linear_attention,
    linear_attention_step,
    longformer_attention,
    orthogonal_projection,
    performer_attention,
    sliding_window_attention,
)
from course_lib.topics.profiling import peak_memory
from tests.helpers.tensors import HALVES

X, Y = torch.zeros(2, 4, 6), torch.zeros(2, 5, 6)
M = torch.ones(2, 1, 4) > 0
LAYER = LinformerAttention(6, 2, 5, 3)


@pytest.mark.usefixtures("without_annotations")
@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: flash_attention(X, X, Y), r"there must be one value per key"),
        (lambda: flash_attention(X, Y, Y, block_size=-1), r"block_size=-1 is below 1"),
        (lambda: flash_attention(X, Y, Y, M), r"mask has shape \(2, 1, 4\)"),
        (lambda: flash_attention(Y, X, X, causal=True), r"query has 5 queries but key has 4 keys; with causal=True"),
        (lambda: sliding_window_attention(X, X, X, -3), r"window=-3 is below 1"),
        (lambda: sliding_window_attention(X, Y, Y, 2), r"4 queries, 5 keys and 5 values; positions are compared"),
        (lambda: sliding_window_attention(X, X, X, 2, padding_mask=M.float()), r"mask is float32; it must be a boolean"),
        (lambda: sliding_window_attention(X, X, X, 2, padding_mask=M.mT), r"mask has shape \(2, 4, 1\)"),
        (lambda: block_attention(X, X, X, 0), r"block_size=0 is below 1"),
        (lambda: block_attention(X, X, Y, 2), r"4 keys and 5 values"),
        (lambda: longformer_attention(X, X, X, 0, [0]), r"window=0 is below 1"),
        (lambda: longformer_attention(X, X, Y, 1, [0]), r"4 keys and 5 values"),
        (lambda: longformer_attention(X, X, X, 1, [2, 2]), r"global_positions=\[2, 2\] holds a position more than once"),
        (lambda: linear_attention(X, Y, Y, causal=True), r"4 queries, 5 keys"),
        (lambda: linear_attention_step(X, X, X), r"query has shape \(2, 4, 6\) .* a step takes one token"),
        (lambda: performer_attention(X, Y, Y, torch.ones(7, 6), causal=True), r"4 queries, 5 keys"),
        (lambda: LinformerAttention(6, 4, 5, 3), r"d_model=6 is not divisible by num_heads=4"),
        (lambda: attention_pattern("windowed", 4, 1), r"kind='windowed' is unknown; it must be one of"),
    ],
)  # fmt: skip
def test_invalid_input_raises_value_error(call, says):
    with pytest.raises(ValueError, match=says):
        call()


PROJECTION = orthogonal_projection(16, 8, torch.Generator().manual_seed(2))
CALLS = {
    "flash": lambda q, k, v: flash_attention(q, k, v, block_size=32),
    "causal flash": lambda q, k, v: flash_attention(q, k, v, causal=True, block_size=32),
    "window": lambda q, k, v: sliding_window_attention(q, k, v, 16),
    "causal window": lambda q, k, v: sliding_window_attention(q, k, v, 16, causal=True),
    "block": lambda q, k, v: block_attention(q, k, v, 32),
    "causal block": lambda q, k, v: block_attention(q, k, v, 32, causal=True),
    "longformer": lambda q, k, v: longformer_attention(q, k, v, 16, [0, 9]),
    "linear": linear_attention,
    "causal linear": lambda q, k, v: linear_attention(q, k, v, causal=True),
    "performer": lambda q, k, v: performer_attention(q, k, v, PROJECTION.to(q.device)),
    "causal performer": lambda q, k, v: performer_attention(
        q, k, v, PROJECTION.to(q.device), causal=True
    ),
}
every = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


def inputs(length=71):
    return [torch.randn(2, 3, length, 8, requires_grad=True) for _ in range(3)]


LARGE_TILES = {"flash": lambda q, k, v: flash_attention(q, k, v, block_size=128)}


@pytest.mark.parametrize("name", [name for name in CALLS if name != "causal flash"])
def test_memory_grows_linearly_and_no_square_is_held(name):
    """Bytes of new tensors in forward and backward."""
    call = (CALLS | LARGE_TILES)[name]

    def peak(length):
        leaves = [torch.randn(1, length, 8, requires_grad=True) for _ in range(3)]
        return peak_memory(lambda: call(*leaves).sum().backward())

    short, long = peak(1024), peak(2048)
    assert long / short < 2.05 and long < 2048**2 * 4 / 2


@every
@pytest.mark.parametrize("dtype", HALVES)
def test_half_precision_and_autocast(call, dtype):
    leaves = inputs()
    exact = call(*leaves)
    with torch.autocast("cpu", dtype):
        mixed = call(*leaves)
    for output in (call(*(x.to(dtype) for x in leaves)), mixed):
        assert output.dtype == dtype
        torch.testing.assert_close(output.float(), exact, rtol=0, atol=0.08)
    mixed.float().square().sum().backward()
    assert all(x.grad.dtype == torch.float32 and x.grad.isfinite().all() for x in leaves)
    with torch.autocast("cpu", dtype):
        assert call(*(x.double() for x in leaves)).dtype == torch.float64


@pytest.mark.parametrize("name", [name for name in CALLS if "causal" in name])
def test_future_tokens_have_no_influence(name):
    q, k, v = (x.detach() for x in inputs(100))
    plain = CALLS[name](q, k, v)
    for x in (k, v):
        x[..., 64:, :] += torch.randn_like(x[..., 64:, :])
    changed = CALLS[name](q, k, v)
    torch.testing.assert_close(changed[..., :64, :], plain[..., :64, :])
    assert not torch.allclose(changed[..., 64:, :], plain[..., 64:, :])


@pytest.mark.parametrize("name", ["flash", "window", "causal block", "longformer"])
def test_leading_axes_broadcast(name):
    q, k, v = torch.randn(4, 1, 71, 3), torch.randn(2, 71, 3), torch.randn(71, 7)
    output = CALLS[name](q, k, v)
    assert output.shape == (4, 2, 71, 7)
    torch.testing.assert_close(CALLS[name](q[0, 0], k[0], v), output[0, 0])


@every
def test_one_graph_and_shapes_without_values(as_one_graph, call):
    leaves = inputs()
    ours, plain = as_one_graph(call)(*leaves), call(*leaves)
    torch.testing.assert_close(ours, plain)
    slopes = [torch.autograd.grad(one.square().sum(), leaves) for one in (ours, plain)]
    torch.testing.assert_close(*slopes)
    output = call(*(x.detach().to("meta") for x in leaves))
    assert output.is_meta and output.shape == plain.shape


def test_linformer_as_one_graph_and_without_values(as_one_graph):
    x = torch.randn(2, 4, 6)
    torch.testing.assert_close(as_one_graph(LAYER)(x).output, LAYER(x).output)
    assert LinformerAttention(6, 2, 5, 3).to("meta")(x.to("meta")).output.shape == x.shape
    assert attention_pattern("longformer", 4, 1, [0], device="meta").is_meta
