"""From lexicon entries to an English and a French sentence: agreement, contractions, word order.

`Clause` says what a sentence means; `to_english` and `to_french` write it as words, each with a tag
that says which part of the meaning it expresses. Words of the two languages with one tag are aligned.
"""

from dataclasses import dataclass

from course_lib.data.phrasebook.lexicon import (
    ADVERBS,
    CLITICS,
    DETERMINERS,
    PREPOSITIONS,
    SUBJECTS,
    Adjective,
    Noun,
    Verb,
)


@dataclass(frozen=True, slots=True)
class NounPhrase:
    """A noun with its determiner and its adjectives.

    Attributes:
        determiner: "the", "a" (in the plural: some, any), "this", "my", "two" or "three".
        noun: the head of the phrase.
        plural: whether it is in the plural.
        adjectives: none, one, or two: one that precedes its noun in French, then one that follows it.
    """

    determiner: str
    noun: Noun
    plural: bool = False
    adjectives: tuple[Adjective, ...] = ()


@dataclass(frozen=True, slots=True)
class Clause:
    """One sentence.

    Attributes:
        subject: a noun phrase or an English pronoun.
        verb: None stands for "to be".
        complement: the object of the verb (a noun phrase; "him", "her", "them"; None), or the adjective
            after "to be".
        form: "statement", "negation" or "question".
        adverb: "often", "always" or "".
        setting: a preposition and its noun phrase, or None.
    """

    subject: NounPhrase | str
    verb: Verb | None
    complement: NounPhrase | Adjective | str | None = None
    form: str = "statement"
    adverb: str = ""
    setting: tuple[str, NounPhrase] | None = None

    def pairs(self) -> set[tuple[str, str]]:
        """Return its English (adjective, noun) and (verb, object) pairs."""
        phrases = [self.subject, self.complement, self.setting[1] if self.setting else None]
        pairs = {
            (adjective.english, phrase.noun.name)
            for phrase in phrases
            if isinstance(phrase, NounPhrase)
            for adjective in phrase.adjectives
        }
        if isinstance(self.complement, Adjective) and isinstance(self.subject, NounPhrase):
            pairs.add((self.complement.english, self.subject.noun.name))
        if isinstance(self.complement, NounPhrase):
            pairs.add((self.verb.name, self.complement.noun.name))
        return pairs


# --- English ---------------------------------------------------------------------------------

#: Words, each with a tag that says which part of the meaning it expresses, such as "not".
TaggedWords = list[tuple[str, str]]


def to_english(clause: Clause) -> TaggedWords:
    """Return the English words of a clause."""
    words = _with_be(clause) if clause.verb is None else _with_verb(clause)
    if clause.setting:
        preposition, phrase = clause.setting
        words += [(word, "preposition") for word in preposition.split()]
        words += _english_noun_phrase(phrase, "setting")
    return [*words, ("?" if clause.form == "question" else ".", "end")]


def _with_be(clause: Clause) -> TaggedWords:
    """Return "the cat is not black" or "is the cat black"."""
    verb = [("is" if _is_third_singular(clause.subject) else "are", "be")]
    subject = _subject(clause.subject)
    words = verb + subject if clause.form == "question" else subject + verb
    if clause.form == "negation":
        words.append(("not", "not"))
    return [*words, *_adverb(clause), (clause.complement.english, "predicate")]


def _with_verb(clause: Clause) -> TaggedWords:
    """Return "the cat sees him", "the cat does not see him" or "does the cat see him"."""
    verb, third = clause.verb, _is_third_singular(clause.subject)
    do = "does" if third else "do"
    words = _subject(clause.subject)
    if clause.form == "question":
        words = [(do, "ask"), *words]
    elif clause.form == "negation":
        words += [(do, "do"), ("not", "not")]
    words += [*_adverb(clause), (verb.english[third and clause.form == "statement"], "verb")]
    if verb.particle:
        words.append((verb.particle, "verb"))
    if isinstance(clause.complement, NounPhrase):
        some = "some" if clause.form == "statement" else "any"
        words += _english_noun_phrase(clause.complement, "object", some)
    elif clause.complement is not None:
        words.append((clause.complement, "object"))
    return words


def _is_third_singular(subject: NounPhrase | str) -> bool:
    """Return whether the verb of a subject ends in -s: he sees."""
    return subject in ("he", "she") if isinstance(subject, str) else not subject.plural


def _subject(subject: NounPhrase | str) -> TaggedWords:
    return (
        [(subject, "subject")]
        if isinstance(subject, str)
        else _english_noun_phrase(subject, "subject")
    )


def _adverb(clause: Clause) -> TaggedWords:
    return [(clause.adverb, "adverb")] if clause.adverb else []


def _english_noun_phrase(phrase: NounPhrase, role: str, some: str = "some") -> TaggedWords:
    """Return determiner, adjectives and noun in English; `some` is the plural of "a"."""
    words = [(one.english, f"{role} {one.english}") for one in phrase.adjectives]
    words.append((phrase.noun.english[phrase.plural], f"{role} noun"))
    determiner = phrase.determiner
    if determiner == "a":
        determiner = some if phrase.plural else "an" if words[0][0][0] in "aeiou" else "a"
    elif determiner == "this" and phrase.plural:
        determiner = "these"
    return [(determiner, f"{role} determiner"), *words]


# --- French ----------------------------------------------------------------------------------

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
        words += _french_noun_phrase(subject, "subject")
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
        words += _french_noun_phrase(complement, "object", negated)
    if clause.setting:
        preposition, phrase = clause.setting
        words += [
            (PREPOSITIONS[preposition][0], "preposition"),
            *_french_noun_phrase(phrase, "setting"),
        ]
    return _elided([*words, ("?" if clause.form == "question" else ".", "end")])


def _agreement(subject: NounPhrase | str) -> tuple[bool, bool, int]:
    """Return whether a subject is feminine, whether it is plural, and which form its verb has."""
    if isinstance(subject, str):
        return subject == "she", subject in ("we", "they"), SUBJECTS[subject][1]
    return subject.noun.feminine, subject.plural, 4 if subject.plural else 2


def _french_noun_phrase(phrase: NounPhrase, role: str, negated: bool = False) -> TaggedWords:
    """Return determiner, adjectives and noun; after a negation, un, une and des become "de"."""
    feminine, plural = phrase.noun.feminine, phrase.plural
    noun = phrase.noun.french[plural]
    before, after = [], []
    for one in phrase.adjectives:
        word = one.french(feminine, plural)
        if one.precedes_noun and not feminine and not plural and _starts_with_vowel(noun):
            word = one.before_vowel
        (before if one.precedes_noun else after).append((word, f"{role} {one.english}"))
    determiner = DETERMINERS[phrase.determiner][2 if plural else feminine]
    if phrase.determiner == "a" and (negated or (plural and before)):  # de petits chats
        determiner = "de"
    return [(determiner, f"{role} determiner"), *before, (noun, f"{role} noun"), *after]


def _starts_with_vowel(word: str) -> bool:
    """Return whether a word starts with a vowel sound."""
    return word[0] in "aeiouéèêœh" and word not in _ASPIRATED


def _elided(words: TaggedWords) -> TaggedWords:
    """Return the words with their forms before a vowel: l', d', cet, mon."""
    following = [word for word, _ in words[1:]] + ["."]
    return [
        (_BEFORE_VOWEL[word] if word in _BEFORE_VOWEL and _starts_with_vowel(after) else word, tag)
        for (word, tag), after in zip(words, following, strict=True)
    ]
