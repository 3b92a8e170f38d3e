"""Bug hunt: a text in pieces."""

import math

import torch

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.transformer.attention import scaled_dot_product_attention
from course_lib.transformer.masks import causal_mask
from course_lib.transformer.positions import rotary


def attend_in_pieces(q, k, v, sizes):
    keys, values, outputs = k[:0], v[:0], []  # the cache is empty
    for new in torch.arange(len(q)).split(sizes):  # positions of one piece
        keys = torch.cat([keys, rotary(k[new], new)])  # each key is rotated once
        values = torch.cat([values, v[new]])
        scores = rotary(q[new], new) @ keys.mT / math.sqrt(q.shape[-1])
        allowed = torch.arange(len(keys)) <= new[:, None]  # (new, key)
        weights = scores.masked_fill(~allowed, -torch.inf).softmax(dim=-1)
        outputs.append(weights @ values)
    return torch.cat(outputs)


def reference(q, k, v, sizes):
    positions = torch.arange(len(q))
    q, k = rotary(q, positions), rotary(k, positions)
    mask = causal_mask(len(q), len(k))
    return scaled_dot_product_attention(q[None], k[None], v[None], mask).output[0]


def _case(sizes, d, d_value, seed):
    n = sum(sizes)
    return dict(
        q=2 * random_tensor(n, d, seed=seed),
        k=2 * random_tensor(n, d, seed=seed + 1),
        v=random_tensor(n, d_value, seed=seed + 2),
        sizes=sizes,
    )


KEYS, QUERIES = "torch.cat([keys, rotary(k[new], new)])", "rotary(q[new], new)"
BUGS = f"""
{KEYS} -> rotary(torch.cat([keys, k[new]]), torch.arange(len(keys) + len(new)))
    cached keys are rotated again with every piece. Each key is rotated once
{QUERIES} -> rotary(q[new], torch.arange(len(new)))
    the queries' positions begin at 0 again in every piece, while the keys before them keep theirs
"""
ALLOWED = "torch.arange(len(keys)) <= new[:, None]"
MISTAKES = f"""
rotary(k[new], new) -> rotary(k[new], torch.arange(len(new)))
    The new keys get positions from 0 in every piece.
rotary(k[new], new) -> rotary(k[new], new[-1:].expand(len(new)))
    All new keys get the position of the last of them.
rotary(k[new], new) -> rotary(k[new], new[:1].expand(len(new)))
    All new keys get the position of the first of them.
rotary(k[new], new) -> rotary(k[new], new + len(new))
    The new keys' positions begin at the length of the cache after this piece instead of before it.
rotary(k[new], new) -> k[new]
    The keys are not rotated.
{QUERIES} -> rotary(q[new], new[-1:].expand(len(new)))
    All queries of a piece get the position of the last of them.
{QUERIES} -> rotary(q[new], new[:1].expand(len(new)))
    All queries of a piece get the position of the first of them.
{QUERIES} -> rotary(q[new], new + len(new))
    The queries' positions begin at the length of the cache after this piece instead of before it.
{QUERIES} -> rotary(q[new], new + 1)
rotary(k[new], new) -> rotary(k[new], new - 1)
    The queries' positions are one larger than those of their own keys. A query and its own key have the same
    position.
{QUERIES} -> rotary(q[new], new - 1)
rotary(k[new], new) -> rotary(k[new], new + 1)
    The queries' positions are one smaller than those of their own keys. A query and its own key have the same
    position.
{QUERIES} -> q[new]
    The queries are not rotated.
{ALLOWED} -> torch.arange(len(keys)) <= torch.arange(len(new))[:, None]
    The mask begins at the first cached key again, so that a query cannot attend to its own.
scores.masked_fill(~allowed, -torch.inf) -> scores
    A query attends to the tokens after it in its piece.
{ALLOWED} -> torch.arange(len(keys)) < new[:, None]
|| dim=-1) -> dim=-1).nan_to_num(0.0) ; -torch.inf -> -1e9
    A query does not attend to its own key.
{ALLOWED} -> torch.arange(len(keys)) <= new[:, None] + 1
    A query also attends to the token after it in its piece.
{ALLOWED} -> torch.arange(len(keys)) >= new[:, None]
    A query attends to its own key and later ones of its piece instead of the earlier ones.
~allowed -> allowed
~allowed, -torch.inf -> allowed, -1e9
    masked_fill fills where its argument is True: yours hides from a query its own token and
    those before it.
/ math.sqrt(q.shape[-1]) ->
    The division by √d_head was right, and it is gone.
math.sqrt(q.shape[-1]) -> math.sqrt(len(keys))
math.sqrt(q.shape[-1]) -> q.shape[-1]
    The division by √d_head was right, and yours divides by something else.
dim=-1 -> dim=0
    The softmax was right, and it runs over the queries now: dim=-1.
torch.cat(outputs) -> outputs[-1]
    Only the outputs of the last piece are there. Return those of all pieces, one after another.
v[new] -> rotary(v[new], new)
    The values are rotated as well. RoPE rotates queries and keys; values are averaged as they are.
{KEYS} -> rotary(k[new], new)
+ torch.cat([values, v[new]]) -> v[new]
+ torch.arange(len(keys)) -> new
    Each piece attends to itself alone: the cached keys and values are not used.
rotary(k[new], new) -> rotary(k[new], new + (new[0] > 0))
+ rotary(q[new], new) -> rotary(q[new], new + (new[0] > 0))
    From the second piece on your positions are one too large. With n tokens in the cache the next position is n.
"""

CASES = (
    dict(
        q=torch.tensor([[1.0, 0.0], [0.0, 2.0]]),
        k=torch.tensor([[1.0, 1.0], [2.0, 0.0]]),
        v=torch.tensor([[1.0, 0.0], [0.0, 1.0]]),
        sizes=[1, 1],
    ),
    _case([3, 1, 1], d=4, d_value=2, seed=1),  # a prompt, then two tokens
    _case([2, 3, 1], d=4, d_value=2, seed=5),
    _case([7], d=6, d_value=4, seed=9),
    _case([1, 4, 2, 1], d=6, d_value=8, seed=13),
)
HINTS = """
Compare sizes=[6] with sizes=[3, 3] and with [1, 1, 1, 1, 1, 1]. The result must be the same.
At which position is the first query of a piece? And how often has the key of the first token been rotated when the
    third piece comes?
`new` holds the positions: rotary(q[new], new), and rotary(k[new], new) before these keys join the cache.
"""
DIFFERENTIABLE = False  # a cache may be written in place
