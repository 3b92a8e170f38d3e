"""Notebooks 04 and 05 in a real JupyterLab: type a sentence, step through layers, heads and queries."""

import json

import pytest

from tests.browser.lab import Explorer

FOUR, FIVE = "04_self_and_cross_attention.ipynb", "05_multi_head_attention.ipynb"
WIDE = "the horse did not cross the river because it was too wide"

# Run code in the notebook's kernel, past its cells, and hand back what it prints.
ASK = """async (code) => {
    const { kernel } = window.jupyterapp.shell.currentWidget.sessionContext.session;
    const future = kernel.requestExecute({ code, store_history: false });
    let printed = '';
    future.onIOPub = ({ header, content }) => {
        if (header.msg_type === 'stream') printed += content.text;
    };
    const { content } = await future.done;
    if (content.status !== 'ok') throw new Error(content.evalue);
    return printed;
}"""


def ask(screen, code):
    """Evaluate an expression in the kernel."""
    return json.loads(screen.page.evaluate(ASK, f"import json\nprint(json.dumps({code}))"))


def model_says(screen, text, layer, head):
    """The weights of one head, (query, key), from the model that was trained in the notebook."""
    return ask(screen, f"read({text!r})[{layer!r}].weights[{head}].tolist()")


def point_at(explorer, region, row, column):
    """Move the pointer to the middle of a cell, where `region` (an entry of `Picture.hover`) says it is."""
    picture = explorer.image.bounding_box()
    (left, top, right, bottom), (rows, columns) = region["box"], region["shape"]
    across = left + (column + 0.5) / columns * (right - left)
    down = top + (row + 0.5) / rows * (bottom - top)
    explorer.page.mouse.move(
        picture["x"] + across * picture["width"], picture["y"] + down * picture["height"]
    )
    return explorer.tip()


def regions(screen):
    return ask(
        screen, "[{'box': one['box'], 'shape': one['shape']} for one in explorer.picture.hover]"
    )


def says(tip, words, weight):
    """Whether a tip names these cells and has this number, to four digits."""
    name, _, number = tip.rpartition(": ")
    return name == words and float(number) == pytest.approx(weight, rel=6e-4, abs=1e-9)


def looks_at(words, weights):
    """What the summary says of one query: its three largest weights."""
    largest = sorted(range(len(words)), key=lambda key: -weights[key])[:3]
    return "looks at " + ", ".join(f"{n} {words[n]} ({weights[n]:.2f})" for n in largest)


def settled(explorer, words):
    """Wait until the line below the picture holds `words`."""
    explorer.page.wait_for_function(
        "([root, words]) => root.innerText.includes(words)",
        arg=[explorer.root.element_handle(), words],
    )


@pytest.fixture(scope="module")
def four(lab, screen):
    """Notebook 04, and its first explorer, after the first cells and that of the masks have run."""
    screen.open(lab, FOUR)
    for cell in (
        "start(seed=4)",
        "class Reader",
        "vocabulary = ",
        "def as_tensors",
        "def train(",
        "reader = Reader(",
    ):
        screen.run(cell)
    return screen, Explorer(screen.page, "1 layer reads")


def test_a_typed_sentence_is_read_and_the_weights_are_those_of_the_model(four):
    screen, explorer = four
    explorer.type("text", WIDE)
    settled(explorer, "too wide'")
    words, weights = WIDE.split(), model_says(screen, WIDE, "self-attention", 0)
    said = explorer.summary()
    assert f"text '{WIDE}'; layer self-attention; head 0 of 1;" in said
    assert f"query 11 wide; {looks_at(words, weights[11])};" in said
    assert f"brightest colour {max(map(max, weights)):.2f}" in said
    explorer.press("query", "ArrowLeft", times=3)
    assert f"query 8 it; {looks_at(words, weights[8])};" in explorer.summary()
    map_, lines = regions(screen)
    for row, column in ((0, 0), (11, 6), (11, 1), (4, 11)):
        tip = point_at(explorer, map_, row, column)
        cell = f"query {row} {words[row]}, key {column} {words[column]}"
        assert says(tip, cell, weights[row][column])
    for key in (0, 6, 11):
        tip = point_at(explorer, lines, key, 0)
        assert says(tip, f"key {key} {words[key]}, query 8 it", weights[8][key])


def test_a_word_that_the_model_does_not_know_is_said_and_the_picture_stays(four):
    _, explorer = four
    explorer.reset()
    settled(explorer, "too tired'")
    explorer.type("text", "the zebra", settled=False)
    settled(explorer, "'zebra' at place 1")
    assert "cannot be drawn" in explorer.summary()
    before = explorer.picture()
    explorer.page.wait_for_timeout(300)
    assert explorer.picture() == before
    explorer.type("text", "the horse was tired")
    settled(explorer, "text 'the horse was tired'")
    assert "query 3 tired;" in explorer.summary(), "a shorter sentence shows its last word"


def test_a_mask_is_written_in_another_convention(four):
    screen, _ = four
    screen.run("masks = mask_explorer()")
    masks = Explorer(screen.page, "Masks")
    masks.choose("written", "added to the scores")
    masks.choose("mask", "causal")
    said = masks.summary()
    assert "mask causal; convention added to the scores; pairs that may attend 15 of 25;" in said
    masks.press("queries", "ArrowLeft", times=4)
    assert "pairs that may attend 5 of 5;" in masks.summary()


def test_nothing_left_this_machine_and_nothing_complained_in_notebook_04(four):
    screen, _ = four
    assert screen.complaints() == []


@pytest.fixture(scope="module")
def five(lab, screen):
    """Notebook 05, and its last explorer, after the cells that it needs have run."""
    screen.open(lab, FIVE)
    for cell in (
        "start(seed=5)",
        "class Reader(",
        "def columns(",
        "def loss(model, pick)",
        'tokens, places = columns("train")',
        'layer="layers.1"',
    ):
        screen.run(cell)
    return screen, Explorer(screen.page, "2 layers of 8 heads read")


def test_layers_and_heads_show_the_weights_of_the_model(five):
    screen, explorer = five
    text = ask(screen, "text")
    words = text.split()
    explorer.choose("layer", "layers.0")
    explorer.press("head", "ArrowRight", times=5)
    weights = model_says(screen, text, "layers.0", 5)
    assert "layer layers.0; head 5 of 8;" in explorer.summary()
    assert f"query 8 it; {looks_at(words, weights[8])};" in explorer.summary()
    (map_,) = regions(screen)
    for row, column in ((0, 0), (8, 1), (11, 6), (3, 11)):
        tip = point_at(explorer, map_, row, column)
        cell = f"query {row} {words[row]}, key {column} {words[column]}"
        assert says(tip, cell, weights[row][column])
    screen.page.mouse.move(1, 1)
    explorer.choose("layer", "layers.1")
    explorer.choose("view", "lines")
    explorer.press("query", "ArrowRight", times=3)
    weights = model_says(screen, text, "layers.1", 5)
    assert f"query 11 {words[11]}; {looks_at(words, weights[11])};" in explorer.summary()
    (lines,) = regions(screen)
    for key in (0, 6, 11):
        tip = point_at(explorer, lines, key, 0)
        assert says(tip, f"key {key} {words[key]}, query 11 {words[11]}", weights[11][key])


def test_a_pointer_that_rests_on_the_picture_reads_what_is_drawn_after_a_change(five):
    screen, explorer = five
    explorer.reset()
    try:
        (map_,) = regions(screen)
        point_at(explorer, map_, 3, 11)
        explorer.choose("view", "lines")
        assert screen.errors == []
        assert "query 3" not in explorer.tip()
    finally:
        screen.errors.clear()
        screen.page.mouse.move(1, 1)


def test_a_slider_in_tenths_comes_to_rest_on_whole_steps(five):
    screen, _ = five
    screen.run("reshape = reshape_explorer()")
    reshape = Explorer(screen.page, "Splitting heads")
    for number, code in enumerate((".unflatten(-1, (heads, d_head))", ".transpose(0, 1)"), 1):
        reshape.press("step", "ArrowRight", times=10)
        assert f"step {number}.0, " in reshape.summary() and code in reshape.summary()
    reshape.press("step", "ArrowRight", times=10)
    assert "step 3.0, .transpose(0, 1);" in reshape.summary()
    assert "the way back gives x yes" in reshape.summary()


def test_nothing_left_this_machine_and_nothing_complained_in_notebook_05(five):
    screen, _ = five
    assert screen.complaints() == []
