"""What a sentence says, before it is written in either language."""

from dataclasses import dataclass

from course_lib.data.phrasebook.adjectives import Adjective
from course_lib.data.phrasebook.nouns import Noun
from course_lib.data.phrasebook.verbs import Verb


@dataclass(frozen=True, slots=True)
class NounPhrase:
    """A noun with its determiner and its adjectives.

    Attributes:
        determiner: "the", "a" (in the plural: some, any), "this", "my", "two" or "three".
        noun: what is meant.
        plural: whether there are several.
        adjectives: none, one, or one that stands before its noun in French and one that stands behind.
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
        complement: what follows: the object of a verb (a noun phrase; "him", "her", "them"; None), or
            the adjective behind "to be".
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
        """Return the English (adjective, noun) and (verb, object) that belong together in it."""
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
