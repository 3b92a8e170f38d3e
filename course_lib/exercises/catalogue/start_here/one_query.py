"""Exercise `one_query` of notebook 00."""

import math

import torch
import torch.nn.functional as F

from course_lib.attention import scaled_dot_product_attention
from course_lib.exercises.exercise import Case, Exercise, Mistake


def attention(query, keys, values):
    scores = keys @ query  # (n,)
    weights = torch.softmax(scores, dim=0)  # (n,)
    return weights @ values  # (d_v,)


def _from_weights(weights):
    """The exercise with other weights, which are a function of the scores."""
    return lambda query, keys, values: weights(keys @ query) @ values


def _from_scores(scores):
    """The exercise with other scores, which are a function of the query and the keys."""
    return lambda query, keys, values: torch.softmax(scores(query, keys), dim=0) @ values


_KEYS = torch.tensor([[2.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
_VALUES = torch.tensor([[10.0, 0.0], [0.0, 10.0], [5.0, 5.0]])

EXERCISE = Exercise(
    name="one_query",
    notebook="00_start_here",
    title="Attention of one query",
    reference=lambda query, keys, values: scaled_dot_product_attention(
        query[None], keys, values, scale=1.0
    ).output[0],
    solution=attention,
    cases=(
        Case(query=torch.tensor([1.0, 0.0]), keys=_KEYS, values=_VALUES),
        Case(query=torch.tensor([1.0, 2.0]), keys=_KEYS, values=_VALUES.roll(1, dims=0)),
        Case(
            query=torch.tensor([1.0, -1.0, 0.5]),
            keys=torch.tensor([[1.0, 0, 0], [0, 1, 1], [2, 0, 1], [0, -1, 2]]),
            values=torch.tensor([[1.0, 0.0], [0.0, 2.0], [4.0, 4.0], [-1.0, 3.0]]),
        ),
    ),
    mistakes=(
        Mistake(
            "no_softmax",
            _from_weights(lambda scores: scores),
            "You use the scores as weights. Apply a softmax first, so that the weights are positive and sum to 1.",
        ),
        Mistake(
            "divided_scores",
            _from_weights(lambda scores: scores / scores.sum()),
            "You divide the scores by their sum, so a negative score becomes a negative weight. The softmax takes the "
            "exponentials first.",
        ),
        Mistake(
            "exponentials_alone",
            _from_weights(torch.exp),
            "Your weights are the exponentials of the scores and do not sum to 1. Divide them by their sum.",
        ),
        Mistake(
            "divided_by_maximum",
            _from_weights(lambda scores: torch.exp(scores) / torch.exp(scores).max()),
            "You divide the exponentials by their maximum. Divide them by their sum, so that the weights sum to 1.",
        ),
        Mistake(
            "argmax",
            _from_weights(lambda scores: F.one_hot(scores.argmax(), len(scores)).to(scores.dtype)),
            "You return the value whose key has the largest score. A softmax gives every key a positive weight.",
        ),
        Mistake(
            "softmax_twice",
            _from_weights(lambda scores: torch.softmax(torch.softmax(scores, dim=0), dim=0)),
            "You apply the softmax twice, which makes the weights more equal. Once is enough.",
        ),
        Mistake(
            "scaled",
            _from_scores(lambda query, keys: keys @ query / math.sqrt(len(query))),
            "You divide the scores by √d. That is scaled dot-product attention, the subject of notebook 2; this "
            "exercise asks for the dot products themselves.",
        ),
        Mistake(
            "cosine",
            _from_scores(lambda query, keys: F.cosine_similarity(keys, query, dim=-1)),
            "You divide by the norms, so your scores are cosine similarities. The scores here are dot products.",
        ),
        Mistake(
            "distance",
            _from_scores(lambda query, keys: -(keys - query).square().sum(dim=-1)),
            "Your scores are negative squared distances. That is a Gaussian kernel, the subject of notebook 1; this "
            "exercise asks for dot products.",
        ),
        Mistake(
            "keys_for_values",
            lambda query, keys, values: torch.softmax(keys @ query, dim=0) @ keys,
            "You average the keys. The keys determine the weights; the output is the weighted sum of the values.",
        ),
        Mistake(
            "values_for_keys",
            lambda query, keys, values: torch.softmax(values @ query, dim=0) @ values,
            "You compare the query with the values. The scores are dot products of the query with the keys.",
        ),
        Mistake(
            "plain_mean",
            lambda query, keys, values: values.mean(dim=0),
            "You take the plain mean of the values, whatever the query is. Weight each value by the softmax of the "
            "scores.",
        ),
        Mistake(
            "weights_returned",
            lambda query, keys, values: torch.softmax(keys @ query, dim=0),
            "You return the weights. The output is the sum of the values, each multiplied by its weight.",
        ),
        Mistake(
            "one_row",
            lambda query, keys, values: torch.softmax(keys @ query, dim=0)[None] @ values,
            "The numbers are right, but the shape is (1, d_v), a matrix of one row. Return a vector of shape (d_v,).",
        ),
        Mistake(
            "keys_and_values_exchanged",
            lambda query, keys, values: torch.softmax(values @ query, dim=0) @ keys,
            "Keys and values are exchanged. The query is compared with the keys, and the output is the weighted sum of the "
            "values.",
        ),
        Mistake(
            "wrong_sign",
            _from_scores(lambda query, keys: -(keys @ query)),
            "The sign of the scores is reversed: the key with the smallest dot product gets the largest weight.",
        ),
        Mistake(
            "softmax_of_single_scores",
            lambda query, keys, values: values.sum(dim=0),
            "Every weight is 1, so the output is the plain sum of the values. A softmax over an axis of length 1 gives 1; "
            "it must run over the keys.",
        ),
        Mistake(
            "log_softmax",
            _from_weights(lambda scores: torch.log_softmax(scores, dim=0)),
            "Your weights are logarithms of the softmax. Use softmax itself, so that they are positive and sum to 1.",
        ),
        Mistake(
            "sigmoid",
            _from_weights(torch.sigmoid),
            "A sigmoid treats each score on its own, so the weights do not sum to 1. Use a softmax over the keys.",
        ),
        Mistake(
            "divided_by_mean",
            _from_weights(lambda scores: torch.exp(scores) / torch.exp(scores).mean()),
            "Your weights sum to the number of keys. Divide the exponentials by their sum.",
        ),
        Mistake(
            "mean_of_products",
            _from_weights(lambda scores: torch.softmax(scores, dim=0) / len(scores)),
            "You divide by the number of keys as well. The weights sum to 1 already: add the weighted values instead of "
            "averaging them.",
        ),
        Mistake(
            "not_added",
            lambda query, keys, values: torch.softmax(keys @ query, dim=0)[:, None] * values,
            "You multiply each value by its weight, but do not add the products. Sum over the keys, dim=0.",
        ),
        Mistake(
            "along_the_rows",
            lambda query, keys, values: (torch.softmax(keys @ query, dim=0)[:, None] * values).sum(
                dim=1
            ),
            "You sum over the components of each value, dim=1. Sum over the keys, dim=0.",
        ),
        Mistake(
            "scores_returned",
            lambda query, keys, values: keys @ query,
            "You return the scores. Apply a softmax to them, and return the weighted sum of the values.",
        ),
        Mistake(
            "mean_of_components",
            _from_scores(lambda query, keys: (keys * query).mean(dim=1)),
            "You average over the components. The dot product is their sum.",
        ),
        Mistake(
            "exponential_of_sum",
            _from_weights(lambda scores: torch.exp(scores) / torch.exp(scores.sum())),
            "You divide by the exponential of the sum. Divide by the sum of the exponentials.",
        ),
    ),
    hints=(
        "There are three steps: scores, weights, weighted sum. All three are in the section “Build it”.",
        "The scores of all keys are one matrix product, keys @ query. torch.softmax(scores, dim=0) gives the weights.",
        "return torch.softmax(keys @ query, dim=0) @ values",
    ),
)
