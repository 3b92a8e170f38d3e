"""The pattern explorer: the pattern pair by pair, the weights it loses, and what it costs at any length."""

import random
import re

import numpy as np
import pytest
import torch

from course_lib.efficient import PATTERNS
from course_lib.widgets import pattern_explorer
from course_lib.widgets.patterns import allowed_pairs
from tests.helpers.explorers import move, moved_at_random

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


def said(explorer, name):
    """What the summary says of a name."""
    return re.search(rf"^  {name} (.*)$", explorer.summary, re.MULTILINE).group(1)


@pytest.fixture(scope="module")
def explorer():
    return pattern_explorer(weights())


@pytest.mark.parametrize("kind", PATTERNS)
@pytest.mark.parametrize(("window", "globals_"), [(1, 0), (3, 2), (LENGTH, 8)])
def test_pattern_lost_weights_and_cost(explorer, kind, window, globals_):
    move(explorer, kind="longformer", window=window, global_tokens=globals_)
    move(explorer, kind=kind)
    pattern, kept, cost = explorer.picture.figure.panels
    allowed, exact = pairs(kind, LENGTH, window, globals_), weights().numpy()
    assert np.array_equal(pattern.values, np.where(allowed, 1, -1))
    assert np.allclose(kept.values, np.where(allowed, exact, -exact))
    assert said(explorer, "pattern") == kind
    share = 100 * allowed.mean()
    assert said(explorer, "scores") == f"{allowed.sum()} of {LENGTH**2} ({share:.1f} %)"
    lost = np.where(allowed, 0, exact).sum(1)
    told = f"{lost.mean():.3f} on average, {lost.max():.3f} for query {lost.argmax()}"
    assert said(explorer, "attention lost") == told
    # the lost share is the total variation distance from the renormalised row
    sparse = np.where(allowed, exact, 0)
    sparse = sparse / sparse.sum(1, keepdims=True)
    assert np.allclose(np.abs(sparse - exact).sum(1) / 2, lost, atol=1e-6)
    assert np.allclose(cost.lines["dense"], np.asarray(cost.x, dtype=float) ** 2 * 4 / 2**20)
    count = pairs(kind, 256, window, globals_).sum()
    assert np.isclose(cost.lines["this pattern"][list(cost.x).index(256)], count * 4 / 2**20)
    at = cost.lines["this pattern"][list(cost.x).index(8192)]
    assert cost.data()["height"] == at
    percent = float(re.search(r"([\d.]+) % of dense", explorer.summary).group(1))
    assert percent == pytest.approx(100 * at / (8192**2 * 4 / 2**20), rel=0.01)


@pytest.mark.parametrize("kind", PATTERNS)
@pytest.mark.parametrize("length", [1, 5, 33])
@pytest.mark.parametrize("window", [1, 4, 40])
@pytest.mark.parametrize("globals_", [0, 1, 3])
def test_pairs_are_counted_without_a_matrix(kind, length, window, globals_):
    counted = allowed_pairs(kind, length, window, globals_)
    assert counted == pairs(kind, length, window, globals_).sum()


def test_a_control_without_effect_is_switched_off(explorer):
    on = {}
    for kind in PATTERNS:
        move(explorer, kind=kind)
        on[kind] = {name for name, one in explorer.controls.items() if not one.disabled}
    assert on["dense"] == on["causal"] == {"kind"}
    assert on["longformer"] == {"kind", "window", "global_tokens"}
    for kind in ("sliding_window", "causal_sliding_window", "block", "causal_block"):
        assert on[kind] == {"kind", "window"}


def test_initial_settings_and_code():
    made = pattern_explorer(weights(), kind="longformer", window=2, global_tokens=3)
    assert {name: one.value for name, one in made.controls.items()} == {
        "kind": "longformer",
        "window": 2,
        "global_tokens": 3,
    }
    expected = "pattern_explorer(weights(), kind='longformer', window=2, global_tokens=3)"
    assert made.code == expected
    move(made, window=4, global_tokens=1)
    assert made.code == "pattern_explorer(weights(), kind='longformer')"
    assert (made.controls["window"].min, made.controls["window"].max) == (1, LENGTH)


def test_moved_pictures_equal_full_drawings():
    moved_at_random(
        lambda: pattern_explorer(weights()),
        {"kind": PATTERNS, "window": range(1, 12), "global_tokens": range(9)},
        random.Random(0),
        turns=14,
    )


@pytest.mark.usefixtures("without_annotations")
@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: pattern_explorer(None), "weights is a NoneType"),
        (lambda: pattern_explorer(weights()[None]), "weights has shape (1, 12, 12); it must be a map of self-attention"),
        (lambda: pattern_explorer(weights()[:5]), "weights has shape (5, 12); it must be a map of self-attention"),
        (lambda: pattern_explorer(weights() * 2), "weights has rows that do not sum to 1"),
        (lambda: pattern_explorer(weights(), kind="window"), "kind='window' is unknown"),
        (lambda: pattern_explorer(weights(), window=0), "window=0 is below 1"),
        (lambda: pattern_explorer(weights(), window=13), "window=13 must be at most 12"),
        (lambda: pattern_explorer(weights(), global_tokens=-1), "global_tokens=-1 is below 0"),
        (lambda: pattern_explorer(weights(), global_tokens=9), "global_tokens=9 must be at most 8"),
    ],
)  # fmt: skip
def test_invalid_input_raises_value_error(call, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        call()


def test_lost_weights_are_amounts_and_not_negative_numbers():
    explorer = pattern_explorer(weights(), kind="block", window=5)
    pattern, kept, _ = explorer.picture.figure.panels
    top, middle, low = kept._bar.numbers()
    assert top == low and middle == "0" and not top.startswith("-")
    region = explorer.picture.hover[1]
    values = np.frombuffer(region["values"], "<f4").reshape(region["shape"])
    assert np.allclose(values, weights().numpy())
    allowed = pairs("block", LENGTH, 5, 0)
    assert region["texts"] == [["kept" if one else "lost" for one in row] for row in allowed]
    drawn = kept.data()
    assert np.allclose(np.sort(drawn["lost"]), np.sort(weights().numpy()[~allowed]))
    ticks = [int(text.get_text()) for text in pattern.axes.get_xticklabels()]
    assert ticks == [0, 2, 4, 6, 8, 10]
    assert explorer.picture.width <= 1040
