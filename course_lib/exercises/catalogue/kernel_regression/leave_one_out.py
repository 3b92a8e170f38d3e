"""Exercise `leave_one_out` of notebook 01."""

import torch

from course_lib.exercises.catalogue._shared import two_mistakes
from course_lib.exercises.catalogue.kernel_regression._shared import KEYS, VALUES, WAVE
from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.pooling import attention_pooling, leave_one_out_error


def leave_one_out(keys, values, bandwidth):
    output, weights = attention_pooling(keys, keys, values, bandwidth=bandwidth)
    # (key,): without pair i, the other weights are divided by 1 - weights[i, i]
    residuals = (values - output) / (1 - weights.diagonal())
    return (residuals**2).mean()


def _errors(keys, values, bandwidth, mask=None):
    return values - attention_pooling(keys, keys, values, bandwidth=bandwidth, mask=mask).output


def _shortcut(keys, values, bandwidth, corrected):
    output, weights = attention_pooling(keys, keys, values, bandwidth=bandwidth)
    return corrected(values - output, weights.diagonal()).square().mean()


def _weights_zeroed_late(keys, values, bandwidth):
    weights = attention_pooling(keys, keys, values, bandwidth=bandwidth).weights
    return ((values - (weights * (1 - torch.eye(len(keys)))) @ values) ** 2).mean()


def _error(k, v, h, *, leave_out=True, reduce=lambda residuals: residuals.square().mean()):
    mask = ~torch.eye(len(k), dtype=torch.bool) if leave_out else None
    return reduce(_errors(k, v, h, mask))


EXERCISE = Exercise(
    name="leave_one_out",
    notebook="01_kernel_regression",
    title="The leave-one-out error from the ordinary fit",
    reference=lambda keys, values, bandwidth: leave_one_out_error(
        keys, values, bandwidth=bandwidth
    ),
    solution=leave_one_out,
    cases=(
        Case(keys=KEYS, values=VALUES, bandwidth=1.0),
        Case(keys=torch.tensor([0.0, 0.0, 1.0]), values=VALUES, bandwidth=0.7),
        Case(keys=WAVE.keys, values=WAVE.values, bandwidth=0.3),
    ),
    mistakes=(
        Mistake(
            "sees_itself",
            lambda k, v, h: _errors(k, v, h).square().mean(),
            "Every key attends to itself here, so each prediction contains its own value. Divide each residual by "
            "1 - α_ii, or mask the diagonal. (A score of 0 does not mask it: 0 is the highest possible score.)",
        ),
        Mistake(
            "mask_upside_down",
            lambda k, v, h: _errors(k, v, h, torch.eye(len(k), dtype=torch.bool)).square().mean(),
            "Your mask is inverted: each key attends only to itself. In this course True means 'may attend'.",
        ),
        Mistake(
            "masks_equal_keys",
            lambda k, v, h: _errors(k, v, h, k[:, None] != k[None, :]).square().mean(),
            "Your mask compares the keys, so it also masks other pairs with an equal key. Leave out one pair only, "
            "the one with the same index.",
        ),
        Mistake(
            "masked_too_late",
            _weights_zeroed_late,
            "You set the weight of the key itself to 0 after the weights were normalised, so the rest no longer "
            "sums to 1. Mask first, then normalise; attention_pooling takes a mask.",
        ),
        Mistake(
            "multiplied",
            lambda k, v, h: _shortcut(k, v, h, lambda residual, own: residual * (1 - own)),
            "You multiply the residuals by 1 - α_ii, which makes them smaller. Leaving a pair out makes its residual "
            "larger: divide.",
        ),
        Mistake(
            "one_mean_weight",
            lambda k, v, h: _shortcut(k, v, h, lambda residual, own: residual / (1 - own.mean())),
            "You divide all residuals by the same number. That is generalised cross-validation (Craven and Wahba 1979), "
            "an approximation; divide each residual by its own 1 - α_ii.",
        ),
        Mistake(
            "divided_after_squaring",
            lambda k, v, h: _shortcut(k, v, h, lambda residual, own: residual / (1 - own).sqrt()),
            "You square the residual before you divide. Divide it by 1 - α_ii first, then square.",
        ),
        Mistake(
            "sum",
            lambda k, v, h: _errors(k, v, h, ~torch.eye(len(k), dtype=torch.bool)).square().sum(),
            "You sum the squared errors. Take their mean, or the error grows with the number of keys.",
        ),
        Mistake(
            "root",
            lambda k, v, h: (
                _errors(k, v, h, ~torch.eye(len(k), dtype=torch.bool)).square().mean().sqrt()
            ),
            "You return the root of the mean squared error. Return the mean itself.",
        ),
        Mistake(
            "absolute",
            lambda k, v, h: _errors(k, v, h, ~torch.eye(len(k), dtype=torch.bool)).abs().mean(),
            "You average the absolute errors. Square them first.",
        ),
        Mistake(
            "not_squared",
            lambda k, v, h: _errors(k, v, h, ~torch.eye(len(k), dtype=torch.bool)).mean(),
            "You average the residuals without squaring them, so positive and negative ones cancel.",
        ),
        Mistake(
            "by_own_weight",
            lambda k, v, h: _shortcut(k, v, h, lambda residual, own: residual / own),
            "You divide by α_ii. Divide by 1 - α_ii, what the other weights sum to.",
        ),
        Mistake(
            "sign_of_own_weight",
            lambda k, v, h: _shortcut(k, v, h, lambda residual, own: residual / (1 + own)),
            "You divide by 1 + α_ii. Without pair i the other weights sum to 1 - α_ii.",
        ),
        Mistake(
            "per_key",
            lambda k, v, h: _errors(k, v, h, ~torch.eye(len(k), dtype=torch.bool)).square(),
            "These are the squared errors of all keys. Return their mean, one number.",
        ),
        Mistake(
            "by_n_minus_1",
            lambda k, v, h: (
                _errors(k, v, h, ~torch.eye(len(k), dtype=torch.bool)).square().sum() / (len(k) - 1)
            ),
            "You divide the sum by n - 1. The error is the mean over all n keys.",
        ),
        Mistake(
            "bandwidth_ignored",
            lambda k, v, h: (
                _errors(k, v, 1.0, ~torch.eye(len(k), dtype=torch.bool)).square().mean()
            ),
            "The bandwidth is not used: pass bandwidth=bandwidth on to attention_pooling.",
        ),
        Mistake(
            "halved",
            lambda k, v, h: (
                _errors(k, v, h, ~torch.eye(len(k), dtype=torch.bool)).square().mean() / 2
            ),
            "There is a factor of 1/2 too many. The error is the mean of the squares.",
        ),
        Mistake(
            "by_whole_matrix",
            lambda k, v, h: (
                (output := attention_pooling(k, k, v, bandwidth=h))
                and ((v - output.output) / (1 - output.weights)).square().mean()
            ),
            "You divide by 1 - α_ij for all pairs, a matrix. Only the weight of the key itself matters: "
            "weights.diagonal().",
        ),
        Mistake(
            "prediction_divided",
            lambda k, v, h: (
                (fit := attention_pooling(k, k, v, bandwidth=h))
                and (v - fit.output / (1 - fit.weights.diagonal())).square().mean()
            ),
            "You divide the prediction by 1 - α_ii, but its own value is still in it. Divide the residual by 1 - α_ii, or "
            "subtract α_ii y_i from the prediction first.",
        ),
        Mistake(
            "no_half",
            lambda k, v, h: (
                _errors(k, v, h / 2**0.5, ~torch.eye(len(k), dtype=torch.bool)).square().mean()
            ),
            "The factor 1/2 in the exponent of your weights is missing.",
        ),
        Mistake(
            "bandwidth_not_squared",
            lambda k, v, h: (
                _errors(k, v, h**0.5, ~torch.eye(len(k), dtype=torch.bool)).square().mean()
            ),
            "In your weights the bandwidth is not squared. The score is -(difference / bandwidth)² / 2.",
        ),
        *two_mistakes(
            _error,
            {
                "training_error": (
                    {"leave_out": False},
                    "Every key attends to itself: this is the training error.",
                )
            },
            {
                "sum": (
                    {"reduce": lambda r: r.square().sum()},
                    "Take the mean of the squares, not their sum.",
                ),
                "root": (
                    {"reduce": lambda r: r.square().mean().sqrt()},
                    "Take the mean itself, not its root.",
                ),
                "absolute": (
                    {"reduce": lambda r: r.abs().mean()},
                    "Square the residuals instead of taking absolute values.",
                ),
                "not_squared": (
                    {"reduce": torch.mean},
                    "Square the residuals before you average them.",
                ),
                "per_key": ({"reduce": torch.square}, "Return the mean, one number."),
            },
        ),
    ),
    hints=(
        "Without pair i the other weights are α_ij / (1 - α_ii), so f₋ᵢ(xᵢ) = (f(xᵢ) - α_ii yᵢ) / (1 - α_ii). "
        "Subtract this from yᵢ.",
        "output, weights = attention_pooling(keys, keys, values, bandwidth=bandwidth) gives f(xᵢ) and all weights; "
        "weights.diagonal() holds α_ii.",
        "Divide values - output by 1 - weights.diagonal(), then take the mean of the squares.",
    ),
)
