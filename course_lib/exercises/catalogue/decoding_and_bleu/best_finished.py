"""Exercise `best_finished` of notebook 09."""

from functools import partial

import torch

from course_lib.exercises.exercise import Case, Exercise, Mistake


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


def _hypotheses_case(batch, several, *, alpha, seed):
    """A random case: longer hypotheses have smaller sums, and at least two in each row are finished."""
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


EXERCISE = Exercise(
    name="best_finished",
    notebook="09_decoding_and_bleu",
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
        _hypotheses_case(4, 6, alpha=0.0, seed=0),
        _hypotheses_case(4, 6, alpha=1.0, seed=125),
        _hypotheses_case(6, 6, alpha=0.6, seed=68),
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
