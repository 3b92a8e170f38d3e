"""The experiment on readers: their training, what is measured of them, and what was recorded."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.checkpoints import pronoun_reader
from course_lib.checkpoints.pronouns import PronounModel
from course_lib.data import pronoun_sentences, pronoun_vocabulary
from course_lib.experiments import pronouns as readers
from course_lib.train import fit

TRAIN, HELD_OUT = pronoun_sentences("train"), pronoun_sentences("held out")


def weights_and_answer(model, words, position):
    """One sentence at a time, with PyTorch's layer."""
    x = model.embedding(pronoun_vocabulary().encode(words))[None]
    layer = nn.MultiheadAttention(64, 1, batch_first=True)
    with torch.no_grad():
        parts = [getattr(model.attention, f"{name}_proj") for name in "qkv"]
        layer.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
        layer.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
        layer.out_proj.weight.copy_(torch.eye(64))
        output, weights = layer(x, x, x)
        logits = model.out(output)[0, position]
    return weights[0, position], pronoun_vocabulary().tokens[logits.argmax()]


def test_what_is_measured_of_the_shipped_reader():
    model, right, on_noun = pronoun_reader().model, 0, 0.0
    on_adjective = {"animal": [], "place": []}
    ignored = ("hen", "river")
    without = {(noun, word): [] for noun in ignored for word in ("the", "not")}
    carriers, carried = {"hen": "it", "river": "was"}, {noun: [] for noun in ignored}
    for one in HELD_OUT:
        weights, named = weights_and_answer(model, one.words, one.adjective)
        noun = one.words[one.answer]
        right += named == noun
        on_noun += weights[one.answer].item()
        kind = "animal" if one.answer == one.animal else "place"
        on_adjective[kind].append(weights[one.adjective].item())
        if noun not in ignored:
            continue
        for word in ("the", "not"):
            words = [*one.words[: one.answer], word, *one.words[one.answer + 1 :]]
            without[noun, word].append(weights_and_answer(model, words, one.adjective)[1] == noun)
        words = ["not" if word == carriers[noun] else word for word in one.words]
        carried[noun].append(weights_and_answer(model, words, one.adjective)[1] == noun)
    measured = readers.measure_reader(model, "adjective")
    assert measured["accuracy"] == pytest.approx(right / len(HELD_OUT))
    means = [sum(those) / len(those) for those in on_adjective.values()]
    assert measured["on adjective"] == pytest.approx(means, abs=1e-4)
    assert measured["weights exchanged"] == [1.0, 1.0]
    assert measured["values exchanged"] == [0.0, 0.0]
    assert measured["on noun"] == pytest.approx(on_noun / len(HELD_OUT), abs=1e-4)
    assert set(measured["ignored"]) == set(measured["carriers"]) == set(ignored)
    for noun in ignored:
        weight, named, *named_without = measured["ignored"][noun]
        assert weight < 0.1 and named == 1.0
        shares = [sum(hits) / len(hits) for (each, _), hits in without.items() if each == noun]
        assert named_without == pytest.approx(shares)
        word, weight, share = measured["carriers"][noun]
        assert word == carriers[noun] and weight > 0.5
        assert share == pytest.approx(sum(carried[noun]) / len(carried[noun]))


def trained_alone(asked, seed, lr, steps):
    """One model at a time, with the course's training loop."""
    tokens = torch.stack([pronoun_vocabulary().encode(one.words) for one in TRAIN])
    at = torch.tensor([getattr(one, asked) for one in TRAIN])
    labels = tokens[range(len(TRAIN)), [one.answer for one in TRAIN]]
    torch.manual_seed(seed)
    model = PronounModel(len(pronoun_vocabulary()))
    batches = torch.randint(len(TRAIN), (steps, 64))

    def loss(model, batch):
        return F.cross_entropy(model(tokens[batch])[range(64), at[batch]], labels[batch])

    fit(model, batches, loss, steps=steps, lr=lr)
    return model


@pytest.mark.parametrize("asked", readers.ASKED)
def test_readers_are_those_of_the_training_loop(asked, without_annotations):
    together = readers.train_readers(asked, seeds=(0, 1), lr=3e-3, budgets=(2, 5))
    for steps, models in together.items():
        for seed, model in enumerate(models):
            alone = trained_alone(asked, seed, lr=3e-3, steps=steps).state_dict()
            del alone["attention.k_proj.bias"]  # its gradient is rounding, which Adam scales up
            ours = {name: model.state_dict()[name] for name in alone}
            torch.testing.assert_close(ours, alone, rtol=0, atol=1e-4)


@pytest.mark.parametrize("projections", readers.PROJECTIONS)
def test_projections_are_shared_or_left_out(projections):
    ((model,),) = readers.train_readers(
        "adjective", seeds=(0,), lr=3e-3, budgets=(3,), projections=projections
    ).values()
    query, key, value = (getattr(model.attention, f"{name}_proj").weight for name in "qkv")
    assert torch.equal(query, key) == (projections != "three")
    assert torch.equal(value, torch.eye(64)) == (projections == "none")


def test_without_projections_it_is_plain_attention_over_embeddings():
    (model,) = readers.train_readers(
        "adjective", seeds=(0,), lr=3e-3, budgets=(3,), projections="none"
    )[3]
    one = HELD_OUT[0]
    x = model.embedding(pronoun_vocabulary().encode(one.words))
    weights = torch.softmax(x @ x.mT / 8, dim=-1)
    ours, _ = weights_and_answer(model, one.words, one.adjective)
    torch.testing.assert_close(ours, weights[one.adjective])


def test_removed_nouns_change_the_training(without_annotations):
    how = {"seeds": (0,), "lr": 3e-3, "budgets": (300,)}
    for removed, word in ((0.0, "a noun"), (1.0, "the")):
        (model,) = readers.train_readers("adjective", removed=removed, **how)[300]
        one = HELD_OUT[0]
        words = [*one.words[: one.answer], "the", *one.words[one.answer + 1 :]]
        _, named = weights_and_answer(model, words, one.adjective)
        assert (named == "the") == (word == "the")
