"""Gaussian scores from dot products and norms."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.catalogue.scoring_functions._shared import QUERY
from course_lib.transformer.scoring import GaussianScore


def gaussian_scores(query, key, h):
    query_norm = query.square().sum(dim=-1)[..., :, None]  # (…, query, 1)
    key_norm = key.square().sum(dim=-1)[..., None, :]  # (…, 1, key)
    squares = query_norm - 2 * query @ key.mT + key_norm  # (…, query, key)
    scores = -squares / (2 * h**2)  # (…, query, key)
    return scores


class _Watched(torch.Tensor):
    """Queries (2, 4, 6) for keys (2, 5, 6): an operation on them that makes a tensor of all differences raises."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        result = super().__torch_function__(function, types, args, kwargs or {})
        if isinstance(result, torch.Tensor) and result.numel() >= 2 * 4 * 5 * 6:
            raise MemoryError("a tensor is as large as that of all differences")
        return result


def reference(query, key, h):
    return GaussianScore(h)(query.as_subclass(torch.Tensor), key)


SQUARES = "query_norm - 2 * query @ key.mT + key_norm"
MISTAKES = f"""
{SQUARES} -> ((query[..., :, None, :] - key[..., None, :, :]) ** 2).sum(dim=-1)
    Right, but you make the tensor of all differences, (…, query, key, d). The expanded square does without: ‖q − k‖²
    = ‖q‖² − 2 q·k + ‖k‖².
-squares -> squares
    The sign is wrong: this score grows with the distance, so the farthest key gets the largest weight.
@ key.mT + key_norm -> @ key.mT
    The term ‖k‖² is missing. It differs from key to key, so the softmax does not cancel it.
query_norm - 2 -> -2
    The term ‖q‖² is missing. The softmax would cancel it, but here the scores themselves are compared.
2 * query @ -> query @
    The factor 2 of the dot product is missing: ‖q − k‖² = ‖q‖² − 2 q·k + ‖k‖².
query_norm - 2 -> query_norm + 2
    This is ‖q + k‖². The sign of the dot product is minus: ‖q − k‖² = ‖q‖² − 2 q·k + ‖k‖².
(2 * h**2) -> (2 * h)
    You divide by 2h. The formula has 2h².
(2 * h**2) -> h**2
    You divide by h². The formula has 2h².
(2 * h**2) -> (2 * h) ** 2
    You divide the squared distance by 4h². The formula has 2h²: the 2 is not squared.
(2 * h**2) -> h
    You divide by h. The formula has 2h².
-squares -> -squares.clamp(min=0).sqrt()
    This uses the distance. The formula has the squared distance: no square root.
-squares / (2 * h**2) -> -squares.clamp(min=0).sqrt() / h
    This is the distance over h. The formula has the squared distance over 2h².
.square().sum(dim=-1) => .norm(dim=-1)
    You use the norms ‖q‖ and ‖k‖. The formula has their squares.
.square().sum(dim=-1) => .sum(dim=-1)
    You sum the components. The formula has the squared norms: square the components before you sum.
.square().sum(dim=-1) => .sum(dim=-1).square()
    You sum the components and then square. Square first, then sum.
.square().sum(dim=-1) => .square().mean(dim=-1)
    You average the squares of the components. The squared norm is their sum.
return scores -> return scores.exp()
    You applied exp already: that is the Gaussian kernel. Return its exponent, the score.
return scores -> return scores / query.shape[-1] ** 0.5
    There is no √d in this score.
return scores -> return torch.softmax(scores, dim=-1)
    You applied the softmax already. Return the scores.
(2 * h**2) -> 2 * h**2
    … / 2 * h**2 divides by 2 and multiplies by h². Put the denominator in parentheses: … / (2 * h**2).
[..., :, None] -> [:, None]
+ [..., None, :] -> [None, :]
    Right for one sequence. With batch axes in front, [:, None] and [None, :] insert the new axis in the wrong place:
    use [..., :, None] and [..., None, :].
key.mT -> key.T
key.mT -> key.t()
key.mT -> key.transpose(0, 1)
    Right for one sequence. With batch axes in front, only the last two axes of the keys must be exchanged: key.mT, or
    key.transpose(-2, -1). On a 3-D tensor, .T reverses all three.
[..., :, None] -> [..., None, :]
+ key.square().sum(dim=-1)[..., None, :] -> key.square().sum(dim=-1)[..., :, None]
    The two norms are on each other's axes. ‖q‖² belongs to the rows, [..., :, None], ‖k‖² to the columns, [..., None,
    :].
[..., None, :] -> [..., :, None]
    Both norms are columns, so the two axes do not match. ‖q‖² belongs to the rows, [..., :, None], ‖k‖² to the
    columns, [..., None, :].
[..., :, None] -> [..., None, :]
    Both norms lie along the keys. ‖q‖² belongs to the rows, [..., :, None], ‖k‖² to the columns, [..., None, :].
key.square() -> query.square()
    Both norms are those of the queries. The last term is ‖k‖².
-squares / (2 * h**2) -> query @ key.mT
-squares / (2 * h**2) -> query @ key.mT / h
-squares / (2 * h**2) -> query @ key.mT / h**2
    This is the dot product over a constant. The two squared norms are missing: ‖q − k‖² = ‖q‖² − 2 q·k + ‖k‖².
return scores -> return scores / query.shape[-1]
    You average over the components. The squared distance is their sum.
(2 * h**2) -> 2
    h is not used. The formula divides by 2h².
-squares / (2 * h**2) -> squares
    These are squared distances. The score is minus the squared distance over 2h².
-squares / (2 * h**2) -> -squares
    This is minus the squared distance. The score divides it by 2h².
{SQUARES} -> query_norm / 2 - 2 * query @ key.mT + key_norm / 2
    The norms are halved, and the dot product is not. ‖q − k‖² = ‖q‖² − 2 q·k + ‖k‖², all of it over 2h².
{SQUARES} -> 2 * query @ key.mT
    The squared norms are missing, and the sign is wrong: a large dot product means a small distance.
mT + key_norm -> mT - key_norm
    The sign of ‖k‖² is wrong: ‖q − k‖² = ‖q‖² − 2 q·k + ‖k‖².
= query_norm - 2 -> = -query_norm - 2
    The sign of ‖q‖² is wrong: ‖q − k‖² = ‖q‖² − 2 q·k + ‖k‖².
scores = -squares / (2 * h**2) -> scores = query @ key.mT / h**2 - (query_norm + key_norm) / 2
    You divide the products by h², and not the norms. All three terms are divided by it.
"""

CASES = (
    dict(query=QUERY, key=QUERY + 1, h=0.5),  # as many queries as keys: no broadcast fails
    dict(
        query=random_tensor(2, 4, 6, seed=0).as_subclass(_Watched),
        key=random_tensor(2, 5, 6, seed=1),
        h=0.8,
    ),
)
HINTS = """
Expand the square: ‖q − k‖² = ‖q‖² − 2 q·k + ‖k‖².
query.square().sum(dim=-1) holds ‖q‖² of every query, (…, query). Which axis has to be added so that it broadcasts to
    (…, query, key)?
squares = q2[..., :, None] - 2 * query @ key.mT + k2[..., None, :], with q2 and k2 the squared norms.
"""
