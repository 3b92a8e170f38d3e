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

# PyTorch says so of every model that normalises first.
pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")


# --- the embedding ---------------------------------------------------------------------------


@pytest.mark.verifies(
    "course_lib.transformer.TokenEmbedding", against="PyTorch `nn.Embedding`, times √d"
)
@pytest.mark.parametrize("size", [1, 4, D_MODEL])
@pytest.mark.parametrize("dtype", DTYPES)
def test_token_embedding_equals_pytorch_times_sqrt_d(ledger, dtype, size):
    ours = TokenEmbedding(TARGETS, size).to(dtype)
    theirs = nn.Embedding(TARGETS, size).double()
    theirs.load_state_dict(ours.state_dict())
    tokens = torch.randint(0, TARGETS, (BATCH, TARGET))
    wanted = theirs(tokens) * size**0.5
    ledger.compare(ours(tokens), wanted, within=ROUNDING[dtype])
    ledger.compare(ours(tokens.int()), wanted, within=ROUNDING[dtype])
    mix = torch.randn(wanted.shape).double()
    (mine,) = torch.autograd.grad(ours(tokens), ours.parameters(), mix.to(dtype))
    (slope,) = torch.autograd.grad(wanted, theirs.parameters(), mix)
    ledger.compare(mine, slope, within=10 * ROUNDING[dtype], backward=True)


def test_token_embedding_initialisation():
    layer = TokenEmbedding(1000, 64)
    assert layer.weight.std().item() == pytest.approx(1 / 8, rel=0.02)
    assert abs(layer.weight.mean().item()) < 0.002
    assert layer(torch.arange(1000)[None]).std().item() == pytest.approx(1, rel=0.02)
    assert layer.padding_idx is None


# --- tied embeddings -------------------------------------------------------------------------


def untied(model):
    """The same numbers in tables of their own."""
    config = dataclasses.replace(model.config, tie_embeddings=False)
    copied = type(model)(config).double()
    copied.load_state_dict(model.state_dict())
    return copied


TIED = {"two": {}, "three": {"source_vocabulary": None, "target_vocabulary": SOURCES}}


@pytest.mark.verifies(
    "course_lib.transformer.InputEmbedding",
    against="PyTorch `nn.Embedding` and the paper's formula",
)
@pytest.mark.parametrize("offset", [0, 3])
@pytest.mark.parametrize("dtype", DTYPES)
def test_input_embedding_equals_pytorch_plus_the_formula(ledger, dtype, offset):
    ours, tokens = (
        InputEmbedding(TARGETS, sized(), sized().make_positions(True).embedding).to(dtype),
        words(TARGETS, TARGET, 0, 2),
    )
    weight = ours.token_embedding.weight.detach().double()
    theirs = nn.functional.embedding(tokens, weight) * D_MODEL**0.5
    theirs = theirs + sinusoids(offset + TARGET)[offset:]
    ledger.compare(ours(tokens, offset), theirs, within=ROUNDING[dtype])


@pytest.mark.verifies(
    "course_lib.transformer.Transformer", against="the same model with tables of their own"
)
@pytest.mark.parametrize("kind", TIED)
def test_gradient_of_tied_embeddings_is_the_sum_of_their_uses(ledger, kind):
    model = Transformer(sized(tie_embeddings=True, **TIED[kind])).double()
    apart, (source, target) = untied(model), pair()
    ours, theirs = model(source, target), apart(source, target)
    ledger.compare(ours, theirs, within=1e-12)
    mix = torch.randn(ours.shape).double()
    (mine,) = torch.autograd.grad(ours, [model.lm_head.weight], mix)
    uses = [apart.lm_head.weight, apart.target_embedding.token_embedding.weight]
    uses += [apart.source_embedding.token_embedding.weight] if kind == "three" else []
    assert len({id(p) for p in uses}) == len(uses)
    slopes = torch.autograd.grad(theirs, uses, mix)
    assert all(slope.abs().max() > 0.01 for slope in slopes)
    ledger.compare(mine, sum(slopes), within=1e-10, backward=True)


@pytest.mark.verifies(
    "course_lib.transformer.DecoderOnly", against="the same model with tables of their own"
)
def test_gradient_of_tied_decoder_only_embeddings_is_the_sum_of_both_uses(ledger):
    model = DecoderOnly(sized(tie_embeddings=True)).double()
    apart, tokens = untied(model), words(TARGETS, TARGET, 0, 1)
    ours, theirs = model(tokens), apart(tokens)
    mix = torch.randn(ours.shape).double()
    (mine,) = torch.autograd.grad(ours, [model.lm_head.weight], mix)
    slopes = torch.autograd.grad(
        theirs, [apart.lm_head.weight, apart.embedding.token_embedding.weight], mix
    )
    ledger.compare(mine, sum(slopes), within=1e-10, backward=True)


def tables(model):
    return [id(model.source_embedding.token_embedding.weight), id(model.target_embedding.token_embedding.weight), id(model.lm_head.weight)]  # fmt: skip


def test_tied_embeddings_are_and_stay_one_parameter():
    three = Transformer(sized(tie_embeddings=True, **TIED["three"]))
    two, none = Transformer(sized(tie_embeddings=True)), Transformer(sized())
    shared = Transformer(sized(source_vocabulary=None))
    both = Transformer(sized(tie_embeddings=True, source_vocabulary=TARGETS))  # alike by chance
    for model, count in ((three, 1), (two, 2), (none, 3), (shared, 3), (both, 2)):
        assert len(set(tables(model))) == count
        assert len(set(tables(copy.deepcopy(model)))) == count
        assert len(set(tables(copy.deepcopy(model).double().bfloat16()))) == count
        again = type(model)(model.config)
        randomized(again, torch.float32).load_state_dict(model.state_dict())
        assert len(set(tables(again))) == count
    assert tables(two)[1] == tables(two)[2] and tables(both)[1] == tables(both)[2]
    assert three.lm_head.weight.std().item() == pytest.approx(D_MODEL**-0.5, rel=0.3)
    assert shared.source_embedding.token_embedding.num_embeddings == TARGETS
