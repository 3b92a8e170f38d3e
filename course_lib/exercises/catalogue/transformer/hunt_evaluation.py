"""Bug hunt `hunt_evaluation` of notebook 08."""

from functools import partial
from itertools import product

import torch
import torch.nn.functional as F
from torch import nn

from course_lib.exercises.catalogue._shared import random_tensor, rounded_tensor, still_wrong
from course_lib.exercises.exercise import Case, Exercise, Mistake


def traces(x, y, training):
    def evaluate(model, x, y):
        before = model.training
        model.eval()  # no dropout
        with torch.no_grad():  # no graph, and nothing to go backward through
            loss = F.mse_loss(model(x), y)
        model.train(before)
        return loss

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(x.shape[-1], 1), nn.Dropout(1.0)).train(training)
    score = torch.as_tensor(evaluate(model, x, y))
    gradients = any(parameter.grad is not None for parameter in model.parameters())
    changed = model.training != training
    return torch.tensor([score.item(), gradients, score.requires_grad, changed])


def _given_evaluate(model, x, y):
    loss = F.mse_loss(model(x), y)
    loss.backward()
    return loss


def _side_effects(x, y, training, *, evaluate):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(x.shape[-1], 1), nn.Dropout(1.0)).train(training)
    score = torch.as_tensor(evaluate(model, x, y))
    gradients = any(parameter.grad is not None for parameter in model.parameters())
    changed = model.training != training
    return torch.tensor([score.item(), gradients, score.requires_grad, changed])


#: Symptom by what is left; "" is right.
_MODE_SYMPTOMS = {
    "": "",
    "dropout": "dropout takes part in the score",
    "left in evaluation": "the model is left in evaluation mode, so training goes on without dropout",
    "set to train": "a model that was in evaluation mode already is set to train",
}
_SIDE_EFFECT_SYMPTOMS = {
    "": "",
    "graph": "the score still carries the graph that it was computed by",
    "backward": "gradients are left behind, and the next step adds its own to them",
}


def _evaluate_with_bugs(model, x, y, *, mode, trace):
    before = model.training
    if mode != "dropout":
        model.eval()
    with torch.set_grad_enabled(trace != ""):
        loss = F.mse_loss(model(x), y)
    if trace == "backward":
        loss.backward()
    if mode == "":
        model.train(before)
    elif mode == "set to train":
        model.train()
    return loss


def _message(mode, trace):
    return still_wrong(_MODE_SYMPTOMS[mode], _SIDE_EFFECT_SYMPTOMS[trace])


EXERCISE = Exercise(
    name="hunt_evaluation",
    notebook="08_transformer",
    title="Bug hunt: an evaluation that leaves traces",
    reference=partial(_side_effects, evaluate=partial(_evaluate_with_bugs, mode="", trace="")),
    solution=traces,
    cases=(
        Case(x=rounded_tensor(4, 2, seed=29), y=rounded_tensor(4, 1, seed=30), training=True),
        Case(x=rounded_tensor(4, 2, seed=29), y=rounded_tensor(4, 1, seed=30), training=False),
        Case(x=random_tensor(7, 3, seed=31), y=random_tensor(7, 1, seed=32), training=True),
    ),
    mistakes=(
        *(
            Mistake(
                "left: " + ", ".join(one for one in (mode, trace) if one),
                partial(
                    _side_effects, evaluate=partial(_evaluate_with_bugs, mode=mode, trace=trace)
                ),
                _message(mode, trace),
            )
            for mode, trace in product(_MODE_SYMPTOMS, _SIDE_EFFECT_SYMPTOMS)
            if (mode, trace) not in (("", ""), ("dropout", "backward"))
        ),
    ),
    hints=(
        "Four numbers: the score, and three that must be 0. Which of them are not?",
        "model.eval() before, and what after? Which line computes gradients, and which keeps what it needs for them?",
        "before = model.training; model.eval(); with torch.no_grad(): loss = …; model.train(before); return loss.",
    ),
    given=partial(_side_effects, evaluate=_given_evaluate),
    given_message=_message("dropout", "backward"),
    differentiable=False,
)
