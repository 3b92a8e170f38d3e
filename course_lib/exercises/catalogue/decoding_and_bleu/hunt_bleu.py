"""Bug hunt: BLEU of a sentence."""

import math
from collections import Counter

import torch

from course_lib.topics.bleu import bleu


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


def reference(candidate, reference, max_n):
    return torch.tensor(bleu([candidate], [[reference]], max_n))


CLIPPED = "min(count, theirs[gram]) for gram, count in mine.items()"
BREVITY = "math.exp(1 - r / c) if c < r else 1.0"
BUGS = f"""
{CLIPPED} -> count for gram, count in mine.items() if gram in theirs
    an n-gram that the candidate repeats matches each time, however often the reference contains it
1 - r / c -> 1 - c / r
1 - r / c -> r / c - 1
    a candidate that is too short gets a factor above 1
"""
LOG = "math.log(matched / mine.total())"
MISTAKES = f"""
{CLIPPED} -> gram in theirs for gram in mine
    An n-gram that occurs twice in both texts is counted once. It matches as often as both texts contain it.
{CLIPPED} -> gram in theirs for gram in mine
+ mine.total() -> len(mine)
    An n-gram that occurs several times in the candidate is counted once, among the matches and in the total. Count
    each occurrence.
mine.total() -> len(mine)
    An n-gram that occurs several times in the candidate is counted once in the total. Count each occurrence.
{CLIPPED} -> theirs[gram] for gram in mine
    An n-gram counts as often as the reference contains it, even if the candidate contains it less often.
{CLIPPED} -> max(count, theirs[gram]) for gram, count in mine.items() if gram in theirs
{CLIPPED} -> max(count, theirs[gram]) for gram, count in mine.items()
    An n-gram counts with the larger of its two counts instead of the smaller.
mine.total() -> theirs.total()
    The matches are divided by the number of n-grams of the reference, not of the candidate.
{BREVITY} -> min(1.0, math.exp(1 - c / r))
    A candidate that is too long is penalised, and one that is too short is not.
{BREVITY} -> math.exp(1 - c / r)
    A candidate that is too short gets a factor above 1, and one that is too long is penalised.
{BREVITY} -> math.exp(1 - r / c)
    A candidate that is too long gets a factor above 1.
c < r -> c > r
    A candidate that is too long gets a factor above 1, and one that is too short is not penalised.
1 - r / c -> c / r - 1
    The exponent is c/r - 1, which divides the missing words by the length of the reference.
1 - r / c -> -r / c
    The 1 is missing in the exponent, so the factor falls from 1 to 0.37 as soon as one word is missing.
1 - r / c -> c - r
    The exponent is a difference of lengths, so one word in a thousand costs as much as one in two.
math.exp(1 - r / c) -> (1 - r / c)
    The penalty is 1 - r/c itself, without the exponential.
{BREVITY} -> 1.0
    A candidate that is too short is not penalised.
math.exp(1 - r / c) -> c / r
    The penalty is c/r itself, which is milder than e to the power of 1 - r/c.
/ max_n ->
    The logs are added up without the weight 1/max_n, so each order lowers the score.
/ max_n -> / n
    Order n has the weight 1/n. All orders have the same weight: 1/max_n.
mean += {LOG} / max_n -> mean += matched / mine.total() / max_n
+ math.exp(mean) -> mean
    You take the arithmetic mean of the precisions. BLEU takes the geometric one: exp of the mean of logs.
mean += {LOG} / max_n -> mean = {LOG}
    Only the precision of the longest n-grams counts. All orders count: exp of the mean of logs.
range(1, max_n + 1) -> range(1, 2)
+ / max_n ->
    Only single words count. All orders count: exp of the mean of logs.
range(1, max_n + 1) -> range(1, max_n)
    The longest n-grams are left out: range(1, max_n + 1) ends with max_n.
math.exp(1 - r / c) if c < r else 1.0 -> math.exp(1 - max(r / c, c / r))
    A candidate that is too long gets a penalty as well. Only a short one does: precision punishes the long one.
"""

CASES = (
    dict(candidate=["the", "the", "cat"], reference=["the", "cat", "sat", "down"], max_n=1),
    dict(
        candidate="a dog and a dog and a cat and a cat".split(),
        reference="a dog and a big cat and a bird".split(),
        max_n=2,
    ),
    dict(
        candidate="she said that she said no".split(),
        reference="then she said that she would and he said no".split(),
        max_n=3,
    ),
    dict(  # the reference has a word more often than the candidate
        candidate="the cat sees the dog".split(),
        reference="the cat and the dog and the bird and a dog".split(),
        max_n=2,
    ),
)
HINTS = """
Score 'the the the the' against 'the cat', then 'the cat' against 'the cat sat down', with max_n=1.
How often may 'the' match if the reference contains it once? And where is e to the power of 1 - c/r below 1?
min(count, theirs[gram]), summed over all grams, and math.exp(1 - r / c).
"""
DIFFERENTIABLE = False
