"""One step of beam search."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor


def beam_step(scores, log_p, beam_size):
    total = scores[:, None] + log_p  # (rows, vocabulary): of each candidate
    best = total.flatten().topk(beam_size).indices  # of all rows together
    vocabulary = log_p.shape[1]
    return torch.stack([best // vocabulary, best % vocabulary])  # parents, tokens


def _random_log_p(*shape, seed):
    return torch.log_softmax(2 * random_tensor(*shape, seed=seed), dim=-1)


BEST = "total.flatten().topk(beam_size).indices"
STEP = "[best // vocabulary, best % vocabulary]"
MISTAKES = rf"""
scores[:, None] + log_p -> log_p
    You forget the scores so far: an improbable prefix counts as much as a probable one. Add scores[:, None].
scores[:, None] + log_p -> scores.exp()[:, None] + log_p.exp()
    You add probabilities. They are multiplied, and logs are added: scores[:, None] + log_p.
scores[:, None] + log_p -> scores[:, None] + log_p.exp()
scores[:, None] + log_p -> scores.exp()[:, None] + log_p
    You add a probability to a log-probability. Both are logs already: scores[:, None] + log_p.
scores[:, None] + log_p -> scores[:, None] * log_p
    You multiply log-probabilities. The product of two negative numbers is positive, so the worst wins. Add them.
scores[:, None] + log_p -> log_p - scores[:, None]
    You subtract the scores so far, so improbable prefixes win. Add them.
scores[:, None] + log_p -> scores[:, None] - log_p
    You subtract the log-probabilities of the tokens, so improbable tokens win. Add them.
scores[:, None] + log_p -> scores + log_p
scores[:, None] + log_p -> log_p + scores
    Your scores are added along the vocabulary: one per token instead of one per row. No error is raised if there are
    as many rows as tokens. scores[:, None].
{STEP} -> [best % vocabulary, best // vocabulary]
    Parents and tokens are exchanged. Index i of the flattened tensor is row i // vocabulary, token i % vocabulary;
    the parents come first.
log_p.shape[1] -> log_p.shape[0]
    You divide by the number of rows. Each row of the flattened tensor has as many elements as the vocabulary: best //
    vocabulary and best % vocabulary.
log_p.shape[1] -> log_p.shape[0]
+ {STEP} -> [best % vocabulary, best // vocabulary]
    You divide by the number of rows, as if the tensor were flattened column by column. flatten goes row by row: best
    // vocabulary and best % vocabulary.
log_p.shape[1] -> beam_size
    You divide by the beam size. Each row of the flattened tensor has as many elements as the vocabulary: best //
    vocabulary and best % vocabulary.
total.flatten() -> total.T.flatten()
    You transpose before flattening, and then compute row and token as if you had not. Leave total as it is, (rows,
    vocabulary).
torch.stack({STEP}) -> torch.stack([torch.arange(len(log_p)), log_p.argmax(-1)])[:, :beam_size]
    You extend each row by its own best token. That is greedy search several times: no hypothesis is ever dropped.
    Flatten, and take the best of all together.
{BEST} -> total.amax(-1).argsort(descending=True)[:beam_size]
+ {STEP} -> [best, total.argmax(-1)[best]]
    You extend each row by its own best token, the best first. Several candidates may extend one row, and none
    another. Flatten, and take the best of all together.
{BEST} -> total.amax(-1).topk(beam_size).indices
+ {STEP} -> [best, total.argmax(-1)[best]]
    You extend each row by its own best token, the best first. Several candidates may extend one row, and in the first
    step, with one row, all do. Flatten, and take the best of all together.
{BEST} -> total[0].topk(beam_size).indices
    All your candidates extend the first row. Where topk has chosen within each row, its first beam_size results are
    those of row 0. Flatten total before topk, so that the candidates of all rows compete.
{BEST} -> total[scores.argmax()].topk(beam_size).indices
+ {STEP} -> [scores.argmax().expand(beam_size), best]
    You extend the best row only. A candidate of another row may be better. Flatten, and take the best of all
    together.
topk(beam_size) -> topk(beam_size, largest=False)
    You take the least probable. Log-probabilities are negative: the best is the one closest to 0.
{BEST} -> {BEST}.flip(0)
    The right candidates in the wrong order: the best comes first, as topk returns them.
{BEST} -> {BEST}.sort().values
{BEST} -> {BEST}\nbest = best[(best // log_p.shape[1]).argsort(stable=True)]
    The right candidates, sorted by parent. The best comes first, as topk returns them.
topk(beam_size) -> topk(len(scores))
    You return as many candidates as there are rows. Return beam_size: in the first step there is one row only.
{STEP} -> {STEP}, dim=1
    You return pairs, (beam, 2). Parents in one row and tokens in the other: (2, beam).
torch.stack({STEP}) -> torch.cat({STEP})
    torch.cat appends the tokens to the parents, (2 · beam,). torch.stack puts them below each other, (2, beam).
{BEST} -> total.topk(beam_size).indices
+ torch.stack({STEP}) -> best
    You take the best tokens of each row, (rows, beam_size). Flatten, and take the best of all rows together; then
    compute parents and tokens.
{BEST} -> total.topk(beam_size).indices
    Without flatten, topk chooses within each row, (rows, beam_size). Flatten first, so that the candidates of all
    rows compete.
torch.stack({STEP}) -> best
    These are indices of the flattened tensor. Compute from them the parents, best // vocabulary, and the tokens, best
    % vocabulary.
{BEST} -> total.flatten().topk(beam_size).values
+ torch.stack({STEP}) -> best
    These are the scores of the best candidates. Return which row each one extends, and with which token.
{BEST} -> total.flatten().topk(beam_size).values
    You compute rows and tokens from the scores of the best candidates. Compute them from topk's indices.
best % vocabulary -> best
    The parents are right, but your tokens are indices of the flattened tensor: best % vocabulary.
best // vocabulary -> best
    The tokens are right, but your parents are indices of the flattened tensor: best // vocabulary.
best // vocabulary -> best / vocabulary
    / gives fractions of rows. The number of the row is the whole part: best // vocabulary.
"""

CASES = (
    dict(
        scores=torch.tensor([-1.0, -4.0]),
        log_p=torch.tensor([[-3.0, -4.0, -7.0], [-9.0, -5.0, -2.0]]),
        beam_size=2,
    ),
    # the first step
    dict(scores=torch.zeros(1), log_p=_random_log_p(1, 8, seed=9), beam_size=3),
    dict(scores=_random_log_p(3, seed=10), log_p=_random_log_p(3, 5, seed=11), beam_size=3),
    dict(scores=_random_log_p(5, seed=12), log_p=_random_log_p(5, 5, seed=13), beam_size=5),
    dict(scores=_random_log_p(4, seed=14), log_p=_random_log_p(4, 7, seed=15), beam_size=4),
)
HINTS = """
What is the log-probability of each row extended by each token? Which shape do they have together?
(scores[:, None] + log_p).flatten().topk(beam_size).indices are indices of a flattened tensor. How long is a row?
best // vocabulary is the parent, best % vocabulary the token.
"""
DIFFERENTIABLE = False
