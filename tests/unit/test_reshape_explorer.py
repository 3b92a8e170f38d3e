"""The reshape explorer against index arithmetic and NumPy's strides."""

import math

import matplotlib
import numpy as np
import pytest

from course_lib.plots.style import COLOURS
from course_lib.widgets import reshape_explorer
from course_lib.widgets.reshape import VARIANTS
from tests.helpers.explorers import fact, move, panels

COLOUR_NAMES = ("main", "second", "third", "truth")


def spot(variant, heads, step, number):
    """Block, row, column of a number at a whole step, and how many columns a block has."""
    d = 8 // heads
    token, column = divmod(number, 8)
    flat = (0, token, column, 8)
    by_token = (token, column // d, column % d, d)
    by_head = (column // d, token, column % d, d)
    if step == 0:
        return flat
    if variant == "split and merge":
        return {1: by_token, 2: by_head, 3: by_token, 4: flat}[step]
    if variant == "merge without transpose":
        place = (column // d) * 3 * d + token * d + column % d  # in memory, head by head
        return {1: by_token, 2: by_head, 3: by_head, 4: (0, place // 8, place % 8, 8)}[step]
    block, row, inner = number // (3 * d), number // d % 3, number % d  # cut as it lies
    return {
        1: (block, row, inner, d),
        2: (block, row, inner, d),
        3: (row, block, inner, d),
        4: (0, row, block * d + inner, 8),
    }[step]


def where(variant, heads, step):
    """The centres of the tiles: blocks side by side, in the middle of four rows and of the width."""
    spots = [spot(variant, heads, step, number) for number in range(24)]
    places = np.array([(block * (wide + 0.7) + column, row) for block, row, column, wide in spots])
    middle = (places.max(axis=0) + places.min(axis=0)) / 2
    return places - middle + (0, 1.5)


@pytest.fixture
def reshape(without_annotations):
    return reshape_explorer()


@pytest.mark.parametrize("heads", [2, 4])
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_element_is_where_index_arithmetic_puts_it(reshape, variant, heads):
    reshape.choose(heads=heads, variant=variant)
    (panel,) = panels(reshape)
    low, high = sorted(panel.axes.get_xlim()), sorted(panel.axes.get_ylim())
    sizes = {"length": 3, "heads": heads, "d_head": 8 // heads, "d_model": 8}
    for step in (0, 1, 2, 3, 4, 0.5, 2.5, 3.7):
        move(reshape, step=step)
        before, after = math.floor(step), math.ceil(step)
        share = step - before
        wanted = (1 - share) * where(variant, heads, before) + share * where(variant, heads, after)
        assert np.allclose(panel.positions, wanted)
        written = dict(
            zip(map(int, panel._numbers.words), panel._numbers.get_offsets(), strict=True)
        )
        assert all(np.allclose(place, wanted[number]) for number, place in written.items())
        places = np.array(list(written.values()))
        apart = np.abs(places[:, None] - places).max(-1) + 9 * np.eye(len(places))
        assert apart.min() > 0.8, "no number stands on another"
        for hidden in set(range(24)) - written.keys():  # by a tile that lies on it
            assert np.abs(wanted[hidden + 1 :] - wanted[hidden]).max(axis=1).min() < 0.94
        centres = [path.vertices[:4].mean(axis=0) for path in panel._tiles.get_paths()]
        assert np.allclose(centres, wanted)
        assert (wanted > (low[0], high[0])).all() and (wanted < (low[1], high[1])).all()
        what = VARIANTS[variant][after - 1] if after else None
        axes = what.axes if what else "length, d_model"
        shape = ", ".join(str(sizes[axis]) for axis in axes.split(", "))
        assert fact(reshape, "shape") == f"({axes}) = ({shape})"
        assert fact(reshape, "step") == f"{step:g}, {what.code if what else 'x'}"
    colours = panel._tiles.get_facecolors()[:, :3]
    owners = [COLOURS[COLOUR_NAMES[number % 8 // (8 // heads)]] for number in range(24)]
    assert np.allclose(colours, [matplotlib.colors.to_rgb(owner) for owner in owners])


@pytest.mark.parametrize("heads", [2, 4])
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_summary_says_what_is_right(reshape, variant, heads):
    reshape.choose(heads=heads, variant=variant, step=4.0)
    right = np.array_equal(where(variant, heads, 4), where("split and merge", heads, 0))
    assert right == (variant == "split and merge")
    assert fact(reshape, "merging gives x again") == ("yes" if right else "no")
    wrong = variant == "split without transpose"
    assert fact(reshape, "the split is") == ("wrong" if wrong else "correct")
    split = [spot(variant, heads, 2, number) for number in range(24)]
    head_0 = sorted(
        (row, column, n) for n, (block, row, column, _) in enumerate(split) if not block
    )
    assert fact(reshape, "head 0 gets") == " ".join(str(n) for _, _, n in head_0)


@pytest.mark.parametrize("heads", [2, 4])
def test_strides_equal_those_of_numpy(reshape, heads):
    reshape.choose(heads=heads)
    x = np.arange(24, dtype=np.int64).reshape(3, 8)
    tokens = x.reshape(3, heads, -1)
    for step, array in enumerate([x, tokens, tokens.swapaxes(0, 1), tokens, x]):
        strides = str(tuple(stride // 8 for stride in array.strides))
        assert fact(move(reshape, step=step), "strides") == strides


def test_rows_and_blocks_are_named_as_they_are_meant_to_be(reshape):
    for step, rows, blocks in (
        (0, "position", None),
        (1, "head", "position"),
        (2, "position", "head"),
        (3, "head", "position"),
        (4, "position", None),
    ):
        move(reshape, step=step)
        (panel,) = panels(reshape)
        *names, _ = panel._names.words
        counts = {"position": 3, "head": 2}
        wanted = [f"{rows} {n}" for n in range(counts[rows])]
        wanted += [f"{blocks} {n}" for n in range(counts[blocks])] if blocks else []
        assert names == wanted
        places = dict(zip(names, panel._names.get_offsets(), strict=False))
        for token in range(3):
            for head in range(2):
                x, y = panel.positions[8 * token + 4 * head + 1]
                if f"{rows} {(token if rows == 'position' else head)}" in places:
                    assert places[f"{rows} {(token if rows == 'position' else head)}"][1] == y
                if blocks:
                    name = f"{blocks} {token if blocks == 'position' else head}"
                    assert abs(places[name][0] - x) <= 1, "above its block"
    assert len(panels(move(reshape, step=1.5))[0]._names.words) == 1, "between two steps, none"
