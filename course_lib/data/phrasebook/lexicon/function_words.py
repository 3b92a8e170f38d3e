"""Pronouns, adverbs, determiners and prepositions: English → French."""

from course_lib.data.phrasebook.lexicon.nouns import select

#: Subject pronoun → the French one, and the index of its form among the five of a verb.
SUBJECTS = {
    "i": ("je", 0),
    "you": ("vous", 1),
    "he": ("il", 2),
    "she": ("elle", 2),
    "we": ("nous", 3),
    "they": ("ils", 4),
}

#: Object pronouns. The French ones precede the verb.
CLITICS = {"him": "le", "her": "la", "them": "les"}

ADVERBS = {"often": "souvent", "always": "toujours"}

#: Masculine, feminine, plural. The plural of "a" is "some" or "any".
DETERMINERS = {
    "the": ("le", "la", "les"),
    "a": ("un", "une", "des"),
    "this": ("ce", "cette", "ces"),
    "my": ("mon", "ma", "mes"),
    "two": ("deux",) * 3,
    "three": ("trois",) * 3,
}

#: The French preposition, and the nouns that may follow it.
PREPOSITIONS = {
    "in": ("dans", select("house garden castle school boat")),
    "under": ("sous", select("tree table")),
    "behind": ("derrière", select("house castle school tree door car")),
    "in front of": ("devant", select("house garden castle school tree door")),
    "with": ("avec", select("person dog")),
}
