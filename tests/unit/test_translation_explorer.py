"""The translation explorer of notebook 00, and what the translator samples, generates and attends to for it."""

import copy
import re

import numpy as np
import pytest
import torch

from course_lib.checkpoints import phrase_translator, sentence_translator
from course_lib.data import detokenize
from course_lib.topics.attention_maps import record_attention
from course_lib.train.translator import PhraseTranslator
from course_lib.transformer.decoding import greedy
from course_lib.widgets import translation_explorer
from course_lib.widgets.translation import _written
from tests.helpers.explorers import (
    ORANGE,
    at,
    fact,
    move,
    panels,
    shown,
    values_of,
)

TEXT, WORDS = "Do we like the black cats?", "do we like the black cats ?".split()
OTHER, OTHER_WORDS = "the man doesn't sleep", "the man does not sleep .".split()


@pytest.fixture(scope="module")
def translator():
    return phrase_translator()


def numbers(vocabulary, tokens):
    return torch.tensor([[vocabulary.tokens.index(token) for token in tokens]])


@pytest.mark.parametrize(("t", "seed", "most"), [(2.0, 0, 24), (3.0, 5, 3)])
def test_words_are_sampled_from_the_softmax_of_the_logits_over_t(translator, t, seed, most):
    model = copy.deepcopy(translator.model).train()  # sampling leaves dropout out all the same
    other = PhraseTranslator(model, translator.source, translator.target, max_length=most)
    before, done = torch.get_rng_state(), other.sample(OTHER, t, seed=seed)
    assert torch.equal(torch.get_rng_state(), before)
    source, rows = numbers(translator.source, OTHER_WORDS), [1]
    dice = torch.Generator().manual_seed(seed)
    while len(rows) <= most and rows[-1] != 2:
        logits = translator.model(source, torch.tensor([rows]))[0, -1] / t
        rows.append(torch.multinomial(logits.softmax(-1), 1, generator=dice).item())
    assert done == translator.target.decode(rows)


def test_tokens_are_written_without_the_special_ones(translator):
    tokens = ["<bos>", "l'", "homme", "n'", "aime", "pas", "le", "<pad>", "chat", ".", "<eos>"]
    assert translator.detokenize(tokens) == "L'homme n'aime pas le chat."
    assert translator.detokenize(("est-ce", "qu'", "il", "dort", "?")) == "Est-ce qu'il dort ?"
    assert translator.detokenize(["<eos>"]) == translator.detokenize([]) == ""


def test_a_french_without_room_for_its_end_has_no_row_for_it(translator):
    model = copy.deepcopy(translator.model).train()  # maps leave dropout out all the same
    short = PhraseTranslator(model, translator.source, translator.target, max_length=3)
    for french in (["le", "chat"], ["le", "chat", "dort"]):
        whole, cut = translator.maps(TEXT, french), short.maps(TEXT, french)
        for label, (weights, queries, keys) in cut.items():
            rows = len(WORDS) if "encoder" in label else 3
            columns = 3 if label.startswith("decoder") and "self" in label else len(WORDS)
            assert torch.allclose(weights, whole[label].weights[:, :rows, :columns], atol=1e-6)
            assert (queries, keys) == (whole[label].queries[:rows], whole[label].keys[:columns])


CASES = [
    (TEXT, WORDS, {"word": 4}, "decoder.1.cross_attention", 1),
    (OTHER, OTHER_WORDS, {"layer": "decoder 0: cross", "head": 3}, "decoder.0.cross_attention", 3),
]


@pytest.mark.parametrize(("text", "words", "settings", "layer", "head"), CASES)
def test_what_is_shown_is_of_the_model(translator, text, words, settings, layer, head):
    explorer = translation_explorer(translator, text, **settings)
    source = numbers(translator.source, words)
    french = translator.target.decode(greedy(translator.model, source, max_length=24)[0])
    with record_attention(translator.model) as maps:
        translator.model(source, numbers(translator.target, ["<bos>", *french]))
    weights = maps[layer][0][0, head].numpy()
    word = settings.get("word", 0)
    assert fact(explorer, "French") == repr(detokenize(french))
    assert fact(explorer, "word") == f"{word} {[*french, '<eos>'][word]}"
    key = weights[word].argmax()
    largest = f"{key} {words[key]} ({weights[word, key]:.2f})"
    assert fact(explorer, "attends to").startswith(largest)
    region = explorer.picture.hover[0]
    assert np.abs(values_of(region) - weights).max() < 1e-6
    thumbnails = panels(explorer)[2].data()
    assert np.allclose(thumbnails["weight"], maps[layer][0][0], atol=1e-6)
    assert thumbnails["head"] == [head]
    assert region["rows"] == [f"{n} {token}" for n, token in enumerate([*french, "<eos>"])]
    assert region["columns"] == [f"{n} {token}" for n, token in enumerate(words)]
    for english in (0, len(words) - 1):
        move(explorer, side="English", word=english)
        assert fact(explorer, "word") == f"{english} {words[english]}"
        query = weights[:, english].argmax()
        largest = f"{query} {[*french, '<eos>'][query]} ({weights[query, english]:.2f})"
        assert fact(explorer, "attended to by").startswith(largest)


def test_words_of_both_sentences_and_names_of_rows_and_columns_are_chosen(translator):
    explorer = translation_explorer(translator, OTHER)
    map_, pair, _ = panels(explorer)
    weights, queries, keys = translator.maps(OTHER)["decoder 1: cross"]
    table, *words, heads = explorer.picture.hover
    assert heads["chooses"] == [None, "head"] and heads["shape"] == [1, 4]
    assert table["chooses"] == ["word", None] and table["at"] == [0, weights[1, 0].argmax()]
    assert table["sets"] == {"side": "French"}
    assert table["column_sets"] == ["word", {"side": "English"}]
    left, top, right, bottom = table["box"]
    assert table["labels"][0] < left and table["labels"][1] > bottom, "the names are part of it"
    french, english = words[: len(queries)], words[len(queries) :]
    for side, tokens in ((french, queries), (english, keys)):
        name = {"side": "French" if side is french else "English"}
        assert [one["chooses"] for one in side] == [[None, "word"]] * len(tokens)
        assert [one["sets"] for one in side] == [name] * len(tokens)
        assert [one["first"] for one in side] == [[0, n] for n in range(len(tokens))]
    for side, own, count in (
        ("French", weights[1], len(queries)),
        ("English", weights[1].T, len(keys)),
    ):
        for word in range(count):
            explorer.choose(side=side, word=word)
            opacity = pair._lights.get_facecolor()[:, 3]
            assert np.allclose((opacity / 0.75) ** 2, own[word], atol=1e-6)
            _, *words, _ = explorer.picture.hover
            split = words[: len(queries)], words[len(queries) :]
            lit = split[side == "French"]
            said = [values_of(one).item() for one in lit]
            assert np.array_equal(said, own[word].numpy())
            framed = "row" if side == "French" else "column"
            assert map_.data()[framed] == pair.data()["word"] == [word]
            left, top, right, bottom = split[side == "English"][word]["box"]
            across, down = np.meshgrid(np.linspace(left, right, 99), np.linspace(top, bottom, 99))
            inside = at(explorer.picture.figure.png(), across, down)
            assert (np.abs(inside - ORANGE).max(-1) < 0.05).any(), word


LONGEST = "does this old woman often see the small white houses and the big black dogs".replace(
    " and", ""
)


@pytest.mark.parametrize("text", [OTHER, TEXT, f"{LONGEST} of the young women who"])
def test_no_word_of_the_two_sentences_stands_on_another(translator, text):
    known = " ".join(
        word for word in text.split() if word.strip("?") in translator.source or "'" in word
    )
    explorer = translation_explorer(translator, known)
    _, pair, _ = panels(explorer)
    french = pair.queries[: -1 if pair.queries[-1] == "<eos>" else None]
    assert "".join(_written(translator, french)) == translator.detokenize(french)
    assert len(pair._targets) == len(pair.queries) and len(pair._sources) == len(pair.keys)
    every = [*pair._sources, *pair._targets]
    numbered = len({top for _, top, _, _ in pair._sources}) == 1
    for n, (left, top, right, bottom) in enumerate(every):
        assert 0 <= left < right <= 1 and (0.08 if numbered else 0) < top < bottom < 1
        for other in every[n + 1 :]:
            assert other[0] >= right or other[1] >= bottom - 1e-9 or other[3] <= top + 1e-9


def test_a_model_that_has_learned_is_asked_anew(translator):
    changing = PhraseTranslator(
        copy.deepcopy(translator.model), translator.source, translator.target
    )
    explorer = translation_explorer(changing, TEXT)
    before = shown(explorer)
    with torch.no_grad():
        changing.model.decoder[1].cross_attention.k_proj.weight.zero_()
    assert shown(move(explorer, word=1, head=1)) != before
    move(explorer, word=0)
    assert shown(explorer) == shown(translation_explorer(changing, TEXT))


UNKNOWN = "'dragon', 'blorf' are not among the 179 words of the phrasebook"


def test_what_is_refused_is_named(translator, without_annotations):
    for call, message in (
        (lambda: translator.sample(TEXT, 0, seed=0), "t=0 is not a finite number above 0"),
        (lambda: translator.sample("the dragon sees a blorf", 1.0, seed=0), UNKNOWN),
        (
            lambda: translator.maps(TEXT, ["le", "o"]),
            "'o' at position 1 of ['le', 'o'] is not among",
        ),
        (
            lambda: translation_explorer(translator, " "),
            "text=' ' has no words",
        ),
        (lambda: translation_explorer(translator, TEXT, layer="x"), "layer='x' is unknown"),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
            call()


def test_similar_words_are_similar_and_each_unknown_word_is_named_once(translator):
    for text, words in {
        "zings": "'zings' is not among the 179 words of the phrasebook; similar words are 'sings', 'sing', 'finds'",
        "xxxxxx and xxxxxx": "'xxxxxx', 'and' are not among the 179 words of the phrasebook",
        "мама": "'мама' is not among the 179 words of the phrasebook",
    }.items():
        with pytest.raises(ValueError, match=f"^{re.escape(words)}$"):
            translator.words(text)


def test_letters_that_no_subword_has_are_refused():
    translator = sentence_translator()
    assert translator.maps("A café on a red bike.".replace("é", "e"))
    for text, letters in (("Мама", "'М', 'а', 'м'"), ("a 犬", "'犬'")):
        with pytest.raises(ValueError, match=f"^no token of the vocabulary has {letters}"):
            translator.maps(text)
