"""The experiment of study 03a: which recurrent cell learns to carry one bit, and how far."""

import pytest
import torch

from course_lib.experiments import one_bit


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("first", [False, True])
def test_half_of_the_texts_have_one_b_and_the_label_says_so(first):
    letters, has_b = one_bit.random_texts(2000, 7, generator(), first=first)
    assert letters.shape == (2000, 7)
    assert torch.equal(letters.sum(dim=1), has_b.long())
    assert has_b.mean().item() == pytest.approx(0.5, abs=0.05)
    at = letters[has_b.bool()].float().mean(dim=0)  # how often the B stands at each position
    expected = [1.0] + 6 * [0.0] if first else 7 * [1 / 7]
    assert at.tolist() == pytest.approx(expected, abs=0.04)


def test_an_orthogonal_start_keeps_norms_and_pytorchs_does_not():
    torch.manual_seed(0)
    for cell, orthogonal in (("RNN, orthogonal", True), ("RNN", False)):
        U = one_bit.CELLS[cell]().layer.weight_hh_l0
        assert torch.allclose(U @ U.T, torch.eye(8), atol=1e-5) is orthogonal


def test_one_arm_reads_short_texts_first(monkeypatch):
    lengths = []

    def texts(count, length, random):
        lengths.append(length)
        return torch.zeros(count, length, dtype=torch.long), torch.zeros(count)

    monkeypatch.setattr(one_bit, "random_texts", texts)
    monkeypatch.setattr(one_bit, "SHORT_FIRST", {"RNN, 5 letters first": 3})
    one_bit.train_cell("RNN, 5 letters first", 0.01, budgets=(5,))
    one_bit.train_cell("RNN", 0.01, budgets=(2,))
    assert lengths == [5, 5, 5, 20, 20, 20, 20]


def test_a_model_is_evaluated_after_each_budget_and_a_seed_repeats_it():
    def weights(model):
        return model.answer.weight.detach().clone()

    one, two = one_bit.train_cell("GRU", 0.01, seed=4, budgets=(3, 6), evaluate=weights)
    (alone,) = one_bit.train_cell("GRU", 0.01, seed=4, budgets=(3,), evaluate=weights)
    assert torch.equal(one, alone) and not torch.equal(one, two)
