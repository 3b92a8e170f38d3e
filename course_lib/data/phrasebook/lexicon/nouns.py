"""Nouns, grouped by kind."""

from dataclasses import dataclass

#: English and French, each in the singular and the plural, and the French gender. Mass nouns have no plural.
_TABLE = {
    "person": """
        man men homme hommes m
        woman women femme femmes f
        child children enfant enfants m
        boy boys garçon garçons m
        girl girls fille filles f
        friend friends ami amis m
        uncle uncles oncle oncles m
        sister sisters sœur sœurs f
    """,
    "animal": """
        cat cats chat chats m
        dog dogs chien chiens m
        horse horses cheval chevaux m
        cow cows vache vaches f
        bird birds oiseau oiseaux m
        mouse mice souris souris f
        goose geese oie oies f
        fox foxes renard renards m
        hedgehog hedgehogs hérisson hérissons m
    """,
    "food": """
        apple apples pomme pommes f
        orange oranges orange oranges f
        pear pears poire poires f
        tomato tomatoes tomate tomates f
        cake cakes gâteau gâteaux m
        egg eggs œuf œufs m
    """,
    "drink": """
        milk - lait - m
        water - eau - f
        tea - thé - m
        coffee - café - m
    """,
    "text": """
        book books livre livres m
        letter letters lettre lettres f
        newspaper newspapers journal journaux m
        story stories histoire histoires f
    """,
    "thing": """
        house houses maison maisons f
        garden gardens jardin jardins m
        castle castles château châteaux m
        school schools école écoles f
        tree trees arbre arbres m
        flower flowers fleur fleurs f
        table tables table tables f
        chair chairs chaise chaises f
        door doors porte portes f
        box boxes boîte boîtes f
        key keys clé clés f
        hat hats chapeau chapeaux m
        car cars voiture voitures f
        boat boats bateau bateaux m
    """,
}


@dataclass(frozen=True)
class Noun:
    """A noun in both languages.

    Attributes:
        english, french: the singular and the plural; a mass noun has "-" for its plural.
        feminine: its gender in French.
        kind: "person", "animal", "food", "drink", "text" or "thing".
    """

    english: tuple[str, str]
    french: tuple[str, str]
    feminine: bool
    kind: str

    @property
    def name(self) -> str:
        """The English singular."""
        return self.english[0]

    @property
    def is_mass(self) -> bool:
        """Whether it is a mass noun: no plural, and neither "a" nor a number before it."""
        return self.english[1] == "-"

    def __hash__(self) -> int:
        return hash(self.english)


def _read() -> dict[str, Noun]:
    nouns = {}
    for kind, lines in _TABLE.items():
        for line in lines.strip().splitlines():
            one, many, un, des, gender = line.split()
            nouns[one] = Noun((one, many), (un, des), gender == "f", kind)
    return nouns


#: English singular → noun.
NOUNS = _read()

#: Nouns that do not take "my": "mon homme" and "ma fille" mean something else.
WITHOUT_MY = frozenset(NOUNS[name] for name in ("man", "woman", "boy", "girl", "fox", "hedgehog"))

#: Animals that fit under a table.
SMALL = frozenset(NOUNS[name] for name in ("cat", "dog", "mouse", "hedgehog"))


def select(words: str) -> tuple[Noun, ...]:
    """Return the nouns of a list of names and kinds; a leading "-" removes a noun."""
    chosen: dict[str, Noun] = {}
    for word in words.split():
        if word.startswith("-"):
            del chosen[word[1:]]
        elif word in NOUNS:
            chosen[word] = NOUNS[word]
        else:
            chosen |= {name: noun for name, noun in NOUNS.items() if noun.kind == word}
    return tuple(chosen.values())
