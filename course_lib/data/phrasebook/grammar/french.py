"""The French side of a clause, with the same tags as the English one."""

from course_lib.data.phrasebook.grammar.clause import Clause, NounPhrase
from course_lib.data.phrasebook.grammar.english import TaggedWords
from course_lib.data.phrasebook.lexicon import (
    ADVERBS,
    CLITICS,
    DETERMINERS,
    PREPOSITIONS,
    SUBJECTS,
    Adjective,
)

#: Word → its form before a vowel.
_BEFORE_VOWEL = {
    **{word: f"{word[:-1]}'" for word in ("le", "la", "je", "ne", "de", "que")},
    "ce": "cet",
    "ma": "mon",
}

#: Nouns with an aspirated h, before which nothing is elided; every other h is mute.
_ASPIRATED = ("hérisson", "hérissons")


def to_french(clause: Clause) -> TaggedWords:
    """Return the French words of a clause."""
    subject, verb, complement = clause.subject, clause.verb, clause.complement
    negated = clause.form == "negation"
    feminine, plural, form = _agreement(subject)
    words = [("est-ce", "ask"), ("que", "ask")] if clause.form == "question" else []
    if isinstance(subject, str):
        words.append((SUBJECTS[subject][0], "subject"))
    else:
        words += noun_phrase(subject, "subject")
    words += [("ne", "not")] * negated
    if isinstance(complement, str):
        words.append((CLITICS[complement], "object"))
    words.append((verb.french[form], "verb") if verb else ("sont" if plural else "est", "be"))
    words += [("pas", "not")] * negated
    if clause.adverb:
        words.append((ADVERBS[clause.adverb], "adverb"))
    if isinstance(complement, Adjective):
        words.append((complement.french(feminine, plural), "predicate"))
    elif isinstance(complement, NounPhrase):
        words += noun_phrase(complement, "object", negated)
    if clause.setting:
        preposition, phrase = clause.setting
        words += [(PREPOSITIONS[preposition][0], "preposition"), *noun_phrase(phrase, "setting")]
    return _elided([*words, ("?" if clause.form == "question" else ".", "end")])


def _agreement(subject: NounPhrase | str) -> tuple[bool, bool, int]:
    """Return whether a subject is feminine, whether it is plural, and which form its verb has."""
    if isinstance(subject, str):
        return subject == "she", subject in ("we", "they"), SUBJECTS[subject][1]
    return subject.noun.feminine, subject.plural, 4 if subject.plural else 2


def noun_phrase(phrase: NounPhrase, role: str, negated: bool = False) -> TaggedWords:
    """Return determiner, adjectives and noun; after a negation, un, une and des become "de"."""
    feminine, plural = phrase.noun.feminine, phrase.plural
    noun = phrase.noun.french[plural]
    before, after = [], []
    for one in phrase.adjectives:
        word = one.french(feminine, plural)
        if one.precedes_noun and not feminine and not plural and starts_with_vowel(noun):
            word = one.before_vowel
        (before if one.precedes_noun else after).append((word, f"{role} {one.english}"))
    determiner = DETERMINERS[phrase.determiner][2 if plural else feminine]
    if phrase.determiner == "a" and (negated or (plural and before)):  # de petits chats
        determiner = "de"
    return [(determiner, f"{role} determiner"), *before, (noun, f"{role} noun"), *after]


def starts_with_vowel(word: str) -> bool:
    """Return whether a word starts with a vowel sound."""
    return word[0] in "aeiouéèêœh" and word not in _ASPIRATED


def _elided(words: TaggedWords) -> TaggedWords:
    """Return the words with their forms before a vowel: l', d', cet, mon."""
    following = [word for word, _ in words[1:]] + ["."]
    return [
        (_BEFORE_VOWEL[word] if word in _BEFORE_VOWEL and starts_with_vowel(after) else word, tag)
        for (word, tag), after in zip(words, following, strict=True)
    ]
