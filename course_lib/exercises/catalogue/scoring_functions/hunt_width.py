"""Bug hunt: zeros that should change nothing."""

import math

import torch

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.catalogue.scoring_functions._shared import KEY, QUERY
from course_lib.transformer.attention import attend
from course_lib.transformer.scoring import ScaledDotScore


def look_up(query, key, value):
    scores = query @ key.mT / math.sqrt(key.shape[-1])  # (…, query, key)
    weights = torch.softmax(scores, dim=-1)  # (…, query, key)
    return weights @ value  # (…, query, value_size)


def reference(q, k, v):
    return attend(ScaledDotScore()(q, k), v).output


ROOT = "math.sqrt(key.shape[-1])"
MISTAKES = f"""
/ {ROOT} ->
    The dimension of the values is gone, and the scale with it. The variance of the scores grows with the dimension of
    the keys.
key.shape[-1] -> key.shape[-2]
    Now you scale by the number of keys. A score is a sum over the components of one key.
{ROOT} -> key.shape[-1]
    The right dimension, but without its square root: where the components are independent with mean 0 and variance 1,
    the variance of the scores is 1/d now.
{ROOT} -> math.sqrt(math.sqrt(key.shape[-1]))
    You take the fourth root of d. Divide by √d, so that the variance of the scores is 1.
/ {ROOT} ->
+ weights @ value -> weights @ value / {ROOT}
    You scale after the softmax: the weights sum to 1/√d. Scale the scores.
key.shape[-1] -> query.shape[-2]
    Now you scale by the number of queries. A score is a sum over the components of one query and one key: use their
    dimension.
key.shape[-1] -> key.shape[0]
key.shape[-1] -> query.shape[0]
    shape[0] is the number of keys or queries, or the batch size where there are batch axes in front. A score is a sum
    over the components of one key: key.shape[-1].
/ {ROOT} -> * {ROOT}
    The right dimension, but you multiply by √d. Divide, so that the variance of the scores stays 1.
/ {ROOT} -> / key.shape[-1] ** 2
    The right dimension, but you divide by its square. Divide by its square root.
{ROOT} -> 2
{ROOT} -> 4
{ROOT} -> 8
{ROOT} -> 10
{ROOT} -> math.sqrt(2)
{ROOT} -> math.sqrt(6)
    You divide by a fixed number. The dimension of the keys differs from call to call: use math.sqrt(key.shape[-1]).
dim=-1 -> dim=-2
    Your softmax runs over the queries. The weights of one query sum to 1 over the keys: dim=-1.
dim=-1 -> dim=0
    Your softmax runs over the first axis: the queries, or the batch where there is one. The weights of one query sum
    to 1 over the keys: dim=-1.
key.shape[-1] -> (key.shape[-1] + value.shape[-1])
key.shape[-1] -> (key.shape[-1] * value.shape[-1])
{ROOT} -> value.shape[-1]
key.shape[-1] -> max(key.shape[-1], value.shape[-1])
key.shape[-1] -> min(key.shape[-1], value.shape[-1])
/ {ROOT} -> * math.sqrt(value.shape[-1])
    The dimension of the values is still in the scale. Only the dimension of queries and keys belongs there.
{ROOT} -> torch.linalg.vector_norm(key)
{ROOT} -> key.norm(dim=-1)[..., None, :]
{ROOT} -> query.norm(dim=-1, keepdim=True)
    You divide by a norm, which depends on the numbers in the vectors. The scale depends on their dimension alone: √d.
{ROOT} -> (query.norm(dim=-1, keepdim=True) * key.norm(dim=-1)[..., None, :])
    You divide by the norms, so the scores are cosine similarities. Divide the dot products by √d.
{ROOT} -> (query @ key.mT).std()
    You divide by the standard deviation of these scores, which depends on the numbers in the vectors. The scale
    depends on their dimension alone: √d.
key.shape[-1] -> value.shape[-1]
+ dim=-1 -> dim=-2
    There are two mistakes. Your softmax runs over the queries; it must run over the keys: dim=-1. The scale still
    depends on the values.
torch.softmax(scores, dim=-1) -> scores
    The softmax is gone: these are scores, not weights.
dim=-1 -> dim=1
    dim=1 is the axis of the keys only without a batch. Count from the end: dim=-1.
key.shape[-1] -> key.shape[1]
    key.shape[1] is the dimension only without a batch. Count from the end: key.shape[-1].
key.mT -> key.T
    With batch axes in front, .T reverses all axes. key.mT exchanges the last two only.
"""

GIVEN = "key.shape[-1] -> value.shape[-1]"
CASES = (
    dict(
        query=QUERY,
        key=KEY,
        value=torch.tensor([[3.0, 0.0, 0.0, 1.0], [0.0, 3.0, 0.0, 1.0], [0.0, 0.0, 3.0, 1.0]]),
    ),
    dict(
        query=random_tensor(3, 4, 6, seed=19),
        key=random_tensor(3, 7, 6, seed=20),
        value=random_tensor(3, 7, 5, seed=21),
    ),
)
HINTS = """
Print the weights for the narrow and for the wide values. Do they change? Should they?
The scale keeps the variance of q·k at 1. Which dimension does that variance depend on?
Divide by math.sqrt(key.shape[-1]).
"""
