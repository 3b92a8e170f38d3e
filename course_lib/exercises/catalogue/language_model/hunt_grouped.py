"""Bug hunt: grouped-query attention."""

import math
from itertools import product

import torch

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.transformer.attention import scaled_dot_product_attention
from course_lib.transformer.masks import causal_mask


def grouped_attention(q, k, v):
    group = len(q) // len(k)  # query heads per KV head
    k = k.repeat_interleave(group, dim=0)  # 0 0 0 1 1 1: neighbours share a KV head
    v = v.repeat_interleave(group, dim=0)  # (heads, length, d_head)
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    causal = torch.ones_like(scores, dtype=torch.bool).tril()
    weights = scores.masked_fill(~causal, -torch.inf).softmax(dim=-1)
    return weights @ v  # (heads, length, d_head)


def reference(q, k, v):
    mask = causal_mask(q.shape[-2], k.shape[-2])
    options = {"need_weights": False, "enable_gqa": True}
    return scaled_dot_product_attention(q[None], k[None], v[None], mask, **options).output[0]


KEYS, VALUES = (f"{x}.repeat_interleave(group, dim=0) -> {x}.repeat(group, 1, 1)" for x in "kv")
BOTH = "so the weights of one head average the values of another. Both need repeat_interleave"
HEADS = {
    f"{KEYS}\n+ {VALUES}": "with nine query heads and three KV heads, query head 1 must use KV head 0, like heads 0 "
    "and 2",
    VALUES: f"neighbouring query heads share their keys, but not their values, {BOTH}",
    KEYS: f"neighbouring query heads share their values, but not their keys, {BOTH}",
}
ROOT = "/ math.sqrt(q.shape[-1])"
SUM = "A score is a sum over the components of one head: √d_head"
SCALES = {
    "q.shape[-1] -> q.shape[1]": "look at what the scores are divided by: the axes of q are (heads, length, d_head)",
    f"{ROOT} ->": "the scores are not divided by anything. The scale is √d_head",
    f"{ROOT} -> / q.shape[-1]": "you divide by d_head. The scale is its square root",
    f"{ROOT} -> / q.shape[1]": "you divide by the length of the text. The scale is √d_head",
    "q.shape[-1] -> len(q) * q.shape[-1]": f"you divide by √d_model. {SUM}",
    "q.shape[-1] -> len(q)": f"you divide by the root of the number of heads. {SUM}",
    "q.shape[-1] -> group": f"you divide by the root of the number of heads in a group. {SUM}",
    f"{ROOT} -> * math.sqrt(q.shape[-1])": "you multiply by √d_head. Divide, so that the variance of a score does not "
    "grow with d_head",
}
AS_GIVEN = next(iter(HEADS)), next(iter(SCALES))
SYMPTOMS = HEADS | SCALES
BUGS = "".join(f"{edits}\n    {SYMPTOMS[edits]}\n" for edits in AS_GIVEN)
MISTAKES = "".join(
    f"{edits}\n    1 of 2 bugs repaired. Still wrong: {symptom}.\n"
    for edits, symptom in SYMPTOMS.items()
    if edits not in AS_GIVEN
)
MISTAKES += "".join(
    f"{heads}\n+ {scale}\n    0 of 2 bugs repaired. Still wrong: {HEADS[heads]}; {SCALES[scale]}.\n"
    for heads, scale in product(HEADS, SCALES)
    if (heads, scale) != AS_GIVEN
)
WEIGHTS = "scores.masked_fill(~causal, -torch.inf).softmax(dim=-1)"
MISTAKES += f"""
.masked_fill(~causal, -torch.inf) ->
    The causal mask was right, and it is gone: a token attends to those after it.
.tril() -> .triu()
    The causal mask was right, and it is inverted now: a token attends to those after it, not to those before.
.tril() -> .tril(-1)
|| ~causal, -torch.inf -> ~causal, -1e9
    The causal mask was right. Yours hides a token from itself, so the first one may attend to nothing.
.tril() -> .tril(1)
    The causal mask was right. With yours a token attends to the one after it.
~causal -> causal
~causal, -torch.inf -> causal, -1e9
    The causal mask was right. Yours hides a token from itself and from those before it.
~causal, -torch.inf -> ~causal, 0.0
    Masked scores were -inf, and that was right. A score of 0 masks nothing: exp(0) is 1.
{WEIGHTS} -> scores.softmax(dim=-1) * causal
    The mask is applied after the softmax now, so the weights of a query no longer sum to 1. Mask the scores.
softmax(dim=-1) -> softmax(dim=-2)
    The softmax was right, and it runs over the queries now. The weights of one query sum to 1: dim=-1.
softmax(dim=-1) -> softmax(dim=0)
    The softmax was right, and it runs over the heads now. The weights of one query sum to 1: dim=-1.
k.repeat_interleave(group, dim=0) -> k[:1]
+ v.repeat_interleave(group, dim=0) -> v[:1]
    All query heads use the first KV head now. Each group has its own.
k.repeat_interleave(group, dim=0) -> k.mean(0, keepdim=True)
+ v.repeat_interleave(group, dim=0) -> v.mean(0, keepdim=True)
    All query heads use the mean of the KV heads now. Each group has its own KV head.
k.repeat_interleave(group, dim=0) -> k.repeat_interleave(group).view(q.shape)
+ v.repeat_interleave(group, dim=0) -> v.repeat_interleave(group).view(q.shape)
k.repeat_interleave(group, dim=0) -> k.repeat_interleave(group)
    Without dim, repeat_interleave flattens the tensor and repeats its numbers one by one. Repeat the heads: dim=0.
k.repeat_interleave(group, dim=0) -> k
    k and v must both have as many heads as q: repeat_interleave(group, dim=0), of each of them.
k.repeat_interleave(group, dim=0) -> k.repeat_interleave(len(k), dim=0)
+ v.repeat_interleave(group, dim=0) -> v.repeat_interleave(len(v), dim=0)
    You repeat each KV head as often as there are KV heads. Repeat it for each query head of its group: group
    times.
return weights @ v -> return weights
    You return the weights. The output is weights @ v, as before.
return weights @ v -> return (weights @ v).transpose(0, 1).flatten(1)
    The heads are concatenated. Return them as (heads, length, d_head).
"""


def _case(heads, kv_heads, length, d_head, seed):
    return dict(
        q=random_tensor(heads, length, d_head, seed=seed),
        k=random_tensor(kv_heads, length, d_head, seed=seed + 1),
        v=random_tensor(kv_heads, length, d_head, seed=seed + 2),
    )


CASES = (
    dict(
        q=torch.tensor([[[1.0]], [[2.0]], [[1.0]], [[0.0]]]),
        k=torch.tensor([[[1.0]], [[2.0]]]),
        v=torch.tensor([[[1.0]], [[5.0]]]),
    ),
    _case(2, 2, 3, 4, seed=10),
    _case(4, 2, 3, 5, seed=20),
    _case(9, 3, 4, 6, seed=30),
)
HINTS = """
Call it with q of zeros: then every weight is equal, and the output shows which values each head sees.
torch.tensor([0, 1, 2]).repeat(3) and .repeat_interleave(3) put the KV heads in different orders. Which one makes
    neighbours share?
The second bug is an axis: q.shape[1] is the length of the text.
"""
