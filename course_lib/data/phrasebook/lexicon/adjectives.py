"""Adjectives, and the nouns that each of them may describe."""

from dataclasses import dataclass

from course_lib.data.phrasebook.lexicon.nouns import NOUNS, Noun, select

#: English; French masculine (with the form before a vowel), feminine, and both in the plural; the nouns.
#: These adjectives precede their noun in French.
_PRENOMINAL = """
    big grand grande grands grandes: dog horse bird thing -key
    small petit petite petits petites: man woman boy girl animal -cow food book letter thing
    fat gros grosse gros grosses: cat dog cow bird mouse goose hedgehog
    young jeune jeune jeunes jeunes: person animal
    old vieux/vieil vieille vieux vieilles: man woman friend uncle animal text thing -flower
    beautiful beau/bel belle beaux belles: man woman child boy girl animal -mouse apple book letter \
story thing -box -key
    new nouveau/nouvel nouvelle nouveaux nouvelles: friend book newspaper thing -castle -flower
    good bon bonne bons bonnes: food drink book newspaper story school car
"""
#: These follow their noun in French.
_POSTNOMINAL = """
    black noir noire noirs noires: cat dog horse cow bird tea coffee door chair table box hat car boat
    white blanc blanche blancs blanches: cat dog horse cow bird mouse goose egg house castle flower \
door chair table box hat car boat
    grey gris grise gris grises: cat dog horse bird mouse goose house castle door table hat car boat
    red rouge rouge rouges rouges: apple tomato house flower book door chair table box hat car boat
    green vert verte verts vertes: apple pear tomato tea bird tree book door chair table box hat car boat
    happy heureux heureuse heureux heureuses: person cat dog horse
    sad triste triste tristes tristes: person dog horse letter book story
    tired fatigué fatiguée fatigués fatiguées: person animal
    sweet sucré sucrée sucrés sucrées: apple orange pear cake milk tea coffee
    hot chaud chaude chauds chaudes: drink cake egg
    cold froid froide froids froides: drink egg house castle school
    expensive cher chère chers chères: horse cake coffee book house castle flower table chair hat car boat
    empty vide vide vides vides: house garden castle school box car boat
"""


@dataclass(frozen=True)
class Adjective:
    """An adjective in both languages.

    Attributes:
        english: the English form, which never changes.
        masculine, feminine: the French singular and plural.
        before_vowel: the French masculine singular before a vowel.
        precedes_noun: whether it precedes its noun in French.
        nouns: those it may describe.
    """

    english: str
    masculine: tuple[str, str]
    feminine: tuple[str, str]
    before_vowel: str
    precedes_noun: bool
    nouns: tuple[Noun, ...]

    def __hash__(self) -> int:
        return hash(self.english)

    def french(self, feminine: bool, plural: bool) -> str:
        """Return the French form for a gender and a number."""
        return (self.feminine if feminine else self.masculine)[plural]


def _read(table: str, precedes_noun: bool) -> dict[str, Adjective]:
    adjectives = {}
    for line in table.strip().splitlines():
        forms, nouns = line.split(":")
        english, m, f, mm, ff = forms.split()
        m, _, before_vowel = m.partition("/")
        adjectives[english] = Adjective(
            english, (m, mm), (f, ff), before_vowel or m, precedes_noun, select(nouns)
        )
    return adjectives


#: English → adjective.
ADJECTIVES = _read(_PRENOMINAL, True) | _read(_POSTNOMINAL, False)

#: Adjectives that may follow another one: "the small black cat".
COLOURS = frozenset(ADJECTIVES[name] for name in ("black", "white", "grey", "red", "green"))

#: Temporary states, which go with "often" and "always".
STATES = frozenset(ADJECTIVES[name] for name in ("happy", "sad", "tired", "empty"))

#: Not used after "is": French says "une nouvelle maison", but "la maison est neuve".
NOT_PREDICATIVE = frozenset({ADJECTIVES["new"]})

#: Noun → the adjectives that may describe it.
ADJECTIVES_OF = {
    noun: tuple(one for one in ADJECTIVES.values() if noun in one.nouns) for noun in NOUNS.values()
}
