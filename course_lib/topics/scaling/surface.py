"""The loss as a function of model size and tokens, and how to spend a budget of compute."""

import itertools
import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from course_lib.topics.scaling.power_law import Numbers, points, require_distinct


class Allocation(NamedTuple):
    """How a budget of compute is spent.

    Attributes:
        parameters: $N$, the size of the model.
        tokens: $D$, the number of training tokens.
        loss: the predicted loss.
    """

    parameters: float
    tokens: float
    loss: float


@dataclass(frozen=True)
class LossSurface:
    r"""The loss of a model with $N$ parameters after $D$ training tokens.

    $$L(N, D) = E + \frac{A}{N^\alpha} + \frac{B}{D^\beta}$$

    $E$ is the entropy of the text that no model gets below, the second term is what a larger model would gain,
    the third what more tokens would gain.

    Attributes:
        irreducible: $E$.
        size_coefficient, size_exponent: $A$ and $\alpha$.
        token_coefficient, token_exponent: $B$ and $\beta$.

    Source: Hoffmann et al. (2022), "Training compute-optimal large language models", equation 2.
    """

    irreducible: float
    size_coefficient: float
    size_exponent: float
    token_coefficient: float
    token_exponent: float

    @property
    def a(self) -> float:
        r"""The exponent of the optimal size: $N_\text{opt} \propto C^a$, $a = \beta / (\alpha + \beta)$."""
        return self.token_exponent / (self.size_exponent + self.token_exponent)

    @property
    def b(self) -> float:
        r"""The exponent of the optimal tokens: $D_\text{opt} \propto C^b$, $b = \alpha / (\alpha + \beta)$."""
        return self.size_exponent / (self.size_exponent + self.token_exponent)

    def predict(
        self, parameters: float | Numbers, tokens: float | Numbers
    ) -> float | Float[Tensor, "*points"]:
        """Return the loss: a number for two numbers, else a tensor of the shape that both broadcast to."""
        N, D = (torch.as_tensor(v, dtype=torch.float64) for v in (parameters, tokens))
        loss = (
            self.irreducible
            + self.size_coefficient * N**-self.size_exponent
            + self.token_coefficient * D**-self.token_exponent
        )
        return loss if loss.dim() else loss.item()

    def optimal(self, flops: float, *, flops_per_parameter: float = 6.0) -> Allocation:
        r"""Return the size and the tokens with the lowest loss among those with $6 N D = C$.

        $$N_\text{opt} = G \left(\frac{C}{6}\right)^{a}, \quad D_\text{opt} = \frac1G
          \left(\frac{C}{6}\right)^{b}, \quad G = \left(\frac{\alpha A}{\beta B}\right)^{1/(\alpha + \beta)}$$

        Args:
            flops: $C$, of the whole training.
            flops_per_parameter: per token; 6, unless attention or another way of counting is included.

        Source: Hoffmann et al. (2022), equation 4.
        """
        alpha, beta = self.size_exponent, self.token_exponent
        ratio = alpha * self.size_coefficient / (beta * self.token_coefficient)
        N = ratio ** (1 / (alpha + beta)) * (flops / flops_per_parameter) ** self.a
        D = flops / flops_per_parameter / N
        return Allocation(N, D, self.predict(N, D))


def fit_loss_surface(
    parameters: Numbers,
    tokens: Numbers,
    loss: Numbers,
    *,
    delta: float = 1e-3,
    start: LossSurface | None = None,
) -> LossSurface:
    r"""Fit $L(N, D) = E + A N^{-\alpha} + B D^{-\beta}$ to all runs at once, as Hoffmann et al. do.

    $$\min_{A, B, E, \alpha, \beta}\ \sum_i \mathrm{Huber}_\delta\Big(\log L_i - \log\big(E + A N_i^{-\alpha} +
      B D_i^{-\beta}\big)\Big)$$

    L-BFGS starts from the best points of a grid, and the lowest minimum is returned. The Huber loss is the squared
    error up to $\delta$ and grows linearly beyond, so single bad runs count little. The sum is minimised: with
    the mean over runs, gradients become so small that L-BFGS stops early.

    Args:
        parameters: $N$ of every run.
        tokens: $D$ of every run.
        loss: the loss of every run.
        delta: $\delta$ of the Huber loss; a large one gives least squares.
        start: a surface to start from instead of the grid, which is faster for resampled runs.

    Source: Hoffmann et al. (2022), section 3.3; Besiroglu et al. (2024), "Chinchilla scaling: a replication
    attempt", for the sum.
    """
    N, D, loss = points(parameters=parameters, tokens=tokens, loss=loss)
    require_distinct(3, parameters=N, tokens=D)
    pairs = len(torch.stack([N, D]).unique(dim=1).T)
    if pairs < 5:
        raise ValueError(
            f"parameters and tokens hold {pairs} distinct pairs; a loss surface needs at least 5"
        )
    log_N, log_D, log_loss = N.log(), D.log(), loss.log()
    centres = log_N.mean(), log_D.mean()
    data = log_N - centres[0], log_D - centres[1], log_loss
    if start is None:
        starts = sorted(_starts(data), key=lambda theta: _error(theta, data, delta).item())[:4]
    else:
        starts = [_parameters_of(start, centres)]
    found = min((_minimise(theta, data, delta) for theta in starts), key=lambda pair: pair[0])[1]
    log_a, alpha, log_b, beta, log_e = found.tolist()
    if not max(abs(alpha * centres[0].item()), abs(beta * centres[1].item())) < 600:
        raise ValueError(
            f"parameters, tokens and loss do not determine a surface: its exponents came out as {alpha:.3g} "
            f"and {beta:.3g}; more runs over a wider range are needed"
        )
    return LossSurface(
        irreducible=math.exp(log_e),
        size_coefficient=math.exp(log_a + alpha * centres[0].item()),
        size_exponent=alpha,
        token_coefficient=math.exp(log_b + beta * centres[1].item()),
        token_exponent=beta,
    )


_Data = tuple[Tensor, Tensor, Tensor]


def _parameters_of(surface: LossSurface, centres: tuple[Tensor, Tensor]) -> Tensor:
    """Return (log A, α, log B, β, log E) of a surface, for centred logarithms of N and D."""
    alpha, beta = surface.size_exponent, surface.token_exponent
    log_a = math.log(surface.size_coefficient) - alpha * centres[0].item()
    log_b = math.log(surface.token_coefficient) - beta * centres[1].item()
    log_e = math.log(max(surface.irreducible, 1e-12))
    return torch.tensor([log_a, alpha, log_b, beta, log_e], dtype=torch.float64)


def _starts(data: _Data) -> list[Tensor]:
    """Return a grid of (log A, α, log B, β, log E), for centred logarithms of N and D."""
    middle, lowest = data[2].mean().item(), data[2].min().item()
    exponents, shares = (0.15, 0.3, 0.6, 1.0), (0.2, 0.5, 0.8)
    grid = []
    for alpha, beta, share, split in itertools.product(exponents, exponents, shares, (0.3, 0.7)):
        rest = math.exp(middle) - share * math.exp(lowest)
        start = [math.log(split * rest), alpha, math.log((1 - split) * rest), beta]
        grid.append(torch.tensor([*start, math.log(share) + lowest], dtype=torch.float64))
    return grid


def _error(theta: Tensor, data: _Data, delta: float) -> Tensor:
    """Return the sum of Huber losses of the logarithms, divided by δ."""
    (log_a, alpha, log_b, beta, log_e), (u, v, log_loss) = theta, data
    terms = [log_a - alpha * u, log_b - beta * v, log_e.expand_as(u)]  # (run,) each
    predicted = torch.logsumexp(torch.stack(terms), dim=0)  # (run,)
    return F.huber_loss(predicted, log_loss, reduction="sum", delta=delta) / delta


def _minimise(start: Tensor, data: _Data, delta: float) -> tuple[float, Tensor]:
    """Run L-BFGS with δ falling to its value: the smooth problem first, then that with corners."""
    theta = start.clone().requires_grad_()
    for width in (max(1.0, delta), *(w for w in (1e-2,) if w > delta), delta):
        optimizer = torch.optim.LBFGS(
            [theta], max_iter=500, tolerance_grad=1e-10, tolerance_change=1e-14, history_size=20,
            line_search_fn="strong_wolfe",
        )  # fmt: skip

        def closure(width=width, optimizer=optimizer) -> Tensor:
            optimizer.zero_grad()
            error = _error(theta, data, width)
            error.backward()
            return error

        optimizer.step(closure)
    theta = theta.detach()
    return _error(theta, data, delta).item(), theta


class IsoflopMinimum(NamedTuple):
    """The bottom of an IsoFLOP curve.

    Attributes:
        parameters: the size with the lowest loss.
        loss: that loss.
        interpolated: whether the size lies among the measured ones; if not, it is an extrapolation.
    """

    parameters: float
    loss: float
    interpolated: bool


def isoflop_minimum(parameters: Numbers, loss: Numbers) -> IsoflopMinimum:
    r"""Fit a parabola in $\log N$ to the losses of models that were trained with the same compute.

    Args:
        parameters: their sizes, three or more.
        loss: their losses.

    Source: Hoffmann et al. (2022), section 3.2.
    """
    sizes, losses = points(parameters=parameters, loss=loss)
    require_distinct(3, parameters=sizes)
    log_N = sizes.log()
    centre = log_N.mean()
    powers = torch.stack([(log_N - centre) ** k for k in range(3)], dim=-1)  # (size, 3)
    c, b, a = torch.linalg.lstsq(powers, losses[:, None]).solution[:, 0].tolist()
    if a <= 0:
        raise ValueError(
            f"loss has no minimum: its parabola in log N opens downwards (curvature {a:.3g}); measure "
            f"sizes on both sides of the best one"
        )
    at = -b / (2 * a)
    interpolated = log_N.min() <= centre + at <= log_N.max()
    return IsoflopMinimum(math.exp(centre.item() + at), c + b * at + a * at**2, bool(interpolated))
