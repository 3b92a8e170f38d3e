"""The experiments of studies 02a and 02b: the scale of dot products, and scores on one task."""

import json
import math

import pytest
import torch

from course_lib.experiments import scale, scores


def generator(seed):
    return torch.Generator().manual_seed(seed)


# --- the scale -------------------------------------------------------------------------------


def test_a_query_is_the_rotated_key_with_noise_and_the_target_is_its_value():
    rotated = scale.rotation(48, generator(0))
    assert torch.allclose(rotated @ rotated.T, torch.eye(48), atol=1e-5)
    query, key, value, wanted = scale.retrieval_batch(rotated, generator(1), count=500)
    assert query.shape == (500, 1, 48) and key.shape == (500, 16, 48)
    back = query @ rotated  # the inverse of an orthogonal matrix is its transpose
    nearest = (back - key).square().sum(-1).argmin(-1)
    assert torch.equal(value[torch.arange(500), nearest][:, None], wanted)
    noise = back[:, 0] - key[torch.arange(500), nearest]
    assert noise.std().item() == pytest.approx(scale.NOISE, rel=0.02)
    assert key.var().item() == pytest.approx(1, rel=0.02)


def test_training_starts_where_the_derivation_says():
    guess = 15 / 16  # the variance of one of 16 values around their mean
    assert scale.train_scale("1/d", 64, 1e-9, steps=40)[-1] == pytest.approx(guess, abs=0.1)
    saturated = scale.train_scale("1", 64, 1e-9, steps=40)
    assert sum(saturated) / 40 > 1.4, "saturated weights on random keys are worse than equal ones"


def test_training_learns_and_repeats_itself():
    losses = scale.train_scale("1/√d", 16, 0.03, seed=3, steps=150)
    assert losses == scale.train_scale("1/√d", 16, 0.03, seed=3, steps=150)
    assert losses != scale.train_scale("1/√d", 16, 0.03, seed=4, steps=150)
    assert scale.final_loss(losses, 150) < 0.3 < scale.final_loss(losses, 50)
    assert scale.final_loss(list(range(100)), 80) == pytest.approx(54.5)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("1/d²", 16, 0.1), "scale='1/d²' is unknown"),
        (("1", 0, 0.1), "d=0 is below 1"),
        (("1", 16, 0.0), "lr"),
    ],
)
def test_settings_that_make_no_sense_are_refused(arguments, says):
    with pytest.raises(ValueError, match=says):
        scale.train_scale(*arguments)


def test_the_record_is_complete_and_best_finds_its_lowest_mean():
    record = json.loads(scale.RECORD.read_text(encoding="utf-8"))
    starts, on_scores = record.pop("start"), record.pop("scores")
    assert [int(d) for d in record] == [int(d) for d in starts] == list(scale.DIMENSIONS)
    assert list(on_scores) == ["64"]
    for d, arms in record.items():
        assert list(arms) == ["1", "1/√d", "1/d"]
        assert list(starts[d]) == [*arms, "1, on scores", "1/√d, on scores"]
        assert starts[d]["1"] == pytest.approx(arms["1"]["0.001"]["400"], rel=0.05)
        assert all(len(found) == 3 for found in starts[d].values())
    again = on_scores["64"]["1"]["0.001"]["400"]
    assert starts["64"]["1, on scores"] == pytest.approx(again, rel=0.05)
    sweeps = [(d, name, rates, False) for d, arms in record.items() for name, rates in arms.items()]
    sweeps += [
        (d, name, rates, True) for d, arms in on_scores.items() for name, rates in arms.items()
    ]
    assert len(sweeps) == 9 + 2
    for d, name, rates, scored in sweeps:
        assert [float(rate) for rate in rates] == pytest.approx(scale.RATES, rel=0.02)
        for budget in ("400", "1200"):
            means = {r: math.fsum(found[budget]) / 3 for r, found in rates.items()}
            assert all(len(found[budget]) == 3 for found in rates.values())
            rate, losses = scale.best(int(d), name, int(budget), on_scores=scored)
            assert sum(losses) / 3 == pytest.approx(min(means.values()))
            assert means[f"{rate:.2g}"] == min(means.values())
            assert list(rates)[0] != f"{rate:.2g}" != list(rates)[-1], "worse rates on both sides"


def test_a_recorded_run_can_be_repeated():
    losses = scale.train_scale("1/√d", 16, scale.RATES[4], seed=1)
    wanted = scale.recorded()["16"]["1/√d"]["0.01"]["400"][1]
    assert scale.final_loss(losses, 400) == pytest.approx(wanted, rel=0.05)
    losses = scale.train_scale("1", 16, scale.START_RATE, seed=2, on_scores=True)
    wanted = scale.recorded()["start"]["16"]["1, on scores"][2]
    assert scale.final_loss(losses, 400) == pytest.approx(wanted, rel=0.05)


@pytest.mark.parametrize("d", [16, 25])
def test_a_scale_is_a_learning_rate_and_an_initialisation(d):
    scaled = scale.train_scale("1/√d", d, 0.02, seed=1, steps=60)
    same = scale.train_scale("1", d, 0.02 * d**-0.5, seed=1, steps=60, start=d**-0.5)
    assert scaled == pytest.approx(same, abs=1e-4)
    other = scale.train_scale("1", d, 0.02 * d**-0.5, seed=1, steps=60)
    assert scaled != pytest.approx(other, abs=0.1)


def test_what_the_study_says_about_the_record():
    record = scale.recorded()

    def mean(d, name):
        return sum(record[d][name]["0.001"]["400"]) / 3

    assert [mean("64", name) for name in scale.SCALES] == pytest.approx(
        [0.25, 0.03, 0.63], abs=0.005
    )
    assert [mean("256", name) for name in scale.SCALES] == pytest.approx(
        [0.07, 0.003, 0.49], abs=0.005
    )
    for budget in scale.BUDGETS:
        at_16 = [scale.best(16, name, budget)[1] for name in scale.SCALES]
        assert max(map(min, at_16)) < min(map(max, at_16)), "the ranges overlap"
        for d in (64, 256):
            assert all(sum(scale.best(d, name, budget)[1]) / 3 < 0.004 for name in scale.SCALES)
            without, *others = (sum(scale.best(d, name, 400)[1]) for name in scale.SCALES)
            assert without > 10 * max(others)
    start = {d: [sum(found) / 3 for found in arms.values()] for d, arms in record["start"].items()}
    assert start["64"] == pytest.approx([0.25, 0.001, 0.001, 0.06, 0.0003], rel=0.4)
    for large, smaller, smallest, on_scores, both in start.values():
        assert max(smaller, smallest, both) < on_scores < large or both < 0.13


def test_the_best_learning_rate_moves_by_one_step_between_the_sizes():
    for name in scale.SCALES:
        for budget in scale.BUDGETS:
            rates = [scale.best(d, name, budget)[0] for d in scale.DIMENSIONS]
            assert max(rates) / min(rates) == pytest.approx(10**0.5, rel=0.03)


# --- the comparison --------------------------------------------------------------------------


def test_a_question_asks_for_the_nearest_key_in_the_order_of_the_query():
    for order, components in scores.ORDERS.items():
        query, key, right = scores.questions(4000, order, generator(2))
        assert query.shape == (4000, 1, 4) and key.shape == (4000, 6, 4)
        assert key.std().item() == pytest.approx(1, rel=0.05)
        distance = (query - key[..., list(components)]).square().sum(-1)  # (count, 6)
        assert (distance.argmin(-1) == right).float().mean() > 0.95
        assert right.bincount(minlength=6).min() > 550


def test_cosine_is_the_score_of_normalised_vectors():
    query, key = torch.randn(2, 3, 4), torch.randn(2, 5, 4)
    theirs = torch.cosine_similarity(query[:, :, None], key[:, None], dim=-1)
    assert torch.allclose(scores.SCORES["cosine"]()(query, key), theirs, atol=1e-6)


def test_a_score_with_parameters_learns_the_other_order_and_one_without_does_not():
    (guessed,) = scores.accuracy("dot", "other", budgets=(1,))
    (learned,) = scores.accuracy("general", "other", 0.03, budgets=(150,))
    assert guessed < 0.2 < 0.6 < learned


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("product", "same"), "name='product' is unknown"),
        (("dot", "reversed"), "order='reversed' is unknown"),
        (("dot", "same", -1.0), "lr"),
    ],
)
def test_a_comparison_that_makes_no_sense_is_refused(arguments, says):
    with pytest.raises(ValueError, match=says):
        scores.accuracy(*arguments)


def test_the_recorded_comparison_is_complete_and_can_be_repeated():
    record = json.loads(scores.RECORD.read_text(encoding="utf-8"))
    assert list(record) == ["same", "other"]
    for case in record.values():
        assert list(case) == list(scores.SCORES)
        for rates in case.values():
            assert len(rates) in (1, 7)
            assert all(len(a) == 5 for found in rates.values() for a in found.values())
    again = scores.accuracy("general", "other", 0.01, seed=2, budgets=(500,))
    assert again == pytest.approx([record["other"]["general"]["0.01"]["500"][2]], abs=0.01)
    rate, found = scores.best("other", "additive", 500)
    assert found == record["other"]["additive"][str(rate)]["500"]


def test_an_additive_score_without_a_bias_is_odd_and_with_one_is_not():
    query, key = torch.randn(2, 3, 4), torch.randn(2, 5, 4)
    for bias in (False, True):
        score = scores.additive(bias=bias)
        odd = torch.allclose(score(-query, -key), -score(query, key), atol=1e-6)
        assert odd is not bias


def test_what_the_study_says_about_the_comparison():
    def mean(order, name, budget=500):
        return sum(scores.best(order, name, budget)[1]) / 5

    for name in ("dot", "cosine", "Gaussian"):
        assert mean("other", name) < 0.2
    for budget in (500, 1500):
        assert 0.7 < mean("same", "dot", budget) < 0.78
        for order in scores.ORDERS:
            assert abs(mean(order, "general", budget) - mean("same", "dot", budget)) < 0.02
            assert mean(order, "general, normalised", budget) > 0.93
            assert mean(order, "additive", budget) > 0.96
            assert mean(order, "additive, no bias", budget) < 0.25
