"""Learning-rate schedules: functions from the step to the learning rate."""

from course_lib.checks import training as checks
from course_lib.validation import validated


@validated(checks.linear_schedule_with_warmup)
def linear_schedule_with_warmup(step: int, peak_lr: float, steps: int, warmup: int) -> float:
    r"""Rise linearly to `peak_lr` during the warm-up, then decay linearly towards 0.

    $$\eta_t = \eta \cdot \min\!\left(\frac{t}{w},\ \frac{T + 1 - t}{T + 1 - w}\right),
      \qquad t = 1, \dots, T$$

    Args:
        step: $t$, from 1 to `steps`.
        peak_lr: $\eta$, the largest learning rate.
        steps: $T$, the number of training steps.
        warmup: $w$, the step with the largest learning rate, from 1 to `steps`.

    Raises:
        ValueError: for numbers outside these ranges.
    """
    return peak_lr * min(step / warmup, (steps + 1 - step) / (steps + 1 - warmup))


@validated(checks.noam_lr)
def noam_lr(step: int, d_model: int, warmup: int) -> float:
    r"""Rise linearly during the warm-up, then decay with the inverse square root of the step.

    $$\eta_t = d_\text{model}^{-0.5} \cdot \min\!\left(t^{-0.5},\ t \cdot w^{-1.5}\right),
      \qquad t = 1, 2, \dots$$

    The largest learning rate, $(d_\text{model}\, w)^{-0.5}$, is that of step $w$.

    Source: Vaswani and others (2017), "Attention is all you need", equation 3. "Noam" is its author
    Noam Shazeer.

    Args:
        step: $t$, from 1.
        d_model: the size of the model's vectors.
        warmup: $w$, the step with the largest learning rate.

    Raises:
        ValueError: for numbers that are not whole or below 1.
    """
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)
