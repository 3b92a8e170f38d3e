"""The translation explorer of notebook 00, and what the translator draws, writes and looks at for it."""

import copy
import html
import io
import random
import re

import matplotlib
import numpy as np
import pytest
import torch
from PIL import Image

from course_lib.attention import record_attention
from course_lib.checkpoints import phrase_translator
from course_lib.data import written
from course_lib.decoding import greedy, sample, temperature
from course_lib.translator import PhraseTranslator
from course_lib.widgets import translation_explorer

TEXT, WORDS = "Do we like the black cats?", ["do", "we", "like", "the", "black", "cats", "?"]
OTHER, OTHER_WORDS = "the old man doesn't sleep", "the old man does not sleep .".split()
KNOB = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0)


@pytest.fixture(scope="module")
def translator():
    return phrase_translator()


def numbers(vocabulary, tokens):
    return torch.tensor([[vocabulary.tokens.index(token) for token in tokens]])


def words_of(translator, rows):
    return [translator.target.tokens[row] for row in rows if row > 2]


# --- the translator --------------------------------------------------------------------------


def weights_by_hand(model, source, target):
    """Layer → (heads, query, key): a softmax per head and query, of what reaches the layer."""
    model, reached, made = copy.deepcopy(model), {}, {}
    for name, layer in model.named_modules():
        if name.endswith("attention"):
            layer.register_forward_pre_hook(lambda one, args: reached.update({one: args}))
    model(source, target)
    for name, layer in model.named_modules():
        if layer in reached:
            q = layer.query(reached[layer][0])[0].detach().double().numpy()
            k = layer.key(reached[layer][-1])[0].detach().double().numpy()
            made[name] = np.zeros((4, len(q), len(k)))
            for head, row in np.ndindex(4, len(q)):
                part, seen = slice(16 * head, 16 * head + 16), len(k)
                seen = row + 1 if name.endswith("self_attention") else len(k)
                powers = np.exp(k[:seen, part] @ q[row, part] / 4)
                made[name][head, row, :seen] = powers / powers.sum()
    return made


@pytest.mark.parametrize("french", ["le chat dort .", "l' oiseau voit des chapeaux", "noirs", ""])
def test_the_maps_of_a_given_french_are_softmaxes_of_the_projections(translator, french):
    french = french.split()
    source = numbers(translator.source, OTHER_WORDS)
    target = numbers(translator.target, ["<bos>", *french])
    made = weights_by_hand(translator.model, source, target)
    maps = translator.maps(OTHER, french)
    assert len(maps) == len(made) == 6
    for label, (weights, queries, keys) in maps.items():
        stack, number, kind = re.match(r"(encoder|decoder) (\d): (self|cross)$", label).groups()
        layer = "attention" if stack == "encoder" else f"{kind}_attention"
        wanted = made[f"{stack}.{int(number) - 1}.{layer}"]
        assert np.abs(weights.numpy() - wanted).max() < 1e-5
        read = ["<bos>", *french] if layer == "self_attention" else OTHER_WORDS
        assert (queries, keys) == ([*french, "<eos>"] if kind == "cross" else read, read)


@pytest.mark.parametrize(
    ("t", "seed", "most"), [(0.5, 0, 24), (1, 4, 3), (2.0, 2, 24), (3.0, 3, 8)]
)
def test_words_are_drawn_from_the_softmax_of_the_logits_over_t(translator, t, seed, most):
    model = copy.deepcopy(translator.model).train()  # drawing leaves dropout out all the same
    other = PhraseTranslator(model, translator.source, translator.target, max_length=most)
    before, done = torch.get_rng_state(), other.drawn(OTHER, t, seed=seed)
    assert torch.equal(torch.get_rng_state(), before)
    source, rows = numbers(translator.source, OTHER_WORDS), [1]
    dice = torch.Generator().manual_seed(seed)
    while len(rows) <= most and rows[-1] != 2:
        logits = translator.model(source, torch.tensor([rows]))[0, -1] / t
        rows.append(torch.multinomial(logits.softmax(-1), 1, generator=dice).item())
    assert done == words_of(translator, rows)


def test_tokens_are_written_without_the_special_ones(translator):
    tokens = ["<bos>", "l'", "homme", "n'", "aime", "pas", "le", "chat", ".", "<eos>", "<pad>"]
    assert translator.written(tokens) == "L'homme n'aime pas le chat."
    assert (
        translator.written(("est-ce", "qu'", "<eos>", "il", "dort", "?")) == "Est-ce qu'il dort ?"
    )
    assert translator.written(["<eos>"]) == translator.written([]) == ""


# --- the explorer ----------------------------------------------------------------------------


def move(explorer, **values):
    for name, value in values.items():
        explorer.controls[name].value = value
    return explorer


def shown(explorer):
    return explorer.picture.png, explorer.picture.hover, explorer.summary, explorer._words.value


def weights_of(region):
    return np.frombuffer(region["values"], "<f4").reshape(region["shape"])


def french_by_hand(translator, words, t, draw):
    source = numbers(translator.source, words)
    if t == 0:
        rows = greedy(translator.model, source, max_length=24)
    else:
        divided = [lambda logits: temperature(logits, t)]
        rows = sample(translator.model, source, filters=divided, max_length=24, seed=draw)
    return words_of(translator, rows[0].tolist())


@pytest.mark.parametrize(
    ("settings", "layer", "head", "knob"),
    [
        ({}, "decoder.1.cross_attention", 1, (0.0, 1.5)),
        ({"layer": "decoder 1: cross", "head": 3}, "decoder.0.cross_attention", 3, (0.5, 2.0)),
        ({"layer": "decoder 2: self", "head": 0}, "decoder.1.self_attention", 0, (1.0, 3.0)),
    ],
)
def test_words_and_weights_are_those_of_the_model(translator, settings, layer, head, knob):
    explorer = translation_explorer(translator, "he sleeps", **settings)
    for text, words, t, draw in zip(
        (TEXT, OTHER), (WORDS, OTHER_WORDS), knob, (7, 20), strict=True
    ):
        move(explorer, text=text, draw=draw, temperature=t)
        french = french_by_hand(translator, words, t, draw)
        lines = [f"English {text!r}", f"French {written(french)!r}", f"temperature {t:g}"]
        lines += [f"draw {draw}"] * (t > 0)
        assert explorer.summary == "\n  ".join(["Translation:", *lines])
        target = numbers(translator.target, ["<bos>", *french])
        with record_attention(translator.model) as maps:
            translator.model(numbers(translator.source, words), target)
        (region,) = explorer.picture.hover
        assert np.abs(weights_of(region) - maps[layer][0][0, head].numpy()).max() < 1e-6
        read = words if "cross" in layer else ["<bos>", *french]
        wrote = [*french, "<eos>"] if "cross" in layer else read
        assert region["rows"] == [f"{n} {token}" for n, token in enumerate(wrote)]
        assert region["columns"] == [f"{n} {token}" for n, token in enumerate(read)]


def test_the_brightest_colour_is_a_weight_of_one_and_no_row_is_framed(translator):
    explorer = translation_explorer(translator, TEXT)
    (panel,), (region,) = explorer.picture.figure.panels, explorer.picture.hover
    image = np.asarray(Image.open(io.BytesIO(explorer.picture.png)).convert("RGB")) / 255
    left, top, right, bottom = region["box"]
    weights = weights_of(region)
    for (row, column), weight in np.ndenumerate(weights):
        y = top + (row + 0.2) / weights.shape[0] * (bottom - top)
        x = left + (column + 0.2) / weights.shape[1] * (right - left)
        drawn = image[int(y * image.shape[0]), int(x * image.shape[1])]
        assert np.allclose(drawn, matplotlib.colormaps["viridis"](weight**0.5)[:3], atol=0.02)
    assert list(panel.data()) == ["weight"]


def test_after_any_moves_the_picture_is_that_of_a_fresh_explorer(translator):
    explorer, chance = translation_explorer(translator, TEXT), random.Random(1)
    values = {"text": [TEXT, OTHER, "she sleeps"], "temperature": KNOB, "draw": range(21)}
    for place in range(12):
        name = chance.choice(list(values))
        move(explorer, **{name: chance.choice(values[name])})
        if place % 3 == 2:
            now = {name: control.value for name, control in explorer.controls.items()}
            assert shown(explorer) == shown(translation_explorer(translator, **now))


def test_without_chance_the_draw_changes_nothing_and_with_it_the_words(translator):
    explorer = translation_explorer(translator, TEXT)
    before = shown(explorer)
    assert shown(move(explorer, draw=9)) == before
    pictures = {shown(move(explorer, temperature=3.0, draw=draw))[0] for draw in (9, 0, 1)}
    assert len(pictures | {before[0]}) == 4


UNKNOWN = "'dragon', 'blorf' is not among the 179 words of the phrasebook; near are 'draw', 'front', 'drink'"
UNREAD = {
    "the dragon sees a blorf": UNKNOWN,
    "": "text='' has no words; type a sentence, e.g. 'the cat sleeps.'",
    "He? She.": "text='He? She.' goes on behind its first '?'; type one sentence at a time",
}


def test_a_text_that_is_refused_is_said_and_the_last_picture_stays(translator):
    explorer = translation_explorer(translator, TEXT, temperature=1.5, draw=2)
    *before, _ = shown(explorer)
    for (text, reason), t in zip(UNREAD.items(), (0.0, 2.0, 0.0), strict=True):
        *after, words = shown(move(explorer, text=text, temperature=t))
        assert after == before
        assert html.unescape(re.sub("<[^>]*>", "", words)) == (
            f"This setting cannot be drawn: {reason}. The picture still shows the last one that could."
        )
    move(explorer, text=OTHER)
    assert shown(explorer) == shown(translation_explorer(translator, OTHER, draw=2))


def test_reset_goes_back_to_where_it_was_opened(translator):
    start = {"text": OTHER, "temperature": 1.0, "draw": 6}
    explorer = translation_explorer(translator, **start, layer="decoder 1: cross", head=2)
    before = shown(explorer)
    for moves in ({"text": "she sleeps", "temperature": 0.5, "draw": 1}, {"text": "a blorf"}):
        move(explorer, **moves).reset()
        assert {name: control.value for name, control in explorer.controls.items()} == start
        assert shown(explorer) == before


def test_the_knob_has_the_temperatures_that_are_promised_and_opens_at_the_first(translator):
    controls = translation_explorer(translator, TEXT).controls
    assert dict(controls["temperature"].options) == {f"{t:g}": t for t in KNOB}
    opened = {name: control.value for name, control in controls.items()}
    assert opened == {"text": TEXT, "temperature": 0.0, "draw": 0}


LAYERS = ", ".join(
    f"'{layer}: {kind}'"
    for layer in ("encoder 1", "encoder 2", "decoder 1", "decoder 2")
    for kind in (("self",) if "encoder" in layer else ("self", "cross"))
)
BAD = [
    ("drawn", {"seed": -1}, "seed=-1 is below 0"),
    ("drawn", {"t": 0}, "t=0 would divide by 0; for the largest alone use top_k(logits, 1) or greedy"),
    ("drawn", {"t": -0.5}, "t=-0.5 is not a finite number above 0"),
    ("drawn", {"text": "the dragon sees a blorf"}, UNKNOWN),
    ("drawn", {"text": ""}, UNREAD[""]),
    ("maps", {"french": ["le", "o"]}, "'o' at place 1 of ['le', 'o'] is not among the 291 tokens of the vocabulary"),
    ("explorer", {"temperature": 0.7}, "temperature=0.7 must be one of 0, 0.5, 1, 1.5, 2, 3"),
    ("explorer", {"temperature": -1}, "temperature=-1 must be one of 0, 0.5, 1, 1.5, 2, 3"),
    ("explorer", {"temperature": True}, "temperature is a bool; it must be a number above 0"),
    ("explorer", {"draw": -1}, "draw=-1 is below 0"),
    ("explorer", {"draw": 0.5}, "draw=0.5 is a float; it must be a whole number"),
    ("explorer", {"head": -1}, "head=-1 is below 0"),
    ("explorer", {"head": 4}, "head=4 must be below 4"),
    ("explorer", {"layer": "decoder 3: self"}, f"layer='decoder 3: self' must be one of {LAYERS}"),
    ("explorer", {"text": "the dragon sees a blorf"}, UNKNOWN),
    ("explorer", {"text": "the dragon sees a blorf", "temperature": 1.0}, UNKNOWN),
]  # fmt: skip


@pytest.mark.parametrize(("what", "settings", "message"), BAD)
def test_what_is_refused_is_named(translator, what, settings, message, without_annotations):
    given = {"text": TEXT} | settings
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        if what == "explorer":
            translation_explorer(translator, **given)
        else:
            getattr(translator, what)(**{"drawn": {"t": 1.0, "seed": 0}, "maps": {}}[what] | given)
