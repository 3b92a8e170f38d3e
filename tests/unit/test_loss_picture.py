"""A training that is watched: what is drawn and said, how it ends, and that it costs little."""

import signal
import time
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from course_lib.train import fit
from course_lib.widgets import LossPicture, loss_picture, watch
from course_lib.widgets.picture import Picture


@pytest.fixture
def shown(monkeypatch):
    """What a notebook would show, in order; the picture is replaced in its place."""
    things = []

    def display(thing, display_id=False):
        things.append(thing)
        place = len(things) - 1
        return SimpleNamespace(update=lambda other: things.__setitem__(place, other))

    monkeypatch.setattr(loss_picture, "display", display)
    monkeypatch.setattr(loss_picture, "get_ipython", lambda: SimpleNamespace(kernel=object()))
    return things


def curve(picture, name="loss"):
    (panel,) = picture.figure.panels
    return panel._curves[name].get_xydata()


# --- in a notebook -----------------------------------------------------------------------------


def test_the_curve_grows_and_a_still_picture_and_two_tables_are_left(shown, monkeypatch):
    monkeypatch.setattr(loss_picture, "_PAUSE", 0)
    monkeypatch.setattr(loss_picture, "_SHARE", 0)
    losses, pictures, said, watched = np.geomspace(2, 0.01, 50), [], [], []
    for loss in watch(losses, answer=lambda: f"after {len(watched) + 1} <b>"):
        watched.append(loss)
        live = shown[0]
        assert len(shown) == 1 and repr(live) == "Training loss, 50 steps."
        pictures.append(live.children[0].png)
        said.append(live.children[1].value)
    assert watched == list(losses) and len(set(pictures)) == 50
    assert said[11].startswith("<p>step 12 of 50, loss 0.609, ") and "after" not in said[11]
    assert said[31].startswith("<p>step 32 of 50, loss 0.07") and "after 32 &lt;b&gt;" in said[31]
    still, numbers, answers = shown
    assert isinstance(still, Picture)
    assert still._repr_mimebundle_()[0]["text/plain"] == "Training loss, 50 steps."
    assert np.allclose(curve(still), np.stack([np.arange(1, 51), losses], axis=1))
    low, high = still.figure.panels[0].axes.get_ylim()
    assert low < 0.01 and 2 < high
    assert numbers.rows[0] == [1, 2.0] and numbers.rows[-1] == [50, pytest.approx(0.01)]
    assert answers.rows == [[16, "after 16 <b>"], [32, "after 32 <b>"], [50, "after 51 <b>"]]
    assert answers.generated == {"answer"}, "tests of a notebook do not compare what a model says"


def test_several_losses_share_a_picture_and_keep_their_names(shown):
    kept = list(watch(({"a": 2.0 / n, "b": 1.0} for n in range(1, 31)), 30))
    assert kept[1] == {"a": 1.0, "b": 1.0}
    still, numbers = shown
    assert curve(still, "a")[:, 1].tolist() == [2.0 / n for n in range(1, 31)]
    assert numbers.header == ["step", "a", "b"]
    with pytest.raises(ValueError, match="step 2 has the losses a, the first had a, b"):
        list(watch([{"a": 1, "b": 1}, {"a": 1}]))


@pytest.mark.parametrize("steps, title", [(None, "Training loss."), (10, "Training loss, 10 ste")])
def test_more_steps_than_were_said_find_room(shown, steps, title):
    list(watch(iter(np.geomspace(2, 1, 150)), steps))
    assert curve(shown[0])[-1].tolist() == [150, 1.0]
    assert shown[0].summary.startswith(title)


def test_what_a_logarithmic_axis_cannot_show_is_left_out_without_complaint(shown, recwarn):
    list(watch([0.0, float("nan"), -1.0]))
    still, numbers = shown
    assert still.png and not recwarn.list
    assert numbers.rows[0] == [1, 0.0] and numbers.rows[-1] == [3, -1.0]


def test_drawing_takes_one_per_cent_of_the_time_however_slow_it_is(shown, monkeypatch):
    now, drawn = [0.0], []
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    refresh = Picture.refresh

    def slow(*arguments):
        refresh(*arguments)
        now[0] += 2
        drawn.append(now[0])

    monkeypatch.setattr(Picture, "refresh", slow)
    for _ in watch([1.0] * 1000):
        now[0] += 1
    assert 3 < len(drawn) and 2 * len(drawn) <= 0.01 * now[0]


# --- how it ends -------------------------------------------------------------------------------


def test_the_stop_button_ends_the_training_after_the_step_that_runs(shown):
    before, done, steps = signal.getsignal(signal.SIGINT), [], []

    def train():
        for step in range(1, 100):
            steps.append(step)
            if step == 20:
                signal.raise_signal(signal.SIGINT)
            yield 1 / step

    for loss in watch(train(), 99, answer=lambda: "said"):
        done.append(loss)
    assert len(done) == len(steps) == 20
    assert signal.getsignal(signal.SIGINT) is before
    still, numbers, answers = shown
    assert still.summary == "Training loss, stopped after 20 of 99 steps."
    assert curve(still).shape == (20, 2) and numbers.rows[-1] == [20, 1 / 20]
    assert answers.rows == [[16, "said"], [20, "said"]]


def test_pressed_twice_in_one_step_it_ends_at_once(shown):
    before, done = signal.getsignal(signal.SIGINT), []
    with pytest.raises(KeyboardInterrupt):
        for loss in watch([3.0, 2.0, 1.0]):
            done.append(loss)
            for _ in range(2):
                signal.raise_signal(signal.SIGINT)
    assert done == [3.0] and signal.getsignal(signal.SIGINT) is before


def test_a_loop_that_breaks_and_one_that_fails_keep_their_picture(shown):
    for _ in watch([3.0, 2.0, 1.0]):
        break
    assert shown[0].summary == "Training loss, stopped after 1 of 3 steps."
    with pytest.raises(ZeroDivisionError):
        list(watch((1 / (2 - n) for n in range(5)), 5))
    assert shown[2].summary == "Training loss, stopped after 2 of 5 steps."


def test_a_training_with_fit_draws_and_ends_early(shown):
    def batches():
        yield torch.ones(4, 1)
        yield torch.ones(4, 1)
        raise KeyboardInterrupt

    def loss(model, x):
        return model(x).square().mean() + 1

    history = fit(nn.Linear(1, 1), batches(), loss, steps=9, callback=LossPicture())
    assert history.stopped == "interrupted"
    assert curve(shown[0])[:, 1].tolist() == pytest.approx(history.losses)
    assert shown[0].summary == "Training loss, stopped after 2 of 9 steps."


def test_a_training_that_fails_keeps_its_picture_which_is_for_one_training(shown):
    model, picture, losses = nn.Linear(1, 1), LossPicture(), iter([1.0, float("nan"), 1.0])

    def train():
        batches = [torch.ones(4, 1)] * 2
        fit(model, batches, lambda m, x: m(x).mean() * next(losses), steps=2, callback=picture)

    with pytest.raises(FloatingPointError, match=r"the loss is nan; .*\nin training step 2"):
        train()
    assert shown[0].summary == "Training loss, stopped after 1 of 2 steps."
    with pytest.raises(ValueError, match="make a new one"):
        train()


def test_a_run_that_is_resumed_is_drawn_from_its_step_on(shown):
    with LossPicture(answer=lambda: "") as picture:
        for step in (31, 32, 33):
            picture(SimpleNamespace(step=step, loss=1.0))
    assert np.isnan(curve(shown[0])[:30, 1]).all() and curve(shown[0])[30:, 1].tolist() == [1] * 3
    assert picture.answers == {32: "–", 33: "–"}


# --- elsewhere ---------------------------------------------------------------------------------


def test_where_there_is_no_notebook_lines_are_printed(capsys):
    list(watch(np.geomspace(2, 0.01, 40), answer=lambda: "ein Hund"))
    list(watch(iter([{"a": 1.0, "b": 0.5}] * 20)))
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(",")[0] for line in lines[:3]] == [f"step {n} of 40" for n in (16, 32, 40)]
    assert lines[2] == "step 40 of 40, loss 0.01, 0 s left: ein Hund"
    assert lines[3:] == ["step 16, a 1, b 0.5", "step 20, a 1, b 0.5"]


def test_what_is_wrong_is_said_before_the_first_step():
    with pytest.raises(ValueError, match="steps=0 is below 1"):
        watch(iter([1.0]), 0)
