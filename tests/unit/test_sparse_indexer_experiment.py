"""The experiment behind study 15b: what is asked for, what each stage trains, and what was recorded."""

from statistics import fmean

import pytest
import torch

from course_lib.experiments import sparse_indexer
from course_lib.experiments.runs import read, where
from course_lib.transformer.masks import causal_mask


def test_one_key_holds_the_answer():
    batch = sparse_indexer.sample("one key", 5, torch.Generator().manual_seed(3))
    for names, letters, asked, labels, distances in zip(*(x.tolist() for x in batch), strict=True):
        assert sorted(names) == list(range(sparse_indexer.LENGTH))
        for t in range(sparse_indexer.LENGTH):
            place = t - distances[t]
            assert 0 <= place <= t
            assert (names[place], letters[place]) == (asked[t], labels[t])


def test_several_keys_show_the_answer_half_of_the_time():
    names, letters, asked, labels, _ = sparse_indexer.sample(
        "several keys", 400, torch.Generator().manual_seed(3)
    )
    assert all(one.bincount().tolist() == [8] * 8 for one in names)
    shown, among = [], []
    for row in range(400):
        for t in (20, 63):
            of_name = (names[row, : t + 1] == asked[row, t]).nonzero()[:, 0]
            among.append(len(of_name) > 0)
            shown += (letters[row, of_name] == labels[row, t]).float().tolist()
    assert all(among)
    assert sum(shown) / len(shown) == pytest.approx(17 / 32, abs=0.03)


def test_the_loss_of_the_indexer_is_the_divergence_from_the_weights():
    mask = causal_mask(7)
    scores, weights = (torch.randn(2, 7, 7).masked_fill(~mask, -torch.inf) for _ in range(2))
    p = torch.distributions.Categorical(logits=weights)
    q = torch.distributions.Categorical(logits=scores)
    expected = torch.stack([
        (p.probs[b, i, : i + 1] * (p.probs[b, i, : i + 1] / q.probs[b, i, : i + 1]).log()).sum()
        for b in range(2) for i in range(7)
    ]).mean()  # fmt: skip
    torch.testing.assert_close(sparse_indexer.indexer_loss(p.probs, scores), expected)
    assert sparse_indexer.indexer_loss(scores.softmax(dim=-1), scores).abs() < 1e-6


def test_neither_loss_trains_what_belongs_to_the_other():
    model = sparse_indexer.Reader()
    batch = sparse_indexer.sample("one key", 3, torch.Generator().manual_seed(0))
    names = [name for name, _ in model.named_parameters()]
    for keep in (None, 4):
        for number, loss in enumerate(sparse_indexer.losses(model, batch, keep)):
            slopes = torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)
            trained = {name for name, x in zip(names, slopes, strict=True) if x is not None}
            assert trained == {name for name in names if name.startswith("indexer") == bool(number)}


@pytest.mark.parametrize("stage", sparse_indexer.STEPS)
def test_each_stage_changes_its_own_parameters_alone(stage, monkeypatch):
    monkeypatch.setitem(sparse_indexer.STEPS, stage, 2)
    torch.manual_seed(0)
    model = sparse_indexer.Reader()
    before = {name: one.detach().clone() for name, one in model.named_parameters()}
    sparse_indexer.train(
        stage, model, "several keys", 0.01, seed=0, keep=2 if stage == "sparse" else None
    )
    moved = {name for name, one in model.named_parameters() if not torch.equal(one, before[name])}
    indexer = {name for name in before if name.startswith("indexer")}
    assert (
        moved
        == {"dense": before.keys() - indexer, "indexer": indexer, "sparse": before.keys()}[stage]
    )


def test_with_all_keys_nothing_is_missed_and_with_fewer_only_these_are_attended_to():
    torch.manual_seed(0)
    model = sparse_indexer.Reader()
    every = sparse_indexer.measured(model, "one key")
    assert sparse_indexer.measured(model, "one key", sparse_indexer.LENGTH) == every
    assert every["kept"] == pytest.approx(1)
    few = [sparse_indexer.measured(model, "one key", k, by="weights")["kept"] for k in (1, 8, 32)]
    assert few == sorted(few) and few[-1] < 1
    by_indexer = sparse_indexer.measured(model, "one key", 8)["kept"]
    assert by_indexer < few[1]  # the largest weights are the most that 8 keys can hold


RECORDED = [arm for stage in sparse_indexer.STEPS for arm in sparse_indexer.arms(stage)]


@pytest.mark.parametrize("arm", RECORDED, ids=str)
def test_the_best_rates_lie_inside_their_sweeps_and_have_three_seeds(arm):
    runs = sparse_indexer.best(**arm)
    assert {run["seed"] for run in runs} == {0, 1, 2}
    tried = {run["lr"] for run in where(read("sparse_indexer"), **arm)}
    assert min(tried) < runs[0]["lr"] < max(tried)


def accuracies(k=None, **arm):
    return [row["accuracy"] for row in sparse_indexer.best(**arm) if row["k"] == k]


def test_a_large_indexer_finds_the_key_and_a_small_one_needs_many():
    """What study 15b says."""
    for k in (None, *sparse_indexer.KEPT):
        assert min(accuracies(k, stage="dense")) > 0.99
    large, small = ({"stage": "indexer", "size": size} for size in ("4 × 8", "1 × 4"))
    assert min(accuracies(1, **large)) > 0.9 and min(accuracies(4, **large)) > 0.99
    means = [fmean(accuracies(k, **small)) for k in sparse_indexer.KEPT]
    assert means == sorted(means)
    assert max(accuracies(1, **small)) < 0.25 and max(accuracies(32, **small)) < 0.95


def test_one_large_head_needs_fewer_keys_and_four_small_ones_miss_fewer():
    wide, many = ({"stage": "indexer", "size": size} for size in ("1 × 32", "4 × 4"))
    assert min(accuracies(1, **wide)) > 0.8 and max(accuracies(1, **many)) < 0.4
    assert max(accuracies(32, **wide)) < 0.94 and min(accuracies(32, **many)) > 0.996


@pytest.mark.parametrize("size", ["1 × 4", "1 × 32"])
def test_distance_decides_what_a_single_head_misses_with_many_keys_alone(size):
    for row in sparse_indexer.best(stage="indexer", size=size):
        found = list(row["by distance"].values())
        if row["k"] == 4:
            assert max(found) - min(found) < 0.15
        if row["k"] == 32:
            assert found[0] - found[-1] > 0.04 and min(found) == found[-1]


def test_without_the_second_stage_attention_learns_less_with_few_keys():
    cold, warm = (accuracies(2, stage="sparse", warm=warm) for warm in (False, True))
    assert max(cold) < min(warm)
