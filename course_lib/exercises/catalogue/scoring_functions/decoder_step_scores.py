"""One step of a decoder: additive scores with keys that are projected already."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor


def decoder_step_scores(query, projected_keys, W, v_a):
    projected_query = query @ W.T  # (batch, hidden)
    hidden = torch.tanh(projected_query[:, None, :] + projected_keys)  # (batch, key, hidden)
    return hidden @ v_a  # (batch, key)


HIDDEN = "torch.tanh(projected_query[:, None, :] + projected_keys)"
MISTAKES = f"""
torch.tanh( -> (
    The tanh is missing. Without it, the score is a term of the query plus a term of the key, and query and key do not
    interact.
{HIDDEN} -> torch.tanh(projected_query)[:, None, :] + torch.tanh(projected_keys)
    You apply tanh to each projection and then add. Add first: inside one tanh, query and key interact.
torch.tanh( -> (
+ hidden @ v_a -> torch.tanh(hidden @ v_a)
    The tanh comes last here. Apply it to the hidden units, before the product with v_a.
:] + projected_keys -> :] * projected_keys
    You multiply the two projections. This score adds them, hence its name.
torch.tanh( -> torch.sigmoid(
    This is a sigmoid. The score of Bahdanau et al. has a tanh.
torch.tanh( -> torch.relu(
    This is a ReLU. The score of Bahdanau et al. has a tanh.
hidden @ v_a -> hidden.sum(dim=-1)
    You sum over the hidden units without weighting them by v_a: … @ v_a.
hidden @ v_a -> hidden.mean(dim=-1)
    You average the hidden units. The score is their sum, weighted by v_a: … @ v_a.
query[:, None, :] -> query[None, :, :]
    The batch axis of your projected query lines up with the keys. Add the new axis in the middle: [:, None, :].
query[:, None, :] -> query[:, :, None]
    Your new axis is the last one, so the hidden units of the query line up with the keys. Add it in the middle: [:,
    None, :].
hidden @ v_a -> torch.softmax(hidden @ v_a, dim=-1)
hidden @ v_a -> torch.softmax(hidden @ v_a, dim=0)
hidden @ v_a -> torch.log_softmax(hidden @ v_a, dim=-1)
    You applied the softmax already. Return the scores.
torch.tanh( -> (
+ hidden @ v_a -> torch.softmax(hidden @ v_a, dim=-1)
    There are two mistakes. There is no tanh of the sum of the two projections. And you applied the softmax already:
    return the scores.
hidden @ v_a -> (hidden @ v_a).exp()
    You applied exp already. Return the scores: the softmax computes exp itself.
query[:, None, :] -> query[0]
    Every sequence gets the query of the first one. Each sequence of the batch has its own: [:, None, :].
query[:, None, :] -> query[-1]
    Every sequence gets the query of the last one. Each sequence of the batch has its own: [:, None, :].
hidden @ v_a -> hidden @ v_a / len(v_a) ** 0.5
hidden @ v_a -> hidden @ v_a / query.shape[-1] ** 0.5
    You divide by a root. The additive score has no scale: its tanh bounds each term.
hidden @ v_a -> hidden @ v_a / len(v_a)
    You average over the hidden units. The score is their sum, weighted by v_a: … @ v_a.
{HIDDEN} -> projected_query[:, None, :] * projected_keys
+ hidden @ v_a -> hidden.sum(dim=-1)
    This is a dot product of the two projections. The additive score is v_a · tanh(W q + U k).
hidden @ v_a -> hidden @ v_a[:, None]
    The shape is (batch, key, 1). Multiply by v_a, not by v_a[:, None], or squeeze the last axis.
hidden @ v_a -> (hidden @ v_a).T
    Your result is (key, batch). Return (batch, key).
query @ W.T -> query @ W
    W is (hidden, query_size), so the projection of a batch of rows is query @ W.T. With a square W there is no error
    message.
query @ W.T -> query
    The query is not projected: W is not used.
:] + projected_keys -> :] + projected_keys @ W.T
    You project the keys with W. They are projected already; W belongs to the query.
:] + projected_keys -> :] - projected_keys
    You subtract the projected key. The additive score adds the two projections inside the tanh.
{HIDDEN} -> torch.tanh(projected_query)[:, None, :] + projected_keys
{HIDDEN} -> projected_query[:, None, :] + torch.tanh(projected_keys)
{HIDDEN} -> torch.tanh(torch.tanh(projected_query)[:, None, :] + torch.tanh(projected_keys))
{HIDDEN} -> torch.tanh(torch.tanh(projected_query)[:, None, :] + projected_keys)
{HIDDEN} -> torch.tanh(projected_query[:, None, :] + torch.tanh(projected_keys))
    There is a tanh too many or on the wrong term. Add the two projections as they are, and apply one tanh to the sum.
hidden @ v_a -> torch.tanh(hidden @ v_a)
    You apply a second tanh, to the score. One is enough: the one of the hidden units.
hidden @ v_a -> hidden
    These are the hidden units, (batch, key, hidden). Their product with v_a gives one score per key.
hidden @ v_a -> hidden * v_a
    You multiply by v_a, but do not add the hidden units. Sum over them: … @ v_a.
query[:, None, :] -> query.mean(dim=0)
    Every sequence gets the mean of the queries. Each sequence of the batch has its own: [:, None, :].
{HIDDEN} -> torch.tanh((projected_query[:, None, :] + projected_keys) * v_a)
+ hidden @ v_a -> hidden.sum(dim=-1)
    You multiply by v_a inside the tanh. Apply the tanh to the hidden units first, then multiply by v_a.
projected_query[:, None, :] + projected_keys -> projected_keys
    The query is not used, so the scores depend on the keys alone. Add its projection inside the tanh.
projected_query[:, None, :] + projected_keys -> projected_query[:, None, :].expand_as(projected_keys)
    The keys are not used, so all keys have the same score. Add them inside the tanh.
"""

CASES = (
    dict(  # as many keys as sequences: a wrong axis for the query raises no error
        query=torch.tensor([[1.0, 0.0], [0.0, 2.0]]),
        projected_keys=torch.tensor([[[1.0, 0.0], [0.0, -1.0]], [[2.0, 1.0], [0.0, 1.0]]]),
        W=torch.tensor([[1.0, 0.0], [1.0, -1.0]]),
        v_a=torch.tensor([2.0, -1.0]),
    ),
    dict(
        query=random_tensor(3, 4, seed=5),
        projected_keys=random_tensor(3, 3, 5, seed=6),
        W=random_tensor(5, 4, seed=7),
        v_a=random_tensor(5, seed=9),
    ),
)
HINTS = """
Project the query: query @ W.T is (batch, hidden). The keys are (batch, key, hidden).
Which axis is missing in the projected query? Indexing with None adds one.
torch.tanh(… + projected_keys) @ v_a turns the hidden units into one score.
"""
