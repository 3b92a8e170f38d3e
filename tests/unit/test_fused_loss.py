"""Cross-entropy with its gradient in one pass, beside PyTorch's."""

import pytest
import torch
import torch.nn.functional as F

from course_lib.train import fused_cross_entropy


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.7])
@pytest.mark.parametrize("rows", [1, 128, 300])
@pytest.mark.verifies(
    "course_lib.train.fused_loss.fused_cross_entropy",
    against="PyTorch `F.cross_entropy` and autograd",
)
def test_loss_and_gradient_are_those_of_pytorch(ledger, rows, smoothing):
    logits = (5 * torch.randn(rows, 17, dtype=torch.float64)).requires_grad_()
    labels = torch.randint(0, 17, (rows,))
    options = {"ignore_index": 3, "label_smoothing": smoothing, "reduction": "sum"}
    theirs = F.cross_entropy(logits, labels, **options)
    (wanted,) = torch.autograd.grad(2.5 * theirs, logits)
    found = fused_cross_entropy(logits, labels, smoothing=smoothing, ignore_index=3)
    (gradient,) = torch.autograd.grad(2.5 * found, logits)
    ledger.compare(found, theirs, within=1e-12)
    ledger.compare(gradient, wanted, within=1e-12)


def test_the_gradient_has_the_precision_of_the_logits_and_the_loss_that_of_float32():
    logits = torch.randn(200, 4000).bfloat16().requires_grad_()
    labels = torch.randint(0, 4000, (200,))
    loss = fused_cross_entropy(logits, labels, smoothing=0.1)
    wide = logits.detach().float().requires_grad_()
    exact = F.cross_entropy(wide, labels, label_smoothing=0.1, reduction="sum")
    exact.backward()
    loss.backward()
    assert loss.dtype == torch.float32 and logits.grad.dtype == torch.bfloat16
    torch.testing.assert_close(loss, exact.detach())
    torch.testing.assert_close(logits.grad.float(), wide.grad, atol=4e-3, rtol=1e-2)


def test_a_label_beyond_the_classes_is_refused():
    with pytest.raises((IndexError, RuntimeError), match="out of bounds"):
        fused_cross_entropy(torch.randn(4, 5), torch.tensor([0, 1, 2, 5]))
