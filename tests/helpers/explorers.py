"""What the tests of all explorers do: move a control, look at the picture."""

import io

import numpy as np
from PIL import Image


def move(explorer, **values):
    """Set controls by name, one after the other; return the explorer."""
    for name, value in values.items():
        explorer.controls[name].value = value
    return explorer


def pixels(png):
    """Rows, columns, colours from 0 to 1."""
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB")) / 255


def written(words, number):
    """One text of `Words`: what it says, where it is, and its outline in points."""
    path = words.get_paths()[number].get_extents()
    return words.words[number], tuple(words.get_offsets()[number].tolist()), path


def moved_at_random(make, positions, draw, turns, *, in_turn=False):
    """Move one control after the other; each picture must be that of a full drawing, pixel by pixel.

    Args:
        make: makes the explorer.
        positions: control → its values.
        draw: a `random.Random`.
        turns: how many moves.
        in_turn: whether the controls take turns; drawn as well where not.

    Returns:
        The explorer, and the set of its pictures.
    """
    moved, redrawn = make(), make()
    full, pictures = redrawn.picture.figure, set()
    names = list(positions)
    for turn in range(turns):
        control = names[turn % len(names)] if in_turn else draw.choice(names)
        others = [one for one in positions[control] if one != moved.controls[control].value]
        move(moved, **{control: draw.choice(others)})
        if turn == 5:
            moved.picture.figure.svg()  # saved in between
        redrawn._update(**{name: one.value for name, one in moved.controls.items()})
        full.redraw_background()
        drawn = np.asarray(full._pixels()) / 255
        assert np.array_equal(pixels(moved.picture.png), drawn[..., :3]), (turn, control)
        pictures.add(moved.picture.png)
    return moved, pictures
