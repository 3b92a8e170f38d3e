"""Exercise `clipped_matches` of notebook 09."""

from collections import Counter
from functools import partial

import torch

from course_lib.exercises.exercise import Case, Exercise, Mistake


def clipped_matches(candidate, reference, n):
    mine, theirs = (
        Counter(zip(*(text.tolist()[i:] for i in range(n)), strict=False))
        for text in (candidate, reference)
    )
    return torch.tensor([(mine & theirs).total(), mine.total()])  # & takes the smaller count


def _ngrams(text, n, *, places=lambda length, n: length - n + 1, form=tuple):
    text = text.tolist()
    return [form(text[i : i + n]) for i in range(max(0, places(len(text), n)))]


def _clipped_count(mine, theirs):
    mine, theirs = Counter(mine), Counter(theirs)
    return sum(min(count, theirs[gram]) for gram, count in mine.items())


def _matches(
    candidate,
    reference,
    n,
    *,
    matched=_clipped_count,
    total=lambda mine, theirs: len(mine),
    **grams,
):
    mine, theirs = _ngrams(candidate, n, **grams), _ngrams(reference, n, **grams)
    return torch.tensor([matched(mine, theirs), total(mine, theirs)])


def _text(*tokens):
    return torch.tensor(tokens)


EXERCISE = Exercise(
    name="clipped_matches",
    notebook="09_decoding_and_bleu",
    title="N-grams that stand in the reference, none counted too often",
    reference=_matches,
    solution=clipped_matches,
    cases=(
        Case(candidate=_text(4, 4, 4), reference=_text(4, 7, 4, 9), n=1),
        Case(candidate=_text(5, 3), reference=_text(5, 3, 8, 6, 2), n=3),  # too short for any
        Case(candidate=_text(5), reference=_text(8, 5, 3, 5, 6, 2), n=3),  # by more than a token
        Case(
            candidate=_text(4, 6, 4, 6, 5, 4, 6),
            reference=_text(9, 4, 6, 5, 6, 5, 6, 4, 3, 4, 6, 8),
            n=2,
        ),
        Case(
            candidate=_text(7, 3, 5, 7, 3, 5, 8, 7, 3, 5, 5),
            reference=_text(7, 3, 5, 8, 5, 3, 7, 3, 5, 3, 5, 9, 5),
            n=3,
        ),
    ),
    mistakes=(
        Mistake(
            "unclipped",
            partial(_matches, matched=lambda mine, theirs: sum(gram in theirs for gram in mine)),
            "Your counts are not clipped: what the candidate repeats counts each time, so 'the the the' is right three "
            "times. Count a gram at most as often as the reference has it.",
        ),
        Mistake(
            "sets",
            partial(
                _matches,
                matched=lambda mine, theirs: len(set(mine) & set(theirs)),
                total=lambda mine, theirs: len(set(mine)),
            ),
            "You compare sets, so a gram counts once however often both texts have it. Use counts: Counter.",
        ),
        Mistake(
            "sets_matched",
            partial(_matches, matched=lambda mine, theirs: len(set(mine) & set(theirs))),
            "Your matches are counted by a set, so a gram counts once however often both texts have it. Take the "
            "smaller of the two counts.",
        ),
        Mistake(
            "sets_total",
            partial(_matches, total=lambda mine, theirs: len(set(mine))),
            "The matches are right. Your total counts different grams; count all of them, repeated ones too.",
        ),
        Mistake(
            "total_of_the_reference",
            partial(_matches, total=lambda mine, theirs: len(theirs)),
            "Your total is that of the reference, which makes a recall. A precision asks how many of the candidate's "
            "grams are right.",
        ),
        Mistake(
            "negative_total",
            lambda candidate, reference, n: torch.tensor(
                [_matches(candidate, reference, n)[0], len(candidate) - n + 1]
            ),
            "Your total is length - n + 1 even where that is negative: one token has -1 triples. A text shorter than n "
            "has none. Count the grams, or take max(0, …).",
        ),
        Mistake(
            "larger_count",
            partial(
                _matches,
                matched=lambda mine, theirs: (Counter(mine) | Counter(theirs)).total(),
            ),
            "You take the larger of the two counts. A gram is matched as often as both have it: the smaller, &.",
        ),
        Mistake(
            "counts_of_the_reference",
            partial(_matches, matched=lambda mine, theirs: sum(gram in mine for gram in theirs)),
            "You count in the reference how often it has grams of the candidate. Take the smaller of the two counts.",
        ),
        Mistake(
            "one_shorter",
            lambda candidate, reference, n: _matches(candidate, reference, n - 1),
            "Your grams have n - 1 tokens. text[i : i + n] has n.",
        ),
        Mistake(
            "one_longer",
            lambda candidate, reference, n: _matches(candidate, reference, n + 1),
            "Your grams have n + 1 tokens. text[i : i + n] has n.",
        ),
        Mistake(
            "last_forgotten",
            partial(_matches, places=lambda length, n: length - n),
            "The last gram is forgotten. There are length - n + 1 of them.",
        ),
        Mistake(
            "shorter_at_the_end",
            partial(_matches, places=lambda length, n: length),
            "You begin a gram at every token, so the last ones are shorter than n. There are length - n + 1 of them.",
        ),
        Mistake(
            "no_overlap",
            lambda candidate, reference, n: torch.tensor(
                [
                    _clipped_count(_ngrams(candidate, n)[::n], _ngrams(reference, n)[::n]),
                    len(_ngrams(candidate, n)[::n]),
                ]
            ),
            "Your grams do not overlap. One begins at each token: i = 0, 1, 2, … and not in steps of n.",
        ),
        Mistake(
            "same_place",
            partial(
                _matches,
                matched=lambda mine, theirs: sum(
                    one == other for one, other in zip(mine, theirs, strict=False)
                ),
            ),
            "You compare grams at the same place. One word too many at the front, and nothing matches. Where a gram "
            "stands does not matter.",
        ),
        Mistake(
            "any_order",
            partial(_matches, form=lambda gram: tuple(sorted(gram))),
            "Within your grams the order of tokens is lost: 'dog bites' matches 'bites dog'. Use tuples.",
        ),
        Mistake(
            "tensors",
            partial(_matches, matched=lambda mine, theirs: 0),
            "Nothing ever matches. Tensors make no keys for a count: two that are equal are still different keys. Take "
            "plain numbers, text.tolist().",
        ),
        Mistake(
            "exchanged",
            lambda *a: _matches(*a).flip(0),
            "The two numbers have changed places: first the matches, then the total.",
        ),
        Mistake(
            "not_matched",
            lambda *a: torch.stack([_matches(*a)[1] - _matches(*a)[0], _matches(*a)[1]]),
            "You count the grams that do not match.",
        ),
    ),
    hints=(
        "Count the grams of both texts. How often is one matched that the candidate has 3 times and the reference 2?",
        "text = text.tolist(); Counter(tuple(text[i : i + n]) for i in range(len(text) - n + 1)).",
        "(mine & theirs).total() is the sum of the smaller counts; mine.total() is the total.",
    ),
    differentiable=False,
)
