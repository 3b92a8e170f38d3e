"""Multi-head attention with every positional encoding, against a loop over pairs of tokens."""

import math

import pytest
import torch
import torch.nn.functional as F

from course_lib.transformer.attention import AttentionOutput
from course_lib.transformer.cache import KeyValueCache
from course_lib.transformer.multihead import MultiHeadAttention
from course_lib.transformer.positions import ShawRelativePositions, make_positions
from tests.helpers.encodings import CASES, IN_ATTENTION, IN_EMBEDDING
from tests.helpers.ids import encoding_id
from tests.helpers.multihead import (
    BATCH,
    D_HEAD,
    D_MODEL,
    HEADS,
    TOKENS,
    compare_all,
    cut,
    lower,
    mixes_for,
    randomized,
    tokens,
)
from tests.helpers.tensors import (
    DTYPES,
    HALVES,
    ROUNDING,
    all_true,
    gradients,
    in_float64,
    without_second_query,
)

#: The others never hold the weights.
WITH_KERNEL = [name for name in IN_ATTENTION if CASES[name].kind is not ShawRelativePositions]


def layer_with(name, dtype=torch.float64, count=HEADS, kv_heads=None):
    """A layer with an encoding inside, and all that it learns so large that it matters."""
    layer = MultiHeadAttention(
        count * D_HEAD, count, num_kv_heads=kv_heads, positions=CASES[name].layer(count)
    )
    return randomized(layer, dtype)


def whole(name, dtype=torch.float64, count=HEADS, kv_heads=None):
    """x, offset, … → what a layer makes of it, with any encoding, inside or added before."""
    if name in IN_ATTENTION:
        layer = layer_with(name, dtype, count, kv_heads)
        return lambda x, offset=0, **settings: layer(x, **settings)
    added = make_positions(name, count * D_HEAD, count, max_length=40).embedding.to(dtype)
    randomized(added, dtype)
    layer = layer_with("none", dtype, count, kv_heads)
    return lambda x, offset=0, **settings: layer(added(x, offset), **settings)


def pair_by_pair(row, layer, x, mask):
    """One sequence, head, query and key at a time."""
    count, shared = layer.num_heads, layer.num_kv_heads
    outputs, every = [], []
    for b in range(len(x)):
        q, k, v = (
            cut(project(x[b][None]), n)[0]
            for project, n in (
                (layer.q_proj, count),
                (layer.k_proj, shared),
                (layer.v_proj, shared),
            )
        )
        beside, weights = [], []
        for h in range(count):
            group = h * shared // count
            rows, places = [], range(len(x[b]))
            for i in places:
                scores = [
                    row.score(layer.positions, q[h, i], k[group, j], j - i) / math.sqrt(D_HEAD)
                    + row.bias(layer.positions, h, j - i)
                    for j in places
                ]
                alpha = torch.stack(scores).masked_fill(~mask[i], -torch.inf).softmax(0)
                values = [row.value(layer.positions, v[group, j], j - i) for j in places]
                weights.append(alpha)
                rows.append(sum(alpha[j] * values[j] for j in places))
            beside.append(torch.stack(rows))
        outputs.append(layer.out_proj(torch.cat(beside, -1)))
        every.append(torch.stack(weights).view(count, len(x[b]), -1))
    return AttentionOutput(torch.stack(outputs), torch.stack(every))


WITH_POSITIONS = pytest.mark.verifies(
    "course_lib.transformer.multihead.MultiHeadAttention",
    against="whole layers with positions, one pair of tokens at a time",
)
BY_PAIRS = [
    pytest.param(name, marks=[CASES[name].verifies, *[WITH_POSITIONS][: name != "none"]])
    for name in IN_ATTENTION
]


@pytest.mark.parametrize(("count", "kv_heads"), [(HEADS, None), (4, 2)], ids=["mha", "gqa"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BY_PAIRS, ids=encoding_id)
def test_encodings_equal_a_loop_over_pairs_of_tokens(ledger, name, dtype, causal, count, kv_heads):
    layer = layer_with(name, dtype, count, kv_heads)
    oracle = layer_with(name, torch.float64, count, kv_heads)
    oracle.load_state_dict(layer.state_dict())
    x, mask = tokens(5, dtype, count), lower(5) if causal else all_true(5, 5)
    (copied,) = in_float64(x)
    theirs = pair_by_pair(CASES[name], oracle, copied, mask)
    mixes, named = mixes_for(theirs), dict(oracle.named_parameters())
    slopes = gradients(AttentionOutput(theirs.output, None), [copied, *named.values()], mixes[:1])
    for need_weights in (True, False):
        ours = layer(x, mask=mask if causal else None, need_weights=need_weights)
        assert ours.output.dtype == dtype and (ours.weights is not None) == need_weights
        ledger.compare(ours.output, theirs.output, within=ROUNDING[dtype])
        if need_weights:
            ledger.compare(ours.weights, theirs.weights, within=ROUNDING[dtype])
        leaves = [x, *(layer.get_parameter(name) for name in named)]
        mine = gradients(AttentionOutput(ours.output, None), leaves, mixes[:1])
        compare_all(ledger, mine, slopes, 10 * ROUNDING[dtype], backward=True)


@pytest.mark.verifies("course_lib.transformer.cache.KeyValueCache", against="the full causal pass")
@pytest.mark.parametrize("kv_heads", [1, HEADS], ids=["mqa", "mha"])
@pytest.mark.parametrize("name", [*IN_ATTENTION, *IN_EMBEDDING], ids=encoding_id)
@pytest.mark.parametrize("need_weights", [True, False])
def test_kv_cache_with_each_encoding_equals_the_full_pass(ledger, name, kv_heads, need_weights):
    call, x = whole(name, kv_heads=kv_heads), tokens(9)
    full = call(x, mask=lower(9), need_weights=need_weights)
    for sizes in ([1] * 9, [4, 1, 3, 1], [9], [1, 8]):
        cache, pieces = KeyValueCache(), []
        for new in sizes:
            done, now = cache.length, cache.length + new
            options = {"mask": lower(new, now), "cache": cache, "need_weights": need_weights}
            ours = call(x[:, done:now], done, **options)
            if need_weights:
                ledger.compare(ours.weights, full.weights[:, :, done:now, :now], within=1e-10)
            pieces.append(ours.output)
        ledger.compare(torch.cat(pieces, 1), full.output, within=1e-10)


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("name", IN_ATTENTION, ids=encoding_id)
@pytest.mark.parametrize("dtype", [torch.float32, *HALVES])
def test_fully_masked_row_with_each_encoding_is_the_output_bias(name, dtype, need_weights):
    layer, x = layer_with(name, dtype, kv_heads=1), tokens(dtype=dtype)
    ours = layer(x, mask=without_second_query(all_true(TOKENS, TOKENS)), need_weights=need_weights)
    with torch.autograd.set_detect_anomaly(True):  # no NaN on the way either
        ours.output.backward(torch.randn(ours.output.shape).to(dtype))
    assert ours.output.dtype == dtype and ours.output.isfinite().all()
    assert torch.equal(ours.output[:, 1], layer.out_proj.bias.expand(BATCH, -1))
    assert all(tensor.grad.isfinite().all() for tensor in [x, *layer.parameters()])
    all_masked = layer(x, mask=~all_true(TOKENS, TOKENS), need_weights=need_weights).output
    assert torch.equal(all_masked, layer.out_proj.bias.expand(BATCH, TOKENS, -1))


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("name", IN_ATTENTION, ids=encoding_id)
def test_each_encoding_under_autocast_and_in_half_precision(name, need_weights):
    layer, x = layer_with(name, torch.float32, kv_heads=1), tokens(dtype=torch.float32)
    options, cache = {"mask": lower(), "need_weights": need_weights}, KeyValueCache()
    plain = layer(x, **options).output
    with torch.autocast("cpu", torch.bfloat16):
        halves = [layer(x, **options).output]
        pieces = [layer(x[:, :4], mask=lower(4), cache=cache), layer(x[:, 4:], mask=lower(3, 7), cache=cache)]  # fmt: skip
        halves.append(torch.cat([piece.output for piece in pieces], 1))
    halves[0].sum().backward()
    assert all(p.grad.isfinite().all() for p in layer.parameters())
    halves.append(layer.bfloat16()(x.bfloat16(), **options).output)
    for output in halves:
        assert output.dtype == torch.bfloat16
        assert (output.float() - plain).abs().max() < 0.03 * plain.abs().max()


@pytest.mark.parametrize("name", WITH_KERNEL, ids=encoding_id)
def test_fused_kernel_is_called_only_without_weights(monkeypatch, name):
    layer, x, calls = layer_with(name), tokens(), []
    kernel = F.scaled_dot_product_attention

    def counted(*args, **settings):
        calls.append(args)
        return kernel(*args, **settings)

    monkeypatch.setattr(F, "scaled_dot_product_attention", counted)
    layer(x, mask=lower())
    assert len(calls) == 1
    layer(x, mask=lower(), need_weights=True)
    assert len(calls) == 1


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("name", IN_ATTENTION, ids=encoding_id)
def test_dropout_with_each_encoding_preserves_the_mean(name, need_weights):
    x = tokens(4, torch.float32).detach()[:1]
    layer = MultiHeadAttention(D_MODEL, HEADS, dropout=0.4, positions=CASES[name].layer(HEADS))
    plain = layer.eval()(x, need_weights=need_weights)
    torch.testing.assert_close(layer(x, need_weights=need_weights), plain, rtol=0, atol=0)
    draws = layer.train()(x.expand(4000, -1, -1), need_weights=need_weights)
    spread = draws.output.std(0) / math.sqrt(4000)
    assert (spread > 0).all()
    assert ((draws.output.mean(0) - plain.output[0]).abs() < 5 * spread).all()
    if need_weights:
        torch.testing.assert_close(draws.weights[:1], plain.weights)  # as they were before
