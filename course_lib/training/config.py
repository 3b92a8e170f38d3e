"""Settings of training that most calls leave at their defaults."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_lib.checks import training as checks
from course_lib.validation import validated


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """How `fit` takes a step, and where it saves checkpoints.

    Attributes:
        max_grad_norm: gradients whose norm, over all parameters, is larger are scaled down to it.
        gradient_accumulation_steps: how many batches make one step of the optimizer.
        token_count: from a batch to the number of its target tokens, for a loss that is a mean over them:
            batches of a step then count by their tokens. None: they count equally.
        precision: "float32": the model computes in its own dtype; "bfloat16": under `torch.autocast`,
            while weights and optimizer keep their dtype.
        checkpoint_path: the file that holds all that is needed to resume; None for none.
        checkpoint_every: write it every so many steps, and after the last one.
        resume: continue from `checkpoint_path` if that file exists.

    Raises:
        ValueError: for a setting out of range, and for `resume` without `checkpoint_path`.
    """

    max_grad_norm: float = 1.0
    gradient_accumulation_steps: int = 1
    token_count: Callable[[Any], Any] | None = None
    precision: str = "float32"
    checkpoint_path: str | Path | None = None
    checkpoint_every: int = 100
    resume: bool = False

    @validated(checks.training_config)
    def __post_init__(self) -> None: ...
