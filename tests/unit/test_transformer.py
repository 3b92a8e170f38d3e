"""The whole model against `nn.Transformer`, `nn.TransformerEncoder`, and GPT-2 of Hugging Face."""

import copy
import dataclasses
import itertools
import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

from course_lib.attention import record_attention
from course_lib.blocks import LayerNorm
from course_lib.cache import KeyValueCache
from course_lib.positions import ENCODINGS
from course_lib.transformer import (
    DecoderOnly,
    Memory,
    TokenEmbedding,
    Transformer,
    TransformerConfig,
)

# PyTorch says so of every model that normalises first.
pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")

DTYPES = [torch.float64, torch.float32]
ROUNDING = {torch.float64: 1e-10, torch.float32: 2e-5}

# No two axes are equally long, so that none can be taken for another.
BATCH, HEADS, TARGET, SOURCE, D_FF, D_MODEL = 2, 3, 5, 6, 7, 12
ENCODER, DECODER = 1, 2
TARGETS, SOURCES = 9, 11  # the two vocabularies
PAD = 0

SIZES = {
    "target_vocabulary": TARGETS,
    "source_vocabulary": SOURCES,
    "d_model": D_MODEL,
    "num_heads": HEADS,
    "encoder_layers": ENCODER,
    "decoder_layers": DECODER,
    "d_ff": D_FF,
    "dropout": 0.0,
    "max_length": 20,
}


def sized(**choices):
    return TransformerConfig(**(SIZES | choices))


def wild(layer, dtype=torch.float64):
    """Weights and biases large enough that every part matters."""
    for parameter in layer.parameters():
        parameter.data = 0.3 * torch.randn(parameter.shape).to(dtype)
    return layer


def words(vocabulary, length, *padded):
    """Tokens, none of them padding but the last `padded[b]` of sequence b."""
    tokens = torch.randint(1, vocabulary, (len(padded), length))
    for row, count in zip(tokens, padded, strict=True):
        row[length - count :] = PAD
    return tokens


def pair(source=(0, 2), target=(0, 1)):
    return words(SOURCES, SOURCE, *source), words(TARGETS, TARGET, *target)


def sinusoids(length, d_model=D_MODEL):
    """Number by number, from the paper's formula."""
    table = torch.empty(length, d_model, dtype=torch.float64)
    for place, number in itertools.product(range(length), range(d_model)):
        angle = place / 10000 ** ((number - number % 2) / d_model)
        table[place, number] = math.cos(angle) if number % 2 else math.sin(angle)
    return table


# --- the embedding ---------------------------------------------------------------------------


@pytest.mark.verifies(
    "course_lib.transformer.TokenEmbedding", against="PyTorch `nn.Embedding`, times √d"
)
@pytest.mark.parametrize("size", [1, 4, D_MODEL])
@pytest.mark.parametrize("dtype", DTYPES)
def test_an_embedding_is_a_row_times_the_root_of_its_size(ledger, dtype, size):
    ours = TokenEmbedding(TARGETS, size).to(dtype)
    theirs = nn.Embedding(TARGETS, size).double()
    theirs.load_state_dict(ours.table.state_dict())
    tokens = torch.randint(0, TARGETS, (BATCH, TARGET))
    wanted = theirs(tokens) * size**0.5
    ledger.compare(ours(tokens), wanted, within=ROUNDING[dtype])
    ledger.compare(ours(tokens.int()), wanted, within=ROUNDING[dtype])
    mix = torch.randn(wanted.shape).double()
    (mine,) = torch.autograd.grad(ours(tokens), ours.parameters(), mix.to(dtype))
    (slope,) = torch.autograd.grad(wanted, theirs.parameters(), mix)
    ledger.compare(mine, slope, within=10 * ROUNDING[dtype], backward=True)


def test_embeddings_start_small_and_come_out_of_size_one():
    layer = TokenEmbedding(1000, 64)
    assert layer.table.weight.std().item() == pytest.approx(1 / 8, rel=0.02)
    assert abs(layer.table.weight.mean().item()) < 0.002
    assert layer(torch.arange(1000)[None]).std().item() == pytest.approx(1, rel=0.02)
    assert layer.table.padding_idx is None


# --- nn.Transformer --------------------------------------------------------------------------


def their_transformer(dtype=torch.float64, final=True, **choices):
    """With random weights; without final norms it needs stacks of its own."""
    layers = (ENCODER, DECODER)
    choices = {"dim_feedforward": D_FF, "batch_first": True, "dropout": 0.2} | choices
    if not final:
        encoder = nn.TransformerEncoderLayer(D_MODEL, HEADS, **choices)
        decoder = nn.TransformerDecoderLayer(D_MODEL, HEADS, **choices)
        choices |= {
            "custom_encoder": nn.TransformerEncoder(encoder, ENCODER, enable_nested_tensor=False),
            "custom_decoder": nn.TransformerDecoder(decoder, DECODER),
        }
    return wild(nn.Transformer(D_MODEL, HEADS, *layers, **choices)).to(dtype).eval()


def around(layer, **choices):
    """Our model around theirs, with embeddings and an output layer that are not as they start."""
    sizes = {"target_vocabulary": TARGETS, "source_vocabulary": SOURCES}
    model = Transformer.from_torch(layer, **(sizes | choices))
    for part in (model.source_input, model.target_input, model.out):
        wild(part, layer.encoder.layers[0].linear1.weight.dtype)
    return model


def by_pytorch(model, layer, source, target, leaves):
    """Their stacks, fed by `F.embedding`, with PyTorch's masks: True hides."""
    read, written, out = leaves
    embedded = [
        F.embedding(tokens, table) * D_MODEL**0.5 + sinusoids(tokens.shape[1])
        for tokens, table in ((source, read), (target, written))
    ]
    length = target.shape[1]
    decoded = layer(
        *embedded,
        tgt_mask=torch.ones(length, length).triu(1) > 0,
        src_key_padding_mask=source == PAD,
        tgt_key_padding_mask=target == PAD,
        memory_key_padding_mask=source == PAD,
    )
    return decoded @ out.T


def of_attention(layer, prefix):
    """Our names → a parameter of PyTorch's, and the third of it, which packs queries, keys and values."""
    named = {}
    for what in ("weight", "bias"):
        for third, part in enumerate(("query", "key", "value")):
            named[f"{prefix}.{part}.{what}"] = (getattr(layer, f"in_proj_{what}"), third)
        named[f"{prefix}.out.{what}"] = (getattr(layer.out_proj, what), None)
    return named


def under_our_names(layer):
    named, plain = {}, {}
    for stack in ("encoder", "decoder"):
        for place, block in enumerate(getattr(layer, stack).layers):
            here = f"{stack}.{place}"
            decoder = stack == "decoder"
            own = "self_attention" if decoder else "attention"
            named |= of_attention(block.self_attn, f"{here}.{own}")
            if decoder:
                named |= of_attention(block.multihead_attn, f"{here}.cross_attention")
            plain |= {f"{here}.network.wider": block.linear1, f"{here}.network.back": block.linear2}
            for number in range(3 if decoder else 2):
                plain[f"{here}.residuals.{number}.norm"] = getattr(block, f"norm{number + 1}")
        norm = getattr(layer, stack).norm
        plain |= {} if norm is None else {f"{stack}_norm": norm}
    return named | {
        f"{name}.{what}": (getattr(part, what), None)
        for name, part in plain.items()
        for what in ("weight", "bias")
    }


TABLES = (
    "source_input.embedding.table.weight",
    "target_input.embedding.table.weight",
    "out.weight",
)


@pytest.mark.verifies("course_lib.transformer.Transformer", against="PyTorch `nn.Transformer`")
@pytest.mark.parametrize("padded", [((0, 0), (0, 0)), ((0, 2), (0, 1)), ((3, 0), (2, 3))])
@pytest.mark.parametrize("final", [True, False])
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_model_is_that_of_pytorch(ledger, dtype, first, final, padded):
    layer = their_transformer(dtype, final, norm_first=first)
    model, layer = around(layer), layer.double()
    assert model.config.norm == ("pre" if first else "post")
    assert model.config.has_final_norm == final and not model.training
    named = dict(model.named_parameters())
    tables = [named[name].detach().double().requires_grad_() for name in TABLES]
    source, target = pair(*padded)
    ours, theirs = model(source, target), by_pytorch(model, layer, source, target, tables)
    assert ours.dtype == dtype
    ledger.compare(ours, theirs, within=10 * ROUNDING[dtype])
    mix = torch.randn(theirs.shape).double()
    mine = torch.autograd.grad(ours, named.values(), mix.to(dtype))
    mine = dict(zip(named, mine, strict=True))
    parameters = list(layer.parameters())
    slopes = torch.autograd.grad(theirs, [*tables, *parameters], mix)
    found = {id(p): slope for p, slope in zip([*tables, *parameters], slopes, strict=True)}
    wanted = dict(zip(TABLES, slopes, strict=False))
    for name, (parameter, third) in under_our_names(layer).items():
        slope = found[id(parameter)]
        wanted[name] = slope if third is None else slope.chunk(3)[third]
    assert wanted.keys() == mine.keys()
    for name, slope in wanted.items():
        scale = max(1.0, slope.abs().max().item())
        ledger.compare(
            mine[name] / scale, slope / scale, within=10 * ROUNDING[dtype], backward=True
        )


@pytest.mark.verifies(
    "course_lib.transformer.TransformerConfig",
    against="PyTorch `nn.Transformer`, over many configurations",
)
@settings(
    deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_models_of_any_size_are_those_of_pytorch(ledger, data):
    heads, d_head = data.draw(st.sampled_from([1, 2, 3, 4])), 2 * data.draw(st.integers(1, 3))
    layers = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
    torch.manual_seed(data.draw(st.integers(0, 1000)))
    layer = nn.Transformer(
        heads * d_head,
        heads,
        *layers,
        data.draw(st.integers(1, 9)),
        activation=data.draw(st.sampled_from(["relu", "gelu"])),
        layer_norm_eps=data.draw(st.sampled_from([1e-5, 0.1])),
        norm_first=data.draw(st.booleans()),
        batch_first=True,
    )
    layer = wild(layer).eval()
    model = around(layer)
    batch, source, target = (data.draw(st.integers(1, 4)) for _ in range(3))
    read, written = words(SOURCES, source, *[0] * batch), words(TARGETS, target, *[0] * batch)
    read[0, 1:] = PAD
    d_model = heads * d_head
    embedded = [
        F.embedding(tokens, table.weight) * d_model**0.5 + sinusoids(tokens.shape[1], d_model)
        for tokens, table in (
            (read, model.source_input.embedding.table),
            (written, model.target_input.embedding.table),
        )
    ]
    decoded = layer(
        *embedded,
        tgt_mask=torch.ones(target, target).triu(1) > 0,
        src_key_padding_mask=read == PAD,
        memory_key_padding_mask=read == PAD,
    )
    theirs = decoded @ model.out.weight.T
    scale = max(1.0, theirs.abs().max().item())
    ledger.compare(model(read, written) / scale, theirs / scale, within=1e-10)


@pytest.mark.verifies("course_lib.transformer.Memory", against="PyTorch `nn.TransformerEncoder`")
@pytest.mark.parametrize("first", [True, False])
def test_the_memory_is_what_pytorchs_encoder_makes_of_the_source(ledger, first):
    layer = their_transformer(norm_first=first)
    model, (source, _) = around(layer), pair()
    memory = model.encode(source)
    vectors = F.embedding(source, model.source_input.embedding.table.weight) * D_MODEL**0.5
    theirs = layer.encoder(vectors + sinusoids(SOURCE), src_key_padding_mask=source == PAD)
    ledger.compare(memory.vectors, theirs, within=1e-10)
    assert isinstance(memory, Memory) and memory._fields == ("vectors", "mask")
    assert torch.equal(memory.mask, (source != PAD)[:, None])


def test_all_that_the_layer_was_made_with_is_carried():
    layer = their_transformer(norm_first=True, activation="gelu", dropout=0.3, layer_norm_eps=0.25)
    layer.encoder.norm.eps, layer.decoder.layers[1].norm3.eps = 0.5, 0.75
    for training in (True, False):
        model = around(
            layer.train(training), positions="rotary", tie_embeddings=True, pad_id=3, max_length=7
        )
        assert all(part.training == training for part in model.modules())
    config = model.config
    wanted = sized(
        norm="pre", activation="gelu", dropout=0.3, final_norm=True,
        positions="rotary", tie_embeddings=True, pad_id=3, max_length=7,
    )  # fmt: skip
    assert config == wanted
    assert {p.dtype for p in model.parameters()} == {torch.float64}
    assert (model.encoder_norm.eps, model.decoder_norm.eps) == (0.5, 0.25)
    assert [r.norm.eps for r in model.decoder[1].residuals] == [0.25, 0.25, 0.75]
    named = dict(model.named_parameters())
    for name, (parameter, third) in under_our_names(layer).items():
        theirs = parameter if third is None else parameter.chunk(3)[third]
        assert torch.equal(named[name], theirs) and named[name].requires_grad
        named[name].data.zero_()  # copied, not shared
    assert layer.encoder.layers[0].linear1.weight.abs().min() > 0
    assert layer.decoder.norm.weight.abs().min() > 0


@pytest.mark.parametrize("positions", ENCODINGS)
def test_a_layer_is_carried_into_a_model_with_any_positions(positions):
    model = around(their_transformer(), positions=positions)
    assert model.config.positions == positions
    assert model(*pair()).isfinite().all()


# --- decoder-only ----------------------------------------------------------------------------


@pytest.mark.verifies(
    "course_lib.transformer.DecoderOnly",
    against="PyTorch `nn.TransformerEncoder` with a causal mask",
)
@pytest.mark.parametrize("padded", [(0, 0), (0, 2)])
@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_decoder_alone_is_pytorchs_encoder_that_cannot_look_ahead(ledger, dtype, norm, padded):
    layer = nn.TransformerEncoderLayer(D_MODEL, HEADS, D_FF, batch_first=True, norm_first=norm == "pre")  # fmt: skip
    final = nn.LayerNorm(D_MODEL) if norm == "pre" else None
    theirs = nn.TransformerEncoder(layer, DECODER, final, enable_nested_tensor=False)
    theirs = wild(theirs).eval()
    model = wild(DecoderOnly(sized(norm=norm)), dtype)
    with torch.no_grad():
        for block, carried in zip(theirs.layers, model.blocks, strict=True):
            for part, fields in {"wider": block.linear1, "back": block.linear2}.items():
                fields.load_state_dict(getattr(carried.network, part).state_dict())
            for number, ln in enumerate((block.norm1, block.norm2)):
                ln.load_state_dict(carried.residuals[number].norm.state_dict())
            own = carried.attention
            for what in ("weight", "bias"):
                packed = [getattr(getattr(own, part), what) for part in ("query", "key", "value")]
                getattr(block.self_attn, f"in_proj_{what}").copy_(torch.cat(packed))
                getattr(block.self_attn.out_proj, what).copy_(getattr(own.out, what))
        if final is not None:
            theirs.norm.load_state_dict(model.norm.state_dict())
    tokens = words(TARGETS, TARGET, *padded)
    table, out = (w.detach().double().requires_grad_() for w in (model.input.embedding.table.weight, model.out.weight))  # fmt: skip
    decoded = theirs(
        F.embedding(tokens, table) * D_MODEL**0.5 + sinusoids(TARGET),
        mask=torch.ones(TARGET, TARGET).triu(1) > 0,
        src_key_padding_mask=tokens == PAD,
    )
    ours, wanted = model(tokens), decoded @ out.T
    ledger.compare(ours, wanted, within=5 * ROUNDING[dtype])
    mix = torch.randn(wanted.shape).double()
    leaves = [model.input.embedding.table.weight, model.out.weight, model.blocks[0].network.wider.weight]  # fmt: skip
    mine = torch.autograd.grad(ours, leaves, mix.to(dtype))
    slopes = torch.autograd.grad(wanted, [table, out, theirs.layers[0].linear1.weight], mix)
    for one, slope in zip(mine, slopes, strict=True):
        scale = max(1.0, slope.abs().max().item())
        ledger.compare(one / scale, slope / scale, within=5 * ROUNDING[dtype], backward=True)


def gpt2(dtype=torch.float64):
    """GPT-2 with random weights, and ours with the same: their table is ours times √d, so nothing is tied."""
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=TARGETS,
        n_positions=20,
        n_embd=D_MODEL,
        n_layer=DECODER,
        n_head=HEADS,
        n_inner=D_FF,
        activation_function="gelu",
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=PAD,
    )
    theirs = wild(GPT2LMHeadModel(config)).eval()
    ours = DecoderOnly(
        sized(norm="pre", positions="learned", activation="gelu", tie_embeddings=False)
    ).double()
    state = {name: p.detach() for name, p in theirs.named_parameters()}
    made = {
        "input.embedding.table.weight": state["transformer.wte.weight"] / math.sqrt(D_MODEL),
        "input.positions.table": state["transformer.wpe.weight"],
        "out.weight": state["transformer.wte.weight"],
        "norm.weight": state["transformer.ln_f.weight"],
        "norm.bias": state["transformer.ln_f.bias"],
    }
    for place in range(DECODER):
        here, there = f"blocks.{place}", f"transformer.h.{place}"
        for what in ("weight", "bias"):
            packed = state[f"{there}.attn.c_attn.{what}"]  # stored as (in, out)
            thirds = packed.mT.chunk(3) if what == "weight" else packed.chunk(3)
            for part, third in zip(("query", "key", "value"), thirds, strict=True):
                made[f"{here}.attention.{part}.{what}"] = third
            for mine, hers in (
                ("attention.out", "attn.c_proj"),
                ("network.wider", "mlp.c_fc"),
                ("network.back", "mlp.c_proj"),
            ):
                tensor = state[f"{there}.{hers}.{what}"]
                made[f"{here}.{mine}.{what}"] = tensor.mT if what == "weight" else tensor
            for number in (0, 1):
                made[f"{here}.residuals.{number}.norm.{what}"] = state[f"{there}.ln_{number + 1}.{what}"]  # fmt: skip
    ours.load_state_dict(made)
    return ours.eval().to(dtype), theirs


@pytest.mark.verifies(
    "course_lib.transformer.DecoderOnly", against="Hugging Face `GPT2LMHeadModel`"
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_decoder_alone_is_gpt2(ledger, dtype):
    ours, theirs = gpt2(dtype)
    tokens = words(TARGETS, 8, 0, 0, 0)
    logits, wanted = ours(tokens), theirs(tokens).logits
    ledger.compare(logits, wanted, within=5 * ROUNDING[dtype])
    mix = torch.randn(wanted.shape).double()
    leaves = [ours.input.positions.table, ours.norm.weight, ours.blocks[0].network.back.bias]
    mine = torch.autograd.grad(logits, leaves, mix.to(dtype))
    hers = theirs.transformer
    slopes = torch.autograd.grad(wanted, [hers.wpe.weight, hers.ln_f.weight, hers.h[0].mlp.c_proj.bias], mix)  # fmt: skip
    for one, slope in zip(mine, slopes, strict=True):
        scale = max(1.0, slope.abs().max().item())
        ledger.compare(one / scale, slope / scale, within=5 * ROUNDING[dtype], backward=True)


# --- tying -----------------------------------------------------------------------------------


def untied(model):
    """The same numbers in tables of their own."""
    config = dataclasses.replace(model.config, tie_embeddings=False)
    copied = type(model)(config).double()
    copied.load_state_dict(model.state_dict())
    return copied


TIED = {"two": {}, "three": {"source_vocabulary": None, "target_vocabulary": SOURCES}}


@pytest.mark.verifies(
    "course_lib.transformer.Transformer", against="the same model with tables of their own"
)
@pytest.mark.parametrize("kind", TIED)
def test_the_slope_of_a_tied_table_is_the_sum_of_its_uses(ledger, kind):
    model = Transformer(sized(tie_embeddings=True, **TIED[kind])).double()
    apart, (source, target) = untied(model), pair()
    ours, theirs = model(source, target), apart(source, target)
    ledger.compare(ours, theirs, within=1e-12)
    mix = torch.randn(ours.shape).double()
    (mine,) = torch.autograd.grad(ours, [model.out.weight], mix)
    uses = [apart.out.weight, apart.target_input.embedding.table.weight]
    uses += [apart.source_input.embedding.table.weight] if kind == "three" else []
    assert len({id(p) for p in uses}) == len(uses)
    slopes = torch.autograd.grad(theirs, uses, mix)
    assert all(slope.abs().max() > 0.01 for slope in slopes)
    ledger.compare(mine, sum(slopes), within=1e-10, backward=True)


@pytest.mark.verifies(
    "course_lib.transformer.DecoderOnly", against="the same model with tables of their own"
)
def test_the_slope_of_a_tied_decoder_is_the_sum_of_both_uses(ledger):
    model = DecoderOnly(sized(tie_embeddings=True)).double()
    apart, tokens = untied(model), words(TARGETS, TARGET, 0, 1)
    ours, theirs = model(tokens), apart(tokens)
    mix = torch.randn(ours.shape).double()
    (mine,) = torch.autograd.grad(ours, [model.out.weight], mix)
    slopes = torch.autograd.grad(
        theirs, [apart.out.weight, apart.input.embedding.table.weight], mix
    )
    ledger.compare(mine, sum(slopes), within=1e-10, backward=True)


def tables(model):
    return [id(model.source_input.embedding.table.weight), id(model.target_input.embedding.table.weight), id(model.out.weight)]  # fmt: skip


def test_what_is_tied_is_one_parameter_and_stays_so():
    three = Transformer(sized(tie_embeddings=True, **TIED["three"]))
    two, none = Transformer(sized(tie_embeddings=True)), Transformer(sized())
    shared = Transformer(sized(source_vocabulary=None))
    both = Transformer(sized(tie_embeddings=True, source_vocabulary=TARGETS))  # alike by chance
    for model, count in ((three, 1), (two, 2), (none, 3), (shared, 3), (both, 2)):
        assert len(set(tables(model))) == count
        assert len(set(tables(copy.deepcopy(model)))) == count
        assert len(set(tables(copy.deepcopy(model).double().bfloat16()))) == count
        again = type(model)(model.config)
        wild(again, torch.float32).load_state_dict(model.state_dict())
        assert len(set(tables(again))) == count
    assert tables(two)[1] == tables(two)[2] and tables(both)[1] == tables(both)[2]
    assert three.out.weight.std().item() == pytest.approx(D_MODEL**-0.5, rel=0.3)
    assert shared.source_input.embedding.table.num_embeddings == TARGETS


# --- how many parameters ---------------------------------------------------------------------


def count(model):
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize("tie", [True, False])
@pytest.mark.parametrize("kv_heads", [1, 2, None])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_parameters_are_counted_by_hand(norm, kv_heads, tie):
    d, heads, inner, source, target = 8, 4, 20, 11, 9
    kv = d if kv_heads is None else 2 * kv_heads  # d / heads = 2 numbers a head
    config = TransformerConfig(
        target_vocabulary=target, source_vocabulary=source, d_model=d, num_heads=heads,
        num_kv_heads=kv_heads, encoder_layers=3, decoder_layers=2, d_ff=inner, norm=norm,
        tie_embeddings=tie,
    )  # fmt: skip
    attention = 2 * (d * d + d) + 2 * (d * kv + kv)
    network = d * inner + inner + inner * d + d
    reader, writer = attention + network + 2 * 2 * d, 2 * attention + network + 3 * 2 * d
    final = 2 * d if norm == "pre" else 0
    ends = target * d if tie else 2 * target * d
    assert count(Transformer(config)) == source * d + ends + 3 * reader + 2 * writer + 2 * final
    assert count(DecoderOnly(config)) == ends + 2 * reader + final


@pytest.mark.parametrize(
    ("positions", "model", "added"),
    [
        ("none", 0, 0),
        ("sinusoidal", 0, 0),
        ("learned", 2 * 20 * D_MODEL, 20 * D_MODEL),
        ("shaw", 3 * 2 * 33 * 4, 2 * 2 * 33 * 4),  # per block, vectors of a head for 33 distances
        ("t5", 3 * 32 * HEADS, 2 * 32 * HEADS),
        ("rotary", 0, 0),
        ("alibi", 0, 0),
    ],
)
def test_what_positions_add(positions, model, added):
    config = sized(positions=positions)
    assert count(Transformer(config)) - count(Transformer(sized(positions="none"))) == model
    assert count(DecoderOnly(config)) - count(DecoderOnly(sized(positions="none"))) == added


def test_the_defaults_are_the_base_model_of_the_paper():
    """Table 3: N = 6, d_model = 512, d_ff = 2048, h = 8, P_drop = 0.1. It says 65 · 10⁶ parameters, for
    about 37,000 tokens in one table; counted, they are 63."""
    config = TransformerConfig(target_vocabulary=37000, tie_embeddings=True)
    with torch.device("meta"):
        model = Transformer(config)
    assert round(count(model) / 1e6) == 63
    assert (config.norm, config.positions, config.has_final_norm) == ("post", "sinusoidal", False)
    assert (config.dropout, config.d_head, config.activation, config.pad_id) == (0.1, 64, "relu", 0)
    assert len(model.encoder) == len(model.decoder) == 6
    assert model.decoder[0].network.wider.out_features == 2048


@pytest.mark.parametrize(("norm", "final", "has"), [("pre", None, True), ("post", None, False), ("pre", False, False), ("post", True, True)])  # fmt: skip
def test_a_final_norm_where_it_is_needed_or_wanted(norm, final, has):
    config = sized(norm=norm, final_norm=final)
    assert config.has_final_norm is has
    model, decoder = Transformer(config), DecoderOnly(config)
    assert {isinstance(n, LayerNorm) for n in (model.encoder_norm, model.decoder_norm, decoder.norm)} == {has}  # fmt: skip
    assert model.encoder_norm is not model.decoder_norm
    source, target = pair()
    if has:
        vectors = model.encode(source).vectors
        torch.testing.assert_close(vectors.mean(-1), torch.zeros(BATCH, SOURCE), atol=1e-5, rtol=0)


def test_every_choice_reaches_every_block():
    config = sized(num_kv_heads=1, dropout=0.3, activation="gelu", norm="pre", positions="t5")
    model, decoder = Transformer(config), DecoderOnly(config)
    for block in [*model.encoder, *model.decoder, *decoder.blocks]:
        own = getattr(block, "self_attention", None) or block.attention
        assert (own.num_heads, own.num_kv_heads, own.dropout) == (HEADS, 1, 0.3)
        assert (block.network.activation, block.network.dropout.p) == ("gelu", 0.3)
        assert {(r.placement, r.dropout.p) for r in block.residuals} == {("pre", 0.3)}
    assert {b.attention.positions.sorting["bidirectional"] for b in model.encoder} == {True}
    assert {b.self_attention.positions.sorting["bidirectional"] for b in model.decoder} == {False}
    assert {b.attention.positions.sorting["bidirectional"] for b in decoder.blocks} == {False}
    places = [*model.decoder[0].modules(), *model.decoder[1].modules()]
    assert len({id(p) for p in places if type(p).__name__ == "T5RelativeBias"}) == DECODER
    assert [len(model.encoder), len(model.decoder), len(decoder.blocks)] == [ENCODER, DECODER, DECODER]  # fmt: skip
    for part in (model.source_input, model.target_input, decoder.input):
        assert part.dropout.p == 0.3


def test_matrices_start_as_glorot_and_bengio_drew_them():
    model = Transformer(sized(d_model=60, d_ff=240))
    for layer in model.modules():
        if isinstance(layer, nn.Linear):
            bound = math.sqrt(6 / (layer.in_features + layer.out_features))
            assert 0.9 * bound < layer.weight.abs().max() <= bound
            assert abs(layer.weight.std() * math.sqrt(3) / bound - 1) < 0.1
            assert layer.bias is None or not layer.bias.any()
    assert model.out.bias is None


# --- properties ------------------------------------------------------------------------------

CHOICES = [
    *({"positions": name, "norm": "pre"} for name in ENCODINGS),
    {"positions": "sinusoidal", "norm": "post", "num_kv_heads": 1},
    {"positions": "t5", "norm": "post", "tie_embeddings": True},
]


def named(choices):
    return "-".join(map(str, choices.values()))


def near(ours, theirs):
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)


@pytest.mark.verifies(
    "course_lib.transformer.Transformer", against="later tokens changed: earlier logits stay"
)
@pytest.mark.verifies(
    "course_lib.transformer.DecoderOnly", against="later tokens changed: earlier logits stay"
)
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("choices", CHOICES, ids=named)
def test_the_future_never_changes_the_past(ledger, choices, training):
    model = wild(Transformer(sized(**choices))).train(training)
    alone = wild(DecoderOnly(sized(**choices))).train(training)
    source, target = pair(target=(0, 0))
    plain, plain_alone = model(source, target), alone(target)
    for now in range(TARGET - 1):
        other = target.clone()
        other[:, now + 1 :] = 1 + other[:, now + 1 :] % (
            TARGETS - 1
        )  # each another token, none padding
        for before, after in ((plain, model(source, other)), (plain_alone, alone(other))):
            near(after[:, : now + 1], before[:, : now + 1])
            assert (after[:, now + 1 :] - before[:, now + 1 :]).abs().max() > 1e-3
    for row in (0, 1):  # each sequence, and each word of its own source, matters
        other = source.clone()
        other[row, 1] = 1 + other[row, 1] % (SOURCES - 1)
        changed = (model(other, target) - plain).abs().amax((1, 2))
        assert changed[row] > 1e-4 and changed[1 - row] < 1e-10
    ledger.holds()


@pytest.mark.verifies(
    "course_lib.transformer.Transformer", against="longer padding of source and target"
)
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("choices", CHOICES, ids=named)
def test_longer_padding_changes_no_real_logits(ledger, choices, training):
    model = wild(Transformer(sized(**choices))).train(training)
    source, target = pair(source=(0, 2), target=(0, 1))
    plain, real = model(source, target), target != PAD
    for room in (1, 5):
        near(model(F.pad(source, (0, room)), target), plain)
        near(model(source, F.pad(target, (0, room)))[:, :TARGET][real], plain[real])
        near(
            model(F.pad(source, (0, room)), F.pad(target, (0, room)))[:, :TARGET][real], plain[real]
        )
    near(model(source[1:, :-2], target[1:, :-1]), plain[1:, :-1])  # as if it were alone
    ledger.holds()


@pytest.mark.verifies(
    "course_lib.transformer.DecoderOnly", against="longer padding, behind and in front"
)
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("choices", CHOICES, ids=named)
def test_padding_changes_nothing_in_a_decoder_alone(ledger, choices, training):
    model = wild(DecoderOnly(sized(**choices))).train(training)
    tokens = words(TARGETS, TARGET, 0, 0)
    plain = model(tokens)
    near(model(F.pad(tokens, (0, 3)))[:, :TARGET], plain)
    if choices["positions"] not in ("sinusoidal", "learned"):  # these count from the start
        near(model(F.pad(tokens, (3, 0)))[:, 3:], plain)
    ledger.holds()


@pytest.mark.parametrize("pad_id", [0, 4])
def test_padding_is_what_the_configuration_says(pad_id):
    model = wild(Transformer(sized(pad_id=pad_id)))
    source, target = words(SOURCES, SOURCE, 0, 0), words(TARGETS, TARGET, 0, 0)
    source, target = source.where(source != 4, 5), target.where(target != 4, 5)
    near(model(F.pad(source, (0, 2), value=pad_id), target), model(source, target))
    other = F.pad(source, (0, 2), value=4 - pad_id)
    assert (model(other, target) - model(source, target)).abs().max() > 1e-4
    alone = wild(DecoderOnly(sized(pad_id=pad_id)))
    hidden = target.clone()
    hidden[:, 1] = pad_id
    with record_attention(alone) as maps:
        alone(hidden)
    assert (maps["blocks.1.attention"][0][..., 1] == 0).all()


@pytest.mark.parametrize("choices", CHOICES, ids=named)
def test_a_shuffled_batch_gives_shuffled_logits(choices):
    model = wild(Transformer(sized(**choices)))
    source, target = words(SOURCES, SOURCE, 0, 2, 4), words(TARGETS, TARGET, 1, 0, 3)
    order = torch.tensor([2, 0, 1])
    near(model(source[order], target[order]), model(source, target)[order])
    alone = wild(DecoderOnly(sized(**choices)))
    near(alone(target[order]), alone(target)[order])


@pytest.mark.parametrize("positions", ENCODINGS)
def test_all_encodings_but_none_tell_the_order_of_the_source(positions):
    model = wild(Transformer(sized(positions=positions)))
    source, target = pair(source=(0, 0))
    order = torch.tensor([1, 0, 3, 2, 5, 4])
    gap = (model(source[:, order], target) - model(source, target)).abs().max()
    assert gap < 1e-10 if positions == "none" else gap > 1e-5


def test_a_source_of_padding_alone_and_padding_at_the_start_are_finite():
    for positions in ENCODINGS:
        model = wild(Transformer(sized(positions=positions)))
        source = torch.tensor([[PAD] * 3, [PAD, 4, 2]])
        logits = model(source, torch.tensor([[PAD, 3], [1, PAD]]))
        logits.square().sum().backward()
        assert logits.isfinite().all()
        assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


# --- dropout, precision, copies --------------------------------------------------------------


def test_models_drop_in_training_alone_and_the_input_too():
    config = sized(dropout=0.2)
    for model, plain, inputs in (
        (Transformer(config), Transformer(sized()), pair()),
        (DecoderOnly(config), DecoderOnly(sized()), pair()[1:]),
    ):
        plain.load_state_dict(model.state_dict())
        assert not torch.equal(model(*inputs), model(*inputs))
        assert torch.equal(model.eval()(*inputs), plain(*inputs))
    part = Transformer(sized(dropout=0.5, positions="learned")).source_input.double()
    with torch.no_grad():
        part.positions.table.fill_(3.0)
        part.embedding.table.weight.fill_(1.0)
    out = part(source=words(SOURCES, 20, *[0] * 50))
    assert set(out.detach().unique().round(decimals=6).tolist()) == {0.0, round(2 * (3 + math.sqrt(D_MODEL)), 6)}  # fmt: skip
    assert (out == 0).double().mean().item() == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize("positions", ENCODINGS)
def test_models_run_in_half_precision_and_under_autocast(positions):
    config = sized(positions=positions, norm="pre", num_kv_heads=1)
    for made, inputs in ((Transformer, pair()), (DecoderOnly, pair()[1:])):
        model = made(config)
        plain = model(*inputs)
        with torch.autocast("cpu", torch.bfloat16):
            mixed = model(*inputs)
        F.cross_entropy(mixed.float().flatten(0, 1), inputs[-1].flatten()).backward()
        assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)
        half = copy.deepcopy(model).bfloat16()(*inputs)
        assert half.dtype == mixed.dtype == torch.bfloat16
        for logits in (half, mixed):
            torch.testing.assert_close(logits.float(), plain, rtol=0, atol=0.25)


@pytest.mark.parametrize("positions", ENCODINGS)
def test_a_copy_and_what_was_stored_give_the_same(positions):
    config = sized(positions=positions, tie_embeddings=True)
    for made, inputs in ((Transformer, pair()), (DecoderOnly, pair()[1:])):
        model = wild(made(config))
        logits = model(*inputs)
        again = made(config).double()
        again.load_state_dict(model.state_dict())
        twin = copy.deepcopy(model)
        assert torch.equal(again(*inputs), logits) and torch.equal(twin(*inputs), logits)
        wild(twin)
        assert torch.equal(model(*inputs), logits)
        assert logits.dtype == torch.float64 and logits.shape == (BATCH, TARGET, TARGETS)


def test_whole_numbers_of_32_bits_are_tokens_too():
    model, (source, target) = Transformer(sized()), pair()
    assert torch.equal(model(source.int(), target.int()), model(source, target))


def test_a_configuration_is_settled():
    config = sized()
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.d_model = 3
    with pytest.raises(TypeError):
        TransformerConfig(9)
    assert config == sized() and hash(config) == hash(sized())


# --- attention that is recorded --------------------------------------------------------------


def test_the_weights_of_a_model_are_target_by_source():
    model, (source, target) = Transformer(sized(norm="pre")), pair()
    plain = model(source, target)
    with record_attention(model) as maps:
        torch.testing.assert_close(model(source, target), plain)
    shapes = {name: [tuple(one.shape) for one in recorded] for name, recorded in maps.items()}
    assert shapes == {
        "encoder.0.attention": [(BATCH, HEADS, SOURCE, SOURCE)],
        "decoder.0.self_attention": [(BATCH, HEADS, TARGET, TARGET)],
        "decoder.0.cross_attention": [(BATCH, HEADS, TARGET, SOURCE)],
        "decoder.1.self_attention": [(BATCH, HEADS, TARGET, TARGET)],
        "decoder.1.cross_attention": [(BATCH, HEADS, TARGET, SOURCE)],
    }
    for name, (weights,) in maps.items():
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))
        padded = target if "self" in name else source
        assert (weights.transpose(1, 3)[padded == PAD] == 0).all()
        if "self" in name:
            assert (weights.triu(1) == 0).all()


def test_the_weights_of_a_decoder_alone_are_recorded_with_a_cache_too():
    model, tokens = DecoderOnly(sized()), words(TARGETS, TARGET, 0, 0)
    cache = model.new_cache()
    with record_attention(model) as maps:
        model(tokens[:, :3], cache=cache)
        model(tokens[:, 3:], cache=cache)
    assert [tuple(w.shape) for w in maps["blocks.0.attention"]] == [(BATCH, HEADS, 3, 3), (BATCH, HEADS, 2, 5)]  # fmt: skip


# --- bad input -------------------------------------------------------------------------------

S, T = torch.tensor([[3, 4, 5, 0], [6, 7, 8, 10]]), torch.tensor([[1, 2, 3], [1, 4, 0]])
MODEL, ALONE = Transformer(sized()), DecoderOnly(sized())
SHORT, SHORT_ALONE = (made(sized(positions="learned", max_length=6)) for made in (Transformer, DecoderOnly))  # fmt: skip
LONG = torch.ones(2, 7, dtype=torch.int64)
VECTORS, REAL = torch.zeros(2, 4, 12), torch.ones(2, 1, 4) > 0
WHOLE = r"must be whole numbers \(int64 or int32\) of shape \(batch, length\)"


@pytest.mark.usefixtures("without_annotations")
@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: TokenEmbedding(0, 3), r"vocabulary=0 is below 1"),
        (lambda: TokenEmbedding(3, 0), r"d_model=0 is below 1"),
        (lambda: TokenEmbedding(3, 2)(torch.tensor([[3]])), r"tokens holds 3; the vocabulary has 3 tokens, 0 to 2"),
        (lambda: TokenEmbedding(3, 2)(torch.tensor([[-1]])), r"tokens holds -1"),
        (lambda: Transformer({}), r"config is a dict; it must be a TransformerConfig, e\.g\. TransformerConfig\(target_vocabulary=1000\)"),
        (lambda: DecoderOnly(TransformerConfig), r"config is a type; it must be a TransformerConfig"),
        (lambda: MODEL(S + 1, T), r"source holds 11; the vocabulary has 11 tokens, 0 to 10"),
        (lambda: MODEL(S, T + 5), r"target holds 9; the vocabulary has 9 tokens, 0 to 8"),
        (lambda: ALONE(T + 5), r"tokens holds 9; the vocabulary has 9 tokens, 0 to 8"),
        (lambda: MODEL(S - 1, T), r"source holds -1; the vocabulary"),
        (lambda: MODEL(S, T - 1), r"target holds -1; the vocabulary"),
        (lambda: ALONE(T - 1), r"tokens holds -1; the vocabulary"),
        (lambda: MODEL(S.float(), T), rf"source has .* dtype float32; it {WHOLE}"),
        (lambda: MODEL(S, T.float()), rf"target has .* dtype float32; it {WHOLE}"),
        (lambda: MODEL(S > 2, T), rf"source has .* dtype bool; it {WHOLE}"),
        (lambda: ALONE(T.double()), rf"tokens has .* dtype float64; it {WHOLE}"),
        (lambda: MODEL(S[0], T), rf"source has shape \(4,\) .*; it {WHOLE}"),
        (lambda: MODEL(S, T[0]), rf"target has shape \(3,\) .*; it {WHOLE}"),
        (lambda: MODEL(S, T[0, 0]), rf"target has shape \(\) .*; it {WHOLE}"),
        (lambda: ALONE(T[0]), rf"tokens has shape \(3,\) .*; it {WHOLE}"),
        (lambda: MODEL(S[:0], T[:0]), r"source has shape \(0, 4\) .* at least one"),
        (lambda: MODEL(S, T[:, :0]), r"target has shape \(2, 0\) .* at least one"),
        (lambda: ALONE(T[:0]), r"tokens has shape \(0, 3\) .* at least one"),
        (lambda: MODEL([[1]], T), r"source is a list; a tensor is needed"),
        (lambda: MODEL(S, [[1]]), r"target is a list; a tensor is needed"),
        (lambda: ALONE(None), r"tokens is a NoneType; a tensor is needed"),
        (lambda: MODEL(S, T[:1]), r"target has 1 sequences, but the source had 2; they belong together pair by pair"),
        (lambda: MODEL(S[:1], T), r"target has 2 sequences, but the source had 1"),
        (lambda: SHORT(LONG, T), r"source reaches position 6, but the model was made with max_length=6: learned positions end at 5"),
        (lambda: SHORT(S, LONG), r"target reaches position 6, but the model was made with max_length=6"),
        (lambda: SHORT_ALONE(LONG), r"tokens reaches position 6, but the model was made with max_length=6"),
        (lambda: MODEL.decode(T, None), r"memory is a NoneType; it must be a Memory\(vectors, mask\), as encode returns"),
        (lambda: MODEL.decode(T, VECTORS), r"memory is a Tensor; it must be a Memory\(vectors, mask\)"),
        (lambda: MODEL.decode(T, Memory(1, 2)), r"memory\.vectors is a int; a tensor is needed"),
        (lambda: MODEL.decode(T, Memory(VECTORS[..., :5], REAL)), r"memory\.vectors has shape \(2, 4, 5\); it must be \(batch, length, 12\)"),
        (lambda: MODEL.decode(T, Memory(VECTORS[0], REAL)), r"memory\.vectors has shape \(4, 12\); it must be"),
        (lambda: MODEL.decode(T, Memory(VECTORS.double(), REAL)), r"memory has dtype float64, but the parameters of the block have float32"),
        (lambda: MODEL.decode(T, Memory(VECTORS, None)), r"memory\.mask is a NoneType; it must be boolean of shape \(batch, 1, source\) = \(2, 1, 4\)"),
        (lambda: MODEL.decode(T, Memory(VECTORS, REAL[:, 0])), r"memory\.mask has shape \(2, 4\) and dtype bool; it must be boolean of shape"),
        (lambda: MODEL.decode(T, Memory(VECTORS, REAL.float())), r"memory\.mask has shape \(2, 1, 4\) and dtype float32; it must be boolean"),
        (lambda: MODEL.decode(T, Memory(VECTORS, REAL[..., :3])), r"memory\.mask has shape \(2, 1, 3\)"),
        (lambda: MODEL.decode(T[:1], Memory(VECTORS, REAL)), r"target has 1 sequences, but the source had 2"),
        (lambda: MODEL.decode(T, Memory(VECTORS, REAL), cache=KeyValueCache()), r"cache is a KeyValueCache; it must be what model\.new_cache\(\) returns"),
        (lambda: ALONE(T, cache={}), r"cache is a dict; it must be what model\.new_cache\(\) returns"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_by_name(call, says):
    with pytest.raises(ValueError, match=says):
        call()


@pytest.mark.usefixtures("without_annotations")
@pytest.mark.parametrize(
    ("choices", "says"),
    [
        ({"target_vocabulary": 0}, r"target_vocabulary=0 is below 1"),
        ({"target_vocabulary": None}, r"target_vocabulary=None is a NoneType"),
        ({"source_vocabulary": 0}, r"source_vocabulary=0 is below 1"),
        ({"source_vocabulary": 2.5}, r"source_vocabulary=2\.5 is a float"),
        ({"d_model": 0}, r"d_model=0 is below 1"),
        ({"d_model": 13}, r"d_model=13 is not divisible by num_heads=3; try num_heads=1 or 13"),
        ({"d_model": "12"}, r"d_model='12' is a str; it must be a whole number"),
        ({"num_heads": 0}, r"num_heads=0 is below 1"),
        ({"num_heads": 5}, r"d_model=12 is not divisible by num_heads=5; try num_heads=4 or 6"),
        ({"num_kv_heads": 2}, r"num_heads=3 is not divisible by num_kv_heads=2; try num_kv_heads=1 or 3"),
        ({"num_kv_heads": 0}, r"num_kv_heads=0 is below 1"),
        ({"encoder_layers": 0}, r"encoder_layers=0 is below 1"),
        ({"decoder_layers": 1.0}, r"decoder_layers=1\.0 is a float"),
        ({"d_ff": -1}, r"d_ff=-1 is below 1"),
        ({"dropout": 1}, r"dropout=1 must be a number from 0 up to but not including 1"),
        ({"dropout": -0.1}, r"dropout=-0\.1 must be"),
        ({"norm": "middle"}, r"norm='middle' is unknown; it must be one of 'pre', 'post'\."),
        ({"norm": "Pre"}, r"Did you mean 'pre'\?"),
        ({"final_norm": "yes"}, r"final_norm='yes' must be one of None, True, False"),
        ({"positions": "rotery"}, r"positions='rotery' is unknown; .*Did you mean 'rotary'\?"),
        ({"positions": None}, r"positions=None is unknown; it must be one of 'none',"),
        ({"max_length": 0}, r"max_length=0 is below 1"),
        ({"tie_embeddings": "no"}, r"tie_embeddings='no' must be one of True, False"),
        ({"tie_embeddings": None}, r"tie_embeddings=None must be one of True, False"),
        ({"activation": "swish"}, r"activation='swish' is unknown; it must be one of 'relu', 'gelu'\."),
        ({"pad_id": -1}, r"pad_id=-1 is below 0"),
        ({"pad_id": 9}, r"pad_id=9 must be below target_vocabulary=9"),
        ({"pad_id": 11, "target_vocabulary": 12}, r"pad_id=11 must be below source_vocabulary=11"),
        ({"pad_id": None}, r"pad_id=None is a NoneType"),
        ({"d_model": 9}, r"d_model=9 is odd, but positions='sinusoidal' needs pairs of numbers; use an even d_model"),
        ({"d_model": 9, "positions": "rotary"}, r"d_model=9 and num_heads=3 make heads of 3 numbers, but positions='rotary' turns pairs"),
        ({"num_heads": 4, "positions": "rotary"}, r"d_model=12 and num_heads=4 make heads of 3 numbers, but positions='rotary' turns pairs"),
    ],
)  # fmt: skip
def test_a_configuration_that_cannot_work_is_refused(choices, says):
    with pytest.raises(ValueError, match=says):
        sized(**choices)


def test_odd_sizes_serve_where_nothing_is_paired():
    for positions in ("none", "learned", "shaw", "t5", "alibi"):
        assert Transformer(sized(d_model=9, positions=positions))(S, T).shape == (2, 3, TARGETS)
    assert sized(pad_id=8).pad_id == 8 and sized(source_vocabulary=None, pad_id=8).pad_id == 8


def stack(kind, layers, norm=None, **choices):
    layer, whole = {
        "encoder": (nn.TransformerEncoderLayer, nn.TransformerEncoder),
        "decoder": (nn.TransformerDecoderLayer, nn.TransformerDecoder),
    }[kind]
    choices = {"nhead": 3, "dim_feedforward": 7, "batch_first": True} | choices
    return whole(layer(12, **choices), layers, norm)


def composed(encoder=None, decoder=None):
    return nn.Transformer(
        12, 3, batch_first=True,
        custom_encoder=stack("encoder", 1) if encoder is None else encoder,
        custom_decoder=stack("decoder", 2) if decoder is None else decoder,
    )  # fmt: skip


def carried(layer, **choices):
    return Transformer.from_torch(layer, target_vocabulary=9, **choices)


@pytest.mark.usefixtures("without_annotations")
@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: carried(nn.Linear(2, 2)), r"layer is a Linear; it must be an nn\.Transformer"),
        (lambda: carried(nn.TransformerEncoderLayer(12, 3)), r"layer is a TransformerEncoderLayer; it must be an nn\.Transformer"),
        (lambda: carried(nn.Transformer), r"layer is a type"),
        (lambda: carried(nn.Transformer(12, 3, 1, 1, 7, bias=False)), r"layer was made with bias=False; blocks of this course have biases"),
        (lambda: carried(nn.Transformer(12, 3, 1, 1, 7, activation=torch.tanh)), r"layer has the activation .*; it must be relu or gelu"),
        (lambda: carried(nn.Transformer(12, 3, 1, 1, 7, activation=nn.GELU("tanh"))), r"it must be relu or gelu, exact"),
        (lambda: carried(composed(encoder=nn.Linear(2, 2))), r"layer\.encoder is a Linear; it must be an nn\.TransformerEncoder"),
        (lambda: carried(composed(decoder=nn.Linear(2, 2))), r"layer\.decoder is a Linear; it must be an nn\.TransformerDecoder"),
        (lambda: carried(composed(decoder=stack("decoder", 2, nhead=4))), r"layer\.encoder\.layers\[0\] has num_heads=3, but layer\.decoder\.layers\[0\] has num_heads=4; all layers must be alike"),
        (lambda: carried(composed(decoder=stack("decoder", 2, activation="gelu"))), r"activation='relu', but layer\.decoder\.layers\[0\] has activation='gelu'"),
        (lambda: carried(composed(decoder=stack("decoder", 2, norm_first=True))), r"has norm='post', but .* has norm='pre'"),
        (lambda: carried(composed(decoder=stack("decoder", 2, dropout=0.3))), r"has dropout=0\.1, but .* has dropout=0\.3"),
        (lambda: carried(composed(decoder=stack("decoder", 2, dim_feedforward=8))), r"has d_ff=7, but .* has d_ff=8"),
        (lambda: carried(composed(encoder=stack("encoder", 1, nn.LayerNorm(12)))), r"layer\.decoder\.norm is None; both stacks must end in a norm, or neither"),
        (lambda: carried(composed(decoder=stack("decoder", 1, nn.LayerNorm(12)))), r"layer\.encoder\.norm is None; both stacks"),
        (lambda: carried(composed(encoder=stack("encoder", 1, nn.RMSNorm(12)))), r"layer\.encoder\.norm is RMSNorm.*; it must be an nn\.LayerNorm"),
        (lambda: carried(composed(decoder=stack("decoder", 1, nn.LayerNorm(12, bias=False)))), r"layer\.decoder\.norm is LayerNorm.*with weights and biases, or None"),
        (lambda: carried(composed(), num_heads=1), r"num_heads is no choice here: layer settles it; choices are positions, max_length, tie_embeddings, pad_id"),
        (lambda: carried(composed(), norm="pre"), r"norm is no choice here: layer settles it"),
        (lambda: carried(composed(), encoder_layers=3), r"encoder_layers is no choice here"),
        (lambda: carried(composed(), position="alibi"), r"position is no choice; choices are positions"),
        (lambda: carried(composed(), positions="none", pad_id=9), r"pad_id=9 must be below target_vocabulary=9"),
    ],
)  # fmt: skip
def test_what_cannot_be_carried_is_refused(call, says):
    with pytest.raises(ValueError, match=says):
        call()
