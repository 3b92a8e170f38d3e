"""Bug hunt `hunt_add_norm` of notebook 07."""

from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from course_lib.blocks import LayerNorm
from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.exercise import Case, Exercise, Mistake


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


def _given(x, change, target):
    class AddNorm(nn.Module):
        def __init__(self, d_model):
            super().__init__()
            self.d_model = d_model

        def forward(self, x, change):
            norm = nn.LayerNorm(self.d_model)
            return norm(x + change)

    layer = AddNorm(x.shape[-1])
    F.mse_loss(layer(x, change), target).backward()
    with torch.no_grad():
        for parameter in layer.parameters():
            if parameter.grad is not None:
                parameter -= 0.5 * parameter.grad
        return layer(x, change)


def _after_one_step(
    x,
    change,
    target,
    *,
    forward=lambda norm, x, change: norm(x + change),
    make=nn.LayerNorm,
    trained=lambda norm: norm.parameters(),
    rate=0.5,
):
    """Add and normalise by `forward`, after one training step."""
    norm = make(x.shape[-1])
    F.mse_loss(forward(norm, x, change), target).backward()
    with torch.no_grad():
        for parameter in trained(norm):
            if parameter.grad is not None:
                parameter -= rate * parameter.grad
        return forward(norm, x, change)


_OTHER_FORMULAS = {
    "norm_of_change": lambda norm, x, change: x + norm(change),
    "norm_of_x": lambda norm, x, change: norm(x) + change,
    "no_residual": lambda norm, x, change: norm(change),
    "residual_after_the_norm_too": lambda norm, x, change: x + norm(x + change),
}

EXERCISE = Exercise(
    name="hunt_add_norm",
    notebook="07_transformer_blocks",
    title="Bug hunt: Add & Norm",
    reference=partial(_after_one_step, make=LayerNorm),
    solution=after_one_step,
    cases=(
        Case(
            x=torch.tensor([[[1.0, 2.0, 0.0]]]),
            change=torch.tensor([[[1.0, -1.0, 3.0]]]),
            target=torch.tensor([[[3.0, 0.0, -2.0]]]),
        ),
        Case(
            x=random_tensor(2, 4, 5, seed=72),
            change=random_tensor(2, 4, 5, seed=73),
            target=3 * random_tensor(2, 4, 5, seed=74) + 2,
        ),
    ),
    mistakes=(
        Mistake(
            "weight_stands_still",
            partial(_after_one_step, trained=lambda norm: [norm.bias]),
            "The bias is trained now, but the weight is not. Is it an nn.Parameter?",
        ),
        Mistake(
            "bias_stands_still",
            partial(_after_one_step, trained=lambda norm: [norm.weight]),
            "The weight is trained now, but the bias is not. Is it an nn.Parameter?",
        ),
        Mistake(
            "norm_of_change",
            partial(_after_one_step, forward=lambda norm, x, change: x + norm(change)),
            "It is trained now, but you normalise change alone and then add x. Normalise the sum.",
        ),
        Mistake(
            "norm_of_x",
            partial(_after_one_step, forward=lambda norm, x, change: norm(x) + change),
            "It is trained now, but you normalise x alone and then add change. Normalise the sum.",
        ),
        Mistake(
            "no_residual",
            partial(_after_one_step, forward=lambda norm, x, change: norm(change)),
            "It is trained now, but x is missing: normalise the sum x + change.",
        ),
        Mistake(
            "no_change",
            partial(_after_one_step, forward=lambda norm, x, change: norm(x)),
            "It is trained now, but change is missing: normalise the sum x + change.",
        ),
        Mistake(
            "norm_twice",
            partial(_after_one_step, forward=lambda norm, x, change: norm(norm(x + change))),
            "It is trained now, but the norm is applied twice.",
        ),
        Mistake(
            "root_mean_square",
            partial(_after_one_step, make=lambda size: nn.RMSNorm(size, eps=1e-5)),
            "It is trained now, but RMSNorm is another norm: it does not subtract the mean, and has no bias.",
        ),
        Mistake(
            "two_norms",
            lambda x, change, target: _after_one_step(
                x,
                change,
                target,
                make=lambda size: nn.ModuleList([nn.LayerNorm(size), nn.LayerNorm(size)]),
                forward=lambda norms, x, change: norms[1](norms[0](x) + change),
            ),
            "It is trained now, but you normalise x as well. Normalise only the sum.",
        ),
        Mistake(
            "step_uphill",
            partial(_after_one_step, rate=-0.5),
            "The layer is trained now, but the step goes uphill. The function after_one_step was right: it subtracts the "
            "gradient.",
        ),
        Mistake(
            "residual_after_the_norm_too",
            partial(_after_one_step, forward=lambda norm, x, change: x + norm(x + change)),
            "It is trained now, but you add x once more after the norm. Post-norm ends with the norm.",
        ),
        Mistake(
            "pre_norm",
            partial(_after_one_step, forward=lambda norm, x, change: x + change + norm(x + change)),
            "It is trained now, but you add the sum once more after the norm. Post-norm ends with the norm.",
        ),
        *(
            Mistake(
                f"still_there_{name}",
                partial(_after_one_step, forward=forward, trained=lambda norm: ()),
                "You changed the formula, and it was right: normalise the sum x + change. After a step of training the layer "
                "still returns the same output as before.",
            )
            for name, forward in _OTHER_FORMULAS.items()
        ),
    ),
    hints=(
        "Print len(list(AddNorm(3).parameters())). How many should there be?",
        "How often does the line that makes the LayerNorm run, and which weight and bias does a new one have?",
        "Make the norm once, in __init__: self.norm = nn.LayerNorm(d_model). In forward, use self.norm.",
    ),
    given=_given,
    given_message="After a step of training the layer returns the same output as before. The bug is still there.",
    differentiable=False,
)
