"""The shipped translator of captions, trained for an hour on real sentences."""

import json

import pytest
from safetensors import safe_open

from course_lib.checkpoints import HERE, sentence_translator
from course_lib.experiments import translation_errors
from course_lib.topics.bleu import bleu

#: Written for this test, in the way of captions; the model has not seen them.
CAPTIONS = {
    "A small dog is running through the snow.": "Ein kleiner Hund rennt durch den Schnee.",
    "Two women are sitting on a bench.": "Zwei Frauen sitzen auf einer Bank.",
    "A man in a blue shirt is playing guitar.": "Ein Mann in einem blauen Hemd spielt Gitarre.",
    "Three children are playing in the water.": "Drei Kinder spielen im Wasser.",
    "A boy with a red hat is riding a bicycle.": "Ein Junge mit einer roten Mütze fährt Fahrrad.",
}


@pytest.mark.verifies(
    "course_lib.checkpoints.sentence_translator",
    against="captions translated by hand: BLEU of at least 50",
)
def test_it_translates_captions(ledger):
    found = sentence_translator().all(list(CAPTIONS))
    texts = [
        [text.removesuffix(".").split() for text in side] for side in (found, CAPTIONS.values())
    ]
    assert 100 * bleu(texts[0], [[text] for text in texts[1]]) >= 50, found
    ledger.holds()


def test_the_file_says_how_it_was_trained_and_what_it_reached():
    with safe_open(HERE / "translator.safetensors", "pt") as file:
        about = {name: json.loads(value) for name, value in file.metadata().items()}
        assert {file.get_slice(name).get_dtype() for name in file.keys()} == {"F16"}
    assert about["text"].endswith("CC BY-NC-SA 4.0")
    assert about["settings"]["minutes"] == 60 and about["settings"]["data"] == "multi30k"
    record = translation_errors.recorded()["runs"]["this course"]["BLEU"]  # in float32
    for name, recorded in (("greedy", "greedy"), ("beam 5", "beam")):
        assert about["test"][name]["score"] == pytest.approx(record[recorded], abs=0.1)


def test_it_is_small():
    translator = sentence_translator()
    assert sum(p.numel() for p in translator.model.parameters()) == 2_349_568
    assert (HERE / "translator.safetensors").stat().st_size < 5_000_000
