"""Training: one loop for every model, and the losses it walks down."""

from course_lib.training.fit import History, Progress, fit
from course_lib.training.losses import next_token_loss
from course_lib.training.rates import warmup_decay

__all__ = ["History", "Progress", "fit", "next_token_loss", "warmup_decay"]
