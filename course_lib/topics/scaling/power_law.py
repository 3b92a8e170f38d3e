"""Power laws: fitted to losses, with intervals."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

#: What holds one number per point.
Numbers = Sequence | np.ndarray | Tensor


def points(**columns: Numbers) -> list[Tensor]:
    """Return columns of measurements in float64."""
    tensors = {
        name: torch.as_tensor(column, dtype=torch.float64) for name, column in columns.items()
    }
    (first, wanted), *_ = tensors.items()
    for name, column in tensors.items():
        if len(column) != len(wanted):
            raise ValueError(
                f"{first} has {len(wanted)} points but {name} has {len(column)}; there must be one per run"
            )
        wrong = column[~((column > 0) & column.isfinite())]
        if len(wrong):
            raise ValueError(f"{name} holds {wrong[0].item():g}; all must be finite and above 0")
    return list(tensors.values())


def require_distinct(least: int, **columns: Tensor) -> None:
    """Refuse columns with fewer different numbers: they do not determine the parameters."""
    for name, column in columns.items():
        if len(column.unique()) < least:
            raise ValueError(
                f"{name} holds {len(column.unique())} distinct values; this fit needs at least {least}"
            )


@dataclass(frozen=True)
class PowerLaw:
    r"""A loss that falls as a power of one quantity, towards a limit.

    $$L(x) = E + A\, x^{-\alpha}$$

    Attributes:
        exponent: $\alpha$.
        coefficient: $A$.
        irreducible: $E$, what no model of this kind gets below; 0 where it was left out.
    """

    exponent: float
    coefficient: float
    irreducible: float = 0.0

    def predict(self, x: float | Numbers) -> float | Float[Tensor, "*points"]:
        """Return the loss at x: a number for a number, else a tensor."""
        x = torch.as_tensor(x, dtype=torch.float64)
        loss = self.irreducible + self.coefficient * x**-self.exponent
        return loss if loss.dim() else loss.item()


def fit_power_law(x: Numbers, loss: Numbers, *, irreducible: bool = True) -> PowerLaw:
    r"""Fit $L = E + A x^{-\alpha}$ by least squares of the logarithm of the loss.

    $$\min_{A, \alpha, E \ge 0}\ \sum_i \Big(\log L_i - \log\big(E + A\, x_i^{-\alpha}\big)\Big)^2$$

    The logarithm makes errors relative: no point counts more because its loss is larger. Levenberg's and
    Marquardt's method starts from several $E$ and $\alpha$, and the best result is returned.

    Args:
        x: model sizes, tokens or FLOPs, above 0.
        loss: the loss at each, above 0.
        irreducible: whether $E$ is fitted; without it the law is a straight line in logarithms.

    Source: Henighan et al. (2020), "Scaling laws for autoregressive generative modeling", for the form; Marquardt
    (1963) for the method.
    """
    x, loss = points(x=x, loss=loss)
    require_distinct(3 if irreducible else 2, x=x)
    log_x, log_loss = x.log(), loss.log()
    u = log_x - log_x.mean()  # centred, so that A and the exponent are found apart
    if irreducible:
        log_a, alpha, log_e = _best_of_starts(u, log_loss)
    else:
        alpha = -(u * log_loss).sum() / u.square().sum()
        log_a, log_e = log_loss.mean(), torch.tensor(-torch.inf)
    log_a = log_a + alpha * log_x.mean()
    return PowerLaw(alpha.item(), log_a.exp().item(), log_e.exp().item())


#: Where the search starts: E as a share of the smallest loss, and the exponent.
_STARTS = [(share, alpha) for share in (0.1, 0.5, 0.8, 0.95) for alpha in (0.1, 0.3, 0.7, 1.5)]


def _best_of_starts(u: Tensor, log_loss: Tensor) -> Tensor:
    """Return (log A, exponent, log E) with the smallest squared error."""
    lowest, best, least = log_loss.min(), None, torch.inf
    for share, alpha in _STARTS:
        log_a = lowest + np.log(1.0 - share) + alpha * u.max()
        start = torch.stack([log_a, torch.full_like(log_a, alpha), lowest + np.log(share)])
        error, found = _levenberg_marquardt(u, log_loss, start)
        if error < least:
            least, best = error, found
    return best


def _levenberg_marquardt(
    u: Tensor, log_loss: Tensor, theta: Tensor, steps: int = 100
) -> tuple[Tensor, Tensor]:
    """Minimise the squared error; return it, and (log A, exponent, log E)."""

    def predicted(theta: Tensor) -> tuple[Tensor, Tensor]:
        log_a, alpha, log_e = theta
        power = log_a - alpha * u  # (point,)
        log_sum = torch.logaddexp(power, log_e)
        return log_sum, (power - log_sum).exp()  # the share of the power term

    damping = 1e-2
    value, share = predicted(theta)
    error = (log_loss - value).square().sum()
    for _ in range(steps):
        jacobian = torch.stack([share, -u * share, 1 - share], dim=-1)  # (point, 3)
        normal = jacobian.T @ jacobian  # (3, 3)
        slope = jacobian.T @ (log_loss - value)  # (3,)
        scale = torch.diag(normal.diagonal() + 1e-9)  # (3, 3)
        proposed = theta + torch.linalg.solve(normal + damping * scale, slope).clamp(-2, 2)
        proposed[2].clamp_(min=-40)  # E is 0 to all digits
        new_value, new_share = predicted(proposed)
        new_error = (log_loss - new_value).square().sum()
        gain = error - new_error
        converged = gain.abs() <= 1e-15 * error.clamp(min=1e-30) or damping > 1e12
        if gain >= 0:
            theta, value, share, error = proposed, new_value, new_share, new_error
            damping = max(damping / 5, 1e-15)
        else:
            damping = min(damping * 4, 1e15)
        if converged:
            break
    return error, theta
