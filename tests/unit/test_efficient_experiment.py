"""The experiment behind notebook 10: which kinds of attention retrieve over a distance."""

import pytest
import torch

from course_lib.experiments import efficient, fixed_rank
from course_lib.topics.efficient import attention_pattern, linear_attention, performer_attention
from course_lib.transformer.multihead import merge_heads, split_heads


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


def test_linformer_of_full_rank_begins_as_dense_attention():
    torch.manual_seed(0)
    layer = efficient.Attention("linformer", rank=efficient.LENGTH, start="identity")
    dense = efficient.Attention("dense")
    dense.load_state_dict(layer.state_dict(), strict=False)
    x = torch.randn(3, efficient.LENGTH, efficient.D_MODEL)
    torch.testing.assert_close(layer(x), dense(x))


@pytest.mark.parametrize("rank", [8, 64])
@pytest.mark.parametrize("start", efficient.STARTS)
def test_linformer_has_the_rank_and_the_start_asked_for(rank, start):
    layer = efficient.Attention("linformer", rank=rank, start=start)
    assert layer.keys.shape == layer.values.shape == (rank, efficient.LENGTH)
    positions = torch.arange(rank) % efficient.LENGTH
    assert torch.equal(layer.keys.argmax(dim=1), positions) == (start == "identity")


def test_ranks_are_recorded_for_both_starts():
    for start, ranks in fixed_rank.RANKS.items():
        for rank in ranks:
            found = fixed_rank.best(start, rank)
            assert len(found) == len(efficient.SEEDS) and min(found) > 1 / efficient.LETTERS
    assert min(fixed_rank.best("identity", 32)) > 0.99
    assert fixed_rank.by_position(32) == fixed_rank.by_position(64) == 1.0
    assert fixed_rank.by_position(8) == pytest.approx(8 / 32 + 24 / 32 / 16)
