"""Label smoothing against PyTorch's, and against its sum written out."""

import math

import pytest
import torch
from torch import nn

from course_lib.training import LabelSmoothingLoss, next_token_loss

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


@pytest.mark.verifies(
    "course_lib.training.LabelSmoothingLoss", against="PyTorch `nn.CrossEntropyLoss`"
)
@pytest.mark.parametrize("ignore_index", [-100, -1, 0, 2, 99])
@pytest.mark.parametrize("smoothing", [0, 0.1, 0.5, 0.99])
@pytest.mark.parametrize("shape", [(), (1,), (6,), (3, 5), (2, 3, 4)], ids=str)
@pytest.mark.parametrize("dtype", ROUNDING)
def test_label_smoothing_equals_pytorch(ledger, dtype, shape, smoothing, ignore_index):
    logits, target = logits_and_target(shape, dtype, ignore_index)
    exact = logits.detach().double().requires_grad_()
    ours = LabelSmoothingLoss(smoothing, ignore_index)(logits, target)
    theirs = pytorchs(exact, target, smoothing, ignore_index)
    ledger.compare(ours, theirs, within=ROUNDING[dtype] * max(1, theirs.item()))
    (mine,), (oracle,) = torch.autograd.grad(ours, logits), torch.autograd.grad(theirs, exact)
    ledger.compare(mine, oracle, within=ROUNDING[dtype], backward=True)


@pytest.mark.verifies(
    "course_lib.training.LabelSmoothingLoss", against="the sum of −q log p with Python's `math`"
)
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.4])
def test_label_smoothing_equals_the_sum_over_classes(ledger, smoothing):
    scores = [[0.5, -1.0, 2.0], [0.0, 0.0, 3.0], [1.0, 9.0, 1.0]]
    losses = []
    for row, true in ((scores[0], 2), (scores[1], 0)):
        total = sum(map(math.exp, row))
        q = [smoothing / 3] * 3
        q[true] = 1 - smoothing + smoothing / 3
        assert sum(q) == pytest.approx(1, abs=1e-15)
        losses.append(-sum(q[c] * math.log(math.exp(row[c]) / total) for c in range(3)))
    ours = LabelSmoothingLoss(smoothing)(
        torch.tensor(scores, dtype=torch.float64), torch.tensor([2, 0, -100])
    )
    ledger.compare(ours, torch.tensor(sum(losses) / 2, dtype=torch.float64), within=1e-12)


def test_label_smoothing_minimum_is_the_smoothed_distribution():
    q = torch.full((1, 5), 0.2 / 5, dtype=torch.float64)
    q[0, 3] = 1 - 0.2 + 0.2 / 5
    logits = q.log().requires_grad_()
    LabelSmoothingLoss(0.2)(logits, torch.tensor([3])).backward()
    torch.testing.assert_close(logits.grad, torch.zeros_like(q), rtol=0, atol=1e-15)


def test_label_smoothing_ignore_index():
    logits, target = logits_and_target()
    loss = LabelSmoothingLoss(0.3)(logits, target)
    loss.backward()
    assert (logits.grad[target == -100] == 0).all() and (logits.grad[target != -100] != 0).all()
    other = torch.where((target == -100)[..., None], 100 * torch.randn_like(logits), logits)
    assert LabelSmoothingLoss(0.3)(other, target) == loss


def test_label_smoothing_of_zero_accepts_minus_infinity():
    logits, target = logits_and_target()
    logits = logits.detach()
    logits[..., 0] = -math.inf
    ours = LabelSmoothingLoss(0.0)(logits, target)
    torch.testing.assert_close(ours, pytorchs(logits, target, 0.0))
    assert ours.isfinite()


def test_label_smoothing_of_bfloat16_is_computed_in_float32():
    logits, target = logits_and_target(dtype=torch.bfloat16)
    ours = LabelSmoothingLoss(0.1)(logits, target)
    assert ours.dtype == torch.float32
    assert ours == LabelSmoothingLoss(0.1)(logits.float(), target)


def test_label_smoothing_of_int32_targets():
    logits, target = logits_and_target()
    assert LabelSmoothingLoss()(logits, target.int()) == LabelSmoothingLoss()(logits, target)


@pytest.mark.verifies(
    "course_lib.training.next_token_loss", against="PyTorch `nn.CrossEntropyLoss`"
)
@pytest.mark.parametrize("dtype", ROUNDING)
@pytest.mark.parametrize("smoothing", [0.1, 0.7])
def test_next_token_loss_with_label_smoothing(ledger, smoothing, dtype):
    logits, following = logits_and_target((3, 6), dtype, ignore_index=1)
    target = torch.cat([torch.full((3, 1), 5), following], 1)
    ours = next_token_loss(logits, target, pad_id=1, smoothing=smoothing)
    theirs = pytorchs(logits.double(), following, smoothing, 1)
    ledger.compare(ours, theirs, within=5 * ROUNDING[dtype])


def lost(logits=(2, 3, 7), target=(2, 3), fill=1, **settings):
    return lambda: LabelSmoothingLoss(**settings)(torch.zeros(logits), torch.full(target, fill))


@pytest.mark.usefixtures("without_annotations")
@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lost(smoothing=1), r"smoothing=1 must be a number from 0 up to but not including 1"),
        (lost(smoothing=-0.1), r"smoothing=-0.1 must be"),
        (lost(smoothing=math.nan), r"smoothing=nan must be"),
        (
            lost(target=(2, 1)),
            r"target has shape \(2, 1\); for logits of shape \(2, 3, 7\) it must be \(2, 3\)",
        ),
        (lost(fill=-100), r"target has nothing but padding \(-100\); there is nothing to predict"),
        (lost(logits=(0, 7), target=(0,)), r"target has nothing but padding"),
        (
            lambda: next_token_loss(torch.zeros(1, 2, 7), torch.tensor([[1, 2, 3]]), smoothing=1.5),
            r"smoothing=1.5 must be a number from 0",
        ),
    ],
)
def test_invalid_input_raises_value_error(call, says):
    with pytest.raises(ValueError, match=says):
        call()
