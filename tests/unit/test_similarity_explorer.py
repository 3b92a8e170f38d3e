"""The opening explorer of notebook 02, and its panel: what is drawn is what is computed."""

import math
import random
import re

import numpy as np
import pytest

from course_lib.plots import VectorsPanel, figure
from course_lib.widgets import similarity_explorer
from tests.helpers.explorers import move, moved_at_random

#: Direction in degrees and norm of each key, as the notebook's text says them.
KEYS = [(20, 1.0), (60, 2.0), (130, 1.0), (200, 1.5), (300, 0.5)]


def fact(explorer, name):
    return re.search(rf"^  {name} (.*)$", explorer.summary, re.MULTILINE)[1]


def score_by_hand(name, direction, norm, key):
    """By angles, without vectors."""
    angle = math.radians(direction - key[0])
    if name == "Gaussian":  # the law of cosines
        return -(norm**2 + key[1] ** 2 - 2 * norm * key[1] * math.cos(angle)) / 2
    return math.cos(angle) * (norm * key[1] if name == "dot" else 1)


@pytest.mark.parametrize("name", ["dot", "cosine", "Gaussian"])
@pytest.mark.parametrize(("direction", "norm"), [(0, 0.25), (40, 1.0), (215, 2.75), (355, 4.0)])
def test_scores_and_weights_are_those_of_the_angles_and_norms(name, direction, norm):
    made = move(similarity_explorer(), score=name, direction=direction, norm=norm)
    scores = np.array([score_by_hand(name, direction, norm, key) for key in KEYS])
    weights = np.exp(scores) / np.exp(scores).sum()
    vectors, bars = made.picture.figure.panels
    assert np.allclose(bars.values, weights, atol=1e-5)
    assert np.allclose(vectors.data()["weight"], weights, atol=1e-5)
    assert [float(number) for number in fact(made, "scores").split()] == pytest.approx(
        scores, abs=0.0051
    )
    assert [float(number) for number in fact(made, "weights").split()] == pytest.approx(
        weights, abs=0.00051
    )
    assert math.hypot(*vectors.data()["query"]) == pytest.approx(norm, rel=1e-5)


def test_what_the_notebook_says_about_it():
    along = similarity_explorer(direction=20, norm=1.0)
    first, second, *_ = map(float, fact(along, "weights").split())
    assert second > first, "the longer key wins over the one in the query's direction"
    flat, sharp = (similarity_explorer(norm=norm) for norm in (0.25, 4.0))
    assert max(map(float, fact(flat, "weights").split())) < 0.35
    assert max(map(float, fact(sharp, "weights").split())) > 0.95
    orders = [np.argsort(made.picture.figure.panels[1].values).tolist() for made in (flat, sharp)]
    assert orders[0] == orders[1]
    for name, wanted in (("dot", 1), ("cosine", 0), ("Gaussian", 0)):
        made = similarity_explorer(score=name, direction=20, norm=1.0)
        assert made.picture.figure.panels[1].values.argmax() == wanted


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"score": "general"}, "score='general' is unknown"),
        ({"direction": 3}, "direction=3 must be a multiple of 5 from 0 to 355"),
        ({"direction": 360}, "direction=360 must be a multiple of 5"),
        ({"norm": 0.0}, "norm=0.0 must be a multiple of 0.25 from 0.25 to 4"),
        ({"norm": 4.25}, "norm=4.25 must be a multiple"),
        ({"norm": 1.1}, "norm=1.1 must be a multiple"),
    ],
)
def test_settings_that_the_explorer_does_not_have_are_refused(settings, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        similarity_explorer(**settings)


def test_moved_pictures_are_full_drawings():
    positions = {
        "score": ["dot", "cosine", "Gaussian"],
        "direction": [0, 55, 190, 355],
        "norm": [0.25, 1.5, 4.0],
    }
    _, pictures = moved_at_random(similarity_explorer, positions, random.Random(0), 12)
    assert len(pictures) > 6


def test_a_disc_has_an_area_in_proportion_to_the_weight_and_sits_at_the_end_of_its_key():
    _, axes = figure()
    panel = VectorsPanel(axes, [[1, 0], [0, 2]], 3)
    panel.update([1, 1], [0.25, 0.75])
    small, large = panel._discs.get_sizes()
    assert large == pytest.approx(3 * small)
    assert panel._discs.get_offsets().tolist() == [[1, 0], [0, 2]]
