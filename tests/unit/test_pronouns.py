"""Sentences with a pronoun: read back from the written words alone, by regular expressions and sets."""

import itertools
import re
from collections import Counter

import pytest

from course_lib import data

# Written out, so that a word that changes its side in the library is noticed here.
ANIMALS = "animal dog cat horse fox goat cow hen".split()
PLACES = "street road river bridge field path hill swamp".split()
OF_ANIMALS = "tired hungry scared lazy sleepy weak".split()
OF_PLACES = "wide busy muddy steep icy noisy".split()
PATTERNS = [
    r"the (?P<animal>\w+) did not cross the (?P<place>\w+) because (?P<it>it) was too (?P<adjective>\w+)",
    r"(?P<it>it) was too (?P<adjective>\w+) so the (?P<animal>\w+) stayed away from the (?P<place>\w+)",
    r"near the (?P<place>\w+) a (?P<animal>\w+) turned around for (?P<it>it) was too (?P<adjective>\w+)",
]
SPLITS = ("train", "held out")


def read(text):
    """The form, and the parts of a written sentence: name → (word, how many words stand before it)."""
    ((form, match),) = [
        (form, match) for form, one in enumerate(PATTERNS) if (match := re.fullmatch(one, text))
    ]
    before = {name: len(text[: match.start(name)].split()) for name in match.groupdict()}
    return form, {name: (word, before[name]) for name, word in match.groupdict().items()}


@pytest.fixture(scope="module")
def both():
    return {split: data.pronoun_sentences(split) for split in SPLITS}


@pytest.mark.verifies(
    "course_lib.data.pronoun_sentence",
    against="regular expressions that read the written sentence, all 2,304",
)
def test_a_sentence_says_what_it_was_made_of_and_where(ledger):
    written = set()
    parts = itertools.product(ANIMALS, PLACES, OF_ANIMALS + OF_PLACES, range(len(PATTERNS)))
    for animal, place, adjective, form in parts:
        one = data.pronoun_sentence(animal, place, adjective, form)
        found, at = read(str(one))
        assert found == form
        assert at == {
            "animal": (animal, one.animal),
            "place": (place, one.place),
            "adjective": (adjective, one.adjective),
            "it": ("it", one.it),
        }
        meant = "animal" if adjective in OF_ANIMALS else "place"
        assert (one.words[one.answer], one.answer) == at[meant]
        written.add(str(one))
    assert len(written) == 2304
    ledger.holds()


@pytest.mark.verifies(
    "course_lib.data.PronounSentence", against="Python's `str.split` and `list.index`"
)
def test_places_are_those_of_the_words(ledger, both):
    for one in itertools.chain(*both.values()):
        assert isinstance(one, data.PronounSentence)
        words = str(one).split()
        assert tuple(words) == one.words and words.index("it") == one.it
        groups = (ANIMALS, one.animal), (PLACES, one.place), (OF_ANIMALS + OF_PLACES, one.adjective)
        for group, place in groups:
            (word,) = set(words) & set(group)
            assert words.count(word) == 1 and words.index(word) == place
        ledger.holds()
    assert len({*ANIMALS, *PLACES, *OF_ANIMALS, *OF_PLACES}) == 28


@pytest.mark.verifies(
    "course_lib.data.pronoun_sentences", against="`itertools.product` of the words, and sets"
)
def test_the_splits_are_every_combination_and_share_none(ledger, both):
    combinations = {}
    for split, sentences in both.items():
        read_back = [read(str(one)) for one in sentences]
        forms = Counter(
            tuple(at[name][0] for name in ("animal", "place", "adjective")) for _, at in read_back
        )
        assert set(forms.values()) == {3}, "each combination stands in all three forms"
        assert len({str(one) for one in sentences}) == len(sentences)
        combinations[split] = set(forms)
    assert not combinations["train"] & combinations["held out"]
    every = set(itertools.product(ANIMALS, PLACES, OF_ANIMALS + OF_PLACES))
    assert combinations["train"] | combinations["held out"] == every
    assert len(combinations["held out"]) == pytest.approx(len(every) / 5, abs=1)
    words = {split: {word for one in both[split] for word in one.words} for split in SPLITS}
    assert words["train"] == words["held out"]
    assert data.pronoun_sentences() == both["train"]
    ledger.holds()


@pytest.mark.parametrize("split", SPLITS)
def test_every_noun_is_meant_and_neither_noun_alone_says_which(both, split):
    meant = Counter(one.words[one.answer] for one in both[split])
    assert set(meant) == set(ANIMALS + PLACES)
    of_animals = sum(meant[animal] for animal in ANIMALS)
    assert of_animals / meant.total() == pytest.approx(0.5, abs=0.01)
    for name in ("animal", "place"):
        found = {(one.words[getattr(one, name)], one.answer == one.animal) for one in both[split]}
        assert len(found) == 16


@pytest.mark.verifies(
    "course_lib.data.pronoun_vocabulary", against="Python's `set` of the words of all sentences"
)
def test_the_vocabulary_has_every_word_and_no_other(ledger, both):
    vocabulary = data.pronoun_vocabulary()
    words = {word for one in itertools.chain(*both.values()) for word in str(one).split()}
    assert set(vocabulary.tokens[3:]) == words
    assert len(vocabulary) == len(words) + 3
    ledger.holds()


@pytest.mark.usefixtures("without_annotations")
def test_what_there_is_not_is_refused_by_name():
    with pytest.raises(ValueError, match="adjective='green' is unknown"):
        data.pronoun_sentence("horse", "river", "green")
    with pytest.raises(ValueError, match="split='held-out' is unknown.*'held out'"):
        data.pronoun_sentences("held-out")
