"""What a learner does with an explorer in the browser, and what is read off its picture."""

import json

import pytest

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


def point_at(explorer, region, row, column):
    """Move the pointer to the middle of a cell, where `region` (an entry of `Picture.hover`) says it is."""
    explorer.image.scroll_into_view_if_needed()  # what was pressed before may stand far below it
    picture = explorer.image.bounding_box()
    (left, top, right, bottom), (rows, columns) = region["box"], region["shape"]
    across = left + (column + 0.5) / columns * (right - left)
    down = top + (row + 0.5) / rows * (bottom - top)
    explorer.page.mouse.move(
        picture["x"] + across * picture["width"], picture["y"] + down * picture["height"]
    )
    return explorer.tip()


def click_at(explorer, region, row, column, words):
    """Click the middle of a cell, and wait until the line below the picture holds `words`."""
    point_at(explorer, region, row, column)
    explorer.page.mouse.down()
    explorer.page.mouse.up()
    settled(explorer, words)


def regions(screen):
    return ask(
        screen, "[{'box': one['box'], 'shape': one['shape']} for one in explorer.picture.hover]"
    )


def says(tip, words, weight):
    """Whether a tip names these cells and has this number: a weight to four decimals, another to four digits."""
    name, _, number = tip.rpartition(": ")
    if number == "<0.0001":
        return name == words and 0 < weight < 0.00005
    is_near = float(number) == pytest.approx(weight, rel=6e-4, abs=1e-9)
    return name == words and (number == f"{weight:.4f}" or is_near)


def attends_to(words, weights):
    """What the summary says of one query: its three largest weights."""
    largest = sorted(range(len(words)), key=lambda key: -weights[key])[:3]
    return "attends to " + ", ".join(f"{n} {words[n]} ({weights[n]:.2f})" for n in largest)


def settled(explorer, words):
    """Wait until the line below the picture holds `words`."""
    explorer.page.wait_for_function(
        "([root, words]) => root.innerText.includes(words)",
        arg=[explorer.root.element_handle(), words],
    )
