"""Exercise `clipped_matches` of notebook 09."""

from collections import Counter
from functools import partial, reduce
from operator import add, and_, or_

import torch

from course_lib.exercises.exercise import Case, Exercise, Mistake


def clipped_matches(candidate, references, n):
    def ngrams(text):
        text = text.tolist()
        return Counter(tuple(text[i : i + n]) for i in range(len(text) - n + 1))

    allowed = Counter()
    for reference in references:
        allowed |= ngrams(reference)  # the larger count
    mine = ngrams(candidate)
    return torch.tensor([(mine & allowed).total(), mine.total()])  # & takes the smaller count


def _ngrams(text, n, *, starts=lambda length, n: length - n + 1, form=tuple):
    text = text.tolist()
    return [form(text[i : i + n]) for i in range(max(0, starts(len(text), n)))]


def _clipped_count(mine, theirs):
    mine, theirs = Counter(mine), Counter(theirs)
    return sum(min(count, theirs[gram]) for gram, count in mine.items())


def _matches(
    candidate,
    references,
    n,
    *,
    matched=_clipped_count,
    total=lambda mine, theirs: len(mine),
    join=lambda counts: reduce(or_, counts),
    **grams,
):
    mine = _ngrams(candidate, n, **grams)
    theirs = [*join([Counter(_ngrams(text, n, **grams)) for text in references]).elements()]
    return torch.tensor([matched(mine, theirs), total(mine, theirs)])


def _same_position(candidate, references, n):
    mine, theirs = _ngrams(candidate, n), [_ngrams(text, n) for text in references]
    equal = [sum(map(tuple.__eq__, mine, one)) for one in theirs]
    return torch.tensor([max(equal), len(mine)])


def _best_reference(candidate, references, n):
    each = [_matches(candidate, text[None], n) for text in references]
    return max(each, key=lambda counts: counts[0])


def _every_other(candidate, references, n):
    mine = _ngrams(candidate, n)[::n]
    theirs = [Counter(_ngrams(text, n)[::n]) for text in references]
    return torch.tensor([_clipped_count(mine, reduce(or_, theirs).elements()), len(mine)])


def _text(*tokens):
    return torch.tensor(tokens)


def _without_zeros(candidate, references, n):
    mine, *theirs = (
        Counter(gram for gram in _ngrams(text, n) if 0 not in gram)
        for text in (candidate, *references)
    )
    return torch.tensor([(mine & reduce(or_, theirs)).total(), mine.total()])


EXERCISE = Exercise(
    name="clipped_matches",
    notebook="09_decoding_and_bleu",
    title="Clipped n-gram matches with several references",
    reference=_matches,
    solution=clipped_matches,
    cases=(
        Case(candidate=_text(4, 4, 4), references=_text([4, 7], [8, 4]), n=1),
        Case(candidate=_text(5, 3), references=_text([5, 3, 8, 6, 2]), n=3),  # too short for any
        Case(candidate=_text(5), references=_text([8, 5, 3, 5, 6, 2]), n=3),  # by more than a token
        # tokens of two digits
        Case(
            candidate=_text(1, 12, 0, 3), references=_text([11, 2, 0, 3, 1], [2, 0, 3, 11, 2]), n=2
        ),
        Case(
            candidate=_text(4, 6, 4, 6, 5, 4, 6),
            references=_text(
                [9, 4, 6, 5, 6, 5, 6, 4, 3, 4, 7, 8], [6, 4, 3, 9, 4, 5, 2, 4, 6, 8, 7, 3]
            ),
            n=2,
        ),
        Case(
            candidate=_text(7, 3, 5, 7, 3, 5, 8, 7, 3, 5, 5),
            references=_text(
                [7, 3, 5, 8, 5, 3, 7, 3, 5, 3, 5, 9, 5], [8, 7, 3, 5, 5, 1, 3, 5, 7, 2, 3, 5, 5]
            ),
            n=3,
        ),
    ),
    mistakes=(
        Mistake(
            "unclipped",
            partial(_matches, matched=lambda mine, theirs: sum(gram in theirs for gram in mine)),
            "Your counts are not clipped: an n-gram that the candidate repeats matches every time. Count it at most as "
            "often as a reference contains it.",
        ),
        Mistake(
            "summed_over_references",
            partial(_matches, join=lambda counts: reduce(add, counts)),
            "You add the counts of the references, so an n-gram that occurs once in each of two may match twice. The "
            "limit is the largest count in any one reference: |.",
        ),
        Mistake(
            "in_every_reference",
            lambda candidate, references, n: _matches(
                candidate, references, n, join=lambda counts: reduce(and_, counts)
            ),
            "An n-gram matches only if every reference contains it. One of them is enough: take the largest count, |.",
        ),
        Mistake(
            "first_reference",
            partial(_matches, join=lambda counts: counts[0]),
            "You compare with the first reference only.",
        ),
        Mistake(
            "last_reference",
            partial(_matches, join=lambda counts: counts[-1]),
            "You compare with the last reference only.",
        ),
        Mistake(
            "best_reference",
            _best_reference,
            "You count the matches with each reference and take the largest number. The limits are joined per n-gram: "
            "some n-grams may match in one reference and others in another.",
        ),
        Mistake(
            "sets",
            partial(
                _matches,
                matched=lambda mine, theirs: len(set(mine) & set(theirs)),
                total=lambda mine, theirs: len(set(mine)),
            ),
            "You compare sets, so an n-gram counts once however often it occurs. Use counts: Counter.",
        ),
        Mistake(
            "sets_matched",
            partial(_matches, matched=lambda mine, theirs: len(set(mine) & set(theirs))),
            "You count the matches with a set, so an n-gram counts once however often it occurs. Take the smaller of "
            "the two counts.",
        ),
        Mistake(
            "sets_total",
            partial(_matches, total=lambda mine, theirs: len(set(mine))),
            "The matches are right. Your total counts different n-grams; count all of them, repeated ones too.",
        ),
        Mistake(
            "total_of_the_references",
            partial(_matches, total=lambda mine, theirs: len(theirs)),
            "Your total is that of the references, which gives a recall. A precision divides by the number of the "
            "candidate's n-grams.",
        ),
        Mistake(
            "negative_total",
            lambda candidate, references, n: torch.tensor(
                [_matches(candidate, references, n)[0], len(candidate) - n + 1]
            ),
            "Your total is length - n + 1 even where that is negative. A text shorter than n has no n-grams. Count "
            "them, or take max(0, …).",
        ),
        Mistake(
            "larger_count",
            partial(
                _matches,
                matched=lambda mine, theirs: (Counter(mine) | Counter(theirs)).total(),
            ),
            "You take the larger of the candidate's and the references' count. A match needs both: the smaller, &.",
        ),
        Mistake(
            "counts_of_the_references",
            partial(_matches, matched=lambda mine, theirs: sum(gram in mine for gram in theirs)),
            "You count how often the references contain n-grams of the candidate. Take the smaller of the two counts.",
        ),
        Mistake(
            "one_shorter",
            lambda candidate, references, n: _matches(candidate, references, n - 1),
            "Your n-grams have n - 1 tokens. text[i : i + n] has n.",
        ),
        Mistake(
            "one_longer",
            lambda candidate, references, n: _matches(candidate, references, n + 1),
            "Your n-grams have n + 1 tokens. text[i : i + n] has n.",
        ),
        Mistake(
            "last_forgotten",
            partial(_matches, starts=lambda length, n: length - n),
            "The last n-gram is missing. A text has length - n + 1 of them.",
        ),
        Mistake(
            "shorter_at_the_end",
            partial(_matches, starts=lambda length, n: length),
            "You start an n-gram at every token, so the last ones are shorter than n. A text has length - n + 1 of "
            "them.",
        ),
        Mistake(
            "no_overlap",
            _every_other,
            "Your n-grams do not overlap. One starts at each token: i = 0, 1, 2, … and not in steps of n.",
        ),
        Mistake(
            "same_position",
            _same_position,
            "You compare n-grams at the same position. One additional word at the front, and nothing matches. The "
            "position of an n-gram does not count.",
        ),
        Mistake(
            "any_order",
            partial(_matches, form=lambda gram: tuple(sorted(gram))),
            "Within your n-grams the order of tokens is lost: 'dog bites' matches 'bites dog'. Use tuples.",
        ),
        Mistake(
            "tensors",
            partial(_matches, matched=lambda mine, theirs: 0),
            "Nothing ever matches. Two equal tensors are different keys of a Counter or a set. Use plain numbers: "
            "text.tolist().",
        ),
        Mistake(
            "exchanged",
            lambda *a: _matches(*a).flip(0),
            "The two numbers are exchanged: first the matches, then the total.",
        ),
        Mistake(
            "not_matched",
            lambda *a: torch.stack([_matches(*a)[1] - _matches(*a)[0], _matches(*a)[1]]),
            "You count the n-grams that do not match.",
        ),
        Mistake(
            "total_of_tokens",
            lambda candidate, references, n: torch.stack(
                [_matches(candidate, references, n)[0], torch.tensor(len(candidate))]
            ),
            "Your total is the number of tokens. A text has length - n + 1 n-grams.",
        ),
        Mistake(
            "joined",
            partial(_matches, form=lambda gram: "".join(map(str, gram))),
            "You join the tokens of an n-gram without a separator, so (1, 12) and (11, 2) are both '112'. Use tuples.",
        ),
        Mistake(
            "across_references",
            lambda candidate, references, n: _matches(candidate, references.reshape(1, -1), n),
            "You join all references to one text. Their counts are added then, and n-grams cross from one to the next. Count "
            "each reference separately, and take the largest count.",
        ),
        Mistake(
            "all_orders",
            lambda candidate, references, n: sum(
                _matches(candidate, references, order) for order in range(1, n + 1)
            ),
            "You add up the n-grams of all lengths from 1 to n. Count those of length n only.",
        ),
        Mistake(
            "summed_matches",
            lambda candidate, references, n: torch.tensor(
                [
                    sum(_matches(candidate, text[None], n)[0] for text in references),
                    len(_ngrams(candidate, n)),
                ]
            ),
            "You add up the matches with each reference, so an n-gram in two of them matches twice. The limits are joined per "
            "n-gram: the largest count in any one reference.",
        ),
        Mistake(
            "zeros_left_out",
            _without_zeros,
            "You leave out n-grams with token 0. Every token counts here; nothing is padding.",
        ),
        Mistake(
            "worst_reference",
            lambda candidate, references, n: torch.tensor(
                [
                    min(_matches(candidate, text[None], n)[0] for text in references),
                    len(_ngrams(candidate, n)),
                ]
            ),
            "You take the smallest number of matches with any reference. The limits are joined per n-gram: the largest count in "
            "any one reference.",
        ),
    ),
    hints=(
        "Count the n-grams of each text. How often may one match that occurs 3 times in the candidate, once in the "
        "first reference and twice in the second?",
        "text = text.tolist(); Counter(tuple(text[i : i + n]) for i in range(len(text) - n + 1)). Counters have | "
        "(the larger count of each key) and & (the smaller one).",
        "Join the references with |, then (mine & allowed).total() matches of mine.total().",
    ),
    differentiable=False,
)
