"""Notebook 01 in a real JupyterLab: what a learner sees, touches, reads and saves."""

import re

import pytest
import torch

from course_lib.data import nile_series, wave_series
from course_lib.topics.pooling import attention_pooling, leave_one_out_error
from course_lib.widgets import kernel_regression_explorer
from course_lib.widgets.explorer import short
from tests.helpers.lab import Explorer

NOTEBOOK = "01_kernel_regression.ipynb"


@pytest.fixture(scope="module")
def fresh(lab, screen):
    """The notebook as it is opened, before anything has run."""
    screen.open(lab, NOTEBOOK)
    return screen


@pytest.fixture(scope="module")
def ran(fresh):
    """The notebook after all cells have run."""
    fresh.run_all()
    return fresh


@pytest.fixture
def explorer(ran):
    """The first explorer, reset."""
    found = Explorer(ran.page, "Kernel regression of the flow of the Nile")
    found.reset()
    return found


def test_the_picture_is_there_before_anything_has_run(fresh):
    image = fresh.page.locator(".jp-OutputArea-output img").first
    image.scroll_into_view_if_needed()
    assert image.evaluate("(image) => image.complete && image.naturalWidth > 1000")
    assert fresh.page.locator(".widget-slider").count() == 0


def test_no_question_and_no_update_check_greets_the_learner(fresh):
    assert fresh.page.locator(".jp-Dialog").count() == 0
    fresh.page.wait_for_timeout(1500)
    assert not fresh.page.get_by_text(re.compile("Jupyter news|update available", re.I)).count()


def test_a_slider_dragged_by_mouse_changes_the_picture(explorer):
    before = explorer.picture()
    explorer.drag("query", 60)
    assert explorer.picture() != before
    assert explorer.value("query") > 1899


def test_the_words_below_are_what_course_lib_computes(ran):
    stub = 'check("leave_one_out", leave_one_out)'
    options = 'bandwidth=0.1, query=2.5, kernel="boxcar"'
    ran.edit_and_run(stub, f"kernel_regression_explorer(wave_series(), {options})")
    explorer = Explorer(ran.page, "Kernel regression of the noisy wave")
    explorer.reset()
    # to 2.6 and 10 ** -0.2: the browser says one decimal
    explorer.press("query", "ArrowRight", times=5)
    explorer.press("bandwidth", "ArrowRight", times=40)
    explorer.choose("kernel", "epanechnikov")
    query, bandwidth = explorer.value("query"), 10 ** explorer.value("bandwidth")
    wave = wave_series()
    pooled = attention_pooling(
        torch.tensor([query]), wave.keys, wave.values, kernel="epanechnikov", bandwidth=bandwidth
    )
    loss = leave_one_out_error(wave.keys, wave.values, kernel="epanechnikov", bandwidth=bandwidth)
    said = explorer.summary()
    assert f"query {query:.5g};" in said
    assert f"output {short(pooled.output.item())};" in said
    assert f"leave-one-out error {short(loss.item())}" in said
    assert (
        explorer.image.get_attribute("alt")
        .replace("\n  ", " ")
        .startswith("Kernel regression of the noisy wave")
    )


def test_the_pointer_reads_off_the_exact_weight(explorer):
    nile = nile_series()
    hover = kernel_regression_explorer(nile, error=False).picture.hover
    explorer.point_at(next(region for region in hover if region["lines"][0][0] == "weight"), 1899.0)
    query, bandwidth = explorer.value("query"), 10 ** explorer.value("bandwidth")
    weights = attention_pooling(
        torch.tensor([query]), nile.keys, nile.values, bandwidth=bandwidth
    ).weights[0]
    assert explorer.tip() == f"year 1899: weight {float(f'{weights[28]:.4g}'):g}"


def test_the_arrow_keys_read_off_values_as_well(explorer):
    explorer.stage.focus()
    explorer.page.keyboard.press("ArrowRight")
    first = explorer.tip()
    for _ in range(5):
        explorer.page.keyboard.press("ArrowRight")
    assert explorer.tip().startswith("year ") and explorer.tip() != first
    explorer.page.keyboard.press("Escape")
    assert explorer.stage.locator(".course-picture-tip").is_hidden()


@pytest.mark.parametrize(("button", "begins"), [("Save PNG", b"\x89PNG"), ("Save SVG", b"<?xml")])
def test_the_picture_can_be_saved(explorer, tmp_path, button, begins):
    with explorer.page.expect_download() as download:
        explorer.root.get_by_role("button", name=button).click()
    download.value.save_as(tmp_path / "saved")
    assert (tmp_path / "saved").read_bytes().startswith(begins)
    assert download.value.suggested_filename == f"kernel-regression.{button[-3:].lower()}"


def test_a_right_answer_is_confirmed_and_an_endless_loop_does_not_kill_the_kernel(ran):
    stub = 'check("batched_regression", batched_regression)'
    attempt = "def batched_regression(queries, keys, values, bandwidth):\n    {}\n\n\n" + stub
    answer = (
        "scores = -(((queries[:, :, None] - keys[:, None, :]) / bandwidth) ** 2) / 2\n"
        "    return torch.softmax(scores, dim=-1) @ values"
    )
    ran.edit_and_run(stub, attempt.format(answer))
    assert "Correct on all 3 cases" in ran.output(stub)
    ran.edit_and_run(stub, attempt.format("while True: pass"), timeout=20)
    assert "Stopped after 5 seconds" in ran.output(stub)
    ran.edit_and_run(stub, attempt.format("exit()"))
    assert "Your code raised SystemExit" in ran.output(stub)
    ran.edit_and_run(stub, attempt.format(answer.replace("dim=-1", "dim=-2")))
    assert "Your softmax runs over the queries" in ran.output(stub)


def test_nothing_left_this_machine_and_nothing_complained(ran):
    assert ran.complaints() == []
