"""The English side of a clause."""

from course_lib.data.phrasebook.grammar.clause import Clause, NounPhrase

#: Words, each with a tag that says which part of the meaning it expresses, such as "not".
TaggedWords = list[tuple[str, str]]


def to_english(clause: Clause) -> TaggedWords:
    """Return the English words of a clause."""
    words = _with_be(clause) if clause.verb is None else _with_verb(clause)
    if clause.setting:
        preposition, phrase = clause.setting
        words += [(word, "preposition") for word in preposition.split()]
        words += noun_phrase(phrase, "setting")
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
        words += noun_phrase(clause.complement, "object", some)
    elif clause.complement is not None:
        words.append((clause.complement, "object"))
    return words


def _is_third_singular(subject: NounPhrase | str) -> bool:
    """Return whether the verb of a subject ends in -s: he sees."""
    return subject in ("he", "she") if isinstance(subject, str) else not subject.plural


def _subject(subject: NounPhrase | str) -> TaggedWords:
    return [(subject, "subject")] if isinstance(subject, str) else noun_phrase(subject, "subject")


def _adverb(clause: Clause) -> TaggedWords:
    return [(clause.adverb, "adverb")] if clause.adverb else []


def noun_phrase(phrase: NounPhrase, role: str, some: str = "some") -> TaggedWords:
    """Return determiner, adjectives and noun; `some` is the plural of "a"."""
    words = [(one.english, f"{role} {one.english}") for one in phrase.adjectives]
    words.append((phrase.noun.english[phrase.plural], f"{role} noun"))
    determiner = phrase.determiner
    if determiner == "a":
        determiner = some if phrase.plural else "an" if words[0][0][0] in "aeiou" else "a"
    elif determiner == "this" and phrase.plural:
        determiner = "these"
    return [(determiner, f"{role} determiner"), *words]
