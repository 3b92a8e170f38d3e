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


def noam_rate(step: int, d_model: int, warmup: int) -> float:
    r"""Rise in a straight line during the warm-up, then fall with the square root of the step.

    $$\eta_t = d_\text{model}^{-0.5} \cdot \min\!\left(t^{-0.5},\ t \cdot w^{-1.5}\right),
      \qquad t = 1, 2, \dots$$

    The largest rate, $(d_\text{model}\, w)^{-0.5}$, is that of step $w$.

    Source: Vaswani and others (2017), "Attention is all you need", equation 3. "Noam" is its author
    Noam Shazeer.

    Args:
        step: $t$, from 1.
        d_model: the size of the model's vectors.
        warmup: $w$, the step of the largest rate.

    Raises:
        ValueError: for numbers that are not whole or below 1.
    """
    require_whole(step=step, d_model=d_model, warmup=warmup)
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)
