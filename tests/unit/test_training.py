"""Training against loops written out by hand, with PyTorch's optimizer and with Adam's equations in NumPy."""

import contextlib
import copy
import itertools
import math
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
import torch
from torch import nn

from course_lib.training import History, Progress, fit, next_token_loss, warmup_decay

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
def test_the_loss_is_pytorchs_with_the_target_one_place_on(ledger, dtype, pad_id):
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
def test_the_loss_is_the_mean_surprise_in_nats(ledger):
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


def test_a_model_that_knows_nothing_loses_the_logarithm_of_the_vocabulary():
    even = torch.zeros(2, 3, 8, dtype=torch.float64)
    loss = next_token_loss(even, torch.tensor([[1, 2, 3, 4], [1, 2, 0, 0]]))
    assert loss.item() == pytest.approx(math.log(8), abs=1e-12)


def test_padding_does_not_count():
    logits, target = logits_and_target()
    before = next_token_loss(logits, target, pad_id=PAD)
    (gradient,) = torch.autograd.grad(before, logits)
    assert (gradient[target[:, 1:] == PAD] == 0).all()
    assert (gradient[target[:, 1:] != PAD] != 0).all()
    longer = torch.cat([logits, torch.randn(3, 4, 7).double()], 1)
    padded = torch.cat([target, torch.full((3, 4), PAD)], 1)
    torch.testing.assert_close(next_token_loss(longer, padded, pad_id=PAD), before)


def test_the_first_token_is_never_asked_for():
    logits, target = logits_and_target()
    other = target.clone()
    other[:, 0] = 5
    assert next_token_loss(logits, other) == next_token_loss(logits, target)


def test_the_target_may_be_any_whole_numbers():
    logits, target = logits_and_target()
    assert next_token_loss(logits, target.int()) == next_token_loss(logits, target)


# --- the rates -------------------------------------------------------------------------------


@pytest.mark.verifies(
    "course_lib.training.warmup_decay", against="NumPy `interp` through three points"
)
@pytest.mark.parametrize(("steps", "warmup"), [(100, 10), (7, 7), (7, 1), (1, 1), (50, 33)])
def test_the_rate_rises_and_falls_in_straight_lines(ledger, steps, warmup):
    ours = [warmup_decay(step, 0.3, steps, warmup) for step in range(1, steps + 1)]
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


RATES = {"constant": 0.05, "schedule": lambda step: warmup_decay(step, 0.2, 30, 6)}


def by_hand(model, batches, rate=1e-3, clip=1.0):
    """The loop, with nothing around it: the losses and the norms of the gradients."""
    optimizer, losses, norms = torch.optim.Adam(model.parameters()), [], []
    for step, batch in enumerate(batches, 1):
        optimizer.param_groups[0]["lr"] = rate(step) if callable(rate) else rate
        optimizer.zero_grad()
        loss = squares(model, batch)
        loss.backward()
        norms.append(nn.utils.clip_grad_norm_(model.parameters(), clip).item())
        optimizer.step()
        losses.append(loss.item())
    return losses, norms


@pytest.mark.verifies(
    "course_lib.training.fit", against="a loop with PyTorch `Adam` and `clip_grad_norm_`"
)
@pytest.mark.parametrize("clip", [0.3, 9.0, 1e9])
@pytest.mark.parametrize("rate", RATES.values(), ids=RATES)
def test_it_steps_as_a_loop_written_by_hand(ledger, rate, clip):
    ours, theirs = Line(), Line()
    history = fit(ours, points(), squares, steps=30, rate=rate, clip=clip)
    losses, norms = by_hand(theirs, points(), rate, clip)
    assert clip in (0.3, 1e9) or min(norms) < clip < max(norms)
    ledger.compare(numbers(ours), numbers(theirs), within=0)
    assert history.losses == losses


@pytest.mark.verifies("course_lib.training.fit", against="Adam's equations in NumPy")
def test_it_steps_by_the_equations_of_adam(ledger):
    ours = Line()
    first = numbers(ours)
    fit(ours, points(), squares, steps=30, rate=0.05, clip=2.0)
    w, mean, square = first.numpy(), np.zeros(4), np.zeros(4)
    for t, (x, y) in enumerate(points(), 1):
        x, y = np.concatenate([x.numpy(), np.ones((8, 1))], 1), y.numpy()
        gradient = 2 * x.T @ (x @ w - y) / 8
        gradient = gradient * min(1, 2.0 / (np.linalg.norm(gradient) + 1e-6))
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        w = w - 0.05 * mean / (1 - 0.9**t) / (np.sqrt(square / (1 - 0.999**t)) + 1e-8)
    ledger.compare(numbers(ours), w, within=1e-12)


def test_it_learns_the_line():
    ours = Line()
    fit(ours, points(400), squares, steps=400, rate=0.1)
    found, true = numbers(ours), torch.tensor([5.0, -3, 1, 2], dtype=torch.float64)
    torch.testing.assert_close(found, true, rtol=0, atol=0.01)


def test_the_same_seed_gives_the_same_weights_whatever_was_drawn_before():
    results = []
    for seed in (1, 1, 2):
        torch.rand(len(results) + 1)
        ours = Line(dropout=0.5)
        fit(ours, points(), squares, steps=20, seed=seed)
        results.append(numbers(ours))
    assert torch.equal(results[0], results[1]) and not torch.equal(results[0], results[2])


def test_the_seed_is_pytorchs():
    ours, theirs = Line(dropout=0.5), Line(dropout=0.5)
    fit(ours, points(), squares, steps=5, seed=7)
    torch.manual_seed(7)
    by_hand(theirs, points(5))
    assert torch.equal(numbers(ours), numbers(theirs))


def test_the_worlds_random_numbers_are_left_as_they_were():
    before = torch.random.get_rng_state()
    fit(Line(dropout=0.5), points(), squares, steps=3)
    assert torch.equal(torch.random.get_rng_state(), before)
    with pytest.raises(ValueError):
        fit(Line(dropout=0.5), points(3), squares, steps=9)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_it_trains_in_training_mode_and_evaluates_in_evaluation_mode_without_gradients():
    modes = {"loss": [], "evaluate": []}

    def loss(model, batch):
        modes["loss"].append((model.training, torch.is_grad_enabled()))
        return squares(model, batch)

    def evaluate(model):
        modes["evaluate"].append((model.training, torch.is_grad_enabled()))
        return 0.0

    ours = Line(dropout=0.5)
    fit(ours.eval(), points(), loss, steps=7, evaluate=evaluate, every=3)
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
def test_the_history_is_what_happened(ledger):
    evaluate, watched = scripted([0.5, 0.25, 0.75]), []
    history = fit(
        Line(), points(), squares, steps=10, evaluate=evaluate, every=4, watch=watched.append
    )
    assert isinstance(history, History) and history.stopped == "steps"
    losses, _ = by_hand(Line(), points(10))
    assert history.losses == losses
    assert history.scores == {4: 0.5, 8: 0.25, 10: 0.75}
    assert history.seconds == watched[-1].seconds > 0
    assert repr(history) == "History of 10 steps, stopped by steps"
    assert History() == History([], {}, "steps", 0.0)
    ledger.holds()


@pytest.mark.verifies(
    "course_lib.training.Progress", against="the losses of a loop with PyTorch `Adam`"
)
def test_a_watcher_is_told_of_each_step(ledger):
    evaluate, watched = scripted([2, 1, 3]), []
    fit(Line(), points(), squares, steps=7, evaluate=evaluate, every=3, watch=watched.append)
    assert all(isinstance(progress, Progress) for progress in watched)
    assert [progress.step for progress in watched] == [1, 2, 3, 4, 5, 6, 7]
    assert {progress.steps for progress in watched} == {7}
    assert [progress.loss for progress in watched] == by_hand(Line(), points(7))[0]
    assert [progress.score for progress in watched] == [None, None, 2, None, None, 1, 3]
    seconds = [progress.seconds for progress in watched]
    assert 0 < seconds[0] and seconds == sorted(seconds)
    assert [progress.stopped for progress in watched] == [None] * 6 + ["steps"]
    with pytest.raises(FrozenInstanceError):
        watched[0].loss = 0.0
    ledger.holds()


@pytest.mark.parametrize(
    ("settings", "why", "steps"),
    [
        ({}, "steps", [1, 2, 3, 4, 5]),
        ({"evaluate": lambda model: 1, "goal": 1, "every": 2}, "goal", [1, 2]),
        ({"evaluate": lambda model: 1, "patience": 2, "every": 1}, "patience", [1, 2, 3]),
        ({"steps": 9}, "interrupted", [1, 2, 3, 4, 5, 5]),
    ],
)
def test_a_watcher_is_told_at_the_end_why_it_ended(settings, why, steps):
    watched = []
    with no_interrupt_gets_out():
        history = fit(
            Line(), stopping(5), squares, **{"steps": 5, "watch": watched.append} | settings
        )
    assert [progress.step for progress in watched] == steps
    assert [progress.stopped for progress in watched[:-1]] == [None] * (len(steps) - 1)
    assert watched[-1].stopped == history.stopped == why
    assert watched[-1].seconds == history.seconds and watched[-1].loss == history.losses[-1]


def test_the_last_step_is_evaluated_once():
    history = fit(Line(), points(), squares, steps=6, evaluate=scripted([1, 2, 3, 4]), every=3)
    assert history.scores == {3: 1, 6: 2}


@pytest.mark.parametrize(
    ("goal", "reached"), [(0.5, 6), (0.6, 8), (0.1, 2), (0.8, 10), (0.9, None)]
)
def test_it_stops_when_the_goal_is_reached(goal, reached):
    evaluate = scripted([0.1, 0.3, 0.5, 0.7, 0.8])
    watched, ours, theirs = [], Line(), Line()
    history = fit(
        ours,
        points(),
        squares,
        steps=10,
        evaluate=evaluate,
        every=2,
        goal=goal,
        watch=watched.append,
    )
    assert history.stopped == ("goal" if reached else "steps")
    assert len(history.losses) == len(watched) == (reached or 10)
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
def test_it_stops_when_patience_ends_and_puts_the_best_weights_back(
    scores, patience, stopped, best
):
    seen, ours = [], Line()
    history = fit(
        ours,
        points(),
        squares,
        steps=6,
        evaluate=scripted(scores, seen),
        every=1,
        patience=patience,
    )
    assert history.stopped == ("patience" if stopped else "steps")
    assert len(history.losses) == len(seen) == (stopped or 6)
    assert torch.equal(numbers(ours), seen[best - 1])
    assert len({tuple(weights.tolist()) for weights in seen}) == len(seen)
    assert not ours.training


def test_without_patience_the_last_weights_stay():
    seen, ours = [], Line()
    fit(ours, points(), squares, steps=4, evaluate=scripted([9, 1, 1, 1], seen), every=1)
    assert torch.equal(numbers(ours), seen[-1])


def test_interrupting_keeps_the_model_and_the_history():
    ours, theirs = Line(), Line()
    with no_interrupt_gets_out():
        history = fit(ours, stopping(4), squares, steps=10)
    expected = fit(theirs, points(), squares, steps=4)
    assert history.stopped == "interrupted" and history.losses == expected.losses
    assert torch.equal(numbers(ours), numbers(theirs)) and not ours.training
    assert repr(history) == "History of 4 steps, stopped by interrupted"


def interrupt(*_):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        ({"loss": interrupt}, 0),
        ({"watch": lambda progress: progress.stopped or interrupt()}, 1),
        ({"evaluate": interrupt, "every": 1}, 1),
    ],
)
def test_it_may_be_interrupted_anywhere(settings, kept):
    ours, theirs = Line(dropout=0.5), Line()
    with no_interrupt_gets_out():
        history = fit(ours, points(), **{"loss": squares, "steps": 5} | settings)
    assert history.stopped == "interrupted" and len(history.losses) == kept
    assert not ours.training
    assert torch.equal(numbers(ours), numbers(theirs)) == (kept == 0)


def test_an_interrupted_training_with_patience_puts_the_best_weights_back():
    seen, ours = [], Line()
    settings = {"evaluate": scripted([1, 3, 2], seen), "every": 1, "patience": 5}
    with no_interrupt_gets_out():
        fit(ours, stopping(3), squares, steps=10, **settings)
    assert torch.equal(numbers(ours), seen[1])


def test_a_loss_that_is_not_finite_is_named_with_its_step_and_does_no_harm():
    def loss(model, batch, count=itertools.count(1)):  # noqa: B008
        return squares(model, batch) * (math.nan if next(count) == 4 else 1.0)

    ours, theirs = Line(), Line()
    with pytest.raises(FloatingPointError, match=r"the loss is nan at step 4; .*smaller rate"):
        fit(ours, points(), loss, steps=10)
    fit(theirs, points(), squares, steps=3)
    assert torch.equal(numbers(ours), numbers(theirs))
    with pytest.raises(FloatingPointError, match="the loss is inf at step 1"):
        fit(ours, points(), lambda model, batch: squares(model, batch) * math.inf, steps=10)


def test_it_takes_no_more_batches_than_it_needs():
    batches = points(10)
    fit(Line(), batches, squares, steps=4)
    assert sum(1 for _ in batches) == 6


def test_a_schedule_may_end_at_nothing():
    ours, theirs = Line(), Line()
    fit(ours, points(), squares, steps=5, rate=lambda step: 0.1 if step < 5 else 0)
    fit(theirs, points(), squares, steps=4, rate=0.1)
    assert torch.equal(numbers(ours), numbers(theirs))


def test_the_optimizer_starts_afresh_each_time():
    ours, theirs = Line(), Line()
    for line in (ours, theirs):
        fit(line, points(), squares, steps=5)
    again = copy.deepcopy(theirs)
    for line in (ours, again):
        fit(line, points(), squares, steps=5)
    assert torch.equal(numbers(ours), numbers(again))


# --- bad input -------------------------------------------------------------------------------


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
        (trained(steps=2.5), r"steps=2.5 is a float; it must be a whole number"),
        (trained(every=0), r"every=0 is below 1"),
        (trained(rate=-1), r"rate=-1 is not a finite number above 0"),
        (trained(rate=math.inf), r"rate=inf is not a finite number above 0"),
        (trained(rate="fast"), r"rate is a str; it must be a number above 0"),
        (
            trained(rate=lambda step: 0.1 - 0.05 * step),
            r"rate gave -0.0\d+ at step 3; it must give a finite number, 0 or more",
        ),
        (trained(rate=lambda step: None), r"rate gave None at step 1; .* finite number"),
        (trained(rate=lambda step: math.nan), r"rate gave nan at step 1"),
        (trained(clip=0), r"clip=0 is not a finite number above 0"),
        (trained(clip=math.nan), r"clip=nan is not"),
        (trained(patience=0, evaluate=lambda model: 0), r"patience=0 is below 1"),
        (trained(goal=0.9), r"goal and patience need evaluate, a function from the model to a s"),
        (trained(patience=2), r"goal and patience need evaluate"),
        (
            trained(batches=list(points(3))),
            r"batches ended before step 4; give as many as steps, or an endless stream",
        ),
        (trained(batches=[]), r"batches ended before step 1"),
        (
            trained(loss=lambda model, batch: squares(model, batch).item()),
            r"loss returned a float; it must return a tensor of one number that carries gradients",
        ),
        (
            trained(loss=lambda model, batch: squares(model, batch).detach()),
            r"loss returned shape \(\), requires_grad=False; it must",
        ),
        (
            trained(loss=lambda model, batch: model(batch[0])),
            r"loss returned shape \(8,\), requires_grad=True; it must return a tensor of one number",
        ),
        (
            lost((2, 3, 7), [[1, 2, 3]] * 2),
            r"logits has shape \(2, 3, 7\), target \(2, 3\); .*one row .* every target token but",
        ),
        (lost((3, 2, 7), [[1, 2, 3]] * 2), r"logits has shape \(3, 2, 7\), target \(2, 3\)"),
        (lost((2, 7), [[1, 2, 3]] * 2), r"logits has shape \(2, 7\), target \(2, 3\)"),
        (lost((1, 2, 7), [[1, 7, 3]]), r"target holds 7; the vocabulary has 7 tokens, 0 to 6"),
        (lost((1, 2, 7), [[1, -100, 3]]), r"target holds -100; the vocabulary has 7 tokens"),
        (lost((1, 2, 7), [[1.0, 2.0, 3.0]]), r"target has shape \(1, 3\) and dtype float32; "),
        (
            lost((1, 2, 7), [[1, 0, 0]]),
            r"target has shape \(1, 3\) and only padding behind its first tokens; .* nothing to pr",
        ),
        (lost((1, 0, 7), [[1]]), r"target has shape \(1, 1\) and only padding behind"),
        (
            lambda: next_token_loss(torch.zeros(1, 2, 7).long(), torch.tensor([[1, 2, 3]])),
            r"logits has dtype int64; a floating-point tensor is needed",
        ),
        (lambda: warmup_decay(0, 0.1, 9, 3), r"step=0 is below 1"),
        (lambda: warmup_decay(10, 0.1, 9, 3), r"step=10 is above steps=9"),
        (lambda: warmup_decay(1, 0.1, 9, 10), r"warmup=10 is above steps=9"),
        (lambda: warmup_decay(1, 0.1, 9, 0), r"warmup=0 is below 1"),
        (lambda: warmup_decay(1, -0.1, 9, 3), r"peak=-0.1 is not a finite number above 0"),
        (lambda: warmup_decay(1.5, 0.1, 9, 3), r"step=1.5 is a float; it must be a whole number"),
    ],
)
def test_bad_input_is_refused_by_name(call, says):
    with pytest.raises(ValueError, match=says):
        call()
