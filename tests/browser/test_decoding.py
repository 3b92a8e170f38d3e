"""Notebooks 00 and 09 in a real JupyterLab: type a sentence, turn the knobs, check the numbers."""

import math

import pytest

from tests.helpers.gestures import ask, click_at, point_at, regions, says, settled
from tests.helpers.lab import Explorer

ZERO, NINE = "00_start_here.ipynb", "09_decoding_and_bleu.ipynb"
TYPED = "do these old women like the small houses ?"


@pytest.fixture(scope="module")
def zero(lab, screen):
    """Notebook 00 after its first two cells have run."""
    screen.open(lab, ZERO)
    screen.run("start(seed=0)")
    screen.run("explorer = translation_explorer(")
    return screen, Explorer(screen.page, "Translation")


CHOSEN = """(name) => [...document.querySelectorAll('.noUi-handle')]
    .find((one) => one.getAttribute('aria-label') === name).ariaValueNow.split('.')[0]"""


def weight(screen, row, column):
    """What decoder layer 2, head 1 says of the notebook's sentence."""
    sentence = "the black cat does not see him ."
    return ask(
        screen,
        f"phrase_translator().maps({sentence!r})['decoder 1: cross'].weights[1, {row}, {column}].item()",
    )


def put(explorer, text):
    """Type over what stands in the box, as a learner does."""
    explorer._control("English").locator("input").click()
    explorer.page.keyboard.press("Control+A")
    explorer.page.keyboard.type(text, delay=20)
    settled(explorer, f"English '{text}';")


def test_a_typed_sentence_is_translated_and_each_cell_has_the_weight_of_the_model(zero):
    screen, explorer = zero
    before = explorer.picture()
    put(explorer, TYPED)
    french = ask(screen, f"phrase_translator()({TYPED!r})")
    assert french == "Est-ce que ces vieilles femmes aiment les petites maisons ?"
    assert explorer.summary().startswith(f"Translation: English '{TYPED}'; French '{french}'; ")
    assert explorer.summary().endswith("temperature 0")
    assert explorer.picture() != before
    weights, rows, columns = ask(
        screen,
        f"(lambda one: [one.weights[1].tolist(), one.queries, one.keys])"
        f"(phrase_translator().maps({TYPED!r})['decoder 1: cross'])",
    )
    map_ = regions(screen)[0]
    assert map_["shape"] == [len(rows), len(columns)]
    for row, column in [(0, 0), (3, 2), (4, 3), (8, 7), (9, 8)]:
        tip = point_at(explorer, map_, row, column)
        words = f"query {row} {rows[row]}, key {column} {columns[column]}"
        assert says(tip, words, weights[row][column]), tip
    screen.page.mouse.move(1, 1)


def test_the_temperature_samples_other_words_and_a_sample_repeats(zero):
    screen, explorer = zero
    put(explorer, TYPED)
    explorer.press("temperature", "End")
    explorer.press("sample", "Home")
    explorer.press("sample", "ArrowRight", times=3)
    sampled = ask(
        screen,
        f"phrase_translator().detokenize(phrase_translator().sample({TYPED!r}, 3.0, seed=3))",
    )
    assert f"French {sampled!r};" in explorer.summary()
    assert "temperature 3; sample 3;" in explorer.summary()
    first = explorer.summary()
    explorer.press("sample", "ArrowRight")
    assert explorer.summary() != first
    explorer.press("sample", "ArrowLeft")
    assert explorer.summary() == first
    explorer.press("temperature", "Home")
    assert explorer.summary().endswith("temperature 0")


def test_a_click_on_a_french_word_or_on_its_row_lights_its_english_words(zero):
    screen, explorer = zero
    explorer.reset()
    put(explorer, "the black cat does not see him .")
    map_, *words, heads = regions(screen)
    assert map_["shape"] == [9, 8] and len(words) == 9 + 8
    click_at(explorer, words[5], 0, 0, "word 5 voit; attends to 5 see")
    assert screen.page.evaluate(CHOSEN, "word") == "5"
    assert says(
        point_at(explorer, words[9 + 3], 0, 0), "query 5 voit, key 3 does", weight(screen, 5, 3)
    )
    click_at(explorer, map_, 2, 6, "word 2 noir; attends to 1 black")
    assert screen.page.evaluate(CHOSEN, "word") == "2"
    click_at(explorer, heads, 0, 0, "layer decoder 1: cross, head 0 of 4; word 2 noir;")
    explorer.choose("layer", "decoder 0: cross")
    explorer.press("head", "ArrowRight", times=2)
    assert "word 2 noir; attends to 6 him (1.00)" in explorer.summary()
    screen.page.mouse.move(1, 1)
    explorer.reset()


def test_a_word_it_has_not_learned_is_named(zero):
    _, explorer = zero
    box = explorer._control("English").locator("input")
    box.click()
    explorer.page.keyboard.press("Control+A")
    box.fill("the dragon sleeps")
    settled(explorer, "'dragon' is not among the 179 words of the phrasebook")
    put(explorer, "he sleeps .")
    assert "French 'Il dort.'" in explorer.summary()


def test_nothing_left_this_machine_and_nothing_complained_in_notebook_00(zero):
    screen, _ = zero
    assert screen.complaints() == []


# --- notebook 09 -----------------------------------------------------------------------------

SENTENCE, POSITION = "the old dog finds a small white bird .", 6
LOGITS = (
    "(lambda t: t.model(t.source.encode(t.words({text!r}))[None], "
    "t.target.encode(t.all([t.words({text!r})])[0], bos=True)[None])[0, {position}].tolist())"
    "(phrase_translator())"
)


@pytest.fixture(scope="module")
def nine(lab, screen):
    """Notebook 09 after the cells of its first explorer have run."""
    screen.open(lab, NINE)
    screen.run("start(seed=9)")
    screen.run("explorer = next_token_explorer(")
    return screen, Explorer(screen.page, "The next token")


def softmax(logits, t=1.0):
    powers = [math.exp((z - max(logits)) / t) for z in logits]
    return [power / sum(powers) for power in powers]


def nats(shares):
    return -sum(p * math.log(p) for p in shares if p > 0)


def test_the_temperature_changes_the_numbers_as_a_softmax_does(nine):
    screen, explorer = nine
    logits = ask(screen, LOGITS.format(text=SENTENCE, position=POSITION))
    before = softmax(logits)
    assert f"entropy {nats(before):.3f} nats before, {nats(softmax(logits, 2.0)):.3f} after" in (
        explorer.summary()
    )
    picture = explorer.picture()
    explorer.press("temperature", "End")
    after = softmax(logits, 3.0)
    assert f"{max(before):.3f} before, {max(after):.3f} after" in explorer.summary()
    assert f"entropy {nats(before):.3f} nats before, {nats(after):.3f} after" in explorer.summary()
    assert explorer.picture() != picture


def test_top_k_leaves_as_many_as_it_says(nine):
    screen, explorer = nine
    explorer.reset()
    explorer.press("top-k, 0: all", "ArrowRight", times=3)
    logits = ask(screen, LOGITS.format(text=SENTENCE, position=POSITION))
    shares = sorted(softmax(logits, 2.0), reverse=True)[:3]
    shares = [p / sum(shares) for p in shares]
    assert "left 3 of 291 tokens" in explorer.summary()
    assert f"{nats(shares):.3f} after" in explorer.summary()


def test_nothing_left_this_machine_and_nothing_complained_in_notebook_09(nine):
    screen, _ = nine
    assert screen.complaints() == []
