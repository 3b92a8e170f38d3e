"""Losses against PyTorch's and against sums written out; the schedule against NumPy."""

import numpy as np
import pytest
import torch
from torch import nn

from course_lib.train import linear_schedule_with_warmup, next_token_loss

ROUNDING = {torch.float64: 1e-12, torch.float32: 1e-6}
CLASSES = 7


def logits_and_target(shape=(4, 5), dtype=torch.float64, ignore_index=-100):
    """Every other target is ignored, if there is more than one."""
    logits = 3 * torch.randn(*shape, CLASSES, dtype=dtype)
    target = torch.randint(0, CLASSES, shape).clamp(min=3)
    target.view(-1)[1::2] = ignore_index
    return logits.requires_grad_(), target


def pytorchs(logits, target, smoothing, ignore_index=-100):
    oracle = nn.CrossEntropyLoss(label_smoothing=smoothing, ignore_index=ignore_index)
    return oracle(logits.reshape(-1, CLASSES), target.reshape(-1).long())


def compare(ledger, ours, theirs, logits, exact, dtype):
    ledger.compare(ours, theirs, within=ROUNDING[dtype] * max(1, theirs.item()))
    (mine,), (oracle,) = torch.autograd.grad(ours, logits), torch.autograd.grad(theirs, exact)
    ledger.compare(mine, oracle, within=ROUNDING[dtype], backward=True)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_losses_of_bfloat16_are_computed_in_float32(smoothing):
    logits, target = logits_and_target((2, 4), torch.bfloat16)
    target = torch.cat([target[:, :1].abs(), target.abs()], 1)
    ours = next_token_loss(logits, target, pad_id=100, smoothing=smoothing)
    assert ours.dtype == torch.float32
    assert ours == next_token_loss(logits.float(), target, pad_id=100, smoothing=smoothing)


@pytest.mark.verifies(
    "course_lib.train.losses.next_token_loss", against="PyTorch `nn.CrossEntropyLoss`"
)
@pytest.mark.parametrize("dtype", ROUNDING)
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.7])
@pytest.mark.parametrize("pad_id", [0, 1])
def test_next_token_loss_is_that_of_the_following_tokens(ledger, pad_id, smoothing, dtype):
    logits, following = logits_and_target((3, 6), dtype, ignore_index=pad_id)
    exact = logits.detach().double().requires_grad_()
    target = torch.cat([torch.full((3, 1), 5), following], 1).int()
    ours = next_token_loss(logits, target, pad_id=pad_id, smoothing=smoothing)
    compare(ledger, ours, pytorchs(exact, following, smoothing, pad_id), logits, exact, dtype)


@pytest.mark.verifies(
    "course_lib.train.losses.linear_schedule_with_warmup",
    against="NumPy `interp` through three points",
)
@pytest.mark.parametrize(("steps", "warmup"), [(100, 10), (7, 7), (7, 1), (1, 1)])
def test_warmup_decay_is_piecewise_linear(ledger, steps, warmup):
    ours = [linear_schedule_with_warmup(step, 0.3, steps, warmup) for step in range(1, steps + 1)]
    theirs = np.interp(range(1, steps + 1), [0, warmup, steps + 1], [0, 0.3, 0])
    ledger.compare(torch.tensor(ours, dtype=torch.float64), theirs, within=1e-15)


def test_the_rate_is_zero_after_the_last_step():
    assert [linear_schedule_with_warmup(step, 1.0, 6, 3) for step in (7, 8, 20)] == [0.0, 0.0, 0.0]


def lost(logits, target, **options):
    return lambda: next_token_loss(torch.zeros(logits), torch.tensor(target), **options)


@pytest.mark.usefixtures("without_annotations")
@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lost((2, 2, 7), [[1, 2, 3]] * 2, smoothing=1), r"smoothing=1 must be a number from 0 up to but not including 1"),
        (lambda: linear_schedule_with_warmup(1, 1.0, 3, 5), r"warmup=5 must be a step of the training, from 1 to steps=3"),
        (lambda: linear_schedule_with_warmup(1, 1.0, 6, 0), r"warmup=0 must be a step"),
        (lost((2, 3, 7), [[1, 2, 3]] * 2), r"logits has shape \(2, 3, 7\), target \(2, 3\); .*one row .* every target token but"),
        (lost((1, 2, 7), [[1, 0, 0]]), r"target has nothing but padding \(0\); there is nothing"),
    ],
)  # fmt: skip
def test_invalid_input_raises_value_error(call, says):
    with pytest.raises(ValueError, match=says):
        call()
