"""The learning rate of the first Transformer against its paper and PyTorch's scheduler."""

import math

import pytest
import torch

from course_lib.training import noam_lr


@pytest.mark.verifies(
    "course_lib.training.noam_lr", against="Vaswani and others (2017), equation 3, by hand"
)
@pytest.mark.parametrize(
    ("step", "lr"),
    [
        # 512^-0.5 = 0.0441941738, 4000^-1.5 = 3.95284708e-6
        (1, 0.0441941738 * 3.95284708e-6),
        (1000, 0.0441941738 * 3.95284708e-3),
        (4000, 0.0441941738 * 0.0158113883),
        (16000, 0.0441941738 * 0.0158113883 / 2),
        (100000, 0.0441941738 * 0.00316227766),
    ],
)
def test_noam_schedule_equals_the_paper(ledger, step, lr):
    ours, theirs = torch.tensor([noam_lr(step, 512, 4000), lr], dtype=torch.float64)
    ledger.compare(ours, theirs, within=1e-8 * lr)


@pytest.mark.verifies("course_lib.training.noam_lr", against="PyTorch `LambdaLR`")
@pytest.mark.parametrize(("d_model", "warmup"), [(64, 10), (512, 1), (3, 37), (1, 1)])
def test_noam_schedule_equals_pytorch_lambda_lr(ledger, d_model, warmup):
    weight = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=1 / math.sqrt(d_model * warmup))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda done: min((done + 1) / warmup, math.sqrt(warmup / (done + 1)))
    )
    theirs = []
    for _ in range(100):
        theirs.append(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()
    ours = [noam_lr(step, d_model, warmup) for step in range(1, 101)]
    ledger.compare(
        *(torch.tensor(lrs, dtype=torch.float64) for lrs in (ours, theirs)), within=1e-15
    )
    assert ours.index(max(ours)) == warmup - 1


@pytest.mark.usefixtures("without_annotations")
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((0, 64, 10), "step=0 is below 1"),
        ((1.5, 64, 10), "step=1.5 is a float; it must be a whole number"),
        ((1, 0, 10), "d_model=0 is below 1"),
        ((1, 64, 0), "warmup=0 is below 1"),
    ],
)
def test_invalid_input_raises_value_error(arguments, says):
    with pytest.raises(ValueError, match=says):
        noam_lr(*arguments)
