"""Writes a clause in French. Every word carries the name of what it stands for, as in English."""

from course_lib.data.phrasebook.adjectives import Adjective
from course_lib.data.phrasebook.clauses import Clause, NounPhrase
from course_lib.data.phrasebook.english import Words
from course_lib.data.phrasebook.verbs import PREPOSITIONS

#: English pronoun → the French one, and the place of its form among the five of a verb.
SUBJECTS = {
    "i": ("je", 0),
    "you": ("vous", 1),
    "he": ("il", 2),
    "she": ("elle", 2),
    "we": ("nous", 3),
    "they": ("ils", 4),
}
CLITICS = {"him": "le", "her": "la", "them": "les"}
ADVERBS = {"often": "souvent", "always": "toujours"}

#: Masculine, feminine, plural. "a" in the plural is "some" or "any".
_DETERMINERS = {
    "the": ("le", "la", "les"),
    "a": ("un", "une", "des"),
    "this": ("ce", "cette", "ces"),
    "my": ("mon", "ma", "mes"),
    "two": ("deux",) * 3,
    "three": ("trois",) * 3,
}

#: What words become before a vowel.
_BEFORE_VOWEL = {
    **{word: f"{word[:-1]}'" for word in ("le", "la", "je", "ne", "de", "que")},
    "ce": "cet",
    "ma": "mon",
}

#: These start with an h that counts as a consonant; every other h is mute.
_ASPIRATED = ("hérisson", "hérissons")


def french(clause: Clause) -> Words:
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


def noun_phrase(phrase: NounPhrase, role: str, negated: bool = False) -> Words:
    """Return a noun with what belongs to it; where it is negated, un, une and des are "de"."""
    feminine, plural = phrase.noun.feminine, phrase.plural
    noun = phrase.noun.french[plural]
    before, behind = [], []
    for one in phrase.adjectives:
        word = one.french(feminine, plural)
        if one.stands_before and not feminine and not plural and starts_with_vowel(noun):
            word = one.before_vowel
        (before if one.stands_before else behind).append((word, f"{role} {one.english}"))
    determiner = _DETERMINERS[phrase.determiner][2 if plural else feminine]
    if phrase.determiner == "a" and (negated or (plural and before)):  # de petits chats
        determiner = "de"
    return [(determiner, f"{role} determiner"), *before, (noun, f"{role} noun"), *behind]


def starts_with_vowel(word: str) -> bool:
    """Return whether a word starts with the sound of a vowel."""
    return word[0] in "aeiouéèêœh" and word not in _ASPIRATED


def _elided(words: Words) -> Words:
    """Return the words with the forms that they have before a vowel."""
    following = [word for word, _ in words[1:]] + ["."]
    return [
        (_BEFORE_VOWEL[word] if word in _BEFORE_VOWEL and starts_with_vowel(after) else word, name)
        for (word, name), after in zip(words, following, strict=True)
    ]
