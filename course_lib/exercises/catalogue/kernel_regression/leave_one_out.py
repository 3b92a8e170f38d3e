"""The leave-one-out error from the ordinary fit."""

import torch

from course_lib.exercises.catalogue.kernel_regression._shared import KEYS, VALUES, WAVE
from course_lib.topics.pooling import attention_pooling, leave_one_out_error


def leave_one_out(keys, values, bandwidth):
    output, weights = attention_pooling(keys, keys, values, bandwidth=bandwidth)
    # (key,): without pair i, the other weights are divided by 1 - weights[i, i]
    residuals = (values - output) / (1 - weights.diagonal())
    return (residuals**2).mean()


def reference(keys, values, bandwidth):
    return leave_one_out_error(keys, values, bandwidth=bandwidth)


OWN, CORRECTION = "weights.diagonal()", "/ (1 - weights.diagonal())"
MASK = "bandwidth=bandwidth) -> bandwidth=bandwidth, mask"
MISTAKES = rf"""
{CORRECTION} ->
    Every key attends to itself here, so each prediction contains its own value. Divide each residual by 1 - α_ii, or
    mask the diagonal. (A score of 0 does not mask it: 0 is the highest possible score.)
{MASK}=torch.eye(len(keys)).bool())
+ {CORRECTION} ->
    Your mask is inverted: each key attends only to itself. In this course True means 'may attend'.
{MASK}=keys[:, None] != keys)
+ {CORRECTION} ->
    Your mask compares the keys, so it also masks other pairs with an equal key. Leave out one pair only, the one with
    the same index.
{MASK}=torch.ones(len(keys), len(keys)).tril(-1).bool())
+ {CORRECTION} ->
    Your mask is causal: each key attends only to those before it. Mask the diagonal alone.
values - output -> values - (output - {OWN} * values)
+ {CORRECTION} ->
    You set the weight of the key itself to 0 after the weights were normalised, so the rest no longer sums to 1. Mask
    first, then normalise; attention_pooling takes a mask.
/ (1 -> * (1
    You multiply the residuals by 1 - α_ii, which makes them smaller. Leaving a pair out makes its residual larger:
    divide.
{OWN} -> {OWN}.mean()
    You divide all residuals by the same number. That is generalised cross-validation (Craven and Wahba 1979), an
    approximation; divide each residual by its own 1 - α_ii.
{OWN} -> 1 / len(keys)
    You divide all residuals by 1 - 1/n. The weight of a key itself is not 1/n: divide each residual by its own 1 -
    α_ii.
(1 - {OWN}) -> (1 - {OWN}).sqrt()
    You square the residual before you divide. Divide it by 1 - α_ii first, then square.
(1 - {OWN}) -> (1 - {OWN}) ** 2
    You divide the residual by (1 - α_ii)² and square the ratio. Divide it by 1 - α_ii, then square.
{OWN} -> {OWN} ** 2
    You divide by 1 - α_ii². The weight itself is subtracted, not its square: 1 - α_ii.
/ (1 - {OWN}) -> / 1 - {OWN}
    Without parentheses Python divides by 1 and then subtracts α_ii. Put 1 - α_ii in parentheses.
(1 - {OWN}) -> {OWN}
    You divide by α_ii. Divide by 1 - α_ii, what the other weights sum to.
(1 - weights -> (1 + weights
    You divide by 1 + α_ii. Without pair i the other weights sum to 1 - α_ii.
.diagonal() ->
    You divide by 1 - α_ij for all pairs, a matrix. Only the weight of the key itself matters: weights.diagonal().
(values - output) {CORRECTION} -> values - output {CORRECTION}
    You divide the prediction by 1 - α_ii, but its own value is still in it. Divide the residual by 1 - α_ii, or
    subtract α_ii y_i from the prediction first.
(values - output) {CORRECTION} -> values - (output - {OWN}) {CORRECTION}
    You subtract α_ii from the prediction. The contribution of pair i is α_ii y_i: subtract that, or divide the
    residual by 1 - α_ii.
values - output -> values + output
    You add the prediction to the value. The residual is their difference.
.mean() -> .sum()
    You sum the squared errors. Take their mean, or the error grows with the number of keys.
.mean() -> .sum() / (len(keys) - 1)
    You divide the sum by n - 1. The error is the mean over all n keys.
.mean() -> .mean().sqrt()
    You return the root of the mean squared error. Return the mean itself.
.mean() -> .mean() / 2
    There is a factor of 1/2 too many. The error is the mean of the squares.
.mean() -> .median()
    You return the median of the squared errors. The error is their mean.
.mean() ->
    These are the squared errors of all keys. Return their mean, one number.
.mean() -> .mean(dim=0, keepdim=True)
    The number is right, but its shape is (1,). Return a tensor of shape ().
(residuals**2) -> residuals.abs()
    You average the absolute errors. Square them first.
(residuals**2) -> residuals
    You average the residuals without squaring them, so positive and negative ones cancel.
(residuals**2).mean() -> residuals.mean() ** 2
    You square the mean of the residuals, so positive and negative ones cancel. Square first, then take the mean.
(residuals**2).mean() -> residuals.var()
(residuals**2).mean() -> residuals.var(correction=0)
    You return the variance of the residuals, which is measured from their mean. The error is measured from 0: the
    mean of the squares.
, bandwidth=bandwidth ->
    The bandwidth is not used: pass bandwidth=bandwidth on to attention_pooling.
=bandwidth -> =bandwidth / 2**0.5
    The factor 1/2 in the exponent of your weights is missing.
=bandwidth -> =bandwidth**0.5
    In your weights the bandwidth is not squared. The score is -(difference / bandwidth)² / 2.
=bandwidth -> =bandwidth**2
    Your weights divide by the square of the bandwidth before they square the ratio. The score is -(difference /
    bandwidth)² / 2.
=bandwidth -> =1 / bandwidth
    Your weights multiply by the bandwidth. The score is -(difference / bandwidth)² / 2.
keys, keys, values -> keys, keys, keys
    Your prediction averages the keys. It is the weighted sum of the values.
"""

CASES = (
    dict(keys=KEYS, values=VALUES, bandwidth=1.0),
    dict(keys=torch.tensor([0.0, 0.0, 1.0]), values=VALUES, bandwidth=0.7),
    dict(keys=WAVE.keys, values=WAVE.values, bandwidth=0.3),
)
HINTS = """
Without pair i the other weights are α_ij / (1 - α_ii), so f₋ᵢ(xᵢ) = (f(xᵢ) - α_ii yᵢ) / (1 - α_ii). Subtract this
    from yᵢ.
output, weights = attention_pooling(keys, keys, values, bandwidth=bandwidth) gives f(xᵢ) and all weights;
    weights.diagonal() holds α_ii.
Divide values - output by 1 - weights.diagonal(), then take the mean of the squares.
"""
