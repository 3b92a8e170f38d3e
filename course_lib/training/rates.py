"""Learning rates by step."""

from course_lib.inputs import require_positive, require_whole


def warmup_decay(step: int, peak: float, steps: int, warmup: int) -> float:
    r"""Rise in a straight line to `peak` during the warm-up, then fall in a straight line towards 0.

    $$\eta_t = \eta \cdot \min\!\left(\frac{t}{w},\ \frac{T + 1 - t}{T + 1 - w}\right),
      \qquad t = 1, \dots, T$$

    Args:
        step: $t$, from 1 to `steps`.
        peak: $\eta$, the largest rate.
        steps: $T$.
        warmup: $w$, the step of the largest rate, from 1 to `steps`.

    Raises:
        ValueError: for numbers outside these ranges.
    """
    require_positive(peak=peak)
    require_whole(step=step, steps=steps, warmup=warmup)
    for name, number in (("step", step), ("warmup", warmup)):
        if number > steps:
            raise ValueError(f"{name}={number} is above steps={steps}")
    return peak * min(step / warmup, (steps + 1 - step) / (steps + 1 - warmup))
