"""Training: one loop for every model, and `python -m course_lib.train`, which trains a translator on real sentences.

`fit` and its losses serve any model; `Translator` and its kin turn text into text. The command is made of `settings`,
`processes`, `folder` and `run`.
"""

from importlib import import_module

from course_lib.train.fit import Evaluation, History, Progress, fit, train_step
from course_lib.train.fused_loss import fused_cross_entropy
from course_lib.train.losses import (
    linear_schedule_with_warmup,
    next_token_loss,
)
from course_lib.train.translator import PhraseTranslator, SubwordTranslator, Translation, Translator

__all__ = [
    "Evaluation",
    "History",
    "PhraseTranslator",
    "Progress",
    "SubwordTranslator",
    "Translation",
    "Translator",
    "fit",
    "fused_cross_entropy",
    "linear_schedule_with_warmup",
    "next_token_loss",
    "train_step",
]

#: The parts of the command; loaded when they are asked for.
_COMMAND = {
    "Moment": "run",
    "Processes": "processes",
    "Run": "run",
    "RunFolder": "folder",
    "Settings": "settings",
}


def __getattr__(name: str):
    if name in _COMMAND:
        return getattr(import_module(f"{__name__}.{_COMMAND[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
