"""Exercise `beam_step` of notebook 09."""

from functools import partial

import torch

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.exercise import Case, Exercise, Mistake


def beam_step(scores, log_p, beam_size):
    total = scores[:, None] + log_p  # (rows, vocabulary): a log-probability for each continuation
    best = total.flatten().topk(beam_size).indices  # of all rows together
    vocabulary = log_p.shape[1]
    return torch.stack([best // vocabulary, best % vocabulary])  # parents, tokens


def _random_log_p(*shape, seed):
    return torch.log_softmax(2 * random_tensor(*shape, seed=seed), dim=-1)


def _beam_step(
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
    """One continuation per row: a greedy step for each."""
    token = log_p.argmax(-1)
    parent = torch.arange(len(scores))
    return torch.stack([parent, token])[:, :beam_size]


def _best_of_each_sorted(scores, log_p, beam_size):
    best, token = (scores[:, None] + log_p).max(-1)
    parent = best.argsort(descending=True)[:beam_size]
    return torch.stack([parent, token[parent]])


EXERCISE = Exercise(
    name="beam_step",
    notebook="09_decoding_and_bleu",
    title="One step of beam search",
    reference=_beam_step,
    solution=beam_step,
    cases=(
        Case(
            scores=torch.tensor([-0.4, -1.6]),
            log_p=torch.tensor([[0.35, 0.4, 0.25], [0.05, 0.1, 0.85]]).log().round(decimals=2),
            beam_size=2,
        ),
        # the first step
        Case(scores=torch.zeros(1), log_p=_random_log_p(1, 8, seed=9), beam_size=3),
        Case(scores=_random_log_p(3, seed=10), log_p=_random_log_p(3, 5, seed=11), beam_size=3),
        Case(scores=_random_log_p(5, seed=12), log_p=_random_log_p(5, 5, seed=13), beam_size=5),
        Case(scores=_random_log_p(4, seed=14), log_p=_random_log_p(4, 7, seed=15), beam_size=4),
    ),
    mistakes=(
        Mistake(
            "forgets_the_scores",
            partial(_beam_step, total=lambda scores, log_p: log_p),
            "You forget the scores so far: a beginning that was improbable is continued as if it were the best. Add "
            "scores[:, None].",
        ),
        Mistake(
            "probabilities_added",
            partial(_beam_step, total=lambda scores, log_p: scores.exp()[:, None] + log_p.exp()),
            "You add probabilities. They are multiplied, and logs are added: scores[:, None] + log_p.",
        ),
        Mistake(
            "mixed",
            partial(_beam_step, total=lambda scores, log_p: scores[:, None] + log_p.exp()),
            "You add a probability to a log-probability. Both are logs already: scores[:, None] + log_p.",
        ),
        Mistake(
            "logs_multiplied",
            partial(_beam_step, total=lambda scores, log_p: scores[:, None] * log_p),
            "You multiply log-probabilities. Two negative numbers give a positive one, so the worst wins. Add them.",
        ),
        Mistake(
            "subtracted",
            partial(_beam_step, total=lambda scores, log_p: log_p - scores[:, None]),
            "You subtract the scores so far, so improbable beginnings win. Add them.",
        ),
        Mistake(
            "scores_along_the_vocabulary",
            partial(_beam_step, total=lambda scores, log_p: scores + log_p),
            "Your scores lie along the vocabulary: each token gets one, not each beginning. Nothing raises where there "
            "are as many beginnings as tokens. scores[:, None].",
        ),
        Mistake(
            "exchanged",
            partial(
                _beam_step,
                split=lambda best, rows, vocabulary: [best % vocabulary, best // vocabulary],
            ),
            "Parents and tokens have changed places. Place i of the flat list is row i // vocabulary, token "
            "i % vocabulary; the parents come first.",
        ),
        Mistake(
            "divided_by_the_beam",
            partial(_beam_step, split=lambda best, rows, vocabulary: [best // rows, best % rows]),
            "You divide by the number of beginnings. Each row of the flat list is a vocabulary long: best // "
            "vocabulary and best % vocabulary.",
        ),
        Mistake(
            "divided_by_the_beam_and_exchanged",
            partial(_beam_step, split=lambda best, rows, vocabulary: [best % rows, best // rows]),
            "You divide by the number of beginnings, as if the list were flattened along its columns. flatten goes "
            "row by row, and each row is a vocabulary long: best // vocabulary and best % vocabulary.",
        ),
        Mistake(
            "flattened_along_columns",
            partial(_beam_step, flat=lambda total: total.T.flatten()),
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
            partial(_beam_step, largest=False),
            "You take the least probable. Log-probabilities are negative: the best is nearest to 0.",
        ),
        Mistake(
            "worst_first",
            lambda *a: _beam_step(*a).flip(1),
            "The right ones, the worst first. The best comes first, as topk gives them.",
        ),
        Mistake(
            "pairs",
            lambda *a: _beam_step(*a).T,
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
