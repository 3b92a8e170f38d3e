"""Gaussian weights with one bandwidth per dimension."""

import torch

from course_lib.exercises.catalogue._shared import rounded_tensor


def gaussian_weights(queries, keys, bandwidth):
    # (query, 1, d) - (1, key, d) -> (query, key, d); bandwidth (d,) broadcasts along the last axis
    differences = (queries[:, None, :] - keys[None, :, :]) / bandwidth
    scores = -(differences**2).sum(dim=-1) / 2  # (query, key)
    return torch.softmax(scores, dim=-1)  # each row sums to 1


def reference(queries, keys, bandwidth):
    """Kernel values in float64 relative to the largest of the row, which is exact for a far query too."""
    u = (queries[:, None, :] - keys) / bandwidth  # (query, key, d)
    logarithms = -(u.double() ** 2).sum(dim=-1) / 2
    similarity = torch.exp(logarithms - logarithms.amax(dim=-1, keepdim=True))
    return (similarity / similarity.sum(dim=-1, keepdim=True)).to(queries.dtype)


MISTAKES = r"""
softmax(scores, dim=-1) -> softmax(scores, dim=0)
    Your softmax runs over the queries: the columns sum to 1. Each query shares its attention among the keys, so each
    row must sum to 1.
.sum(dim=-1) / 2 -> .sum(dim=-1)
    The factor 1/2 in the exponent is missing. Your weights are those of bandwidths √2 times smaller.
.sum(dim=-1) / 2 -> .sum(dim=-1).sqrt() / 2
    You take the norm of the scaled difference. The score needs the squared norm: leave the root out.
(differences**2).sum(dim=-1) -> differences.sum(dim=-1) ** 2
    You add the components before you square them, so positive and negative differences cancel. Square first, then
    sum.
.sum(dim=-1) / 2 -> .mean(dim=-1) / 2
    You average over the components. The score is a sum over them.
/ bandwidth -> / bandwidth.mean()
    You use the mean bandwidth for all dimensions. Divide each component by its own bandwidth.
softmax(scores, dim=-1) -> softmax(scores.exp(), dim=-1)
    softmax computes exp itself. Give it the scores, not the kernel.
scores = - -> scores = +
    The sign is wrong: your weights are largest for the farthest key.
/ bandwidth -> * bandwidth
    You multiply the differences by the bandwidth. Divide: a large bandwidth makes distances small.
/ bandwidth -> / bandwidth.sqrt()
    You square the difference before you divide by the bandwidth, so the bandwidth is not squared. The exponent is the
    sum of -(d/h)²/2.
torch.softmax(scores, dim=-1) -> scores.exp()
    These are kernel values, not weights yet. Divide each row by its sum.
torch.softmax(scores, dim=-1) -> scores.exp() / scores.exp().sum(dim=-1, keepdim=True)
    For a query far from all keys every kernel value underflows to 0, and the ratio is 0/0. Use torch.softmax of the
    scores, or subtract the largest score of each row before exp.
torch.softmax(scores, dim=-1) -> scores.exp() / (scores.exp().sum(dim=-1, keepdim=True) + 1e-12)
    For a query far from all keys every kernel value underflows to 0, so its weights are all 0. They must sum to 1:
    use torch.softmax of the scores, or subtract the largest score of each row before exp.
/ bandwidth -> / torch.linalg.vector_norm(bandwidth)
/ bandwidth -> / bandwidth.sum()
/ bandwidth -> / bandwidth.prod()
/ bandwidth -> / bandwidth[0]
/ bandwidth -> / bandwidth[-1]
    All components are divided by the same number. Divide each component by its own bandwidth.
/ bandwidth ->
    The bandwidth is not used. Divide each component of the difference by its bandwidth.
(differences**2) -> differences.abs()
(differences**2).sum(dim=-1) / 2 -> differences.abs().sum(dim=-1)
    You add absolute values. The score is a sum of squares.
torch.softmax(scores, dim=-1) -> scores
    These are the scores. Apply a softmax over the keys to get the weights.
.sum(dim=-1) / 2 -> .sum(dim=-1).sqrt()
    You take the norm of the scaled difference. The score is minus half the squared norm.
.sum(dim=-1) / 2 -> .sum(dim=-1) / 4
    The factor is 1/4 in your exponent. Square the difference over the bandwidth, then divide by 2: the 2 is not
    squared.
.sum(dim=-1) / 2 -> / 2
    Your result has the shape (query, key, d), with a softmax over the components. Sum the squares over the components
    first, dim=-1, then take the softmax over the keys.
.sum(dim=-1) / 2 -> / 2
+ softmax(scores, dim=-1) -> softmax(scores, dim=1)
    Your result has the shape (query, key, d), one weight per component. Sum the squares over the components, dim=-1,
    before the softmax.
.sum(dim=-1) / 2 -> / 2
+ softmax(scores, dim=-1) -> softmax(scores, dim=1).prod(dim=-1)
    You normalise each component on its own, so the product does not sum to 1. Sum the squares over the components
    first, then take one softmax over the keys.
/ bandwidth -> / bandwidth**2
    You divide by the square of the bandwidth and square the ratio again. The exponent is the sum of -(d/h)²/2.
(differences**2) -> differences
    You do not square the differences, so positive and negative ones cancel. Square each component, then sum.
.sum(dim=-1) / 2 -> .sum(dim=-1) * 2
    You multiply by 2. The score is minus one half of the sum of the squares.
softmax(scores, dim=-1) -> softmax(scores.flatten(), dim=0).view_as(scores)
    Your softmax runs over queries and keys together, so all weights sum to 1. Those of each query must: dim=-1.
torch.softmax(scores, dim=-1) -> torch.softmax(torch.softmax(scores, dim=-1), dim=-1)
    You apply the softmax twice, which makes the weights more equal. Once is enough.
torch.softmax -> torch.log_softmax
    These are the logarithms of the weights. Use softmax itself, so that each row sums to 1.
torch.softmax(scores, dim=-1) -> scores.exp() / scores.exp().amax(dim=-1, keepdim=True)
    You divide each row by its maximum. Divide by its sum: torch.softmax of the scores does this, for far queries too.
.sum(dim=-1) / 2 -> .amax(dim=-1) / 2
    Only the largest component counts in your scores. Sum the squares over the components.
.sum(dim=-1) / 2 -> .prod(dim=-1) / 2
    You multiply the squares of the components. The score is a sum over them.
.sum(dim=-1) / 2 -> .sum(dim=1) / 2
    You sum over the keys, so your result is (query, d). Sum over the components, dim=-1, which leaves (query, key).
.sum(dim=-1) / 2 -> .sum() / 2
    You sum over all axes, which leaves a single number. Sum over the components alone: dim=-1.
/ bandwidth -> / bandwidth[:, None]
    The d of your bandwidth meets another axis than the components. Leave it in the shape (d,), and divide while the last
    axis is that of the components: before the sum, and before torch.cdist, which sums as well.
(queries[:, None, :] - keys[None, :, :]) -> queries[:, None, :] - keys[None, :, :]
    Only the keys are divided by the bandwidth. Put the difference in parentheses, or divide both.
(queries[:, None, :] - keys[None, :, :]) / bandwidth -> queries[:, None, :] / bandwidth - keys[None, :, :]
    Only the queries are divided by the bandwidth. Divide the difference, or both.
queries[:, None, :] - keys[None, :, :] -> keys[:, None, :] - queries[None, :, :]
    Your result has the shape (key, query). Subtract keys[None, :, :] from queries[:, None, :], which gives (query,
    key).
queries[:, None, :] - keys[None, :, :] -> queries - keys
    queries - keys subtracts elementwise, or raises an error. Every query meets every key: queries[:, None, :] -
    keys[None, :, :] is (query, key, d).
- keys[None -> + keys[None
    You add the keys to the queries. The score needs their difference.
-(differences**2).sum(dim=-1) / 2 -> (queries / bandwidth) @ (keys / bandwidth).T
    Your scores are dot products. They lack the squared norms of the keys, which the softmax does not cancel: use the
    squared differences.
[None, :, :]) / bandwidth -> [None, :, :]) / bandwidth.prod().sqrt()
    You divide the whole sum by the product of the bandwidths. Divide each component by its own bandwidth, before the sum.
"""

CASES = (
    dict(
        queries=torch.tensor([[0.0, 0.0], [1.0, 2.0]]),
        keys=torch.tensor([[0.0, 1.0], [2.0, 0.0], [1.0, 3.0]]),
        bandwidth=torch.tensor([1.0, 2.0]),
    ),
    dict(
        queries=rounded_tensor(4, 3, seed=1),
        keys=rounded_tensor(5, 3, seed=2),
        bandwidth=torch.tensor([0.5, 1.5, 3.0]),
    ),
    dict(  # one query so far away that exp of every score is 0
        queries=torch.cat([rounded_tensor(4, 3, seed=3), torch.full((1, 3), 40.0)]),
        keys=rounded_tensor(5, 3, seed=4),
        bandwidth=torch.tensor([1.0, 2.0, 0.5]),
    ),
)
HINTS = """
queries[:, None, :] - keys[None, :, :] has shape (query, key, d). Which axis does the bandwidth belong to?
A tensor of shape (d,) broadcasts along the last axis, so dividing by the bandwidth scales each component.
Square, sum over the last axis, multiply by -1/2, then torch.softmax(scores, dim=-1).
"""
