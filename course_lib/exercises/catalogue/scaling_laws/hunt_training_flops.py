"""Bug hunt `hunt_training_flops` of notebook 11."""

from functools import partial
from itertools import product

import torch

from course_lib.exercises.catalogue._shared import still_wrong
from course_lib.exercises.exercise import Case, Exercise, Mistake


def training_flops(d_model, layers, vocabulary, length, tokens, tied):
    blocks = 12 * layers * d_model**2
    head = vocabulary * d_model  # a shared matrix is multiplied all the same
    attention = layers * 4 * length * d_model  # FLOPs of the forward pass, per token
    return (6 * (blocks + head) + 3 * attention) * tokens


def _given(d_model, layers, vocabulary, length, tokens, tied):
    blocks = 12 * layers * d_model**2
    head = torch.where(tied, 0, vocabulary * d_model)
    attention = layers * 4 * length * d_model  # FLOPs of the forward pass, per token
    return (6 * (blocks + head) + attention) * tokens


_HEAD = {
    "": "",
    "free if tied": "a matrix that two layers share is stored once, but multiplied by every token all the same",
    "with embedding": "the embedding is a lookup: it has parameters, but no product",
    "embedding if untied": "an embedding of its own is counted as if it were multiplied: it is a lookup",
    "missing": "the LM head is missing",
}
_ATTENTION = {
    "": "",
    "forward": "the products of attention have a backward pass, too: twice their forward pass",
    "missing": "the products of attention are missing",
    "half": "each score is counted for q·k or for the weighted sum of the values, not for both",
    "once more": "attention's products are counted with 6 instead of 3 times their forward pass",
    "not by token": "attention's products grow with the context twice: `length` keys for each token",
}
_WEIGHTS = {"": "", "once": "the backward pass needs two products for each one of the forward pass"}
_PARTS = ("head", "attention", "weights")


def _flops_with_bugs(
    d_model, layers, vocabulary, length, tokens, tied, *, head, attention, weights
):
    matrix = vocabulary * d_model
    heads = {
        "": matrix,
        "free if tied": torch.where(tied, 0, matrix),
        "with embedding": 2 * matrix,
        "embedding if untied": torch.where(tied, matrix, 2 * matrix),
        "missing": 0 * matrix,
    }[head]
    scores = layers * 4 * length * d_model
    products = {
        "": 3 * scores,
        "forward": scores,
        "missing": 0 * scores,
        "half": 3 * scores // 2,
        "once more": 6 * scores,
        "not by token": 3 * scores // length,
    }[attention]
    factor = 4 if weights == "once" else 6
    return (factor * (12 * layers * d_model**2 + heads) + products) * tokens


EXERCISE = Exercise(
    name="hunt_training_flops",
    notebook="11_scaling_laws",
    title="Bug hunt: a bill for training",
    reference=partial(_flops_with_bugs, head="", attention="", weights=""),
    solution=training_flops,
    cases=(
        Case(
            d_model=torch.tensor([2]),
            layers=torch.tensor([1]),
            vocabulary=torch.tensor([5]),
            length=torch.tensor([3]),
            tokens=torch.tensor([1]),
            tied=torch.tensor([True]),
        ),
        Case(
            d_model=torch.tensor([4, 8]),
            layers=torch.tensor([2, 3]),
            vocabulary=torch.tensor([10, 50]),
            length=torch.tensor([7, 64]),
            tokens=torch.tensor([100, 1000]),
            tied=torch.tensor([False, True]),
        ),
    ),
    mistakes=(
        *(
            Mistake(
                "left: "
                + ", ".join(f"{part} {bug}" for part, bug in zip(_PARTS, bugs, strict=True) if bug),
                partial(_flops_with_bugs, head=bugs[0], attention=bugs[1], weights=bugs[2]),
                still_wrong(_HEAD[bugs[0]], _ATTENTION[bugs[1]], _WEIGHTS[bugs[2]]),
            )
            for bugs in product(_HEAD, _ATTENTION, _WEIGHTS)
            if any(bugs) and bugs != ("free if tied", "forward", "")
        ),
    ),
    hints=(
        "Compute two models by hand that differ in `tied` only. Which products does each of them call?",
        "Tying saves parameters. Does it save FLOPs? And which of the terms have a backward pass?",
        "The head is vocabulary * d_model for every model; attention's products count three times.",
    ),
    given=_given,
    given_message=still_wrong(_HEAD["free if tied"], _ATTENTION["forward"]),
    differentiable=False,
)
