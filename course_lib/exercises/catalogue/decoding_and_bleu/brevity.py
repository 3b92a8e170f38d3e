"""Exercise `brevity` of notebook 09."""

import torch

from course_lib.bleu import brevity_penalty
from course_lib.exercises.exercise import Case, Exercise, Mistake


def brevity(candidate_length, reference_length):
    penalty = torch.exp(1 - reference_length / candidate_length)
    return penalty.clamp(max=1.0)  # no reward for being longer


EXERCISE = Exercise(
    name="brevity",
    notebook="09_decoding_and_bleu",
    title="The brevity penalty of several systems",
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
        Case(  # the first system generated nothing
            candidate_length=torch.tensor([0, 100, 90, 57, 300]),
            reference_length=torch.tensor([7, 101, 60, 95, 299]),
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
            "Your ratio is upside down: short candidates are not penalised, and long ones are. 1 - r/c.",
        ),
        Mistake(
            "upside_down_everywhere",
            lambda c, r: torch.exp(1 - c / r),
            "Your ratio is upside down, and nothing caps it at 1: the shorter, the better. 1 - r/c, and at most 1.",
        ),
        Mistake(
            "not_capped",
            lambda c, r: torch.exp(1 - r / c),
            "You have no limit at 1, so a candidate longer than its references is rewarded. At most 1: .clamp(max=1.0).",
        ),
        Mistake(
            "too_long_pays",
            lambda c, r: torch.exp(-(1 - r / c).abs()),
            "You penalise long candidates as well. Their precision is lower already; for c >= r the factor is 1.",
        ),
        Mistake(
            "turned_around",
            lambda c, r: torch.where(c > r, torch.exp(1 - r / c), 1.0),
            "The wrong way round: long candidates get a factor above 1, and short ones are not penalised. At most 1, not "
            "at least: .clamp(max=1.0).",
        ),
        Mistake(
            "plain_ratio",
            lambda c, r: (c / r).clamp(max=1.0),
            "You take min(1, c/r). That is a penalty too, and a milder one. BLEU takes exp(1 - r/c).",
        ),
        Mistake(
            "plain_ratio_upside_down",
            lambda c, r: (r / c).clamp(max=1.0),
            "You take min(1, r/c), which penalises long candidates. BLEU takes exp(1 - r/c), at most 1.",
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
            "You count an empty candidate as one token, so it gets a little more than 0. A tensor may be divided by 0: "
            "r/0 is infinity, and exp of minus infinity is 0.",
        ),
        Mistake(
            "empty_is_free",
            lambda c, r: torch.where((c > 0) & (c < r), torch.exp(1 - r / c), 1.0),
            "An empty candidate is not penalised. Its factor is 0.",
        ),
        Mistake(
            "never",
            lambda c, r: torch.ones_like(c / r),
            "The brevity penalty is missing. A candidate of one right word would have a precision of 1.",
        ),
        Mistake(
            "wrong_sign",
            lambda c, r: torch.exp(r / c - 1).clamp(max=1.0),
            "The sign of your exponent is wrong: short candidates are not penalised, and long ones are. 1 - r/c.",
        ),
        Mistake(
            "integer_division",
            lambda c, r: torch.where(
                c == 0, 0.0, torch.exp((1 - r // c.clamp(min=1)).float()).clamp(max=1.0)
            ),
            "// drops the fraction, so a candidate a little too short is not penalised at all. Divide with /.",
        ),
        Mistake(
            "too_long_pays_too",
            lambda c, r: torch.exp(1 - torch.maximum(c, r) / torch.minimum(c, r)),
            "You penalise long candidates as well. Their precision is lower already; for c >= r the factor is 1.",
        ),
        Mistake(
            "one_token_added",
            lambda c, r: torch.exp(1 - r / (c + 1)).clamp(max=1.0),
            "You add 1 to the length of the candidate. A tensor may be divided by 0: r/0 is infinity, and exp of minus infinity "
            "is 0.",
        ),
        Mistake(
            "all_or_nothing",
            lambda c, r: (c >= r).float(),
            "Your factor is 0 for every short candidate. It falls gradually: exp(1 - r/c).",
        ),
        Mistake(
            "powers_of_ten",
            lambda c, r: (10 ** (1 - r / c)).clamp(max=1.0),
            "You take powers of 10. BLEU takes powers of e: torch.exp(1 - r/c).",
        ),
        Mistake(
            "powers_of_two",
            lambda c, r: (2 ** (1 - r / c)).clamp(max=1.0),
            "You take powers of 2. BLEU takes powers of e: torch.exp(1 - r/c).",
        ),
        Mistake(
            "one_for_all_systems",
            lambda c, r: torch.exp(1 - r.sum() / c.sum()).clamp(max=1.0),
            "You add up the lengths of all systems and return one factor. Each system has its own; the lengths are those of a "
            "corpus already.",
        ),
        Mistake(
            "squared_ratio",
            lambda c, r: torch.exp(1 - (r / c) ** 2).clamp(max=1.0),
            "You square the ratio. BLEU takes exp(1 - r/c).",
        ),
        Mistake(
            "first_order",
            lambda c, r: (1 + (c - r) / c).clamp(max=1.0),
            "The exponential is missing: you add 1 to the exponent instead, which is negative for very short candidates. "
            "exp(1 - r/c).",
        ),
        Mistake(
            "one_for_all_systems_repeated",
            lambda c, r: torch.exp(1 - r.sum() / c.sum()).clamp(max=1.0).expand(c.shape),
            "You add up the lengths of all systems, so all get the same factor. Each system has its own; the lengths are those of "
            "a corpus already.",
        ),
    ),
    hints=(
        "For c = 8 and r = 10 the factor must be below 1, for c = 12 exactly 1.",
        "exp(1 - r/c) is below 1 where c < r. What is it where c > r?",
        "torch.exp(1 - reference_length / candidate_length).clamp(max=1.0).",
    ),
    differentiable=False,
)
