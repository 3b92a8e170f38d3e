"""Bug hunt: always zero."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.transformer.masks import masked_softmax


def effect_of(scores, mask):
    masked_scores = scores.masked_fill(~mask, -torch.inf)  # no underscore: a new tensor
    masked = torch.softmax(masked_scores, dim=-1)  # (query, key)
    unmasked = torch.softmax(scores, dim=-1)  # (query, key)
    return masked - unmasked


def reference(a, m):
    return masked_softmax(a, m) - torch.softmax(a, dim=-1)


MISTAKES = r"""
masked - unmasked -> unmasked - masked
    Your difference has the wrong sign: masked weights minus unmasked ones, so a masked key is negative.
~mask -> mask
    Your mask is inverted. True means 'may attend', so fill where ~mask is True.
-torch.inf -> 0.0
    A score of 0 masks nothing: exp(0) is 1. Masked scores must be -inf.
-torch.inf -> -1.0
-torch.inf -> -2.0
-torch.inf -> -5.0
    With a finite score such as -1 a masked key keeps some weight. Masked scores must be -inf.
-torch.inf -> torch.inf
    You fill with +inf, which gives NaN. Masked scores must be -inf.
softmax(masked_scores, dim=-1) -> softmax(scores, dim=-1) * mask
    You mask after the softmax, so the remaining weights do not sum to 1. Mask before it.
masked - unmasked -> masked
    You return the masked weights. Subtract the unmasked ones.
masked - unmasked -> unmasked
    You return the unmasked weights. Return the masked weights minus these.
masked - unmasked -> masked - scores
    You subtract the scores. Subtract their softmax, the weights without a mask.
masked - unmasked -> masked_scores - unmasked
    You subtract the weights from the masked scores. Take the softmax of these too.
dim=-1 => dim=0
|| -torch.inf -> -1e9 ; masked - unmasked -> masked.nan_to_num() - unmasked
    Your softmax runs over the queries. The weights of one query sum to 1 over the keys: dim=-1.
masked_scores, dim=-1 -> masked_scores, dim=0
|| -torch.inf -> -1e9
(scores, dim=-1) -> (scores, dim=0)
    One of your two softmaxes runs over the queries. The weights of one query sum to 1 over the keys: dim=-1.
masked - unmasked -> (masked - unmasked).abs()
    You return absolute values. The difference has a sign: a masked key loses weight.
masked - unmasked -> (masked - unmasked) ** 2
    You square the difference. Return the difference itself.
masked - unmasked -> masked_scores - scores
    You subtract scores, or you set weights to -inf after the softmax. Set masked scores to -inf, take the softmax of
    both, and subtract the weights.
masked - unmasked -> torch.softmax(masked_scores - scores, dim=-1)
    You take the softmax of the difference. Take the softmax of each, then the difference.
masked - unmasked -> torch.softmax(masked - unmasked, dim=-1)
    You take the softmax of the difference of the weights. Return the difference itself.
masked - unmasked -> (masked - unmasked) / unmasked
    You divide by the unmasked weights. Return the difference itself.
masked - unmasked -> masked / unmasked
    You divide the masked weights by the unmasked ones. Return their difference.
torch.softmax => torch.log_softmax
    You subtract logarithms of the weights. Use softmax instead of log_softmax.
masked - unmasked -> masked + unmasked
    You add the two. Return the masked weights minus the unmasked ones.
"""

GIVEN = "masked_fill -> masked_fill_"
CASES = (
    dict(
        scores=torch.tensor([[1.0, 2.0, 0.0], [0.0, 1.0, -1.0]]),
        mask=torch.tensor([[True, False, True], [True, True, False]]),
    ),
    dict(
        scores=random_tensor(4, 5, seed=31),
        mask=torch.tensor([True, True, False, True, False]).expand(4, 5).clone(),
    ),
)
HINTS = """
Print scores before and after the call. Did the function change its argument?
In PyTorch, a method whose name ends in an underscore works in place: it changes the tensor itself.
masked_fill, without the underscore, returns a new tensor and leaves scores unchanged.
"""
