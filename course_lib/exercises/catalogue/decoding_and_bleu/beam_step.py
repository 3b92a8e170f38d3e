"""Exercise `beam_step` of notebook 09."""

from functools import partial

import torch

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.exercise import Case, Exercise, Mistake


def beam_step(scores, log_p, beam_size):
    total = scores[:, None] + log_p  # (rows, vocabulary): of each candidate
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
    """One candidate per row: a greedy step for each."""
    token = log_p.argmax(-1)
    parent = torch.arange(len(scores))
    return torch.stack([parent, token])[:, :beam_size]


def _best_of_each_sorted(scores, log_p, beam_size):
    best, token = (scores[:, None] + log_p).max(-1)
    parent = best.argsort(descending=True)[:beam_size]
    return torch.stack([parent, token[parent]])


def _best_of_each_topk(scores, log_p, beam_size):
    best, token = (scores[:, None] + log_p).max(-1)
    parent = best.topk(beam_size).indices  # raises if there are fewer rows
    return torch.stack([parent, token[parent]])


EXERCISE = Exercise(
    name="beam_step",
    notebook="09_decoding_and_bleu",
    title="One step of beam search",
    reference=_beam_step,
    solution=beam_step,
    cases=(
        Case(
            scores=torch.tensor([-1.0, -4.0]),
            log_p=torch.tensor([[-3.0, -4.0, -7.0], [-9.0, -5.0, -2.0]]),
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
            "You forget the scores so far: an improbable prefix counts as much as a probable one. Add scores[:, None].",
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
            "You multiply log-probabilities. The product of two negative numbers is positive, so the worst wins. Add them.",
        ),
        Mistake(
            "subtracted",
            partial(_beam_step, total=lambda scores, log_p: log_p - scores[:, None]),
            "You subtract the scores so far, so improbable prefixes win. Add them.",
        ),
        Mistake(
            "scores_along_the_vocabulary",
            partial(_beam_step, total=lambda scores, log_p: scores + log_p),
            "Your scores are added along the vocabulary: one per token instead of one per row. No error is raised if "
            "there are as many rows as tokens. scores[:, None].",
        ),
        Mistake(
            "exchanged",
            partial(
                _beam_step,
                split=lambda best, rows, vocabulary: [best % vocabulary, best // vocabulary],
            ),
            "Parents and tokens are exchanged. Index i of the flattened tensor is row i // vocabulary, token "
            "i % vocabulary; the parents come first.",
        ),
        Mistake(
            "divided_by_the_beam",
            partial(_beam_step, split=lambda best, rows, vocabulary: [best // rows, best % rows]),
            "You divide by the number of rows. Each row of the flattened tensor has as many elements as the vocabulary: "
            "best // vocabulary and best % vocabulary.",
        ),
        Mistake(
            "divided_by_the_beam_and_exchanged",
            partial(_beam_step, split=lambda best, rows, vocabulary: [best % rows, best // rows]),
            "You divide by the number of rows, as if the tensor were flattened column by column. flatten goes row by "
            "row: best // vocabulary and best % vocabulary.",
        ),
        Mistake(
            "flattened_along_columns",
            partial(_beam_step, flat=lambda total: total.T.flatten()),
            "You transpose before flattening, and then compute row and token as if you had not. Leave total as it is, "
            "(rows, vocabulary).",
        ),
        Mistake(
            "best_of_each",
            _best_of_each,
            "You extend each row by its own best token. That is greedy search several times: no hypothesis is ever "
            "dropped. Flatten, and take the best of all together.",
        ),
        Mistake(
            "best_of_each_sorted",
            _best_of_each_sorted,
            "You extend each row by its own best token, the best first. Several candidates may extend one row, and none "
            "another. Flatten, and take the best of all together.",
        ),
        Mistake(
            "only_the_best",
            lambda scores, log_p, beam_size: torch.stack(
                [
                    scores.argmax().expand(beam_size),
                    log_p[scores.argmax()].topk(beam_size).indices,
                ]
            ),
            "You extend the best row only. A candidate of another row may be better. Flatten, and take the best of all "
            "together.",
        ),
        Mistake(
            "worst",
            partial(_beam_step, largest=False),
            "You take the least probable. Log-probabilities are negative: the best is the one closest to 0.",
        ),
        Mistake(
            "worst_first",
            lambda *a: _beam_step(*a).flip(1),
            "The right candidates in the wrong order: the best comes first, as topk returns them.",
        ),
        Mistake(
            "pairs",
            lambda *a: _beam_step(*a).T,
            "You return pairs, (beam, 2). Parents in one row and tokens in the other: (2, beam).",
        ),
        Mistake(
            "divided_by_the_beam_size",
            lambda scores, log_p, beam_size: _beam_step(
                scores,
                log_p,
                beam_size,
                split=lambda best, rows, vocabulary: [best // beam_size, best % beam_size],
            ),
            "You divide by the beam size. Each row of the flattened tensor has as many elements as the vocabulary: "
            "best // vocabulary and best % vocabulary.",
        ),
        Mistake(
            "each_row",
            lambda scores, log_p, beam_size: (
                (scores[:, None] + log_p).topk(min(beam_size, log_p.shape[1])).indices
            ),
            "You take the best tokens of each row, (rows, beam_size). Flatten, and take the best of all rows together; then "
            "compute parents and tokens.",
        ),
        Mistake(
            "by_parent",
            lambda *a: (out := _beam_step(*a))[:, out[0].argsort(stable=True)],
            "The right candidates, sorted by parent. The best comes first, as topk returns them.",
        ),
        Mistake(
            "flat_indices",
            lambda scores, log_p, beam_size: (
                (scores[:, None] + log_p).flatten().topk(beam_size).indices
            ),
            "These are indices of the flattened tensor. Compute from them the parents, best // vocabulary, and the tokens, "
            "best % vocabulary.",
        ),
        Mistake(
            "values",
            lambda scores, log_p, beam_size: (
                (scores[:, None] + log_p).flatten().topk(beam_size).values
            ),
            "These are the scores of the best candidates. Return which row each one extends, and with which token.",
        ),
        Mistake(
            "tokens_are_flat_indices",
            partial(_beam_step, split=lambda best, rows, vocabulary: [best // vocabulary, best]),
            "The parents are right, but your tokens are indices of the flattened tensor: best % vocabulary.",
        ),
        Mistake(
            "parents_are_flat_indices",
            partial(_beam_step, split=lambda best, rows, vocabulary: [best, best % vocabulary]),
            "The tokens are right, but your parents are indices of the flattened tensor: best // vocabulary.",
        ),
        Mistake(
            "best_of_each_topk",
            _best_of_each_topk,
            "You extend each row by its own best token, the best first. Several candidates may extend one row, and in the first "
            "step, with one row, all do. Flatten, and take the best of all together.",
        ),
    ),
    hints=(
        "What is the log-probability of each row extended by each token? Which shape do they have together?",
        "(scores[:, None] + log_p).flatten().topk(beam_size).indices are indices of a flattened tensor. How long is a row?",
        "best // vocabulary is the parent, best % vocabulary the token.",
    ),
    differentiable=False,
)
