"""Seeded sampling of sentences, with a training split and a held-out split."""

import random
from functools import cache

from course_lib.data.phrasebook.alignment import Phrase, aligned_phrase
from course_lib.data.phrasebook.grammar import Clause, NounPhrase
from course_lib.data.phrasebook.lexicon import (
    ADJECTIVES,
    ADJECTIVES_OF,
    ADVERBS,
    COLOURS,
    INTRANSITIVE,
    NOT_PREDICATIVE,
    NOUNS,
    PREPOSITIONS,
    SMALL,
    STATES,
    SUBJECTS,
    TRANSITIVE,
    WITHOUT_MY,
    Adjective,
    Noun,
    Verb,
)
from course_lib.validation import require_one_of

_LONGEST = 14  # English words

# Choices are uniform: what is listed twice is sampled twice as often.
_FORMS = ("statement",) * 4 + ("negation", "question") * 2
_DEFINITE = ("the", "the", "this", "my")
_SINGULAR = ("the", "the", "the", "a", "a", "a", "this", "my")
_PLURAL = ("the", "the", "a", "a", "this", "my", "two", "three")
_DEFINITE_PLURAL = ("the", "the", "this", "my", "two", "three")
_MOSTLY_DEFINITE = ("the", "the", "the", "a", "this", "my")
_PREDICATES = tuple(one for one in ADJECTIVES.values() if one not in NOT_PREDICATIVE)


def phrases(count: int, *, split: str = "train", seed: int = 0) -> list[Phrase]:
    """Sample sentences of at most 14 English words, with replacement.

    Args:
        count: how many.
        split: "train": sentences without any of `held_out_pairs`, or "held out": sentences with at least one.
        seed: the same seed gives the same sentences.
    """
    require_one_of(("train", "held out"), split=split)
    rng = random.Random(f"{split} {int(seed)}")
    held_out = held_out_pairs()
    sampled: list[Phrase] = []
    while len(sampled) < count:
        clause = sample_clause(rng)
        if held_out.isdisjoint(clause.pairs()) == (split == "train"):
            phrase = aligned_phrase(clause)
            if len(phrase.english) <= _LONGEST:
                sampled.append(phrase)
    return sampled


@cache
def held_out_pairs() -> frozenset[tuple[str, str]]:
    """Return every tenth (adjective, noun) and (verb, object) pair: no training sentence has one."""
    described = [(one.english, noun.name) for one in ADJECTIVES.values() for noun in one.nouns]
    done = [
        (verb.name, noun.name)
        for verb in TRANSITIVE
        for noun in dict.fromkeys(noun for _, objects in verb.frames for noun in objects)
    ]
    return frozenset([*described[4::10], *done[4::10]])


def sample_clause(rng: random.Random) -> Clause:
    """Return a clause that makes sense, one in five with "to be"."""
    form = rng.choice(_FORMS)
    if rng.random() < 0.2:
        return _sample_with_be(rng, form)
    return _sample_with_verb(rng, form)


def _sample_with_be(rng: random.Random, form: str) -> Clause:
    """Return a clause with "to be": "the old house is not white"."""
    adjective = rng.choice(_PREDICATES)
    of_people = any(noun.kind == "person" for noun in adjective.nouns)
    if of_people and rng.random() < 0.4:
        subject = rng.choice(("he", "she", "they"))
    else:
        noun = rng.choice(adjective.nouns)
        subject = _sample_noun_phrase(rng, noun, _DEFINITE, _DEFINITE, bare=True)
        prenominal = _prenominal(noun)
        if not adjective.precedes_noun and prenominal and rng.random() < 0.2:
            first = rng.choice(prenominal)
            subject = NounPhrase(subject.determiner, subject.noun, subject.plural, (first,))
    adverb = rng.choice(tuple(ADVERBS)) if adjective in STATES and rng.random() < 0.3 else ""
    return Clause(subject, None, adjective, form, adverb)


def _sample_with_verb(rng: random.Random, form: str) -> Clause:
    """Return a clause with another verb: "my sister waits for him in the garden"."""
    verb = rng.choice(INTRANSITIVE if rng.random() < 0.2 else TRANSITIVE)
    frame = rng.choice(verb.frames)
    subjects, objects = frame
    if frame is verb.frames[0] and rng.random() < 0.5:
        subject = rng.choice(tuple(SUBJECTS))
    else:
        statement = form == "statement"
        determiners = (_SINGULAR, _PLURAL) if statement else (_MOSTLY_DEFINITE, _DEFINITE_PLURAL)
        subject = _sample_noun_phrase(rng, rng.choice(subjects), *determiners)
    used = [] if isinstance(subject, str) else [subject.noun]

    complement = None
    if verb.clitics and rng.random() < 0.25:
        complement = rng.choice(verb.clitics)
    elif objects:
        noun = rng.choice([noun for noun in objects if noun not in used])
        complement = _sample_object(rng, noun, verb, form)
        used.append(noun)
    adverb = rng.choice(tuple(ADVERBS)) if rng.random() < 0.2 else ""
    setting = None
    if verb.prepositions and rng.random() < (0.25 if objects else 0.6):
        setting = _sample_setting(rng, rng.choice(verb.prepositions), subject, used)
    return Clause(subject, verb, complement, form, adverb, setting)


def _sample_object(rng: random.Random, noun: Noun, verb: Verb, form: str) -> NounPhrase:
    """Return an object; a negated one is not counted ("any cats", not "two cats")."""
    determiners = (_DEFINITE, _DEFINITE) if verb.definite else (_SINGULAR, _PLURAL)
    phrase = _sample_noun_phrase(rng, noun, *determiners)
    if form == "negation" and phrase.determiner in ("two", "three"):
        return NounPhrase("a", phrase.noun, phrase.plural, phrase.adjectives)
    return phrase


def _sample_setting(
    rng: random.Random, preposition: str, subject: NounPhrase | str, used: list[Noun]
) -> tuple[str, NounPhrase] | None:
    """Return where or with whom it happens, or None if every noun is used already.

    Only small animals are under a table, and only people in a school.
    """
    is_person = isinstance(subject, str) or subject.noun.kind == "person"
    if is_person or subject.noun not in SMALL:
        used = [*used, NOUNS["table"]]
    if not is_person:
        used = [*used, NOUNS["school"]]
    nouns = [noun for noun in PREPOSITIONS[preposition][1] if noun not in used]
    if not nouns:
        return None
    noun = rng.choice(nouns)
    return preposition, _sample_noun_phrase(rng, noun, _MOSTLY_DEFINITE, _DEFINITE, plural=0.15)


def _sample_noun_phrase(
    rng: random.Random,
    noun: Noun,
    singular: tuple[str, ...],
    several: tuple[str, ...],
    *,
    plural: float = 0.4,
    bare: bool = False,
) -> NounPhrase:
    """Return a noun with a determiner of `singular` or `several`, and adjectives unless it stays bare.

    `plural` is the probability of the plural.
    """
    is_plural = not noun.is_mass and rng.random() < plural
    determiner = rng.choice(_DEFINITE if noun.is_mass else several if is_plural else singular)
    if determiner == "my" and noun in WITHOUT_MY:
        determiner = "the"
    return NounPhrase(determiner, noun, is_plural, () if bare else _sample_adjectives(rng, noun))


def _sample_adjectives(rng: random.Random, noun: Noun) -> tuple[Adjective, ...]:
    """Return no adjective (65 %), one (30 %), or two such as (small, black) (5 %)."""
    u = rng.random()
    if u > 0.35 or not ADJECTIVES_OF[noun]:
        return ()
    if u < 0.05 and _BOTH[noun]:
        return rng.choice(_BOTH[noun])
    return (rng.choice(ADJECTIVES_OF[noun]),)


def _prenominal(noun: Noun) -> list[Adjective]:
    return [one for one in ADJECTIVES_OF[noun] if one.precedes_noun]


#: Noun → pairs of adjectives such as (small, black).
_BOTH = {
    noun: [
        (one, other)
        for one in _prenominal(noun)
        for other in ADJECTIVES_OF[noun]
        if other in COLOURS
    ]
    for noun in NOUNS.values()
}
