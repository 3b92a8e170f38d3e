"""Exercises and bug hunts of notebook 09."""

import math
from collections import Counter
from functools import partial
from itertools import product

import torch

from course_lib.bleu import bleu, brevity_penalty
from course_lib.decoding import temperature, top_k, top_p
from course_lib.exercises.exercise import Case, Exercise, Mistake

_NOTEBOOK = "09_decoding_and_bleu"


def _drawn(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def _short(*shape, seed):
    """Drawn as well, with one decimal: for a report that is read."""
    return _drawn(*shape, seed=seed).round(decimals=1) + 0.0  # no -0.0


def _log_p(*shape, seed):
    return torch.log_softmax(2 * _drawn(*shape, seed=seed), dim=-1)


def _still(*left):
    """Say what is left of several bugs."""
    return f"Still wrong: {'; '.join(one for one in left if one)}."


# --- with_temperature ------------------------------------------------------------------------


def with_temperature(logits, t):
    return torch.softmax(logits / t[:, None], dim=-1)  # (batch, 1): one for each row


_TEMPERATURE = Exercise(
    name="with_temperature",
    notebook=_NOTEBOOK,
    title="Probabilities at a temperature of one's own",
    reference=lambda logits, t: torch.stack(
        [
            (row / one).softmax(-1) for row, one in zip(logits, t, strict=True)
        ]  # a gradient for t too
    ),
    solution=with_temperature,
    cases=(
        # as many rows as tokens: nothing raises
        Case(logits=torch.tensor([[2.0, 0.5], [1.0, -1.0]]), t=torch.tensor([0.5, 2.0])),
        Case(logits=_drawn(4, 4, seed=0), t=torch.tensor([0.2, 1.0, 3.0, 0.7])),
        Case(logits=_drawn(3, 6, seed=1), t=torch.tensor([1.5, 0.4, 5.0])),
    ),
    mistakes=(
        Mistake(
            "multiplied",
            lambda z, t: torch.softmax(z * t[:, None], -1),
            "You multiply by t, so a high temperature makes the probable more probable. Divide.",
        ),
        Mistake(
            "along_the_vocabulary",
            lambda z, t: torch.softmax(z / t, -1),
            "Your t lies along the vocabulary: each token gets a temperature, not each row. Nothing raises where there "
            "are as many rows as tokens. t[:, None] is (batch, 1).",
        ),
        Mistake(
            "no_effect",
            lambda z, t: torch.softmax(z, -1),
            "Your probabilities are those of t = 1. Either t is never used, or it meets numbers that are made to sum "
            "to 1 afterwards, which undoes it. Divide the logits, then take the softmax.",
        ),
        Mistake(
            "after_the_softmax",
            lambda z, t: torch.softmax(z, -1) / t[:, None],
            "You divide probabilities, so they no longer sum to 1. Divide the logits, then take the softmax.",
        ),
        Mistake(
            "two_softmaxes",
            lambda z, t: torch.softmax(torch.softmax(z, -1) / t[:, None], -1),
            "You divide probabilities and take a second softmax of them. They all lie between 0 and 1, so even t = 1 "
            "makes them nearly alike. Divide the logits, and take one softmax.",
        ),
        Mistake(
            "softmax_again",
            lambda z, t: torch.softmax(torch.softmax(z / t[:, None], -1), -1),
            "One softmax is right, and you take a second of its result: all tokens become nearly alike.",
        ),
        Mistake(
            "over_the_batch",
            lambda z, t: torch.softmax(z / t[:, None], 0),
            "Your softmax runs over the batch. Each row must sum to 1: dim=-1.",
        ),
        Mistake(
            "no_softmax",
            lambda z, t: z / t[:, None],
            "These are logits at temperature t, and they are right. Probabilities are asked for: take the softmax.",
        ),
        Mistake(
            "logs",
            lambda z, t: torch.log_softmax(z / t[:, None], -1),
            "You return the logs of the probabilities: softmax, not log_softmax.",
        ),
        Mistake(
            "not_normalised",
            lambda z, t: torch.softmax(z, -1) ** (1 / t[:, None]),
            "Probabilities to the power of 1 / t have the right proportions, but they no longer sum to 1.",
        ),
        Mistake(
            "first_for_all",
            lambda z, t: torch.softmax(z / t[0], -1),
            "Every row gets the temperature of the first. Each has its own: t[:, None].",
        ),
        Mistake(
            "mean_for_all",
            lambda z, t: torch.softmax(z / t.mean(), -1),
            "Every row gets the mean temperature. Each has its own: t[:, None].",
        ),
        Mistake(
            "squared",
            lambda z, t: torch.softmax(z / t[:, None] ** 2, -1),
            "You divide by t squared. Divide by t.",
        ),
        Mistake(
            "root",
            lambda z, t: torch.softmax(z / t[:, None].sqrt(), -1),
            "You divide by the root of t. Divide by t.",
        ),
    ),
    hints=(
        "What comes first, the softmax or the temperature? And which shape must t have to meet (batch, vocabulary)?",
        "Divide the logits. t[:, None] is (batch, 1): one number for each row.",
        "torch.softmax(logits / t[:, None], dim=-1).",
    ),
)


# --- keep_top_k ------------------------------------------------------------------------------


def keep_top_k(logits, k):
    last = logits.topk(k, dim=-1).values[:, -1:]  # (batch, 1): the k-th largest
    return torch.softmax(logits.masked_fill(logits < last, -torch.inf), dim=-1)


def _of_kept(logits, kept):
    """The probabilities of what is kept, made to sum to 1."""
    return torch.softmax(logits.masked_fill(~kept, -torch.inf), dim=-1)


def _ranked(logits, *, first):
    """The rank of each token, 0 for the largest; of two that tie, the first one first, or the last."""
    flip = (lambda x: x) if first else (lambda x: x.flip(-1))
    order = flip(logits).argsort(dim=-1, descending=True, stable=True)
    return flip(order.argsort(dim=-1))


def _kth(logits, k, dim=-1, largest=True):
    return logits.topk(k, dim=dim, largest=largest).values.select(dim, -1).unsqueeze(dim)


_TOP_K = Exercise(
    name="keep_top_k",
    notebook=_NOTEBOOK,
    title="Keep the k most probable tokens",
    reference=lambda logits, k: top_k(logits, k).softmax(-1),
    solution=keep_top_k,
    cases=(
        Case(logits=torch.tensor([[1.0, 0.5, 2.0, 1.0]]), k=2),  # two share the second place
        Case(logits=_drawn(4, 4, seed=2), k=2),
        Case(logits=_drawn(3, 6, seed=3), k=3),
    ),
    mistakes=(
        *(
            Mistake(
                f"ties_dropped_{name}_stays",
                lambda logits, k, first=first: _of_kept(logits, _ranked(logits, first=first) < k),
                "You keep exactly k. Where two tokens share the last place, chance decides which of them goes. Keep "
                "all that are at least as large as the k-th: drop logits < last.",
            )
            for name, first in (("first", True), ("last", False))
        ),
        Mistake(
            "last_dropped",
            lambda logits, k: _of_kept(logits, logits > _kth(logits, k)),
            "You drop the k-th token as well: k - 1 are left, and none where k is 1. Drop logits < last, not <=.",
        ),
        Mistake(
            "one_too_many",
            lambda logits, k: _of_kept(logits, logits >= _kth(logits, k + 1)),
            "You keep one token too many. The k-th largest has index k - 1.",
        ),
        Mistake(
            "zero",
            lambda logits, k: torch.softmax(
                logits.masked_fill(logits < _kth(logits, k), 0.0), dim=-1
            ),
            "You set what is dropped to a logit of 0. exp(0) is 1: these tokens can still be drawn, some more often "
            "than before. Set it to minus infinity.",
        ),
        Mistake(
            "not_normalised",
            lambda logits, k: torch.softmax(logits, -1) * (logits >= _kth(logits, k)),
            "The right tokens are left, but their probabilities no longer sum to 1. Drop before the softmax.",
        ),
        Mistake(
            "no_softmax",
            lambda logits, k: logits.masked_fill(logits < _kth(logits, k), -torch.inf),
            "The right logits are left. Probabilities are asked for: take the softmax.",
        ),
        Mistake(
            "only_k",
            lambda logits, k: torch.softmax(logits.topk(k, -1).values, -1),
            "You return k probabilities and no longer know of which tokens. Keep the shape of logits, with 0 for what "
            "is dropped.",
        ),
        Mistake(
            "smallest",
            lambda logits, k: _of_kept(logits, logits <= _kth(logits, k, largest=False)),
            "You keep the k least probable tokens.",
        ),
        Mistake(
            "turned_around",
            lambda logits, k: _of_kept(logits, logits < _kth(logits, k)),
            "You drop the k largest and keep the rest. The comparison is turned around.",
        ),
        Mistake(
            "one_for_all",
            lambda logits, k: _of_kept(logits, logits >= _kth(logits.flatten(), k)),
            "You look for the k largest of the whole batch, so a row may be left with nothing. Each row has its own: "
            "dim=-1.",
        ),
        Mistake(
            "over_the_batch",
            lambda logits, k: _of_kept(logits, logits >= _kth(logits, k, dim=0)),
            "You compare the rows of the batch with each other. Each row has its own k largest: dim=-1.",
        ),
        Mistake(
            "threshold_of_the_first_row",
            lambda logits, k: _of_kept(logits, logits >= _kth(logits, k)[0]),
            "Every row of yours is compared with the k-th largest of the first row. Each has its own: [:, -1:], not "
            "[0, -1].",
        ),
        Mistake(
            "nothing_dropped",
            lambda logits, k: torch.softmax(logits, -1),
            "Nothing is dropped: these are the probabilities of all tokens.",
        ),
    ),
    hints=(
        "Which number must a logit reach to be kept? What about two tokens that are equal?",
        "logits.topk(k, dim=-1).values[:, -1:] is the k-th largest of each row, (batch, 1).",
        "torch.softmax(logits.masked_fill(logits < last, -torch.inf), dim=-1).",
    ),
)


# --- keep_top_p ------------------------------------------------------------------------------


def keep_top_p(logits, p):
    ordered, order = torch.softmax(logits, dim=-1).sort(dim=-1, descending=True)
    before = ordered.cumsum(dim=-1) - ordered  # what the more probable ones have together
    kept = torch.zeros_like(logits, dtype=torch.bool).scatter(-1, order, before < p)
    return torch.softmax(logits.masked_fill(~kept, -torch.inf), dim=-1)


def _kept_of(
    logits,
    p,
    *,
    keep=lambda ordered, p: ordered.cumsum(-1) - ordered < p,
    probabilities=lambda logits: torch.softmax(logits, -1),
    descending=True,
    back=lambda kept, order: kept.scatter(-1, order, kept),
):
    """Which tokens are kept: `keep` decides on sorted ones, `back` brings them to their places."""
    ordered, order = probabilities(logits).sort(dim=-1, descending=descending)
    return back(keep(ordered, p), order)


def _top_p(logits, p, **wrong):
    return _of_kept(logits, _kept_of(logits, p, **wrong))


def _up_to(ordered, p):
    return ordered.cumsum(-1) <= p


def _and_the_first(ordered, p):
    return torch.cat([torch.ones_like(ordered[..., :1]).bool(), _up_to(ordered, p)[..., 1:]], -1)


def _and_one_more(ordered, p):
    before = ordered.cumsum(-1) - ordered
    return torch.cat([torch.ones_like(before[..., :1]), before[..., :-1] < p], -1).bool()


def _in_order_of_tokens(logits, p, *, keep):
    return _of_kept(logits, keep(torch.softmax(logits, -1), p))


def _crossing_kept(ordered, p):
    return ordered.cumsum(-1) - ordered < p


_TOP_P = Exercise(
    name="keep_top_p",
    notebook=_NOTEBOOK,
    title="Keep the most probable tokens that together reach p",
    reference=lambda logits, p: top_p(logits, p).softmax(-1),
    solution=keep_top_p,
    cases=(
        Case(logits=torch.tensor([[0.0, 1.2, 2.0, 0.6]]), p=0.7),
        Case(  # the first token of the second row has more than p by itself
            logits=torch.tensor([[0.3, 1.0, 0.8, -0.2], [4.0, 0.5, 1.0, 0.0]]), p=0.6
        ),
        Case(logits=_drawn(5, 5, seed=4), p=0.8),
        Case(logits=2 * _drawn(4, 9, seed=5), p=0.9),
    ),
    mistakes=(
        Mistake(
            "crossing_dropped",
            partial(_top_p, keep=_up_to),
            "You drop the token that crosses p, so what is left has less than p together. Where the first has more by "
            "itself, nothing is left and the softmax gives NaN. Keep a token if those before it have less than p.",
        ),
        Mistake(
            "crossing_dropped_one_left",
            partial(_top_p, keep=_and_the_first),
            "The first token always stays, but the one that crosses p is dropped, so what is left has less than p "
            "together. Keep a token if those before it have less than p.",
        ),
        Mistake(
            "one_too_many",
            partial(_top_p, keep=_and_one_more),
            "You keep one token beyond the one that crosses p.",
        ),
        Mistake(
            "turned_around",
            partial(_top_p, keep=lambda ordered, p: ordered.cumsum(-1) - ordered >= p),
            "You drop what should be kept, and keep the tail.",
        ),
        Mistake(
            "tail_and_crossing",
            partial(_top_p, keep=lambda ordered, p: ordered.cumsum(-1) > p),
            "You keep the tail, from the token that crosses p on, and drop the probable ones. The comparison is turned "
            "around.",
        ),
        Mistake(
            "unsorted",
            partial(_in_order_of_tokens, keep=_crossing_kept),
            "You add up in the order of the vocabulary, so a token is kept because its number is small. Sort by "
            "probability first.",
        ),
        Mistake(
            "unsorted_crossing_dropped",
            partial(_in_order_of_tokens, keep=_up_to),
            "You add up in the order of the vocabulary, so a token is kept because its number is small. Sort by "
            "probability first. And the token that crosses p must stay.",
        ),
        Mistake(
            "ascending",
            partial(_top_p, descending=False),
            "You sort from the least probable on, so the tail is kept. descending=True.",
        ),
        Mistake(
            "not_put_back",
            partial(_top_p, back=lambda kept, order: kept),
            "You sort, and then apply the mask to unsorted logits: it drops other tokens than it was made for. Bring "
            "the mask to their places with scatter.",
        ),
        Mistake(
            "gathered",
            partial(_top_p, back=lambda kept, order: kept.gather(-1, order)),
            "You bring the mask back with gather, which sorts once more. order says where each came from: scatter puts "
            "it there.",
        ),
        Mistake(
            "stays_sorted",
            lambda logits, p: _of_kept(
                logits.sort(dim=-1, descending=True).values,
                _kept_of(logits, p, back=lambda kept, order: kept),
            ),
            "Your probabilities are right, and sorted. Nobody knows any more which token each belongs to.",
        ),
        Mistake(
            "not_normalised",
            lambda logits, p: torch.softmax(logits, -1) * _kept_of(logits, p),
            "The right tokens are left, but their probabilities no longer sum to 1. Drop before the softmax.",
        ),
        Mistake(
            "zero",
            lambda logits, p: torch.softmax(logits * _kept_of(logits, p), -1),
            "You set what is dropped to a logit of 0. exp(0) is 1: these tokens can still be drawn. Set it to minus "
            "infinity.",
        ),
        Mistake(
            "no_softmax",
            lambda logits, p: logits.masked_fill(~_kept_of(logits, p), -torch.inf),
            "The right logits are left. Probabilities are asked for: take the softmax.",
        ),
        Mistake(
            "one_minus_p",
            lambda logits, p: _top_p(logits, 1 - p),
            "You keep tokens that together reach 1 - p. Is there a 1 - p in a sum that begins with the most probable?",
        ),
        Mistake(
            "sum_of_logits",
            partial(_top_p, probabilities=lambda logits: logits),
            "You add up logits. p is a probability: add up what the softmax makes of them.",
        ),
        Mistake(
            "each_at_least_p",
            lambda logits, p: _of_kept(logits, torch.softmax(logits, -1) >= p),
            "You keep a token that has p by itself. They must reach p together.",
        ),
        Mistake(
            "relative_to_the_largest",
            lambda logits, p: _of_kept(
                logits, (q := torch.softmax(logits, -1)) >= p * q.amax(-1, keepdim=True)
            ),
            "You keep what has at least the share p of the largest probability. That is min-p, and another filter: "
            "here they must reach p together.",
        ),
        Mistake(
            "over_the_batch",
            lambda logits, p: _of_kept(
                logits, _kept_of(logits.T, p, probabilities=lambda z: torch.softmax(z, 0)).T
            ),
            "You sort and add up along the batch. Each row has its own: dim=-1.",
        ),
        Mistake(
            "nothing_dropped",
            lambda logits, p: torch.softmax(logits, -1),
            "Nothing is dropped: these are the probabilities of all tokens.",
        ),
    ),
    hints=(
        "Sort the probabilities, the largest first, and add up. Which tokens do you need to reach p?",
        "A token is kept if those before it have less than p: ordered.cumsum(dim=-1) - ordered < p.",
        "That mask is in sorted order. torch.zeros_like(logits, dtype=torch.bool).scatter(-1, order, mask) puts it "
        "back.",
    ),
)


# --- best_finished ---------------------------------------------------------------------------


def best_finished(sums, lengths, finished, alpha):
    scores = sums / lengths**alpha  # (batch, hypotheses)
    return scores.masked_fill(~finished, -torch.inf).argmax(dim=-1)


def _best(
    sums,
    lengths,
    finished,
    alpha,
    *,
    score=lambda sums, lengths, alpha: sums / lengths**alpha,
    hide=lambda scores, finished: scores.masked_fill(~finished, -torch.inf),
    pick=lambda scores: scores.argmax(-1),
):
    return pick(hide(score(sums, lengths, alpha), finished))


def _hypotheses(batch, several, *, alpha, seed):
    """A case: longer ones have smaller sums, and every row has two that are finished."""
    noise = torch.rand(3, batch, several, generator=torch.Generator().manual_seed(seed))
    lengths = 2 + (noise[0] * 12).long()
    sums = -(lengths ** (0.5 + alpha / 2)) * (0.4 + 0.5 * noise[1])
    finished = noise[2] > 0.45
    finished[:, :2] = True
    order = noise[2].argsort(-1)
    return Case(
        sums=sums.round(decimals=2).gather(-1, order),
        lengths=lengths.gather(-1, order),
        finished=finished.gather(-1, order),
        alpha=alpha,
    )


_BEST_FINISHED = Exercise(
    name="best_finished",
    notebook=_NOTEBOOK,
    title="The best finished hypothesis among several lengths",
    reference=_best,
    solution=best_finished,
    cases=(
        Case(
            sums=torch.tensor([[-2.4, -1.0, -0.9]]),
            lengths=torch.tensor([[8, 2, 4]]),
            finished=torch.tensor([[True, True, False]]),
            alpha=1.0,
        ),
        _hypotheses(4, 6, alpha=0.0, seed=0),
        _hypotheses(4, 6, alpha=1.0, seed=125),
        _hypotheses(6, 6, alpha=0.6, seed=68),
    ),
    mistakes=(
        Mistake(
            "unfinished_too",
            partial(_best, hide=lambda scores, finished: scores),
            "You choose among all, so an unfinished one may win: a text that breaks off. Take finished ones alone.",
        ),
        Mistake(
            "only_unfinished",
            partial(_best, hide=lambda scores, finished: scores.masked_fill(finished, -torch.inf)),
            "You choose among the unfinished. ~finished is what must be hidden.",
        ),
        Mistake(
            "hidden_by_zero",
            partial(_best, hide=lambda scores, finished: scores * finished),
            "You give the unfinished a score of 0. Log-probabilities are negative, so 0 wins. Minus infinity loses.",
        ),
        Mistake(
            "not_normalised",
            partial(_best, score=lambda sums, lengths, alpha: sums),
            "You compare sums of different lengths. Each token makes a sum smaller, so the short win. Divide by "
            "lengths**alpha.",
        ),
        Mistake(
            "mean",
            partial(_best, score=lambda sums, lengths, alpha: sums / lengths),
            "You divide by the length whatever alpha is. Divide by lengths**alpha.",
        ),
        Mistake(
            "mean_of_all",
            partial(
                _best,
                score=lambda sums, lengths, alpha: sums / lengths,
                hide=lambda scores, finished: scores,
            ),
            "You divide by the length whatever alpha is, and choose among the unfinished as well. Divide by "
            "lengths**alpha, and hide what is not finished.",
        ),
        Mistake(
            "sums_of_all",
            partial(
                _best,
                score=lambda sums, lengths, alpha: sums,
                hide=lambda scores, finished: scores,
            ),
            "You choose the largest sum of all. The short win, finished or not. Divide by lengths**alpha, and hide "
            "what is not finished.",
        ),
        Mistake(
            "multiplied",
            partial(_best, score=lambda sums, lengths, alpha: sums * lengths**alpha),
            "You multiply by lengths**alpha, which punishes the long twice. Divide.",
        ),
        Mistake(
            "probabilities",
            partial(_best, score=lambda sums, lengths, alpha: sums.exp() / lengths**alpha),
            "You divide probabilities by the length. These are small for long texts already, and you make them "
            "smaller. Divide the log-probabilities: negative numbers grow by it.",
        ),
        Mistake(
            "smallest",
            partial(
                _best,
                hide=lambda scores, finished: scores.masked_fill(~finished, torch.inf),
                pick=lambda scores: scores.argmin(-1),
            ),
            "You choose the smallest score, which is the worst. Log-probabilities are negative: the best is nearest "
            "to 0.",
        ),
        Mistake(
            "hidden_is_the_smallest",
            partial(_best, pick=lambda scores: scores.argmin(-1)),
            "You choose the smallest score, and minus infinity is the smallest: an unfinished one. argmax.",
        ),
        Mistake(
            "first_finished",
            lambda sums, lengths, finished, alpha: finished.long().argmax(-1),
            "You return the first that is finished. Compare them.",
        ),
        Mistake(
            "longest",
            partial(_best, score=lambda sums, lengths, alpha: lengths.float()),
            "You return the longest of the finished. Compare their log-probabilities, divided by lengths**alpha.",
        ),
        Mistake(
            "scores",
            partial(_best, pick=lambda scores: scores.amax(-1)),
            "You return the best scores. Their places are asked for: argmax.",
        ),
        Mistake(
            "over_the_batch",
            partial(_best, pick=lambda scores: scores.argmax(0)),
            "You compare across the batch: dim=-1.",
        ),
    ),
    hints=(
        "What must not be chosen? And why can two sums of different lengths not be compared?",
        "scores = sums / lengths**alpha. What score can never win?",
        "scores.masked_fill(~finished, -torch.inf).argmax(dim=-1).",
    ),
    differentiable=False,
)


# --- beam_step -------------------------------------------------------------------------------


def beam_step(scores, log_p, beam_size):
    total = scores[:, None] + log_p  # (rows, vocabulary): a log-probability for each continuation
    best = total.flatten().topk(beam_size).indices  # of all rows together
    vocabulary = log_p.shape[1]
    return torch.stack([best // vocabulary, best % vocabulary])  # parents, tokens


def _stepped(
    scores,
    log_p,
    beam_size,
    *,
    total=lambda scores, log_p: scores[:, None] + log_p,
    flat=lambda total: total.flatten(),
    largest=True,
    split=lambda best, rows, vocabulary: [best // vocabulary, best % vocabulary],
):
    best = flat(total(scores, log_p)).topk(beam_size, largest=largest).indices
    return torch.stack(split(best, *log_p.shape))


def _best_of_each(scores, log_p, beam_size):
    """One continuation per row, as if each row were searched greedily."""
    token = log_p.argmax(-1)
    parent = torch.arange(len(scores))
    return torch.stack([parent, token])[:, :beam_size]


def _best_of_each_sorted(scores, log_p, beam_size):
    best, token = (scores[:, None] + log_p).max(-1)
    parent = best.argsort(descending=True)[:beam_size]
    return torch.stack([parent, token[parent]])


_BEAM_STEP = Exercise(
    name="beam_step",
    notebook=_NOTEBOOK,
    title="One step of beam search",
    reference=_stepped,
    solution=beam_step,
    cases=(
        Case(
            scores=torch.tensor([-0.4, -1.6]),
            log_p=torch.tensor([[0.35, 0.4, 0.25], [0.05, 0.1, 0.85]]).log().round(decimals=2),
            beam_size=2,
        ),
        Case(scores=torch.zeros(1), log_p=_log_p(1, 8, seed=9), beam_size=3),  # the first step
        Case(scores=_log_p(3, seed=10), log_p=_log_p(3, 5, seed=11), beam_size=3),
        Case(scores=_log_p(5, seed=12), log_p=_log_p(5, 5, seed=13), beam_size=5),
        Case(scores=_log_p(4, seed=14), log_p=_log_p(4, 7, seed=15), beam_size=4),
    ),
    mistakes=(
        Mistake(
            "forgets_the_scores",
            partial(_stepped, total=lambda scores, log_p: log_p),
            "You forget the scores so far: a beginning that was improbable is continued as if it were the best. Add "
            "scores[:, None].",
        ),
        Mistake(
            "probabilities_added",
            partial(_stepped, total=lambda scores, log_p: scores.exp()[:, None] + log_p.exp()),
            "You add probabilities. They are multiplied, and logs are added: scores[:, None] + log_p.",
        ),
        Mistake(
            "mixed",
            partial(_stepped, total=lambda scores, log_p: scores[:, None] + log_p.exp()),
            "You add a probability to a log-probability. Both are logs already: scores[:, None] + log_p.",
        ),
        Mistake(
            "logs_multiplied",
            partial(_stepped, total=lambda scores, log_p: scores[:, None] * log_p),
            "You multiply log-probabilities. Two negative numbers give a positive one, so the worst wins. Add them.",
        ),
        Mistake(
            "subtracted",
            partial(_stepped, total=lambda scores, log_p: log_p - scores[:, None]),
            "You subtract the scores so far, so improbable beginnings win. Add them.",
        ),
        Mistake(
            "scores_along_the_vocabulary",
            partial(_stepped, total=lambda scores, log_p: scores + log_p),
            "Your scores lie along the vocabulary: each token gets one, not each beginning. Nothing raises where there "
            "are as many beginnings as tokens. scores[:, None].",
        ),
        Mistake(
            "exchanged",
            partial(
                _stepped,
                split=lambda best, rows, vocabulary: [best % vocabulary, best // vocabulary],
            ),
            "Parents and tokens have changed places. Place i of the flat list is row i // vocabulary, token "
            "i % vocabulary; the parents come first.",
        ),
        Mistake(
            "divided_by_the_beam",
            partial(_stepped, split=lambda best, rows, vocabulary: [best // rows, best % rows]),
            "You divide by the number of beginnings. Each row of the flat list is a vocabulary long: best // "
            "vocabulary and best % vocabulary.",
        ),
        Mistake(
            "divided_by_the_beam_and_exchanged",
            partial(_stepped, split=lambda best, rows, vocabulary: [best % rows, best // rows]),
            "You divide by the number of beginnings, as if the list were flattened along its columns. flatten goes "
            "row by row, and each row is a vocabulary long: best // vocabulary and best % vocabulary.",
        ),
        Mistake(
            "flattened_along_columns",
            partial(_stepped, flat=lambda total: total.T.flatten()),
            "You transpose before flattening, and then read the places as if you had not. Leave total as it is, "
            "(beginnings, vocabulary).",
        ),
        Mistake(
            "best_of_each",
            _best_of_each,
            "You continue each beginning with its own best token. That is greedy decoding several times: nothing is "
            "ever given up. Flatten, and take the best of all together.",
        ),
        Mistake(
            "best_of_each_sorted",
            _best_of_each_sorted,
            "You continue each beginning with its own best token, the best first. A good beginning may continue in "
            "several ways, and a bad one in none. Flatten, and take the best of all together.",
        ),
        Mistake(
            "only_the_best",
            lambda scores, log_p, beam_size: torch.stack(
                [
                    scores.argmax().expand(beam_size),
                    log_p[scores.argmax()].topk(beam_size).indices,
                ]
            ),
            "You continue the best beginning alone, in several ways. Another one may overtake it. Flatten, and take "
            "the best of all together.",
        ),
        Mistake(
            "worst",
            partial(_stepped, largest=False),
            "You take the least probable. Log-probabilities are negative: the best is nearest to 0.",
        ),
        Mistake(
            "worst_first",
            lambda *a: _stepped(*a).flip(1),
            "The right ones, the worst first. The best comes first, as topk gives them.",
        ),
        Mistake(
            "pairs",
            lambda *a: _stepped(*a).T,
            "You return pairs, (beam, 2). Parents in one row and tokens in the other: (2, beam).",
        ),
    ),
    hints=(
        "What is the log-probability of each beginning with each token behind it? Which shape do they have together?",
        "(scores[:, None] + log_p).flatten().topk(beam_size).indices are places in a flat list. How long is a row?",
        "best // vocabulary is the parent, best % vocabulary the token.",
    ),
    differentiable=False,
)


# --- clipped_matches -------------------------------------------------------------------------


def clipped_matches(candidate, reference, n):
    mine, theirs = (
        Counter(zip(*(text.tolist()[i:] for i in range(n)), strict=False))
        for text in (candidate, reference)
    )
    return torch.tensor([(mine & theirs).total(), mine.total()])  # & takes the smaller count


def _grams(text, n, *, places=lambda length, n: length - n + 1, form=tuple):
    text = text.tolist()
    return [form(text[i : i + n]) for i in range(max(0, places(len(text), n)))]


def _clipped(mine, theirs):
    mine, theirs = Counter(mine), Counter(theirs)
    return sum(min(count, theirs[gram]) for gram, count in mine.items())


def _matches(
    candidate,
    reference,
    n,
    *,
    matched=_clipped,
    total=lambda mine, theirs: len(mine),
    **grams,
):
    mine, theirs = _grams(candidate, n, **grams), _grams(reference, n, **grams)
    return torch.tensor([matched(mine, theirs), total(mine, theirs)])


def _text(*tokens):
    return torch.tensor(tokens)


_CLIPPED = Exercise(
    name="clipped_matches",
    notebook=_NOTEBOOK,
    title="N-grams that stand in the reference, none counted too often",
    reference=_matches,
    solution=clipped_matches,
    cases=(
        Case(candidate=_text(4, 4, 4), reference=_text(4, 7, 4, 9), n=1),
        Case(candidate=_text(5, 3), reference=_text(5, 3, 8, 6, 2), n=3),  # too short for any
        Case(candidate=_text(5), reference=_text(8, 5, 3, 5, 6, 2), n=3),  # by more than a token
        Case(
            candidate=_text(4, 6, 4, 6, 5, 4, 6),
            reference=_text(9, 4, 6, 5, 6, 5, 6, 4, 3, 4, 6, 8),
            n=2,
        ),
        Case(
            candidate=_text(7, 3, 5, 7, 3, 5, 8, 7, 3, 5, 5),
            reference=_text(7, 3, 5, 8, 5, 3, 7, 3, 5, 3, 5, 9, 5),
            n=3,
        ),
    ),
    mistakes=(
        Mistake(
            "unclipped",
            partial(_matches, matched=lambda mine, theirs: sum(gram in theirs for gram in mine)),
            "Your counts are not clipped: what the candidate repeats counts each time, so 'the the the' is right three "
            "times. Count a gram at most as often as the reference has it.",
        ),
        Mistake(
            "sets",
            partial(
                _matches,
                matched=lambda mine, theirs: len(set(mine) & set(theirs)),
                total=lambda mine, theirs: len(set(mine)),
            ),
            "You compare sets, so a gram counts once however often both texts have it. Use counts: Counter.",
        ),
        Mistake(
            "sets_matched",
            partial(_matches, matched=lambda mine, theirs: len(set(mine) & set(theirs))),
            "Your matches are counted by a set, so a gram counts once however often both texts have it. Take the "
            "smaller of the two counts.",
        ),
        Mistake(
            "sets_total",
            partial(_matches, total=lambda mine, theirs: len(set(mine))),
            "The matches are right. Your total counts different grams; count all of them, repeated ones too.",
        ),
        Mistake(
            "total_of_the_reference",
            partial(_matches, total=lambda mine, theirs: len(theirs)),
            "Your total is that of the reference, which makes a recall. A precision asks how many of the candidate's "
            "grams are right.",
        ),
        Mistake(
            "negative_total",
            lambda candidate, reference, n: torch.tensor(
                [_matches(candidate, reference, n)[0], len(candidate) - n + 1]
            ),
            "Your total is length - n + 1 even where that is negative: one token has -1 triples. A text shorter than n "
            "has none. Count the grams, or take max(0, …).",
        ),
        Mistake(
            "larger_count",
            partial(
                _matches,
                matched=lambda mine, theirs: (Counter(mine) | Counter(theirs)).total(),
            ),
            "You take the larger of the two counts. A gram is matched as often as both have it: the smaller, &.",
        ),
        Mistake(
            "counts_of_the_reference",
            partial(_matches, matched=lambda mine, theirs: sum(gram in mine for gram in theirs)),
            "You count in the reference how often it has grams of the candidate. Take the smaller of the two counts.",
        ),
        Mistake(
            "one_shorter",
            lambda candidate, reference, n: _matches(candidate, reference, n - 1),
            "Your grams have n - 1 tokens. text[i : i + n] has n.",
        ),
        Mistake(
            "one_longer",
            lambda candidate, reference, n: _matches(candidate, reference, n + 1),
            "Your grams have n + 1 tokens. text[i : i + n] has n.",
        ),
        Mistake(
            "last_forgotten",
            partial(_matches, places=lambda length, n: length - n),
            "The last gram is forgotten. There are length - n + 1 of them.",
        ),
        Mistake(
            "shorter_at_the_end",
            partial(_matches, places=lambda length, n: length),
            "You begin a gram at every token, so the last ones are shorter than n. There are length - n + 1 of them.",
        ),
        Mistake(
            "no_overlap",
            lambda candidate, reference, n: torch.tensor(
                [
                    _clipped(_grams(candidate, n)[::n], _grams(reference, n)[::n]),
                    len(_grams(candidate, n)[::n]),
                ]
            ),
            "Your grams do not overlap. One begins at each token: i = 0, 1, 2, … and not in steps of n.",
        ),
        Mistake(
            "same_place",
            partial(
                _matches,
                matched=lambda mine, theirs: sum(
                    one == other for one, other in zip(mine, theirs, strict=False)
                ),
            ),
            "You compare grams at the same place. One word too many at the front, and nothing matches. Where a gram "
            "stands does not matter.",
        ),
        Mistake(
            "any_order",
            partial(_matches, form=lambda gram: tuple(sorted(gram))),
            "Within your grams the order of tokens is lost: 'dog bites' matches 'bites dog'. Use tuples.",
        ),
        Mistake(
            "tensors",
            partial(_matches, matched=lambda mine, theirs: 0),
            "Nothing ever matches. Tensors make no keys for a count: two that are equal are still different keys. Take "
            "plain numbers, text.tolist().",
        ),
        Mistake(
            "exchanged",
            lambda *a: _matches(*a).flip(0),
            "The two numbers have changed places: first the matches, then the total.",
        ),
        Mistake(
            "not_matched",
            lambda *a: torch.stack([_matches(*a)[1] - _matches(*a)[0], _matches(*a)[1]]),
            "You count the grams that do not match.",
        ),
    ),
    hints=(
        "Count the grams of both texts. How often is one matched that the candidate has 3 times and the reference 2?",
        "text = text.tolist(); Counter(tuple(text[i : i + n]) for i in range(len(text) - n + 1)).",
        "(mine & theirs).total() is the sum of the smaller counts; mine.total() is the total.",
    ),
    differentiable=False,
)


# --- brevity ---------------------------------------------------------------------------------


def brevity(candidate_length, reference_length):
    penalty = torch.exp(1 - reference_length / candidate_length)
    return penalty.clamp(max=1.0)  # nothing is won by being longer


_BREVITY = Exercise(
    name="brevity",
    notebook=_NOTEBOOK,
    title="What a corpus pays for being too short",
    reference=lambda c, r: torch.tensor(
        [brevity_penalty(*pair) for pair in zip(c.tolist(), r.tolist(), strict=True)]
    ),
    solution=brevity,
    cases=(
        Case(candidate_length=torch.tensor([8, 12]), reference_length=torch.tensor([10, 10])),
        Case(
            candidate_length=torch.tensor([20, 31, 5, 40]),
            reference_length=torch.tensor([20, 30, 25, 16]),
        ),
        Case(  # nothing at all was written
            candidate_length=torch.tensor([0, 100, 90, 57, 300]),
            reference_length=torch.tensor([7, 101, 60, 80, 299]),
        ),
    ),
    mistakes=(
        Mistake(
            "upside_down",
            lambda c, r: torch.where(c < r, torch.exp(1 - c / r), 1.0),
            "Your ratio is upside down: for a short candidate 1 - c/r is positive, so being short is rewarded with a "
            "factor above 1. 1 - r/c.",
        ),
        Mistake(
            "upside_down_capped",
            lambda c, r: torch.exp(1 - c / r).clamp(max=1.0),
            "Your ratio is upside down: what is too short pays nothing, and what is too long pays. 1 - r/c.",
        ),
        Mistake(
            "upside_down_everywhere",
            lambda c, r: torch.exp(1 - c / r),
            "Your ratio is upside down, and nothing caps it at 1: the shorter, the better. 1 - r/c, and at most 1.",
        ),
        Mistake(
            "not_capped",
            lambda c, r: torch.exp(1 - r / c),
            "You have no limit at 1, so what is longer than its references is rewarded. At most 1: .clamp(max=1.0).",
        ),
        Mistake(
            "too_long_pays",
            lambda c, r: torch.exp(-(1 - r / c).abs()),
            "What is too long pays as well. It has paid already: its precision is lower. At c >= r the factor is 1.",
        ),
        Mistake(
            "turned_around",
            lambda c, r: torch.where(c > r, torch.exp(1 - r / c), 1.0),
            "Turned around: what is long gets a factor above 1, and what is short pays nothing. At most 1, not at "
            "least: .clamp(max=1.0).",
        ),
        Mistake(
            "plain_ratio",
            lambda c, r: (c / r).clamp(max=1.0),
            "You take min(1, c/r). That is a penalty too, and a milder one. BLEU takes exp(1 - r/c).",
        ),
        Mistake(
            "plain_ratio_upside_down",
            lambda c, r: (r / c).clamp(max=1.0),
            "You take min(1, r/c): what is too long pays. BLEU takes exp(1 - r/c), at most 1.",
        ),
        Mistake(
            "no_one",
            lambda c, r: torch.exp(-r / c),
            "The 1 is missing. At equal lengths the exponent must be 0: 1 - r/c.",
        ),
        Mistake(
            "no_one_where_short",
            lambda c, r: torch.where(c < r, torch.exp(-r / c), 1.0),
            "The 1 is missing. Near equal lengths your factor jumps from 1 to 0.37: 1 - r/c in the exponent.",
        ),
        Mistake(
            "no_exp",
            lambda c, r: (1 - r / c).clamp(max=1.0),
            "The exponential is missing: your factor is 0 at equal lengths, and negative below.",
        ),
        Mistake(
            "difference",
            lambda c, r: torch.exp((c - r).float()).clamp(max=1.0),
            "Your exponent is a difference of lengths, so one word in a thousand costs as much as one in two. A ratio: "
            "1 - r/c.",
        ),
        Mistake(
            "by_the_reference",
            lambda c, r: torch.exp((c - r) / r).clamp(max=1.0),
            "You divide the missing words by the length of the reference: exp(c/r - 1). BLEU divides them by the "
            "length of the candidate, so an empty one gets 0: exp(1 - r/c).",
        ),
        Mistake(
            "one_token_at_least",
            lambda c, r: torch.exp(1 - r / c.clamp(min=1)).clamp(max=1.0),
            "You count an empty corpus as one token, so it gets a little more than 0. A tensor may be divided by 0: "
            "r/0 is infinity, and exp of minus infinity is 0.",
        ),
        Mistake(
            "empty_is_free",
            lambda c, r: torch.where((c > 0) & (c < r), torch.exp(1 - r / c), 1.0),
            "An empty corpus pays nothing with you. It is as short as can be: it gets 0.",
        ),
        Mistake(
            "never",
            lambda c, r: torch.ones_like(c / r),
            "Nobody pays. A candidate of one right word would have a precision of 1.",
        ),
    ),
    hints=(
        "For c = 8 and r = 10 the factor must be below 1, for c = 12 exactly 1.",
        "exp(1 - r/c) is below 1 where c < r. What is it where c > r?",
        "torch.exp(1 - reference_length / candidate_length).clamp(max=1.0).",
    ),
    differentiable=False,
)


# --- corpus_bleu -----------------------------------------------------------------------------


def corpus_bleu(matched, total, candidate_length, reference_length):
    precision = matched.sum(dim=0) / total.sum(dim=0).clamp(min=1)  # (n,), of the whole corpus
    mean = precision.log().mean().exp()  # geometric; log 0 is -inf, and exp makes 0 of that
    shortness = reference_length.sum() / candidate_length.sum()
    return mean * torch.exp(1 - shortness).clamp(max=1.0)


def _precision(matched, total, dim=0):
    return matched.sum(dim) / total.sum(dim).clamp(min=1)


def _unguarded(matched, total):
    return matched.sum(0) / total.sum(0)


def _geometric(precision):
    return precision.log().mean(-1).exp()


def _penalty(c, r):
    return torch.exp(1 - r / c).clamp(max=1.0)


def _corpus(
    matched,
    total,
    c,
    r,
    *,
    precision=_precision,
    mean=_geometric,
    penalty=lambda c, r: _penalty(c.sum(), r.sum()),
):
    return mean(precision(matched, total)) * penalty(c, r)


def _exact(matched, total, c, r):
    pairs = list(zip(matched.sum(0).tolist(), total.sum(0).tolist(), strict=True))
    if not all(right for right, _ in pairs):
        return torch.tensor(0.0)
    logs = [math.log(right / several) for right, several in pairs]
    return torch.tensor(
        brevity_penalty(c.sum().item(), r.sum().item()) * math.exp(sum(logs) / len(logs))
    )


def _corpus_case(matched, candidate_length, reference_length):
    """The totals follow from the lengths: a text of c tokens has c - n + 1 grams of n."""
    matched, c = torch.tensor(matched), torch.tensor(candidate_length)
    total = (c[:, None] - torch.arange(matched.shape[1])).clamp(min=0)
    return Case(
        matched=matched,
        total=total,
        candidate_length=c,
        reference_length=torch.tensor(reference_length),
    )


def _nan_where_nothing(mean):
    """A way to take the mean that gives NaN where a precision is 0: 0 · log 0 and the like."""
    return lambda precision: mean(precision) + 0 * precision.log().sum()


#: What is wrong in the mean or the penalty, by name; the totals may be guarded or not.
_BEHIND_THE_PRECISIONS = {
    "arithmetic": (
        dict(mean=lambda p: p.mean()),
        "You take the arithmetic mean, so right words make up for pairs that are all wrong. The geometric one: "
        "exp of the mean of logs.",
    ),
    "harmonic": (
        dict(mean=lambda p: 1 / (1 / p).mean()),
        "You take the harmonic mean. BLEU takes the geometric one: exp of the mean of logs.",
    ),
    "product": (
        dict(mean=lambda p: p.prod()),
        "You add up the logs without weights, or multiply the precisions: the score falls with every n that you "
        "look at. Each has the weight 1/N: the mean of the logs.",
    ),
    "last_precision": (
        dict(mean=lambda p: p[-1]),
        "You take the last precision alone. All orders count: exp of the mean of logs.",
    ),
    "no_exp": (
        dict(mean=lambda p: p.log().mean()),
        "You return the log of the mean. Take exp.",
    ),
    "no_penalty": (
        dict(penalty=lambda c, r: 1.0),
        "There is no brevity penalty: a few words that are right win.",
    ),
    "penalty_upside_down": (
        dict(
            penalty=lambda c, r: torch.where(
                c.sum() < r.sum(), torch.exp(1 - c.sum() / r.sum()), 1.0
            ),
        ),
        "The ratio in your brevity penalty is upside down: short texts get a factor above 1. 1 - r/c.",
    ),
    "penalty_of_the_long": (
        dict(penalty=lambda c, r: torch.exp(1 - c.sum() / r.sum()).clamp(max=1.0)),
        "Your brevity penalty punishes what is too long and lets the short go free. 1 - r/c.",
    ),
    "penalty_not_capped": (
        dict(penalty=lambda c, r: torch.exp(1 - r.sum() / c.sum())),
        "Your brevity penalty rewards what is too long. It is at most 1.",
    ),
    "mean_of_penalties": (
        dict(penalty=lambda c, r: _penalty(c, r).mean()),
        "You average the penalties of sentences, so a short one cannot be made up for by a long one. The lengths "
        "are those of the corpus: add them up first.",
    ),
    "plain_ratio": (
        dict(penalty=lambda c, r: (c.sum() / r.sum()).clamp(max=1.0)),
        "Your penalty is min(1, c/r). BLEU takes exp(1 - r/c), at most 1.",
    ),
}

_CORPUS_BLEU = Exercise(
    name="corpus_bleu",
    notebook=_NOTEBOOK,
    title="BLEU of a corpus, from counts",
    reference=_exact,
    solution=corpus_bleu,
    cases=(
        _corpus_case([[4, 2], [5, 4]], [5, 9], [8, 8]),
        _corpus_case([[3, 0], [2, 0]], [4, 3], [4, 4]),  # not one pair is right
        _corpus_case([[2, 1, 0], [2, 1, 0]], [2, 2], [3, 2]),  # and not one triple exists
        _corpus_case([[6, 4, 2], [9, 7, 5], [1, 0, 0]], [7, 12, 2], [7, 9, 3]),
        _corpus_case(
            [[9, 7, 5, 3], [5, 3, 1, 0], [4, 2, 1, 1], [8, 6, 5, 4]], [10, 7, 4, 9], [12, 8, 9, 8]
        ),
    ),
    mistakes=(
        Mistake(
            "mean_of_sentences",
            lambda m, t, c, r: (_geometric(m / t.clamp(min=1)) * _penalty(c, r)).mean(),
            "You average the BLEU of sentences. One sentence without a match of four counts as 0, whatever else is "
            "right in it. A corpus BLEU adds up counts first.",
        ),
        Mistake(
            "mean_of_sentences_nan",
            lambda m, t, c, r: (_geometric(m / t) * _penalty(c, r)).mean(),
            "You average the BLEU of sentences, and where one is too short for n tokens in a row, 0/0 is NaN. A corpus "
            "BLEU adds up counts first.",
        ),
        Mistake(
            "mean_of_precisions",
            partial(_corpus, precision=lambda m, t: (m / t.clamp(min=1)).mean(0)),
            "You average the precisions of sentences, so a word of a short one counts for more. Add up the counts, "
            "then divide.",
        ),
        Mistake(
            "mean_of_precisions_nan",
            partial(_corpus, precision=lambda m, t: (m / t).mean(0)),
            "You divide within each sentence, and where one is too short for n tokens in a row, 0/0 is NaN. Add up the "
            "counts, then divide.",
        ),
        Mistake(
            "no_grams",
            partial(_corpus, precision=_unguarded),
            "Where no text has n tokens in a row, your total is 0 and 0/0 is NaN. Such a precision is 0: "
            "total.clamp(min=1).",
        ),
        Mistake(
            "log_of_zero",
            partial(_corpus, mean=_nan_where_nothing(_geometric)),
            "Where a precision is 0, its log is minus infinity, and times 0, or minus itself, gives NaN. BLEU is 0.",
        ),
        Mistake(
            "zeros_left_out",
            partial(
                _corpus,
                mean=lambda p: torch.where(p > 0, p.clamp(min=1e-30).log(), 0.0).mean().exp(),
            ),
            "A precision of 0 counts as 1 in your mean, since its log was set to 0. A geometric mean has no mercy: "
            "BLEU is 0.",
        ),
        Mistake(
            "mean_of_the_others",
            partial(_corpus, mean=lambda p: p[p > 0].log().mean().exp()),
            "You leave out precisions of 0, as if nobody had asked. A geometric mean has no mercy: BLEU is 0.",
        ),
        Mistake(
            "smallest_allowed",
            partial(_corpus, precision=lambda m, t: _precision(m, t).clamp(min=1e-9)),
            "You put a small number in the place of a precision of 0. Its root of order N is not small: with N = 4, "
            "the fourth root of 1e-9 is 0.006. BLEU is 0 there.",
        ),
        Mistake(
            "plus_one",
            partial(_corpus, precision=lambda m, t: (m.sum(0) + 1) / (t.sum(0) + 1)),
            "You add 1 to the counts. That is a smoothed BLEU, which some use for single sentences, and its numbers "
            "compare with no other's. Leave the counts as they are.",
        ),
        *(
            Mistake(name, partial(_corpus, **wrong), says)
            for name, (wrong, says) in _BEHIND_THE_PRECISIONS.items()
        ),
        *(
            Mistake(
                f"{name}_and_no_grams",
                partial(_corpus, precision=_unguarded, **wrong),
                f"{says} And where no text has n tokens in a row, your 0/0 is NaN: total.clamp(min=1).",
            )
            for name, (wrong, says) in _BEHIND_THE_PRECISIONS.items()
        ),
        Mistake(
            "arithmetic_or_zero",
            partial(_corpus, mean=lambda p: p.mean() * (p > 0).all()),
            "Where a precision is 0 you return 0, which is right. Elsewhere you take the arithmetic mean. The geometric "
            "one: exp of the mean of logs.",
        ),
        Mistake(
            "first_precision",
            partial(_corpus, mean=lambda p: p[0]),
            "You take single words alone, and a shuffled sentence is as good as the right one. All orders count.",
        ),
        Mistake(
            "all_grams_alike",
            partial(_corpus, mean=lambda p: p, precision=lambda m, t: m.sum() / t.sum()),
            "You add up over the orders too, which makes one precision of all grams. Add up over sentences: dim=0.",
        ),
        Mistake(
            "percent",
            lambda *a: 100 * _exact(*a),
            "Right, times 100, as papers print it. Here BLEU goes from 0 to 1.",
        ),
    ),
    hints=(
        "What is added up before anything is divided?",
        "matched.sum(dim=0) / total.sum(dim=0).clamp(min=1): a precision for each n. Then exp of the mean of logs.",
        "Times torch.exp(1 - reference_length.sum() / candidate_length.sum()).clamp(max=1.0).",
    ),
    differentiable=False,
)


# --- bug hunts -------------------------------------------------------------------------------


def heated(logits, t):
    return torch.softmax(logits / t, dim=-1)  # the logits are divided


def _given_heated(logits, t):
    probabilities = torch.softmax(logits, dim=-1)
    hotter = probabilities / t
    return torch.softmax(hotter, dim=-1)


_HUNT_TEMPERATURE = Exercise(
    name="hunt_temperature",
    notebook=_NOTEBOOK,
    title="Bug hunt: too hot at every temperature",
    reference=lambda logits, t: temperature(logits, t).softmax(-1),
    solution=heated,
    cases=(
        Case(logits=torch.tensor([[2.0, 1.0, -1.0]]), t=1.0),
        Case(logits=_drawn(2, 5, seed=16), t=0.5),
        Case(logits=_drawn(4, 4, seed=17), t=3.0),
    ),
    mistakes=(
        Mistake(
            "undone",
            lambda z, t: torch.softmax(z, -1),
            "Now t changes nothing: what is divided by t and then by its sum is what it was. Where must the division "
            "stand?",
        ),
        Mistake(
            "not_normalised",
            lambda z, t: torch.softmax(z, -1) / t,
            "The second softmax is gone, and with it the sum of 1. Probabilities are the wrong thing to divide.",
        ),
        Mistake(
            "twice",
            lambda z, t: torch.softmax(torch.softmax(z / t, -1), -1),
            "The logits are divided now. But the second softmax is still there, and makes all tokens nearly alike.",
        ),
        Mistake(
            "divided_twice",
            lambda z, t: torch.softmax(torch.softmax(z / t, -1) / t, -1),
            "The logits are divided now. But the old division and the second softmax are still there.",
        ),
        Mistake(
            "multiplied",
            lambda z, t: torch.softmax(z * t, -1),
            "One softmax, of logits: right. But you multiply by t, so a high temperature makes the probable more "
            "probable.",
        ),
        Mistake(
            "probabilities_multiplied",
            lambda z, t: torch.softmax(torch.softmax(z, -1) * t, -1),
            "Whether probabilities are divided or multiplied: a second softmax of them makes all tokens nearly alike.",
        ),
        Mistake(
            "powers",
            lambda z, t: torch.softmax(z, -1) ** (1 / t),
            "Probabilities to the power of 1 / t have the right proportions. They no longer sum to 1.",
        ),
        Mistake(
            "logits",
            lambda z, t: z / t,
            "These are logits. One softmax is needed.",
        ),
        Mistake(
            "over_the_batch",
            lambda z, t: torch.softmax(z / t, 0),
            "The logits are divided now. But your softmax runs over the batch: dim=-1.",
        ),
    ),
    hints=(
        "At t = 1 a temperature changes nothing. What does this one do at t = 1?",
        "How large can the difference of two probabilities get, and what does a softmax make of it?",
        "Divide the logits by t and take one softmax.",
    ),
    given=_given_heated,
)


def nucleus(probabilities, p):
    ordered, order = probabilities.sort(descending=True)
    before = ordered.cumsum(dim=0) - ordered  # what the more probable ones have together
    kept = order[before < p]
    left = torch.zeros_like(probabilities)
    left[kept] = probabilities[kept]
    return left / left.sum()


def _given_nucleus(probabilities, p):
    ordered, order = probabilities.sort(descending=True)
    kept = order[ordered.cumsum(dim=0) <= p]
    left = torch.zeros_like(probabilities)
    left[kept] = probabilities[kept]
    return left / left.sum()


def _share(probabilities, kept):
    left = torch.where(kept, probabilities, 0.0)
    return left / left.sum()


def _nucleus(probabilities, p, **wrong):
    return _share(
        probabilities, _kept_of(probabilities, p, probabilities=lambda given: given, **wrong)
    )


def _table(*parts):
    return torch.tensor(parts) / sum(parts)


_HUNT_TOP_P = Exercise(
    name="hunt_top_p",
    notebook=_NOTEBOOK,
    title="Bug hunt: a nucleus that is too small",
    reference=lambda probabilities, p: _share(
        probabilities, top_p(probabilities.log(), p).isfinite()
    ),
    solution=nucleus,
    cases=(
        Case(probabilities=torch.tensor([0.1, 0.2, 0.5, 0.15, 0.05]), p=0.75),
        Case(probabilities=torch.tensor([0.1, 0.05, 0.65, 0.15, 0.05]), p=0.6),
        Case(probabilities=_table(4.0, 1.0, 9.0, 5.0, 2.0, 12.0, 3.0, 7.0), p=0.6),
    ),
    mistakes=(
        Mistake(
            "one_always",
            partial(_nucleus, keep=_and_the_first),
            "Now one token always stays, and nothing is NaN. But the tokens that stay still have less than p together.",
        ),
        Mistake(
            "one_too_many",
            partial(_nucleus, keep=_and_one_more),
            "They reach p now. But you keep one token more than it takes.",
        ),
        Mistake(
            "unsorted",
            lambda probabilities, p: _share(probabilities, _crossing_kept(probabilities, p)),
            "You add up unsorted probabilities: a token is kept because its number is small. Sort, as it was.",
        ),
        Mistake(
            "unsorted_and_too_small",
            lambda probabilities, p: _share(probabilities, _up_to(probabilities, p)),
            "You add up unsorted probabilities, and still drop the token that crosses p. Sort, as it was.",
        ),
        Mistake(
            "ascending",
            partial(_nucleus, descending=False),
            "The token that crosses p stays now. But you sort from the least probable on, and keep the tail.",
        ),
        Mistake(
            "ascending_and_too_small",
            partial(_nucleus, descending=False, keep=_up_to),
            "You sort from the least probable on, and keep the tail. The sorting was right: which token is dropped "
            "that should stay?",
        ),
        Mistake(
            "turned_around",
            partial(_nucleus, keep=lambda ordered, p: ordered.cumsum(-1) > p),
            "The comparison is turned around: now the probable tokens are dropped and the tail stays.",
        ),
        Mistake(
            "order_lost",
            partial(_nucleus, back=lambda kept, order: kept),
            "The mask is in sorted order, and the probabilities are not: it keeps other tokens than it was made for. "
            "order says which they are.",
        ),
        Mistake(
            "not_normalised",
            lambda probabilities, p: torch.where(
                _kept_of(probabilities, p, probabilities=lambda given: given), probabilities, 0.0
            ),
            "The right tokens stay. But their probabilities no longer sum to 1.",
        ),
        Mistake(
            "nothing_dropped",
            lambda probabilities, p: probabilities * 1,
            "Nothing is dropped any more.",
        ),
    ),
    hints=(
        "Ask for p = 0.75. How much do the tokens that stay have together? At least p is what was promised.",
        "Which token lifts the sum over p? Does it stay? What if the very first one does so?",
        "A token stays if those before it have less than p: order[ordered.cumsum(dim=0) - ordered < p].",
    ),
    given=_given_nucleus,
    # < for <= makes no difference: no sum here is p exactly
    given_says="The bug is still there: what stays has less than p together, with < as with <=.",
)


def one_step(sums, log_p, finished, length, eos_id):
    size, vocabulary = log_p.shape
    best, place = (sums[:, None] + log_p).flatten().topk(2 * size)
    ended = place % vocabulary == eos_id
    running = best[~ended][:size]  # what has ended does not go on
    scores = best[ended] / length  # a mean, to be compared with other lengths
    finished = torch.cat([finished, scores]).topk(size).values
    return torch.stack([running, finished])


def _given_one_step(sums, log_p, finished, length, eos_id):
    size, vocabulary = log_p.shape
    best, place = (sums[:, None] + log_p).flatten().topk(2 * size)
    ended = place % vocabulary == eos_id
    running = best[:size]
    scores = best[ended]
    finished = torch.cat([finished, scores]).topk(size).values
    return torch.stack([running, finished])


#: Symptom by what is done with the running and with those that end; "" is right.
_RUNNING = {
    "": "",
    "extended": "a sequence that has ended stays in the beam and is continued behind its end",
    "holes": "where one ends, its place stays empty, and the beam gets narrower; twice as many candidates are there "
    "to fill it",
    "means": "the running ones are divided by the length; the next step adds to them, so they must stay sums",
}
_DONE = {
    "": "",
    "sums": "a sum over all tokens is compared with means of shorter sequences, so the short win",
    "all divided": "those that were finished before are divided once more",
    "multiplied": "the sum is multiplied by the length, which punishes the long twice",
    "one less": "the sum is divided by length - 1, but the end is a token too",
    "all": "sequences that have not ended are put aside as finished",
}


def _a_step(sums, log_p, finished, length, eos_id, *, running, done):
    size, vocabulary = log_p.shape
    best, place = (sums[:, None] + log_p).flatten().topk(2 * size)
    ended = place % vocabulary == eos_id
    on = {
        "": lambda: best[~ended][:size],
        "extended": lambda: best[:size],
        "holes": lambda: best.masked_fill(ended, -torch.inf)[:size],
        "means": lambda: best[~ended][:size] / length,
    }[running]
    scores = {
        "": lambda: torch.cat([finished, best[ended] / length]),
        "sums": lambda: torch.cat([finished, best[ended]]),
        "all divided": lambda: torch.cat([finished, best[ended]]) / length,
        "multiplied": lambda: torch.cat([finished, best[ended] * length]),
        "one less": lambda: torch.cat([finished, best[ended] / (length - 1)]),
        "all": lambda: torch.cat([finished, best / length]),
    }[done]
    return torch.stack([on(), scores().topk(size).values])


def _probabilities(*rows):
    return torch.tensor(rows).log().round(decimals=2)


_HUNT_BEAM = Exercise(
    name="hunt_beam",
    notebook=_NOTEBOOK,
    title="Bug hunt: a beam that goes on after the end",
    reference=partial(_a_step, running="", done=""),
    solution=one_step,
    cases=(
        Case(
            sums=torch.tensor([-0.7, -0.9]),
            log_p=_probabilities([0.1, 0.15, 0.75], [0.55, 0.4, 0.05]),
            finished=torch.tensor([-0.5, -0.8]),
            length=4,
            eos_id=2,
        ),
        Case(  # two end, and only two ended before
            sums=torch.tensor([-2.0, -2.3, -2.9]),
            log_p=_probabilities(
                [0.05, 0.6, 0.2, 0.15], [0.1, 0.7, 0.15, 0.05], [0.3, 0.02, 0.5, 0.18]
            ),
            finished=torch.tensor([-0.45, -0.7, -torch.inf]),
            length=5,
            eos_id=1,
        ),
        Case(  # two end, and are worse than all before
            sums=torch.tensor([-1.0, -1.2, -1.4]),
            log_p=_probabilities(
                [0.5, 0.1, 0.25, 0.15], [0.4, 0.3, 0.18, 0.12], [0.15, 0.45, 0.28, 0.12]
            ),
            finished=torch.tensor([-0.2, -0.3, -0.35]),
            length=3,
            eos_id=0,
        ),
    ),
    mistakes=(
        *(
            Mistake(
                "left: " + ", ".join(one for one in (running, done) if one),
                partial(_a_step, running=running, done=done),
                _still(_RUNNING[running], _DONE[done]),
            )
            for running, done in product(_RUNNING, _DONE)
            if (running, done) not in (("", ""), ("extended", "sums"))
        ),
    ),
    hints=(
        "There are two bugs, one in each row of the result. What happens to a candidate whose last token is the end?",
        "It is put aside, and it stays in running as well. And finished holds means. What joins them?",
        "running = best[~ended][:size] and scores = best[ended] / length.",
    ),
    given=_given_one_step,
    given_says=_still(_RUNNING["extended"], _DONE["sums"]),
    differentiable=False,
)


def sentence_bleu(candidate, reference, max_n):
    mean = 0.0
    for n in range(1, max_n + 1):
        mine = Counter(tuple(candidate[i : i + n]) for i in range(len(candidate) - n + 1))
        theirs = Counter(tuple(reference[i : i + n]) for i in range(len(reference) - n + 1))
        matched = sum(min(count, theirs[gram]) for gram, count in mine.items())  # clipped
        mean += math.log(matched / mine.total()) / max_n
    c, r = len(candidate), len(reference)
    brevity = math.exp(1 - r / c) if c < r else 1.0
    return torch.tensor(brevity * math.exp(mean))


def _given_sentence_bleu(candidate, reference, max_n):
    mean = 0.0
    for n in range(1, max_n + 1):
        mine = Counter(tuple(candidate[i : i + n]) for i in range(len(candidate) - n + 1))
        theirs = Counter(tuple(reference[i : i + n]) for i in range(len(reference) - n + 1))
        matched = sum(count for gram, count in mine.items() if gram in theirs)
        mean += math.log(matched / mine.total()) / max_n
    c, r = len(candidate), len(reference)
    brevity = math.exp(1 - c / r) if c < r else 1.0
    return torch.tensor(brevity * math.exp(mean))


_COUNTS = {
    "": "",
    "unclipped": "a word that the candidate repeats is right each time, however often the reference has it",
    "once": "what both texts have twice is counted once",
    "recall": "the matches are divided by what the reference has, not by what the candidate has",
}
_LENGTHS = {
    "": "",
    "rewarded": "a text that is too short gets a factor above 1, and can score more than 1",
    "long": "a text that is too long pays, and one that is too short does not",
    "both": "a text that is too long is multiplied by more than 1",
    "none": "a text that is too short pays nothing",
    "ratio": "the penalty is c/r itself, which is milder than e to the power of 1 - r/c",
}


def _sentence(candidate, reference, max_n, *, counts, lengths):
    mean, (c, r) = 0.0, (len(candidate), len(reference))
    for n in range(1, max_n + 1):
        mine, theirs = (_words(text, n) for text in (candidate, reference))
        matched = {
            "": lambda mine, theirs: (mine & theirs).total(),
            "unclipped": lambda mine, theirs: sum(mine[gram] for gram in mine if gram in theirs),
            "once": lambda mine, theirs: len(mine & theirs),
            "recall": lambda mine, theirs: (mine & theirs).total(),
        }[counts](mine, theirs)
        total = theirs.total() if counts == "recall" else mine.total()
        mean += math.log(matched / total) / max_n
    factor = {
        "": min(1.0, math.exp(1 - r / c)),
        "rewarded": math.exp(1 - c / r) if c < r else 1.0,
        "long": min(1.0, math.exp(1 - c / r)),
        "both": math.exp(1 - r / c),
        "none": 1.0,
        "ratio": min(1.0, c / r),
    }[lengths]
    return torch.tensor(factor * math.exp(mean))


def _words(text, n):
    return Counter(tuple(text[i : i + n]) for i in range(len(text) - n + 1))


_HUNT_BLEU = Exercise(
    name="hunt_bleu",
    notebook=_NOTEBOOK,
    title="Bug hunt: a BLEU above 1",
    reference=lambda candidate, reference, max_n: torch.tensor(
        bleu([candidate], [[reference]], max_n)
    ),
    solution=sentence_bleu,
    cases=(
        Case(candidate=["the", "the", "cat"], reference=["the", "cat", "sat", "down"], max_n=1),
        Case(
            candidate="a dog and a dog and a cat and a cat".split(),
            reference="a dog and a big cat and a bird".split(),
            max_n=2,
        ),
        Case(
            candidate="she said that she said no".split(),
            reference="then she said that she would and he said no".split(),
            max_n=3,
        ),
    ),
    mistakes=(
        *(
            Mistake(
                "left: " + ", ".join(one for one in (counts, lengths) if one),
                partial(_sentence, counts=counts, lengths=lengths),
                _still(_COUNTS[counts], _LENGTHS[lengths]),
            )
            for counts, lengths in product(_COUNTS, _LENGTHS)
            if (counts, lengths) not in (("", ""), ("unclipped", "rewarded"))
        ),
    ),
    hints=(
        "Score 'the the the the' against 'the cat', then 'the cat' against 'the cat sat down', with max_n=1.",
        "How often may 'the' be right if the reference has it twice? And where is e to the power of 1 - c/r below 1?",
        "min(count, theirs[gram]), summed over all grams, and math.exp(1 - r / c).",
    ),
    given=_given_sentence_bleu,
    given_says=_still(_COUNTS["unclipped"], _LENGTHS["rewarded"]),
    differentiable=False,
)

EXERCISES = (
    _HUNT_TEMPERATURE,
    _HUNT_TOP_P,
    _HUNT_BEAM,
    _HUNT_BLEU,
    _TEMPERATURE,
    _TOP_K,
    _TOP_P,
    _BEST_FINISHED,
    _BEAM_STEP,
    _CLIPPED,
    _BREVITY,
    _CORPUS_BLEU,
)
