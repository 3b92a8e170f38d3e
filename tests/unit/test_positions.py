"""Positions against their formulas one number at a time, Hugging Face's models, and direct evaluation."""

import math
from types import SimpleNamespace

import mpmath
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

from course_lib.attention import scaled_dot_product_attention
from course_lib.masks import causal_mask
from course_lib.measure import peak_memory
from course_lib.multihead import MultiHeadAttention
from course_lib.positions import (
    ENCODINGS,
    AlibiBias,
    AttentionPositions,
    LearnedPositions,
    Positions,
    RotaryPositions,
    ShawRelativePositions,
    SinusoidalPositions,
    T5RelativeBias,
    alibi_bias,
    alibi_slopes,
    make_positions,
    relative_positions,
    rotary,
    sinusoidal_table,
    t5_bucket,
)
from course_lib.positions.base import require_positions

DTYPES = [torch.float64, torch.float32]
HALVES = [torch.float16, torch.bfloat16]
ROUNDING = {torch.float64: 1e-10, torch.float32: 1e-5}
BASES = [10000.0, 100, 500_000.0, 0.5]
LAYOUTS = ["interleaved", "half"]
# The ledger collects over all examples, and every example is quick.
COLLECTS = settings(
    deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

# No two axes are equally long, so that none can be taken for another.
BATCH, HEADS, LENGTH, D_HEAD = 2, 3, 5, 8
D_MODEL = HEADS * D_HEAD
HEAD_COUNTS = [*range(1, 41), 48, 63, 64, 65, 96, 112, 128]


def by_formula(positions, size, base=10000.0):
    """Section 3.5, one number at a time: a sine and a cosine for each pair."""
    rows = []
    for p in positions:
        row = []
        for i in range(size // 2):
            angle = p / base ** (2 * i / size)
            row += [math.sin(angle), math.cos(angle)]
        rows.append(row)
    return torch.tensor(rows, dtype=torch.float64)


def heads(*shape, dtype=torch.float64):
    return torch.randn(BATCH, *shape, dtype=dtype, requires_grad=True)


def in_float64(*tensors):
    return [tensor.detach().double().requires_grad_() for tensor in tensors]


def compare_gradients(ledger, ours, leaves, theirs, oracles, within):
    """Hold the gradient of one random mixture of the outputs against the oracle's, leaf by leaf."""
    mix = torch.randn(ours.shape, dtype=torch.float64)
    mine = torch.autograd.grad(ours, leaves, mix.to(ours.dtype))
    for gradient, oracle in zip(
        mine, torch.autograd.grad(theirs, oracles, mix, retain_graph=True), strict=True
    ):
        ledger.compare(gradient, oracle, within=within, backward=True)


def hold(ledger, ours, leaves, theirs, oracles, within):
    """Hold one tensor and all its gradients against an oracle in float64."""
    assert ours.dtype == leaves[0].dtype
    ledger.compare(ours, theirs, within=within)
    compare_gradients(ledger, ours, leaves, theirs, oracles, 10 * within)


def learned(module):
    return {name: tuple(parameter.shape) for name, parameter in module.named_parameters()}


# --- sines and cosines -----------------------------------------------------------------------


def hold_sinusoids(ledger, table):
    """What every sinusoidal table is held against; `table` is `sinusoidal_table` or should be."""
    for base in BASES:
        for size in (2, 8, 14):
            ours = table(20, size, base, dtype=torch.float64)
            ledger.compare(
                ours, by_formula(range(20), size, base), within=1e-12 * max(1, 20 / base)
            )


def hold_rotation(ledger, table):
    """Row p + k is row p, each pair rotated by the angle that row k stands for."""
    for base in BASES:
        rows = table(30, 14, base, dtype=torch.float64).unflatten(-1, (-1, 2))
        turns = torch.complex(rows[..., 1], rows[..., 0])  # cosine + i sine
        for k in (1, 2, 7, 15):
            ledger.compare(
                torch.view_as_real(turns[k:]),
                torch.view_as_real(turns[:-k] * turns[k]),
                within=1e-12,
            )


@pytest.mark.verifies(
    "course_lib.positions.sinusoidal_table",
    against="its formula, number by number, in Python's math",
)
def test_the_table_is_its_formula_number_by_number(ledger):
    hold_sinusoids(ledger, sinusoidal_table)
    theirs = by_formula(range(50), D_MODEL)
    ours = sinusoidal_table(50, D_MODEL)
    assert ours.dtype == torch.float32
    ledger.compare(ours, theirs, within=1e-7)
    assert sinusoidal_table(3, 4, dtype=torch.float16).dtype == torch.float16


@pytest.mark.verifies(
    "course_lib.positions.sinusoidal_table", against="row p + k is row p, rotated"
)
def test_a_later_row_is_an_earlier_one_rotated(ledger):
    hold_rotation(ledger, sinusoidal_table)


@pytest.mark.verifies("course_lib.positions.sinusoidal_table", against="mpmath, 40 digits")
def test_positions_far_away_are_exact(ledger):
    ours = {dtype: sinusoidal_table(100_001, 6, dtype=dtype) for dtype in DTYPES}
    with mpmath.workdps(40):
        for p in (12_345, 99_999, 100_000):
            row = []
            for i in range(3):
                angle = mpmath.mpf(p) / mpmath.mpf(10000) ** (mpmath.mpf(2 * i) / 6)
                row += [float(mpmath.sin(angle)), float(mpmath.cos(angle))]
            theirs = torch.tensor(row, dtype=torch.float64)
            ledger.compare(ours[torch.float64][p], theirs, within=1e-10)
            ledger.compare(ours[torch.float32][p], theirs, within=1e-7)


@pytest.mark.verifies(
    "course_lib.positions.sinusoidal_table", against="Hugging Face DistilBERT, Marian, M2M100"
)
def test_the_table_is_that_of_hugging_face(ledger):
    from transformers.models.distilbert import modeling_distilbert as distilbert
    from transformers.models.m2m_100 import modeling_m2m_100 as m2m_100
    from transformers.models.marian import modeling_marian as marian

    out = torch.empty(40, 14)
    distilbert.create_sinusoidal_embeddings(40, 14, out)
    ours = sinusoidal_table(40, 14)
    ledger.compare(ours, out, within=1e-6)
    sines, cosines = ours[:, 0::2], ours[:, 1::2]
    theirs = marian.MarianSinusoidalPositionalEmbedding(40, 14).create_weight()
    ledger.compare(torch.cat([sines, cosines], -1), theirs, within=1e-6)
    # tensor2tensor counts its last wavelength in: the same as another base.
    theirs = m2m_100.M2M100SinusoidalPositionalEmbedding.get_embedding(40, 14)
    ours = sinusoidal_table(40, 14, 10000 ** (7 / 6))
    ledger.compare(torch.cat([ours[:, 0::2], ours[:, 1::2]], -1), theirs, within=1e-5)


def with_other_angles(sine, cosine):
    """A table whose pair i has the angles that these two functions of (position, i, size, base) say."""

    def table(length, size, base=10000.0, *, dtype=torch.float32):
        rows = [
            [
                turn(angle(p, i, size, base))
                for i in range(size // 2)
                for turn, angle in ((math.sin, sine), (math.cos, cosine))
            ]
            for p in range(length)
        ]
        return torch.tensor(rows, dtype=torch.float64).to(dtype)

    return table


def angle(p, i, size, base):
    return p / base ** (2 * i / size)


def doubled(p, i, size, base):
    return p / base ** (2 * 2 * i / size)


def next_column(p, i, size, base):
    return p / base ** ((2 * i + 1) / size)


def test_exponents_doubled_or_unlike_within_a_pair_are_found(ledger):
    hold_sinusoids(ledger, with_other_angles(angle, angle))
    hold_rotation(ledger, with_other_angles(angle, angle))
    wrong = {
        "doubled": (doubled, doubled),
        "a frequency per column": (angle, next_column),
        "another pair's": (next_column, next_column),
        "none": (lambda p, *_: p, lambda p, *_: p),
    }
    for sine, cosine in wrong.values():
        with pytest.raises(AssertionError, match="differs from the oracle"):
            hold_sinusoids(ledger, with_other_angles(sine, cosine))
    with pytest.raises(AssertionError, match="differs from the oracle"):
        hold_rotation(ledger, with_other_angles(*wrong["a frequency per column"]))


@pytest.mark.verifies(
    "course_lib.positions.SinusoidalPositions",
    against="its formula, number by number, in Python's math",
)
@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_sinusoids_are_added_from_the_offset_on_however_far(ledger, dtype, base):
    positions = SinusoidalPositions(6, base).to(dtype)
    # The buffer starts with 64 rows: up to its end, across it, one row behind it, far behind, and back.
    for length, offset in ((5, 0), (64, 0), (7, 57), (7, 58), (1, 128), (90, 7), (3, 700), (5, 0)):
        x = torch.randn(BATCH, length, 6, dtype=dtype, requires_grad=True)
        (oracle,) = in_float64(x)
        theirs = oracle + by_formula(range(offset, offset + length), 6, base)
        ours = positions(x, offset) if offset else positions(x)
        # Half a float32 of the largest sum (a base below 1 has angles of some 1,000).
        hold(ledger, ours, [x], theirs, [oracle], 1e-6)


def test_sinusoids_learn_nothing_and_are_not_kept():
    positions = SinusoidalPositions(6)
    assert not learned(positions) and not positions.state_dict()
    positions(torch.zeros(1, 3, 6), 200)
    assert not positions.state_dict()


def test_a_table_that_has_grown_seldom_grows_again():
    positions = SinusoidalPositions(6)
    positions(torch.zeros(1, 100, 6))
    made = positions._table
    for offset in range(100, 150):
        positions(torch.zeros(1, 1, 6), offset)
    assert positions._table is made


@pytest.mark.parametrize("dtype", HALVES)
def test_sinusoids_keep_the_dtype_of_the_vectors(dtype):
    for positions in (SinusoidalPositions(6), SinusoidalPositions(6).to(dtype)):
        for offset in (0, 100):
            ours = positions(torch.zeros(1, 3, 6, dtype=dtype), offset)
            assert ours.dtype == dtype
            near = by_formula(range(offset, offset + 3), 6)
            assert (ours[0].double() - near).abs().max() < 0.005


# --- a learned table -------------------------------------------------------------------------


@pytest.mark.verifies("course_lib.positions.LearnedPositions", against="PyTorch `nn.Embedding`")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("offset", [0, 1, 4])
def test_learned_positions_are_an_embedding_of_the_place(ledger, offset, dtype):
    positions = LearnedPositions(LENGTH + 4, 6).to(dtype)
    x = heads(LENGTH, 6, dtype=dtype)
    (oracle,), embedding = in_float64(x), nn.Embedding(LENGTH + 4, 6).double()
    embedding.load_state_dict({"weight": positions.table})
    theirs = oracle + embedding(torch.arange(offset, offset + LENGTH))
    ours = positions(x, offset) if offset else positions(x)
    leaves, oracles = [x, positions.table], [oracle, embedding.weight]
    hold(ledger, ours, leaves, theirs, oracles, ROUNDING[dtype])


@pytest.mark.verifies(
    "course_lib.positions.LearnedPositions", against="Hugging Face `BertEmbeddings`"
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_learned_positions_are_those_of_bert(ledger, dtype):
    from transformers.models.bert import modeling_bert

    config = modeling_bert.BertConfig(
        vocab_size=2, hidden_size=6, num_attention_heads=1, max_position_embeddings=9
    )
    bert = modeling_bert.BertEmbeddings(config).eval().double()
    bert.LayerNorm = nn.Identity()
    bert.token_type_embeddings.weight.data.zero_()
    positions = LearnedPositions(9, 6).to(dtype)
    bert.position_embeddings.load_state_dict({"weight": positions.table})
    x = heads(LENGTH, 6, dtype=dtype)
    (oracle,) = in_float64(x)
    for offset in (0, 3):
        theirs = bert(inputs_embeds=oracle, past_key_values_length=offset)
        leaves, oracles = [x, positions.table], [oracle, bert.position_embeddings.weight]
        hold(ledger, positions(x, offset), leaves, theirs, oracles, ROUNDING[dtype])


def test_the_table_is_small_at_first_and_is_learned():
    positions = LearnedPositions(400, 30)
    assert learned(positions) == {"table": (400, 30)}
    assert positions.state_dict().keys() == {"table"}
    assert positions.table.std().item() == pytest.approx(0.02, rel=0.05)
    assert positions.table.mean().abs() < 0.001


# --- rotary ----------------------------------------------------------------------------------


def by_complex_numbers(x, positions, base=10000.0, layout="interleaved"):
    """Each pair is a complex number, multiplied by e^(i p ω)."""
    size = x.shape[-1]
    pairs = x.unflatten(-1, (-1, 2)) if layout == "interleaved" else x.unflatten(-1, (2, -1)).mT
    turns = torch.tensor(
        [[p / base ** (2 * i / size) for i in range(size // 2)] for p in positions],
        dtype=torch.float64,
    )
    numbers = torch.view_as_complex(pairs.contiguous()) * torch.polar(torch.ones_like(turns), turns)
    pairs = torch.view_as_real(numbers)
    return (pairs if layout == "interleaved" else pairs.mT).flatten(-2)


def exact(positions, base=10000.0, size=D_HEAD):
    """Sines and cosines of the angles, (position, pair) each."""
    table = by_formula(positions, size, base)
    return table[:, 0::2], table[:, 1::2]


def by_llama(x, positions, base=10000.0, layout="half"):
    from transformers.models.llama import modeling_llama

    assert layout == "half"
    sine, cosine = (table.repeat(1, 2)[None] for table in exact(positions, base))
    return modeling_llama.apply_rotary_pos_emb(x, x, cosine, sine)[0]


def by_gptj(x, positions, base=10000.0, layout="interleaved"):
    from transformers.models.gptj import modeling_gptj

    assert layout == "interleaved"
    sine, cosine = (table[None] for table in exact(positions, base))
    return modeling_gptj.apply_rotary_pos_emb(x.transpose(1, 2), sine, cosine).transpose(1, 2)


def by_roformer(x, positions, base=10000.0, layout="interleaved"):
    from transformers.models.roformer.modeling_roformer import RoFormerSelfAttention

    assert layout == "interleaved"
    table = torch.cat(exact(positions, base), -1)[None, None]
    return RoFormerSelfAttention.apply_rotary_position_embeddings(table, x, x)[0]


ROTATIONS = [
    (by_complex_numbers, "interleaved"),
    (by_complex_numbers, "half"),
    (by_llama, "half"),
    (by_gptj, "interleaved"),
    (by_roformer, "interleaved"),
]
MARKS = {
    ("rotary", by_complex_numbers): pytest.mark.verifies(
        "course_lib.positions.rotary", against="a multiplication of complex numbers"
    ),
    ("rotary", by_llama): pytest.mark.verifies(
        "course_lib.positions.rotary", against="Hugging Face LLaMA `apply_rotary_pos_emb`"
    ),
    ("rotary", by_gptj): pytest.mark.verifies(
        "course_lib.positions.rotary", against="Hugging Face GPT-J `apply_rotary_pos_emb`"
    ),
    ("rotary", by_roformer): pytest.mark.verifies(
        "course_lib.positions.rotary",
        against="Hugging Face RoFormer `apply_rotary_position_embeddings`",
    ),
    ("RotaryPositions", by_complex_numbers): pytest.mark.verifies(
        "course_lib.positions.RotaryPositions", against="a multiplication of complex numbers"
    ),
    ("RotaryPositions", by_llama): pytest.mark.verifies(
        "course_lib.positions.RotaryPositions", against="Hugging Face LLaMA `apply_rotary_pos_emb`"
    ),
    ("RotaryPositions", by_gptj): pytest.mark.verifies(
        "course_lib.positions.RotaryPositions", against="Hugging Face GPT-J `apply_rotary_pos_emb`"
    ),
    ("RotaryPositions", by_roformer): pytest.mark.verifies(
        "course_lib.positions.RotaryPositions",
        against="Hugging Face RoFormer `apply_rotary_position_embeddings`",
    ),
}


def rotations(name):
    return [
        pytest.param(oracle, layout, marks=MARKS[name, oracle], id=f"{oracle.__name__}-{layout}")
        for oracle, layout in ROTATIONS
    ]


PLACES = [0, 1, 2, 17, 4000]


def hold_rotary(ledger, function, oracle, layout, base=10000.0, dtype=torch.float64):
    """What every rotation is held against; `function` is `rotary` or should be."""
    x = heads(HEADS, LENGTH, D_HEAD, dtype=dtype)
    (copied,) = in_float64(x)
    ours = function(x, torch.tensor(PLACES), base, layout=layout)
    theirs = oracle(copied, PLACES, base, layout)
    hold(ledger, ours, [x], theirs, [copied], ROUNDING[dtype] * max(1, 1 / base))


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("oracle", "layout"), rotations("rotary"))
def test_rotary_turns_each_pair_by_its_own_angle(ledger, oracle, layout, dtype, base):
    hold_rotary(ledger, rotary, oracle, layout, base, dtype)


def test_rotary_takes_any_axes_in_front_and_pairs_neighbours_where_nothing_is_said():
    for batch in ((), (2,), (2, 3, 4)):
        x = torch.randn(*batch, LENGTH, D_HEAD, dtype=torch.float64)
        ours = rotary(x, torch.arange(LENGTH))
        torch.testing.assert_close(ours, by_complex_numbers(x, range(LENGTH)))
    for dtype in HALVES:
        assert rotary(x.to(dtype), torch.arange(LENGTH)).dtype == dtype


def test_rotary_tells_any_two_whole_numbers_apart():
    x = torch.randn(3, D_HEAD, dtype=torch.float64)
    places = [2**24, 2**24 + 1, 2**24 + 3]  # float32 has the first alone
    ours = rotary(x, torch.tensor(places))
    assert (ours - by_complex_numbers(x, places)).abs().max() < 1e-7


def turned_wrong_way(x, positions, base=10000.0, *, layout):
    return rotary(x, -positions, base, layout=layout)


def turned_by_one_frequency(x, positions, base=10000.0, *, layout):
    return rotary(x, positions, 1.0, layout=layout)


def turned_with_exponents_doubled(x, positions, base=10000.0, *, layout):
    return rotary(x, positions, base**2, layout=layout)


def turned_in_the_other_layout(x, positions, base=10000.0, *, layout):
    (other,) = set(LAYOUTS) - {layout}
    return rotary(x, positions, base, layout=other)


@pytest.mark.parametrize(("oracle", "layout"), ROTATIONS)
@pytest.mark.parametrize(
    "wrong",
    [
        turned_wrong_way,
        turned_by_one_frequency,
        turned_with_exponents_doubled,
        turned_in_the_other_layout,
    ],
)
def test_wrong_rotations_are_found(ledger, wrong, oracle, layout):
    with pytest.raises(AssertionError, match="differs from the oracle"):
        hold_rotary(ledger, wrong, oracle, layout)


@pytest.mark.verifies(
    "course_lib.positions.rotary", against="only the difference of positions matters"
)
@pytest.mark.parametrize("layout", LAYOUTS)
@COLLECTS
@given(
    m=st.integers(0, 500),
    n=st.integers(0, 500),
    shift=st.integers(-500, 5000),
    base=st.sampled_from([10000.0, 10, 500_000.0]),
    pairs=st.integers(1, 5),
    seed=st.integers(0, 1000),
)
def test_only_the_difference_of_positions_matters(ledger, layout, m, n, shift, base, pairs, seed):
    seed = torch.Generator().manual_seed(seed)
    q, k = torch.randn(2, 1, 2 * pairs, generator=seed, dtype=torch.float64)

    def product(at, other):
        place = [torch.tensor([at]), torch.tensor([other])]
        return (
            rotary(q, place[0], base, layout=layout) * rotary(k, place[1], base, layout=layout)
        ).sum()

    ledger.compare(product(m + shift, n + shift), product(m, n), within=1e-10)
    ledger.compare(product(m, m), (q * k).sum(), within=1e-10)
    turned = rotary(q, torch.tensor([m]), base, layout=layout)
    assert turned.norm().item() == pytest.approx(q.norm().item(), rel=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("base", BASES[:3])
@pytest.mark.parametrize(("oracle", "layout"), rotations("RotaryPositions"))
def test_queries_and_keys_are_turned_from_the_offset_on(ledger, oracle, layout, base, dtype):
    positions = RotaryPositions(D_HEAD, base, layout=layout)
    # Within the first table, at its end, across it, far behind it, and back.
    for offset, length in ((0, 5), (3, 1), (0, 64), (60, 5), (127, 2), (1000, 3), (0, 2)):
        query = heads(HEADS, length, D_HEAD, dtype=dtype)
        key = heads(1, length, D_HEAD, dtype=dtype)
        oracles = in_float64(query, key)
        places = range(offset, offset + length)
        ours = positions.turn(query, key, offset) if offset else positions.turn(query, key)
        for mine, leaf, copied in zip(ours, (query, key), oracles, strict=True):
            theirs = oracle(copied, places, base, layout)
            hold(ledger, mine, [leaf], theirs, [copied], ROUNDING[dtype])


def test_rotary_positions_are_by_default_those_of_rotary():
    x = torch.randn(BATCH, HEADS, LENGTH, D_HEAD)
    for ours in RotaryPositions(D_HEAD).turn(x, x, 2):
        torch.testing.assert_close(ours, rotary(x, torch.arange(2, 2 + LENGTH)))


def test_one_layer_turns_vectors_of_every_device():
    positions, x = RotaryPositions(D_HEAD), torch.randn(1, 1, LENGTH, D_HEAD)
    for device in ("cpu", "meta", "cpu"):
        ours, _ = positions.turn(x.to(device), x.to(device))
        assert ours.device.type == device
    torch.testing.assert_close(ours, rotary(x, torch.arange(LENGTH)))


def test_queries_and_keys_of_unequal_number_both_start_at_the_offset():
    query, key = torch.randn(1, 1, 2, D_HEAD), torch.randn(1, 1, 6, D_HEAD)
    ours = RotaryPositions(D_HEAD).turn(query, key, 3)
    torch.testing.assert_close(ours[0], rotary(query, torch.arange(3, 5)))
    torch.testing.assert_close(ours[1], rotary(key, torch.arange(3, 9)))


def test_the_tables_are_made_once_and_never_kept():
    positions, x = RotaryPositions(D_HEAD), torch.randn(1, 1, 10, D_HEAD)
    positions.turn(x, x)
    made = list(positions.buffers())
    positions.turn(x, x, 30)
    assert all(now is then for now, then in zip(positions.buffers(), made, strict=True))
    assert not learned(positions) and not positions.state_dict()


def test_one_layer_turns_vectors_of_every_dtype():
    positions = RotaryPositions(D_HEAD)
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float64):
        x = torch.randn(1, 1, 9, D_HEAD, dtype=dtype)
        for ours in positions.turn(x, x, 50):
            assert ours.dtype == dtype
            torch.testing.assert_close(ours, rotary(x, torch.arange(50, 59)))


@pytest.mark.verifies(
    "course_lib.positions.RotaryPositions", against="Hugging Face `LlamaRotaryEmbedding`"
)
@pytest.mark.parametrize("base", BASES[:3])
def test_rotary_positions_are_those_of_llama_with_its_own_tables(ledger, base):
    from transformers.models.llama import modeling_llama

    config = modeling_llama.LlamaConfig(
        hidden_size=D_MODEL,
        num_attention_heads=HEADS,
        rope_parameters={"rope_type": "default", "rope_theta": base},
    )
    query, key = (torch.randn(BATCH, HEADS, 50, D_HEAD) for _ in range(2))
    places = torch.arange(7, 57)[None]
    tables = modeling_llama.LlamaRotaryEmbedding(config)(query, places)
    theirs = modeling_llama.apply_rotary_pos_emb(query, key, *tables)
    ours = RotaryPositions(D_HEAD, base, layout="half").turn(query, key, 7)
    for mine, oracle in zip(ours, theirs, strict=True):
        ledger.compare(mine, oracle, within=3e-5)  # their angles are float32


@pytest.mark.verifies(
    "course_lib.positions.RotaryPositions",
    against="Hugging Face GPT-J and RoFormer, with their tables",
)
def test_rotary_positions_are_those_of_gptj_and_roformer_with_their_own_tables(ledger):
    from transformers.models.gptj import modeling_gptj as gptj
    from transformers.models.roformer import modeling_roformer as roformer

    x = torch.randn(BATCH, HEADS, 50, D_HEAD)
    ours, _ = RotaryPositions(D_HEAD).turn(x, x)
    sine, cosine = gptj.create_sinusoidal_positions(50, D_HEAD)[None].chunk(2, dim=-1)
    theirs = gptj.apply_rotary_pos_emb(x.transpose(1, 2), sine, cosine).transpose(1, 2)
    ledger.compare(ours, theirs, within=3e-5)
    table = roformer.RoFormerSinusoidalPositionalEmbedding(50, D_HEAD).create_weight()
    turn = roformer.RoFormerSelfAttention.apply_rotary_position_embeddings
    ledger.compare(ours, turn(table[None, None], x, x)[1], within=3e-5)


# --- linear biases ---------------------------------------------------------------------------


def of_the_authors(n):
    """`get_slopes` of ofirpress/attention_with_linear_biases, as published."""

    def get_slopes_power_of_2(n):
        start = 2 ** (-(2 ** -(math.log2(n) - 3)))
        ratio = start
        return [start * ratio**i for i in range(n)]

    if math.log2(n).is_integer():
        return get_slopes_power_of_2(n)
    closest_power_of_2 = 2 ** math.floor(math.log2(n))
    return (
        get_slopes_power_of_2(closest_power_of_2)
        + of_the_authors(2 * closest_power_of_2)[0::2][: n - closest_power_of_2]
    )


def of_bloom(n):
    from transformers.models.bloom import modeling_bloom

    return modeling_bloom.build_alibi_tensor(torch.ones(1, 2), n, torch.float32)[:, 0, 1]


def of_mpt(n):
    from transformers.models.mpt import modeling_mpt

    return -modeling_mpt.build_mpt_alibi_tensor(n, 2)[:, 0, 0]


SLOPES = [
    pytest.param(of_the_authors, marks=pytest.mark.verifies("course_lib.positions.alibi_slopes", against="the code of its authors")),
    pytest.param(of_bloom, marks=pytest.mark.verifies("course_lib.positions.alibi_slopes", against="Hugging Face BLOOM `build_alibi_tensor`")),
    pytest.param(of_mpt, marks=pytest.mark.verifies("course_lib.positions.alibi_slopes", against="Hugging Face MPT `build_mpt_alibi_tensor`")),
]  # fmt: skip


def hold_slopes(ledger, slopes, oracle, within=1e-7):
    """What all slopes are held against; `slopes` is `alibi_slopes` or should be."""
    for count in HEAD_COUNTS:
        ledger.compare(
            slopes(count), torch.as_tensor(oracle(count), dtype=torch.float64), within=within
        )


@pytest.mark.parametrize("oracle", SLOPES)
def test_slopes_are_those_of_others_for_any_number_of_heads(ledger, oracle):
    hold_slopes(ledger, alibi_slopes, oracle)
    assert alibi_slopes(3).dtype == torch.float32


def test_slopes_are_exact_where_they_are_powers_of_two():
    assert alibi_slopes(1).tolist() == [2**-8]
    assert alibi_slopes(8).tolist() == [2**-n for n in range(1, 9)]
    assert alibi_slopes(4).tolist() == [0.25, 0.0625, 2**-6, 2**-8]
    assert alibi_slopes(6).tolist() == [0.25, 0.0625, 2**-6, 2**-8, 0.5, 0.125]


def test_wrong_slopes_are_found(ledger):
    wrong = {
        "straight": lambda n: torch.linspace(2 ** (-8 / n), 2**-8, n),
        "geometric for every number of heads": lambda n: 2 ** (-8 * torch.arange(1.0, n + 1) / n),
        "from one on": lambda n: 2 ** (-8 * torch.arange(n) / n),
        "the first of the next power": lambda n: torch.tensor(
            of_the_authors(2 ** math.ceil(math.log2(n)))[:n]
        ),
        "of the wrong sign": lambda n: -alibi_slopes(n),
    }
    for slopes in wrong.values():
        for oracle in (of_the_authors, of_bloom, of_mpt):
            with pytest.raises(AssertionError, match="differs from the oracle"):
                hold_slopes(ledger, slopes, oracle)


def biases(count, queries, keys):
    """Figure 3, one number at a time."""
    first = keys - queries
    return torch.tensor(
        [
            [[-slope * abs(first + i - j) for j in range(keys)] for i in range(queries)]
            for slope in of_the_authors(count)
        ],
        dtype=torch.float64,
    )


@pytest.mark.verifies("course_lib.positions.alibi_bias", against="an explicit loop")
@pytest.mark.verifies("course_lib.positions.AlibiBias", against="an explicit loop")
@pytest.mark.parametrize("count", [1, 3, 6, 8, 12])
@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (5, 5), (3, 7), (1, 9)])
def test_what_is_further_away_loses_more(ledger, queries, keys, count):
    theirs = biases(count, queries, keys)
    ledger.compare(alibi_bias(count, queries, keys), theirs, within=1e-6)
    assert not alibi_bias(count, queries, keys)[theirs == 0].signbit().any()  # 0, and not -0
    if queries == keys:
        ledger.compare(alibi_bias(count, queries), theirs, within=1e-6)
    for dtype in DTYPES:
        query = torch.zeros(BATCH, count, queries, D_HEAD, dtype=dtype)
        ours = AlibiBias(count).bias(query, keys)
        assert ours.dtype == dtype
        ledger.compare(ours, theirs, within=1e-6)


def causal_weights(scores, bias):
    mask = causal_mask(*scores.shape[-2:])
    return (scores + bias).masked_fill(~mask, -torch.inf).softmax(-1)


def hold_alibi(ledger, bias, count, dtype, within):
    """Under a causal mask it does not matter that BLOOM and MPT add the same number to a whole row."""
    from transformers.models.bloom import modeling_bloom
    from transformers.models.mpt import modeling_mpt

    length = 9
    scores = torch.randn(BATCH, count, length, length, dtype=dtype, requires_grad=True)
    (copied,) = in_float64(scores)
    ones = torch.ones(BATCH, length)
    for theirs in (
        modeling_bloom.build_alibi_tensor(ones, count, torch.float64).view(BATCH, count, 1, length),
        modeling_mpt.build_mpt_alibi_tensor(count, length)[None],
    ):
        ours = causal_weights(scores, bias.to(dtype))
        hold(ledger, ours, [scores], causal_weights(copied, theirs), [copied], within)


@pytest.mark.verifies(
    "course_lib.positions.alibi_bias", against="Hugging Face BLOOM and MPT, after the softmax"
)
@pytest.mark.verifies(
    "course_lib.positions.AlibiBias", against="Hugging Face BLOOM and MPT, after the softmax"
)
@pytest.mark.parametrize("count", [1, 4, 6, 12])
@pytest.mark.parametrize("dtype", DTYPES)
def test_causal_weights_are_those_of_bloom_and_mpt(ledger, dtype, count):
    query = torch.zeros(BATCH, count, 9, D_HEAD, dtype=dtype)
    hold_alibi(ledger, alibi_bias(count, 9), count, dtype, 1e-6)
    hold_alibi(ledger, AlibiBias(count).bias(query, 9), count, dtype, 1e-6)


def test_a_bias_of_the_wrong_sign_or_measured_from_elsewhere_is_found(ledger):
    with pytest.raises(AssertionError, match="differs from the oracle"):
        hold_alibi(ledger, -alibi_bias(6, 9), 6, torch.float64, 1e-6)
    with pytest.raises(AssertionError, match="differs from the oracle"):
        hold_alibi(ledger, alibi_bias(6, 9).flip(0), 6, torch.float64, 1e-6)
    with pytest.raises(AssertionError, match="differs from the oracle"):
        hold_alibi(ledger, alibi_bias(6, 9).flip(-1), 6, torch.float64, 1e-6)


def test_linear_biases_learn_nothing_and_are_not_kept():
    positions = AlibiBias(HEADS)
    assert not learned(positions) and not positions.state_dict()


# --- buckets ---------------------------------------------------------------------------------

# With 18 the float32 logarithm of 8 / 4 puts the distance 8 elsewhere than float64 would.
BUCKETS = [(32, 128), (8, 20), (4, 3), (6, 16), (64, 400), (10, 11), (32, 33), (16, 9), (18, 128)]


@pytest.mark.verifies(
    "course_lib.positions.t5_bucket", against="Hugging Face `T5Attention._relative_position_bucket`"
)
@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize(("num_buckets", "max_distance"), BUCKETS)
def test_buckets_are_those_of_t5_at_every_distance(
    ledger, num_buckets, max_distance, bidirectional
):
    from transformers.models.t5.modeling_t5 import T5Attention

    sizes = {"num_buckets": num_buckets, "max_distance": max_distance}
    for relative in (torch.arange(-500, 501), torch.arange(-300, 300).view(2, 3, 100)):
        ours = t5_bucket(relative, bidirectional=bidirectional, **sizes)
        theirs = T5Attention._relative_position_bucket(relative, bidirectional, **sizes)
        ledger.compare(ours, theirs, within=0)
        assert ours.dtype == torch.int64 and ours.min() >= 0 and ours.max() < num_buckets


@pytest.mark.verifies(
    "course_lib.positions.t5_bucket", against="Hugging Face `T5Attention._relative_position_bucket`"
)
@COLLECTS
@given(data=st.data())
def test_buckets_are_those_of_t5_for_any_setting(ledger, data):
    from transformers.models.t5.modeling_t5 import T5Attention

    bidirectional = data.draw(st.booleans())
    half = data.draw(st.integers(2, 40))
    num_buckets = 2 * half if bidirectional else half
    more = data.draw(st.integers(1, 1000))
    max_distance = num_buckets // (4 if bidirectional else 2) + more
    relative = torch.arange(-1100, 1101)
    ours = t5_bucket(
        relative,
        bidirectional=bidirectional,
        num_buckets=num_buckets,
        max_distance=max_distance,
    )
    theirs = T5Attention._relative_position_bucket(
        relative, bidirectional, num_buckets, max_distance
    )
    ledger.compare(ours, theirs, within=0)


def test_buckets_are_by_default_those_of_t5():
    from transformers.models.t5.modeling_t5 import T5Attention

    relative = torch.arange(-300, 301)
    assert torch.equal(t5_bucket(relative), T5Attention._relative_position_bucket(relative))
    assert t5_bucket(torch.tensor([0, -1, 1, -7, 7, -8, -127, -128, -999, 999])).tolist() == [
        *(0, 1, 17, 7, 23, 8, 15, 15, 15, 31)
    ]
    causal = t5_bucket(torch.tensor([3, 0, -1, -15, -16, -128]), bidirectional=False)
    assert causal.tolist() == [0, 0, 1, 15, 16, 31]


def t5_of(decoder, num_buckets=32, max_distance=128, **others):
    from transformers.models.t5 import modeling_t5

    config = modeling_t5.T5Config(
        d_model=D_MODEL,
        d_kv=D_HEAD,
        num_heads=HEADS,
        is_decoder=decoder,
        relative_attention_num_buckets=num_buckets,
        relative_attention_max_distance=max_distance,
        **others,
    )
    return modeling_t5.T5Attention(config, has_relative_attention_bias=True, layer_idx=0).double()


@pytest.mark.verifies(
    "course_lib.positions.T5RelativeBias", against="Hugging Face `T5Attention.compute_bias`"
)
@pytest.mark.parametrize(("num_buckets", "max_distance"), BUCKETS[:3])
@pytest.mark.parametrize("decoder", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_relative_bias_is_that_of_t5(ledger, dtype, decoder, num_buckets, max_distance):
    t5 = t5_of(decoder, num_buckets, max_distance)
    positions = T5RelativeBias(
        HEADS, bidirectional=not decoder, num_buckets=num_buckets, max_distance=max_distance
    ).to(dtype)
    positions.table.data = torch.randn(num_buckets, HEADS, dtype=dtype)
    t5.relative_attention_bias.load_state_dict({"weight": positions.table})
    for queries, keys in ((1, 1), (40, 40), (3, 40), (1, 200)):
        theirs = t5.compute_bias(queries, keys, past_seen_tokens=keys - queries)[0]
        oracles = [t5.relative_attention_bias.weight]
        query = torch.zeros(BATCH, HEADS, queries, D_HEAD, dtype=dtype)
        for ours in (positions(queries, keys), positions.bias(query, keys)):
            hold(ledger, ours, [positions.table], theirs, oracles, ROUNDING[dtype])


def test_the_relative_bias_learns_one_number_per_bucket_and_head():
    positions = T5RelativeBias(300, num_buckets=12, max_distance=7)
    assert learned(positions) == {"table": (12, 300)}
    assert positions.state_dict().keys() == {"table"}
    assert positions.table.std().item() == pytest.approx(0.02, rel=0.05)
    assert T5RelativeBias(2).table.shape == (32, 2)
    query = torch.zeros(1, 2, 300, 4, dtype=torch.bfloat16)
    assert T5RelativeBias(2).bias(query, 300).dtype == torch.bfloat16
    default = T5RelativeBias(2)
    expected = default.table[t5_bucket(relative_positions(300, 300))].permute(2, 0, 1)
    assert torch.equal(default(300, 300), expected)


# --- a vector per distance -------------------------------------------------------------------


def row(j, i, m):
    return max(-m, min(m, j - i)) + m


def vectors(table, queries, keys, m):
    """The (query, key, d_head) tensor that the paper says need not be built."""
    first = keys - queries
    return torch.stack(
        [torch.stack([table[row(j, first + i, m)] for j in range(keys)]) for i in range(queries)]
    )


def by_equations(q, k, v, key_table, value_table, m, mask=None):
    """Equations 3 to 5, with all vectors written out."""
    shape = q.shape[-2], k.shape[-2]
    for_keys, for_values = (vectors(table, *shape, m) for table in (key_table, value_table))
    scores = (q[..., :, None, :] * (k[..., None, :, :] + for_keys)).sum(-1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    weights = scores.softmax(-1)
    return (weights[..., None] * (v[..., None, :, :] + for_values)).sum(-2), weights


def shaw_attention(positions, q, k, v, mask):
    """What MultiHeadAttention does with its heads, for one encoding that needs the weights."""
    assert positions.needs_weights
    bias = positions.bias(q, k.shape[-2])
    output, weights = scaled_dot_product_attention(q, k, v, mask, bias=bias)
    return positions.move_output(output, weights), weights


def shaw(d_head, m, dtype):
    return ShawRelativePositions(d_head, m).to(dtype)


SHAW = pytest.mark.verifies(
    "course_lib.positions.ShawRelativePositions", against="a direct evaluation of equations 3 to 5"
)


@SHAW
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (LENGTH, LENGTH), (3, 7)])
@pytest.mark.parametrize("m", [1, 2, 16])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_pair_has_the_vectors_of_its_distance(ledger, dtype, m, queries, keys, causal):
    positions = shaw(D_HEAD, m, dtype)
    lengths = (queries, keys, keys)
    leaves = [heads(HEADS, n, D_HEAD, dtype=dtype) for n in lengths]
    leaves += [positions.key, positions.value]
    oracles, mask = in_float64(*leaves), causal_mask(queries, keys) if causal else None
    ours = shaw_attention(positions, *leaves[:3], mask)
    theirs = by_equations(*oracles, m, mask)
    ledger.compare(ours[1], theirs[1], within=ROUNDING[dtype])
    hold(ledger, ours[0], leaves, theirs[0], oracles, ROUNDING[dtype])


@pytest.mark.parametrize("length", [256])
def test_the_quadratic_tensor_of_vectors_is_never_built(length):
    positions = ShawRelativePositions(64)
    q, k, v = (torch.randn(1, 1, length, 64) for _ in range(3))
    which = relative_positions(length, length).clamp(-16, 16) + 16

    def direct():
        for_keys, for_values = positions.key[which], positions.value[which]  # (query, key, d_head)
        scores = q @ k.mT / 8 + torch.einsum("bhqd,qkd->bhqk", q, for_keys) / 8
        weights = scores.softmax(-1)
        return weights @ v + torch.einsum("bhqk,qkd->bhqd", weights, for_values)

    def ours():
        return shaw_attention(positions, q, k, v, None)[0]

    torch.testing.assert_close(ours(), direct(), rtol=1e-4, atol=1e-5)
    with torch.no_grad():
        assert peak_memory(ours) < peak_memory(direct) / 8
    assert peak_memory(lambda: ours().sum().backward()) < peak_memory(direct) / 4


def test_shaw_learns_a_vector_per_distance_for_keys_and_for_values():
    positions = ShawRelativePositions(200, 50)
    assert learned(positions) == {"key": (101, 200), "value": (101, 200)}
    assert ShawRelativePositions(4).key.shape == (33, 4)
    for table in (positions.key, positions.value):
        assert table.std().item() == pytest.approx(1 / math.sqrt(200), rel=0.05)
    assert not torch.equal(positions.key, positions.value)


@pytest.mark.verifies(
    "course_lib.positions.ShawRelativePositions",
    against="Hugging Face Wav2Vec2-BERT, relative keys",
)
@pytest.mark.parametrize("m", [1, 3, 9])
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_part_of_the_keys_is_that_of_wav2vec2_bert(ledger, dtype, m):
    from transformers.models.wav2vec2_bert import modeling_wav2vec2_bert as wav2vec2_bert

    positions = shaw(D_HEAD, m, dtype)
    query = heads(HEADS, 7, D_HEAD, dtype=dtype)
    oracles = in_float64(query, positions.key)
    like = SimpleNamespace(
        left_max_position_embeddings=m,
        right_max_position_embeddings=m,
        distance_embedding=lambda which: oracles[1][which],
        scaling=D_HEAD**-0.5,
    )
    _, theirs = wav2vec2_bert._apply_relative_key_position_encoding(like, oracles[0], oracles[0])
    ours = positions.bias(query, 7)
    hold(ledger, ours, [query, positions.key], theirs, oracles, ROUNDING[dtype])


# --- what is common --------------------------------------------------------------------------


@pytest.mark.verifies("course_lib.positions.relative_positions", against="an explicit double loop")
@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (1, 4), (4, 4), (3, 5)])
def test_relative_positions_count_from_the_query_to_the_key(ledger, queries, keys):
    first = keys - queries
    theirs = [[j - (first + i) for j in range(keys)] for i in range(queries)]
    ours = relative_positions(queries, keys)
    assert ours.dtype == torch.int64
    ledger.compare(ours, torch.tensor(theirs), within=0)
    assert torch.equal(ours <= 0, causal_mask(queries, keys))
    assert relative_positions(queries, keys, "meta").device.type == "meta"


@pytest.mark.parametrize("name", ["shaw", "t5", "alibi"])
def test_a_bias_is_made_where_the_queries_are(name):
    positions = make_positions(name, D_MODEL, HEADS, max_length=1).inside.to("meta")
    bias = positions.bias(torch.zeros(BATCH, HEADS, 3, D_HEAD, device="meta"), LENGTH)
    assert bias.device.type == "meta" and bias.shape[-3:] == (HEADS, 3, LENGTH)


@pytest.mark.verifies("course_lib.positions.AttentionPositions", against="changing nothing")
def test_the_base_of_all_encodings_changes_nothing(ledger):
    base, q, k, v = AttentionPositions(), *(heads(HEADS, LENGTH, D_HEAD) for _ in range(3))
    assert base.needs_weights is False
    turned = base.turn(q, k)
    assert turned[0] is q and turned[1] is k
    assert base.turn(q, k, 3)[1] is k
    assert base.bias(q, LENGTH) is None
    assert base.move_output(v, None) is v
    assert not base.state_dict()
    ledger.holds()


@pytest.mark.verifies(
    "course_lib.positions.AttentionPositions", against="a list of what is and is not"
)
def test_only_encodings_inside_attention_are_let_through(ledger):
    for positions in (None, AttentionPositions(), RotaryPositions(2), ShawRelativePositions(2)):
        assert require_positions(positions) is None
        ledger.holds()
    for other in (SinusoidalPositions(2), nn.Identity(), "rotary", RotaryPositions, False, 0):
        said = rf"positions is a {type(other).__name__}; it must be an AttentionPositions"
        with pytest.raises(ValueError, match=said):
            require_positions(other)
        ledger.holds()


MADE = {
    "none": (type(None), type(None)),
    "sinusoidal": (SinusoidalPositions, type(None)),
    "learned": (LearnedPositions, type(None)),
    "shaw": (type(None), ShawRelativePositions),
    "t5": (type(None), T5RelativeBias),
    "rotary": (type(None), RotaryPositions),
    "alibi": (type(None), AlibiBias),
}


@pytest.mark.verifies("course_lib.positions.ENCODINGS", against="a list of names")
def test_seven_names_are_known(ledger):
    assert ENCODINGS == tuple(MADE)
    ledger.holds()


@pytest.mark.verifies("course_lib.positions.make_positions", against="each encoding made by hand")
@pytest.mark.verifies("course_lib.positions.Positions", against="each encoding made by hand")
@pytest.mark.parametrize("name", ENCODINGS)
def test_one_setting_makes_each_encoding(ledger, name):
    made = make_positions(name, D_MODEL, HEADS, max_length=11)
    assert isinstance(made, Positions) and made._fields == ("added", "inside")
    assert (type(made.added), type(made.inside)) == MADE[name]
    if made.inside is not None:
        layer = MultiHeadAttention(D_MODEL, HEADS, positions=made.inside)
        assert layer(torch.randn(BATCH, LENGTH, D_MODEL)).output.shape == (BATCH, LENGTH, D_MODEL)
    if made.added is not None:
        x = torch.randn(BATCH, 11, D_MODEL)
        assert made.added(x).shape == x.shape
    ledger.holds()


def test_one_setting_passes_on_the_sizes():
    def make(name, **settings):
        made = make_positions(name, D_MODEL, HEADS, max_length=11, **settings)
        return made.added if made.inside is None else made.inside

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
    torch.testing.assert_close(make("rotary").turn(x, x)[0], rotary(x, torch.arange(LENGTH)))


# --- bad input -------------------------------------------------------------------------------

X = torch.zeros(2, 4, 6)
H = torch.zeros(2, 3, 4, 6)


def attend_with(positions):
    return MultiHeadAttention(D_MODEL, HEADS, positions=positions)(torch.zeros(1, 4, D_MODEL))


@pytest.mark.usefixtures("without_annotations")
@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: sinusoidal_table(0, 4), r"^length=0 is below 1"),
        (lambda: sinusoidal_table(4.0, 4), r"^length=4\.0 is a float; it must be a whole number"),
        (lambda: sinusoidal_table(4, 5), r"^d_model=5 is odd; it must be even"),
        (lambda: sinusoidal_table(4, 0), r"^d_model=0 is below 1"),
        (lambda: sinusoidal_table(4, 6, 0), r"^base=0 is not a finite number above 0"),
        (lambda: sinusoidal_table(4, 6, -2.0), r"^base=-2 is not"),
        (lambda: sinusoidal_table(4, 6, math.inf), r"^base=inf is not"),
        (lambda: sinusoidal_table(4, 6, "big"), r"^base is a str; it must be a number above 0"),
        (lambda: SinusoidalPositions(5), r"^d_model=5 is odd"),
        (lambda: SinusoidalPositions(6, 0), r"^base=0 is not"),
        (lambda: SinusoidalPositions(6, math.nan), r"^base=nan is not"),
        (lambda: SinusoidalPositions(4)(X), r"^x has shape \(2, 4, 6\); it must be \(batch, length, 4\)"),
        (lambda: SinusoidalPositions(6)(X[0]), r"^x has shape \(4, 6\); it must be \(batch, length, 6\)"),
        (lambda: SinusoidalPositions(6)(X.long()), r"^x has dtype int64"),
        (lambda: SinusoidalPositions(6)([1.0]), r"^x is a list; a tensor is needed"),
        (lambda: SinusoidalPositions(6)(X, -1), r"^offset=-1 is below 0"),
        (lambda: SinusoidalPositions(6)(X, 1.0), r"^offset=1\.0 is a float"),
        (lambda: SinusoidalPositions(6)(X, True), r"^offset=True is a bool"),
        (lambda: LearnedPositions(0, 6), r"^max_length=0 is below 1"),
        (lambda: LearnedPositions(3, 0), r"^d_model=0 is below 1"),
        (lambda: LearnedPositions(2.5, 6), r"^max_length=2\.5 is a float"),
        (lambda: LearnedPositions(9, 4)(X), r"^x has shape \(2, 4, 6\); it must be \(batch, length, 4\)"),
        (lambda: LearnedPositions(9, 6)(X[0]), r"^x has shape \(4, 6\); it must be \(batch, length, 6\)"),
        (lambda: LearnedPositions(9, 6)(X.int()), r"^x has dtype int32"),
        (lambda: LearnedPositions(9, 6)(X, -1), r"^offset=-1 is below 0"),
        (lambda: LearnedPositions(3, 6)(X), r"^x needs positions 0 to 3, but the table was made with max_length=3: it has learned nothing beyond 2$"),
        (lambda: LearnedPositions(9, 6)(X, 6), r"^x needs positions 6 to 9, .* max_length=9: it has learned nothing beyond 8$"),
        (lambda: rotary([1.0], torch.arange(4)), r"^x is a list; a tensor is needed"),
        (lambda: rotary(X.long(), torch.arange(4)), r"^x has dtype int64"),
        (lambda: rotary(X[0, 0], torch.arange(1)), r"^x has shape \(6,\); it must be \(…, length, d_head\)"),
        (lambda: rotary(X[..., :5], torch.arange(4)), r"^d_head=5 is odd; it must be even"),
        (lambda: rotary(X, torch.arange(5)), r"^positions is \(5,\); it must be a tensor of shape \(4,\), one position per vector"),
        (lambda: rotary(X, torch.arange(4)[None]), r"^positions is \(1, 4\); it must be a tensor of shape \(4,\)"),
        (lambda: rotary(X, torch.tensor(4)), r"^positions is \(\); it must be"),
        (lambda: rotary(X, [0, 1, 2, 3]), r"^positions is list; it must be a tensor of shape \(4,\)"),
        (lambda: rotary(X, range(4)), r"^positions is range; it must be"),
        (lambda: rotary(X, torch.arange(4), 0), r"^base=0 is not"),
        (lambda: rotary(X, torch.arange(4), -1.5), r"^base=-1\.5 is not"),
        (lambda: rotary(X, torch.arange(4), layout="halves"), r"^layout='halves' is unknown; it must be one of 'interleaved', 'half'\. Did you mean 'half'\?"),
        (lambda: RotaryPositions(5), r"^d_head=5 is odd"),
        (lambda: RotaryPositions(0), r"^d_head=0 is below 1"),
        (lambda: RotaryPositions(6, 0), r"^base=0 is not"),
        (lambda: RotaryPositions(6, layout="split"), r"^layout='split' is unknown"),
        (lambda: RotaryPositions(6).turn(H, H, -1), r"^offset=-1 is below 0"),
        (lambda: RotaryPositions(6).turn(H, H, 0.5), r"^offset=0\.5 is a float"),
        (lambda: alibi_slopes(0), r"^num_heads=0 is below 1"),
        (lambda: alibi_slopes(2.0), r"^num_heads=2\.0 is a float"),
        (lambda: alibi_bias(0, 4), r"^num_heads=0 is below 1"),
        (lambda: alibi_bias(2, 0), r"^query_length=0 is below 1"),
        (lambda: alibi_bias(2, 4, 3), r"^key_length=3 is below query_length=4; the queries are the last of the keys"),
        (lambda: AlibiBias(-1), r"^num_heads=-1 is below 1"),
        (lambda: t5_bucket(torch.arange(3), num_buckets=7), r"^num_buckets=7 is odd"),
        (lambda: t5_bucket(torch.arange(3), num_buckets=2), r"^num_buckets=2 is below 4, two for each direction"),
        (lambda: t5_bucket(torch.arange(3), num_buckets=0), r"^num_buckets=0 is below 2"),
        (lambda: t5_bucket(torch.arange(3), num_buckets=1, bidirectional=False), r"^num_buckets=1 is below 2"),
        (lambda: t5_bucket(torch.arange(3), max_distance=8), r"^max_distance=8 must be above 8: so many distances have a bucket alone"),
        (lambda: t5_bucket(torch.arange(3), bidirectional=False, max_distance=16), r"^max_distance=16 must be above 16"),
        (lambda: t5_bucket(torch.arange(3), max_distance=0), r"^max_distance=0 is below 1"),
        (lambda: T5RelativeBias(0), r"^num_heads=0 is below 1"),
        (lambda: T5RelativeBias(2, num_buckets=9), r"^num_buckets=9 is odd"),
        (lambda: T5RelativeBias(2, num_buckets=2), r"^num_buckets=2 is below 4"),
        (lambda: T5RelativeBias(2, max_distance=8), r"^max_distance=8 must be above 8"),
        (lambda: T5RelativeBias(2)(4, 3), r"^key_length=3 is below query_length=4"),
        (lambda: T5RelativeBias(2)(0, 3), r"^query_length=0 is below 1"),
        (lambda: ShawRelativePositions(0), r"^d_head=0 is below 1"),
        (lambda: ShawRelativePositions(4, 0), r"^max_distance=0 is below 1"),
        (lambda: ShawRelativePositions(6).bias(H, 3), r"^key_length=3 is below query_length=4"),
        (lambda: relative_positions(0, 3), r"^query_length=0 is below 1"),
        (lambda: relative_positions(2, 2.0), r"^key_length=2\.0 is a float"),
        (lambda: relative_positions(3, 2), r"^key_length=2 is below query_length=3; the queries are the last of the keys, so there must be at least as many keys"),
        (lambda: make_positions("rotery", 6, 3, max_length=4), r"^positions='rotery' is unknown; .*Did you mean 'rotary'\?"),
        (lambda: make_positions(None, 6, 3, max_length=4), r"^positions=None is unknown"),
        (lambda: make_positions("none", 7, 3, max_length=4), r"^d_model=7 is not divisible by num_heads=3"),
        (lambda: make_positions("rotary", 9, 3, max_length=4), r"^d_head=3 is odd"),
        (lambda: make_positions("sinusoidal", 9, 3, max_length=4), r"^d_model=9 is odd"),
        (lambda: make_positions("learned", 6, 3, max_length=0), r"^max_length=0 is below 1"),
        (lambda: require_positions(SinusoidalPositions(4)), r"^positions is a SinusoidalPositions; it must be an AttentionPositions, such as RotaryPositions\(d_head\)"),
        (lambda: attend_with("rotary"), r"^positions is a str; it must be an AttentionPositions"),
        (lambda: attend_with(LearnedPositions(4, D_MODEL)), r"^positions is a LearnedPositions; .* before the layer"),
        (lambda: attend_with(AlibiBias(2)), r"^positions was made with num_heads=2, but the layer has num_heads=3"),
        (lambda: attend_with(T5RelativeBias(4)), r"^positions was made with num_heads=4, but the layer has num_heads=3"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_by_name(call, says):
    with pytest.raises(ValueError, match=says):
        call()


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
def test_an_encoding_of_another_size_is_refused(positions):
    with pytest.raises(ValueError, match=r"d_head|num_heads|heads"):
        attend_with(positions)


def test_a_rotation_first_used_without_gradients_can_be_learned_through_later():
    positions, x = RotaryPositions(D_HEAD), heads(HEADS, LENGTH, D_HEAD)
    with torch.inference_mode():
        positions.turn(x, x)
    positions.turn(x, x)[0].sum().backward()


@pytest.mark.parametrize(
    ("name", "coarse", "fine"),
    [
        ("sinusoidal", torch.bfloat16, torch.float32),
        ("sinusoidal", torch.float32, torch.float64),
        ("rotary", torch.bfloat16, torch.float32),
        ("rotary", torch.float32, torch.float64),
        ("alibi", torch.bfloat16, torch.float32),
    ],
)
def test_a_layer_brought_back_from_a_coarser_dtype_is_as_exact_as_before(name, coarse, fine):
    count, length = 12, 40
    x = torch.randn(1, count, length, D_HEAD, dtype=torch.float64)
    positions = {
        "sinusoidal": lambda: SinusoidalPositions(D_HEAD),
        "rotary": lambda: RotaryPositions(D_HEAD),
        "alibi": lambda: AlibiBias(count),
    }[name]()
    call, theirs = {
        "sinusoidal": (lambda x: positions(x[0]), x[0] + by_formula(range(length), D_HEAD)),
        "rotary": (lambda x: positions.turn(x, x)[1], by_complex_numbers(x, range(length))),
        "alibi": (lambda x: positions.bias(x, length), biases(count, length, length)),
    }[name]
    positions.to(coarse)
    call(x.to(coarse))
    positions.to(fine)
    near = {torch.float32: 2e-6, torch.float64: 1e-10}[fine]
    assert (call(x.to(fine)).double() - theirs).abs().max() < near
