"""The words of the phrasebook in both languages, their forms, and which of them go together."""

from dataclasses import dataclass

# --- nouns -----------------------------------------------------------------------------------

#: English and French, each in the singular and the plural, and the French gender. Mass nouns have no plural.
_NOUNS = {
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


def _read_nouns() -> dict[str, Noun]:
    nouns = {}
    for kind, lines in _NOUNS.items():
        for line in lines.strip().splitlines():
            one, many, un, des, gender = line.split()
            nouns[one] = Noun((one, many), (un, des), gender == "f", kind)
    return nouns


#: English singular → noun.
NOUNS = _read_nouns()

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


# --- adjectives ------------------------------------------------------------------------------

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


def _read_adjectives(table: str, precedes_noun: bool) -> dict[str, Adjective]:
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
ADJECTIVES = _read_adjectives(_PRENOMINAL, True) | _read_adjectives(_POSTNOMINAL, False)

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


# --- verbs -----------------------------------------------------------------------------------

_LOCATIVE = ("in", "under", "behind", "in front of")
_PEOPLE = ("him", "her", "them")


@dataclass(frozen=True)
class Verb:
    """A verb in both languages, in the present.

    Attributes:
        english: for I, you, we, they, and for he and she.
        particle: the word after the English verb, or "".
        french: for je, vous, il, nous, ils.
        frames: (subjects, objects) that make sense; the first frame has people as subjects. Without
            objects, the verb is intransitive.
        clitics: those of "him", "her" and "them" that make sense as its object.
        prepositions: those that may introduce where, or with whom, it happens.
        definite: whether its object is always definite: one likes the cat, not a cat.
    """

    english: tuple[str, str]
    particle: str
    french: tuple[str, str, str, str, str]
    frames: tuple[tuple[tuple[Noun, ...], tuple[Noun, ...]], ...]
    clitics: tuple[str, ...] = ()
    prepositions: tuple[str, ...] = _LOCATIVE
    definite: bool = False

    @property
    def name(self) -> str:
        """The English verb with its particle."""
        return f"{self.english[0]} {self.particle}".strip()

    def __hash__(self) -> int:
        return hash(self.name)


def _frames(people: str, animals: str = "") -> tuple:
    """Return the frames with people as subjects and, where given, with animals."""
    of_people = (select("person"), select(people))
    return (of_people, (select("animal"), select(animals))) if animals else (of_people,)


_SEEN = "person animal food text thing"
_SEEN_BY_ANIMALS = "person animal food thing -school -castle -key"
_LIKED = ("person animal food text thing drink", "person animal food milk garden")
_WASHED = "child cat dog horse cow apple pear tomato table chair door hat car boat"
_BOUGHT = "horse cow food milk tea coffee book newspaper thing -school -door"
_AND_WITH = (*_LOCATIVE, "with")

#: Verbs with an object.
TRANSITIVE = (
    Verb(("see", "sees"), "", ("vois", "voyez", "voit", "voyons", "voient"),
         _frames(_SEEN, _SEEN_BY_ANIMALS), _PEOPLE),
    Verb(("like", "likes"), "", ("aime", "aimez", "aime", "aimons", "aiment"),
         _frames(*_LIKED), _PEOPLE, prepositions=(), definite=True),
    Verb(("find", "finds"), "", ("trouve", "trouvez", "trouve", "trouvons", "trouvent"),
         _frames(_SEEN, _SEEN_BY_ANIMALS), _PEOPLE),
    Verb(("look", "looks"), "at", ("regarde", "regardez", "regarde", "regardons", "regardent"),
         _frames(_SEEN, _SEEN_BY_ANIMALS), _PEOPLE),
    Verb(("look", "looks"), "for", ("cherche", "cherchez", "cherche", "cherchons", "cherchent"),
         _frames(_SEEN, "person animal food"), _PEOPLE, _AND_WITH),
    Verb(("wait", "waits"), "for", ("attends", "attendez", "attend", "attendons", "attendent"),
         _frames("person dog"), _PEOPLE),
    Verb(("hear", "hears"), "", ("entends", "entendez", "entend", "entendons", "entendent"),
         _frames("person animal car", "person animal car"), _PEOPLE),
    Verb(("call", "calls"), "", ("appelle", "appelez", "appelle", "appelons", "appellent"),
         _frames("person cat dog horse"), _PEOPLE, prepositions=()),
    Verb(("wash", "washes"), "", ("lave", "lavez", "lave", "lavons", "lavent"),
         _frames(_WASHED), _PEOPLE),
    Verb(("draw", "draws"), "", ("dessine", "dessinez", "dessine", "dessinons", "dessinent"),
         _frames("person animal food thing"), _PEOPLE),
    Verb(("eat", "eats"), "", ("mange", "mangez", "mange", "mangeons", "mangent"),
         _frames("food", "food"), ("them",), _AND_WITH),
    Verb(("drink", "drinks"), "", ("bois", "buvez", "boit", "buvons", "boivent"),
         _frames("drink"), (), _AND_WITH),
    Verb(("read", "reads"), "", ("lis", "lisez", "lit", "lisons", "lisent"),
         _frames("text"), ("them",), _AND_WITH),
    Verb(("write", "writes"), "", ("écris", "écrivez", "écrit", "écrivons", "écrivent"),
         _frames("book letter story"), ("them",), _AND_WITH),
    Verb(("begin", "begins"), "", ("commence", "commencez", "commence", "commençons", "commencent"),
         _frames("book letter story")),
    Verb(("open", "opens"), "", ("ouvre", "ouvrez", "ouvre", "ouvrons", "ouvrent"),
         _frames("book letter newspaper door box car"), ("them",), ()),
    Verb(("buy", "buys"), "", ("achète", "achetez", "achète", "achetons", "achètent"),
         _frames(_BOUGHT), ("them",), ("with",)),
)  # fmt: skip

#: Verbs without an object; their frames are (subjects, no objects).
INTRANSITIVE = (
    Verb(("sleep", "sleeps"), "", ("dors", "dormez", "dort", "dormons", "dorment"),
         ((select("person"), ()), (select("animal"), ()))),
    Verb(("work", "works"), "", ("travaille", "travaillez", "travaille", "travaillons", "travaillent"),
         ((select("person"), ()), (select("dog horse"), ())), (), _AND_WITH),
    Verb(("sing", "sings"), "", ("chante", "chantez", "chante", "chantons", "chantent"),
         ((select("person"), ()), (select("bird"), ())), (), _AND_WITH),
)  # fmt: skip


# --- pronouns, adverbs, determiners and prepositions: English → French -----------------------

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
