"""What all positional encodings have in common, and how one is chosen by name."""

import pytest
import torch

from course_lib.transformer import DecoderOnly, TransformerConfig
from course_lib.transformer.masks import causal_mask
from course_lib.transformer.multihead import MultiHeadAttention
from course_lib.transformer.positions import (
    ENCODINGS,
    AttentionPositions,
    Positions,
    make_positions,
    relative_positions,
    rotary,
    t5_bucket,
)
from tests.helpers.encodings import IN_EMBEDDING, ROWS, WITH_BIAS
from tests.helpers.ids import encoding_id
from tests.helpers.positions import (
    BATCH,
    D_HEAD,
    D_MODEL,
    HEADS,
    LENGTH,
    heads,
)


@pytest.mark.verifies(
    "course_lib.transformer.positions.relative_positions", against="an explicit double loop"
)
@pytest.mark.parametrize(("queries", "keys"), [(4, 4), (3, 5)])
def test_relative_positions_equal_a_double_loop(ledger, queries, keys):
    first = keys - queries
    theirs = [[j - (first + i) for j in range(keys)] for i in range(queries)]
    ours = relative_positions(queries, keys)
    assert ours.dtype == torch.int64
    ledger.compare(ours, torch.tensor(theirs), within=0)
    assert torch.equal(ours <= 0, causal_mask(queries, keys))


@pytest.mark.parametrize("name", [name for name in ROWS if name in WITH_BIAS], ids=encoding_id)
def test_bias_is_on_the_device_of_the_queries(name):
    positions = make_positions(name, D_MODEL, HEADS, max_length=1).attention.to("meta")
    bias = positions.bias(torch.zeros(BATCH, HEADS, 3, D_HEAD, device="meta"), LENGTH)
    assert bias.device.type == "meta" and bias.shape[-3:] == (HEADS, 3, LENGTH)


@pytest.mark.verifies(
    "course_lib.transformer.positions.AttentionPositions", against="changing nothing"
)
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


@pytest.mark.verifies("course_lib.transformer.positions.ENCODINGS", against="a list of names")
def test_every_encoding_has_a_row_in_the_tests(ledger):
    assert ENCODINGS == tuple(ROWS)
    ledger.holds()


@pytest.mark.verifies(
    "course_lib.transformer.positions.make_positions",
    "course_lib.transformer.positions.Positions",
    against="each encoding made by hand",
)
@pytest.mark.parametrize("name", ENCODINGS, ids=encoding_id)
def test_make_positions_makes_each_encoding(ledger, name):
    made = make_positions(name, D_MODEL, HEADS, max_length=11)
    assert isinstance(made, Positions)
    assert {type(made.embedding), type(made.attention)} == {ROWS[name].kind, type(None)}
    x = torch.randn(BATCH, LENGTH, D_MODEL)
    x = made.embedding(x) if name in IN_EMBEDDING else x
    layer = MultiHeadAttention(D_MODEL, HEADS, positions=made.attention)
    assert layer(x).output.shape == (BATCH, LENGTH, D_MODEL)
    learnable = sum(p.numel() for one in made if one is not None for p in one.parameters())
    assert learnable == ROWS[name].count(D_MODEL, HEADS, 11)
    ledger.holds()


def test_make_positions_passes_on_its_options():
    make = lambda name, **options: make_positions(name, D_MODEL, HEADS, max_length=11, **options)  # noqa: E731
    for said in (True, False):
        t5 = make("t5", bidirectional=said).attention
        buckets = t5_bucket(relative_positions(LENGTH, LENGTH), bidirectional=said)
        assert torch.equal(t5(LENGTH, LENGTH), t5.table[buckets].permute(2, 0, 1))
    x = torch.randn(1, 1, LENGTH, D_HEAD)
    options = {"rope_layout": "half", "partial_rotary_factor": 0.5}
    rotated, _ = make("rotary", rope_theta=50.0, **options).attention.rotate(x, x)
    wanted = rotary(x[..., : D_HEAD // 2], torch.arange(LENGTH), 50.0, layout="half")
    torch.testing.assert_close(rotated, torch.cat([wanted, x[..., D_HEAD // 2 :]], dim=-1))


@pytest.mark.parametrize("name", ["sinusoidal", "rotary", "alibi"], ids=encoding_id)
def test_encoding_cast_to_a_coarser_dtype_and_back_is_exact(name):
    def given(positions, x):
        if name == "sinusoidal":
            return positions(x[0])
        return positions.rotate(x, x)[1] if name == "rotary" else positions.bias(x, 40)

    (cast,), (plain,) = (filter(None, make_positions(name, D_MODEL, HEADS, max_length=40)) for _ in "ab")  # fmt: skip
    x = torch.randn(1, HEADS, 40, D_MODEL if name == "sinusoidal" else D_HEAD).double()
    assert given(cast.bfloat16(), x.bfloat16()).dtype == torch.bfloat16
    assert torch.equal(given(cast.double(), x), given(plain, x))


# --- the contract: shift invariance ----------------------------------------------------------


@pytest.mark.verifies(
    "course_lib.transformer.positions.EmbeddingPositions",
    "course_lib.transformer.positions.AttentionPositions",
    against="logits of a left-padded sequence",
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
