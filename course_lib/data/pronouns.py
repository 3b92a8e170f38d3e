"""Sentences with an "it" whose antecedent depends on one other word.

"The horse did not cross the river because it was too tired": the horse. With "wide" instead, the
river. Every sentence has one animal, one place and one adjective that fits only one of the two.
"""

from dataclasses import dataclass
from functools import cache
from itertools import product

from course_lib.data.vocabulary import Vocabulary
from course_lib.validation import require_one_of

ANIMALS = ("animal", "dog", "cat", "horse", "fox", "goat", "cow", "hen")
PLACES = ("street", "road", "river", "bridge", "field", "path", "hill", "swamp")
OF_ANIMALS = ("tired", "hungry", "scared", "lazy", "sleepy", "weak")
OF_PLACES = ("wide", "busy", "muddy", "steep", "icy", "noisy")
FORMS = (
    "the {animal} did not cross the {place} because it was too {adjective}",
    "it was too {adjective} so the {animal} stayed away from the {place}",
    "near the {place} a {animal} turned around for it was too {adjective}",
)


@dataclass(frozen=True)
class PronounSentence:
    """A sentence, and the positions of its parts.

    Attributes:
        words: in lower case, without punctuation.
        it, adjective, animal, place: positions in `words`, from 0.
        answer: the position of the antecedent of "it": `animal` or `place`.
    """

    words: tuple[str, ...]
    it: int
    adjective: int
    animal: int
    place: int
    answer: int

    def __str__(self) -> str:
        return " ".join(self.words)


def pronoun_sentence(animal: str, place: str, adjective: str, form: int = 0) -> PronounSentence:
    """Write one sentence."""
    require_one_of(OF_ANIMALS + OF_PLACES, adjective=adjective)
    words = FORMS[form].format(animal=animal, place=place, adjective=adjective).split()
    where = {name: words.index(name) for name in ("it", animal, place, adjective)}
    answer = where[animal if adjective in OF_ANIMALS else place]
    return PronounSentence(
        tuple(words), where["it"], where[adjective], where[animal], where[place], answer
    )


def pronoun_sentences(split: str = "train") -> tuple[PronounSentence, ...]:
    """Every combination of an animal, a place, an adjective and a form: 2,304 sentences.

    Args:
        split: "train", or "held out": every fifth combination of animal, place and adjective, in all
            forms. Every word occurs in both.
    """
    require_one_of(("train", "held out"), split=split)
    return _sentences(held_out=split == "held out")


@cache
def _sentences(*, held_out: bool) -> tuple[PronounSentence, ...]:
    chosen = []
    for number, parts in enumerate(product(ANIMALS, PLACES, OF_ANIMALS + OF_PLACES)):
        if (number % 5 == 0) == held_out:
            chosen += [pronoun_sentence(*parts, form) for form in range(len(FORMS))]
    return tuple(chosen)


@cache
def pronoun_vocabulary() -> Vocabulary:
    """All words of the sentences."""
    return Vocabulary.of(sentence.words for sentence in pronoun_sentences("train"))
