"""Panels and the artists in them: where they draw what, compared with what matplotlib draws."""

import numpy as np
import pytest
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextToPath

from course_lib.plots import (
    HistogramPanel,
    LinesPanel,
    MapPanel,
    VectorsPanel,
    figure,
)
from course_lib.plots.words import Words, _outline, width
from tests.helpers.explorers import BLUE, ORANGE, VIRIDIS


def test_words_stand_where_texts_of_matplotlib_do():
    """The ink of a word drawn as an outline is that of the same word drawn as a text, to a pixel."""

    def ink(draw, word, size, **more):
        drawn, axes = figure(3, 1)
        axes.set(xlim=(0, 1), ylim=(0, 1))
        axes.set_axis_off()
        draw(axes, word, size, **more)
        drawn.canvas.draw()
        rows, columns = np.nonzero(np.asarray(drawn.canvas.buffer_rgba())[..., :3].min(-1) < 128)
        return rows.min(), rows.max(), columns.min(), columns.max()

    def outlines(axes, word, size, align):
        Words(axes).show([word], [(0.5, 0.5)], size=size, align=align)

    def text(axes, word, size, align):
        axes.text(0.5, 0.5, word, size=size, ha=align, parse_math=False)

    for word, size, align, name in (("Ham", 12, 0, "left"), ("$a$ H", 20, 1, "right")):
        mine, theirs = ink(outlines, word, size, align=align), ink(text, word, size, align=name)
        height, across = mine[1] - mine[0], mine[3] - mine[2]
        assert abs(height - (theirs[1] - theirs[0])) <= 1
        assert abs(across - (theirs[3] - theirs[2])) <= 2
        assert abs(mine[2] - theirs[2]) <= 2
        assert width(word, size) == pytest.approx(across * 72 / 100, rel=0.15)
    top, bottom, *_ = ink(outlines, "H", 20, align=0.5)
    assert abs((top + bottom) / 2 - 49.5) <= 1, "a capital letter is centred on its place"


def test_texts_in_cells_are_cut_to_their_width_and_can_be_read():
    drawn, axes = figure(4, 2)
    panel = MapPanel(axes)
    drawn.draw_without_rendering()
    wide = "a long token indeed"
    values = np.linspace(0, 1, 12).reshape(2, 6)
    panel.update(values, "ab", "cdefgh", texts=[[wide] * 6, ["i"] * 6])
    cell = 72 / drawn.dpi * np.diff(axes.transData.transform([(0, 0), (1 / 6, 0)])[:, 0]).item()
    shown = panel._words.words
    assert shown[6:] == ["i"] * 6 and {*shown[:6]} == {shown[0]}
    assert shown[0][-1] == "…" and wide.startswith(shown[0][:-1]) and len(shown[0]) > 3
    assert 0.7 * cell < width(shown[0], 9) < cell

    def light(colour):  # relative luminance, WCAG 2
        linear = np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4)
        return linear @ [0.2126, 0.7152, 0.0722] + 0.05

    below = light(VIRIDIS(values.ravel())[:, :3])
    above = light(panel._words.get_facecolor()[:, :3])
    assert (np.maximum(above, below) / np.minimum(above, below)).min() > 4.5


def test_cells_without_a_value_are_white_and_rows_and_columns_may_change():
    _, axes = figure()
    panel = MapPanel(axes)
    panel.update([[0.5, np.nan], [1.0, 0.25], [0, 0]], "abc", "de", cell=(1, None))
    wanted = VIRIDIS([[0.5, np.nan], [1.0, 0.25], [0, 0]], bytes=True)
    wanted[0, 1] = 255
    assert np.array_equal(panel._image.get_array(), wanted)
    assert panel._frame.get_bbox().bounds == pytest.approx((0, 1 / 3, 1, 1 / 3))
    assert panel.data()["row"] == [1]
    panel.update(panel.values, "abc", "de", cell=(None, 1))
    assert panel._frame.get_bbox().bounds == pytest.approx((0.5, 0, 0.5, 1))
    panel.update([[1.0, 1.0, 4.0]], "a", "def", largest=4.0)
    assert np.array_equal(panel._image.get_array(), VIRIDIS([[0.25, 0.25, 1.0]], bytes=True))
    assert not panel._frame.get_visible()


def test_a_histogram_counts_and_leaves_out_what_lies_outside():
    _, axes = figure()
    panel = HistogramPanel(axes, np.array([0, 1, 2]))
    panel.update([0.5, 1.5, 1.6, 9.0])
    assert panel.shares.tolist() == [0.25, 0.5]
    assert panel._bars.get_data()[0].tolist() == [0.25, 0.5]


def test_a_signed_map_is_white_at_zero_and_names_a_few_of_many_rows():
    _, axes = figure()
    panel = MapPanel(axes, scale="signed")
    panel.update(np.linspace(-2, 2, 303).reshape(101, 3), largest=2.0)
    seen = panel._image.get_array()[[0, 50, 100], [0, 1, 2], :3]
    wanted = [BLUE, (1, 1, 1), ORANGE]
    assert np.allclose(seen / 255, wanted, atol=0.01)
    assert panel._row_names.words == ["0", "20", "40", "60", "80", "100"]
    assert panel._column_names.words == ["0", "1", "2"]
    assert panel.hover()[0]["rows"] == [str(n) for n in range(101)]


def test_a_logarithmic_axis_with_few_points_names_each():
    drawn, axes = figure()
    LinesPanel(axes, [16, 32, 64], {"a": [1, 2, 3]}, log_x=True)
    drawn.draw_without_rendering()
    assert [label.get_text() for label in axes.get_xticklabels()] == ["16", "32", "64"]


def test_up_to_sixteen_lines_each_have_a_look_of_their_own():
    _, axes = figure()
    lines = {str(n): [n, n] for n in range(16)}
    drawn = LinesPanel(axes, [0, 1], lines)._curves.values()
    assert len({(line.get_linestyle(), line.get_color()) for line in drawn}) == 16


def test_a_disc_has_an_area_in_proportion_to_the_weight_and_sits_at_the_end_of_its_key():
    _, axes = figure()
    panel = VectorsPanel(axes, [(0, 0)], ("query", "keys"), (3, 2))
    panel.update([[1, 1]], [[1, 0], [0, 2]], weights=[0.25, 0.75])
    _, small, large = panel._ends.get_sizes()
    assert large == pytest.approx(3 * small)
    assert panel._ends.get_offsets().tolist() == [[1, 1], [1, 0], [0, 2]]


def test_each_side_has_its_arrow():
    panel = LinesPanel(figure(3, 3)[1], [0, 1], {"line": [0, 1]}, y_limits=(0, 1))
    panel.axes.set_xlim(0, 1)
    beyond = [(0.5, 2), (0.5, -1), (-3, 0.5), (4, 0.5), (0.5, 0.5)]
    panel.update(marker=tuple(np.array(beyond, dtype=float).T))
    places = [tuple(np.ravel(one.get_data())) for one in panel._beyond]
    wanted = [(0.5, 0.97), (0.5, 0.03), (0.02, 0.5), (0.98, 0.5)]
    assert np.allclose(places, wanted)
    assert np.allclose(np.ravel(panel._marker.get_data()), (0.5, 0.5))
    assert panel._heights.words == ["2", "-1"]
    assert panel.data()["height"].tolist() == [float(y) for _, y in beyond]


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ((1e-5, 1.0), ["10⁻⁵", "10⁻⁴", "0.001", "0.01", "0.1", "1"]),
        ((0.1, 1000.0), ["0.1", "1", "10", "100", "1,000"]),
        ((1e5, 1e9), ["100,000", "1,000,000", "10⁷", "10⁸", "10⁹"]),
        ((2e-4, 8e-4), ["2·10⁻⁴", "3·10⁻⁴", "4·10⁻⁴"]),
    ],
)
def test_a_logarithmic_axis_has_no_zeros_to_count(limits, said):
    drawn, axes = figure(4, 3)
    LinesPanel(axes, [0, 1], {"a": list(limits)}, log_y=True, y_limits=limits)
    if said[0].startswith("2"):
        axes.set_yticks([2e-4, 3e-4, 4e-4])
    drawn.canvas.draw()
    seen = [tick.get_text() for tick in axes.get_yticklabels()]
    assert [one for one in seen if one in said] == said
    assert not any("e" in one for one in seen)


@pytest.mark.parametrize("number", ["7", "1,234", "48,118", "90,210", "0,01"])
def test_the_digits_of_a_number_stand_where_matplotlib_sets_them(number):
    maker, font = TextToPath(), FontProperties(family="DejaVu Sans")
    vertices, codes = maker.get_text_path(font, number)
    path, across = _outline(number, ("DejaVu Sans",))
    np.testing.assert_allclose(path.vertices, np.asarray(vertices) * (100 / maker.FONT_SCALE))
    assert path.codes.tolist() == list(codes)
    theirs = maker.get_text_width_height_descent(number, font, ismath=False)[0]
    assert across == pytest.approx(theirs * 100 / font.get_size_in_points())
