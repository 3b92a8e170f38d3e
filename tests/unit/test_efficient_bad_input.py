"""What efficient attention refuses, and in which words; one graph, and shapes without values."""

import pytest
import torch

from course_lib.efficient import (
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


def calls():
    projection = orthogonal_projection(12, 8)
    first = slice(0, 1)
    return {
        "flash": lambda q, k, v: flash_attention(q, k, v, causal=True, block_size=32),
        "window": lambda q, k, v: sliding_window_attention(q, k, v, 5),
        "block": lambda q, k, v: block_attention(q, k, v, 5, causal=True),
        "longformer": lambda q, k, v: longformer_attention(q, k, v, 5, [0, 3]),
        "linear": lambda q, k, v: linear_attention(q, k, v, causal=True),
        "step": lambda q, k, v: linear_attention_step(
            q[..., first, :], k[..., first, :], v[..., first, :]
        )[0],
        "performer": lambda q, k, v: performer_attention(
            q, k, v, projection.to(q.device), causal=True
        ),
    }


def inputs():
    return [torch.randn(2, 3, 70, 8, requires_grad=True) for _ in range(3)]


@pytest.mark.parametrize("name", calls())
def test_efficient_attention_compiles_as_one_graph(as_one_graph, name):
    call, leaves = calls()[name], inputs()
    ours, plain = as_one_graph(call)(*leaves), call(*leaves)
    torch.testing.assert_close(ours, plain)
    slopes = [torch.autograd.grad(one.square().sum(), leaves) for one in (ours, plain)]
    torch.testing.assert_close(*slopes)


def test_linformer_compiles_as_one_graph(as_one_graph):
    x = torch.randn(2, 4, 6)
    torch.testing.assert_close(as_one_graph(LAYER)(x).output, LAYER(x).output)


@pytest.mark.parametrize("name", calls())
def test_efficient_attention_runs_on_the_meta_device(name):
    call, leaves = calls()[name], [x.detach() for x in inputs()]
    output = call(*(x.to("meta") for x in leaves))
    assert output.is_meta and output.shape == call(*leaves).shape
    layer = LinformerAttention(6, 2, 5, 3).to("meta")
    assert layer(X.to("meta")).output.shape == X.shape
    assert attention_pattern("longformer", 4, 1, [0], device="meta").is_meta
