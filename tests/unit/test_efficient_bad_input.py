"""What efficient attention refuses, and in which words; one graph, and shapes without values."""

import pytest
import torch

from course_lib.efficient import (
    LinearAttentionState,
    LinformerAttention,
    attention_pattern,
    block_attention,
    flash_attention,
    linear_attention,
    linear_attention_state,
    linear_attention_step,
    longformer_attention,
    orthogonal_projection,
    pattern_cost,
    performer_attention,
    performer_features,
    sliding_window_attention,
)

X, Y = torch.zeros(2, 4, 6), torch.zeros(2, 5, 6)
M = torch.ones(2, 1, 4) > 0
W = torch.zeros(7, 6)
LAYER = LinformerAttention(6, 2, 5, 3)
TOKEN = X[:, :1]


@pytest.mark.usefixtures("without_annotations")
@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: flash_attention(X, Y[..., :3], Y), r"key has shape \(2, 5, 3\)"),
        (lambda: flash_attention(X, Y, X), r"5 keys and 4 values"),
        (lambda: flash_attention(X, Y, Y, block_size=0), r"block_size=0 is below 1"),
        (lambda: flash_attention(X, Y, Y, M), r"mask has shape \(2, 1, 4\); .*key is 4 and not 5"),
        (lambda: flash_attention(Y, X, X, causal=True), r"query has 5 queries but key has 4 keys; with causal=True"),
        (lambda: flash_attention(X, Y, Y, causal=1), r"causal=1 is a int"),
        (lambda: sliding_window_attention(X, X, X, 0), r"window=0 is below 1"),
        (lambda: sliding_window_attention(X, X, X, -3), r"window=-3 is below 1"),
        (lambda: sliding_window_attention(X, X, X, 2.0), r"window=2\.0 is a float"),
        (lambda: sliding_window_attention(X, Y, Y, 2), r"4 queries and 5 keys; positions are compared"),
        (lambda: sliding_window_attention(X, X, X, 2, padding_mask=M.float()), r"padding_mask is float32; it must be a boolean"),
        (lambda: sliding_window_attention(X, X, X, 2, padding_mask=M.mT), r"padding_mask has shape \(2, 4, 1\); it must broadcast to \(batch, 1, key\) = \(2, 1, 4\)"),
        (lambda: sliding_window_attention(X, X, X[:, :, None], 2), r"there must be one value per key|must be equal or 1"),
        (lambda: sliding_window_attention(X.long(), X, X, 2), r"query has dtype int64"),
        (lambda: block_attention(X, X, X, 0), r"block_size=0 is below 1"),
        (lambda: block_attention(X[:, :0], X[:, :0], X[:, :0], 2), r"0 queries and 0 keys; .*at least one"),
        (lambda: longformer_attention(X, X, X, 0, [0]), r"window=0 is below 1"),
        (lambda: longformer_attention(X, X, X, 1, [0, 4]), r"global_positions\[1\]=4 is outside the sequence; its positions are 0 to 3"),
        (lambda: longformer_attention(X, X, X, 1, [-1]), r"global_positions\[0\]=-1 is outside the sequence"),
        (lambda: longformer_attention(X, X, X, 1, torch.tensor([7])), r"global_positions\[0\]=7 is outside"),
        (lambda: longformer_attention(X, X, X, 1, torch.tensor([0.0])), r"global_positions has shape \(1,\) and dtype float32"),
        (lambda: longformer_attention(X, X, X, 1, M[0, 0]), r"global_positions has .* dtype bool"),
        (lambda: longformer_attention(X, X, X, 1, [2, 2]), r"global_positions holds 2 more than once"),
        (lambda: longformer_attention(X, X, X, 1, 0), r"global_positions is a int; it must be a list"),
        (lambda: longformer_attention(X, X, X, 1, [0], global_key=Y), r"global_key has shape \(2, 5, 6\); it must be \(2, 4, 6\), like key"),
        (lambda: longformer_attention(X, X, X, 1, [0], global_query=X.double()), r"query has dtype float32 but global_query has dtype float64"),
        (lambda: linear_attention(X, Y, Y, causal=True), r"4 queries and 5 keys"),
        (lambda: linear_attention(X, X, X, feature_map="elu"), r"feature_map='elu' cannot be called"),
        (lambda: linear_attention(X, X, X, feature_map=lambda x: 1), r"feature_map returned a int"),
        (lambda: linear_attention(X, X, X, feature_map=lambda x: x.sum(-1)), r"feature_map returned shape \(2, 4\) .*only the last axis may change"),
        (lambda: linear_attention_state(X, Y), r"4 keys and 5 values"),
        (lambda: linear_attention_step(X, X, X), r"query has shape \(2, 4, 6\); a step takes one token"),
        (lambda: linear_attention_step(TOKEN, TOKEN, TOKEN, 3), r"state is a int; it must be a LinearAttentionState"),
        (lambda: linear_attention_step(TOKEN, TOKEN, TOKEN, LinearAttentionState(X, X)), r"state\.key_value has shape \(2, 4, 6\) .*for such a token it has \(2, 6, 6\)"),
        (lambda: orthogonal_projection(0, 6), r"num_features=0 is below 1"),
        (lambda: orthogonal_projection(4, 6, 0), r"generator is a int; it must be a torch\.Generator"),
        (lambda: orthogonal_projection(4, 6, dtype=torch.int64), r"dtype=torch\.int64 must be a floating-point dtype"),
        (lambda: performer_features(X, W[:, :5]), r"projection has .*; x has vectors of dimension 6"),
        (lambda: performer_attention(X, X, X, 64), r"projection is a int; a tensor is needed"),
        (lambda: performer_attention(X, X, X, W.double()), r"query has dtype float32 but projection has dtype float64"),
        (lambda: performer_attention(X, X, X, W[:0]), r"projection has shape \(0, 6\); it is empty"),
        (lambda: LinformerAttention(6, 4, 5, 3), r"d_model=6 is not divisible by num_heads=4"),
        (lambda: LinformerAttention(6, 2, 5, 6), r"rank=6 is above length=5"),
        (lambda: LinformerAttention(6, 2, 5, 0), r"rank=0 is below 1"),
        (lambda: LAYER(torch.zeros(2, 6, 6)), r"6 positions; the layer was made for length=5"),
        (lambda: LAYER(torch.zeros(2, 4, 5)), r"x has shape \(2, 4, 5\); it must be \(batch, length, 6\)"),
        (lambda: LAYER(X, M[..., :3]), r"padding_mask has shape \(2, 1, 3\)"),
        (lambda: attention_pattern("windowed", 4, 1), r"kind='windowed' is unknown; it must be one of"),
        (lambda: attention_pattern("block", 4, 1), r"block_size is missing; the pattern 'block' has one"),
        (lambda: attention_pattern("longformer", 4), r"window is missing; the pattern 'longformer' has one"),
        (lambda: attention_pattern("sliding_window", 4, 0), r"window=0 is below 1"),
        (lambda: attention_pattern("longformer", 4, 1, [4]), r"global_positions\[0\]=4 is outside"),
        (lambda: attention_pattern("dense", 0), r"length=0 is below 1"),
        (lambda: attention_pattern("dense", 10**6), r"length=1000000 is above 65536"),
        (lambda: pattern_cost(M, 4), r"mask has shape \(2, 1, 4\) and dtype bool; it must be .*\(query, key\)"),
        (lambda: pattern_cost(M[0], 0), r"d_head=0 is below 1"),
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
