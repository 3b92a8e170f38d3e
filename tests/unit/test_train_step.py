"""One training step against loops written out by hand."""

import math

import pytest
import torch

from course_lib.train import fit, train_step
from tests.helpers.training import Line, by_hand, numbers, points, size, squares


def sgd(model, **options):
    return torch.optim.SGD(model.parameters(), **({"lr": 0.05, "momentum": 0.9} | options))


OPTIMIZERS = {
    "Adam": lambda model: torch.optim.Adam(model.parameters(), lr=0.02),
    "AdamW": lambda model: torch.optim.AdamW(model.parameters(), lr=0.02, weight_decay=0.1),
    "SGD": sgd,
}


@pytest.mark.verifies(
    "course_lib.train.fit.train_step", against="a loop with PyTorch's optimizers, by hand"
)
@pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_steps_are_those_of_a_loop_written_by_hand(ledger, make):
    ours, theirs = Line(), Line()
    optimizer = make(ours)
    found = [train_step(ours, optimizer, squares, [batch], max_grad_norm=1e9) for batch in points()]
    wanted = by_hand(theirs, zip(points(), strict=True), make(theirs), max_grad_norm=1e9)
    ledger.compare(*torch.tensor([found, wanted], dtype=torch.float64), within=1e-12)
    ledger.compare(numbers(ours), numbers(theirs), within=1e-12)


@pytest.mark.verifies(
    "course_lib.train.fit.train_step", against="PyTorch, on one batch that is not taken apart"
)
@pytest.mark.parametrize("sizes", [(7, 1, 4), (12,), (5, 5, 2)], ids=str)
def test_unequal_batches_weighted_by_tokens_are_one_big_batch(ledger, sizes):
    ((x, y),) = points(1, (12,))
    batches = list(zip(x.split(sizes), y.split(sizes), strict=True))
    ours, theirs = Line(), Line()
    optimizer = sgd(ours, lr=1.0, momentum=0)
    found = train_step(ours, optimizer, squares, batches, max_grad_norm=1e9, token_count=size)
    big = squares(theirs, (x, y))
    big.backward()
    wanted = numbers(theirs, lambda one: one.grad)
    ledger.compare(torch.tensor(found, dtype=torch.float64), big, within=1e-12)
    ledger.compare(numbers(ours, lambda one: one.grad), wanted, within=1e-12, backward=True)
    ledger.compare(numbers(ours), numbers(theirs) - wanted, within=1e-12)


def test_without_token_counts_the_batches_count_equally():
    batches, ours = list(points(2, (10, 2))), Line()
    means = [squares(Line(), batch).item() for batch in batches]
    found = train_step(ours, sgd(ours), squares, batches)
    assert found == pytest.approx(sum(means) / 2, abs=1e-14)


@pytest.mark.verifies(
    "course_lib.train.fit.train_step", against="the norm with Python's `math`, and a clip by hand"
)
@pytest.mark.parametrize("max_grad_norm", [0.01, 0.2, 50.0])
def test_gradients_above_the_largest_norm_are_scaled_down_to_it(ledger, max_grad_norm):
    ours, theirs, (batch,) = Line(), Line(), points(1)
    optimizer = sgd(ours, lr=1.0, momentum=0)
    train_step(ours, optimizer, squares, [batch], max_grad_norm=max_grad_norm)
    squares(theirs, batch).backward()
    flat = numbers(theirs, lambda one: one.grad)
    norm = math.sqrt(math.fsum(one * one for one in flat.tolist()))
    assert 0.2 < norm < 50
    shrunk = flat * min(1.0, max_grad_norm / (norm + 1e-6))
    ledger.compare(numbers(ours, lambda one: one.grad), shrunk, within=1e-12, backward=True)
    ledger.compare(numbers(ours), numbers(theirs) - shrunk, within=1e-12)


@pytest.mark.verifies(
    "course_lib.train.fit.train_step", against="a loop with PyTorch `Adam` and `autocast`"
)
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize(("many", "max_grad_norm"), [(1, 0.05), (3, 1.0)])
def test_the_settings_of_training_are_those_of_a_loop(ledger, precision, many, max_grad_norm):
    ours, theirs = (Line(dtype=torch.float32) for _ in range(2))
    batches = list(points(6, (5, 9, 2, 11, 3, 6), torch.float32))
    optimizer = torch.optim.Adam(ours.parameters(), 0.01, fused=True)
    groups = [batches[start : start + many] for start in range(0, 6, many)]
    options = {"max_grad_norm": max_grad_norm, "token_count": size, "precision": precision}
    found = [train_step(ours, optimizer, squares, group, **options) for group in groups]
    cast = precision == "bfloat16"
    losses = by_hand(theirs, groups, lr=0.01, max_grad_norm=max_grad_norm, cast=cast)
    assert found == pytest.approx(losses, rel=1e-3)
    exact = precision == "float32" or many == 1
    ledger.compare(numbers(ours), numbers(theirs), within=1e-6 if exact else 1e-4)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_mixed_precision_computes_in_bfloat16_and_keeps_float32_weights(precision):
    ours, (batch,), dtypes = Line(dtype=torch.float32), points(1, dtype=torch.float32), []
    ours.weights.register_forward_hook(lambda _, came, gave: dtypes.append(gave.dtype))
    train_step(ours, sgd(ours), squares, [batch], precision=precision)
    assert dtypes == [getattr(torch, precision)]
    assert {one.dtype for one in ours.parameters()} == {torch.float32}
    assert {one.grad.dtype for one in ours.parameters()} == {torch.float32}
    assert not torch.is_autocast_enabled("cpu")


def test_it_trains_in_training_mode_and_returns_the_loss_before_the_step():
    ours, (batch,) = Line().eval(), points(1)
    before = squares(ours, batch).item()
    assert train_step(ours, sgd(ours), squares, [batch]) == before
    assert ours.training and squares(ours, batch).item() < before


def test_frozen_parameters_stay():
    ours, (batch,) = Line(), points(1)
    first = ours.weights.bias.requires_grad_(False).clone()
    optimizer = torch.optim.SGD([ours.weights.weight], lr=1.0)
    fit(ours, [batch], squares, steps=1, optimizer=optimizer)
    assert torch.equal(ours.weights.bias, first) and ours.weights.bias.grad is None


SPOILED = {
    "nan": (lambda loss: loss * math.nan, "^the loss is nan; a smaller lr may help$"),
    "inf": (lambda loss: loss * math.inf, "^the loss is inf; a smaller lr may help$"),
    "slope": (lambda loss: (loss * 0).sqrt(), "^a gradient is not finite, though the loss is;"),
}


@pytest.mark.parametrize(("spoil", "says"), SPOILED.values(), ids=SPOILED)
def test_what_is_not_finite_changes_neither_weights_nor_optimizer(spoil, says):
    ours, (batch,) = Line(), points(1)
    optimizer = OPTIMIZERS["Adam"](ours)
    train_step(ours, optimizer, squares, [batch])
    weights, states = numbers(ours), optimizer.state.values()
    moments = [state["exp_avg"].clone() for state in states]
    with pytest.raises(FloatingPointError, match=says):
        train_step(ours, optimizer, lambda *given: spoil(squares(*given)), [batch])
    assert torch.equal(numbers(ours), weights)
    assert all(torch.equal(s["exp_avg"], m) for s, m in zip(states, moments, strict=True))


def stepped(**settings):
    return lambda: train_step(Line(), sgd(Line()), squares, list(points(1)), **settings)


def fitted(model, optimizer):
    return lambda: fit(model, points(1), squares, steps=1, optimizer=optimizer)


@pytest.mark.usefixtures("without_annotations")
@pytest.mark.parametrize(
    ("call", "says"),
    [
        (fitted(Line(), sgd(Line())), r"optimizer lacks weights.weight, which requires gradients; .*model.parameters\(\), or freeze"),
        (fitted(half := Line().half(), sgd(half)), r"model has weights.weight in float16, in which"),
        (stepped(max_grad_norm=0), r"max_grad_norm=0 is not a finite number above 0"),
        (stepped(precision="float16"), r"precision='float16' is unknown; .* Did you mean"),
    ],
)  # fmt: skip
def test_what_would_not_train_is_refused_by_name(call, says):
    with pytest.raises(ValueError, match=says):
        call()
