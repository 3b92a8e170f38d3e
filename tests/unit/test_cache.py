"""The key/value cache of one layer against the full causal pass, slices of it, and Hugging Face's cache."""

import pytest
import torch

from course_lib.transformer.cache import CrossAttentionCache, KeyValueCache
from course_lib.transformer.multihead import MultiHeadAttention
from tests.helpers.tensors import DTYPES

# No two axes are equally long, so that none can be taken for another.
BATCH, HEADS, LENGTH, D_HEAD, VALUE_SIZE = 2, 6, 5, 3, 7
D_MODEL = HEADS * D_HEAD


def layer_and_tokens(kv_heads=HEADS, dtype=torch.float64):
    layer = MultiHeadAttention(D_MODEL, HEADS, num_kv_heads=kv_heads).to(dtype)
    return layer, torch.randn(BATCH, LENGTH, D_MODEL, dtype=dtype)


def causal():
    return torch.ones(LENGTH, LENGTH, dtype=torch.bool).tril()


def in_steps(layer, x, steps, mask):
    """What the layer returns for some tokens at a time; what is masked are rows of the full mask."""
    cache, outputs = KeyValueCache(), []
    for step in steps:
        done, now = cache.length, cache.length + step
        rows = None if mask is None else mask[..., done:now, :now]
        outputs.append(layer(x[:, done:now], mask=rows, cache=cache).output)
        assert cache.length == now
    return torch.cat(outputs, dim=1), cache


def pieces(*lengths, dtype=torch.float64):
    """Keys and values of some new tokens at a time."""
    return [
        [torch.randn(BATCH, HEADS, n, size, dtype=dtype) for size in (D_HEAD, VALUE_SIZE)]
        for n in lengths
    ]


# --- token by token --------------------------------------------------------------------------


@pytest.mark.verifies("course_lib.transformer.cache.KeyValueCache", against="the full causal pass")
def test_output_and_gradients_through_the_kv_cache_equal_the_full_pass(ledger):
    layer, x = layer_and_tokens(kv_heads=3)
    leaves, mix = [x.requires_grad_(), *layer.parameters()], torch.randn(x.shape).double()
    whole, (ours, _) = layer(x, mask=causal()).output, in_steps(layer, x, (1, 3, 1), causal())
    ledger.compare(ours, whole, within=1e-10)
    slopes, mine = (torch.autograd.grad((one * mix).sum(), leaves) for one in (whole, ours))
    for one, slope in zip(mine, slopes, strict=True):
        ledger.compare(one, slope, within=1e-10, backward=True)


def test_kv_cache_with_one_new_token_needs_no_mask():
    layer, x = layer_and_tokens()
    output, _ = in_steps(layer, x, [1] * LENGTH, mask=None)
    torch.testing.assert_close(output, layer(x, mask=causal()).output)


@pytest.mark.parametrize("axes", [(BATCH,), (BATCH, HEADS)])
def test_kv_cache_with_a_mask_per_sequence_or_head(axes):
    layer, x = layer_and_tokens(kv_heads=2)
    mask = causal() & (torch.rand(*axes, LENGTH, LENGTH) < 0.7)
    output, _ = in_steps(layer, x, (2, 1, 2), mask)
    torch.testing.assert_close(output, layer(x, mask=mask).output)


@pytest.mark.verifies(
    "course_lib.transformer.cache.CrossAttentionCache", against="the layer without a cache"
)
@pytest.mark.parametrize("kv_heads", [1, 2], ids=["mqa", "gqa"])
def test_cross_attention_cache_equals_the_layer_without_cache(ledger, kv_heads):
    (layer, memory), cache = layer_and_tokens(kv_heads), CrossAttentionCache()
    mask = torch.rand(BATCH, 1, LENGTH) < 0.7
    for queries in (1, 4, 2):
        x = torch.randn(BATCH, queries, D_MODEL).double()
        ours = layer(x, memory, mask=mask, cache=cache, need_weights=True)
        theirs = layer(x, memory, mask=mask, need_weights=True)
        ledger.compare(ours.output, theirs.output, within=1e-12)
        ledger.compare(ours.weights, theirs.weights, within=1e-12)
        assert cache.length == LENGTH and cache.key.shape[1] == kv_heads


# --- contents of the cache -------------------------------------------------------------------


@pytest.mark.verifies(
    "course_lib.transformer.cache.KeyValueCache", against="Hugging Face `DynamicCache`"
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_kv_cache_equals_hugging_face(ledger, dtype):
    from transformers import DynamicCache

    ours, theirs = KeyValueCache(), DynamicCache()
    for key, value in pieces(2, 1, 4, dtype=dtype):
        wanted = theirs.update(key, value, 0)
        for mine, oracle in zip(ours.update(key, value), wanted, strict=True):
            ledger.compare(mine, oracle, within=0)
        assert ours.length == theirs.get_seq_length()


@pytest.mark.parametrize(("dtype", "width"), [(torch.float64, 8), (torch.bfloat16, 2)])
def test_kv_cache_says_its_length_and_bytes(dtype, width):
    cache = KeyValueCache()
    assert (cache.key, cache.value, cache.length, cache.nbytes) == (None, None, 0, 0)
    for key, value in pieces(2, 3, dtype=dtype):
        cache.update(key, value)
    assert cache.nbytes == BATCH * HEADS * 5 * (D_HEAD + VALUE_SIZE) * width
    assert repr(cache) == f"KeyValueCache of 5 tokens, {cache.nbytes} bytes"


# --- reordering ------------------------------------------------------------------------------


def test_update_and_reordering_leave_earlier_tensors():
    cache, ((key, value), new) = KeyValueCache(), pieces(2, 1)
    cache.reorder(torch.tensor([0, 5]))  # nothing to reorder yet
    cache.update(key, value)
    before, rows = (key.clone(), value.clone()), torch.tensor([1, 1, 0], dtype=torch.int32)
    cache.reorder(rows)
    rows.zero_()  # the caller's own
    assert torch.equal(cache.key, key[[1, 1, 0]]) and torch.equal(cache.value, value[[1, 1, 0]])
    cache.update(*(torch.cat([one, one[:1]]) for one in new))
    cache.key.zero_()
    assert torch.equal(key, before[0]) and torch.equal(value, before[1]) and cache.length == 3


def test_gradients_flow_through_a_reordered_kv_cache():
    cache, key = KeyValueCache(), torch.randn(3, 2, 4, 5, requires_grad=True)
    cache.update(key, key)
    cache.reorder(torch.tensor([2, 2, 0]))
    cache.update(torch.randn(3, 2, 1, 5), torch.randn(3, 2, 1, 5))[0][:, :, :4].sum().backward()
    assert torch.equal(key.grad.mean((1, 2, 3)), torch.tensor([1.0, 0.0, 2.0]))
