"""What a sentence means, independent of the language."""

from dataclasses import dataclass

from course_lib.data.phrasebook.lexicon import Adjective, Noun, Verb


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
