"""Exercise `corpus_bleu` of notebook 09."""

import math
from functools import partial

import torch

from course_lib.bleu import brevity_penalty
from course_lib.exercises.exercise import Case, Exercise, Mistake


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


def _reference(matched, total, c, r):
    pairs = list(zip(matched.sum(0).tolist(), total.sum(0).tolist(), strict=True))
    if not all(right for right, _ in pairs):
        return torch.tensor(0.0)
    logs = [math.log(right / several) for right, several in pairs]
    return torch.tensor(
        brevity_penalty(c.sum().item(), r.sum().item()) * math.exp(sum(logs) / len(logs))
    )


def _corpus_case(matched, candidate_length, reference_length):
    """The totals follow from the lengths: a text of c tokens has c - n + 1 n-grams."""
    matched, c = torch.tensor(matched), torch.tensor(candidate_length)
    total = (c[:, None] - torch.arange(matched.shape[1])).clamp(min=0)
    return Case(
        matched=matched,
        total=total,
        candidate_length=c,
        reference_length=torch.tensor(reference_length),
    )


def _nan_where_zero(mean):
    """The same mean, but NaN where a precision is 0, as 0 · log 0 gives."""
    return lambda precision: mean(precision) + 0 * precision.log().sum()


#: What is wrong in the mean or the penalty, by name; the totals may be guarded or not.
_WRONG_MEANS_AND_PENALTIES = {
    "arithmetic": (
        dict(mean=lambda p: p.mean()),
        "You take the arithmetic mean, so many matching words make up for n-grams that never match. BLEU takes the "
        "geometric one: exp of the mean of logs.",
    ),
    "harmonic": (
        dict(mean=lambda p: 1 / (1 / p).mean()),
        "You take the harmonic mean. BLEU takes the geometric one: exp of the mean of logs.",
    ),
    "product": (
        dict(mean=lambda p: p.prod()),
        "You add up the logs without weights, or multiply the precisions: the score falls with every order that "
        "is added. Each has the weight 1/N: the mean of the logs.",
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
        "The brevity penalty is missing: a few matching words get a perfect score.",
    ),
    "penalty_upside_down": (
        dict(
            penalty=lambda c, r: torch.where(
                c.sum() < r.sum(), torch.exp(1 - c.sum() / r.sum()), 1.0
            ),
        ),
        "The ratio in your brevity penalty is upside down: short candidates get a factor above 1. 1 - r/c.",
    ),
    "penalty_of_the_long": (
        dict(penalty=lambda c, r: torch.exp(1 - c.sum() / r.sum()).clamp(max=1.0)),
        "Your brevity penalty penalises long candidates and not short ones. 1 - r/c.",
    ),
    "penalty_not_capped": (
        dict(penalty=lambda c, r: torch.exp(1 - r.sum() / c.sum())),
        "Your brevity penalty rewards long candidates. It is at most 1.",
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

EXERCISE = Exercise(
    name="corpus_bleu",
    notebook="09_decoding_and_bleu",
    title="BLEU of a corpus, from counts",
    reference=_reference,
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
            "You average the BLEU of sentences. A sentence without a matching 4-gram counts as 0, whatever else is right "
            "in it. Corpus BLEU adds up counts first.",
        ),
        Mistake(
            "mean_of_sentences_nan",
            lambda m, t, c, r: (_geometric(m / t) * _penalty(c, r)).mean(),
            "You average the BLEU of sentences, and where one has no n-gram, 0/0 is NaN. Corpus BLEU adds up counts "
            "first.",
        ),
        Mistake(
            "mean_of_precisions",
            partial(_corpus, precision=lambda m, t: (m / t.clamp(min=1)).mean(0)),
            "You average the precisions of sentences, so a word of a short sentence counts more. Add up the counts, then "
            "divide.",
        ),
        Mistake(
            "mean_of_precisions_nan",
            partial(_corpus, precision=lambda m, t: (m / t).mean(0)),
            "You divide within each sentence, and where one has no n-gram, 0/0 is NaN. Add up the counts, then divide.",
        ),
        Mistake(
            "no_grams",
            partial(_corpus, precision=_unguarded),
            "Where no candidate has an n-gram of some order, the total is 0 and 0/0 is NaN. Such a precision is 0: "
            "total.clamp(min=1).",
        ),
        Mistake(
            "log_of_zero",
            partial(_corpus, mean=_nan_where_zero(_geometric)),
            "Where a precision is 0, its log is minus infinity, and times 0, or minus itself, gives NaN. BLEU is 0.",
        ),
        Mistake(
            "zeros_left_out",
            partial(
                _corpus,
                mean=lambda p: torch.where(p > 0, p.clamp(min=1e-30).log(), 0.0).mean().exp(),
            ),
            "A precision of 0 counts as 1 in your mean, since its log was set to 0. The geometric mean with a factor of 0 "
            "is 0.",
        ),
        Mistake(
            "mean_of_the_others",
            partial(_corpus, mean=lambda p: p[p > 0].log().mean().exp()),
            "You leave out precisions of 0, although the geometric mean of precisions with a 0 is 0: BLEU is 0.",
        ),
        Mistake(
            "smallest_allowed",
            partial(_corpus, precision=lambda m, t: _precision(m, t).clamp(min=1e-9)),
            "You replace a precision of 0 by a small number. Its root of order N is not small: with N = 4, "
            "the fourth root of 1e-9 is 0.006. BLEU is 0 there.",
        ),
        Mistake(
            "plus_one",
            partial(_corpus, precision=lambda m, t: (m.sum(0) + 1) / (t.sum(0) + 1)),
            "You add 1 to the counts. That is a smoothed BLEU, which some use for single sentences, and its "
            "scores cannot be compared with others. Leave the counts as they are.",
        ),
        *(
            Mistake(name, partial(_corpus, **wrong), says)
            for name, (wrong, says) in _WRONG_MEANS_AND_PENALTIES.items()
        ),
        *(
            Mistake(
                f"{name}_and_no_grams",
                partial(_corpus, precision=_unguarded, **wrong),
                f"{says} And where no candidate has an n-gram of some order, 0/0 is NaN: total.clamp(min=1).",
            )
            for name, (wrong, says) in _WRONG_MEANS_AND_PENALTIES.items()
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
            "You use single words only, so a shuffled sentence scores like the right one. All orders count.",
        ),
        Mistake(
            "all_grams_alike",
            partial(_corpus, mean=lambda p: p, precision=lambda m, t: m.sum() / t.sum()),
            "You add up over the orders too, which makes one precision of all grams. Add up over sentences: dim=0.",
        ),
        Mistake(
            "percent",
            lambda *a: 100 * _reference(*a),
            "Right, times 100, as papers report it. Here BLEU is from 0 to 1.",
        ),
        Mistake(
            "of_each_sentence",
            partial(_corpus, precision=lambda m, t: _precision(m, t, dim=1)),
            "You add up over the orders, which makes a precision of each sentence. Add up over the sentences, dim=0: a precision "
            "of each order.",
        ),
        Mistake(
            "always_four",
            partial(_corpus, mean=lambda p: (p.log().sum() / 4).exp()),
            "You always divide the sum of the logs by 4. The weight is 1/N, and N is the number of columns.",
        ),
        Mistake(
            "mean_ratio",
            partial(_corpus, penalty=lambda c, r: torch.exp(1 - (r / c).mean()).clamp(max=1.0)),
            "You average the ratios of lengths over the sentences. The lengths are those of the corpus: add them up first.",
        ),
        Mistake(
            "orders_without_grams_left_out",
            lambda m, t, c, r: _corpus(m[:, t.sum(0) > 0], t[:, t.sum(0) > 0], c, r),
            "You leave out the orders without any n-gram. Here their precision is 0, and so is BLEU. (sacreBLEU can leave them "
            "out: eff:yes.)",
        ),
        Mistake(
            "one_element",
            lambda *a: _reference(*a).reshape(1),
            "Right, but in a tensor of one element. Return a number: a tensor of shape ().",
        ),
        Mistake(
            "weights_by_order",
            partial(_corpus, mean=lambda p: (p.log() / torch.arange(1, len(p) + 1)).sum().exp()),
            "Order n has the weight 1/n in your mean. All orders have the same weight: 1/N.",
        ),
        Mistake(
            "total_by_matched",
            partial(_corpus, precision=lambda m, t: t.sum(0) / m.sum(0).clamp(min=1)),
            "You divide the totals by the matches. A precision is matched / total.",
        ),
        Mistake(
            "no_exp_in_the_penalty",
            partial(_corpus, penalty=lambda c, r: (1 - r.sum() / c.sum()).clamp(max=1.0)),
            "Your penalty lacks the exponential: exp(1 - r/c), at most 1.",
        ),
        Mistake(
            "mean_of_precisions_no_penalty",
            partial(
                _corpus,
                precision=lambda m, t: (m / t.clamp(min=1)).mean(0),
                penalty=lambda c, r: 1.0,
            ),
            "Two things are wrong: you average the precisions of sentences instead of adding up the counts, and the brevity "
            "penalty is missing.",
        ),
        Mistake(
            "smallest_penalty",
            partial(_corpus, penalty=lambda c, r: _penalty(c, r).min()),
            "Your penalty is that of the sentence that is too short most. The lengths are those of the corpus: add them up first.",
        ),
    ),
    hints=(
        "What is added up before anything is divided?",
        "matched.sum(dim=0) / total.sum(dim=0).clamp(min=1): a precision for each n. Then exp of the mean of logs.",
        "Times torch.exp(1 - reference_length.sum() / candidate_length.sum()).clamp(max=1.0).",
    ),
    differentiable=False,
)
