"""Training: one loop for every model, the step it repeats, losses and a learning-rate schedule."""

from course_lib.training.fit import Evaluation, History, Progress, TrainingConfig, fit, train_step
from course_lib.training.fused_loss import fused_cross_entropy
from course_lib.training.losses import (
    LabelSmoothingLoss,
    linear_schedule_with_warmup,
    next_token_loss,
)

__all__ = [
    "Evaluation",
    "History",
    "LabelSmoothingLoss",
    "Progress",
    "TrainingConfig",
    "fit",
    "fused_cross_entropy",
    "linear_schedule_with_warmup",
    "next_token_loss",
    "train_step",
]
