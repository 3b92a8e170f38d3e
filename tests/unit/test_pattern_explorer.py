"""The pattern explorer: the pattern pair by pair, the weights it loses, and what it costs at any length."""

import re

import numpy as np
import pytest
import torch

from course_lib.topics.efficient import PATTERNS
from course_lib.widgets import pattern_explorer
from course_lib.widgets.patterns import allowed_pairs
from tests.helpers.explorers import fact, move, panels, values_of

LENGTH = 12

RULES = {
    "dense": lambda i, j, w, g: True,
    "causal": lambda i, j, w, g: j <= i,
    "sliding_window": lambda i, j, w, g: abs(i - j) <= w,
    "causal_sliding_window": lambda i, j, w, g: i - w < j <= i,
    "block": lambda i, j, w, g: i // w == j // w,
    "causal_block": lambda i, j, w, g: i // w == j // w and j <= i,
    "longformer": lambda i, j, w, g: abs(i - j) <= w or i < g or j < g,
}


def pairs(kind, length, window, globals_):
    rule = RULES[kind]
    return np.array([[rule(i, j, window, globals_) for j in range(length)] for i in range(length)])


def weights(length=LENGTH):
    return torch.randn(length, length, generator=torch.Generator().manual_seed(1)).softmax(-1)


@pytest.fixture(scope="module")
def explorer():
    return pattern_explorer(weights())


@pytest.mark.parametrize("kind", PATTERNS)
@pytest.mark.parametrize(("window", "globals_"), [(1, 0), (3, 2), (LENGTH, 8)])
def test_pattern_lost_weights_and_cost(explorer, kind, window, globals_):
    explorer.choose(kind="longformer", window=window, global_tokens=globals_)
    move(explorer, kind=kind)
    pattern, kept, cost = panels(explorer)
    allowed, exact = pairs(kind, LENGTH, window, globals_), weights().numpy()
    assert np.array_equal(pattern.values, np.where(allowed, 1, -1))
    assert np.allclose(kept.values, np.where(allowed, exact, -exact))
    share = 100 * allowed.mean()
    assert fact(explorer, "scores") == f"{allowed.sum()} of {LENGTH**2} ({share:.1f} %)"
    lost = np.where(allowed, 0, exact).sum(1)
    told = f"{lost.mean():.3f} on average, {lost.max():.3f} for query {lost.argmax()}"
    assert fact(explorer, "attention lost") == told
    # the lost share is the total variation distance from the renormalised row
    sparse = np.where(allowed, exact, 0)
    apart = np.abs(sparse / sparse.sum(1, keepdims=True) - exact).sum(1) / 2
    assert np.allclose(apart, lost, atol=1e-6)
    assert np.allclose(cost.lines["dense"], np.asarray(cost.x, dtype=float) ** 2 * 4 / 2**20)
    count = pairs(kind, 256, window, globals_).sum()
    assert np.isclose(cost.lines["this pattern"][list(cost.x).index(256)], count * 4 / 2**20)
    at = cost.lines["this pattern"][list(cost.x).index(8192)]
    assert cost.data()["height"] == at
    percent = float(re.search(r"([\d.]+) % of dense", explorer.summary).group(1))
    assert percent == pytest.approx(100 * at / (8192**2 * 4 / 2**20), rel=0.01)


@pytest.mark.parametrize("kind", PATTERNS)
@pytest.mark.parametrize("length", [1, 5, 33])
def test_pairs_are_counted_without_a_matrix(kind, length):
    for window, globals_ in ((1, 0), (4, 1), (4, 3), (40, 3)):
        counted = allowed_pairs(kind, length, window, globals_)
        assert counted == pairs(kind, length, window, globals_).sum()


def test_a_control_without_effect_is_switched_off(explorer):
    for kind in PATTERNS:
        controls = move(explorer, kind=kind).controls.items()
        wanted = {"kind", "window", "global_tokens"} if kind == "longformer" else {"kind", "window"}
        wanted = {"kind"} if kind in ("dense", "causal") else wanted
        assert {name for name, one in controls if not one.disabled} == wanted


@pytest.mark.usefixtures("without_annotations")
@pytest.mark.parametrize(
    ("given", "says"),
    [
        (weights()[:5], r"weights has shape \(5, 12\); it must be square"),
        (weights() * 2, "weights has rows that do not sum to 1"),
    ],
)
def test_weights_of_another_kind_are_refused(given, says):
    with pytest.raises(ValueError, match=says):
        pattern_explorer(given)


def test_lost_weights_are_amounts_and_not_negative_numbers():
    explorer = pattern_explorer(weights(), kind="block", window=5)
    _, kept, _ = panels(explorer)
    top, middle, low = (text.get_text() for text in kept._levels)
    assert top == low and middle == "0" and not top.startswith("-")
    region, allowed = explorer.picture.hover[1], pairs("block", LENGTH, 5, 0)
    assert np.allclose(values_of(region), weights().numpy())
    assert region["texts"] == [["kept" if one else "lost" for one in row] for row in allowed]
    assert np.allclose(np.sort(kept.data()["lost"]), np.sort(weights().numpy()[~allowed]))
