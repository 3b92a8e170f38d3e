"""The brevity penalty of several systems."""

import torch

from course_lib.topics.bleu import brevity_penalty


def brevity(candidate_length, reference_length):
    penalty = torch.exp(1 - reference_length / candidate_length)
    return penalty.clamp(max=1.0)  # no reward for being longer


def reference(c, r):
    return torch.tensor(
        [brevity_penalty(*pair) for pair in zip(c.tolist(), r.tolist(), strict=True)]
    )


C, R = "candidate_length", "reference_length"
CAPPED = "penalty.clamp(max=1.0)"
MISTAKES = rf"""
{R} / {C} -> {C} / {R}
+ max=1.0 -> min=1.0
    Your ratio is upside down: for a short candidate 1 - c/r is positive, so being short is rewarded with a factor
    above 1. The exponent is 1 - r/c.
{R} / {C} -> {C} / {R}
    Your ratio is upside down: short candidates are not penalised, and long ones are. The exponent is 1 - r/c.
{R} / {C} -> {C} / {R}
+ {CAPPED} -> penalty
    Your ratio is upside down, and nothing caps the factor at 1: the shorter, the better. It is exp(1 - r/c), and at
    most 1.
{CAPPED} -> penalty
    You have no limit at 1, so a candidate longer than its references is rewarded. Use .clamp(max=1.0).
1 - {R} / {C} -> -(1 - {R} / {C}).abs()
{R} / {C} -> torch.maximum({C}, {R}) / torch.minimum({C}, {R})
    You penalise long candidates as well. Their precision is lower already; for c >= r the factor is 1.
max=1.0 -> min=1.0
    Your factor is at least 1: long candidates get more than 1, and short ones are not penalised. It must be at most
    1: .clamp(max=1.0).
torch.exp(1 - {R} / {C}) -> {C} / {R}
    You take min(1, c/r). That is a penalty too, and a milder one. BLEU takes exp(1 - r/c).
torch.exp(1 - {R} / {C}) -> {R} / {C}
    You take min(1, r/c), which penalises long candidates. BLEU takes exp(1 - r/c), at most 1.
1 - {R} / {C} -> -{R} / {C}
    The 1 is missing. At equal lengths the exponent must be 0: 1 - r/c.
1 - {R} / {C} -> -{R} / {C}
+ {CAPPED} -> torch.where({C} < {R}, penalty, 1.0)
    The 1 is missing. Near equal lengths your factor jumps from 1 to 0.37. The exponent is 1 - r/c.
torch.exp(1 - {R} / {C}) -> 1 - {R} / {C}
    The exponential is missing: your factor is 0 at equal lengths, and negative below.
1 - {R} / {C} -> {C} - {R}
1 - {R} / {C} -> 1 - ({R} - {C})
    Your exponent is a difference of lengths, so one word in a thousand costs as much as one in two. Take
    their ratio: 1 - r/c.
1 - {R} / {C} -> {C} / {R} - 1
    You divide the missing words by the length of the reference: exp(c/r - 1). BLEU divides them by the length of the
    candidate, so an empty one gets 0: exp(1 - r/c).
{R} / {C} -> {R} / {C}.clamp(min=1)
    You count an empty candidate as one token, so it gets exp(1 - r) instead of 0. A tensor may be divided by 0: r/0
    is infinity, and exp of minus infinity is 0.
{R} / {C} -> {R} / ({C} + 1)
    You add 1 to the length of the candidate. A tensor may be divided by 0: r/0 is infinity, and exp of minus infinity
    is 0.
{CAPPED} -> {CAPPED}.where({C} > 0, 1.0)
    An empty candidate is not penalised. Its factor is 0.
{CAPPED} -> torch.ones_like(penalty)
    Your factor is always 1, so a candidate of one right word would score 1. BLEU takes exp(1 - r/c), at most 1.
1 - {R} / {C} -> {R} / {C} - 1
    The sign of your exponent is wrong: short candidates are not penalised, and long ones are. 1 - r/c.
1 - {R} / {C} -> 1 - {R} // {C}.clamp(min=1)
+ {CAPPED} -> {CAPPED}.where({C} > 0, 0.0)
{R} / {C} -> torch.floor({R} / {C})
    You drop the fraction of r/c, so a candidate a little too short is not penalised at all. Divide with /, and do not
    round.
{R} / {C} -> {R} // {C}
    // divides whole numbers, and by 0 it raises an error. r / c gives infinity, and exp of minus infinity is 0.
{CAPPED} -> ({C} >= {R}).float()
{CAPPED} -> ({C} > {R}).float()
    Your factor is 0 for every short candidate. It falls gradually: exp(1 - r/c).
torch.exp(1 - {R} / {C}) -> 10 ** (1 - {R} / {C})
    You take powers of 10. BLEU takes powers of e: torch.exp(1 - r/c).
torch.exp(1 - {R} / {C}) -> 2 ** (1 - {R} / {C})
    You take powers of 2. BLEU takes powers of e: torch.exp(1 - r/c).
{R} / {C} -> {R}.sum() / {C}.sum()
    You add up the lengths of all systems and return one factor. Each system has its own; the lengths are those of a
    corpus already.
{R} / {C} -> {R}.sum() / {C}.sum()
+ {CAPPED} -> {CAPPED}.expand({C}.shape)
    You add up the lengths of all systems, so all get the same factor. Each system has its own; the lengths are those
    of a corpus already.
{CAPPED} -> {CAPPED}.mean()
    You return the mean of the factors. Each system has its own factor.
{R} / {C} -> ({R} / {C}) ** 2
    You square the ratio. BLEU takes exp(1 - r/c).
{R} / {C} -> ({R} / {C}).sqrt()
    You take the root of the ratio. BLEU takes exp(1 - r/c).
torch.exp(1 - {R} / {C}) -> 1 + ({C} - {R}) / {C}
    The exponential is missing: you add 1 to the exponent instead, which is negative for very short candidates. The
    factor is exp(1 - r/c).
{CAPPED} -> min(penalty, 1.0)
    if, min and max need one truth value, and a tensor has one for each system. Use .clamp(max=1.0) or torch.where.
{CAPPED} -> torch.where({C} < {R}, penalty, 0.0)
    Your factor is 0 for candidates that are long enough. It is 1 there.
{CAPPED} -> 100 * {CAPPED}
    Your factors are the right ones times 100. A factor is at most 1.
"""

CASES = (
    dict(candidate_length=torch.tensor([8, 12]), reference_length=torch.tensor([10, 10])),
    dict(
        candidate_length=torch.tensor([20, 31, 5, 40]),
        reference_length=torch.tensor([20, 30, 25, 16]),
    ),
    dict(  # the first system generated nothing
        candidate_length=torch.tensor([0, 100, 90, 57, 300]),
        reference_length=torch.tensor([7, 101, 60, 95, 299]),
    ),
)
HINTS = """
For c = 8 and r = 10 the factor must be below 1, for c = 12 exactly 1.
exp(1 - r/c) is below 1 where c < r. What is it where c > r?
torch.exp(1 - reference_length / candidate_length).clamp(max=1.0).
"""
DIFFERENTIABLE = False
