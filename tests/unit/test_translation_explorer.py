"""The translation explorer of notebook 00, and what the translator samples, generates and attends to for it."""

import copy
import html
import io
import math
import random
import re
from functools import partial

import matplotlib
import numpy as np
import pytest
import torch
from PIL import Image

from course_lib.checkpoints import phrase_translator, untrained_phrase_translator
from course_lib.data import detokenize
from course_lib.decoding import greedy, sample, temperature
from course_lib.inspection import record_attention
from course_lib.plots.style import COLOURS
from course_lib.translator import PhraseTranslator
from course_lib.widgets import translation_explorer
from course_lib.widgets.translation import _written
from tests.helpers.explorers import move, pixels

TEXT, WORDS = "Do we like the black cats?", "do we like the black cats ?".split()
OTHER, OTHER_WORDS = "the man doesn't sleep", "the man does not sleep .".split()
KNOB = (0.0, 1.0, 1.5, 2.0, 2.5, 3.0)


@pytest.fixture(scope="module")
def translator():
    return phrase_translator()


def numbers(vocabulary, tokens):
    return torch.tensor([[vocabulary.tokens.index(token) for token in tokens]])


def weights_by_hand(model, source, target):
    """Layer → (heads, query, key): a softmax per head and query, of what reaches the layer."""
    model, reached, made = copy.deepcopy(model), {}, {}
    for name, layer in model.named_modules():
        if name.endswith("attention"):
            layer.register_forward_pre_hook(lambda one, args: reached.update({one: args}))
    model(source, target)
    for name, layer in model.named_modules():
        if layer in reached:
            q = layer.q_proj(reached[layer][0])[0].detach().double().numpy()
            k = layer.k_proj(reached[layer][-1])[0].detach().double().numpy()
            made[name] = np.zeros((4, len(q), len(k)))
            for head, row in np.ndindex(4, len(q)):
                part = slice(16 * head, 16 * head + 16)
                seen = row + 1 if name.endswith("self_attention") else len(k)
                powers = np.exp(k[:seen, part] @ q[row, part] / 4)
                made[name][head, row, :seen] = powers / powers.sum()
    return made


@pytest.mark.parametrize("french", ["l' oiseau voit des chapeaux", "noirs", ""])
def test_the_maps_of_a_given_french_are_softmaxes_of_the_projections(translator, french):
    french, source = french.split(), numbers(translator.source, OTHER_WORDS)
    target = numbers(translator.target, ["<bos>", *french])
    made = weights_by_hand(translator.model, source, target)
    maps = translator.maps(OTHER, french)
    assert len(maps) == len(made) == 6
    for label, (weights, queries, keys) in maps.items():
        stack, number, kind = re.match(r"(encoder|decoder) (\d): (self|cross)$", label).groups()
        layer = "attention" if stack == "encoder" else f"{kind}_attention"
        assert np.abs(weights.numpy() - made[f"{stack}.{int(number) - 1}.{layer}"]).max() < 1e-5
        read = ["<bos>", *french] if layer == "self_attention" else OTHER_WORDS
        assert (queries, keys) == ([*french, "<eos>"] if kind == "cross" else read, read)


@pytest.mark.parametrize(("t", "seed", "most"), [(2.0, 0, 24), (3, 4, 24), (3.0, 5, 3)])
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


def shown(explorer):
    return explorer.picture.png, explorer.picture.hover, explorer.summary, explorer._problem.value


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
        said = dict(line.strip().split(" ", 1) for line in explorer.summary.split("\n")[1:])
        assert (said["English"], said["French"]) == (repr(text), repr(detokenize(french)))
        assert said["temperature"] == f"{now:g}" and said.get("sample") == (
            str(seed) if now else None
        )
        assert said["word"] == f"{word} {[*french, '<eos>'][word]}"
        key = weights[word].argmax()
        assert said["attends"].startswith(f"to {key} {words[key]} ({weights[word, key]:.2f})")
        if not now:  # temperature 0: the tokens whose probability at temperature t is said next
            ids = [*best[0].tolist(), 2][: len(french) + 1]
            p = math.prod((logits / t).softmax(-1)[range(len(ids)), ids].tolist())
        else:
            assert said["probability"].startswith("of the greedy")
            assert float(said["probability"].split()[-1]) == pytest.approx(p, abs=1e-3)
        region = explorer.picture.hover[0]
        values = np.frombuffer(region["values"], "<f4").reshape(region["shape"])
        assert np.abs(values - weights).max() < 1e-6
        assert region["rows"] == [f"{n} {token}" for n, token in enumerate([*french, "<eos>"])]
        assert region["columns"] == [f"{n} {token}" for n, token in enumerate(words)]


def test_layer_and_head_are_controls(translator):
    explorer = translation_explorer(translator, TEXT)
    assert list(explorer.controls) == ["text", "layer", "head", "word", "temperature", "sample"]
    assert explorer.controls["layer"].options == ("decoder 0: cross", "decoder 1: cross")
    move(explorer, layer="decoder 0: cross", head=2, word=3)
    fresh = translation_explorer(translator, TEXT, layer="decoder 0: cross", head=2, word=3)
    assert shown(explorer)[1:] == shown(fresh)[1:]
    assert np.array_equal(pixels(explorer.picture.png), pixels(fresh.picture.png))
    weights = translator.maps(TEXT)["decoder 0: cross"].weights
    map_, _, thumbnails = explorer.picture.figure.panels
    assert np.array_equal(map_.weights, weights[2]) and thumbnails.head == 2
    assert np.array_equal(thumbnails.weights, weights)


NOTEBOOK = "the black cat does not see him ."


def test_the_first_sample_differs_from_the_greedy_translation_at_a_low_temperature(translator):
    explorer = translation_explorer(translator, NOTEBOOK)
    french = [re.search("French (.*)", move(explorer, temperature=t).summary)[1] for t in KNOB]
    assert french[2] != french[0] and explorer.controls["sample"].value < 21


def test_a_word_is_chosen_in_the_sentence_and_in_the_map_and_its_source_is_lit(translator):
    explorer = translation_explorer(translator, OTHER)
    map_, pair, _ = explorer.picture.figure.panels
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
        said = [np.frombuffer(one["values"], "<f4")[0] for one in lit]
        assert np.array_equal(said, weights[1, word].numpy())
        assert map_.data()["row"] == pair.data()["word"] == [word]
        left, top, right, bottom = explorer.picture.hover[1 + word]["box"]
        image = pixels(explorer.picture.png)
        inside = image[
            int(top * image.shape[0]) : int(bottom * image.shape[0]),
            int(left * image.shape[1]) : int(right * image.shape[1]) + 1,
        ]
        orange = matplotlib.colors.to_rgb(COLOURS["second"])
        assert (np.abs(inside - orange).max(-1) < 0.05).any(), queries[word]


@pytest.mark.parametrize("seed", range(0, 21, 2))
def test_the_written_words_are_the_translation_and_stay_in_the_picture(translator, seed):
    explorer = translation_explorer(translator, OTHER, temperature=3.0, sample=seed)
    _, pair, _ = explorer.picture.figure.panels
    french = translator.sample(OTHER, 3.0, seed=seed)
    assert "".join(_written(translator, french)) == translator.detokenize(french)
    boxes = pair._boxes["target"]
    assert len(boxes) == len(pair.queries)
    for one, other in zip(boxes, boxes[1:], strict=False):
        assert one[0] < one[2] <= 1 and 0.3 < one[1] < one[3] < 1.15
        assert other[0] >= one[2] or other[1] >= one[3] - 1e-9, "words do not overlap"


def test_the_brightest_colour_is_a_weight_of_one(translator):
    torch.manual_seed(0)
    explorer = translation_explorer(
        untrained_phrase_translator(), TEXT, word=2
    )  # all its weights are small
    panel, region = explorer.picture.figure.panels[0], explorer.picture.hover[0]
    image = np.asarray(Image.open(io.BytesIO(explorer.picture.png)).convert("RGB")) / 255
    left, top, right, bottom = region["box"]
    for (row, column), weight in np.ndenumerate(panel.weights):
        y = top + (row + 0.3) / len(panel.queries) * (bottom - top)
        x = left + (column + 0.2) / len(panel.keys) * (right - left)
        drawn = image[int(y * image.shape[0]), int(x * image.shape[1])]
        assert np.allclose(drawn, matplotlib.colormaps["viridis"](weight**0.5)[:3], atol=0.02)
    assert panel.weights.max() < 0.8 and panel.data()["row"] == [len(panel.queries) - 1]


def test_after_any_moves_the_picture_is_that_of_a_fresh_explorer(translator, without_annotations):
    explorer, chance = translation_explorer(translator, TEXT), random.Random(1)
    values = {"text": [TEXT, OTHER, "she sleeps"], "temperature": KNOB, "sample": range(21)}
    values |= {
        "head": range(4),
        "layer": ["decoder 0: cross", "decoder 1: cross"],
        "word": [0, 1, 2],
    }
    for place in range(9):
        name = chance.choice(list(values))
        move(explorer, **{name: chance.choice(values[name])})
        if place % 3 == 2:
            now = {name: control.value for name, control in explorer.controls.items()}
            assert shown(explorer) == shown(translation_explorer(translator, **now))


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


UNKNOWN = "'dragon', 'blorf' is not among the 179 words of the phrasebook; similar words are 'draw', 'front', 'drink'"
SECOND = "text='He? She.' continues after its first '?'; type one sentence at a time"
EMPTY = "text='' has no words; type a sentence, e.g. 'the cat sleeps.'"


def test_a_text_that_is_refused_is_said_and_the_last_picture_stays(translator):
    start = {"layer": "decoder 1: cross", "head": 1, "word": 1, "temperature": 1.5, "sample": 2}
    explorer = translation_explorer(translator, TEXT, **start)
    *before, said = shown(explorer)
    for text, reason in (("dragon blorf", UNKNOWN), ("", EMPTY), ("He? She.", SECOND)):
        *after, words = shown(move(explorer, text=text, temperature=0.0))
        assert after == before and words != said
        told = f"This setting cannot be drawn: {reason}. The picture still shows the last one that could."
        assert html.unescape(re.sub("<[^>]*>", "", words)) == told
    for moves in ({}, {"text": OTHER, "sample": 4}):
        move(explorer, **moves).reset()
        assert shown(explorer) == (*before, said)
    assert {name: one.value for name, one in explorer.controls.items()} == {"text": TEXT} | start
    assert dict(explorer.controls["temperature"].options) == {f"{t:g}": t for t in KNOB}


CALLS = {"sample": partial(PhraseTranslator.sample, t=1.0, seed=0)}
CALLS |= {"maps": PhraseTranslator.maps, "explorer": translation_explorer}
BAD = [
    ("sample", {"t": 0}, "t=0 is not a finite number above 0"),
    ("sample", {"t": -0.5}, "t=-0.5 is not a finite number above 0"),
    ("sample", {"text": "the dragon sees a blorf"}, UNKNOWN),
    ("maps", {"french": ["le", "o"]}, "'o' at position 1 of ['le', 'o'] is not among the 291 tokens of the vocabulary"),
    ("explorer", {"temperature": 0.7}, "temperature=0.7 must be one of 0, 1, 1.5, 2, 2.5, 3"),
    ("explorer", {"temperature": True}, "temperature=True must be one of 0, 1, 1.5, 2, 2.5, 3"),
    ("explorer", {"sample": -1}, "sample=-1 is below 0"),
    ("explorer", {"sample": 21}, "sample=21 must be at most 20"),
    ("explorer", {"sample": 0.5}, "sample=0.5 is a float; it must be a whole number"),
    ("explorer", {"head": -1}, "head=-1 is below 0"),
    ("explorer", {"word": -1}, "word=-1 is below 0"),
    ("explorer", {"head": 4}, "head=4 must be below 4"),
    ("explorer", {"layer": "encoder 0: self"}, "layer='encoder 0: self' is unknown; it must be one of 'decoder 0: cross', 'decoder 1: cross'. Did you mean 'decoder 0: cross'?"),
    ("explorer", {"text": "dragon blorf", "temperature": 1.0}, UNKNOWN),
]  # fmt: skip


@pytest.mark.parametrize(("what", "settings", "message"), BAD)
def test_what_is_refused_is_named(translator, what, settings, message, without_annotations):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        CALLS[what](translator, **{"text": TEXT} | settings)
