"""What all positional encodings have in common, and how one is chosen by name."""

import pytest
import torch
from torch import nn

from course_lib.masks import causal_mask
from course_lib.multihead import MultiHeadAttention
from course_lib.positions import (
    ENCODINGS,
    AlibiBias,
    AttentionPositions,
    Positions,
    RotaryPositions,
    ShawRelativePositions,
    SinusoidalPositions,
    T5RelativeBias,
    alibi_slopes,
    make_positions,
    relative_positions,
    rotary,
    sinusoidal_table,
    t5_bucket,
)
from course_lib.transformer import DecoderOnly, TransformerConfig
from tests.helpers.encodings import IN_EMBEDDING, ROWS, WITH_BIAS
from tests.helpers.ids import encoding_id
from tests.helpers.positions import (
    BATCH,
    D_HEAD,
    D_MODEL,
    HEADS,
    LENGTH,
    biases,
    by_complex_numbers,
    by_formula,
    heads,
    learned,
)


@pytest.mark.verifies("course_lib.positions.relative_positions", against="an explicit double loop")
@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (1, 4), (4, 4), (3, 5)])
def test_relative_positions_equal_a_double_loop(ledger, queries, keys):
    first = keys - queries
    theirs = [[j - (first + i) for j in range(keys)] for i in range(queries)]
    ours = relative_positions(queries, keys)
    assert ours.dtype == torch.int64
    ledger.compare(ours, torch.tensor(theirs), within=0)
    assert torch.equal(ours <= 0, causal_mask(queries, keys))
    assert relative_positions(queries, keys, "meta").device.type == "meta"


@pytest.mark.parametrize("name", [name for name in ROWS if name in WITH_BIAS], ids=encoding_id)
def test_bias_is_on_the_device_of_the_queries(name):
    positions = make_positions(name, D_MODEL, HEADS, max_length=1).attention.to("meta")
    bias = positions.bias(torch.zeros(BATCH, HEADS, 3, D_HEAD, device="meta"), LENGTH)
    assert bias.device.type == "meta" and bias.shape[-3:] == (HEADS, 3, LENGTH)


@pytest.mark.verifies("course_lib.positions.AttentionPositions", against="changing nothing")
def test_attention_positions_change_nothing(ledger):
    base, q, k, v = AttentionPositions(), *(heads(HEADS, LENGTH, D_HEAD) for _ in range(3))
    turned = base.rotate(q, k)
    assert turned[0] is q and turned[1] is k
    assert base.rotate(q, k, 3)[1] is k
    assert base.bias(q, LENGTH) is None
    theirs = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    torch.testing.assert_close(base.attend(q, k, v).output, theirs)
    assert base.shift_invariant and not base.layer_sizes
    assert not base.state_dict()
    ledger.holds()


@pytest.mark.usefixtures("without_annotations")
@pytest.mark.verifies(
    "course_lib.positions.AttentionPositions", against="a list of what is and is not"
)
def test_only_attention_positions_are_accepted(ledger):
    for positions in (None, AttentionPositions(), RotaryPositions(2), ShawRelativePositions(2)):
        MultiHeadAttention(4, 2, positions=positions)
        ledger.holds()
    for other in (SinusoidalPositions(2), nn.Identity(), "rotary", RotaryPositions, False, 0):
        said = rf"positions is a {type(other).__name__}; it must be an AttentionPositions"
        with pytest.raises(ValueError, match=said):
            MultiHeadAttention(4, 2, positions=other)
        ledger.holds()


@pytest.mark.verifies("course_lib.positions.ENCODINGS", against="a list of names")
def test_every_encoding_has_a_row_in_the_tests(ledger):
    assert ENCODINGS == tuple(ROWS)
    ledger.holds()


@pytest.mark.verifies("course_lib.positions.make_positions", against="each encoding made by hand")
@pytest.mark.verifies("course_lib.positions.Positions", against="each encoding made by hand")
@pytest.mark.parametrize("name", ENCODINGS, ids=encoding_id)
def test_make_positions_makes_each_encoding(ledger, name):
    made = make_positions(name, D_MODEL, HEADS, max_length=11)
    assert isinstance(made, Positions) and made._fields == ("embedding", "attention")
    assert {type(made.embedding), type(made.attention)} == {ROWS[name].kind, type(None)}
    assert (made.embedding is not None) == (name in IN_EMBEDDING)
    if made.attention is not None:
        layer = MultiHeadAttention(D_MODEL, HEADS, positions=made.attention)
        assert layer(torch.randn(BATCH, LENGTH, D_MODEL)).output.shape == (BATCH, LENGTH, D_MODEL)
    if made.embedding is not None:
        x = torch.randn(BATCH, 11, D_MODEL)
        assert made.embedding(x).shape == x.shape
    ledger.holds()


def test_make_positions_passes_on_the_sizes():
    def make(name, **settings):
        made = make_positions(name, D_MODEL, HEADS, max_length=11, **settings)
        return made.embedding if made.attention is None else made.attention

    assert learned(make("learned")) == {"table": (11, D_MODEL)}
    assert learned(make("t5")) == {"table": (32, HEADS)}
    assert learned(make("shaw")) == {"key": (33, D_HEAD), "value": (33, D_HEAD)}
    relative = relative_positions(LENGTH, LENGTH)
    for said in ({}, {"bidirectional": True}, {"bidirectional": False}):
        t5 = make("t5", **said)
        theirs = t5.table[t5_bucket(relative, **said)].permute(2, 0, 1)
        assert torch.equal(t5(LENGTH, LENGTH), theirs)
    x = torch.zeros(1, LENGTH, D_MODEL)
    torch.testing.assert_close(make("sinusoidal")(x)[0], sinusoidal_table(LENGTH, D_MODEL))
    assert torch.equal(make("alibi").slopes, alibi_slopes(HEADS))
    x = torch.randn(1, 1, LENGTH, D_HEAD)
    torch.testing.assert_close(make("rotary").rotate(x, x)[0], rotary(x, torch.arange(LENGTH)))


def attend_with(positions):
    return MultiHeadAttention(D_MODEL, HEADS, positions=positions)(torch.zeros(1, 4, D_MODEL))


@pytest.mark.usefixtures("without_annotations")
@pytest.mark.parametrize(
    "positions",
    [
        RotaryPositions(2),  # without a word: all pairs get the one frequency
        RotaryPositions(4),
        RotaryPositions(16),
        ShawRelativePositions(4),
        AlibiBias(1),  # without a word: all heads get the one slope
        T5RelativeBias(1),
    ],
    ids=lambda positions: type(positions).__name__,
)
def test_encoding_of_another_size_raises_value_error(positions):
    with pytest.raises(ValueError, match=r"d_head|num_heads|heads"):
        attend_with(positions)


@pytest.mark.usefixtures("without_annotations")
@pytest.mark.parametrize("name", ENCODINGS, ids=encoding_id)
def test_encoding_for_another_number_of_heads_raises_value_error(name):
    positions = make_positions(name, 2 * 5, 5, max_length=LENGTH).attention
    if positions is not None:
        with pytest.raises(ValueError, match=r"d_head|num_heads"):
            attend_with(positions)


@pytest.mark.parametrize(
    ("name", "coarse", "fine"),
    [
        ("sinusoidal", torch.bfloat16, torch.float32),
        ("sinusoidal", torch.float32, torch.float64),
        ("rotary", torch.bfloat16, torch.float32),
        ("rotary", torch.float32, torch.float64),
        ("alibi", torch.bfloat16, torch.float32),
    ],
    ids=encoding_id,
)
def test_encoding_cast_to_a_coarser_dtype_and_back_is_exact(name, coarse, fine):
    count, length = 12, 40
    x = torch.randn(1, count, length, D_HEAD, dtype=torch.float64)
    positions = {
        "sinusoidal": lambda: SinusoidalPositions(D_HEAD),
        "rotary": lambda: RotaryPositions(D_HEAD),
        "alibi": lambda: AlibiBias(count),
    }[name]()
    call, theirs = {
        "sinusoidal": (lambda x: positions(x[0]), x[0] + by_formula(range(length), D_HEAD)),
        "rotary": (lambda x: positions.rotate(x, x)[1], by_complex_numbers(x, range(length))),
        "alibi": (lambda x: positions.bias(x, length), biases(count, length, length)),
    }[name]
    positions.to(coarse)
    call(x.to(coarse))
    positions.to(fine)
    near = {torch.float32: 2e-6, torch.float64: 1e-10}[fine]
    assert (call(x.to(fine)).double() - theirs).abs().max() < near


# --- the contract: shift invariance ----------------------------------------------------------


@pytest.mark.verifies(
    "course_lib.positions.EmbeddingPositions", against="logits of a left-padded sequence"
)
@pytest.mark.verifies(
    "course_lib.positions.AttentionPositions", against="logits of a left-padded sequence"
)
@pytest.mark.parametrize("name", ENCODINGS, ids=encoding_id)
def test_shift_invariant_says_whether_left_padding_changes_the_logits(ledger, name):
    config = TransformerConfig(
        target_vocabulary=9, d_model=D_MODEL, num_heads=HEADS, decoder_layers=2, d_ff=7,
        dropout=0.0, norm="pre", positions=name, max_length=20,
    )  # fmt: skip
    model = DecoderOnly(config).double().eval()
    for parameter in model.parameters():  # large enough that positions matter
        parameter.data = 0.3 * torch.randn_like(parameter)
    tokens = torch.randint(1, 9, (2, 6))
    padded = torch.cat([torch.full((2, 4), config.pad_id), tokens], dim=1)
    change = (model(padded)[:, 4:] - model(tokens)).abs().max().item()
    parts = [part for part in model.modules() if hasattr(part, "shift_invariant")]
    assert (change < 1e-10) == all(part.shift_invariant for part in parts), change
    ledger.holds()
