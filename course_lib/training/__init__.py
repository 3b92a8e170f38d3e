"""Training: one loop for every model, the losses it walks down, and its learning rates."""

from course_lib.training.fit import fit
from course_lib.training.history import History, Progress
from course_lib.training.losses import LabelSmoothingLoss, next_token_loss
from course_lib.training.rates import noam_rate, warmup_decay

__all__ = [
    "History",
    "LabelSmoothingLoss",
    "Progress",
    "fit",
    "next_token_loss",
    "noam_rate",
    "warmup_decay",
]
