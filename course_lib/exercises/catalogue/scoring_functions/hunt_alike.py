"""Bug hunt: three queries, one row of weights."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.catalogue.scoring_functions._shared import KEY, QUERY


def align(query, key, W, U, v_a):
    projected_query = (query @ W.T)[:, None, :]  # (query, 1, hidden)
    projected_key = (key @ U.T)[None, :, :]  # (1, key, hidden)
    hidden = torch.tanh(projected_query + projected_key)  # (query, key, hidden)
    scores = hidden @ v_a  # (query, key)
    return torch.softmax(scores, dim=-1)  # (query, key)


HIDDEN = "torch.tanh(projected_query + projected_key)"
TANHS = "torch.tanh(projected_query) + torch.tanh(projected_key)"
SOFTMAX = "torch.softmax(scores, dim=-1)"
MISTAKES = f"""
torch.tanh( -> (
+ hidden @ v_a -> torch.tanh(hidden @ v_a)
    A tanh of the finished score makes the rows differ, but every score is now between -1 and 1. Apply it to the
    hidden units, before the product with v_a.
torch.tanh( -> (
    Without a tanh of the sum, the score is still a term of the query plus a term of the key. Keep one tanh, and find
    what it has to be applied to.
projected_query + projected_key -> projected_query * projected_key
    You multiply the two projections inside the tanh. The rows differ now, but this score adds them, hence its name.
{HIDDEN} -> torch.tanh(projected_query) * torch.tanh(projected_key)
    You apply a tanh to each projection and multiply the two. The rows differ now, but this score adds the
    projections, hence its name, and applies one tanh to the sum.
{HIDDEN} -> projected_query * projected_key
    You multiply the two projections, without a tanh. The rows differ now, but this score adds the projections, hence
    its name, and applies a tanh to the sum.
{SOFTMAX} -> scores
    The softmax is gone: these are scores. Return the weights.
{SOFTMAX} -> torch.log_softmax(scores, dim=-1)
    These are the logarithms of weights. Return the weights: torch.softmax.
{SOFTMAX} -> scores.exp()
    The weights of one query do not sum to 1: exp alone does not normalise. Use a softmax.
torch.tanh( -> torch.sigmoid(
    With any nonlinearity query and key interact, so a sigmoid works too. Bahdanau et al. use a tanh.
torch.tanh( -> torch.relu(
    With any nonlinearity query and key interact, so a ReLU works too. Bahdanau et al. use a tanh.
{HIDDEN} -> torch.relu(projected_query) + torch.relu(projected_key)
{HIDDEN} -> torch.sigmoid(projected_query) + torch.sigmoid(projected_key)
    With another function of each projection, the score is still a term of the query plus a term of the key. Keep the
    tanh, and find what it has to be applied to.
{HIDDEN} -> {TANHS}
+ dim=-1 -> dim=0
    The axis was right. With a softmax over the queries, the weights of one query no longer sum to 1. And the rows are
    still alike before it.
{HIDDEN} -> {TANHS}
+ {SOFTMAX} -> scores
    The softmax is gone: return the weights. And the score is still a term of the query plus a term of the key.
dim=-1 -> dim=0
    Your softmax runs over the queries. The weights of one query sum to 1 over the keys: dim=-1.
projected_query + projected_key -> projected_query - projected_key
projected_query + projected_key -> projected_key - projected_query
    You subtract one projection from the other. The additive score adds them inside the tanh.
{HIDDEN} -> torch.tanh({TANHS})
{HIDDEN} -> torch.tanh(torch.tanh(projected_query) + projected_key)
{HIDDEN} -> torch.tanh(projected_query + torch.tanh(projected_key))
    There is a tanh too many: you apply it to a projection and to the sum. Add the two projections as they are, and
    apply one tanh to the sum.
hidden @ v_a -> torch.tanh(hidden @ v_a)
{HIDDEN} -> torch.tanh(torch.tanh(projected_query + projected_key))
    There is a tanh too many. One tanh of the sum of the two projections is enough.
hidden @ v_a -> hidden @ v_a / len(v_a) ** 0.5
hidden @ v_a -> hidden @ v_a / query.shape[-1] ** 0.5
hidden @ v_a -> hidden @ v_a / key.shape[-1] ** 0.5
    You divide the scores by a root. The additive score has no scale: its tanh bounds each term.
{SOFTMAX} -> torch.softmax(scores.flatten(), dim=0).view(scores.shape)
    Your softmax runs over queries and keys together. The weights of one query sum to 1 over the keys: dim=-1.
hidden @ v_a -> hidden.sum(dim=-1)
    v_a is not used: the score is the sum of the hidden units, weighted by v_a: … @ v_a.
hidden @ v_a -> hidden.mean(dim=-1)
hidden @ v_a -> hidden @ v_a / len(v_a)
    You average over the hidden units. The score is their sum, weighted by v_a: … @ v_a.
{SOFTMAX} -> torch.sigmoid(scores)
    A sigmoid of each score does not sum to 1 over the keys. Use a softmax.
(query @ W.T)[:, None, :] -> (query @ W.T)[None, :, :]
+ (key @ U.T)[None, :, :] -> (key @ U.T)[:, None, :]
    Your result is (key, query), and its softmax runs over the queries. Each row belongs to a query.
torch.tanh( -> (
+ hidden @ v_a -> torch.tanh(hidden @ v_a)
+ {SOFTMAX} -> scores
    The tanh comes after the product with v_a: apply it to the hidden units. And the softmax is gone.
"""

GIVEN = f"{HIDDEN} -> {TANHS}"
CASES = (
    dict(
        query=QUERY,
        key=KEY,
        W=torch.tensor([[1.0, 0.0], [1.0, -1.0], [0.0, 1.0]]),
        U=torch.tensor([[0.0, 1.0], [1.0, 0.0], [-1.0, 0.0]]),
        v_a=torch.tensor([2.0, -1.0, 1.0]),
    ),
    dict(
        query=random_tensor(4, 3, seed=5),
        key=random_tensor(6, 5, seed=6),
        W=random_tensor(7, 3, seed=7),
        U=random_tensor(7, 5, seed=8),
        v_a=random_tensor(7, seed=9),
    ),
)
HINTS = """
Write the score of this code as a sum: v_a·tanh(W q) + v_a·tanh(U k). Which term changes along a row?
Adding one number to a whole row of scores does not change its softmax. So the term of the query cancels.
Compare the code with the formula of the additive score. What is the tanh applied to?
"""
