"""Bug hunt `hunt_bleu` of notebook 09."""

import math
from collections import Counter
from functools import partial
from itertools import product

import torch

from course_lib.bleu import bleu
from course_lib.exercises.catalogue._shared import still_wrong
from course_lib.exercises.exercise import Case, Exercise, Mistake


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


def _given(candidate, reference, max_n):
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
    "unclipped": "an n-gram that the candidate repeats matches each time, however often the reference contains it",
    "once": "an n-gram that occurs twice in both texts is counted once",
    "sets": "an n-gram that occurs several times in the candidate is counted once, among the matches and in the total",
    "reference": "an n-gram counts as often as the reference contains it, even if the candidate contains it less often",
    "larger": "an n-gram counts with the larger of its two counts instead of the smaller",
    "recall": "the matches are divided by the number of n-grams of the reference, not of the candidate",
}
_LENGTHS = {
    "": "",
    "rewarded": "a candidate that is too short gets a factor above 1",
    "long": "a candidate that is too long is penalised, and one that is too short is not",
    "both": "a candidate that is too long gets a factor above 1",
    "turned around": "a candidate that is too long gets a factor above 1, and one that is too short is not penalised",
    "by the reference": "the exponent is c/r - 1, which divides the missing words by the length of the reference",
    "no exp": "the penalty is 1 - r/c itself, without the exponential",
    "none": "a candidate that is too short is not penalised",
    "ratio": "the penalty is c/r itself, which is milder than e to the power of 1 - r/c",
}


def _sentence_bleu_with_bugs(
    candidate,
    reference,
    max_n,
    *,
    counts,
    lengths,
    mean=lambda logs: math.exp(sum(logs) / len(logs)),
):
    logs, (c, r) = [], (len(candidate), len(reference))
    for n in range(1, max_n + 1):
        mine, theirs = (_ngram_counts(text, n) for text in (candidate, reference))
        matched = {
            "": lambda mine, theirs: (mine & theirs).total(),
            "unclipped": lambda mine, theirs: sum(mine[gram] for gram in mine if gram in theirs),
            "once": lambda mine, theirs: len(mine & theirs),
            "sets": lambda mine, theirs: len(mine & theirs),
            "reference": lambda mine, theirs: sum(theirs[gram] for gram in mine),
            "larger": lambda mine, theirs: sum(
                max(mine[gram], theirs[gram]) for gram in mine if gram in theirs
            ),
            "recall": lambda mine, theirs: (mine & theirs).total(),
        }[counts](mine, theirs)
        total = {"recall": theirs.total(), "sets": len(mine)}.get(counts, mine.total())
        logs.append(math.log(matched / total))
    factor = {
        "": min(1.0, math.exp(1 - r / c)),
        "rewarded": math.exp(1 - c / r) if c < r else 1.0,
        "long": min(1.0, math.exp(1 - c / r)),
        "both": math.exp(1 - r / c),
        "turned around": max(1.0, math.exp(1 - r / c)),
        "by the reference": min(1.0, math.exp(c / r - 1)),
        "no exp": 1.0 if c >= r else 1 - r / c,
        "none": 1.0,
        "ratio": min(1.0, c / r),
    }[lengths]
    return torch.tensor(factor * mean(logs))


def _ngram_counts(text, n):
    return Counter(tuple(text[i : i + n]) for i in range(len(text) - n + 1))


#: What a repair may break in the mean, which was right.
_MEANS = {
    "no_weights": (
        lambda logs: math.exp(sum(logs)),
        "But the logs are added up without the weight 1/max_n, so each order lowers the score.",
    ),
    "weights_by_order": (
        lambda logs: math.exp(sum(log / n for n, log in enumerate(logs, start=1))),
        "But order n has the weight 1/n. All orders have the same weight: 1/max_n.",
    ),
    "arithmetic": (
        lambda logs: sum(map(math.exp, logs)) / len(logs),
        "But you take the arithmetic mean of the precisions. BLEU takes the geometric one: exp of the mean of logs.",
    ),
    "last_order": (
        lambda logs: math.exp(logs[-1]),
        "But only the precision of the longest n-grams counts. All orders count: exp of the mean of logs.",
    ),
    "first_order": (
        lambda logs: math.exp(logs[0]),
        "But only single words count. All orders count: exp of the mean of logs.",
    ),
}


EXERCISE = Exercise(
    name="hunt_bleu",
    notebook="09_decoding_and_bleu",
    title="Bug hunt: BLEU of a sentence",
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
        Case(  # the reference has a word more often than the candidate
            candidate="the cat sees the dog".split(),
            reference="the cat and the dog and the bird and a dog".split(),
            max_n=2,
        ),
    ),
    mistakes=(
        *(
            Mistake(
                "left: " + ", ".join(one for one in (counts, lengths) if one),
                partial(_sentence_bleu_with_bugs, counts=counts, lengths=lengths),
                still_wrong(_COUNTS[counts], _LENGTHS[lengths]),
            )
            for counts, lengths in product(_COUNTS, _LENGTHS)
            if (counts, lengths) not in (("", ""), ("unclipped", "rewarded"))
        ),
        *(
            Mistake(
                name,
                partial(_sentence_bleu_with_bugs, counts="", lengths="", mean=mean),
                f"The counts and the penalty are right now. {says}",
            )
            for name, (mean, says) in _MEANS.items()
        ),
    ),
    hints=(
        "Score 'the the the the' against 'the cat', then 'the cat' against 'the cat sat down', with max_n=1.",
        "How often may 'the' match if the reference contains it once? And where is e to the power of 1 - c/r below 1?",
        "min(count, theirs[gram]), summed over all grams, and math.exp(1 - r / c).",
    ),
    given=_given,
    given_message="Both bugs are still there.",
    differentiable=False,
)
