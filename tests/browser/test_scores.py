"""Notebook 02 in a real JupyterLab: its two explorers."""

import pytest
import torch

from course_lib.widgets import score_explorer, similarity_explorer
from tests.helpers.lab import Explorer

NOTEBOOK = "02_scoring_functions.ipynb"


@pytest.fixture(scope="module")
def plane(lab, screen):
    """The first explorer, after the first two cells have run."""
    screen.open(lab, NOTEBOOK)
    screen.run("start(seed=2)")
    screen.run("explorer = similarity_explorer()")
    return Explorer(screen.page, "One query and five keys")


@pytest.fixture(scope="module")
def explorer(plane, screen):
    """The other explorer needs nothing but the first cell."""
    screen.run('score_explorer(d=64, scale="1", query=5)')
    return Explorer(screen.page, "Scores of random vectors")


def test_a_moved_query_shows_what_course_lib_computes(plane):
    plane.press("direction", "ArrowRight", times=2)
    plane.choose("score", "cosine")
    wanted = similarity_explorer(score="cosine", direction=50).summary
    assert plane.summary() == wanted.replace(":\n  ", ": ").replace("\n  ", "; ")


def test_a_moved_slider_and_another_scale_show_what_course_lib_computes(explorer):
    explorer.press("d", "ArrowRight", times=2)
    explorer.choose("scale", "1/√d")
    said = explorer.summary()
    wanted = score_explorer(d=128, scale="1/√d", query=5).summary
    assert said == wanted.replace(":\n  ", ": ").replace("\n  ", "; ")


def test_the_variance_is_that_of_fresh_vectors(explorer):
    explorer.reset()
    said = float(explorer.summary().split("variance of the scores ")[1].split(";")[0])
    draw = torch.Generator().manual_seed(1)
    fresh = torch.randn(400, 64, generator=draw) @ torch.randn(400, 64, generator=draw).T
    assert said == pytest.approx(fresh.var().item(), rel=0.2)


def test_nothing_left_this_machine_and_nothing_complained(screen):
    assert screen.complaints() == []
