"""Notebooks 07 and 08 in a real JupyterLab: the depth of a stack, and a translator that shows where it looks."""

import json
import math

import pytest

from course_lib.experiments.depth import RECORD
from course_lib.lab.__main__ import NOTEBOOKS
from tests.helpers.gestures import ask, attends_to, point_at, regions, says, settled
from tests.helpers.lab import Explorer

SEVEN, EIGHT = "07_transformer_blocks.ipynb", "08_transformer.ipynb"
ANSWERS = "answer=" in (NOTEBOOKS / EIGHT).read_text(encoding="utf-8")
FIRST = "the black cats do not see him ."
OLD = "does this old woman like the small white houses ?"


# --- notebook 07 -----------------------------------------------------------------------------


def gradients(depth, norm, warmup, after):
    """Per block, the mean over the seeds, from the file."""
    run = json.loads(RECORD.read_text(encoding="utf-8"))[f"{depth} {norm} {warmup}"]
    blocks = zip(*run["gradients"][str(after)], strict=True)
    return [math.prod(block) ** (1 / 3) for block in blocks]


def losses(depth, norm, warmup):
    run = json.loads(RECORD.read_text(encoding="utf-8"))[f"{depth} {norm} {warmup}"]
    return run["losses"]


def told(depth, norm, warmup, after):
    """The words that belong below the picture."""
    means = gradients(depth, norm, warmup, after)
    ends = sorted(run[-1] for run in losses(depth, norm, warmup))
    return (
        f"Depth: norm {norm}; depth {depth}; warm-up {warmup} steps; "
        f"gradient norm of block 1 after {after} steps {means[0]:.2g}; of block {depth} {means[-1]:.2g}; "
        f"final losses of three seeds {', '.join(f'{end:.2g}' for end in ends)}"
    )


def reads(tip, place, wanted):
    """Whether a tip names this place and has these two numbers, to four digits."""
    name, _, said = tip.partition(": ")
    pre, post = said.split(", ")
    numbers = float(pre.removeprefix("pre ")), float(post.removeprefix("post "))
    return name == place and numbers == pytest.approx(wanted, rel=6e-4)


@pytest.fixture(scope="module")
def seven(lab, screen):
    """Notebook 07 after its first two cells have run."""
    screen.open(lab, SEVEN)
    screen.run("start(seed=7)")
    screen.run("explorer = depth_explorer()")
    return screen, Explorer(screen.page, "Depth")


def test_every_control_of_the_depth_explorer_shows_what_the_record_says(seven):
    _, explorer = seven
    names = [one.get_attribute("aria-label") for one in explorer.root.get_by_role("slider").all()]
    assert names == ["depth", "warm-up", "after step"]
    assert explorer.summary() == told(12, "post", 0, 0)
    seen = [explorer.picture()]
    steps = (
        (lambda: explorer.press("after step", "ArrowRight"), (12, "post", 0, 10)),
        (lambda: explorer.press("after step", "End"), (12, "post", 0, 300)),
        (lambda: explorer.press("warm-up", "ArrowRight", times=2), (12, "post", 100, 300)),
        (lambda: explorer.press("depth", "Home"), (2, "post", 100, 300)),
        (lambda: explorer.choose("norm", "pre"), (2, "pre", 100, 300)),
        (lambda: explorer.drag("depth", 600), (18, "pre", 100, 300)),
    )
    for move, settings in steps:
        move()
        assert explorer.summary() == told(*settings)
        seen.append(explorer.picture())
    assert len(set(seen)) == len(seen), "each has a picture of its own"
    explorer.reset()
    assert explorer.summary() == told(12, "post", 0, 0)


def test_the_pointer_reads_the_gradient_of_each_block_and_the_losses(seven):
    screen, explorer = seven
    explorer.reset()
    explorer.press("after step", "ArrowRight", times=2)
    blocks, steps = ask(
        screen, "[{k: one[k] for k in ('box', 'limits')} for one in explorer.picture.hover]"
    )
    for block in (1, 7, 12):
        explorer.point_at(blocks, block)
        wanted = [gradients(12, name, 0, 30)[block - 1] for name in ("pre", "post")]
        assert reads(explorer.tip(), f"block (1 = the first) {block}", wanted)
    explorer.point_at(blocks, 15)
    assert not any(character.isdigit() for character in explorer.tip().partition(":")[2])
    for step in (5, 150, 300):
        explorer.point_at(steps, step)
        wanted = [
            sum(run[step // 5 - 1] for run in losses(12, name, 0)) / 3 for name in ("pre", "post")
        ]
        assert reads(explorer.tip(), f"step {step}", wanted)
    screen.page.mouse.move(1, 1)


def test_the_whole_depth_explorer_can_be_seen_at_once(seven):
    screen, explorer = seven
    explorer.root.scroll_into_view_if_needed()
    box = explorer.root.bounding_box()
    assert box["height"] < screen.page.viewport_size["height"]
    assert explorer.image.evaluate("(image) => image.naturalWidth") >= 1000


def test_nothing_left_this_machine_and_nothing_complained_in_notebook_07(seven):
    screen, _ = seven
    assert screen.complaints() == []


# --- notebook 08 -----------------------------------------------------------------------------


def typed(explorer, text):
    """Put other words into the text box as a learner does: mark all, and type over it."""
    explorer._control("text").locator("input").click()
    explorer.page.keyboard.press("Control+A")
    explorer.page.keyboard.type(text, delay=20)


def put(explorer, text):
    """Type a sentence, and wait until it is translated."""
    typed(explorer, text)
    settled(explorer, f"text '{text}';")


def maps(screen, text, layer):
    """What the model says of a sentence: weights (head, query, key), the queries and the keys."""
    return ask(
        screen,
        f"(lambda one: [one.weights.tolist(), one.queries, one.keys])"
        f"(phrase_translator().maps({text!r})[{layer!r}])",
    )


def told_by(screen, text, layer, head, query):
    """The words that belong below the picture."""
    weights, queries, keys = maps(screen, text, layer)
    shown = weights[head]
    nats = [-sum(p * math.log(p) for p in row if p > 0) for row in shown]
    measures = f"entropy {sum(nats) / len(nats):.2f}; "
    if queries == keys:
        far = [sum(p * abs(i - j) for j, p in enumerate(row)) for i, row in enumerate(shown)]
        measures += f"distance {sum(far) / len(far):.1f}; "
    brightest = max(weight for one in weights for row in one for weight in row)
    french = ask(screen, f"repr(phrase_translator()({text!r}))")
    answer = f"answer {french}; " if ANSWERS else ""
    return (
        f"Translator: text {text!r}; {answer}layer {layer}; head {head} of {len(weights)}; {measures}"
        f"query {query} {queries[query]}; {attends_to(keys, shown[query])}; "
        f"brightest colour {brightest:.2f}"
    )


def reads_off(screen, explorer, text, layer, head):
    """Point at every third cell of the map."""
    weights, queries, keys = maps(screen, text, layer)
    map_ = regions(screen)[0]
    assert map_["shape"] == [len(queries), len(keys)]
    places = [(row, column) for row in range(len(queries)) for column in range(len(keys))]
    for row, column in places[::7]:
        tip = point_at(explorer, map_, row, column)
        words = f"query {row} {queries[row]}, key {column} {keys[column]}"
        assert says(tip, words, weights[head][row][column]), tip
    screen.page.mouse.move(1, 1)


def reset(explorer):
    """Press Reset, and wait until the first sentence is back."""
    explorer.reset()
    settled(explorer, f"text '{FIRST}';")
    settled(explorer, "layer decoder 1: cross; head 1 of 4;")


@pytest.fixture(scope="module")
def eight(lab, screen):
    """Notebook 08 after the cells of its first explorer have run."""
    screen.open(lab, EIGHT)
    screen.run("start(seed=8)")
    screen.run("translator = phrase_translator()")
    return screen, Explorer(screen.page, "Translator")


def test_a_typed_sentence_is_translated_and_the_weights_are_those_of_the_model(eight):
    screen, explorer = eight
    assert explorer.summary() == told_by(screen, FIRST, "decoder 1: cross", 1, 3)
    before = explorer.picture()
    put(explorer, OLD)
    assert explorer.summary() == told_by(screen, OLD, "decoder 1: cross", 1, 3)
    assert explorer.picture() != before
    _, french, english = maps(screen, OLD, "decoder 1: cross")
    assert french[-2:] == ["?", "<eos>"] and "blanches" in french
    assert english == OLD.split()
    reads_off(screen, explorer, OLD, "decoder 1: cross", 1)


def test_layers_are_chosen_and_heads_and_queries_stepped_by_keyboard(eight):
    screen, explorer = eight
    reset(explorer)
    put(explorer, OLD)
    seen = [explorer.picture()]
    for layer in ("decoder 0: cross", "encoder 0: self", "decoder 1: self"):
        explorer.choose("layer", layer)
        assert explorer.summary() == told_by(screen, OLD, layer, 1, 3)
        seen.append(explorer.picture())
    explorer.choose("layer", "encoder 0: self")
    seen.pop(2)
    explorer.press("head", "ArrowRight", times=2)
    assert explorer.summary() == told_by(screen, OLD, "encoder 0: self", 3, 3)
    seen.append(explorer.picture())
    explorer.press("query", "ArrowRight", times=4)
    assert explorer.summary() == told_by(screen, OLD, "encoder 0: self", 3, 7)
    seen.append(explorer.picture())
    reads_off(screen, explorer, OLD, "encoder 0: self", 3)
    explorer.press("query", "End")  # beyond the sentence: its last word
    assert explorer.summary() == told_by(screen, OLD, "encoder 0: self", 3, 9)
    assert len(set(seen)) == len(seen)


def test_the_layer_menu_lists_all_layers_and_is_moved_by_keys(eight):
    """Not by the arrows: with them JupyterLab goes to another cell."""
    screen, explorer = eight
    reset(explorer)
    menu = explorer._control("layer").locator("select")
    options = menu.locator("option").all_inner_texts()
    layers = ask(screen, "list(phrase_translator().maps('he sleeps .'))")
    assert [one.replace("\xa0", " ") for one in options] == layers and len(layers) == 6
    menu.focus()
    screen.page.keyboard.press("Home")
    settled(explorer, "layer encoder 0: self;")
    screen.page.keyboard.press("e")
    settled(explorer, "layer encoder 1: self;")


def test_lines_show_the_same_weights(eight):
    screen, explorer = eight
    reset(explorer)
    explorer.choose("view", "lines")
    weights, queries, keys = maps(screen, FIRST, "decoder 1: cross")
    _, lines, *_ = regions(screen)  # the first is of the tokens on the left
    for key in (0, 4, 7):
        tip = point_at(explorer, lines, key, 0)
        assert says(tip, f"key {key} {keys[key]}, query 3 {queries[3]}", weights[1][3][key])
    screen.page.mouse.move(1, 1)


def test_an_unknown_word_is_named_with_near_ones_and_a_right_sentence_works_again(eight):
    screen, explorer = eight
    reset(explorer)
    put(explorer, "he sees the cat")
    before = explorer.picture()
    explorer.page.keyboard.type("z", delay=20)  # "he sees the catz"
    settled(explorer, "'catz' is not among the")
    message = explorer.problem()
    assert "cannot be drawn" in message and "The picture still shows the last one" in message
    near = message.partition("similar words are ")[2].partition(". The picture")[0].split(", ")
    assert "'cat'" in near and len(near) == 3
    known = ask(screen, "phrase_translator().source.tokens")
    assert all(word.strip("'") in known for word in near)
    explorer.page.wait_for_timeout(300)
    assert explorer.picture() == before
    typed(explorer, "the dragon sleeps")
    settled(explorer, "'dragon' is not among the")
    for wrong, words in (("", "has no words"), ("he sleeps. she", "one sentence at a time")):
        typed(explorer, wrong) if wrong else (
            screen.page.keyboard.press("Control+A"),
            screen.page.keyboard.press("Backspace"),
        )
        settled(explorer, words)
    put(explorer, OLD)
    assert explorer.summary() == told_by(screen, OLD, "decoder 1: cross", 1, 3)
    reads_off(screen, explorer, OLD, "decoder 1: cross", 1)


def test_a_word_that_is_not_there_stays_said_while_other_controls_move(eight):
    screen, explorer = eight
    reset(explorer)
    put(explorer, "he sees the cat")
    before = explorer.picture()
    explorer.page.keyboard.type("z", delay=20)
    settled(explorer, "'catz'")
    explorer._handle("head").focus()
    screen.page.keyboard.press("ArrowRight")
    screen.page.wait_for_timeout(400)
    assert "'catz'" in explorer.problem() and explorer.picture() == before
    put(explorer, "he sees the cats")
    assert explorer.summary() == told_by(screen, "he sees the cats", "decoder 1: cross", 2, 3)


def test_nothing_left_this_machine_and_nothing_complained_in_notebook_08(eight):
    screen, _ = eight
    assert screen.complaints() == []
