"""The experiment behind study 15c: what is asked for, the additive memory, and what was recorded."""

import pytest
import torch

from course_lib.experiments import delta_recall
from course_lib.experiments.runs import read, where


@pytest.mark.parametrize("task", delta_recall.TASKS)
def test_a_question_asks_for_the_last_letter_of_a_name_of_this_page(task):
    batch = delta_recall.sample(task, 6, torch.Generator().manual_seed(3))
    for names, letters, begins, asked, labels, ages in zip(
        *(x.tolist() for x in batch), strict=True
    ):
        known, written = {}, {}
        for t in range(delta_recall.LENGTH):
            if begins[t]:
                known = {}
            assert names[t] not in known or task == "rewritten"
            known[names[t]], written[names[t]] = letters[t], t
            assert labels[t] == known[asked[t]]
            assert ages[t] == t - written[asked[t]]
    assert batch[2].any() == (task == "pages")
    if task != "rewritten":
        assert all(len(set(names)) == delta_recall.LENGTH for names in batch[0].tolist())


def test_every_known_name_is_asked_for_equally_often():
    """At the last step of "rewritten": about 16 names, of any age."""
    generator = torch.Generator().manual_seed(4)
    names, *_, asked, _, _ = delta_recall.sample("rewritten", 20_000, generator)
    known = [len(set(one)) for one in names[:500].tolist()]
    counts = asked[:, -1].bincount(minlength=16)
    assert min(known) > 10 and counts.min() > 0.9 * 20_000 / 16


def test_additive_equals_its_recurrence():
    q, k, v = torch.randn(3, 2, 7, 4, dtype=torch.float64)
    g, beta = -torch.rand(2, 7, dtype=torch.float64), torch.rand(2, 7, dtype=torch.float64)
    for row in range(2):
        state, outputs = torch.zeros(4, 4, dtype=torch.float64), []
        for t in range(7):
            state = g[row, t].exp() * state + beta[row, t] * torch.outer(k[row, t], v[row, t])
            outputs.append(q[row, t] @ state)
        found = delta_recall.additive(q, k, v, g, beta)[row]
        torch.testing.assert_close(found, torch.stack(outputs), rtol=0, atol=1e-12)


def test_without_a_gate_nothing_decays():
    model = delta_recall.Recaller(correct=True, gate=False)
    *inputs, _, _ = delta_recall.sample("pages", 2, torch.Generator().manual_seed(0))
    before = model(*inputs)
    torch.nn.init.constant_(model.decay.bias, 3.0)
    torch.testing.assert_close(model(*inputs), before)


def accuracies(task, arm):
    return [run["accuracy"] for run in delta_recall.best(task, arm)]


def by_age(task, arm, age):
    return [run["by age"][age] for run in delta_recall.best(task, arm)]


def test_the_best_rates_lie_inside_their_sweeps_and_have_three_seeds():
    for task in delta_recall.TASKS:
        for arm in delta_recall.ARMS:
            runs = delta_recall.best(task, arm)
            assert [run["seed"] for run in runs] == [0, 1, 2]
            tried = {run["lr"] for run in where(read("delta_recall"), task=task, arm=arm)}
            inside = min(tried) < runs[0]["lr"] < max(tried)
            assert inside or min(run["accuracy"] for run in runs) >= 0.999


def test_only_the_correction_makes_the_last_letter_count():
    """ "rewritten": what study 15c says of its accuracies and ages."""
    for arm in ("delta", "delta, gated"):
        assert min(accuracies("rewritten", arm)) >= 0.999
    assert max(accuracies("rewritten", "additive")) < 0.65
    gated = accuracies("rewritten", "additive, gated")
    assert 0.96 < min(gated) <= max(gated) < 0.98
    assert max(by_age("rewritten", "additive", "0 to 3")) < 0.4
    assert min(by_age("rewritten", "additive", "32 to 63")) > 0.65
    assert max(by_age("rewritten", "additive, gated", "32 to 63")) < 0.9


def test_written_once_all_rules_recall_alike_and_divide_it_differently_among_ages():
    for arm in delta_recall.ARMS:
        assert 0.905 < min(accuracies("once", arm)) <= max(accuracies("once", arm)) < 0.92
    for arm in ("delta", "delta, gated"):
        young, old = (by_age("once", arm, age) for age in ("0 to 3", "32 to 63"))
        assert all(a - b > 0.05 for a, b in zip(young, old, strict=True))
    for arm in ("additive", "additive, gated"):
        young, old = (by_age("once", arm, age) for age in ("0 to 3", "32 to 63"))
        assert all(abs(a - b) < 0.03 for a, b in zip(young, old, strict=True))


def test_a_gate_clears_old_pages():
    assert max(accuracies("pages", "additive")) < 0.92 < 0.95 < min(accuracies("pages", "delta"))
    for arm in ("additive, gated", "delta, gated"):
        assert min(accuracies("pages", arm)) > 0.97 > max(accuracies("pages", "delta"))
        old, young = (by_age("pages", arm, age) for age in ("32 to 63", "0 to 3"))
        assert min(old) > max(by_age("pages", "delta", "32 to 63")) + 0.1
        assert min(young) > 0.98
