"""Training: one loop for every model, the step it repeats, losses and learning-rate schedules."""

from course_lib.training.config import TrainingConfig
from course_lib.training.evaluation import Evaluation
from course_lib.training.fit import fit
from course_lib.training.history import History, Progress
from course_lib.training.losses import LabelSmoothingLoss, next_token_loss
from course_lib.training.schedules import linear_schedule_with_warmup, noam_lr
from course_lib.training.step import train_step

__all__ = [
    "Evaluation",
    "History",
    "LabelSmoothingLoss",
    "Progress",
    "TrainingConfig",
    "fit",
    "linear_schedule_with_warmup",
    "next_token_loss",
    "noam_lr",
    "train_step",
]
