"""The experiments of studies 02a and 02b: the scale of dot products, and scores on one task."""

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


def test_training_learns():
    losses = scale.train_scale("1/√d", 16, 0.03, seed=3, steps=150)
    assert scale.final_loss(losses, 150) < 0.3 < scale.final_loss(losses, 50)
    assert scale.final_loss(list(range(100)), 80) == pytest.approx(54.5)


@pytest.mark.parametrize("d", [16, 25])
def test_a_scale_is_a_learning_rate_and_an_initialisation(d):
    scaled = scale.train_scale("1/√d", d, 0.02, seed=1, steps=60)
    same = scale.train_scale("1", d, 0.02 * d**-0.5, seed=1, steps=60, start=d**-0.5)
    assert scaled == pytest.approx(same, abs=1e-4)
    other = scale.train_scale("1", d, 0.02 * d**-0.5, seed=1, steps=60)
    assert scaled != pytest.approx(other, abs=0.1)


# --- the comparison --------------------------------------------------------------------------


@pytest.mark.parametrize("shift", [0.0, 2.0])
def test_the_target_is_the_nearest_key_in_the_order_of_the_query(shift):
    for order, components in scores.ORDERS.items():
        query, key, target = scores.examples(4000, order, generator(2), shift=shift)
        assert query.shape == (4000, 1, 4) and key.shape == (4000, 6, 4)
        assert key.std().item() == pytest.approx(1, rel=0.05)
        assert key.mean().item() == pytest.approx(shift, abs=0.02)
        distance = (query - key[..., list(components)]).square().sum(-1)  # (count, 6)
        assert (distance.argmin(-1) == target).float().mean() > 0.95
        assert target.bincount(minlength=6).min() > 550


def test_cosine_is_the_score_of_normalised_vectors():
    query, key = torch.randn(2, 3, 4), torch.randn(2, 5, 4)
    theirs = torch.cosine_similarity(query[:, :, None], key[:, None], dim=-1)
    assert torch.allclose(scores.SCORES["cosine"]()(query, key), theirs, atol=1e-6)


def test_a_score_with_parameters_learns_the_permutation_and_one_without_does_not():
    (guessed,) = scores.accuracy("dot", "permuted", budgets=(1,))
    (learned,) = scores.accuracy("general", "permuted", 0.03, budgets=(150,))
    assert guessed < 0.2 < 0.6 < learned


def test_an_additive_score_without_a_bias_is_odd_and_with_one_is_not():
    query, key = torch.randn(2, 3, 4), torch.randn(2, 5, 4)
    for bias in (False, True):
        score = scores.additive(bias=bias)
        odd = torch.allclose(score(-query, -key), -score(query, key), atol=1e-6)
        assert odd is not bias
