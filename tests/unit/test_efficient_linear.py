"""Linear attention in its four forms; Performer's features, their mean and their error; Linformer."""

import math

import pytest
import torch
import torch.nn.functional as F

from course_lib.topics.efficient import (
    LinearAttentionState,
    LinformerAttention,
    elu_plus_one,
    linear_attention,
    linear_attention_state,
    linear_attention_step,
    orthogonal_projection,
    performer_attention,
    performer_features,
)
from tests.helpers.efficient import SIZE, compare, dense, padding, pairs, quadratic, triple
from tests.helpers.tensors import HALVES, check


def features(x):
    """elu(x) + 1 by its definition."""
    return torch.where(x > 0, x + 1, torch.exp(x))


def allowed(length, causal, real):
    mask = pairs(length, lambda i, j: j <= i or not causal)
    return mask if real is None else mask & real


# --- linear attention ------------------------------------------------------------------------


@pytest.mark.verifies(
    "course_lib.topics.efficient.elu_plus_one", against="its equation, piece by piece"
)
def test_elu_plus_one(ledger):
    x = torch.linspace(-5, 5, 41, dtype=torch.float64)
    ledger.compare(elu_plus_one(x), features(x), within=1e-15)


@pytest.mark.verifies(
    "course_lib.topics.efficient.linear_attention", against="its equation with every weight held"
)
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("dtype", "length"), [(torch.float64, 1), (torch.float64, 200), (torch.float32, 71)]
)
def test_linear_attention_equals_its_quadratic_form(ledger, dtype, length, causal, padded):
    real = padding(length) if padded else None
    mask = allowed(length, causal, real)
    compare(
        ledger,
        lambda q, k, v: linear_attention(q, k, v, causal=causal, padding_mask=real),
        lambda q, k, v: quadratic(features(q) @ features(k).mT * mask, v),
        triple(length, dtype),
    )


@pytest.mark.verifies(
    "course_lib.topics.efficient.linear_attention", against="its equation with every weight held"
)
def test_linear_attention_with_other_features_and_lengths(ledger):
    compare(
        ledger,
        lambda q, k, v: linear_attention(q, k, v, feature_map=torch.exp),
        lambda q, k, v: quadratic(torch.exp(q) @ torch.exp(k).mT, v),
        triple(7, keys=11),
    )


@pytest.mark.verifies(
    "course_lib.topics.efficient.linear_attention_step",
    "course_lib.topics.efficient.linear_attention_state",
    "course_lib.topics.efficient.LinearAttentionState",
    against="its equation with every weight held",
)
@pytest.mark.parametrize(
    ("dtype", "prompt"), [(torch.float64, 0), (torch.float64, 5), (torch.float32, 1)]
)
def test_the_recurrent_form_equals_the_quadratic_one(ledger, dtype, prompt):
    length = 9

    def recurrent(q, k, v):
        state, outputs = None, []
        if prompt:
            first = (x[..., :prompt, :] for x in (q, k, v))
            outputs.append(linear_attention(*first, causal=True))
            state = linear_attention_state(k[..., :prompt, :], v[..., :prompt, :])
            assert isinstance(state, LinearAttentionState)
        for i in range(prompt, length):
            token = (x[..., i : i + 1, :] for x in (q, k, v))
            output, state = linear_attention_step(*token, state)
            outputs.append(output)
        assert state.key_value.shape == (*k.shape[:2], SIZE, v.shape[-1])
        assert state.key_sum.shape == (*k.shape[:2], SIZE)
        return torch.cat(outputs, -2)

    mask = allowed(length, True, None)
    compare(
        ledger,
        recurrent,
        lambda q, k, v: quadratic(features(q) @ features(k).mT * mask, v),
        triple(length, dtype),
    )


def test_a_step_leaves_the_given_state_as_it_was():
    q, k, v = (x[..., :1, :] for x in triple(3))
    _, state = linear_attention_step(q, k, v)
    before = [x.clone() for x in state]
    linear_attention_step(q, k, v, state)
    torch.testing.assert_close(list(state), before, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", HALVES)
def test_the_state_has_full_precision(dtype):
    token = [x[..., :1, :].detach() for x in triple(3, torch.float32)]
    exact, wanted = linear_attention_step(*token)
    with torch.autocast("cpu", dtype):
        mixed = linear_attention_step(*token)
    half = linear_attention_step(*(x.to(dtype) for x in token))
    torch.testing.assert_close(mixed[1], wanted, rtol=0, atol=0)
    for output, state in (mixed, half):
        assert output.dtype == dtype and state.key_value.dtype == torch.float32
        torch.testing.assert_close(output.float(), exact, rtol=0, atol=0.03)


def test_the_state_of_padded_tokens_is_that_without_them():
    _, k, v = triple(6)
    real = torch.tensor([True, True, False, True, False, False])
    torch.testing.assert_close(
        linear_attention_state(k, v, padding_mask=real),
        linear_attention_state(k[..., real, :], v[..., real, :]),
    )


# --- Performer -------------------------------------------------------------------------------


@pytest.mark.verifies(
    "course_lib.topics.efficient.orthogonal_projection", against="moments over thousands of draws"
)
@pytest.mark.parametrize("d", [4, 7])
def test_projections_are_orthogonal_and_standard_normal(ledger, d):
    generator = torch.Generator().manual_seed(0)
    sizes = (3 * d + 2, d)
    draws = torch.stack(
        [orthogonal_projection(*sizes, generator, dtype=torch.float64) for _ in range(4000)]
    )
    assert draws.shape[1:] == sizes
    for start in range(0, 3 * d + 2, d):  # within a group, no two are alike
        group = draws[:50, start : start + d]
        products = group @ group.mT
        norms = products.diagonal(dim1=-2, dim2=-1)
        ledger.compare(products, torch.diag_embed(norms), within=1e-12)
    vectors = draws.flatten(0, 1)
    near = {"within": 5 * 3 / math.sqrt(len(draws))}
    ledger.compare(vectors.mean(0), torch.zeros(d).double(), **near)
    ledger.compare(vectors.mT @ vectors / len(vectors), torch.eye(d).double(), **near)
    ledger.compare(vectors.pow(4).mean(0), torch.full((d,), 3.0).double(), **near)
    squared = vectors.square().sum(-1)  # chi-squared with d degrees of freedom
    ledger.compare(squared.mean(), torch.tensor(float(d)).double(), within=0.05 * d)
    ledger.compare(squared.var(), torch.tensor(2.0 * d).double(), within=0.05 * 2 * d)


def test_projection_is_reproducible_and_has_its_dtype():
    seeded = [torch.Generator().manual_seed(3) for _ in range(2)]
    first, second = (orthogonal_projection(9, 4, one, dtype=torch.bfloat16) for one in seeded)
    assert torch.equal(first, second) and first.dtype == torch.bfloat16


@pytest.mark.verifies(
    "course_lib.topics.efficient.performer_features",
    against="the exponential, as a mean over thousands of draws",
)
def test_features_estimate_the_exponential_without_bias(ledger):
    # Of norm 1/2: the variance of the estimates grows with exp(|q + k|²).
    q, k = (F.normalize(torch.randn(6, 4).double(), dim=-1) / 2 for _ in range(2))
    generator = torch.Generator().manual_seed(1)
    draws = [orthogonal_projection(6, 4, generator, dtype=torch.float64) for _ in range(4000)]
    estimates = torch.stack([performer_features(q, w) @ performer_features(k, w).mT for w in draws])
    error, spread = estimates.mean(0) - torch.exp(q @ k.mT), estimates.std(0) / math.sqrt(4000)
    assert (estimates > 0).all() and (error.abs() < 4 * spread).all()
    ledger.compare(estimates.mean(0), torch.exp(q @ k.mT), within=0.03)


@pytest.mark.verifies(
    "course_lib.topics.efficient.performer_attention", against="its equation with every weight held"
)
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("dtype", "length", "scale"),
    [(torch.float64, 1, None), (torch.float64, 130, -0.2), (torch.float32, 71, 0.2)],
)
def test_performer_equals_the_quadratic_form_of_its_features(
    ledger, dtype, length, scale, causal, padded
):
    real = padding(length) if padded else None
    mask = allowed(length, causal, real)
    w = orthogonal_projection(11, SIZE, dtype=torch.float64)
    size = 1 / math.sqrt(SIZE) if scale is None else scale

    def weights(q, k):
        q, k = size / math.sqrt(abs(size)) * q, math.sqrt(abs(size)) * k
        phi = [torch.exp(x @ w.mT - (x * x).sum(-1, keepdim=True) / 2) for x in (q, k)]
        return phi[0] @ phi[1].mT * mask

    compare(
        ledger,
        lambda q, k, v: performer_attention(
            q, k, v, w.to(dtype), causal=causal, padding_mask=real, scale=scale
        ),
        lambda q, k, v: quadratic(weights(q, k), v),
        triple(length, dtype),
    )


@pytest.mark.parametrize("norm", [20, 50, 100])
@pytest.mark.parametrize("padded", [0, 70])
def test_later_keys_change_no_earlier_output_of_the_causal_performer(norm, padded):
    """Against the equation in logarithms. Features of a large key are tiny: next to those of later keys they are 0."""
    length, w = 140, orthogonal_projection(11, SIZE, dtype=torch.float64)
    q, k, v = (x.detach() for x in triple(length, torch.float64))
    k[..., padded, :] *= norm / k[..., padded, :].norm(dim=-1, keepdim=True)
    k[..., -3, :] *= norm / k[..., -3, :].norm(dim=-1, keepdim=True)
    q, k = q.requires_grad_(), k.requires_grad_()
    real = torch.arange(length) >= padded
    mask = allowed(length, True, real)
    phi_q, phi_k = (
        (x := y / SIZE**0.25) @ w.mT - x.square().sum(-1, keepdim=True) / 2 for y in (q, k)
    )
    logs = (phi_q[..., :, None, :] + phi_k[..., None, :, :]).logsumexp(-1)  # (…, query, key)
    weights = logs.masked_fill(~mask, -torch.inf)[..., padded:, :].softmax(-1)
    ours = performer_attention(q, k, v, w, causal=True, padding_mask=real)
    torch.testing.assert_close(ours[..., padded:, :], weights @ v)
    assert (ours[..., :padded, :] == 0).all()
    torch.testing.assert_close(ours[..., padded, :], v[..., padded, :])
    for one in torch.autograd.grad(ours.sum(), (q, k)):
        assert one.isfinite().all()


def test_performer_does_not_overflow():
    q, k, v = (30 * x for x in triple(9, torch.float32))
    output = performer_attention(q, k, v, orthogonal_projection(16, SIZE))
    assert output.isfinite().all() and output.abs().max() <= v.abs().max() * 1.0001


# --- Linformer -------------------------------------------------------------------------------

D_MODEL, NUM_HEADS, LENGTH, RANK = 12, 3, 10, 4


@pytest.mark.verifies(
    "course_lib.topics.efficient.LinformerAttention",
    against="PyTorch `F.scaled_dot_product_attention` of projected keys and values",
)
@pytest.mark.parametrize(
    ("bias", "shared", "padded"), [(True, False, True), (False, False, False), (True, True, True)]
)
def test_linformer_attends_to_mixtures_of_tokens(ledger, bias, shared, padded):
    options = {"shared": shared, "bias": bias}
    layer = LinformerAttention(D_MODEL, NUM_HEADS, LENGTH, RANK, **options).double()
    x = torch.randn(2, 7, D_MODEL, dtype=torch.float64, requires_grad=True)
    real = torch.rand(2, 1, 7) < (0.7 if padded else 2)
    ours = layer(x, real if padded else None, need_weights=True)
    p = dict(layer.named_parameters())
    assert ("value_length_proj" in p) != shared and ("k_proj.bias" in p) == bias

    def heads(name):
        made = F.linear(x, p[f"{name}.weight"], p.get(f"{name}.bias"))
        return made.unflatten(-1, (NUM_HEADS, -1)).transpose(1, 2)

    k, v = (heads(name) * real[:, :, :, None] for name in ("k_proj", "v_proj"))
    e = p["key_length_proj"]
    k, v = e[:, :7] @ k, p.get("value_length_proj", e)[:, :7] @ v
    joined = dense(heads("q_proj"), k, v).transpose(1, 2).flatten(2)
    theirs = F.linear(joined, p["out_proj.weight"], p.get("out_proj.bias"))
    check(ledger, ours.output, [x, *p.values()], theirs, [x, *p.values()], 1e-10)
    weights = dense(heads("q_proj"), k, torch.eye(RANK).double().expand(2, NUM_HEADS, -1, -1))
    ledger.compare(ours.weights, weights, within=1e-10)
