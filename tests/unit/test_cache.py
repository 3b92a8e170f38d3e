"""The key/value cache against the full causal pass, slices of it, and Hugging Face's cache."""

import pytest
import torch

from course_lib.cache import KeyValueCache
from course_lib.multihead import MultiHeadAttention

DTYPES = [torch.float64, torch.float32]
ROUNDING = {torch.float64: 1e-10, torch.float32: 1e-5}

# No two axes are equally long, so that none can be taken for another.
BATCH, HEADS, LENGTH, D_HEAD, VALUE_SIZE = 2, 6, 5, 3, 7
D_MODEL = HEADS * D_HEAD


def layer_and_tokens(kv_heads=HEADS, dtype=torch.float64):
    layer = MultiHeadAttention(D_MODEL, HEADS, num_kv_heads=kv_heads).to(dtype)
    return layer, torch.randn(BATCH, LENGTH, D_MODEL, dtype=dtype)


def causal(length=LENGTH):
    return torch.ones(length, length, dtype=torch.bool).tril()


def in_steps(layer, x, steps, mask, need_weights=False):
    """What the layer returns for some tokens at a time; what is masked are rows of the full mask."""
    cache, outputs, weights, done = KeyValueCache(), [], [], 0
    for step in steps:
        new, done = slice(done, done + step), done + step
        rows = None if mask is None else mask[..., new, :done]
        attended = layer(x[:, new], mask=rows, cache=cache, need_weights=need_weights)
        outputs.append(attended.output)
        weights.append(attended.weights)
        assert cache.length == done
    return torch.cat(outputs, dim=1), weights, cache


# --- token by token --------------------------------------------------------------------------


@pytest.mark.verifies("course_lib.cache.KeyValueCache", against="the full causal pass")
@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("steps", [(1, 1, 1, 1, 1), (2, 1, 2), (5,), (4, 1), (1, 4)])
@pytest.mark.parametrize("kv_heads", [1, 3, HEADS], ids=["mqa", "gqa", "mha"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_kv_cache_equals_the_full_causal_pass(ledger, dtype, kv_heads, steps, need_weights):
    layer, x = layer_and_tokens(kv_heads, dtype)
    exact = MultiHeadAttention(D_MODEL, HEADS, num_kv_heads=kv_heads).double()
    exact.load_state_dict(layer.state_dict())
    whole = exact(x.double(), mask=causal(), need_weights=True)
    output, weights, _ = in_steps(layer, x, steps, causal(), need_weights)
    ledger.compare(output, whole.output, within=ROUNDING[dtype])
    done = 0
    for step, rows in zip(steps, weights, strict=True):
        new, done = slice(done, done + step), done + step
        if need_weights:
            ledger.compare(rows, whole.weights[:, :, new, :done], within=ROUNDING[dtype])


def test_kv_cache_with_one_new_token_needs_no_mask():
    layer, x = layer_and_tokens()
    output, _, _ = in_steps(layer, x, [1] * LENGTH, mask=None)
    torch.testing.assert_close(output, layer(x, mask=causal()).output)


@pytest.mark.parametrize("axes", [(BATCH,), (BATCH, HEADS)])
def test_kv_cache_with_a_mask_per_sequence_or_head(axes):
    layer, x = layer_and_tokens(kv_heads=2)
    mask = causal() & (torch.rand(*axes, LENGTH, LENGTH) < 0.7)
    output, _, _ = in_steps(layer, x, (2, 1, 2), mask)
    torch.testing.assert_close(output, layer(x, mask=mask).output)


@pytest.mark.verifies("course_lib.cache.KeyValueCache", against="the full causal pass")
def test_gradients_flow_through_the_kv_cache(ledger):
    layer, x = layer_and_tokens(kv_heads=3)
    leaves, mix = [x.requires_grad_(), *layer.parameters()], torch.randn(x.shape).double()
    whole = torch.autograd.grad((layer(x, mask=causal()).output * mix).sum(), leaves)
    output, _, _ = in_steps(layer, x, (1, 3, 1), causal())
    ours = torch.autograd.grad((output * mix).sum(), leaves)
    for mine, theirs in zip(ours, whole, strict=True):
        ledger.compare(mine, theirs, within=1e-10, backward=True)


def test_kv_cache_under_autocast_and_no_grad():
    layer, x = layer_and_tokens(dtype=torch.float32)
    plain = layer(x, mask=causal()).output
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        output, _, cache = in_steps(layer, x, (2, 1, 2), causal())
    assert cache.key.dtype == cache.value.dtype == torch.bfloat16
    assert not cache.key.requires_grad
    torch.testing.assert_close(output.float(), plain, rtol=0, atol=0.05)


# --- contents of the cache -------------------------------------------------------------------


def pieces(*lengths, heads=HEADS, dtype=torch.float64):
    return [
        tuple(torch.randn(BATCH, heads, length, size).to(dtype) for size in (D_HEAD, VALUE_SIZE))
        for length in lengths
    ]


@pytest.mark.verifies("course_lib.cache.KeyValueCache", against="an explicit loop over tokens")
def test_kv_cache_holds_the_projected_keys_and_values(ledger):
    layer, x = layer_and_tokens(kv_heads=2)
    _, _, cache = in_steps(layer, x, (1, 3, 1), causal())
    for kept, project in ((cache.key, layer.k_proj), (cache.value, layer.v_proj)):
        theirs = torch.empty(BATCH, 2, LENGTH, D_HEAD, dtype=torch.float64)
        for b in range(BATCH):
            for place in range(LENGTH):
                vector = project.weight @ x[b, place] + project.bias
                theirs[b, 0, place], theirs[b, 1, place] = vector[:D_HEAD], vector[D_HEAD:]
        ledger.compare(kept, theirs, within=1e-12)


@pytest.mark.verifies("course_lib.cache.KeyValueCache", against="Hugging Face `DynamicCache`")
@pytest.mark.parametrize("dtype", DTYPES)
def test_kv_cache_equals_hugging_face(ledger, dtype):
    from transformers import DynamicCache

    ours, theirs = KeyValueCache(), DynamicCache()
    for key, value in pieces(2, 1, 4, dtype=dtype):
        wanted = theirs.update(key, value, 0)
        for mine, oracle in zip(ours.update(key, value), wanted, strict=True):
            ledger.compare(mine, oracle, within=0)
        assert ours.length == theirs.get_seq_length()


def test_kv_cache_returns_what_it_holds_and_leaves_earlier_tensors():
    cache, (first, second) = KeyValueCache(), pieces(2, 3)
    early = cache.update(*first)
    copies = [tensor.clone() for tensor in early]
    late = cache.update(*second)
    assert late[0] is cache.key and late[1] is cache.value
    for kept, old, new, copy in zip(late, early, second, copies, strict=True):
        assert torch.equal(old, copy)
        assert torch.equal(kept, torch.cat([copy, new], dim=2))


def test_empty_kv_cache():
    cache = KeyValueCache()
    assert (cache.key, cache.value, cache.length, cache.nbytes) == (None, None, 0, 0)
    assert repr(cache) == "KeyValueCache of 0 tokens, 0 bytes"


@pytest.mark.parametrize(
    ("dtype", "width"), [(torch.float64, 8), (torch.float32, 4), (torch.bfloat16, 2)]
)
def test_kv_cache_nbytes(dtype, width):
    cache = KeyValueCache()
    for key, value in pieces(2, 3, dtype=dtype):
        cache.update(key, value)
    assert cache.nbytes == BATCH * HEADS * 5 * (D_HEAD + VALUE_SIZE) * width
    assert repr(cache) == f"KeyValueCache of 5 tokens, {cache.nbytes} bytes"


@pytest.mark.parametrize("kv_heads", [1, 2, 3], ids=["mqa", "gqa-2", "gqa-3"])
def test_kv_cache_nbytes_shrink_with_the_kv_heads(kv_heads):
    sizes = []
    for heads in (kv_heads, HEADS):
        layer, x = layer_and_tokens(heads)
        _, _, cache = in_steps(layer, x, (LENGTH,), causal())
        assert cache.nbytes == 2 * BATCH * heads * LENGTH * D_HEAD * 8
        sizes.append(cache.nbytes)
    assert sizes[0] * HEADS == sizes[1] * kv_heads
