"""The experiments behind studies 05a and 05b: how many heads a lookup needs, and what shared KV heads cost."""

import pytest
import torch

from course_lib.experiments import heads as lookup
from course_lib.experiments import heads_longer


def test_a_question_by_position_asks_for_four_different_letters():
    letters, asked, labels = lookup.by_position(50, torch.Generator().manual_seed(0))
    assert letters.shape == (50, 12) and set(letters.flatten().tolist()) == set(range(8))
    for row, positions, right in zip(
        letters.tolist(), asked.tolist(), labels.tolist(), strict=True
    ):
        assert len(set(positions)) == 4
        assert right == [row[position] for position in positions]


def test_a_question_by_attribute_has_one_item_for_each_value():
    letters, attributes, asked, labels = lookup.by_attribute(50, torch.Generator().manual_seed(0))
    for example in range(50):
        for which in range(4):
            values = attributes[example, :, which].tolist()
            assert sorted(values) == list(range(12))
            item = values.index(asked[example, which].item())
            assert labels[example, which] == letters[example, item]


def by_hand(model, letters, *rest):
    """The logits of one example, with attention written as a loop over query heads."""
    attention, heads = model.attention, model.attention.num_heads
    asked = rest[-1]

    def sums(embedding, values):
        return sum(embedding.weight[12 * rank + value] for rank, value in enumerate(values))

    item = model.item.weight
    if model.attributes:
        item = torch.stack([sums(model.item, row) for row in rest[0].tolist()])
    keys, question = model.letter.weight[letters] + item, sums(model.asked, asked.tolist())
    q, k, v = attention.q_proj(question), attention.k_proj(keys), attention.v_proj(keys)
    size, group, found = q.shape[-1] // heads, heads // attention.num_kv_heads, []
    d_value = v.shape[-1] // attention.num_kv_heads
    for head in range(heads):
        own = slice(head * size, (head + 1) * size)
        shared, values = (
            slice(head // group * width, (head // group + 1) * width) for width in (size, d_value)
        )
        found.append(torch.softmax(k[:, shared] @ q[own] / size**0.5, dim=0) @ v[:, values])
    x = attention.out_proj(torch.cat(found))
    if model.path != "attention only":
        x = x + question
    if model.path == "residual and FFN":
        x = x + model.feed_forward(x)
    return model.out(x).view(4, 8)


@pytest.mark.parametrize(
    "options",
    [
        {"num_heads": 2, "path": "residual"},
        {"num_heads": 1, "path": "residual and FFN"},
        {"num_heads": 4, "num_kv_heads": 2, "attributes": True},
        {"num_heads": 4, "num_kv_heads": 1, "attributes": True, "d_model": 40},
        {"num_heads": 4, "num_kv_heads": 1, "attributes": True, "d_head": 16},
        {"num_heads": 4, "num_kv_heads": 1, "attributes": True, "d_model": 64, "d_head": 8},
        {"num_heads": 4, "num_kv_heads": 2, "attributes": True, "d_head": 16, "d_value": 8},
        {"num_heads": 32, "d_value": 8},
    ],
)
def test_the_model_is_what_its_options_say(options):
    torch.manual_seed(0)
    model = lookup.Retrieval(**options)
    assert model.attention.num_kv_heads == options.get("num_kv_heads", options["num_heads"])
    sample = lookup.by_attribute if model.attributes else lookup.by_position
    *inputs, _ = sample(3, torch.Generator().manual_seed(1))
    with torch.no_grad():
        logits = model(*inputs)
        for example in range(3):
            expected = by_hand(model, *(one[example] for one in inputs))
            torch.testing.assert_close(logits[example], expected, atol=1e-5, rtol=1e-4)


def test_training_learns():
    torch.manual_seed(0)
    before = lookup.accuracy(lookup.Retrieval(4))
    assert lookup.accuracy(lookup.trained(num_heads=4, steps=60)) > before + 0.1


def test_a_curve_passes_through_what_shorter_training_reaches(monkeypatch):
    options = {"num_heads": 2}
    monkeypatch.setitem(heads_longer.ARMS, "short", heads_longer.Arm({0.01: 1}, 6, 3, options))
    expected = [
        lookup.accuracy(lookup.trained(steps=n, lr=0.01, seed=1, **options)) for n in (3, 6)
    ]
    assert heads_longer.run("short", lr=0.01, seed=1) == [{"every": 3, "right": expected}]


def test_the_best_curves_end_highest_on_average():
    for arm in heads_longer.ARMS:
        ends = [
            [list(curve.values())[-1] for curve in curves]
            for curves in heads_longer.curves(arm).values()
        ]
        best = [list(curve.values())[-1] for curve in heads_longer.best(arm)]
        assert best in ends and sum(best) / len(best) == max(sum(one) / len(one) for one in ends)
        assert list(heads_longer.best(arm)[0])[-1] == heads_longer.ARMS[arm].steps


def test_a_sweep_goes_on_until_the_best_rate_has_a_worse_one_on_both_sides():
    arm, rows = "attention only, 1 heads", []
    right = {0.005: 0.5, 0.0025: 0.6, 0.00125: 0.4, 0.01: 0.3}
    asked = []
    while more := [one for one in lookup.plan(rows) if one["arm"] == arm and one not in asked]:
        asked += more
        rows += [one | {"right": right[one["lr"]]} for one in more]
    rates = [one["lr"] for one in asked]
    assert rates == 3 * [0.005] + 3 * [0.0025] + 3 * [0.00125] + 2 * [0.0025]
    assert [one["seed"] for one in asked[-2:]] == [3, 4]
