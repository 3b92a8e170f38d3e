"""Clipped n-gram matches with several references."""

from collections import Counter

import torch


def clipped_matches(candidate, references, n):
    def ngrams(text):
        text = text.tolist()
        return Counter(tuple(text[i : i + n]) for i in range(len(text) - n + 1))

    allowed = Counter()
    for reference in references:
        allowed |= ngrams(reference)  # the larger count
    mine = ngrams(candidate)
    return torch.tensor([(mine & allowed).total(), mine.total()])  # & takes the smaller count


def reference(candidate, references, n):
    """By counting in lists."""
    mine, *theirs = (
        [tuple(text[i : i + n].tolist()) for i in range(len(text) - n + 1)]
        for text in (candidate, *references)
    )
    limits = {gram: max(text.count(gram) for text in theirs) for gram in mine}
    matched = sum(min(mine.count(gram), limit) for gram, limit in limits.items())
    return torch.tensor([matched, len(mine)])


def _text(*tokens):
    return torch.tensor(tokens)


MATCHED, TOTAL = "(mine & allowed).total()", "mine.total()"
GRAM = "tuple(text[i : i + n])"
EACH = "(mine & ngrams(reference)).total() for reference in references"
AT = "candidate[i : i + n].equal(text[i : i + n])"
MISTAKES = rf"""
{MATCHED} -> sum(mine[gram] for gram in mine if gram in allowed)
    Your counts are not clipped: an n-gram that the candidate repeats matches every time. Count it at most as often as
    a reference contains it.
allowed |= -> allowed +=
    You add the counts of the references, so an n-gram that occurs once in each of two may match twice. The limit is
    the largest count in any one reference: |.
allowed = Counter() -> allowed = ngrams(references[0])
+ allowed |= -> allowed &=
    An n-gram matches only if every reference contains it. One of them is enough: take the largest count, |.
in references: -> in references[:1]:
    You compare with the first reference only.
allowed |= -> allowed =
    You compare with the last reference only.
{MATCHED} -> max({EACH})
    You count the matches with each reference and take the largest number. The limits are joined per n-gram: some
    n-grams may match in one reference and others in another.
{MATCHED} -> min({EACH})
    You take the smallest number of matches with any reference. The limits are joined per n-gram: the largest count in
    any one reference.
{MATCHED} -> sum({EACH})
    You add up the matches with each reference, so an n-gram in two of them matches twice. The limits are joined per
    n-gram: the largest count in any one reference.
{MATCHED}, {TOTAL} -> len(mine & allowed), len(mine)
    You compare sets, so an n-gram counts once however often it occurs. Use counts: Counter.
{MATCHED} -> len(mine & allowed)
    You count the matches with a set, so an n-gram counts once however often it occurs. Take the smaller of the two
    counts.
{TOTAL}] -> len(mine)]
    The matches are right. Your total counts different n-grams; count all of them, repeated ones too.
{TOTAL}] -> allowed.total()]
{TOTAL}] -> ngrams(references[0]).total()]
{TOTAL}] -> sum(ngrams(reference).total() for reference in references)]
    Your total is that of the references, which gives a recall. A precision divides by the number of the candidate's
    n-grams.
{TOTAL}] -> (mine | allowed).total()]
    Your total also has the n-grams that only the references contain. Count those of the candidate.
{TOTAL}] -> len(candidate) - n + 1]
    Your total is length - n + 1 even where that is negative. A text shorter than n has no n-grams. Count them, or
    take max(0, …).
{TOTAL}] -> len(candidate)]
    Your total is the number of tokens. A text has length - n + 1 n-grams.
{MATCHED} -> (mine | allowed).total()
    You take the larger of the candidate's and the references' count. A match needs both: the smaller, &.
{MATCHED} -> sum(allowed[gram] for gram in mine)
    You count how often the references contain n-grams of the candidate. Take the smaller of the two counts.
{MATCHED} -> (mine - allowed).total()
    You count the n-grams that do not match.
i + n] -> i + n - 1]
i + n] -> i + n - 1]
+ len(text) - n + 1 -> len(text) - n + 2
    Your n-grams have n - 1 tokens. text[i : i + n] has n.
i + n] -> i + n + 1]
+ len(text) - n + 1 -> len(text) - n
    Your n-grams have n + 1 tokens. text[i : i + n] has n.
i + n] -> i + n + 1]
    Your n-grams have n + 1 tokens, and the last one has n. text[i : i + n] has n.
i + n] -> n]
    text[i : n] ends at position n wherever it begins. text[i : i + n] has n tokens.
len(text) - n + 1 -> len(text) - n
    The last n-gram is missing. A text has length - n + 1 of them.
range(len -> range(1, len
    The first n-gram is missing. i begins at 0.
len(text) - n + 1 -> len(text)
    You start an n-gram at every token, so the last ones are shorter than n. A text has length - n + 1 of them.
range(len(text) - n + 1) -> range(0, len(text) - n + 1, n)
    Your n-grams do not overlap. One starts at each token: i = 0, 1, 2, … and not in steps of n.
{MATCHED} -> max(sum({AT} for i in range(min(len(candidate), len(text)) - n + 1)) for text in references)
    You compare n-grams at the same position. One additional word at the front, and nothing matches. The position of
    an n-gram does not count.
{GRAM} -> tuple(sorted(text[i : i + n]))
{GRAM} -> frozenset(text[i : i + n])
    Within your n-grams the order of tokens is lost: 'dog bites' matches 'bites dog'. Use tuples.
{GRAM} -> "".join(map(str, text[i : i + n]))
    You join the tokens of an n-gram without a separator, so (1, 12) and (11, 2) are both '112'. Use tuples.
text = text.tolist() -> text = text
allowed |= -> allowed &=
    Nothing ever matches. Either your n-grams hold tensors, and two equal tensors are different keys of a Counter or a
    set (use text.tolist()), or you join the references with &=, which leaves an empty Counter empty (use |=).
{MATCHED}, {TOTAL} -> {TOTAL}, {MATCHED}
    The two numbers are exchanged: first the matches, then the total.
[{MATCHED}, {TOTAL}] -> {MATCHED} / {TOTAL}
[{MATCHED}, {TOTAL}] -> {MATCHED} / max(1, {TOTAL})
    You return the precision. Return both numbers, because a corpus adds them up before it divides.
in references: -> in references.reshape(1, -1):
    You join all references to one text. Their counts are added then, and n-grams cross from one to the next. Count
    each reference separately, and take the largest count.
{GRAM} -> tuple(text[i : i + k]) for k in range(1, n + 1)
+ len(text) - n + 1 -> len(text) - k + 1
    You add up the n-grams of all lengths from 1 to n. Count those of length n only.
len(text) - n + 1) -> len(text) - n + 1) if 0 not in text[i : i + n]
    You leave out n-grams with token 0. Every token counts here; nothing is padding.
mine.total()]) -> mine.total() * (references.shape[1] >= n)])
    References shorter than n hold no n-gram, but the candidate does: these count in the second number.
"""

CASES = (
    dict(candidate=_text(4, 4, 4), references=_text([4, 7], [8, 4]), n=1),
    dict(candidate=_text(5, 3), references=_text([5, 3, 8, 6, 2]), n=3),  # too short for any
    dict(candidate=_text(5), references=_text([8, 5, 3, 5, 6, 2]), n=3),  # by more than a token
    dict(candidate=_text(1, 2, 3, 4), references=_text([1, 2], [3, 4]), n=3),  # too short to match
    # tokens of two digits
    dict(candidate=_text(1, 12, 0, 3), references=_text([11, 2, 0, 3, 1], [2, 0, 3, 11, 2]), n=2),
    dict(
        candidate=_text(4, 6, 4, 6, 5, 4, 6),
        references=_text(
            [9, 4, 6, 5, 6, 5, 6, 4, 3, 4, 7, 8], [6, 4, 3, 9, 4, 5, 2, 4, 6, 8, 7, 3]
        ),
        n=2,
    ),
    dict(
        candidate=_text(7, 3, 5, 7, 3, 5, 8, 7, 3, 5, 5),
        references=_text(
            [7, 3, 5, 8, 5, 3, 7, 3, 5, 3, 5, 9, 5], [8, 7, 3, 5, 5, 1, 3, 5, 7, 2, 3, 5, 5]
        ),
        n=3,
    ),
)
HINTS = """
Count the n-grams of each text. How often may one match that occurs 3 times in the candidate, once in the first
    reference and twice in the second?
text = text.tolist(); Counter(tuple(text[i : i + n]) for i in range(len(text) - n + 1)). Counters have | (the larger
    count of each key) and & (the smaller one).
Join the references with |, then (mine & allowed).total() matches of mine.total().
"""
DIFFERENTIABLE = False
