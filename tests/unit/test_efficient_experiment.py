"""The experiment behind notebook 10: which kinds of attention retrieve over a distance."""

import pytest
import torch

from course_lib.efficient import attention_pattern, linear_attention, performer_attention
from course_lib.experiments import efficient
from course_lib.multihead import merge_heads, split_heads


def test_one_fact_has_the_same_answer_everywhere():
    marked, letters, asked, labels, place = efficient.TASKS["one fact"](
        9, torch.Generator().manual_seed(0)
    )
    assert marked.shape == letters.shape == labels.shape == (9, efficient.LENGTH)
    assert (marked.sum(dim=1) == 1).all() and (asked == 0).all()
    for row in range(9):
        where = marked[row].argmax()
        assert (place[row] == where).all() and (labels[row] == letters[row, where]).all()


def test_own_fact_asks_every_position_for_another_letter():
    names, letters, asked, labels, place = efficient.TASKS["own fact"](
        9, torch.Generator().manual_seed(0)
    )
    assert letters.max() < efficient.LETTERS
    for row in range(9):
        found = names[row].tolist()
        assert sorted(found) == sorted(asked[row].tolist()) == list(range(efficient.LENGTH))
        for i in range(efficient.LENGTH):
            where = found.index(asked[row, i].item())
            assert place[row, i] == where and labels[row, i] == letters[row, where]


@pytest.mark.parametrize(
    ("kind", "name", "positions"),
    [("window", "sliding_window", ()), ("longformer", "longformer", range(2))],
)
def test_the_patterns_are_those_of_the_library(kind, name, positions):
    expected = attention_pattern(
        name, efficient.LENGTH, efficient.WINDOW, global_positions=positions
    )
    assert torch.equal(efficient.pattern(kind), expected)


@pytest.mark.parametrize(
    ("kind", "features"), [("linear", 16), ("performer", 24), ("linformer", 0), ("dense", 0)]
)
def test_each_kind_computes_what_the_library_computes(kind, features):
    torch.manual_seed(0)
    layer, x = (
        efficient.Attention(kind, features),
        torch.randn(3, efficient.LENGTH, efficient.D_MODEL),
    )
    q, k, v = (split_heads(part, efficient.NUM_HEADS) for part in layer.in_proj(x).chunk(3, dim=-1))
    if kind == "linear":
        heads = linear_attention(q, k, v)
    elif kind == "performer":
        each = zip(q.unbind(1), k.unbind(1), v.unbind(1), layer.projection, strict=True)
        heads = torch.stack([performer_attention(*one) for one in each], dim=1)
    else:
        if kind == "linformer":
            k, v = layer.keys @ k, layer.values @ v
        heads = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    expected = layer.out_proj(merge_heads(heads))
    torch.testing.assert_close(layer(x), expected, atol=1e-4, rtol=1e-3)


def test_models_trained_side_by_side_learn_what_one_alone_learns():
    settings = {"seeds": (0, 1), "budgets": (10, 60)}
    accuracies, by_distance = efficient.train("one fact", "dense", (2e-3, 8e-3), **settings)
    assert accuracies[10].shape == (2, 2) and by_distance.shape == (2, 2, len(efficient.DISTANCES))
    alone = efficient.accuracy(
        efficient.trained("one fact", "dense", lr=8e-3, steps=60, seed=1), "one fact"
    )
    assert accuracies[60][1, 1].item() == pytest.approx(alone, abs=0.02)
    assert accuracies[60][1].mean() > accuracies[10][1].mean()


def test_the_maps_are_those_of_the_model():
    torch.manual_seed(0)
    model = efficient.Retriever(("dense", "dense"))
    maps = efficient.attention_maps(model, "own fact")
    assert maps.shape == (2, efficient.NUM_HEADS, efficient.LENGTH, efficient.LENGTH)
    torch.testing.assert_close(
        maps.sum(dim=-1), torch.ones(2, efficient.NUM_HEADS, efficient.LENGTH)
    )
    assert not any(one._forward_pre_hooks for one in model.attention)


def test_unknown_tasks_and_arms_are_refused():
    with pytest.raises(ValueError, match="task='two facts' is unknown"):
        efficient.trained("two facts", "dense")
    with pytest.raises(ValueError, match="arm='sparse' is unknown"):
        efficient.train("one fact", "sparse", (1e-3,))


@pytest.mark.parametrize("task", efficient.TASKS)
def test_every_arm_is_recorded_at_every_learning_rate(task):
    assert list(efficient.recorded()) == list(efficient.TASKS) and list(
        efficient.recorded()[task]
    ) == list(efficient.ARMS)
    for arm, found in efficient.recorded()[task].items():
        assert list(found) == [*map(str, efficient.BUDGETS), "by distance"]
        assert list(found["by distance"]) == list(efficient.DISTANCES)
        for budget in efficient.BUDGETS:
            by_rate = found[str(budget)]
            assert [float(rate) for rate in by_rate] == list(efficient.RATES)
            assert all(len(runs) == len(efficient.SEEDS) for runs in by_rate.values())
            assert sum(efficient.best(task, arm, budget)) == max(map(sum, by_rate.values()))


def test_a_window_answers_within_its_reach_and_guesses_beyond():
    """Two layers of a window of 4 reach 8 positions; a question is answered within 4."""
    one, own = (efficient.recorded()[task]["window"]["by distance"] for task in efficient.TASKS)
    for group in ("0 to 4", "5 to 8"):
        assert min(one[group]) > 0.99
    assert max(one["9 to 16"] + one["17 to 31"]) < 0.15
    assert min(own["0 to 4"]) > 0.99
    assert max(own["5 to 8"] + own["9 to 16"]) < 0.15
