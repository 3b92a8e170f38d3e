"""Bug hunt `hunt_bits_per_byte` of notebook 11."""

import math
from functools import partial
from itertools import product

import torch

from course_lib.exercises.catalogue._shared import still_wrong
from course_lib.exercises.exercise import Case, Exercise, Mistake


def bits_per_byte(log_p, tokens, bytes_of):
    real = tokens != 0  # (text, length)
    nats = -(log_p * real).sum()
    size = (bytes_of[tokens] * real).sum()  # bytes of the whole corpus
    return nats / size / math.log(2)


def _given(log_p, tokens, bytes_of):
    real = tokens != 0  # (text, length)
    nats = -(log_p * real).sum(dim=1)  # (text,)
    size = (bytes_of[tokens] * real).sum(dim=1)  # (text,)
    return (nats / size).mean() * math.log(2)


_SIZE = {
    "": "",
    "padding": "the bytes of the padding are counted",
    "tokens": "it divides by tokens, so a tokenizer with longer tokens looks worse",
    "positions": "it divides by all positions, padding included",
}
_NATS = {"": "", "padding": "the log-probabilities at padding are counted"}
_MEAN = {"": "", "texts": "every text has the same weight, however short it is"}
_UNIT = {
    "": "",
    "inverse": "a nat is more than a bit, so the number of bits must be larger than the number of nats",
    "nats": "the result is in nats",
}
_TEXTS = (_SIZE, _NATS, _MEAN, _UNIT)


def _bits_with_bugs(log_p, tokens, bytes_of, *, size, nats, mean, unit):
    real = tokens != 0
    total = -(log_p * (torch.ones_like(real) if nats else real)).sum(dim=1)
    sizes = {
        "": bytes_of[tokens] * real,
        "padding": bytes_of[tokens],
        "tokens": real,
        "positions": torch.ones_like(tokens),
    }[size].sum(dim=1)
    per_byte = (total / sizes).mean() if mean else total.sum() / sizes.sum()
    return per_byte * {"": 1 / math.log(2), "inverse": math.log(2), "nats": 1.0}[unit]


EXERCISE = Exercise(
    name="hunt_bits_per_byte",
    notebook="11_scaling_laws",
    title="Bug hunt: one unit for all tokenizers",
    reference=partial(_bits_with_bugs, size="", nats="", mean="", unit=""),
    solution=bits_per_byte,
    cases=(
        Case(
            log_p=torch.tensor([[-1.0, -2.0], [-4.0, -1.0]]),
            tokens=torch.tensor([[1, 2], [1, 0]]),
            bytes_of=torch.tensor([5, 2, 3]),
        ),
        Case(
            log_p=torch.tensor([[-0.5, -1.0, -3.0], [-2.0, -0.3, -7.0], [-1.5, -4.0, -2.0]]),
            tokens=torch.tensor([[1, 3, 2], [2, 1, 0], [3, 0, 0]]),
            bytes_of=torch.tensor([4, 1, 2, 6]),
        ),
    ),
    mistakes=(
        *(
            Mistake(
                "left: " + ", ".join(f"{part} {bug}" for part, bug in bugs.items() if bug),
                partial(_bits_with_bugs, **bugs),
                still_wrong(
                    *(texts[bug] for texts, bug in zip(_TEXTS, bugs.values(), strict=True))
                ),
            )
            for bugs in (
                dict(zip(("size", "nats", "mean", "unit"), each, strict=True))
                for each in product(*_TEXTS)
            )
            if any(bugs.values()) and tuple(bugs.values()) != ("", "", "texts", "inverse")
            if not (
                bugs["size"] == "positions" and bugs["mean"]
            )  # all texts have as many positions
        ),
    ),
    hints=(
        "Two texts, one of 1 byte with 8 bits, one of 99 bytes with 99 bits. How many bits per byte has the corpus?",
        "107 bits over 100 bytes. And 1 nat is 1.44 bits.",
        "Sum nats and bytes over all texts before dividing, then divide by math.log(2).",
    ),
    given=_given,
    given_message=still_wrong(_MEAN["texts"], _UNIT["inverse"]),
    differentiable=False,
)
