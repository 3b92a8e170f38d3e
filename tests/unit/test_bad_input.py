"""Bad input of every public callable: an exception, or a result that is finite and is what the input means."""

import jaxtyping
import numpy as np
import pytest
import torch
from torch import Tensor, nn

from course_lib import decoding, masks, positions, training
from course_lib.attention import scaled_dot_product_attention
from course_lib.recurrent import BahdanauDecoder, FixedContextDecoder, LuongDecoder
from course_lib.transformer import DecoderOnly, Transformer
from tests.helpers.callables import CALLS, forms, leaves, model, seq2seq, tokens, x

pytestmark = [pytest.mark.usefixtures("without_annotations"), pytest.mark.filterwarnings("ignore")]

INF, NAN = float("inf"), float("nan")

#: What stands in place of any argument, and what is made of a tensor.
ODD = [
    None, "x", [], True, -1, 0, 100, 1.5, NAN, np.zeros(3), torch.tensor(1.0), torch.zeros(0), torch.tensor([NAN]),
    torch.ones(2, 3), torch.ones(2, 4, 6, dtype=torch.int64), torch.ones(2, 3, 4, dtype=torch.bool),
]  # fmt: skip
CHANGES = [Tensor.half, torch.zeros_like, lambda t: t[..., :0], lambda t: -t if t.dtype != torch.bool else ~t,
           lambda t: t + 1000, lambda t: 1e4 * t, lambda t: t / 0]  # fmt: skip
#: What may give NaN or infinity for finite input, and why.
NOT_FINITE = {
    "entropy": "minus infinity, of weights below 0",
    "performer_features": "exponentials, of vectors 10 000 times as long as those of N(0, I)",
    **dict.fromkeys(["to_additive", "top_k", "top_p"], "minus infinity excludes keys or tokens"),
    **dict.fromkeys(["PowerLaw.predict", "LossSurface.predict", "LossSurface.optimal"], "powers of 0 and less"),
}  # fmt: skip
#: What may differ for arguments that mean the same, or come of some that mean nothing, and why.
NOT_COMPARED = {
    ("fit", "*"): "it says how many seconds it took",
    ("longformer_attention", "global_query"): "only its rows at the global positions are used",
    ("KeyValueCache.update", "*"): "it keeps what it is given; attention compares the shapes",
    ("padding_mask_from_tokens", "tokens"): "attention refuses a mask with an axis more",
    ("text_windows", "text"): "models refuse tokens with an axis more",
}
#: Forms in which all arguments of a call may be at once.
TOGETHER = ("NumPy", "float64", "int32", "strided", "an axis more", "an axis less")
#: Forms that make another call, and a valid one, where the shapes in the signature allow it.
RESHAPED = {"an axis at the end", "one row", "one component", "fewer rows", "fewer components", "transposed"}  # fmt: skip


def outcome(name, replaced, *, in_float64=False, annotations=False):
    """All that the result of a call holds; None where it raises, which must be an `Exception`."""
    function, arguments = CALLS[name]()
    if in_float64 and isinstance(function, nn.Module):
        function.double()
    torch.manual_seed(1)
    jaxtyping.config.update("jaxtyping_disable", not annotations)
    try:
        return leaves(function(**arguments | replaced))
    except Exception:
        return None


def finite(result):
    """Whether no tensor and no float of a result is NaN or infinite."""
    numbers = [torch.as_tensor(one) for one in leaves(result) if isinstance(one, (Tensor, float))]
    return all(one.isfinite().all() for one in numbers)


def equal(a, b):
    """Whether two results are equal within rounding, with or without axes of length 1 before the others."""
    if isinstance(a, list):
        return len(a) == len(b) and all(map(equal, a, b))
    if not all(isinstance(one, (Tensor, int, float)) for one in (a, b)):
        return a == b
    a, b = (torch.as_tensor(one).double() for one in (a, b))
    a, b = (one[(None,) * (9 - one.dim())] for one in (a, b))
    return a.shape == b.shape and torch.allclose(a, b, rtol=1e-5, atol=1e-5, equal_nan=True)


def hold_to_finite_results(name, replaced):
    result = outcome(name, replaced)
    allowed = result is None or name in NOT_FINITE or not finite(replaced)
    assert allowed or finite(result), f"{name} with {replaced}"


def hold_to_the_meaning(name, form, pairs, **options):
    """The call raises, gives what it gives for what the arguments mean, or is another valid call."""
    replaced = {argument: given for argument, (given, _) in pairs.items()}
    meant = {argument: meaning for argument, (_, meaning) in pairs.items()}
    found = outcome(name, replaced, **options)
    expected = None if any(one is None for one in meant.values()) else outcome(name, meant)
    if found is None or expected is not None and equal(found, expected):
        return
    valid = form in RESHAPED and outcome(name, replaced, annotations=True) is not None
    assert valid, f"{name}, {form}: {list(replaced)} give {found}"


def odd(value):
    return [*ODD, *(change(value) for change in CHANGES if isinstance(value, Tensor))]


@pytest.mark.parametrize("name", CALLS)
def test_an_odd_argument_raises_or_gives_what_it_means(name):
    assert outcome(name, {}) is not None
    compared = {}
    for argument, value in CALLS[name]().arguments.items():
        for one in odd(value):
            hold_to_finite_results(name, {argument: one})
        if not {(name, argument), (name, "*")} & NOT_COMPARED.keys():
            compared[argument] = forms(value)
            for form, pair in compared[argument].items():
                hold_to_the_meaning(name, form, {argument: pair})
    for form in TOGETHER:
        pairs = {argument: given[form] for argument, given in compared.items() if form in given}
        if pairs:
            hold_to_the_meaning(name, form, pairs, in_float64=form == "float64")


# --- one test per class of mistake -----------------------------------------------------------


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
    q, bias = x(2, 3, 4), torch.tensor([[0.0], [-INF], [0.0]]).expand(3, 3)
    attended = scaled_dot_product_attention(q, q, q, bias=bias, need_weights=need_weights)
    assert (attended.output[:, 1] == 0).all() and attended.output.isfinite().all()


def test_what_a_nan_in_a_masked_key_or_value_does():
    q, mask = x(1, 2, 4), torch.tensor([[True, False], [True, True]])
    key = torch.cat([q[:, :1], torch.full_like(q[:, 1:], NAN)], dim=1)
    _, weights = scaled_dot_product_attention(q, key, q, mask)
    assert weights[0, 0].tolist() == [1, 0] and weights[0, 1].isnan().all()
    output, weights = scaled_dot_product_attention(q, q, key, mask)
    assert weights.isfinite().all() and output.isnan().all()


def test_logits_that_are_nan_are_refused_by_every_decoding():
    broken = model()
    with torch.no_grad():
        broken.lm_head.weight.fill_(NAN)
    for decode in (decoding.greedy, decoding.sample, decoding.beam_search):
        with pytest.raises(ValueError, match="logits holds NaN"):
            decode(broken, tokens(9, 2, 5))


def test_t5_buckets_of_the_farthest_whole_numbers():
    far = torch.tensor([-(2**63), -(2**40), 2**63 - 1])
    assert positions.t5_bucket(far).tolist() == [15, 15, 31]


def test_losses_are_computed_in_float32():
    logits, target = 3 * x(2, 4, 9).bfloat16(), tokens(9, 2, 5)
    loss, exact = (training.next_token_loss(z, target) for z in (logits, logits.double()))
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss.double(), exact, rtol=1e-6, atol=0)


@pytest.mark.parametrize("decoder", [FixedContextDecoder, BahdanauDecoder, LuongDecoder])
def test_recurrent_models_run_under_autocast(decoder):
    translator, source, target = seq2seq(decoder), tokens(11, 2, 5), tokens(9, 2, 4)
    exact = translator(source, target).logits
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = translator(source, target).logits
        assert translator.generate(source, max_length=3).tokens.shape[1] <= 3
    torch.testing.assert_close(logits.float(), exact, rtol=0, atol=0.05)


@pytest.mark.parametrize("made", [Transformer, DecoderOnly])
def test_models_run_on_the_meta_device(made):
    sources = () if made is DecoderOnly else (tokens(9, 2, 5).to("meta"),)
    logits = model(made).to("meta")(*sources, tokens(9, 2, 4).to("meta"))
    assert logits.is_meta and logits.shape == (2, 4, 9)
    assert masks.causal_mask(3, device="meta").is_meta
    assert positions.relative_positions(3, 4, "meta").is_meta
