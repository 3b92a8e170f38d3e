"""What holds of both models whatever their weights."""

import copy
import math

import pytest
import torch
import torch.nn.functional as F

from course_lib.topics.attention_maps import record_attention
from course_lib.transformer import DecoderOnly, Transformer
from course_lib.transformer.positions import ENCODINGS
from tests.helpers.encodings import SHIFT_INVARIANT
from tests.helpers.ids import encoding_id
from tests.helpers.transformer import (
    D_MODEL,
    PAD,
    SOURCES,
    TARGET,
    TARGETS,
    pair,
    randomized,
    sized,
    words,
)

CHOICES = [
    *({"positions": name, "norm": "pre"} for name in ENCODINGS),
    {"positions": "sinusoidal", "norm": "post", "num_kv_heads": 1},
    {"positions": "t5", "norm": "post", "tie_embeddings": True},
]


def named(choices):
    return encoding_id("-".join(map(str, choices.values())))


def near(ours, theirs):
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)


def another(tokens, vocabulary):
    """Each another token, none of them padding."""
    return 1 + tokens % (vocabulary - 1)


@pytest.mark.verifies(
    "course_lib.transformer.model.Transformer",
    "course_lib.transformer.decoder_only.DecoderOnly",
    against="later tokens changed: earlier logits stay",
)
@pytest.mark.parametrize("made", [Transformer, DecoderOnly])
@pytest.mark.parametrize("choices", CHOICES, ids=named)
def test_causal_mask_hides_future_tokens(ledger, choices, made):
    model, (source, target) = randomized(made(sized(**choices))), pair(target=(0, 0))
    read = (source,) if made is Transformer else ()
    plain = model(*read, target)
    for now in range(TARGET - 1):
        other = target.clone()
        other[:, now + 1 :] = another(other[:, now + 1 :], TARGETS)
        after = model(*read, other)
        near(after[:, : now + 1], plain[:, : now + 1])
        assert (after[:, now + 1 :] - plain[:, now + 1 :]).abs().max() > 1e-3
    ledger.holds()


@pytest.mark.parametrize("choices", CHOICES, ids=named)
def test_each_sequence_depends_on_its_own_source_alone(choices):
    model, (source, target) = randomized(Transformer(sized(**choices))), pair(target=(0, 0))
    for row in (0, 1):
        other = source.clone()
        other[row, 1] = another(other[row, 1], SOURCES)
        changed = (model(other, target) - model(source, target)).abs().amax((1, 2))
        assert changed[row] > 1e-4 and changed[1 - row] < 1e-10


@pytest.mark.verifies(
    "course_lib.transformer.model.Transformer", against="longer padding of source and target"
)
@pytest.mark.parametrize("choices", CHOICES, ids=named)
def test_length_of_padding_has_no_effect_on_logits(ledger, choices):
    model = randomized(Transformer(sized(**choices)))
    source, target = pair(source=(0, 2), target=(0, 1))
    plain, real = model(source, target), target != PAD
    longer_source, longer_target = F.pad(source, (0, 5)), F.pad(target, (0, 5))
    near(model(longer_source, target), plain)
    near(model(source, longer_target)[:, :TARGET][real], plain[real])
    near(model(source[1:, :-2], target[1:, :-1]), plain[1:, :-1])  # as if it were alone
    ledger.holds()


@pytest.mark.verifies(
    "course_lib.transformer.decoder_only.DecoderOnly", against="longer padding, behind and in front"
)
@pytest.mark.parametrize("choices", CHOICES, ids=named)
def test_padding_has_no_effect_on_decoder_only_logits(ledger, choices):
    model, tokens = randomized(DecoderOnly(sized(**choices))), words(TARGETS, TARGET, 0, 0)
    near(model(F.pad(tokens, (0, 3)))[:, :TARGET], model(tokens))
    if choices["positions"] in SHIFT_INVARIANT:
        near(model(F.pad(tokens, (3, 0)))[:, 3:], model(tokens))
    ledger.holds()


@pytest.mark.parametrize("made", [Transformer, DecoderOnly])
def test_pad_id_is_masked(made):
    model, target = randomized(made(sized(pad_id=4))), torch.tensor([[3, 2, 5, 4, 4, 0, 0]])
    read = (torch.tensor([[3, 1, 4, 4, 0]]),) if made is Transformer else ()
    shorter = tuple(tokens[tokens != 4][None, :2] for tokens in read)
    with record_attention(model) as maps:
        model(*read, target)
    for name, (weights,) in maps.items():
        reads_source = "cross" in name or "encoder" in name
        hidden = (read[0] if reads_source else target)[0] == 4
        assert (weights[..., hidden] == 0).all() and (weights[..., -1, ~hidden] > 0).all()
    near(model(*(F.pad(s, (0, 3), value=4) for s in shorter), target), model(*shorter, target))


@pytest.mark.parametrize("positions", ENCODINGS, ids=encoding_id)
def test_order_of_the_source_matters_with_each_encoding(positions):
    model = randomized(Transformer(sized(positions=positions)))
    source, target = pair(source=(0, 0))
    order = torch.tensor([1, 0, 3, 2, 5, 4])
    gap = (model(source[:, order], target) - model(source, target)).abs().max()
    assert gap < 1e-10 if positions == "none" else gap > 1e-5


@pytest.mark.parametrize("positions", ENCODINGS, ids=encoding_id)
def test_logits_of_padding_only_sources_are_finite(positions):
    model = randomized(Transformer(sized(positions=positions)))
    logits = model(torch.tensor([[PAD] * 3, [PAD, 4, 2]]), torch.tensor([[PAD, 3], [1, PAD]]))
    logits.square().sum().backward()
    assert logits.isfinite().all()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("made", [Transformer, DecoderOnly])
def test_dropout_acts_only_in_training(made):
    model, plain = made(sized(dropout=0.2)), made(sized())
    inputs = pair() if made is Transformer else pair()[1:]
    plain.load_state_dict(model.state_dict())
    assert not torch.equal(model(*inputs), model(*inputs))
    assert torch.equal(model.eval()(*inputs), plain(*inputs))


def test_dropout_acts_on_embeddings_with_their_positions():
    part = Transformer(sized(dropout=0.5, positions="learned")).source_embedding.double()
    with torch.no_grad():
        part.positions.table.fill_(3.0)
        part.token_embedding.weight.fill_(1.0)
    out = part(words(SOURCES, 20, *[0] * 50)).detach()
    kept = 2 * (3 + math.sqrt(D_MODEL))
    assert out.unique().tolist() == pytest.approx([0.0, kept])
    assert (out == 0).double().mean().item() == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize("positions", ENCODINGS, ids=encoding_id)
@pytest.mark.parametrize("made", [Transformer, DecoderOnly])
def test_models_in_half_precision_and_under_autocast(made, positions):
    model = made(sized(positions=positions, norm="pre", num_kv_heads=1))
    inputs = pair() if made is Transformer else pair()[1:]
    plain = model(*inputs)
    with torch.autocast("cpu", torch.bfloat16):
        mixed = model(*inputs)
    F.cross_entropy(mixed.float().flatten(0, 1), inputs[-1].flatten()).backward()
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)
    for logits in (copy.deepcopy(model).bfloat16()(*inputs), mixed):
        assert logits.dtype == torch.bfloat16
        torch.testing.assert_close(logits.float(), plain, rtol=0, atol=0.25)
