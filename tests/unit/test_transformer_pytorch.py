"""The Transformer against `nn.Transformer`, with its weights converted."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from course_lib.transformer import Memory
from course_lib.transformer.convert import from_torch
from tests.helpers.layers import norms
from tests.helpers.transformer import (
    D_FF,
    D_MODEL,
    DECODER,
    ENCODER,
    HEADS,
    PAD,
    ROUNDING,
    SOURCE,
    SOURCES,
    TARGETS,
    compare,
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
    choices = {"dim_feedforward": D_FF, "batch_first": True, "dropout": 0.2} | choices
    if not final:
        encoder = nn.TransformerEncoderLayer(D_MODEL, HEADS, **choices)
        decoder = nn.TransformerDecoderLayer(D_MODEL, HEADS, **choices)
        choices |= {
            "custom_encoder": nn.TransformerEncoder(encoder, ENCODER, enable_nested_tensor=False),
            "custom_decoder": nn.TransformerDecoder(decoder, DECODER),
        }
    layer = nn.Transformer(D_MODEL, HEADS, ENCODER, DECODER, **choices)
    return randomized(layer).to(dtype).eval()


def tables(model):
    """The matrices that PyTorch's layer lacks."""
    parts = (model.source_embedding, model.target_embedding, model.lm_head)
    return [getattr(part, "token_embedding", part).weight for part in parts]


def around(layer, **choices):
    """Our model around theirs, with embeddings and an output layer that are not as they start."""
    sizes = {"target_vocabulary": TARGETS, "source_vocabulary": SOURCES}
    model = from_torch(layer, **(sizes | choices))
    for part in (model.source_embedding, model.target_embedding, model.lm_head):
        randomized(part, layer.encoder.layers[0].linear1.weight.dtype)
    return model


def embedded(tokens, table):
    d_model = table.shape[1]
    return F.embedding(tokens, table) * d_model**0.5 + sinusoids(tokens.shape[1], d_model)


def by_pytorch(layer, source, target, tables):
    """Their stacks between our tables, with PyTorch's masks: True hides."""
    read, written, out = tables
    length = target.shape[1]
    decoded = layer(
        embedded(source, read),
        embedded(target, written),
        tgt_mask=torch.ones(length, length).triu(1) > 0,
        src_key_padding_mask=source == PAD,
        tgt_key_padding_mask=target == PAD,
        memory_key_padding_mask=source == PAD,
    )
    return decoded @ out.T


@pytest.mark.verifies(
    "course_lib.transformer.model.Transformer",
    "course_lib.transformer.convert.from_torch",
    against="PyTorch `nn.Transformer`",
)
@pytest.mark.parametrize(
    ("dtype", "first", "final", "padded"),
    [
        (torch.float64, True, True, ((0, 2), (0, 1))),
        (torch.float64, True, False, ((3, 0), (2, 3))),
        (torch.float64, False, True, ((0, 0), (0, 0))),
        (torch.float64, False, False, ((0, 2), (0, 1))),
        (torch.float32, True, True, ((3, 0), (2, 3))),
        (torch.float32, False, False, ((0, 0), (0, 0))),
    ],
)
def test_transformer_and_gradients_equal_pytorch(ledger, dtype, first, final, padded):
    layer = their_transformer(dtype, final, norm_first=first)
    model, layer = around(layer), layer.double()
    leaves = [*tables(model), model.encoder[0].feed_forward.up_proj.weight]
    oracles = [table.detach().double().requires_grad_() for table in tables(model)]
    source, target = pair(*padded)
    ours, theirs = model(source, target), by_pytorch(layer, source, target, oracles)
    assert ours.dtype == dtype
    oracles.append(layer.encoder.layers[0].linear1.weight)
    compare(ledger, ours, leaves, theirs, oracles, within=10 * ROUNDING[dtype])


@pytest.mark.verifies(
    "course_lib.transformer.config.TransformerConfig",
    against="PyTorch `nn.Transformer`, over many configurations",
)
@settings(max_examples=25)
@given(data=st.data())
def test_transformers_of_any_size_equal_pytorch(ledger, data):
    heads, d_head = data.draw(st.integers(1, 4)), 2 * data.draw(st.integers(1, 3))
    torch.manual_seed(data.draw(st.integers(0, 1000)))
    layer = nn.Transformer(
        heads * d_head,
        heads,
        *(data.draw(st.integers(1, 3)) for _ in range(2)),
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
    theirs = by_pytorch(layer, read, written, tables(model))
    scale = max(1.0, theirs.abs().max().item())
    ledger.compare(model(read, written) / scale, theirs / scale, within=1e-10)


@pytest.mark.verifies(
    "course_lib.transformer.model.Memory", against="PyTorch `nn.TransformerEncoder`"
)
@pytest.mark.parametrize("first", [True, False])
def test_encoder_memory_equals_pytorch(ledger, first):
    layer = their_transformer(norm_first=first)
    model, (source, _) = around(layer), pair()
    memory = model.encode(source)
    vectors = embedded(source, tables(model)[0])
    theirs = layer.encoder(vectors, src_key_padding_mask=source == PAD)
    assert isinstance(memory, Memory) and memory.vectors.shape[1] == SOURCE
    ledger.compare(memory.vectors, theirs, within=1e-10)
    assert torch.equal(memory.mask, (source != PAD)[:, None])


@pytest.mark.parametrize("training", [True, False])
def test_from_torch_copies_every_setting(training):
    layer = their_transformer(norm_first=True, activation="gelu", dropout=0.3, layer_norm_eps=0.25)
    layer.encoder.norm.eps, layer.decoder.layers[1].norm3.eps = 0.5, 0.75
    choices = {"positions": "t5", "tie_embeddings": True, "pad_id": 3, "max_length": 7}
    model = around(layer.train(training), **choices)
    assert all(part.training == training for part in model.modules())
    assert model.config == sized(
        norm="pre", activation="gelu", dropout=0.3, final_norm=True, **choices
    )
    assert {p.dtype for p in model.parameters()} == {torch.float64}
    assert model(*pair()).isfinite().all()
    assert (model.encoder_norm.eps, model.decoder_norm.eps) == (0.5, 0.25)
    assert [norm.eps for norm in norms(model.decoder[1])] == [0.25, 0.25, 0.75]
    for parameter in model.parameters():
        assert parameter.requires_grad
        parameter.data.zero_()  # copied, not shared
    assert all(parameter.abs().max() > 0 for parameter in layer.parameters())
