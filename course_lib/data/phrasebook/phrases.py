"""Sentences in English and French, with the links between their words."""

import random
from dataclasses import dataclass

from course_lib.data.phrasebook.clauses import Clause
from course_lib.data.phrasebook.drawing import draw_clause
from course_lib.data.phrasebook.english import english
from course_lib.data.phrasebook.french import french
from course_lib.data.phrasebook.holdout import held_out_pairs
from course_lib.inputs import require_one_of, require_whole

_LONGEST = 14

#: What English and French words stand for that one may link though one need not: the "does" of a
#: negation with ne and pas, the "is" of a question with est-ce que.
_MAY = {("do", "not"), ("be", "ask")}


@dataclass(frozen=True)
class Phrase:
    """A sentence in English and in French.

    Attributes:
        english, french: the words, in lower case; the last one is "." or "?".
        sure: (place in `english`, place in `french`) of the links that every annotator would draw.
        possible: those, and the links that one may draw (Och and Ney 2003).
        pairs: the English (adjective, noun) and (verb, object) that it brings together.
    """

    english: tuple[str, ...]
    french: tuple[str, ...]
    sure: frozenset[tuple[int, int]]
    possible: frozenset[tuple[int, int]]
    pairs: frozenset[tuple[str, str]]

    def __str__(self) -> str:
        return f"{' '.join(self.english)} → {' '.join(self.french)}"


def phrase_of(clause: Clause) -> Phrase:
    """Write a clause in both languages and link its words."""
    source, target = english(clause), french(clause)
    sure, possible = set(), set()
    for i, (_, meant) in enumerate(source):
        for j, (_, said) in enumerate(target):
            if meant == said:
                sure.add((i, j))
            elif (meant, said) in _MAY:
                possible.add((i, j))
    return Phrase(
        tuple([word for word, _ in source]),
        tuple([word for word, _ in target]),
        frozenset(sure),
        frozenset(sure | possible),
        frozenset(clause.pairs()),
    )


def phrases(count: int, *, split: str = "train", seed: int = 0) -> list[Phrase]:
    """Draw sentences of at most 14 English words at random; short ones may come twice.

    Args:
        count: how many.
        split: "train": sentences without any of `held_out_pairs`, or "held out": sentences with one.
        seed: of the draw; the same seed gives the same sentences.

    Raises:
        ValueError: for a count below 1 and an unknown split.
    """
    require_whole(count=count)
    require_one_of(("train", "held out"), split=split)
    draw = random.Random(f"{split} {seed}")
    held_out = held_out_pairs()
    drawn: list[Phrase] = []
    while len(drawn) < count:
        clause = draw_clause(draw)
        if held_out.isdisjoint(clause.pairs()) == (split == "train"):
            phrase = phrase_of(clause)
            if len(phrase.english) <= _LONGEST:
                drawn.append(phrase)
    return drawn
