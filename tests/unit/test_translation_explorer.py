"""The translation explorer of notebook 00, and what the translator samples, generates and attends to for it."""

import copy
import math
import re

import numpy as np
import pytest
import torch

from course_lib.checkpoints import phrase_translator
from course_lib.data import detokenize
from course_lib.topics.attention_maps import record_attention
from course_lib.train.translator import PhraseTranslator
from course_lib.transformer.decoding import greedy, sample, temperature
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
    (TEXT, WORDS, {"word": 4}, "decoder.1.cross_attention", 1, 1.0, 7),
    (OTHER, OTHER_WORDS, {"layer": "decoder 0: cross", "head": 3}, "decoder.0.cross_attention", 3, 3.0, 20),
]  # fmt: skip


@pytest.mark.parametrize(("text", "words", "settings", "layer", "head", "t", "seed"), CASES)
def test_what_is_shown_is_of_the_model(translator, text, words, settings, layer, head, t, seed):
    explorer = translation_explorer(translator, text, sample=seed, **settings)
    source, divided = numbers(translator.source, words), [lambda logits: temperature(logits, t)]
    best = greedy(translator.model, source, max_length=24)
    sampled = sample(translator.model, source, logits_processors=divided, max_length=24, seed=seed)
    for rows, now in ((best, 0.0), (sampled, t)):
        move(explorer, temperature=now)
        french = translator.target.decode(rows[0])
        with record_attention(translator.model) as maps:
            logits = translator.model(source, numbers(translator.target, ["<bos>", *french]))[0]
        weights = maps[layer][0][0, head].numpy()
        word = settings.get("word", 0)
        assert fact(explorer, "French") == repr(detokenize(french))
        assert fact(explorer, "word") == f"{word} {[*french, '<eos>'][word]}"
        key = weights[word].argmax()
        largest = f"{key} {words[key]} ({weights[word, key]:.2f})"
        assert fact(explorer, "attends to").startswith(largest)
        if not now:  # temperature 0: the tokens whose probability at temperature t is said next
            ids = [*best[0].tolist(), 2][: len(french) + 1]
            p = math.prod((logits / t).softmax(-1)[range(len(ids)), ids].tolist())
        else:
            found = float(fact(explorer, "probability of the greedy translation"))
            assert found == pytest.approx(p, abs=1e-3)
        region = explorer.picture.hover[0]
        assert np.abs(values_of(region) - weights).max() < 1e-6
        thumbnails = panels(explorer)[2].data()
        assert np.allclose(thumbnails["weight"], maps[layer][0][0], atol=1e-6)
        assert thumbnails["head"] == [head]
        assert region["rows"] == [f"{n} {token}" for n, token in enumerate([*french, "<eos>"])]
        assert region["columns"] == [f"{n} {token}" for n, token in enumerate(words)]


def test_a_word_is_chosen_in_the_sentence_and_in_the_map_and_its_source_is_lit(translator):
    explorer = translation_explorer(translator, OTHER)
    map_, pair, _ = panels(explorer)
    weights, queries, keys = translator.maps(OTHER)["decoder 1: cross"]
    table, *words, heads = explorer.picture.hover
    assert heads["chooses"] == [None, "head"] and heads["shape"] == [1, 4]
    assert table["chooses"] == ["word", None] and table["at"] == [0, weights[1, 0].argmax()]
    french, english = words[: len(queries)], words[len(queries) :]
    assert [one["chooses"] for one in french] == [[None, "word"]] * len(queries)
    assert [one["first"] for one in french] == [[0, n] for n in range(len(queries))]
    assert len(english) == len(keys) and not any("chooses" in one for one in english)
    for word in range(len(queries)):
        explorer.choose(word=word)
        opacity = pair._lights.get_facecolor()[:, 3]
        assert np.allclose((opacity / 0.75) ** 2, weights[1, word], atol=1e-6)
        lit = explorer.picture.hover[1 + len(queries) : -1]
        said = [values_of(one).item() for one in lit]
        assert np.array_equal(said, weights[1, word].numpy())
        assert map_.data()["row"] == pair.data()["word"] == [word]
        left, top, right, bottom = explorer.picture.hover[1 + word]["box"]
        across, down = np.meshgrid(np.linspace(left, right, 99), np.linspace(top, bottom, 99))
        inside = at(explorer.picture.figure.png(), across, down)
        assert (np.abs(inside - ORANGE).max(-1) < 0.05).any(), queries[word]


@pytest.mark.parametrize("seed", (0, 8, 16))
def test_the_written_words_are_the_translation_and_stay_in_the_picture(translator, seed):
    explorer = translation_explorer(translator, OTHER, temperature=3.0, sample=seed)
    _, pair, _ = panels(explorer)
    french = translator.sample(OTHER, 3.0, seed=seed)
    assert "".join(_written(translator, french)) == translator.detokenize(french)
    boxes = pair._targets
    assert len(boxes) == len(pair.queries)
    for one, other in zip(boxes, boxes[1:], strict=False):
        assert one[0] < one[2] <= 1 and 0.3 < one[1] < one[3] < 1.15
        assert other[0] >= one[2] or other[1] >= one[3] - 1e-9, "words do not overlap"


def test_a_model_that_has_learned_is_asked_anew(translator):
    changing = PhraseTranslator(
        copy.deepcopy(translator.model), translator.source, translator.target
    )
    explorer = translation_explorer(changing, TEXT)
    before = shown(explorer)
    move(explorer, temperature=3.0)
    with torch.no_grad():
        changing.model.decoder[1].cross_attention.k_proj.weight.zero_()
    assert shown(move(explorer, temperature=0.0)) != before
    assert shown(explorer) == shown(translation_explorer(changing, TEXT))


UNKNOWN = (
    "'dragon', 'blorf' is not among the 179 words of the phrasebook; similar words are 'draw', "
    "'front', 'drink'"
)


def test_what_is_refused_is_named(translator, without_annotations):
    for call, message in (
        (lambda: translator.sample(TEXT, 0, seed=0), "t=0 is not a finite number above 0"),
        (lambda: translator.sample("the dragon sees a blorf", 1.0, seed=0), UNKNOWN),
        (
            lambda: translator.maps(TEXT, ["le", "o"]),
            "'o' at position 1 of ['le', 'o'] is not among",
        ),
        (lambda: translation_explorer(translator, ""), "text='' has no words; type a sentence"),
        (lambda: translation_explorer(translator, TEXT, layer="x"), "layer='x' is unknown"),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
            call()
