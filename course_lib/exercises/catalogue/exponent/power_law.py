"""A power law by least squares."""

import torch


def power_law(N, loss, E):
    x, y = N.log(), (loss - E).log()
    x_mean, y_mean = x.mean(), y.mean()
    slope = ((x - x_mean) * (y - y_mean)).sum() / (x - x_mean).square().sum()
    A = (y_mean - slope * x_mean).exp()
    return torch.stack([A, -slope])


def reference(N, loss, E):
    X = torch.stack([torch.ones_like(N), N.log()], dim=1)
    intercept, slope = torch.linalg.lstsq(X, (loss - E).log()[:, None]).solution[:, 0]
    return torch.stack([intercept.exp(), -slope])


SLOPE = "((x - x_mean) * (y - y_mean)).sum() / (x - x_mean).square().sum()"
ENDS = f"{SLOPE} -> (y[-1] - y[0]) / (x[-1] - x[0])"
MISTAKES = rf"""
(loss - E).log() -> loss.log()
    E is not subtracted. Fit the line to log(loss - E).
(loss - E).log() -> (loss + E).log()
    You add E. It is the loss that no model gets below: fit the line to log(loss - E).
[A, -slope] -> [A, slope]
    Your exponent is negative. The slope of the line is -alpha, since the loss falls.
(y_mean - slope * x_mean).exp() -> y_mean - slope * x_mean
    You return log A: the intercept of the line. A is its exponential.
[A, -slope] -> [-slope, A]
    The two numbers are swapped: first A, then alpha.
[A, -slope] -> [slope, A]
    The two numbers are swapped, first A, then alpha, and the slope of the line is -alpha.
[A, -slope] -> [A, (-slope).exp()]
    You take the exponential of the slope, too. Only A is one: log A is the intercept.
{ENDS}
+ (y_mean - slope * x_mean) -> (y[0] - slope * x[0])
{ENDS}
    Your line has the slope between the first and the last model and ignores the others. Least squares uses all.
(y_mean - slope * x_mean) -> (y[0] - slope * x[0])
(y_mean - slope * x_mean) -> (y[-1] - slope * x[-1])
    Your line goes through one of the models. The least-squares line goes through the means of x and y.
(loss - E).log() -> loss - E
    You take the logarithm of N, but not that of loss - E. Only with both is a power law a straight line.
x, y = N.log() -> x, y = N
    You take the logarithm of loss - E, but not that of N: that fits an exponential, not a power.
x, y = N.log(), (loss - E).log() -> x, y = N, loss - E
+ (y_mean - slope * x_mean).exp() -> y_mean - slope * x_mean
    You fit a straight line without logarithms. A power law is straight on logarithmic axes.
.log() => .log10()
    Your logarithms are to the base 10, but A is computed with exp. Use one base for both.
.log() => .log2()
    Your logarithms are to the base 2, but A is computed with exp. Use one base for both.
(y_mean - slope * x_mean).exp() -> 10 ** (y_mean - slope * x_mean)
    Your logarithms are natural, but A is computed as a power of 10. Use one base for both.
N.log() -> N.log10()
(loss - E).log() -> (loss - E).log10()
    One of your logarithms is to the base 10 and the other is natural, which changes the slope.
(loss - E).log() -> loss.log()
+ (y_mean - slope * x_mean).exp() -> (y_mean - slope * x_mean).exp() - E
    You subtract E from A after the fit. It must be subtracted from the losses before the logarithm.
(loss - E).log() -> (loss.log() - E)
    You subtract E from log(loss). Subtract first: log(loss - E).
(loss - E).log() -> loss.log() - torch.tensor(E).log()
    You subtract log E from log(loss), which divides the loss by E. Subtract first: log(loss - E).
{SLOPE} -> (y - y_mean).square().sum() / ((x - x_mean) * (y - y_mean)).sum()
    Your line fits log N as a function of log(loss - E), turned round. Least squares of y = log(loss - E) divides the
    sum of (x - x̄)(y - ȳ) by that of (x - x̄)².
{SLOPE} -> (x * y).sum() / x.square().sum()
+ (y_mean - slope * x_mean).exp() -> torch.ones(())
    Your line has no intercept, so A is 1. Subtract the means of x and y first.
{SLOPE} -> (x * y).sum() / x.square().sum()
{SLOPE} -> ((x - x_mean) * (y - y_mean)).sum() / x.square().sum()
{SLOPE} -> (x * y).sum() / (x - x_mean).square().sum()
    Your slope is not that of least squares. Subtract the means in both sums: of x - x̄ times y - ȳ, and of the square
    of x - x̄.
(x - x_mean).square().sum() -> (y - y_mean).square().sum()
    You divide by the variance of y. The slope of y as a function of x divides by that of x.
(x - x_mean).square().sum() -> ((x - x_mean).square().sum() * (y - y_mean).square().sum()).sqrt()
    This is the correlation of x and y. The slope divides by the sum of (x - x̄)² alone.
y_mean - slope -> y_mean + slope
    The sign in your intercept is wrong: it is ȳ - slope · x̄.
(y_mean - slope * x_mean) -> y_mean
    Your A is the mean of log(loss - E), not the value of the line at log N = 0: ȳ - slope · x̄.
x, y = N.log(), (loss - E).log() -> y, x = N.log(), (loss - E).log()
    You fit N as a function of the loss. Here x is log N, and y is log(loss - E).
"""

CASES = (
    dict(N=torch.tensor([1.0, 4.0, 16.0]), loss=torch.tensor([5.0, 3.0, 2.5]), E=1.0),
    dict(
        N=torch.tensor([10.0, 20.0, 50.0, 100.0, 1000.0]),
        loss=torch.tensor([4.1, 3.5, 3.0, 2.6, 1.9]),
        E=1.5,
    ),
)
HINTS = """
log(loss - E) = log A - alpha · log N is a straight line in log N.
The slope of the least-squares line is sum((x - x̄)(y - ȳ)) / sum((x - x̄)²).
x, y = N.log(), (loss - E).log(); alpha is minus the slope, A the exponential of the intercept.
"""
DIFFERENTIABLE = False
