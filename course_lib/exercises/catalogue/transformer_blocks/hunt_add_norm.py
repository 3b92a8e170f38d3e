"""Bug hunt: Add & Norm."""

import torch
import torch.nn.functional as F
from torch import nn

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.transformer.norms import LayerNorm


def after_one_step(x, change, target):
    class AddNorm(nn.Module):
        def __init__(self, d_model):
            super().__init__()
            self.norm = nn.LayerNorm(d_model)  # made once, and registered

        def forward(self, x, change):
            return self.norm(x + change)

    layer = AddNorm(x.shape[-1])
    F.mse_loss(layer(x, change), target).backward()
    with torch.no_grad():
        for parameter in layer.parameters():
            if parameter.grad is not None:
                parameter -= 0.5 * parameter.grad
        return layer(x, change)


def reference(x, change, target):
    norm = LayerNorm(x.shape[-1])
    loss = F.mse_loss(norm(x + change), target)
    with torch.no_grad():
        for parameter, gradient in zip(
            norm.parameters(), torch.autograd.grad(loss, norm.parameters()), strict=True
        ):
            parameter -= 0.5 * gradient
        return norm(x + change)


NORM = "nn.LayerNorm(d_model)"
FORWARD = "self.norm(x + change)"
NEW = "nn.LayerNorm(x.shape[-1])"  # in every forward
GIVEN = rf"""
self.norm = {NORM} -> self.d_model = d_model
+ return {FORWARD} -> norm = nn.LayerNorm(self.d_model)\nreturn norm(x + change)
"""
GIVEN_MESSAGE = (
    "After a step of training the layer returns the same output as before: the bug is still there."
)
MISTAKES = rf"""
self.norm = {NORM} -> self.norm = nn.LayerNorm(d_model); self.norm.weight.requires_grad_(False)
    The bias is trained now, but the weight is not. Is it an nn.Parameter, and does the result depend on it?
self.norm = {NORM} -> self.norm = nn.LayerNorm(d_model); self.norm.bias.requires_grad_(False)
    The weight is trained now, but the bias is not. Is it an nn.Parameter, and does the result depend on it?
self.norm = {NORM} -> self.norm = nn.LayerNorm(d_model, elementwise_affine=False)
    The loss has no gradient: the computation graph of your forward holds no parameter. The norm has a weight and a
    bias that are trained.
{FORWARD} -> x + self.norm(change)
    It is trained now, but you normalise change alone and then add x. Normalise the sum.
{FORWARD} -> self.norm(x) + change
    It is trained now, but you normalise x alone and then add change. Normalise the sum.
{FORWARD} -> self.norm(change)
    It is trained now, but x is missing: normalise the sum x + change.
{FORWARD} -> self.norm(x)
    It is trained now, but change is missing: normalise the sum x + change.
{FORWARD} -> self.norm(self.norm(x + change))
    It is trained now, but the norm is applied twice.
{NORM} -> nn.RMSNorm(d_model, eps=1e-5)
    It is trained now, but RMSNorm is another norm: it does not subtract the mean, and has no bias.
{NORM} -> nn.LayerNorm(d_model); self.first = nn.LayerNorm(d_model)
+ {FORWARD} -> self.norm(self.first(x) + change)
{FORWARD} -> self.norm(self.norm(x) + change)
    It is trained now, but you normalise x as well. Normalise only the sum.
{FORWARD} -> self.norm(x) + self.norm(change)
    It is trained now, but you normalise x and change one by one. Normalise the sum.
{FORWARD} -> self.norm(x - change)
    It is trained now, but you subtract change. Normalise the sum x + change.
-= 0.5 -> += 0.5
    The layer is trained now, but the step goes uphill. The function after_one_step was right: it subtracts the
    gradient.
parameter -= 0.5 * parameter.grad -> parameter -= parameter.grad
    The layer is trained now, but the step is twice as large. The function after_one_step was right: 0.5 times the
    gradient.
{FORWARD} -> x + self.norm(x + change)
    It is trained now, but you add x once more after the norm. Post-norm ends with the norm.
{FORWARD} -> x + change + self.norm(x + change)
    It is trained now, but you add the sum once more after the norm. Post-norm ends with the norm.
{FORWARD} -> x + {NEW}(change)
{FORWARD} -> {NEW}(x) + change
{FORWARD} -> {NEW}(change)
{FORWARD} -> x + {NEW}(x + change)
    You changed the formula, and it was right: normalise the sum x + change. After a step of training the layer still
    returns the same output as before.
"""

CASES = (
    dict(
        x=torch.tensor([[[1.0, 2.0, 0.0]]]),
        change=torch.tensor([[[1.0, -1.0, 3.0]]]),
        target=torch.tensor([[[3.0, 0.0, -2.0]]]),
    ),
    dict(
        x=random_tensor(2, 4, 5, seed=72),
        change=random_tensor(2, 4, 5, seed=73),
        target=3 * random_tensor(2, 4, 5, seed=74) + 2,
    ),
)
HINTS = """
Print len(list(AddNorm(3).parameters())). How many should there be?
How often does the line that makes the LayerNorm run, and which weight and bias does a new one have?
Make the norm once, in __init__: self.norm = nn.LayerNorm(d_model). In forward, use self.norm.
"""
DIFFERENTIABLE = False
