"""The experiment behind study 08b: a training recipe with one part left out."""

import pytest

from course_lib.checkpoints import phrase_translator
from course_lib.data import phrasebook_vocabularies, phrases
from course_lib.experiments import recipe
from course_lib.experiments.runs import by_rate, read, where

pytestmark = pytest.mark.usefixtures("without_annotations")


@pytest.fixture
def few_sentences(monkeypatch):
    """200 sentences to train on, in place of 60,000, which take seconds to write."""
    pairs = *phrasebook_vocabularies(), phrases(200), phrases(1000, split="held out")
    monkeypatch.setattr(recipe, "_pairs", lambda: pairs)
    encoded = recipe.encode_phrases(pairs[2])
    monkeypatch.setattr(recipe, "_training", lambda: encoded)


def test_each_arm_leaves_out_one_part():
    whole, *others = recipe.ARMS.values()
    for one in others:
        assert sum(a != b for a, b in zip(whole, one, strict=True)) == 1


def test_training_is_repeatable_and_follows_the_recipe(few_sentences):
    def weights(arm, seed):
        return [p.tolist() for p in recipe.train(arm, 4e-3, seed, steps=20).model.parameters()]

    whole = weights("whole recipe", 0)
    assert whole == weights("whole recipe", 0) != weights("whole recipe", 1)
    for arm in ("no warm-up", "no label smoothing"):
        assert weights(arm, 0) != whole
    assert len(weights("untied", 0)) == len(whole) + 1  # a matrix of its own for the output


def test_the_shipped_model_is_measured_as_in_the_study(few_sentences):
    translator = phrase_translator()
    found = recipe.measured(translator)
    assert set(found) == set(recipe.MEASURES)
    assert found["exact"] == pytest.approx(0.991, abs=0.0015)
    assert found["accuracy"] == pytest.approx(found["confidence"], abs=0.005)
    assert 1 < found["perplexity"] < 1.01
    rates = recipe.aligned(translator)
    assert rates == {
        "aer": pytest.approx(0.0705, abs=0.002),
        "worst aer": pytest.approx(0.422, abs=0.002),
    }


def test_the_best_learning_rate_has_a_worse_one_on_either_side():
    for arm in recipe.ARMS:
        swept = by_rate(where(read("recipe"), arm=arm, steps=recipe.SHORT), "exact")
        first, *_, last = (sum(exact) for exact in swept.values())
        assert first < sum(recipe.best(arm, recipe.SHORT)) > last, arm
