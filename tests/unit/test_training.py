"""The training loop against loops written out by hand, with PyTorch's Adam and with its equations in NumPy."""

import math
import time

import numpy as np
import pytest
import torch

from course_lib.train import (
    Evaluation,
    History,
    Progress,
    fit,
    linear_schedule_with_warmup,
)
from tests.helpers.training import Line, by_hand, numbers, points, squares


def single(count=30):
    """Groups of one batch."""
    return zip(points(count), strict=True)


def stopping(count):
    yield from points(count)
    raise KeyboardInterrupt


def interrupt(*_):
    raise KeyboardInterrupt


def scripted(scores, seen=None):
    """Scores from a list; notes the weights that got them."""
    scores = iter(scores)

    def evaluate(model):
        if seen is not None:
            seen.append(numbers(model))
        return next(scores)

    return evaluate


def trained(model=None, batches=None, loss=squares, **settings):
    """Train; an interrupt that got out would end all tests, not one."""
    try:
        return fit(model or Line(), batches or points(), loss, **{"steps": 5} | settings)
    except KeyboardInterrupt:
        pytest.fail("the interrupt was not caught")


# --- the loop --------------------------------------------------------------------------------

LRS = (0.05, lambda step: linear_schedule_with_warmup(step, 0.2, 30, 6))


@pytest.mark.verifies(
    "course_lib.train.fit.fit", against="a loop with PyTorch `Adam` and `clip_grad_norm_`"
)
@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize(("lr", "max_grad_norm"), [(LRS[0], 0.3), (LRS[1], 9.0)])
def test_fit_equals_a_loop_with_adam_and_gradient_clipping(ledger, lr, max_grad_norm, fused):
    ours, theirs = Line(), Line()
    history = trained(ours, steps=30, lr=lr, max_grad_norm=max_grad_norm)
    optimizer = torch.optim.Adam(theirs.parameters(), fused=fused)
    losses = by_hand(theirs, single(), optimizer, lr, max_grad_norm)
    ledger.compare(numbers(ours), numbers(theirs), within=0 if fused else 1e-12)
    assert history.losses == pytest.approx(losses, abs=0 if fused else 1e-12)


@pytest.mark.parametrize("seed", [None, 7])
def test_the_seed_is_that_of_pytorch_and_0_where_left_out(seed):
    ours, theirs = Line(dropout=0.5), Line(dropout=0.5)
    before = torch.get_rng_state()
    trained(ours, **({} if seed is None else {"seed": seed}))
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(seed or 0)
    by_hand(theirs, single(5))
    assert torch.equal(numbers(ours), numbers(theirs))


def test_fit_trains_and_evaluates_in_the_right_mode():
    modes, ours = {"loss": [], "evaluate": []}, Line(dropout=0.5)

    def loss(model, batch):
        modes["loss"].append((model.training, torch.is_grad_enabled()))
        return squares(model, batch)

    def evaluate(model):
        modes["evaluate"].append((model.training, torch.is_grad_enabled()))
        return 0.0

    trained(ours.eval(), loss=loss, steps=7, evaluation=Evaluation(evaluate, every=3))
    assert modes == {"loss": [(True, True)] * 7, "evaluate": [(False, False)] * 3}
    assert not ours.training and not ours.dropout.training


@pytest.mark.verifies(
    "course_lib.train.fit.History",
    "course_lib.train.fit.Progress",
    against="the losses of a loop with PyTorch `Adam`",
)
def test_history_and_progress_tell_what_happened(ledger):
    evaluation, seen, start = Evaluation(scripted([2, 1, 3]), every=3), [], time.perf_counter()
    history = trained(steps=7, evaluation=evaluation, callback=seen.append)
    assert isinstance(history, History) and history.scores == {3: 2, 6: 1, 7: 3}
    assert repr(history) == "History(steps=7, stopped='steps')"
    losses, scores = by_hand(Line(), single(7)), [None, None, 2, None, None, 1, 3]
    seconds = [progress.seconds for progress in seen]
    assert seen == [
        Progress(step, 7, losses[step - 1], scores[step - 1], seconds[step - 1], stopped)
        for step, stopped in enumerate([None] * 6 + ["steps"], 1)
    ]
    assert history.losses == losses and history.seconds == seconds[-1]
    assert 0 < seconds[0] and seconds == sorted(seconds)
    assert seconds[-1] < time.perf_counter() - start
    ledger.holds()


@pytest.mark.parametrize(
    ("settings", "why", "steps"),
    [
        ({}, "steps", [1, 2, 3, 4, 5]),
        ({"evaluation": Evaluation(lambda m: 1, target_score=1, every=2)}, "target_score", [1, 2]),
        ({"steps": 9, "batches": stopping(5)}, "interrupted", [1, 2, 3, 4, 5, 5]),
    ],
)
def test_the_callback_is_told_why_training_stopped(settings, why, steps):
    seen = []
    history = trained(callback=seen.append, **settings)
    assert [progress.step for progress in seen] == steps
    assert [progress.stopped for progress in seen] == [None] * (len(steps) - 1) + [why]
    assert history.stopped == why and seen[-1].seconds == history.seconds


@pytest.mark.parametrize("score", [1, np.float64(0.5), torch.tensor([[2]]), -np.inf], ids=repr)
def test_evaluate_may_return_any_number_and_is_asked_once_in_the_last_step(score):
    history = trained(steps=6, evaluation=Evaluation(lambda m: score, every=3))
    assert history.scores == {3: float(score), 6: float(score)}


# --- the end ---------------------------------------------------------------------------------


@pytest.mark.verifies(
    "course_lib.train.fit.Evaluation", against="a loop with PyTorch `Adam` that is as long"
)
@pytest.mark.parametrize(("target_score", "reached"), [(0.5, 6), (0.6, 8), (0.9, None)])
def test_fit_stops_at_the_target_score(ledger, target_score, reached):
    scores, ours, theirs = scripted([0.1, 0.3, 0.5, 0.7, 0.8]), Line(), Line()
    evaluation = Evaluation(scores, every=2, target_score=target_score)
    history = trained(ours, steps=10, evaluation=evaluation)
    assert history.stopped == ("target_score" if reached else "steps")
    by_hand(theirs, single(reached or 10))
    ledger.compare(numbers(ours), numbers(theirs), within=0)


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        ({"loss": interrupt}, 0),
        ({"callback": lambda progress: progress.stopped or interrupt()}, 1),
        ({"evaluation": Evaluation(interrupt, every=1)}, 1),
        ({"batches": stopping(4)}, 4),
    ],
)
def test_fit_can_be_interrupted_anywhere_and_keeps_what_it_learned(settings, kept):
    ours, theirs = Line(), Line()
    history = trained(ours, **settings)
    assert history.stopped == "interrupted" and not ours.training
    assert history.losses == by_hand(theirs, single(kept))
    assert torch.equal(numbers(ours), numbers(theirs))


def test_a_loss_that_is_not_finite_leaves_the_weights_and_names_the_step():
    left, ours, theirs = iter([1, 1, 1, math.nan]), Line(), Line()
    with pytest.raises(FloatingPointError, match=r"the loss is nan; .*\nin training step 4$"):
        trained(ours, loss=lambda model, batch: squares(model, batch) * next(left))
    by_hand(theirs, single(3))
    assert torch.equal(numbers(ours), numbers(theirs))


def test_an_error_of_a_callback_ends_training():
    ours = Line()
    with pytest.raises(ZeroDivisionError, match=r"\nin training step 1"):
        trained(ours, callback=lambda progress: 1 / 0)
    assert not ours.training


# --- batches, learning rates, optimizers -----------------------------------------------------


def test_fit_takes_no_more_batches_than_it_needs():
    batches = points(10)
    trained(batches=batches, steps=3)
    assert sum(1 for _ in batches) == 7


@pytest.mark.parametrize(
    ("lr", "wanted"),
    [
        (None, [[0.2, 0.7]] * 3),
        (0.05, [[0.05, 0.05]] * 3),
        (lambda step: 0.1 / step, [[0.1 / step] * 2 for step in (1, 2, 3)]),
    ],
)
def test_the_learning_rates_of_a_given_optimizer_stay_unless_one_is_given(lr, wanted):
    ours, seen = Line(), []
    groups = [{"params": [ours.weights.weight]}, {"params": [ours.weights.bias], "lr": 0.7}]
    optimizer = torch.optim.SGD(groups, lr=0.2)

    def note(_):
        seen.append([group["lr"] for group in optimizer.param_groups])

    trained(ours, steps=3, lr=lr, optimizer=optimizer, callback=note)
    assert seen == wanted


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"steps": 0}, r"steps=0 is below 1"),
        ({"lr": -1}, r"lr is -1 at step 1; it must be a finite number, 0 or more"),
        ({"lr": lambda step: math.inf if step == 2 else 0.1}, r"lr is inf at step 2"),
        ({"batches": list(points(3))}, r"batches ended before step 4; give one per step\nin training step 4"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("without_annotations")
def test_invalid_input_raises_value_error(settings, says):
    with pytest.raises(ValueError, match=says):
        trained(**settings)
