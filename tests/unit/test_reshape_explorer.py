"""The reshape explorer against index arithmetic and NumPy's strides."""

import math
import re

import matplotlib
import numpy as np
import pytest

from course_lib.plots.style import COLOURS
from course_lib.widgets import reshape_explorer
from course_lib.widgets.reshape import VARIANTS
from tests.helpers.attention_explorers import at, facts


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
    spots = [spot(variant, heads, step, number) for number in range(24)]
    return np.array([(block * (wide + 0.7) + column, row) for block, row, column, wide in spots])


@pytest.fixture
def reshape(without_annotations):
    return reshape_explorer()


@pytest.mark.parametrize("heads", [2, 4])
@pytest.mark.parametrize("variant", VARIANTS)
def test_reshape_explorer_equals_index_arithmetic(reshape, variant, heads):
    reshape.controls["heads"].value, reshape.controls["variant"].value = heads, variant
    (panel,) = reshape.picture.figure.panels
    d = 8 // heads
    low, high = sorted(panel.axes.get_xlim()), sorted(panel.axes.get_ylim())
    for step in (0, 1, 2, 3, 4, 0.5, 1.5, 2.5, 3.5, 0.2, 3.7):
        reshape.controls["step"].value = step
        before, after = math.floor(step), math.ceil(step)
        share = step - before
        wanted = (1 - share) * where(variant, heads, before) + share * where(variant, heads, after)
        assert np.allclose(panel.positions, wanted)
        for number, text in enumerate(panel._texts):
            assert text.get_text() == str(number)
            assert text.get_position() == pytest.approx(tuple(wanted[number]))
        paths = panel._tiles.get_paths()
        centres = [path.vertices[:4].mean(axis=0) for path in paths]
        assert np.allclose(centres, wanted)
        assert (wanted > (low[0], high[0])).all() and (wanted < (low[1], high[1])).all()
        if step == before:
            assert len(set(map(tuple, wanted.round(6).tolist()))) == 24
        said, what = facts(reshape), VARIANTS[variant][after - 1] if after else None
        assert said["step"] == f"{step:g}, {what.code if what else 'x'}"
        axes = what.axes if what else "length, d_model"
        sizes = [
            {"length": 3, "heads": heads, "d_head": d, "d_model": 8}[a] for a in axes.split(", ")
        ]
        assert said["shape"] == f"({axes}) = ({', '.join(map(str, sizes))})"
        assert panel._caption.get_text() == f"{what.code if what else 'x'}:  {said['shape']}"
    colours = panel._tiles.get_facecolors()
    names = ("main", "second", "third", "truth")
    for number in range(24):
        owner = number % 8 // d
        assert np.allclose(colours[number][:3], matplotlib.colors.to_rgb(COLOURS[names[owner]]))
    said = facts(reshape)
    assert said["variant"] == variant
    assert said["the split is"] == ("wrong" if variant == "split without transpose" else "correct")
    # a cut and a transpose that undoes nothing: only the correct variant gives x again
    merged = where(variant, heads, 4)
    right = np.array_equal(merged, where("split and merge", heads, 0))
    assert said["merging gives x again"] == ("yes" if right else "no")
    assert right == (variant == "split and merge")
    split = [spot(variant, heads, 2, number) for number in range(24)]
    head_0 = sorted(
        (row, column, n) for n, (block, row, column, _) in enumerate(split) if block == 0
    )
    assert said["head 0 gets"] == " ".join(str(n) for _, _, n in head_0)


@pytest.mark.parametrize("heads", [2, 4])
def test_reshape_explorer_strides_equal_numpy(reshape, heads):
    reshape.controls["heads"].value, reshape.controls["variant"].value = heads, "split and merge"
    x = np.arange(24, dtype=np.int64).reshape(3, 8)
    tokens = x.reshape(3, heads, -1)
    for step, array in enumerate([x, tokens, tokens.swapaxes(0, 1), tokens, x]):
        reshape.controls["step"].value = step
        assert facts(reshape)["strides"] == str(tuple(stride // 8 for stride in array.strides))


def test_reshape_explorer_heads_keep_their_colour(reshape):
    reshape.controls["heads"].value, reshape.controls["variant"].value = 4, "split and merge"
    (panel,) = reshape.picture.figure.panels
    to_figure = reshape.picture.figure.figure.transFigure.inverted()
    for step in (0, 2):
        reshape.controls["step"].value = step
        for number, place in enumerate(where("split and merge", 4, step)):
            x, y = to_figure.transform(panel.axes.transData.transform(place + (-0.36, -0.36)))
            colour = at(reshape.picture.png, x, 1 - y)
            name = ("main", "second", "third", "truth")[number % 8 // 2]
            assert np.abs(colour - matplotlib.colors.to_rgb(COLOURS[name])).max() < 0.02


@pytest.mark.usefixtures("without_annotations")
def test_reshape_explorer_rounds_its_step():
    """A slider in a browser counts in tenths: 0.1 + 0.2 is 0.30000000000000004."""
    explorer = reshape_explorer(step=4)
    assert facts(explorer)["step"] == "4, .flatten(-2)"
    explorer.controls["step"].value = 1.0
    assert facts(explorer)["step"].startswith("1.0, x.unflatten")


@pytest.mark.usefixtures("without_annotations")
def test_reshape_explorer_initial_settings():
    explorer = reshape_explorer(heads=4, variant="merge without transpose", step=2.5)
    values = {name: one.value for name, one in explorer.controls.items()}
    assert values == {"step": 2.5, "heads": 4, "variant": "merge without transpose"}
    step = explorer.controls["step"]
    assert (step.min, step.max, step.step) == (0, 4, 0.1)


def test_reshape_explorer_passes_the_type_checker():
    assert reshape_explorer().summary


@pytest.mark.usefixtures("without_annotations")
@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: reshape_explorer(heads=3), "heads=3 must be one of 2, 4"),
        (lambda: reshape_explorer(heads=8), "heads=8 must be one of 2, 4"),
        (
            lambda: reshape_explorer(variant="split"),
            "variant='split' is unknown; it must be one of",
        ),
        (lambda: reshape_explorer(step=4.1), "step=4.1 must be from 0 to 4"),
        (lambda: reshape_explorer(step=-0.1), "step=-0.1 must be from 0 to 4"),
        (lambda: reshape_explorer(step=math.nan), "step=nan must be from 0 to 4"),
    ],
)
def test_invalid_reshape_explorer_input_raises_value_error(call, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        call()
