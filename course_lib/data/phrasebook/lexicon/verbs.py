"""Verbs: their forms, and which subjects, objects and prepositions go with them."""

from dataclasses import dataclass

from course_lib.data.phrasebook.lexicon.nouns import Noun, select

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
