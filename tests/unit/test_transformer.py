"""What holds of both models whatever their weights, and which inputs they refuse."""

import copy
import math

import pytest
import torch
import torch.nn.functional as F

from course_lib.inspection import record_attention
from course_lib.positions import ENCODINGS
from course_lib.transformer import (
    DecoderOnly,
    Transformer,
)
from tests.helpers.ids import encoding_id
from tests.helpers.transformer import (
    BATCH,
    D_MODEL,
    HEADS,
    PAD,
    SOURCE,
    SOURCES,
    TARGET,
    TARGETS,
    pair,
    randomized,
    sized,
    words,
)

# PyTorch says so of every model that normalises first.
pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")


# --- invariants ------------------------------------------------------------------------------

CHOICES = [
    *({"positions": name, "norm": "pre"} for name in ENCODINGS),
    {"positions": "sinusoidal", "norm": "post", "num_kv_heads": 1},
    {"positions": "t5", "norm": "post", "tie_embeddings": True},
]


def named(choices):
    return encoding_id("-".join(map(str, choices.values())))


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
def test_causal_mask_hides_future_tokens(ledger, choices, training):
    model = randomized(Transformer(sized(**choices))).train(training)
    alone = randomized(DecoderOnly(sized(**choices))).train(training)
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
def test_length_of_padding_has_no_effect_on_logits(ledger, choices, training):
    model = randomized(Transformer(sized(**choices))).train(training)
    source, target = pair(source=(0, 2), target=(0, 1))
    plain, real = model(source, target), target != PAD
    for extra in (1, 5):
        near(model(F.pad(source, (0, extra)), target), plain)
        near(model(source, F.pad(target, (0, extra)))[:, :TARGET][real], plain[real])
        near(
            model(F.pad(source, (0, extra)), F.pad(target, (0, extra)))[:, :TARGET][real],
            plain[real],
        )
    near(model(source[1:, :-2], target[1:, :-1]), plain[1:, :-1])  # as if it were alone
    ledger.holds()


@pytest.mark.verifies(
    "course_lib.transformer.DecoderOnly", against="longer padding, behind and in front"
)
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("choices", CHOICES, ids=named)
def test_padding_has_no_effect_on_decoder_only_logits(ledger, choices, training):
    model = randomized(DecoderOnly(sized(**choices))).train(training)
    tokens = words(TARGETS, TARGET, 0, 0)
    plain = model(tokens)
    near(model(F.pad(tokens, (0, 3)))[:, :TARGET], plain)
    if choices["positions"] not in ("sinusoidal", "learned"):  # these count from the start
        near(model(F.pad(tokens, (3, 0)))[:, 3:], plain)
    ledger.holds()


@pytest.mark.parametrize("pad_id", [0, 4])
def test_pad_id_is_masked(pad_id):
    model = randomized(Transformer(sized(pad_id=pad_id)))
    source, target = words(SOURCES, SOURCE, 0, 0), words(TARGETS, TARGET, 0, 0)
    source, target = source.where(source != 4, 5), target.where(target != 4, 5)
    near(model(F.pad(source, (0, 2), value=pad_id), target), model(source, target))
    other = F.pad(source, (0, 2), value=4 - pad_id)
    assert (model(other, target) - model(source, target)).abs().max() > 1e-4
    alone = randomized(DecoderOnly(sized(pad_id=pad_id)))
    hidden = target.clone()
    hidden[:, 1] = pad_id
    with record_attention(alone) as maps:
        alone(hidden)
    assert (maps["blocks.1.attention"][0][..., 1] == 0).all()


@pytest.mark.parametrize("choices", CHOICES, ids=named)
def test_permuted_batch_gives_permuted_logits(choices):
    model = randomized(Transformer(sized(**choices)))
    source, target = words(SOURCES, SOURCE, 0, 2, 4), words(TARGETS, TARGET, 1, 0, 3)
    order = torch.tensor([2, 0, 1])
    near(model(source[order], target[order]), model(source, target)[order])
    alone = randomized(DecoderOnly(sized(**choices)))
    near(alone(target[order]), alone(target)[order])


@pytest.mark.parametrize("positions", ENCODINGS, ids=encoding_id)
def test_order_of_the_source_matters_with_each_encoding(positions):
    model = randomized(Transformer(sized(positions=positions)))
    source, target = pair(source=(0, 0))
    order = torch.tensor([1, 0, 3, 2, 5, 4])
    gap = (model(source[:, order], target) - model(source, target)).abs().max()
    assert gap < 1e-10 if positions == "none" else gap > 1e-5


def test_logits_of_padding_only_sources_are_finite():
    for positions in ENCODINGS:
        model = randomized(Transformer(sized(positions=positions)))
        source = torch.tensor([[PAD] * 3, [PAD, 4, 2]])
        logits = model(source, torch.tensor([[PAD, 3], [1, PAD]]))
        logits.square().sum().backward()
        assert logits.isfinite().all()
        assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


# --- dropout, precision, copies --------------------------------------------------------------


def test_dropout_acts_only_in_training_and_on_embeddings():
    config = sized(dropout=0.2)
    for model, plain, inputs in (
        (Transformer(config), Transformer(sized()), pair()),
        (DecoderOnly(config), DecoderOnly(sized()), pair()[1:]),
    ):
        plain.load_state_dict(model.state_dict())
        assert not torch.equal(model(*inputs), model(*inputs))
        assert torch.equal(model.eval()(*inputs), plain(*inputs))
    part = Transformer(sized(dropout=0.5, positions="learned")).source_embedding.double()
    with torch.no_grad():
        part.positions.table.fill_(3.0)
        part.token_embedding.weight.fill_(1.0)
    out = part(words(SOURCES, 20, *[0] * 50))
    assert set(out.detach().unique().round(decimals=6).tolist()) == {0.0, round(2 * (3 + math.sqrt(D_MODEL)), 6)}  # fmt: skip
    assert (out == 0).double().mean().item() == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize("positions", ENCODINGS, ids=encoding_id)
def test_models_in_half_precision_and_under_autocast(positions):
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


@pytest.mark.parametrize("positions", ENCODINGS, ids=encoding_id)
def test_deepcopy_and_state_dict_give_the_same_logits(positions):
    config = sized(positions=positions, tie_embeddings=True)
    for made, inputs in ((Transformer, pair()), (DecoderOnly, pair()[1:])):
        model = randomized(made(config))
        logits = model(*inputs)
        again = made(config).double()
        again.load_state_dict(model.state_dict())
        twin = copy.deepcopy(model)
        assert torch.equal(again(*inputs), logits) and torch.equal(twin(*inputs), logits)
        randomized(twin)
        assert torch.equal(model(*inputs), logits)
        assert logits.dtype == torch.float64 and logits.shape == (BATCH, TARGET, TARGETS)


def test_int32_tokens():
    model, (source, target) = Transformer(sized()), pair()
    assert torch.equal(model(source.int(), target.int()), model(source, target))


# --- recorded attention ----------------------------------------------------------------------


def test_record_attention_of_a_transformer():
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


def test_record_attention_of_decoder_only_with_kv_cache():
    model, tokens = DecoderOnly(sized()), words(TARGETS, TARGET, 0, 0)
    cache = model.new_cache()
    with record_attention(model) as maps:
        model(tokens[:, :3], cache=cache)
        model(tokens[:, 3:], cache=cache)
    assert [tuple(w.shape) for w in maps["blocks.0.attention"]] == [(BATCH, HEADS, 3, 3), (BATCH, HEADS, 2, 5)]  # fmt: skip
