"""The translator of the phrasebook: its checkpoint, its maps, and what it answers to unknown words."""

import pytest
import torch
from safetensors import safe_open

from course_lib.checkpoints import HERE, phrase_translator
from course_lib.data import alignment_error_rate, pad, phrases, strongest_links
from course_lib.topics.attention_maps import AttentionMap, record_attention
from tests.helpers.annotations import unchecked

with unchecked():
    HELD_OUT = phrases(1000, split="held out")


@pytest.mark.verifies(
    "course_lib.checkpoints.phrase_translator",
    against="the grammar: 98 % of held-out combinations exact, links within 0.15 of the true ones",
)
def test_the_checkpoint_reaches_what_its_file_says(ledger):
    done = phrase_translator().all([one.english for one in HELD_OUT])
    exact = sum(d == list(one.french) for d, one in zip(done, HELD_OUT, strict=True)) / 1000
    with safe_open(HERE / "phrases.safetensors", "pt") as file:
        assert exact == pytest.approx(float(file.metadata()["held out"]), abs=0.002)
    assert exact >= 0.98
    assert (HERE / "phrases.safetensors").stat().st_size < 2_000_000
    ledger.holds()


def test_the_best_head_finds_the_word_that_is_translated():
    translator, pairs = phrase_translator(), HELD_OUT[:300]
    sources = pad([translator.source.encode(one.english) for one in pairs])
    targets = pad([translator.target.encode(one.french, bos=True) for one in pairs])
    with torch.no_grad(), record_attention(translator.model) as maps:
        translator.model(sources, targets)
    rates = []
    for name in ("decoder.0.cross_attention", "decoder.1.cross_attention"):
        for weights in maps[name][0].unbind(dim=1):  # (batch, target, source)
            found = [
                strongest_links(one[: len(pair.french), : len(pair.english)])
                for one, pair in zip(weights, pairs, strict=True)
            ]
            rates.append(alignment_error_rate(found, pairs))
    assert min(rates) <= 0.15


@pytest.mark.verifies(
    "course_lib.train.translator.PhraseTranslator",
    against="the model, called by hand on the same tokens",
)
@pytest.mark.verifies(
    "course_lib.topics.attention_maps.AttentionMap", against="Python's tuple unpacking"
)
def test_the_maps_are_what_the_model_computes_and_their_sides_are_the_words(ledger):
    translator = phrase_translator()
    text, words = "do we like the black cats?", ["do", "we", "like", "the", "black", "cats", "?"]
    french = ["est-ce", "que", "nous", "aimons", "les", "chats", "noirs", "?"]
    assert translator(text) == "Est-ce que nous aimons les chats noirs ?"
    assert translator.all([words]) == [french]
    maps = translator.maps(text)
    assert list(maps) == [
        "encoder 0: self", "encoder 1: self", "decoder 0: self", "decoder 0: cross",
        "decoder 1: self", "decoder 1: cross",
    ]  # fmt: skip
    source = pad([translator.source.encode(words)])
    target = pad([translator.target.encode(french, bos=True)])
    with torch.no_grad(), record_attention(translator.model) as recorded:
        translator.model(source, target)
    sides = {
        "encoder 0: self": ("encoder.0.attention", words, words),
        "decoder 1: self": ("decoder.1.self_attention", ["<bos>", *french], ["<bos>", *french]),
        "decoder 0: cross": ("decoder.0.cross_attention", [*french, "<eos>"], words),
    }
    for label, (name, queries, keys) in sides.items():
        weights, *rest = maps[label]
        assert rest == [queries, keys]
        assert torch.equal(weights, recorded[name][0][0])
    assert AttentionMap(weights, queries).keys is None
    ledger.holds()


def test_a_translation_of_several_is_that_of_each_alone():
    translator = phrase_translator()
    sentences = [one.english for one in HELD_OUT[:20]]
    assert translator.all(sentences) == [translator.all([one])[0] for one in sentences]


def test_words_it_has_not_learned_are_named_with_near_ones():
    translator = phrase_translator()
    with pytest.raises(ValueError, match="'dragon' is not among the .* similar words are"):
        translator("the dragon sleeps")
    with pytest.raises(ValueError, match="'catz'.*'cat'"):
        translator.maps("the catz sleep")
