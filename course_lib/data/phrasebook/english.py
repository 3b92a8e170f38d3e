"""Writes a clause in English. Every word carries the name of what it stands for, such as "not".

The words of the French sentence carry the same names: those of one name are linked.
"""

from course_lib.data.phrasebook.clauses import Clause, NounPhrase

#: Words, each with what it stands for.
Words = list[tuple[str, str]]


def english(clause: Clause) -> Words:
    """Return the English words of a clause."""
    words = _to_be(clause) if clause.verb is None else _to_do(clause)
    if clause.setting:
        preposition, phrase = clause.setting
        words += [(word, "preposition") for word in preposition.split()]
        words += noun_phrase(phrase, "setting")
    return [*words, ("?" if clause.form == "question" else ".", "end")]


def _to_be(clause: Clause) -> Words:
    """Return "the cat is not black" or "is the cat black"."""
    verb = [("is" if _takes_s(clause.subject) else "are", "be")]
    subject = _subject(clause.subject)
    words = verb + subject if clause.form == "question" else subject + verb
    if clause.form == "negation":
        words.append(("not", "not"))
    return [*words, *_adverb(clause), (clause.complement.english, "predicate")]


def _to_do(clause: Clause) -> Words:
    """Return "the cat sees him", "the cat does not see him" or "does the cat see him"."""
    verb, s = clause.verb, _takes_s(clause.subject)
    do = "does" if s else "do"
    words = _subject(clause.subject)
    if clause.form == "question":
        words = [(do, "ask"), *words]
    elif clause.form == "negation":
        words += [(do, "do"), ("not", "not")]
    words += [*_adverb(clause), (verb.english[s and clause.form == "statement"], "verb")]
    if verb.particle:
        words.append((verb.particle, "verb"))
    if isinstance(clause.complement, NounPhrase):
        some = "some" if clause.form == "statement" else "any"
        words += noun_phrase(clause.complement, "object", some)
    elif clause.complement is not None:
        words.append((clause.complement, "object"))
    return words


def _takes_s(subject: NounPhrase | str) -> bool:
    """Return whether the verb of a subject ends in -s: he sees."""
    return subject in ("he", "she") if isinstance(subject, str) else not subject.plural


def _subject(subject: NounPhrase | str) -> Words:
    return [(subject, "subject")] if isinstance(subject, str) else noun_phrase(subject, "subject")


def _adverb(clause: Clause) -> Words:
    return [(clause.adverb, "adverb")] if clause.adverb else []


def noun_phrase(phrase: NounPhrase, role: str, some: str = "some") -> Words:
    """Return a noun with what belongs to it; `some` is the plural of "a"."""
    words = [(one.english, f"{role} {one.english}") for one in phrase.adjectives]
    words.append((phrase.noun.english[phrase.plural], f"{role} noun"))
    determiner = phrase.determiner
    if determiner == "a":
        determiner = some if phrase.plural else "an" if words[0][0][0] in "aeiou" else "a"
    elif determiner == "this" and phrase.plural:
        determiner = "these"
    return [(determiner, f"{role} determiner"), *words]
