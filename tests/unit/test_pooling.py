"""Kernel regression against scikit-learn, statsmodels, SciPy, PyTorch's fused attention and plain loops."""

import math

import numpy as np
import pytest
import scipy.integrate
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neighbors import KernelDensity
from statsmodels.nonparametric.kernel_regression import KernelReg

from course_lib.topics.pooling import (
    KERNELS,
    NadarayaWatson,
    attention_pooling,
    boxcar_kernel,
    epanechnikov_kernel,
    gaussian_kernel,
    leave_one_out_error,
)
from tests.helpers.tensors import DTYPES, HALVES, in_float64

ROUNDING = {torch.float64: 1e-12, torch.float32: 1e-5}


def sample(queries=7, keys=11, value_size=None, dtype=torch.float64, seed=0):
    random = np.random.default_rng(seed)
    shape = (keys,) if value_size is None else (keys, value_size)
    arrays = random.uniform(-2, 2, queries), random.uniform(-2, 2, keys), random.normal(size=shape)
    return tuple(torch.tensor(array, dtype=dtype) for array in arrays)


def by_loops(queries, keys, values, K, bandwidth, mask=None):
    """The formula, one pair at a time, in Python floats."""
    outputs, weights = [], []
    for q, query in enumerate(queries.tolist()):
        row = [
            K((query - key) / bandwidth) if mask is None or mask[q][k] else 0.0
            for k, key in enumerate(keys.tolist())
        ]
        total = sum(row) or 1.0
        row = [kernel / total for kernel in row]
        weights.append(row)
        outputs.append(sum(w * value for w, value in zip(row, values.tolist(), strict=True)))
    return torch.tensor(outputs, dtype=torch.float64), torch.tensor(weights, dtype=torch.float64)


PLAIN_KERNELS = {
    "gaussian": lambda u: math.exp(-u * u / 2) / math.sqrt(2 * math.pi),
    "boxcar": lambda u: 0.5 if abs(u) <= 1 else 0.0,
    "epanechnikov": lambda u: 0.75 * (1 - u * u) if abs(u) <= 1 else 0.0,
}


def by_fused_attention(queries, keys, values, bandwidth, mask=None):
    """Gaussian pooling as PyTorch's own attention: -(x-k)²/2h² = (xk - k²/2)/h² + a constant of the row."""
    query = torch.stack([queries, torch.ones_like(queries)], dim=-1) / bandwidth  # (query, 2)
    key = torch.stack([keys, -keys.square() / 2], dim=-1) / bandwidth  # (key, 2)
    pooled = F.scaled_dot_product_attention(
        query[None], key[None], values[None, :, None], attn_mask=mask, scale=1.0
    )
    return pooled[0, :, 0]


# --- the kernels -----------------------------------------------------------------------------


def density(name, u):
    """scikit-learn's kernel of that name, as the density estimated from one point at 0."""
    tree = KernelDensity(kernel=name, bandwidth=1.0).fit([[0.0]])
    return torch.from_numpy(np.exp(tree.score_samples(u.double().numpy()[:, None])))


@pytest.mark.verifies(
    "course_lib.topics.pooling.gaussian_kernel",
    "course_lib.topics.pooling.boxcar_kernel",
    "course_lib.topics.pooling.epanechnikov_kernel",
    against="scikit-learn `KernelDensity`",
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_kernels_equal_those_of_density_estimation(ledger, dtype):
    named = (gaussian_kernel, "gaussian"), (boxcar_kernel, "tophat"), (epanechnikov_kernel, "epanechnikov")  # fmt: skip
    u = torch.linspace(-2.983, 2.983, 60, dtype=dtype)
    for kernel, name in named:
        ledger.compare(kernel(u), density(name, u), within=ROUNDING[dtype])
    assert boxcar_kernel(torch.tensor([-1.0, 1.0])).tolist() == [0.5, 0.5]  # with the edges


@pytest.mark.verifies(
    "course_lib.topics.pooling.KERNELS", against="SciPy `quad`: each integrates to 1"
)
def test_every_kernel_integrates_to_one(ledger):
    assert set(KERNELS) == {"gaussian", "boxcar", "epanechnikov"}
    for kernel in KERNELS.values():
        at = lambda u, kernel=kernel: kernel(torch.tensor(u, dtype=torch.float64)).item()  # noqa: E731
        area, _ = scipy.integrate.quad(at, -30, 30, points=[-1, 1], limit=200)
        ledger.compare(torch.tensor(area, dtype=torch.float64), torch.tensor(1.0), within=1e-9)


# --- attention_pooling -----------------------------------------------------------------------


@pytest.mark.verifies(
    "course_lib.topics.pooling.attention_pooling",
    against="PyTorch `F.scaled_dot_product_attention`",
)
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_gaussian_pooling_is_fused_attention(ledger, dtype, masked):
    queries, keys, values = (tensor.requires_grad_() for tensor in sample(dtype=dtype))
    bandwidth = torch.tensor(0.6, dtype=dtype, requires_grad=True)
    mask = torch.rand(7, 11) < 0.7 if masked else None
    leaves = [queries, keys, values, bandwidth]

    ours = attention_pooling(queries, keys, values, bandwidth=bandwidth, mask=mask).output
    theirs = by_fused_attention(*(copies := in_float64(*leaves)), mask)
    ledger.compare(ours, theirs, within=ROUNDING[dtype])
    mix = torch.randn(7)
    slopes = torch.autograd.grad((theirs * mix).sum(), copies)
    for mine, slope in zip(torch.autograd.grad((ours * mix).sum(), leaves), slopes, strict=True):
        ledger.compare(mine, slope, within=10 * ROUNDING[dtype], backward=True)


@pytest.mark.verifies(
    "course_lib.topics.pooling.attention_pooling", against="an explicit double loop"
)
@settings(max_examples=60)
@given(
    queries=st.integers(1, 6),
    keys=st.integers(1, 9),
    kernel=st.sampled_from(sorted(KERNELS)),
    bandwidth=st.floats(0.05, 20),
    masked=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_pooling_is_the_formula_one_pair_at_a_time(
    ledger, queries, keys, kernel, bandwidth, masked, seed
):
    tensors = sample(queries, keys, seed=seed)
    mask = torch.rand(queries, keys) < 0.6 if masked else None
    ours = attention_pooling(*tensors, kernel=kernel, bandwidth=bandwidth, mask=mask)
    output, weights = by_loops(*tensors, PLAIN_KERNELS[kernel], bandwidth, mask)
    unreached = weights.sum(-1) == 0  # plain exp underflows where the stable form does not
    if kernel == "gaussian":
        allowed = torch.ones(queries, keys, dtype=torch.bool) if mask is None else mask
        unreached &= allowed.any(-1)
        assert (ours.weights[unreached].sum(-1) - 1).abs().le(1e-12).all()
    kept = ~unreached if kernel == "gaussian" else torch.ones(queries, dtype=torch.bool)
    ledger.compare(ours.weights[kept], weights[kept], within=1e-12)
    ledger.compare(ours.output[kept], output[kept], within=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
def test_gradients_are_those_of_finite_differences(kernel):
    queries, keys, values = (tensor.requires_grad_() for tensor in sample(4, 6))
    bandwidth = torch.tensor(1.3, dtype=torch.float64, requires_grad=True)

    def pool(queries, keys, values, bandwidth):
        return tuple(attention_pooling(queries, keys, values, kernel=kernel, bandwidth=bandwidth))

    assert torch.autograd.gradcheck(pool, (queries, keys, values, bandwidth))


def test_a_query_whose_keys_are_all_masked_or_out_of_reach_has_zero_weights_and_zero_gradient():
    queries = torch.tensor([0.0, 9.0], requires_grad=True)
    keys, values = torch.tensor([0.0, 1.0]), torch.tensor([5.0, 6.0])
    no_key = torch.zeros(2, 2, dtype=torch.bool)
    for kernel, mask in (("gaussian", no_key), ("boxcar", None), ("epanechnikov", None)):
        pooled = attention_pooling(queries, keys, values, kernel=kernel, mask=mask)
        assert pooled.weights[1].tolist() == [0, 0] and pooled.output[1] == 0
        pooled.output.sum().backward() if pooled.output.requires_grad else None
        assert queries.grad is None or queries.grad.isfinite().all()


def test_a_kernel_may_be_a_function_even_one_that_returns_booleans():
    tensors, own = sample(), {"own": lambda u: torch.exp(-u.abs()), "own window": lambda u: u.abs() <= 1}  # fmt: skip
    plain = PLAIN_KERNELS | {"own": lambda u: math.exp(-abs(u)), "own window": PLAIN_KERNELS["boxcar"]}  # fmt: skip
    for name, function in (KERNELS | own).items():
        output, _ = by_loops(*tensors, plain[name], 0.5)
        ours = attention_pooling(*tensors, kernel=function, bandwidth=0.5).output
        torch.testing.assert_close(ours, output)


@pytest.mark.parametrize("dtype", HALVES)
def test_half_precision_works(dtype):
    queries, keys, values = sample(dtype=dtype)
    pooled = attention_pooling(queries, keys, values, bandwidth=0.5)
    exact = attention_pooling(queries.double(), keys.double(), values.double(), bandwidth=0.5)
    assert pooled.output.dtype == dtype
    torch.testing.assert_close(pooled.output.double(), exact.output, rtol=0, atol=0.05)


@pytest.mark.parametrize("kernel", ["gaussian", "boxcar"])
def test_compile_pooling_as_one_graph(as_one_graph, kernel):
    mask = torch.rand(7, 11) < 0.6
    options = {"kernel": kernel, "bandwidth": 0.5, "mask": mask}
    ours = as_one_graph(attention_pooling)(*sample(dtype=torch.float32), **options)
    torch.testing.assert_close(ours, attention_pooling(*sample(dtype=torch.float32), **options))


# --- learning the bandwidth ------------------------------------------------------------------


@pytest.mark.verifies(
    "course_lib.topics.pooling.NadarayaWatson", against="PyTorch `F.scaled_dot_product_attention`"
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_learned_layer_is_fused_attention_with_a_learned_scale(ledger, dtype):
    queries, keys, values = sample(dtype=dtype)
    layer = NadarayaWatson(0.6).to(dtype)
    others = torch.rand(7, 11) < 0.7
    ours = layer(queries, keys, values, others).output
    log_bandwidth = layer.log_bandwidth.detach().double().requires_grad_()
    theirs = by_fused_attention(
        queries.double(), keys.double(), values.double(), log_bandwidth.exp(), others
    )
    ledger.compare(ours, theirs, within=ROUNDING[dtype])
    (mine,) = torch.autograd.grad(ours.square().sum(), layer.log_bandwidth)
    (oracle,) = torch.autograd.grad(theirs.square().sum(), log_bandwidth)
    ledger.compare(mine, oracle, within=30 * ROUNDING[dtype], backward=True)


@pytest.mark.verifies(
    "course_lib.topics.pooling.attention_pooling", against="statsmodels `KernelReg`"
)
@pytest.mark.parametrize("bandwidth", [0.3, 2.0])
def test_pooling_is_the_local_constant_regression_of_statsmodels(ledger, bandwidth):
    queries, keys, values = sample(keys=25)
    oracle = KernelReg(values.numpy(), keys.numpy(), "c", reg_type="lc", bw=[bandwidth], rng=0)
    ours = attention_pooling(queries, keys, values, bandwidth=bandwidth).output
    ledger.compare(ours, oracle.fit(queries.numpy())[0], within=1e-12)


@pytest.mark.verifies(
    "course_lib.topics.pooling.leave_one_out_error",
    against="statsmodels `KernelReg`, refitted n times",
)
@pytest.mark.parametrize("bandwidth", [0.2, 3.0])
def test_leave_one_out_is_refitting_without_each_point(ledger, bandwidth):
    _, keys, values = sample(keys=25)
    squares = []
    for i in range(25):
        rest = np.arange(25) != i
        oracle = KernelReg(
            values.numpy()[rest], keys.numpy()[rest], "c", reg_type="lc", bw=[bandwidth], rng=0
        )
        squares.append((values[i].item() - oracle.fit(keys.numpy()[i : i + 1])[0][0]) ** 2)
    ours = leave_one_out_error(keys, values, bandwidth=bandwidth)
    ledger.compare(ours, torch.tensor(np.mean(squares)), within=1e-12)


# --- bad input -------------------------------------------------------------------------------

X, Y = torch.tensor([0.0, 1.0, 2.0]), torch.tensor([1.0, 2.0, 3.0])


@pytest.mark.usefixtures("without_annotations")
@pytest.mark.parametrize(
    ("arguments", "settings", "says"),
    [
        ((X, X, Y), {"bandwidth": -0.5}, r"bandwidth=-0.5 is not a finite number above 0"),
        ((X, X, Y), {"bandwidth": 1e-46}, r"bandwidth=0 is not"),  # it is 0 in float32
        ((X, torch.tensor([0.0, math.nan, 2.0]), Y), {}, r"keys holds nan at index 1"),
        (
            (X[:, None], X, Y),
            {},
            r"queries has shape \(3, 1\) and keys has shape \(3,\); they must",
        ),
        ((X, X, Y), {"kernel": torch.sin}, "kernel returned a negative number"),
        ((X, X, Y), {"kernel": lambda u: 1 / u.abs()}, "kernel returned .* infinity"),
    ],
)
def test_what_would_give_wrong_numbers_is_refused(arguments, settings, says):
    with pytest.raises(ValueError, match=says):
        attention_pooling(*arguments, **settings)


def test_leaving_one_out_needs_two_keys():
    with pytest.raises(ValueError, match="keys has length 1; leaving one out needs at least 2"):
        leave_one_out_error(X[:1], Y[:1])


@pytest.mark.usefixtures("without_annotations")
def test_the_bandwidth_may_have_another_dtype():
    for bandwidth in (np.float32(0.5), torch.tensor([[0.5]], dtype=torch.float64)):
        assert attention_pooling(X, X, Y, bandwidth=bandwidth).output.dtype == torch.float32


@pytest.mark.parametrize(
    ("dtype", "bandwidth"),
    [(torch.float16, 1e-7), (torch.float32, 1e-7), (torch.float32, 1e-30), (torch.float64, 1e-30)],
)
def test_a_tiny_bandwidth_chooses_the_nearest_key(dtype, bandwidth):
    keys = torch.tensor([0.0, 3.0, 50000.0], dtype=dtype)
    queries = torch.tensor([1.0, 49000.0, -1.0], dtype=dtype)
    h = torch.tensor(bandwidth, dtype=dtype, requires_grad=True)
    output, weights = attention_pooling(queries, keys, keys + 1, bandwidth=h)
    assert torch.equal(weights, torch.eye(3, dtype=dtype)[[0, 2, 0]])
    output.sum().backward()
    assert h.grad == 0


def test_large_numbers_do_not_cancel():
    keys, far = torch.arange(0.0, 11.0), torch.tensor([1e6])
    ours = attention_pooling(far, keys, keys, bandwidth=1e3).weights
    exact = attention_pooling(far.double(), keys.double(), keys.double(), bandwidth=1e3).weights
    torch.testing.assert_close(ours.double(), exact, rtol=0, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, *HALVES])
def test_the_gradient_of_the_bandwidth_is_finite_for_far_queries(dtype):
    layer = NadarayaWatson(0.3).to(dtype)
    tensors = (torch.tensor(t, dtype=dtype) for t in ([10.0], [0.0, 80.0], [1.0, 2.0]))
    layer(*tensors).output.sum().backward()
    assert layer.log_bandwidth.grad.isfinite()


def test_the_gradient_of_a_small_bandwidth_is_finite_where_the_nearest_key_is_masked():
    keys, bandwidth = torch.tensor([0.0, 100.0, 230.0]), torch.tensor(0.5, requires_grad=True)
    error = leave_one_out_error(keys, keys, bandwidth=bandwidth)
    error.backward()
    assert error.item() == pytest.approx((100**2 + 100**2 + 130**2) / 3)
    assert bandwidth.grad.isfinite()
