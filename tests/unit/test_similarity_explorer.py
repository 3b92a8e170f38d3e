"""The opening explorer of notebook 02, and its panel: what is drawn is what is computed."""

import math

import numpy as np
import pytest

from course_lib.widgets import similarity_explorer
from tests.helpers.explorers import fact, move, panels

#: Direction in degrees and norm of each key, as the notebook's text says them.
KEYS = [(20, 1.0), (60, 2.0), (130, 1.0), (200, 1.5), (300, 0.5)]


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
    vectors, bars = panels(made)
    assert np.allclose(bars.values, weights, atol=1e-5)
    assert np.allclose(vectors.data()["weight"], weights, atol=1e-5)
    assert [float(number) for number in fact(made, "scores").split()] == pytest.approx(
        scores, abs=0.0051
    )
    assert [float(number) for number in fact(made, "weights").split()] == pytest.approx(
        weights, abs=0.00051
    )
    assert math.hypot(*vectors.data()["query"][0]) == pytest.approx(norm, rel=1e-5)
