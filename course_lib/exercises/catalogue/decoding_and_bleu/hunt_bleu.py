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
    "recall": "the matches are divided by the number of n-grams of the reference, not of the candidate",
}
_LENGTHS = {
    "": "",
    "rewarded": "a candidate that is too short gets a factor above 1",
    "long": "a candidate that is too long is penalised, and one that is too short is not",
    "both": "a candidate that is too long gets a factor above 1",
    "none": "a candidate that is too short is not penalised",
    "ratio": "the penalty is c/r itself, which is milder than e to the power of 1 - r/c",
}


def _sentence_bleu_with_bugs(candidate, reference, max_n, *, counts, lengths):
    mean, (c, r) = 0.0, (len(candidate), len(reference))
    for n in range(1, max_n + 1):
        mine, theirs = (_ngram_counts(text, n) for text in (candidate, reference))
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


def _ngram_counts(text, n):
    return Counter(tuple(text[i : i + n]) for i in range(len(text) - n + 1))


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
