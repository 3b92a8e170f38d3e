"""Whatever is passed to a public callable: a clear `ValueError`, or a result without NaN and infinity."""

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from course_lib import attention, data, decoding, masks, pooling, positions, training
from course_lib.bleu import bleu
from course_lib.multihead import MultiHeadAttention
from course_lib.recurrent import BahdanauDecoder, FixedContextDecoder, LuongDecoder
from course_lib.transformer import DecoderOnly, Transformer
from tests.helpers.callables import CALLS, model, seq2seq, tokens, x

pytestmark = pytest.mark.usefixtures("without_annotations")

INF, NAN = float("inf"), float("nan")

# What stands in place of an argument. The first ones do not depend on it, the others change a tensor.
VALUES = [
    None, "x", b"x", [], {}, object(), True, -1, 0, 1, 2**63, 2**70, 1.5, NAN, INF, -INF, 1e-320, 1e300, 3 + 2j,
    np.int64(2), np.float64(0.5), np.zeros(3), torch.tensor(1.0), torch.zeros(0), torch.tensor([NAN]),
    torch.ones(2, 3), torch.ones(2, 4, 6, dtype=torch.int64), torch.ones(2, 3, 4, dtype=torch.bool),
]  # fmt: skip
CHANGES = {
    "double": Tensor.double,
    "half": Tensor.half,
    "int64": Tensor.long,
    "int32": Tensor.int,
    "uint8": lambda t: t.to(torch.uint8),
    "bool": Tensor.bool,
    "complex": lambda t: t.to(torch.complex64),
    "sparse": lambda t: t.to_sparse() if t.dim() else t,
    "no components": lambda t: t[..., :0],
    "one axis more": lambda t: t[None],
    "an axis less": lambda t: t[0] if t.dim() else t,
    "zeros": torch.zeros_like,
    "negative": lambda t: t.logical_not() if t.dtype == torch.bool else -t,
    "large": lambda t: t + 2**40 if t.dtype == torch.int64 else t,
    "NaN": lambda t: torch.full_like(t, NAN) if t.is_floating_point() else t,
    "infinity": lambda t: torch.full_like(t, INF) if t.is_floating_point() else t,
    "minus infinity": lambda t: torch.full_like(t, -INF) if t.is_floating_point() else t,
}
#: Minus infinity is what these give where a mask or a filter excludes something.
MINUS_INFINITY = {"to_additive", "top_k", "top_p"}


def holds(value, predicate):
    """Whether a result holds an element for which the predicate is true."""
    if isinstance(value, Tensor):
        return value.is_floating_point() and predicate(value).any().item()
    if isinstance(value, (tuple, list)):
        return any(holds(one, predicate) for one in value)
    return isinstance(value, float) and predicate(torch.tensor(value)).item()


def not_finite(name):
    """What a result must not hold."""
    return torch.isnan if name in MINUS_INFINITY else lambda t: ~t.isfinite()


def test_every_call_of_the_table_is_valid():
    for name, made in CALLS.items():
        call = made()
        assert not holds(call.function(**call.arguments), not_finite(name)), name


def replaced(value, replacement):
    """What stands in place of an argument."""
    if isinstance(replacement, str) and replacement in CHANGES:
        return CHANGES[replacement](value) if isinstance(value, Tensor) else value
    return replacement


def hold_to_the_promise(name, replacements):
    """Call with some arguments replaced: a `ValueError` with a text, or a finite result."""
    call, given = CALLS[name](), []
    for argument, replacement in replacements.items():
        given.append(replaced(call.arguments[argument], replacement))
        call.arguments[argument] = given[-1]
    try:
        result = call.function(**call.arguments)
    except ValueError as error:
        assert len(str(error)) > 10, f"{name}: {error}"
    except FloatingPointError:
        assert name in ("fit", "train_step")
    except Exception as error:
        raise AssertionError(f"{name} with {replacements}: {error!r}") from error
    else:
        unusual = any(holds(value, lambda t: ~t.isfinite()) for value in given)
        assert unusual or not holds(result, not_finite(name)), f"{name} with {replacements}"


@pytest.mark.parametrize("name", CALLS)
def test_one_wrong_argument_is_refused_or_the_result_is_finite(name):
    for argument, value in CALLS[name]().arguments.items():
        if (name, argument) == ("fit", "batches"):
            continue  # what the caller's loss says of a batch is the caller's
        for replacement in [*VALUES, *(CHANGES if isinstance(value, Tensor) else ())]:
            hold_to_the_promise(name, {argument: replacement})


REPLACEMENTS = st.one_of(st.sampled_from(VALUES), st.sampled_from(sorted(CHANGES)))


@settings(
    max_examples=1000,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(st.sampled_from(sorted(CALLS)), st.data())
def test_several_wrong_arguments_are_refused_or_the_result_is_finite(name, drawn):
    arguments = [one for one in CALLS[name]().arguments if (name, one) != ("fit", "batches")]
    chosen = drawn.draw(st.lists(st.sampled_from(arguments), min_size=2, max_size=3))
    hold_to_the_promise(name, {argument: drawn.draw(REPLACEMENTS) for argument in chosen})


WHOLE = [
    (name, argument)
    for name, made in CALLS.items()
    for argument, value in made().arguments.items()
    if isinstance(value, int) and not isinstance(value, bool)
]


@pytest.mark.parametrize(("name", "argument"), WHOLE)
def test_whole_numbers_may_be_numpys(name, argument):
    call = CALLS[name]()
    call.arguments[argument] = np.int64(call.arguments[argument])
    call.function(**call.arguments)


# --- one test per class of mistake -----------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("bandwidth", [1e-7, 1e-30, 1.0])
def test_a_tiny_bandwidth_chooses_the_nearest_key(dtype, bandwidth):
    if bandwidth == 1e-30 and dtype == torch.float16:
        return  # it is 0 there, and refused
    keys = torch.tensor([0.0, 3.0, 50000.0], dtype=dtype)
    queries = torch.tensor([1.0, 49000.0, -1.0], dtype=dtype)
    h = torch.tensor(bandwidth, dtype=dtype, requires_grad=True)
    output, weights = pooling.attention_pooling(queries, keys, keys + 1, bandwidth=h)
    assert output.isfinite().all() and torch.equal(weights.argmax(-1), torch.tensor([0, 2, 0]))
    output.sum().backward()
    assert h.grad.isfinite()
    if bandwidth < 1:
        assert torch.equal(weights, torch.eye(3, dtype=dtype)[[0, 2, 0]]) and h.grad == 0


def test_distances_that_overflow_give_no_nan():
    keys = torch.tensor([-3e38, 3e38])
    output, weights = pooling.attention_pooling(
        torch.tensor([0.0, 3e38]), keys, keys.sign(), bandwidth=1e-3
    )
    assert output.isfinite().all() and weights[1].tolist() == [0, 1]


@pytest.mark.parametrize("masked", [False, True])
def test_a_row_of_minus_infinity_counts_as_fully_masked(masked):
    scores = torch.tensor([[-INF, -INF], [0.0, -INF]], requires_grad=True)
    mask = torch.tensor([[True, False], [True, True]]) if masked else None
    weights = masks.masked_softmax(scores, mask)
    assert weights.tolist() == [[0, 0], [1, 0]]
    weights.sum().backward()
    assert scores.grad.tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize("need_weights", [True, False])
def test_a_bias_of_minus_infinity_gives_the_zero_vector(need_weights):
    q = x(2, 3, 4)
    bias = torch.zeros(3, 3)
    bias[1] = -INF
    output = attention.scaled_dot_product_attention(
        q, q, q, bias=bias, need_weights=need_weights
    ).output
    assert (output[:, 1] == 0).all() and output.isfinite().all()


def test_what_a_nan_in_a_masked_key_or_value_does():
    q, mask = x(1, 2, 4), torch.tensor([[True, False], [True, True]])
    key = torch.cat([q[:, :1], torch.full_like(q[:, 1:], NAN)], dim=1)
    _, weights = attention.scaled_dot_product_attention(q, key, q, mask)
    assert weights[0, 0].tolist() == [1, 0] and weights[0, 1].isnan().all()
    output, weights = attention.scaled_dot_product_attention(q, q, key, mask)
    assert weights.isfinite().all() and output.isnan().all()


def test_logits_that_are_nan_are_refused_by_every_decoding():
    broken = model()
    with torch.no_grad():
        broken.lm_head.weight.fill_(NAN)
    for decode in (decoding.greedy, decoding.sample, decoding.beam_search):
        with pytest.raises(ValueError, match="logits holds NaN"):
            decode(broken, tokens(9, 2, 5))


def test_nothing_is_truncated_to_whole_numbers():
    with pytest.raises(ValueError, match="dtype=torch.int64 must be a floating-point dtype"):
        positions.sinusoidal_table(3, 4, dtype=torch.int64)
    with pytest.raises(ValueError, match="pad_id=300 does not fit into sequences.0., of uint8"):
        data.pad([torch.tensor([1, 2], dtype=torch.uint8)], pad_id=300)
    far = torch.tensor([-(2**63), -(2**40), 2**63 - 1])
    assert positions.t5_bucket(far).tolist() == [15, 15, 31]


def test_weights_in_float16_are_refused():
    layer = nn.Linear(2, 1).half()
    with pytest.raises(ValueError, match="weight in float16"):
        training.fit(layer, [x(2, 2)], lambda m, b: m(b).sum(), steps=1)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_losses_are_computed_in_float32(smoothing):
    logits, target = 3 * x(2, 4, 9), tokens(9, 2, 5)
    loss = training.next_token_loss(logits.bfloat16(), target, smoothing=smoothing)
    exact = training.next_token_loss(logits.bfloat16().double(), target, smoothing=smoothing)
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss.double(), exact, rtol=1e-6, atol=0)


@pytest.mark.parametrize("decoder", [FixedContextDecoder, BahdanauDecoder, LuongDecoder])
def test_recurrent_models_run_under_autocast(decoder):
    translator, source, target = seq2seq(decoder), tokens(11, 2, 5), tokens(9, 2, 4)
    exact = translator(source, target).logits
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = translator(source, target).logits
        assert translator.generate(source, max_length=3).tokens.shape[1] <= 3
    assert logits.dtype == torch.bfloat16
    torch.testing.assert_close(logits.float(), exact, rtol=0, atol=0.05)


@pytest.mark.parametrize("made", [Transformer, DecoderOnly])
def test_a_decode_step_that_raises_leaves_the_cache_as_it_was(made):
    generator, source = model(made), tokens(9, 2, 5)
    _, state = generator.prefill(source, bos_id=1)
    _, expected_state = generator.prefill(source, bos_id=1)
    last = generator.decoder[-1] if made is Transformer else generator.blocks[-1]
    handle = last.register_forward_pre_hook(lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        generator.decode_step(torch.tensor([3, 4]), state)
    handle.remove()
    assert state.cache.length == expected_state.cache.length
    for token in (torch.tensor([3, 4]), torch.tensor([5, 6])):
        expected = generator.decode_step(token, expected_state)
        assert torch.equal(generator.decode_step(token, state), expected)


def test_numbers_that_would_take_forever_are_refused():
    with pytest.raises(ValueError, match="not divisible by num_heads=2; try num_heads=1 or 101"):
        MultiHeadAttention(10**10 + 1, 2)
    with pytest.raises(ValueError, match="num_heads=562949953421311 is above 65536"):
        positions.alibi_slopes(2**49 - 1)
    with pytest.raises(ValueError, match="max_n=1000000 is above 100"):
        bleu([["a"]], [[["a"]]], max_n=10**6)


@pytest.mark.parametrize("made", [Transformer, DecoderOnly])
def test_models_run_on_the_meta_device(made):
    sources = () if made is DecoderOnly else (tokens(9, 2, 5).to("meta"),)
    logits = model(made).to("meta")(*sources, tokens(9, 2, 4).to("meta"))
    assert logits.is_meta and logits.shape == (2, 4, 9)
    assert masks.causal_mask(3, device="meta").is_meta
    assert positions.relative_positions(3, 4, "meta").is_meta
