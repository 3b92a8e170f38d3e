"""The Transformer against `nn.Transformer`, with its weights converted."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

from course_lib.convert import from_torch
from course_lib.positions import ENCODINGS
from course_lib.transformer import Memory
from tests.helpers.blocks import norms
from tests.helpers.ids import encoding_id
from tests.helpers.transformer import (
    D_FF,
    D_MODEL,
    DECODER,
    DTYPES,
    ENCODER,
    HEADS,
    PAD,
    ROUNDING,
    SOURCE,
    SOURCES,
    TARGETS,
    pair,
    randomized,
    sinusoids,
    sized,
    words,
)

# PyTorch says so of every model that normalises first.
pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")


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
    return randomized(nn.Transformer(D_MODEL, HEADS, *layers, **choices)).to(dtype).eval()


def around(layer, **choices):
    """Our model around theirs, with embeddings and an output layer that are not as they start."""
    sizes = {"target_vocabulary": TARGETS, "source_vocabulary": SOURCES}
    model = from_torch(layer, **(sizes | choices))
    for part in (model.source_embedding, model.target_embedding, model.lm_head):
        randomized(part, layer.encoder.layers[0].linear1.weight.dtype)
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
        for third, part in enumerate(("q_proj", "k_proj", "v_proj")):
            named[f"{prefix}.{part}.{what}"] = (getattr(layer, f"in_proj_{what}"), third)
        named[f"{prefix}.out_proj.{what}"] = (getattr(layer.out_proj, what), None)
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
            plain |= {
                f"{here}.feed_forward.up_proj": block.linear1,
                f"{here}.feed_forward.down_proj": block.linear2,
            }
            for number in (1, 2, 3) if decoder else (1, 2):
                plain[f"{here}.norm{number}"] = getattr(block, f"norm{number}")
        norm = getattr(layer, stack).norm
        plain |= {} if norm is None else {f"{stack}_norm": norm}
    return named | {
        f"{name}.{what}": (getattr(part, what), None)
        for name, part in plain.items()
        for what in ("weight", "bias")
    }


TABLES = (
    "source_embedding.token_embedding.weight",
    "target_embedding.token_embedding.weight",
    "lm_head.weight",
)


@pytest.mark.verifies("course_lib.transformer.Transformer", against="PyTorch `nn.Transformer`")
@pytest.mark.verifies("course_lib.convert.from_torch", against="PyTorch `nn.Transformer`")
@pytest.mark.parametrize("padded", [((0, 0), (0, 0)), ((0, 2), (0, 1)), ((3, 0), (2, 3))])
@pytest.mark.parametrize("final", [True, False])
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
def test_transformer_and_gradients_equal_pytorch(ledger, dtype, first, final, padded):
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
def test_transformers_of_any_size_equal_pytorch(ledger, data):
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
    layer = randomized(layer).eval()
    model = around(layer)
    batch, source, target = (data.draw(st.integers(1, 4)) for _ in range(3))
    read, written = words(SOURCES, source, *[0] * batch), words(TARGETS, target, *[0] * batch)
    read[0, 1:] = PAD
    d_model = heads * d_head
    embedded = [
        F.embedding(tokens, table.weight) * d_model**0.5 + sinusoids(tokens.shape[1], d_model)
        for tokens, table in (
            (read, model.source_embedding.token_embedding),
            (written, model.target_embedding.token_embedding),
        )
    ]
    decoded = layer(
        *embedded,
        tgt_mask=torch.ones(target, target).triu(1) > 0,
        src_key_padding_mask=read == PAD,
        memory_key_padding_mask=read == PAD,
    )
    theirs = decoded @ model.lm_head.weight.T
    scale = max(1.0, theirs.abs().max().item())
    ledger.compare(model(read, written) / scale, theirs / scale, within=1e-10)


@pytest.mark.verifies("course_lib.transformer.Memory", against="PyTorch `nn.TransformerEncoder`")
@pytest.mark.parametrize("first", [True, False])
def test_encoder_memory_equals_pytorch(ledger, first):
    layer = their_transformer(norm_first=first)
    model, (source, _) = around(layer), pair()
    memory = model.encode(source)
    vectors = F.embedding(source, model.source_embedding.token_embedding.weight) * D_MODEL**0.5
    theirs = layer.encoder(vectors + sinusoids(SOURCE), src_key_padding_mask=source == PAD)
    ledger.compare(memory.vectors, theirs, within=1e-10)
    assert isinstance(memory, Memory) and memory._fields == ("vectors", "mask")
    assert torch.equal(memory.mask, (source != PAD)[:, None])


def test_from_torch_copies_every_setting():
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
    assert [norm.eps for norm in norms(model.decoder[1])] == [0.25, 0.25, 0.75]
    named = dict(model.named_parameters())
    for name, (parameter, third) in under_our_names(layer).items():
        theirs = parameter if third is None else parameter.chunk(3)[third]
        assert torch.equal(named[name], theirs) and named[name].requires_grad
        named[name].data.zero_()  # copied, not shared
    assert layer.encoder.layers[0].linear1.weight.abs().min() > 0
    assert layer.decoder.norm.weight.abs().min() > 0


@pytest.mark.parametrize("positions", ENCODINGS, ids=encoding_id)
def test_from_torch_with_each_encoding(positions):
    model = around(their_transformer(), positions=positions)
    assert model.config.positions == positions
    assert model(*pair()).isfinite().all()


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
    return from_torch(layer, target_vocabulary=9, **choices)
