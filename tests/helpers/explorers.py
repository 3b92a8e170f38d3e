"""What the tests of all explorers do: move a control, read the summary and the picture."""

import io
import re

import matplotlib
import numpy as np
from PIL import Image

from course_lib.plots.style import COLOURS

VIRIDIS = matplotlib.colormaps["viridis"]
ORANGE, BLUE = (matplotlib.colors.to_rgb(COLOURS[name]) for name in ("second", "main"))


def move(explorer, **values):
    """Set controls by name, one after the other; return the explorer."""
    for name, value in values.items():
        explorer.controls[name].value = value
    return explorer


def fact(explorer, name):
    """What the summary says of a name."""
    return re.search(rf"^  {re.escape(name)} (.*)$", explorer.summary, re.MULTILINE)[1]


def panels(explorer):
    return explorer.picture.figure.panels


def shown(explorer):
    return explorer.summary, explorer.picture.png, explorer.picture.hover, explorer._problem.value


def values_of(region):
    return np.frombuffer(region["values"], "<f4").reshape(region["shape"])


def pixels(png):
    """Rows, columns, colours from 0 to 1."""
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB")) / 255


def at(png, across, down):
    """The colours at places that are fractions of the picture, from its top left."""
    image = pixels(png)
    rows = np.floor(np.asarray(down) * image.shape[0]).astype(int)
    columns = np.floor(np.asarray(across) * image.shape[1]).astype(int)
    return image[rows, columns]


def cells_of(png, box, shape, spot=(0.5, 0.5)):
    """The colour of each cell of a map, at a spot inside the cell: (rows, columns, 3)."""
    (left, top, right, bottom), (rows, columns) = box, shape
    across = left + (np.arange(columns) + spot[0]) / columns * (right - left)
    down = top + (np.arange(rows) + spot[1]) / rows * (bottom - top)
    return at(png, *np.meshgrid(across, down))


def box_of_word(words, number, figure_):
    """Left, top, right, bottom of one of the texts of `Words` as fractions of the figure."""
    outline = words.get_paths()[number].get_extents().extents * figure_.dpi / 72
    x, y = words.get_offset_transform().transform(words.get_offsets()[number])
    corners = [[x + outline[0], y + outline[1]], [x + outline[2], y + outline[3]]]
    (left, low), (right, high) = figure_.transFigure.inverted().transform(corners)
    return [left, 1 - high, right, 1 - low]


def positions(control):
    """All values of a slider or a menu."""
    if hasattr(control, "options"):
        return list(control._options_values)
    count = round((control.max - control.min) / control.step)
    values = [round(control.min + n * control.step, 10) for n in range(count + 1)]
    return [control.base**value for value in values] if hasattr(control, "base") else values


def moved_at_random(moved, redrawn, texts, draw, turns):
    """Move one control after the other; each picture must be that of a full drawing, pixel by pixel.

    Args:
        moved, redrawn: two explorers in the same state; `moved` is moved.
        texts: text box → what is typed.
        draw: a `random.Random`.
        turns: how many moves; the controls take turns.

    Returns:
        The set of the pictures.
    """
    full, pictures = redrawn.picture.figure, set()
    for turn in range(turns):
        names = [name for name, one in moved.controls.items() if not one.disabled]
        control = names[turn % len(names)]
        widget = moved.controls[control]
        values = texts[control] if type(widget).__name__ == "Text" else positions(widget)
        others = [one for one in values if one != widget.value]
        move(moved, **{control: draw.choice(others or values)})
        if turn == 2:
            moved.picture.figure.svg()  # saved in between
        redrawn._update(**moved._fixed, **moved._values())
        full.redraw_background()
        assert moved.picture.figure.png() == full.png(), (turn, control)
        pictures.add(moved.picture.png)
    return pictures
