"""Epanechnikov weights, and an empty window."""

import torch

from course_lib.exercises.catalogue.kernel_regression._shared import KEYS, NILE, WAVE
from course_lib.topics.pooling import attention_pooling


def epanechnikov_weights(queries, keys, bandwidth):
    u = (queries[:, None] - keys[None, :]) / bandwidth  # (query, key)
    kernel = 0.75 * (1 - u**2).clamp(min=0)  # 0 outside the window
    total = kernel.sum(dim=-1, keepdim=True)  # (query, 1)
    return kernel / torch.where(total == 0, 1, total)  # an empty window gives zeros


def reference(queries, keys, bandwidth):
    return attention_pooling(
        queries, keys, keys, kernel="epanechnikov", bandwidth=bandwidth
    ).weights


KERNEL, WEIGHTS = "(1 - u**2).clamp(min=0)", "kernel / torch.where(total == 0, 1, total)"
MISTAKES = rf"""
torch.where(total == 0, 1, total) -> total
    A query with no key in its window gets NaN: its kernel values are all 0, and so is their sum. Its row must be all
    zeros, like that of a fully masked row.
torch.where(total == 0, 1, total) -> torch.where(total == 0, total, 1)
    The second argument of torch.where is used where the condition is True. You divide by the sums that are 0, and by
    1 elsewhere: exchange the last two arguments.
.clamp(min=0) ->
    Your kernel goes negative outside the window, which also makes the sum of the row wrong. It is 0 there: clamp 1 -
    u² at 0.
(1 - u**2) -> (u**2 - 1)
    Your kernel has weight outside the window only. It is 1 - u² inside the window and 0 outside: clamp(min=0).
.clamp(min=0) -> .abs()
    Your kernel takes the absolute value of 1 - u², which is large outside the window. It is 0 there: clamp 1 - u² at
    0.
{KERNEL} -> (u.abs() <= 1).to(u.dtype)
    All keys in your window have equal weights; that is the boxcar kernel. Epanechnikov's kernel falls as 1 - u².
{KERNEL} -> (u.abs() <= 1).to(u.dtype)
+ torch.where(total == 0, 1, total) -> total
    All keys in your window have equal weights; that is the boxcar kernel. Epanechnikov's kernel falls as 1 - u². And
    a query with no key in its window gets NaN; its row must be all zeros.
{KERNEL} -> (1 - u.abs()).clamp(min=0)
    Your kernel falls as 1 - |u|; that is the triangular kernel. Square u.
.clamp(min=0) -> .clamp(min=0) ** 2
    You square 1 - u²; that is the biweight kernel. Epanechnikov's kernel is 1 - u² itself.
.clamp(min=0) -> .clamp(min=0) ** 3
    You take the third power of 1 - u²; that is the triweight kernel. Epanechnikov's kernel is 1 - u² itself.
.clamp(min=0) -> .clamp(min=0).sqrt()
    You take the root of 1 - u². Epanechnikov's kernel is 1 - u² itself.
{KERNEL} -> torch.exp(-(u**2) / 2)
    This is the Gaussian kernel. Epanechnikov's kernel is 3/4 · (1 - u²) where |u| ≤ 1 and 0 elsewhere.
.clamp(min=0) -> .where(u <= 1, 0.0)
    Your window has no lower end: u is negative where the key is larger than the query. Compare |u| with 1.
.clamp(min=0) -> .where(u >= -1, 0.0)
    Your window has no upper end. Compare |u| with 1.
{KERNEL} -> (1 - u.clamp(0, 1) ** 2)
    Keys on one side of the query all have kernel 1, because u is negative there. Clamp 1 - u² at 0, not u.
{KERNEL} -> (1 - u).clamp(min=0) ** 2
{KERNEL} -> (1 - u) ** 2
    You square 1 - u. The kernel has 1 - u²: square u first.
{KERNEL} -> (1 - u).clamp(min=0)
    The square is missing. The kernel falls as 1 - u².
0.75 * {KERNEL} -> (0.75 - u**2).clamp(min=0)
    Your kernel is 3/4 - u². The factor 3/4 belongs to u² as well: 3/4 · (1 - u²).
{WEIGHTS} -> torch.softmax(kernel, dim=0)
0.75 * ->
+ {WEIGHTS} -> torch.softmax(kernel, dim=0)
    You apply a softmax to the kernel values, and it runs over the queries. Divide each row by its sum instead.
{WEIGHTS} -> torch.softmax(kernel, dim=-1) * (total > 0)
0.75 * ->
+ {WEIGHTS} -> torch.softmax(kernel, dim=-1) * (total > 0)
{WEIGHTS} -> torch.softmax(kernel, dim=-1)
0.75 * ->
+ {WEIGHTS} -> torch.softmax(kernel, dim=-1)
    You apply a softmax to the kernel values. exp(0) is 1, so keys outside the window still get weight. Divide by the
    sum instead.
.clamp(min=0) ->
+ {WEIGHTS} -> torch.softmax(kernel, dim=-1)
0.75 * {KERNEL} -> (1 - u**2)
+ {WEIGHTS} -> torch.softmax(kernel, dim=-1)
    Your weights are a softmax of a multiple of 1 - u², which is a Gaussian kernel: every key gets weight. Clamp 1 -
    u² at 0, and divide each row by its sum instead of applying a softmax.
{WEIGHTS} -> torch.softmax(kernel.masked_fill(kernel == 0, -torch.inf), dim=-1)
0.75 * ->
+ {WEIGHTS} -> torch.softmax(kernel.masked_fill(kernel == 0, -torch.inf), dim=-1)
{WEIGHTS} -> torch.softmax(kernel.masked_fill(kernel == 0, -torch.inf), dim=-1).nan_to_num()
0.75 * ->
+ {WEIGHTS} -> torch.softmax(kernel.masked_fill(kernel == 0, -torch.inf), dim=-1).nan_to_num()
    You apply a softmax to the kernel values inside the window, so their exponentials determine the weights. Divide
    the kernel values themselves by the sum of the row.
{WEIGHTS} -> torch.softmax(kernel, dim=-1) * (kernel > 0)
0.75 * ->
+ {WEIGHTS} -> torch.softmax(kernel, dim=-1) * (kernel > 0)
    You apply a softmax to the kernel values and set the weights outside the window to 0 afterwards, so the rows do
    not sum to 1. Divide the kernel values by the sum of the row instead.
torch.where(total == 0, 1, total) -> (total + 1e-2)
torch.where(total == 0, 1, total) -> (total + 1e-3)
0.75 * ->
+ torch.where(total == 0, 1, total) -> (total + 1e-2)
0.75 * ->
+ torch.where(total == 0, 1, total) -> (total + 1e-3)
    A constant added to every denominator makes all rows sum to less than 1. Change only the rows whose sum is 0.
torch.where(total == 0, 1, total) -> (total + 1)
0.75 * ->
+ torch.where(total == 0, 1, total) -> (total + 1)
    You add 1 to every denominator, so all rows sum to less than 1. Change only the rows whose sum is 0.
torch.where(total == 0, 1, total) -> total.clamp(min=1)
0.75 * ->
+ torch.where(total == 0, 1, total) -> total.clamp(min=1)
    clamp(min=1) changes every sum below 1, and such a row sums to less than 1. Change only the rows whose sum is 0.
.clamp(min=0) ->
+ {WEIGHTS} -> kernel
0.75 * {KERNEL} -> (1 - u**2)
+ {WEIGHTS} -> kernel
    Your kernel goes negative outside the window; clamp 1 - u² at 0. Then divide each row by its sum.
{WEIGHTS} -> kernel
0.75 * ->
+ {WEIGHTS} -> kernel
    These are kernel values, not weights yet. Divide each row by its sum, except where the sum is 0.
kernel.sum(dim=-1, keepdim=True) -> kernel.sum(dim=0, keepdim=True)
    You divide each column by its sum. The weights of one query must sum to 1, so divide each row by its sum.
kernel.sum(dim=-1, keepdim=True) -> kernel.sum()
    You divide by the sum over all queries and keys. The weights of each query must sum to 1, so divide each row by
    its own sum.
, keepdim=True ->
    The sums have the shape (query,), so they do not broadcast against (query, key). Keep the axis: sum(dim=-1,
    keepdim=True).
kernel.sum(dim=-1, keepdim=True) -> (kernel > 0).sum(dim=-1, keepdim=True)
0.75 * ->
+ kernel.sum(dim=-1, keepdim=True) -> (kernel > 0).sum(dim=-1, keepdim=True)
    You divide by the number of keys in the window. The weights of a query sum to 1 only if you divide by the sum of
    its kernel values.
kernel.sum(dim=-1, keepdim=True) -> kernel.mean(dim=-1, keepdim=True)
    You divide by the mean of the row, so the weights of a query sum to the number of keys. Divide by the sum.
kernel.sum(dim=-1, keepdim=True) -> kernel.norm(dim=-1, keepdim=True)
    You divide by the norm of the row, so the squares of the weights sum to 1. Divide by the sum.
kernel.sum(dim=-1, keepdim=True) -> kernel.amax(dim=-1, keepdim=True)
    You divide each row by its maximum. The weights of a query sum to 1 only if you divide by the sum of its kernel
    values.
{WEIGHTS} -> torch.where(total == 0, 1 / len(keys), kernel / total)
{WEIGHTS} -> torch.where(total == 0, 1.0, kernel / total)
    A query with no key in its window gets equal weights for all keys here. Its row must be all zeros, like that of a
    fully masked row.
/ bandwidth ->
    The bandwidth is not used: u is the difference divided by the bandwidth.
/ bandwidth -> / bandwidth**0.5
    You square the difference before you divide by the bandwidth, so the bandwidth is not squared. Divide first: u =
    difference / bandwidth.
/ bandwidth -> / bandwidth**2
    You divide by the square of the bandwidth. u is the difference divided by the bandwidth itself.
/ bandwidth -> * bandwidth
    You multiply the difference by the bandwidth. Divide: a large bandwidth makes a wide window.
/ bandwidth -> / (bandwidth / 2)
    Your window extends half a bandwidth to each side. It extends one bandwidth: u = difference / bandwidth.
/ bandwidth -> / (bandwidth * 2)
    Your window extends two bandwidths to each side. It extends one: u = difference / bandwidth.
(queries[:, None] - keys[None, :]) -> (keys[:, None] - queries[None, :])
    Your result has the shape (key, query). Subtract keys[None, :] from queries[:, None], which gives (query, key).
"""

CASES = (
    dict(queries=torch.tensor([1.0, 9.0]), keys=KEYS, bandwidth=2.0),
    dict(queries=torch.tensor([0.5, 2.0]), keys=KEYS, bandwidth=0.7),
    dict(queries=torch.linspace(0, 5, 7), keys=WAVE.keys, bandwidth=0.6),  # windows overlap
    dict(
        # never on a key, where |u| has no slope
        queries=torch.tensor([1870.5, 1898.75, 1925.5, 1960.25]),
        keys=NILE.keys,
        bandwidth=5.3,
    ),
)
HINTS = """
u = (query - key) / bandwidth. The kernel is 3/4 · (1 - u²) where |u| ≤ 1 and 0 elsewhere: clamp does both.
Divide each row by its sum. What is the sum of a row whose window holds no key?
torch.where(total == 0, 1, total) is a denominator that is never 0.
"""
