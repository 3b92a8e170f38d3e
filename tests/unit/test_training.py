"""Training against loops written out by hand, with PyTorch's optimizer and with Adam's equations in NumPy."""

import contextlib
import copy
import itertools
import math
import time
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
import torch
from torch import nn

from course_lib.training import (
    Evaluation,
    History,
    Progress,
    TrainingConfig,
    fit,
    linear_schedule_with_warmup,
    next_token_loss,
)

DTYPES = [torch.float64, torch.float32]
ROUNDING = {torch.float64: 1e-12, torch.float32: 1e-5}
PAD = 4


def logits_and_target(dtype=torch.float64, batch=3, length=5, vocabulary=7):
    logits = torch.randn(batch, length, vocabulary, dtype=dtype).requires_grad_()
    target = torch.randint(0, PAD, (batch, length + 1))
    target[1, 3:], target[2, 2:] = PAD, PAD
    return logits, target


# --- the loss --------------------------------------------------------------------------------


@pytest.mark.verifies(
    "course_lib.training.next_token_loss", against="PyTorch `nn.CrossEntropyLoss`"
)
@pytest.mark.parametrize("pad_id", [PAD, 6, 0])
@pytest.mark.parametrize("dtype", DTYPES)
def test_next_token_loss_equals_pytorch_with_shifted_target(ledger, dtype, pad_id):
    logits, target = logits_and_target(dtype)
    exact = logits.detach().double().requires_grad_()
    ours = next_token_loss(logits, target, pad_id=pad_id)
    theirs = nn.CrossEntropyLoss(ignore_index=pad_id)(exact.transpose(1, 2), target[:, 1:])
    ledger.compare(ours, theirs, within=ROUNDING[dtype])
    (mine,), (oracle,) = torch.autograd.grad(ours, logits), torch.autograd.grad(theirs, exact)
    ledger.compare(mine, oracle, within=ROUNDING[dtype], backward=True)


@pytest.mark.verifies(
    "course_lib.training.next_token_loss", against="an explicit loop with Python's `math`"
)
def test_next_token_loss_is_the_mean_negative_log_likelihood(ledger):
    logits, target = logits_and_target()
    surprises = []
    for row, tokens in zip(logits.tolist(), target.tolist(), strict=True):
        for scores, token in zip(row, tokens[1:], strict=True):
            if token != PAD:
                total = sum(math.exp(score) for score in scores)
                surprises.append(-math.log(math.exp(scores[token]) / total))
    assert len(surprises) == 5 + 2 + 1
    theirs = torch.tensor(sum(surprises) / len(surprises), dtype=torch.float64)
    ledger.compare(next_token_loss(logits, target, pad_id=PAD), theirs, within=1e-12)


def test_next_token_loss_of_uniform_logits():
    even = torch.zeros(2, 3, 8, dtype=torch.float64)
    loss = next_token_loss(even, torch.tensor([[1, 2, 3, 4], [1, 2, 0, 0]]))
    assert loss.item() == pytest.approx(math.log(8), abs=1e-12)


def test_next_token_loss_ignores_padding():
    logits, target = logits_and_target()
    before = next_token_loss(logits, target, pad_id=PAD)
    (gradient,) = torch.autograd.grad(before, logits)
    assert (gradient[target[:, 1:] == PAD] == 0).all()
    assert (gradient[target[:, 1:] != PAD] != 0).all()
    longer = torch.cat([logits, torch.randn(3, 4, 7).double()], 1)
    padded = torch.cat([target, torch.full((3, 4), PAD)], 1)
    torch.testing.assert_close(next_token_loss(longer, padded, pad_id=PAD), before)


def test_next_token_loss_ignores_the_first_target():
    logits, target = logits_and_target()
    other = target.clone()
    other[:, 0] = 5
    assert next_token_loss(logits, other) == next_token_loss(logits, target)


def test_next_token_loss_of_int32_targets():
    logits, target = logits_and_target()
    assert next_token_loss(logits, target.int()) == next_token_loss(logits, target)


# --- the schedule ----------------------------------------------------------------------------


@pytest.mark.verifies(
    "course_lib.training.linear_schedule_with_warmup", against="NumPy `interp` through three points"
)
@pytest.mark.parametrize(("steps", "warmup"), [(100, 10), (7, 7), (7, 1), (1, 1), (50, 33)])
def test_warmup_decay_is_piecewise_linear(ledger, steps, warmup):
    ours = [linear_schedule_with_warmup(step, 0.3, steps, warmup) for step in range(1, steps + 1)]
    theirs = np.interp(range(1, steps + 1), [0, warmup, steps + 1], [0, 0.3, 0])
    ledger.compare(torch.tensor(ours, dtype=torch.float64), theirs, within=1e-15)
    assert max(ours) == ours[warmup - 1] == 0.3 and min(ours) > 0


# --- the loop --------------------------------------------------------------------------------


class Line(nn.Module):
    """Linear regression, with dropout where it is asked for."""

    def __init__(self, dropout=0.0, seed=4):
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.weights = nn.Linear(3, 1, dtype=torch.float64)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.weights(self.dropout(x))[:, 0]


def points(count=30, seed=0):
    random = torch.Generator().manual_seed(seed)
    for _ in range(count):
        x = torch.randn(8, 3, generator=random, dtype=torch.float64)
        yield x, x @ torch.tensor([5.0, -3, 1], dtype=torch.float64) + 2


def squares(model, batch):
    x, y = batch
    return (model(x) - y).square().mean()


def numbers(model):
    return torch.cat([value.detach().flatten().clone() for value in model.parameters()])


def stopping(count):
    yield from points(count)
    raise KeyboardInterrupt


@contextlib.contextmanager
def no_interrupt_gets_out():
    """One that did would end all tests, not one."""
    try:
        yield
    except KeyboardInterrupt:
        pytest.fail("the interrupt was not caught")


LRS = {"constant": 0.05, "schedule": lambda step: linear_schedule_with_warmup(step, 0.2, 30, 6)}


def by_hand(model, batches, lr=1e-3, max_grad_norm=1.0, fused=True):
    """The loop, with nothing around it: the losses and the norms of the gradients."""
    optimizer, losses, norms = torch.optim.Adam(model.parameters(), fused=fused), [], []
    for step, batch in enumerate(batches, 1):
        optimizer.param_groups[0]["lr"] = lr(step) if callable(lr) else lr
        optimizer.zero_grad()
        loss = squares(model, batch)
        loss.backward()
        norms.append(nn.utils.clip_grad_norm_(model.parameters(), max_grad_norm).item())
        optimizer.step()
        losses.append(loss.item())
    return losses, norms


@pytest.mark.verifies(
    "course_lib.training.fit", against="a loop with PyTorch `Adam` and `clip_grad_norm_`"
)
@pytest.mark.parametrize("max_grad_norm", [0.3, 9.0, 1e9])
@pytest.mark.parametrize("lr", LRS.values(), ids=LRS)
@pytest.mark.parametrize("fused", [True, False])
def test_fit_equals_a_loop_with_adam_and_gradient_clipping(ledger, lr, max_grad_norm, fused):
    ours, theirs = Line(), Line()
    optimizer = None if fused else torch.optim.Adam(ours.parameters())
    config = TrainingConfig(max_grad_norm=max_grad_norm)
    history = fit(ours, points(), squares, steps=30, lr=lr, optimizer=optimizer, config=config)
    losses, norms = by_hand(theirs, points(), lr, max_grad_norm, fused)
    assert max_grad_norm in (0.3, 1e9) or min(norms) < max_grad_norm < max(norms)
    ledger.compare(numbers(ours), numbers(theirs), within=0)
    assert history.losses == losses


@pytest.mark.verifies("course_lib.training.fit", against="Adam's equations in NumPy")
def test_fit_equals_adam_in_numpy(ledger):
    ours = Line()
    first = numbers(ours)
    fit(ours, points(), squares, steps=30, lr=0.05, config=TrainingConfig(max_grad_norm=2.0))
    w, mean, square = first.numpy(), np.zeros(4), np.zeros(4)
    for t, (x, y) in enumerate(points(), 1):
        x, y = np.concatenate([x.numpy(), np.ones((8, 1))], 1), y.numpy()
        gradient = 2 * x.T @ (x @ w - y) / 8
        gradient = gradient * min(1, 2.0 / (np.linalg.norm(gradient) + 1e-6))
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        w = w - 0.05 * mean / (1 - 0.9**t) / (np.sqrt(square / (1 - 0.999**t)) + 1e-8)
    ledger.compare(numbers(ours), w, within=1e-12)


def test_fit_learns_a_linear_regression():
    ours = Line()
    fit(ours, points(400), squares, steps=400, lr=0.1)
    found, true = numbers(ours), torch.tensor([5.0, -3, 1, 2], dtype=torch.float64)
    torch.testing.assert_close(found, true, rtol=0, atol=0.01)


def test_fit_with_a_seed_is_reproducible():
    results = []
    for seed in (1, 1, 2):
        torch.rand(len(results) + 1)
        ours = Line(dropout=0.5)
        fit(ours, points(), squares, steps=20, seed=seed)
        results.append(numbers(ours))
    assert torch.equal(results[0], results[1]) and not torch.equal(results[0], results[2])


def test_fit_seed_is_that_of_pytorch():
    ours, theirs = Line(dropout=0.5), Line(dropout=0.5)
    fit(ours, points(), squares, steps=5, seed=7)
    torch.manual_seed(7)
    by_hand(theirs, points(5))
    assert torch.equal(numbers(ours), numbers(theirs))


def test_fit_restores_the_global_random_state():
    before = torch.random.get_rng_state()
    fit(Line(dropout=0.5), points(), squares, steps=3)
    assert torch.equal(torch.random.get_rng_state(), before)
    with pytest.raises(ValueError):
        fit(Line(dropout=0.5), points(3), squares, steps=9)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_fit_trains_and_evaluates_in_the_right_mode():
    modes = {"loss": [], "evaluate": []}

    def loss(model, batch):
        modes["loss"].append((model.training, torch.is_grad_enabled()))
        return squares(model, batch)

    def evaluate(model):
        modes["evaluate"].append((model.training, torch.is_grad_enabled()))
        return 0.0

    ours = Line(dropout=0.5)
    fit(ours.eval(), points(), loss, steps=7, evaluation=Evaluation(evaluate, every=3))
    assert modes == {"loss": [(True, True)] * 7, "evaluate": [(False, False)] * 3}
    assert not ours.training and not ours.dropout.training
    fit(ours, points(), squares, steps=1)
    assert not ours.training


def scripted(scores, seen=None):
    """Scores from a list; notes the weights that got them."""
    scores = iter(scores)

    def evaluate(model):
        if seen is not None:
            seen.append(numbers(model))
        return next(scores)

    return evaluate


@pytest.mark.verifies(
    "course_lib.training.History", against="the losses of a loop with PyTorch `Adam`"
)
def test_fit_history(ledger):
    evaluation, seen = Evaluation(scripted([0.5, 0.25, 0.75]), every=4), []
    history = fit(Line(), points(), squares, steps=10, evaluation=evaluation, callback=seen.append)
    assert isinstance(history, History) and history.stopped == "steps"
    losses, _ = by_hand(Line(), points(10))
    assert history.losses == losses
    assert history.scores == {4: 0.5, 8: 0.25, 10: 0.75}
    assert history.seconds == seen[-1].seconds > 0
    assert repr(history) == "History(steps=10, stopped='steps')"
    assert History() == History([], {}, None, 0.0)
    ledger.holds()


@pytest.mark.verifies(
    "course_lib.training.Progress", against="the losses of a loop with PyTorch `Adam`"
)
def test_fit_callback_is_called_at_each_step(ledger):
    evaluation, seen = Evaluation(scripted([2, 1, 3]), every=3), []
    start = time.perf_counter()
    fit(Line(), points(), squares, steps=7, evaluation=evaluation, callback=seen.append)
    assert all(isinstance(progress, Progress) for progress in seen)
    assert [progress.step for progress in seen] == [1, 2, 3, 4, 5, 6, 7]
    assert {progress.steps for progress in seen} == {7}
    assert [progress.loss for progress in seen] == by_hand(Line(), points(7))[0]
    assert [progress.score for progress in seen] == [None, None, 2, None, None, 1, 3]
    seconds = [progress.seconds for progress in seen]
    assert (
        0 < seconds[0] and seconds == sorted(seconds) and seconds[-1] < time.perf_counter() - start
    )
    assert [progress.stopped for progress in seen] == [None] * 6 + ["steps"]
    with pytest.raises(FrozenInstanceError):
        seen[0].loss = 0.0
    ledger.holds()


@pytest.mark.parametrize(
    ("settings", "why", "steps"),
    [
        ({}, "steps", [1, 2, 3, 4, 5]),
        (
            {"evaluation": Evaluation(lambda model: 1, target_score=1, every=2)},
            "target_score",
            [1, 2],
        ),
        ({"evaluation": Evaluation(lambda model: 1, patience=2, every=1)}, "patience", [1, 2, 3]),
        ({"steps": 9}, "interrupted", [1, 2, 3, 4, 5, 5]),
    ],
)
def test_fit_callback_is_told_why_training_stopped(settings, why, steps):
    seen = []
    with no_interrupt_gets_out():
        history = fit(
            Line(), stopping(5), squares, **{"steps": 5, "callback": seen.append} | settings
        )
    assert [progress.step for progress in seen] == steps
    assert [progress.stopped for progress in seen[:-1]] == [None] * (len(steps) - 1)
    assert seen[-1].stopped == history.stopped == why
    assert seen[-1].seconds == history.seconds and seen[-1].loss == history.losses[-1]


def test_fit_evaluates_the_last_step_once():
    evaluation = Evaluation(scripted([1, 2, 3, 4]), every=3)
    history = fit(Line(), points(), squares, steps=6, evaluation=evaluation)
    assert history.scores == {3: 1, 6: 2}


@pytest.mark.parametrize(
    ("target_score", "reached"), [(0.5, 6), (0.6, 8), (0.1, 2), (0.8, 10), (0.9, None)]
)
def test_fit_stops_at_the_target_score(target_score, reached):
    scores = scripted([0.1, 0.3, 0.5, 0.7, 0.8])
    seen, ours, theirs = [], Line(), Line()
    history = fit(
        ours,
        points(),
        squares,
        steps=10,
        evaluation=Evaluation(scores, every=2, target_score=target_score),
        callback=seen.append,
    )
    assert history.stopped == ("target_score" if reached else "steps")
    assert len(history.losses) == len(seen) == (reached or 10)
    fit(theirs, points(), squares, steps=reached or 10)
    assert torch.equal(numbers(ours), numbers(theirs)) and not ours.training


@pytest.mark.parametrize(
    ("scores", "patience", "stopped", "best"),
    [
        ([1, 3, 2, 2.5, 9, 9], 2, 4, 2),
        ([1, 3, 3, 3, 9, 9], 2, 4, 2),  # as good is not better
        # Never out of patience: the best is put back all the same.
        ([3, 2, 1, 9, 1, 1], 3, None, 4),
        ([2, 1, 3, 2, 4, 3], 2, None, 5),
        ([-5, -4, -6, -7, -8, 0], 1, 3, 2),
    ],
)
def test_early_stopping_restores_the_best_weights(scores, patience, stopped, best):
    seen, ours = [], Line()
    history = fit(
        ours,
        points(),
        squares,
        steps=6,
        evaluation=Evaluation(scripted(scores, seen), every=1, patience=patience),
    )
    assert history.stopped == ("patience" if stopped else "steps")
    assert len(history.losses) == len(seen) == (stopped or 6)
    assert torch.equal(numbers(ours), seen[best - 1])
    assert len({tuple(weights.tolist()) for weights in seen}) == len(seen)
    assert not ours.training


def test_fit_without_patience_keeps_the_last_weights():
    seen, ours = [], Line()
    evaluation = Evaluation(scripted([9, 1, 1, 1], seen), every=1)
    fit(ours, points(), squares, steps=4, evaluation=evaluation)
    assert torch.equal(numbers(ours), seen[-1])


def test_interrupted_fit_keeps_model_and_history():
    ours, theirs = Line(), Line()
    with no_interrupt_gets_out():
        history = fit(ours, stopping(4), squares, steps=10)
    expected = fit(theirs, points(), squares, steps=4)
    assert history.stopped == "interrupted" and history.losses == expected.losses
    assert torch.equal(numbers(ours), numbers(theirs)) and not ours.training
    assert repr(history) == "History(steps=4, stopped='interrupted')"


def interrupt(*_):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        ({"loss": interrupt}, 0),
        ({"callback": lambda progress: progress.stopped or interrupt()}, 1),
        ({"evaluation": Evaluation(interrupt, every=1)}, 1),
    ],
)
def test_fit_can_be_interrupted_anywhere(settings, kept):
    ours, theirs = Line(dropout=0.5), Line()
    with no_interrupt_gets_out():
        history = fit(ours, points(), **{"loss": squares, "steps": 5} | settings)
    assert history.stopped == "interrupted" and len(history.losses) == kept
    assert not ours.training
    assert torch.equal(numbers(ours), numbers(theirs)) == (kept == 0)


def test_interrupted_early_stopping_restores_the_best_weights():
    seen, ours = [], Line()
    evaluation = Evaluation(scripted([1, 3, 2], seen), every=1, patience=5)
    with no_interrupt_gets_out():
        fit(ours, stopping(3), squares, steps=10, evaluation=evaluation)
    assert torch.equal(numbers(ours), seen[1])


def test_loss_that_is_not_finite_raises_and_leaves_the_weights():
    def loss(model, batch, count=itertools.count(1)):  # noqa: B008
        return squares(model, batch) * (math.nan if next(count) == 4 else 1.0)

    ours, theirs = Line(), Line()
    with pytest.raises(
        FloatingPointError, match=r"the loss is nan; .*smaller lr.*\nin training step 4$"
    ):
        fit(ours, points(), loss, steps=10)
    fit(theirs, points(), squares, steps=3)
    assert torch.equal(numbers(ours), numbers(theirs))
    with pytest.raises(FloatingPointError, match=r"the loss is inf; .*\nin training step 1$"):
        fit(ours, points(), lambda model, batch: squares(model, batch) * math.inf, steps=10)


def test_fit_takes_no_more_batches_than_it_needs():
    batches = points(10)
    fit(Line(), batches, squares, steps=4)
    assert sum(1 for _ in batches) == 6


def test_learning_rate_schedule_may_end_at_zero():
    ours, theirs = Line(), Line()
    fit(ours, points(), squares, steps=5, lr=lambda step: 0.1 if step < 5 else 0)
    fit(theirs, points(), squares, steps=4, lr=0.1)
    assert torch.equal(numbers(ours), numbers(theirs))


def test_fit_starts_with_a_new_optimizer():
    ours, theirs = Line(), Line()
    for line in (ours, theirs):
        fit(line, points(), squares, steps=5)
    again = copy.deepcopy(theirs)
    for line in (ours, again):
        fit(line, points(), squares, steps=5)
    assert torch.equal(numbers(ours), numbers(again))


# --- invalid input ---------------------------------------------------------------------------


def trained(**settings):
    given = {"model": Line(), "batches": points(), "loss": squares, "steps": 5} | settings
    return lambda: fit(**given)


def lost(logits, target, **settings):
    return lambda: next_token_loss(torch.zeros(logits), torch.tensor(target), **settings)


@pytest.mark.usefixtures("without_annotations")
@pytest.mark.parametrize(
    ("call", "says"),
    [
        (trained(steps=0), r"steps=0 is below 1"),
        (trained(lr=-1), r"lr is -1 at step 1; it must be a finite number, 0 or more"),
        (
            trained(lr=lambda step: linear_schedule_with_warmup(step, 0.1, 2, 1)),
            r"lr is -0.05 at step 4; it must be a finite number, 0 or more",
        ),
        (trained(lr=lambda step: math.nan), r"lr is nan at step 1"),
        (
            trained(batches=list(points(3))),
            r"batches ended before step 4; give 1 per step\nin training step 4",
        ),
        (trained(batches=[]), r"batches ended before step 1"),
        (
            lost((2, 3, 7), [[1, 2, 3]] * 2),
            r"logits has shape \(2, 3, 7\), target \(2, 3\); .*one row .* every target token but",
        ),
        (lost((3, 2, 7), [[1, 2, 3, 4]] * 2), r"logits has shape \(3, 2, 7\), target \(2, 4\)"),
        (lost((1, 2, 7), [[1, 0, 0]]), r"target has nothing but padding \(0\); there is nothing"),
        (lost((1, 0, 7), [[1]]), r"target has nothing but padding \(0\)"),
    ],
)
def test_invalid_input_raises_value_error(call, says):
    with pytest.raises(ValueError, match=says):
        call()


def test_an_error_of_a_callback_ends_training():
    def callback(progress):
        raise OSError("no picture")

    ours = Line()
    with pytest.raises(OSError, match=r"no picture\nin training step 1"):
        fit(ours, points(), squares, steps=3, callback=callback)
    assert not ours.training
