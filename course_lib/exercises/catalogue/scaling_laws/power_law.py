"""Exercise `power_law` of notebook 11."""

import torch

from course_lib.exercises.exercise import Case, Exercise, Mistake


def power_law(N, loss, E):
    x, y = N.log(), (loss - E).log()
    x_mean, y_mean = x.mean(), y.mean()
    slope = ((x - x_mean) * (y - y_mean)).sum() / (x - x_mean).square().sum()
    A = (y_mean - slope * x_mean).exp()
    return torch.stack([A, -slope])


def _line(x, y):
    """Intercept and slope of the least-squares line."""
    X = torch.stack([torch.ones_like(x), x], dim=1)
    return torch.linalg.lstsq(X, y[:, None]).solution[:, 0]


def _reference(N, loss, E):
    intercept, slope = _line(N.log(), (loss - E).log())
    return torch.stack([intercept.exp(), -slope])


def _no_E(N, loss, E):
    return _reference(N, loss, 0.0)


def _negative(N, loss, E):
    A, alpha = _reference(N, loss, E)
    return torch.stack([A, -alpha])


def _log_A(N, loss, E):
    A, alpha = _reference(N, loss, E)
    return torch.stack([A.log(), alpha])


def _swapped(N, loss, E):
    return _reference(N, loss, E).flip(0)


def _through_the_ends(N, loss, E):
    x, y = N.log(), (loss - E).log()
    slope = (y[-1] - y[0]) / (x[-1] - x[0])
    return torch.stack([(y[0] - slope * x[0]).exp(), -slope])


def _linear_loss(N, loss, E):
    intercept, slope = _line(N.log(), loss - E)
    return torch.stack([intercept.exp(), -slope])


def _linear_size(N, loss, E):
    intercept, slope = _line(N, (loss - E).log())
    return torch.stack([intercept.exp(), -slope])


def _straight(N, loss, E):
    intercept, slope = _line(N, loss - E)
    return torch.stack([intercept, -slope])


def _ten(N, loss, E):
    intercept, slope = _line(N.log10(), (loss - E).log10())
    return torch.stack([intercept.exp(), -slope])


def _mixed(N, loss, E):
    intercept, slope = _line(N.log10(), (loss - E).log())
    return torch.stack([intercept.exp(), -slope])


def _E_after(N, loss, E):
    intercept, slope = _line(N.log(), loss.log())
    return torch.stack([intercept.exp() - E, -slope])


def _E_of_logs(N, loss, E):
    intercept, slope = _line(N.log(), loss.log() - torch.tensor(E).log())
    return torch.stack([intercept.exp(), -slope])


def _through_origin(N, loss, E):
    x, y = N.log(), (loss - E).log()
    return torch.stack([torch.ones(()), -(x * y).sum() / x.square().sum()])


def _other_way(N, loss, E):
    intercept, slope = _line((loss - E).log(), N.log())
    return torch.stack([intercept.exp(), -slope])


EXERCISE = Exercise(
    name="power_law",
    notebook="11_scaling_laws",
    title="A power law by least squares",
    reference=_reference,
    solution=power_law,
    cases=(
        Case(N=torch.tensor([1.0, 4.0, 16.0]), loss=torch.tensor([5.0, 3.0, 2.5]), E=1.0),
        Case(
            N=torch.tensor([10.0, 20.0, 50.0, 100.0, 1000.0]),
            loss=torch.tensor([4.1, 3.5, 3.0, 2.6, 1.9]),
            E=1.5,
        ),
    ),
    mistakes=(
        Mistake("no_E", _no_E, "E is not subtracted. Fit the line to log(loss - E)."),
        Mistake(
            "negative",
            _negative,
            "Your exponent is negative. The slope of the line is -alpha, since the loss falls.",
        ),
        Mistake(
            "log_A", _log_A, "You return log A: the intercept of the line. A is its exponential."
        ),
        Mistake("swapped", _swapped, "The two numbers are swapped: first A, then alpha."),
        Mistake(
            "through_the_ends",
            _through_the_ends,
            "Your line goes through the first and the last model and ignores the others. Least squares uses all.",
        ),
        Mistake(
            "linear_loss",
            _linear_loss,
            "You take the logarithm of N, but not that of loss - E. Only with both is a power law a straight line.",
        ),
        Mistake(
            "linear_size",
            _linear_size,
            "You take the logarithm of loss - E, but not that of N: that fits an exponential, not a power.",
        ),
        Mistake(
            "straight",
            _straight,
            "You fit a straight line without logarithms. A power law is straight on logarithmic axes.",
        ),
        Mistake(
            "ten",
            _ten,
            "Your logarithms are to the base 10, but A is computed with exp. Use one base for both.",
        ),
        Mistake(
            "mixed",
            _mixed,
            "One of your logarithms is to the base 10 and the other is natural, which stretches the slope.",
        ),
        Mistake(
            "E_after",
            _E_after,
            "You subtract E from A after the fit. It must be subtracted from the losses before the logarithm.",
        ),
        Mistake(
            "E_of_logs",
            _E_of_logs,
            "You subtract log E from log(loss), which divides the loss by E. Subtract first: log(loss - E).",
        ),
        Mistake(
            "through_origin",
            _through_origin,
            "Your line has no intercept, so A is 1. Subtract the means of x and y first.",
        ),
        Mistake(
            "other_way",
            _other_way,
            "You fit N as a function of the loss. Here x is log N, and y is log(loss - E).",
        ),
    ),
    hints=(
        "log(loss - E) = log A - alpha · log N is a straight line in log N.",
        "The slope of the least-squares line is sum((x - x̄)(y - ȳ)) / sum((x - x̄)²).",
        "x, y = N.log(), (loss - E).log(); alpha is minus the slope, A the exponential of the intercept.",
    ),
    differentiable=False,
)
