"""Bug hunt `hunt_norm_layer` of notebook 07."""

from functools import partial
from itertools import product

import torch
from torch import nn

from course_lib.blocks import LayerNorm
from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.catalogue.transformer_blocks._shared import standardise
from course_lib.exercises.exercise import Case, Exercise, Mistake


def normed(x):
    class NormLayer(nn.Module):
        def __init__(self, d_model, eps=1e-5):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(d_model))
            self.bias = nn.Parameter(torch.zeros(d_model))  # 1: it starts by shifting nothing
            self.eps = eps

        def forward(self, x):
            mean = x.mean(dim=-1, keepdim=True)
            variance = x.var(dim=-1, keepdim=True, correction=0)  # 2: divided by d
            spread = torch.sqrt(variance + self.eps)  # 3: eps inside the root
            return self.weight * (x - mean) / spread + self.bias

    new, changed = NormLayer(x.shape[-1]), NormLayer(x.shape[-1])
    with torch.no_grad():
        for parameter in changed.parameters():
            parameter += 1
    return torch.stack([new(x), changed(x)])


class _GivenNormLayer(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.ones(d_model))
        self.eps = eps

    def forward(self, x):
        mean = x.mean(dim=-1, keepdim=True)
        spread = x.std(dim=-1, keepdim=True) + self.eps
        return self.weight * (x - mean) / spread + self.bias


def _new_and_changed(make, x):
    """The output of a new layer, and of one whose parameters have been increased by 1."""
    new, changed = make(x.shape[-1]), make(x.shape[-1])
    with torch.no_grad():
        for parameter in changed.parameters():
            parameter += 1
    return torch.stack([new(x), changed(x)])


def _given(x):
    return _new_and_changed(_GivenNormLayer, x)


#: Symptom by what is left of the three bugs.
_SYMPTOMS = {
    "bias": {0.0: "", 1.0: "the output of a new layer has mean 1"},
    "ddof": {0: "", 1: "the variance of the output is below 1, most of all for small d"},
    "eps_at": {
        "inside": "",
        "outside": "a vector of nearly equal components is scaled up too much",
    },
}
_NUMBERS = ("None", "One", "Two")


def _scaled(normal, *, weight=1.0, bias=0.0, learned=("weight", "bias")):
    """The output with these initial values; those in `learned` are parameters, the others constants."""
    later = normal * (weight + ("weight" in learned)) + (bias + ("bias" in learned))
    return torch.stack([normal * weight + bias, later])


def _with_bugs(x, *, bias, ddof, eps_at):
    return _scaled(standardise(x, 1e-5, ddof=ddof, eps_at=eps_at), bias=bias)


def _root_of_std(x, *, bias, ddof):
    centre = x - x.mean(-1, keepdim=True)
    return _scaled(centre / (x.std(-1, keepdim=True, correction=ddof) + 1e-5).sqrt(), bias=bias)


def _right(x):
    return standardise(x, 1e-5)


def _message(**left):
    """The number of repaired bugs and the symptoms of the others."""
    symptoms = [_SYMPTOMS[part][which] for part, which in left.items() if _SYMPTOMS[part][which]]
    return f"{_NUMBERS[3 - len(symptoms)]} of three repaired. Still wrong: {'; '.join(symptoms)}."


_ALL_RIGHT, _NONE_REPAIRED = (0.0, 0, "inside"), (1.0, 1, "outside")


def _with_constants(constant, x):
    return _scaled(_right(x), learned={"weight", "bias"} - set(constant))


EXERCISE = Exercise(
    name="hunt_norm_layer",
    notebook="07_transformer_blocks",
    title="Bug hunt: a layer normalisation",
    reference=partial(_new_and_changed, LayerNorm),
    solution=normed,
    cases=(
        Case(x=torch.tensor([[1.0, 2.0, 6.0]])),
        Case(x=torch.tensor([[0.003, -0.001, 0.004]])),
        Case(x=random_tensor(2, 3, 4, seed=70) + 2),
        Case(x=random_tensor(3, 2, 7, seed=71) / 200),
    ),
    mistakes=(
        *(
            Mistake(
                "left: "
                + ", ".join(
                    part
                    for part, which in zip(_SYMPTOMS, left, strict=True)
                    if _SYMPTOMS[part][which]
                ),
                partial(_with_bugs, **dict(zip(_SYMPTOMS, left, strict=True))),
                _message(**dict(zip(_SYMPTOMS, left, strict=True))),
            )
            for left in product(*_SYMPTOMS.values())
            if left not in (_ALL_RIGHT, _NONE_REPAIRED)
        ),
        Mistake(
            "no_eps",
            partial(_with_bugs, bias=0.0, ddof=0, eps_at="nowhere"),
            "All three are repaired, but eps has no effect any more: add 1e-5 to the variance, or a vector of equal components "
            "is divided by 0.",
        ),
        Mistake(
            "weight_at_zero",
            lambda x: _scaled(_right(x), weight=0.0),
            "Your weight starts at zero, so a new layer returns zeros only. The weight starts at one.",
        ),
        Mistake(
            "not_centred",
            lambda x: _scaled(standardise(x, 1e-5, centred="")),
            "You no longer subtract the mean. That line was correct.",
        ),
        Mistake(
            "not_rooted",
            lambda x: _scaled(standardise(x, 1e-5, rooted=False)),
            "You divide by the variance. Divide by its root: sqrt(variance + eps).",
        ),
        Mistake(
            "over_the_batch",
            lambda x: _scaled(standardise(x, 1e-5, dim=0)),
            "Your mean and variance are computed over the first axis. The axis was right: each vector is normalised "
            "separately, dim=-1.",
        ),
        Mistake(
            "everything",
            lambda x: _scaled(standardise(x, 1e-5, dim=tuple(range(x.dim())))),
            "You compute one mean and one variance of the whole tensor. The axis was right: each vector has its own, dim=-1.",
        ),
        Mistake(
            "weight_and_bias_exchanged",
            lambda x: _scaled(_right(x), weight=0.0, bias=1.0),
            "Your weight starts at zero and your bias at one, so a new layer returns ones only. It is the other way round.",
        ),
        *(
            Mistake(
                f"constant {' and '.join(constant)}",
                partial(_with_constants, constant),
                f"A new layer is right now. But {says}: a tensor that is no nn.Parameter is not trained.",
            )
            for constant, says in (
                (("weight", "bias"), "neither weight nor bias is a parameter"),
                (("weight",), "the weight is not a parameter"),
                (("bias",), "the bias is not a parameter"),
            )
        ),
        Mistake(
            "bias_multiplied",
            lambda x: torch.stack([_right(x), 2 * (_right(x) + 1)]),
            "A new layer is right now. But with a trained bias it is not: the weight multiplies first, and then the bias is added.",
        ),
        *(
            Mistake(
                f"root_of_std: bias {bias:.0f}, ddof {ddof}",
                partial(_root_of_std, bias=bias, ddof=ddof),
                "You take the root of the standard deviation, which is a root already. eps belongs to the variance, and the root "
                f"is taken of their sum{''.join(f'. Still wrong as well: {more}' for more in symptoms[:1])}"
                f"{''.join(f'; {more}' for more in symptoms[1:])}.",
            )
            for bias, ddof in product((0.0, 1.0), (0, 1))
            for symptoms in [
                [_SYMPTOMS["bias"][1.0]] * bool(bias)
                + ["it divides by d - 1, as .std() does unless told otherwise"] * ddof
            ]
        ),
    ),
    hints=(
        "Make a new layer and apply it to a vector. Which mean and which variance should the output have?",
        "What does x.std divide by? And what is the output for torch.tensor([0.003, -0.001, 0.004])?",
        "The bias starts at zeros; x.var(dim=-1, keepdim=True, correction=0); torch.sqrt(variance + self.eps).",
    ),
    given=_given,
    given_message=_message(**dict(zip(_SYMPTOMS, _NONE_REPAIRED, strict=True))),
)
