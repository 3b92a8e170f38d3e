"""Pairs of words that never meet in training."""

from functools import cache

from course_lib.data.phrasebook.adjectives import ADJECTIVES
from course_lib.data.phrasebook.verbs import TRANSITIVE


@cache
def held_out_pairs() -> frozenset[tuple[str, str]]:
    """Return the (adjective, noun) and (verb, object) that never meet in training: every tenth pair."""
    described = [(one.english, noun.name) for one in ADJECTIVES.values() for noun in one.nouns]
    done = [
        (verb.name, noun.name)
        for verb in TRANSITIVE
        for noun in dict.fromkeys(noun for _, objects in verb.frames for noun in objects)
    ]
    return frozenset([*described[4::10], *done[4::10]])
