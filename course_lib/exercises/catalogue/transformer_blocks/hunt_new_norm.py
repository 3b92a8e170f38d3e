"""Bug hunt `hunt_new_norm` of notebook 07."""

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
):
    """Add and normalise by `forward`, after one training step."""
    norm = make(x.shape[-1])
    F.mse_loss(forward(norm, x, change), target).backward()
    with torch.no_grad():
        for parameter in trained(norm):
            if parameter.grad is not None:
                parameter -= 0.5 * parameter.grad
        return forward(norm, x, change)


EXERCISE = Exercise(
    name="hunt_new_norm",
    notebook="07_transformer_blocks",
    title="Bug hunt: a norm that forgets what it learned",
    reference=partial(_after_one_step, make=LayerNorm),
    solution=after_one_step,
    cases=(
        Case(
            x=torch.tensor([[[1.0, 2.0, 0.0], [0.0, -1.0, 3.0]]]),
            change=torch.tensor([[[0.5, -1.0, 2.0], [1.0, 1.0, -0.5]]]),
            target=torch.tensor([[[3.0, 0.0, -2.0], [1.0, 4.0, -3.0]]]),
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
            "Your bias learns now, and the weight does not. Was it left out, or is it no nn.Parameter?",
        ),
        Mistake(
            "bias_stands_still",
            partial(_after_one_step, trained=lambda norm: [norm.weight]),
            "Your weight learns now, and the bias does not. Was it left out, or is it no nn.Parameter?",
        ),
        Mistake(
            "norm_of_change",
            partial(_after_one_step, forward=lambda norm, x, change: x + norm(change)),
            "It learns now. But you normalise the change alone, and then add. The sum is normalised.",
        ),
        Mistake(
            "norm_of_x",
            partial(_after_one_step, forward=lambda norm, x, change: norm(x) + change),
            "It learns now. But you normalise x alone, and then add. The sum is normalised.",
        ),
        Mistake(
            "no_way_around",
            partial(_after_one_step, forward=lambda norm, x, change: norm(change)),
            "It learns now. But x is lost: the sum x + change is normalised.",
        ),
        Mistake(
            "no_change",
            partial(_after_one_step, forward=lambda norm, x, change: norm(x)),
            "It learns now. But the change is lost: the sum x + change is normalised.",
        ),
        Mistake(
            "norm_twice",
            partial(_after_one_step, forward=lambda norm, x, change: norm(norm(x + change))),
            "It learns now. But the norm is applied twice.",
        ),
        Mistake(
            "root_mean_square",
            partial(_after_one_step, make=lambda size: nn.RMSNorm(size, eps=1e-5)),
            "It learns now. But RMSNorm is another norm: it does not subtract the mean, and has no bias.",
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
            "It learns now. But there are two norms: x is normalised, and then the sum. Only the sum is.",
        ),
    ),
    hints=(
        "Print len(list(AddNorm(3).parameters())). How many should there be?",
        "How often does the line that makes the LayerNorm run, and what does a new one hold?",
        "Make the norm once, in __init__: self.norm = nn.LayerNorm(d_model). In forward, use self.norm.",
    ),
    given=_given,
    given_message="After a step of training the layer returns what it returned before. The bug is still there.",
    differentiable=False,
)
