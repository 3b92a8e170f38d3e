"""Exercise `keep_top_p` of notebook 09."""

import math
from functools import partial

import torch

from course_lib.decoding import top_p
from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.catalogue.decoding_and_bleu._shared import (
    keep_crossing,
    keep_one_more,
    keep_up_to_p,
    keep_up_to_p_and_first,
    kept_tokens,
    softmax_of_kept,
)
from course_lib.exercises.exercise import Case, Exercise, Mistake


def keep_top_p(logits, p):
    ordered, order = torch.softmax(logits, dim=-1).sort(dim=-1, descending=True)
    before = ordered.cumsum(dim=-1) - ordered  # the probability of all that are more probable
    kept = torch.zeros_like(logits, dtype=torch.bool).scatter(-1, order, before < p)
    return torch.softmax(logits.masked_fill(~kept, -torch.inf), dim=-1)


def _top_p(logits, p, **wrong):
    return softmax_of_kept(logits, kept_tokens(logits, p, **wrong))


def _in_token_order(logits, p, *, keep):
    return softmax_of_kept(logits, keep(torch.softmax(logits, -1), p))


def _normalised(probabilities, kept):
    left = probabilities * kept
    return left / left.sum(-1, keepdim=True)


def _kept_of_all(probabilities, p):
    ordered, order = probabilities.flatten().sort(descending=True)
    kept = keep_crossing(ordered, p)
    return kept.scatter(0, order, kept).view(probabilities.shape)


EXERCISE = Exercise(
    name="keep_top_p",
    notebook="09_decoding_and_bleu",
    title="Top-p for a batch",
    reference=lambda logits, p: top_p(logits, p).softmax(-1),
    solution=keep_top_p,
    cases=(
        Case(logits=torch.tensor([[0.0, 1.2, 2.0, 0.6]]), p=0.7),
        Case(  # the first token of the second row has more than p by itself
            logits=torch.tensor([[0.3, 1.0, 0.8, -0.2], [4.0, 0.5, 1.0, 0.0]]), p=0.6
        ),
        # 1/2 and twice 1/4: the first token has exactly p
        Case(logits=torch.tensor([[0.0, math.log(2), 0.0], [0.0, 0.0, math.log(2)]] * 2), p=0.5),
        Case(logits=random_tensor(5, 5, seed=4), p=0.8),
        Case(logits=2 * random_tensor(4, 9, seed=5), p=0.9),
    ),
    mistakes=(
        Mistake(
            "crossing_dropped",
            partial(_top_p, keep=keep_up_to_p),
            "You drop the token that crosses p, so the kept probabilities sum to less than p. If the first token alone "
            "has more than p, none is kept and the softmax gives NaN. Keep a token if those before it sum to less than p.",
        ),
        Mistake(
            "crossing_dropped_one_left",
            partial(_top_p, keep=keep_up_to_p_and_first),
            "The first token is kept, but the one that crosses p is dropped, so the kept probabilities sum to less than "
            "p. Keep a token if those before it sum to less than p.",
        ),
        Mistake(
            "one_too_many",
            partial(_top_p, keep=keep_one_more),
            "You keep one token beyond the one that crosses p.",
        ),
        Mistake(
            "turned_around",
            partial(_top_p, keep=lambda ordered, p: ordered.cumsum(-1) - ordered >= p),
            "You drop the tokens that should be kept, and keep the tail.",
        ),
        Mistake(
            "tail_and_crossing",
            partial(_top_p, keep=lambda ordered, p: ordered.cumsum(-1) > p),
            "You keep the tail, starting with the token that crosses p, and drop the probable tokens. The comparison is "
            "the wrong way round.",
        ),
        Mistake(
            "unsorted",
            partial(_in_token_order, keep=keep_crossing),
            "You add up in the order of the vocabulary, so a token is kept because its id is small. Sort by probability "
            "first.",
        ),
        Mistake(
            "unsorted_crossing_dropped",
            partial(_in_token_order, keep=keep_up_to_p),
            "You add up in the order of the vocabulary, so a token is kept because its id is small. Sort by probability "
            "first. And keep the token that crosses p.",
        ),
        Mistake(
            "ascending",
            partial(_top_p, descending=False),
            "You sort in ascending order, so the tail is kept. descending=True.",
        ),
        Mistake(
            "not_put_back",
            partial(_top_p, back=lambda kept, order: kept),
            "You apply a mask in sorted order to unsorted logits, so it drops other tokens. Bring the mask back into the "
            "order of the vocabulary with scatter.",
        ),
        Mistake(
            "gathered",
            partial(_top_p, back=lambda kept, order: kept.gather(-1, order)),
            "You bring the mask back with gather, which sorts once more. order says where each element came from: scatter "
            "writes it there.",
        ),
        Mistake(
            "stays_sorted",
            lambda logits, p: softmax_of_kept(
                logits.sort(dim=-1, descending=True).values,
                kept_tokens(logits, p, back=lambda kept, order: kept),
            ),
            "Your probabilities are right, but sorted. They must be in the order of the vocabulary.",
        ),
        Mistake(
            "not_normalised",
            lambda logits, p: torch.softmax(logits, -1) * kept_tokens(logits, p),
            "The right tokens are kept, but their probabilities no longer sum to 1. Drop before the softmax.",
        ),
        Mistake(
            "zero",
            lambda logits, p: torch.softmax(logits * kept_tokens(logits, p), -1),
            "You set the dropped logits to 0. exp(0) is 1, so these tokens can still be sampled. Set them to minus "
            "infinity.",
        ),
        Mistake(
            "no_softmax",
            lambda logits, p: logits.masked_fill(~kept_tokens(logits, p), -torch.inf),
            "The right logits are kept, but you should return probabilities: take the softmax.",
        ),
        Mistake(
            "one_minus_p",
            lambda logits, p: _top_p(logits, 1 - p),
            "You keep tokens whose probabilities sum to 1 - p. In a sum that begins with the most probable token, the "
            "threshold is p.",
        ),
        Mistake(
            "sum_of_logits",
            partial(_top_p, probabilities=lambda logits: logits),
            "You add up logits. p is a probability: add up the softmax.",
        ),
        Mistake(
            "each_at_least_p",
            lambda logits, p: softmax_of_kept(logits, torch.softmax(logits, -1) >= p),
            "You keep a token only if it has at least p by itself. The kept ones must reach p together.",
        ),
        Mistake(
            "relative_to_the_largest",
            lambda logits, p: softmax_of_kept(
                logits, (q := torch.softmax(logits, -1)) >= p * q.amax(-1, keepdim=True)
            ),
            "You keep the tokens with at least p times the largest probability. That is min-p, another filter: here the "
            "kept ones must reach p together.",
        ),
        Mistake(
            "over_the_batch",
            lambda logits, p: softmax_of_kept(
                logits, kept_tokens(logits.T, p, probabilities=lambda z: torch.softmax(z, 0)).T
            ),
            "You sort and add up along the batch: dim=-1.",
        ),
        Mistake(
            "nothing_dropped",
            lambda logits, p: torch.softmax(logits, -1),
            "Nothing is dropped: these are the probabilities of all tokens.",
        ),
        Mistake(
            "one_more_at_exactly_p",
            partial(_top_p, keep=lambda ordered, p: ordered.cumsum(-1) - ordered <= p),
            "Right, except where the kept ones sum to exactly p: then yours keeps one more. A token is kept if those before it "
            "sum to less than p.",
        ),
        Mistake(
            "softmax_over_the_batch",
            partial(_top_p, probabilities=lambda logits: torch.softmax(logits, 0)),
            "Your softmax runs over the batch. Each row is a distribution over the vocabulary: dim=-1.",
        ),
        Mistake(
            "softmax_over_the_batch_normalised",
            lambda logits, p: _normalised(
                torch.softmax(logits, 0),
                kept_tokens(logits, p, probabilities=lambda z: torch.softmax(z, 0)),
            ),
            "Your softmax runs over the batch. Each row is a distribution over the vocabulary: dim=-1.",
        ),
        Mistake(
            "softmax_twice",
            lambda logits, p: softmax_of_kept(torch.softmax(logits, -1), kept_tokens(logits, p)),
            "The right tokens are kept, but you take the softmax of probabilities. Divide the kept probabilities by their sum, or "
            "take the softmax of the kept logits.",
        ),
        Mistake(
            "softmax_of_zeros",
            lambda logits, p: torch.softmax(torch.softmax(logits, -1) * kept_tokens(logits, p), -1),
            "You take the softmax of probabilities, where exp(0) is 1, so dropped tokens can still be sampled. Divide the kept "
            "probabilities by their sum.",
        ),
        Mistake(
            "as_many_in_each_row",
            partial(
                _top_p,
                keep=lambda ordered, p: keep_crossing(ordered, p)[:1].expand(ordered.shape),
            ),
            "You keep as many tokens in each row as in the first. How many are needed to reach p differs from row to row.",
        ),
        Mistake(
            "normalised_over_the_batch",
            lambda logits, p: (
                (kept := torch.softmax(logits, -1) * kept_tokens(logits, p)) / kept.sum()
            ),
            "The right tokens are kept, but you divide by the sum over the whole batch. Each row sums to 1: "
            "sum(dim=-1, keepdim=True).",
        ),
        Mistake(
            "all_rows_together",
            lambda logits, p: _normalised(q := torch.softmax(logits, -1), _kept_of_all(q, p)),
            "You sort and add up all rows together, so the sum reaches p before most rows are looked at. Each row has its own "
            "sum: dim=-1.",
        ),
        Mistake(
            "divided_by_p",
            lambda logits, p: torch.softmax(logits, -1) * kept_tokens(logits, p) / p,
            "The right tokens are kept, but you divide by p. The kept ones usually sum to more: divide by their sum.",
        ),
        Mistake(
            "strictly_below_p",
            partial(_top_p, keep=lambda ordered, p: ordered.cumsum(-1) < p),
            "You drop the token that brings the sum to p or above, so the kept probabilities sum to less than p. Keep a token if "
            "those before it sum to less than p.",
        ),
        Mistake(
            "greedy",
            lambda logits, p: torch.nn.functional.one_hot(logits.argmax(-1), logits.shape[-1]).to(
                logits
            ),
            "You keep the most probable token only, whatever p is. Keep tokens until their probabilities sum to at least p.",
        ),
        Mistake(
            "kept_in_any_row",
            partial(
                _top_p,
                back=lambda kept, order: (
                    kept.scatter(-1, order, kept).any(0, keepdim=True).expand(kept.shape)
                ),
            ),
            "order[before < p] joins the tokens of all rows, so a token that one row keeps is kept in every row. Bring the mask back "
            "row by row: scatter(-1, order, before < p).",
        ),
        Mistake(
            "crossing_dropped_nan_to_zero",
            lambda logits, p: _top_p(logits, p, keep=keep_up_to_p).nan_to_num(0.0),
            "You drop the token that crosses p, and where nothing is left you replace NaN by 0. Keep a token if those before it "
            "sum to less than p, then at least one is kept.",
        ),
    ),
    hints=(
        "Sort the probabilities, the largest first, and add up. Which tokens do you need to reach p?",
        "A token is kept if those before it sum to less than p: ordered.cumsum(dim=-1) - ordered < p.",
        "That mask is in sorted order. torch.zeros_like(logits, dtype=torch.bool).scatter(-1, order, mask) brings it "
        "back into the order of the vocabulary.",
    ),
)
