"""Token embeddings against `nn.Embedding`; tied embeddings against tables of their own."""

import copy
import dataclasses

import pytest
import torch
from torch import nn

from course_lib.transformer import DecoderOnly, InputEmbedding, TokenEmbedding, Transformer
from tests.helpers.transformer import (
    BATCH,
    D_MODEL,
    DTYPES,
    ROUNDING,
    SOURCES,
    TARGET,
    TARGETS,
    pair,
    randomized,
    sinusoids,
    sized,
    words,
)


@pytest.mark.verifies(
    "course_lib.transformer.embeddings.TokenEmbedding", against="PyTorch `nn.Embedding`, times √d"
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_token_embedding_equals_pytorch_times_sqrt_d(ledger, dtype):
    ours = TokenEmbedding(TARGETS, D_MODEL).to(dtype)
    theirs = nn.Embedding(TARGETS, D_MODEL).double()
    theirs.load_state_dict(ours.state_dict())
    tokens = torch.randint(0, TARGETS, (BATCH, TARGET))
    wanted = theirs(tokens) * D_MODEL**0.5
    ledger.compare(ours(tokens.int()), wanted, within=ROUNDING[dtype])
    mix = torch.randn(wanted.shape).double()
    (mine,) = torch.autograd.grad(ours(tokens), ours.parameters(), mix.to(dtype))
    (slope,) = torch.autograd.grad(wanted, theirs.parameters(), mix)
    ledger.compare(mine, slope, within=10 * ROUNDING[dtype], backward=True)


def test_token_embedding_initialisation():
    layer = TokenEmbedding(1000, 64)
    assert layer.weight.std().item() == pytest.approx(1 / 8, rel=0.02)
    assert layer(torch.arange(1000)[None]).std().item() == pytest.approx(1, rel=0.02)


@pytest.mark.verifies(
    "course_lib.transformer.embeddings.InputEmbedding",
    against="PyTorch `nn.Embedding` and the paper's formula",
)
@pytest.mark.parametrize("offset", [0, 3])
@pytest.mark.parametrize("dtype", DTYPES)
def test_input_embedding_equals_pytorch_plus_the_formula(ledger, dtype, offset):
    positions, tokens = sized().make_positions(True).embedding, words(TARGETS, TARGET, 0, 2)
    ours = InputEmbedding(TARGETS, sized(), positions).to(dtype)
    weight = ours.token_embedding.weight.detach().double()
    theirs = nn.functional.embedding(tokens, weight) * D_MODEL**0.5
    theirs = theirs + sinusoids(offset + TARGET)[offset:]
    ledger.compare(ours(tokens, offset), theirs, within=ROUNDING[dtype])


def tables(model):
    """The matrices that may be one."""
    embeddings = [part for part in model.modules() if isinstance(part, TokenEmbedding)]
    return [part.weight for part in (*embeddings, model.lm_head)]


TIED = {
    "two": (Transformer, {}, 1),
    "three": (Transformer, {"source_vocabulary": None, "target_vocabulary": SOURCES}, 0),
    "decoder-only": (DecoderOnly, {}, 0),
}


@pytest.mark.verifies(
    "course_lib.transformer.model.Transformer",
    "course_lib.transformer.decoder_only.DecoderOnly",
    against="the same model with tables of their own",
)
@pytest.mark.parametrize("kind", TIED)
def test_gradient_of_tied_embeddings_is_the_sum_of_their_uses(ledger, kind):
    made, choices, apart = TIED[kind]
    model = made(sized(tie_embeddings=True, **choices)).double()
    untied = made(dataclasses.replace(model.config, tie_embeddings=False)).double()
    untied.load_state_dict(model.state_dict())
    inputs = pair()[-1:] if made is DecoderOnly else pair()
    ours, theirs = model(*inputs), untied(*inputs)
    ledger.compare(ours, theirs, within=1e-12)
    mix = torch.randn(ours.shape).double()
    (mine,) = torch.autograd.grad(ours, [model.lm_head.weight], mix)
    slopes = torch.autograd.grad(theirs, tables(untied)[apart:], mix)
    assert all(slope.abs().max() > 0.01 for slope in slopes)
    ledger.compare(mine, sum(slopes), within=1e-10, backward=True)


@pytest.mark.parametrize(
    ("choices", "count"),
    [
        ({"tie_embeddings": True, "source_vocabulary": None}, 1),
        ({"tie_embeddings": True}, 2),
        ({"tie_embeddings": True, "source_vocabulary": TARGETS}, 2),  # alike by chance
        ({"source_vocabulary": None}, 3),
    ],
)
def test_tied_embeddings_are_and_stay_one_parameter(choices, count):
    model = Transformer(sized(**choices))
    again = randomized(Transformer(model.config), torch.float32)
    again.load_state_dict(model.state_dict())
    for one in (model, again, copy.deepcopy(model), copy.deepcopy(model).double().bfloat16()):
        assert len({id(table) for table in tables(one)}) == count
    assert model.lm_head.weight.std().item() == pytest.approx(D_MODEL**-0.5, rel=0.5)
