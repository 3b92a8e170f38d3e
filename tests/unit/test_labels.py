"""Labels of tokens: cut to their space, in any script for which there is a font, and never two alike."""

import itertools
import warnings

import matplotlib
import numpy as np
import pytest
import torch
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from matplotlib.font_manager import fontManager

from course_lib.plots import BarsPanel, MapPanel, NgramsPanel, TreePanel, figure
from course_lib.plots.tokens import labels
from course_lib.topics.attention_maps import AttentionMap
from course_lib.widgets import attention_explorer
from tests.helpers.explorers import box_of_word, move, panels

CHINESE = ["我", "喜欢", "在", "公园", "散步", "。"]
GERMAN = ["Bauarbeiter", "in", "orangefarbenen", "die Geschwindigkeit", "Sicherheitswesten", "."]


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.fixture
def chinese_font(tmp_path):
    """A font that holds the characters of `CHINESE` alone, each a bar of its own height; rcParams name it."""
    characters = sorted(set("".join(CHINESE)))
    names = [".notdef", *(f"u{ord(one):X}" for one in characters)]
    glyphs = {}
    for number, name in enumerate(names):
        pen = TTGlyphPen(None)
        corners = [(100, 0), (100, 100 + 50 * number), (900, 100 + 50 * number), (900, 0)]
        pen.moveTo(corners[0])
        for corner in corners[1:]:
            pen.lineTo(corner)
        pen.closePath()
        glyphs[name] = pen.glyph()
    builder = FontBuilder(1000, isTTF=True)
    builder.setupGlyphOrder(names)
    builder.setupCharacterMap({ord(one): f"u{ord(one):X}" for one in characters})
    builder.setupGlyf(glyphs)
    builder.setupHorizontalMetrics(dict.fromkeys(names, (1000, 0)))
    builder.setupHorizontalHeader(ascent=900, descent=-100)
    builder.setupNameTable({"familyName": "Few Characters", "styleName": "Regular"})
    builder.setupOS2()
    builder.setupPost()
    builder.save(tmp_path / "few.ttf")
    known = list(fontManager.ttflist)
    fontManager.addfont(tmp_path / "few.ttf")
    yield "Few Characters"
    fontManager.ttflist[:] = known


def explorer_of(tokens, **more):
    weights = torch.eye(len(tokens)).repeat(2, 1, 1)
    return attention_explorer({"a": AttentionMap(weights, tokens)}, **more)


def sides(explorer):
    """The labels of both views."""
    map_, lines = panels(explorer)[:2]
    return [map_._row_names, map_._column_names], [lines._left, lines._right]


def seen(word):
    """The pixels of a word in the fonts that are set, as matplotlib's own text, cut to its ink."""
    drawn, axes = figure(4, 0.5)
    axes.set_axis_off()
    axes.text(0.1, 0.5, word, size=20, parse_math=False)
    drawn.canvas.draw()
    dark = np.asarray(drawn.canvas.buffer_rgba())[..., 0] < 128
    columns = np.flatnonzero(dark.any(axis=0))
    return dark[:, columns[0] : columns[-1] + 1].tobytes()


@pytest.mark.parametrize("setting", ["font.family", "font.sans-serif"])
def test_a_script_is_drawn_where_the_settings_name_a_font_that_has_it(chinese_font, setting):
    with matplotlib.rc_context({setting: ["No such font", chinese_font]}):
        explorer = explorer_of(CHINESE, title="我", query=1)
        for view, words in zip(("map", "lines"), sides(explorer), strict=True):
            move(explorer, view=view, query=2)
            assert all(one.words == CHINESE for one in words)
        heights = {
            one: 100 + 50 * n for n, one in enumerate(sorted(set("".join(CHINESE))), start=1)
        }
        outlines = sides(explorer)[1][0].get_paths()
        for token, path in zip(CHINESE, outlines, strict=True):
            assert np.ptp(path.vertices[:, 1]) == pytest.approx(
                max(heights[one] for one in token) * 9 / 1000, rel=0.01
            )


def test_without_a_font_a_token_is_a_box_with_its_number():
    explorer = explorer_of([*CHINESE, "我", "cat"])
    wanted = ["□0", "□□1", "□2", "□□3", "□□4", "□5", "□0", "cat"]
    for words in sides(move(explorer, view="lines"))[1] + sides(explorer)[0]:
        assert words.words == wanted
    assert "我" in explorer.summary, "what is read aloud needs no font"


def test_a_title_that_no_font_has_gives_no_warning_below_the_picture():
    from course_lib.data import Series
    from course_lib.widgets import kernel_regression_explorer

    keys = torch.linspace(0, 1, 20)
    series = Series(keys, keys**2, "n", "年", "水位")
    move(kernel_regression_explorer(series), query=0.5).picture.figure.svg()


@pytest.mark.parametrize("view", ["map", "lines"])
def test_a_long_token_is_cut_at_its_end_and_stays_in_the_picture(view):
    tokens = [*GERMAN, *(f"word{n}" for n in range(8)), "W" * 40, "i" * 90]
    explorer = move(explorer_of(tokens), view=view)
    figure_ = explorer.picture.figure.figure
    for words in sides(explorer)[view == "lines"]:
        cut = 0
        axes = words.axes.get_window_extent().transformed(figure_.transFigure.inverted())
        for number, (word, token) in enumerate(zip(words.words, tokens, strict=True)):
            kept = word.removesuffix("…")
            assert token.startswith(kept) and len(kept) >= 4 or word == token, "its beginning"
            left, top, right, bottom = box_of_word(words, number, figure_)
            assert axes.x0 - 0.002 <= left < right <= axes.x1 + 0.002
            assert 1 - axes.y1 <= top < bottom <= 1 - axes.y0 + 0.002
            cut += word != token
        assert cut >= 2
    assert "iiiiiiiiiiiiiiiiii" in words.words[-1], "cut by width, not by the count"


@pytest.mark.parametrize(
    "tokens",
    [
        ("the", " the", "the "),
        ("a", "а", "cat"),  # the second is Cyrillic
        ("Geschwindigkeiten", "Geschwindigkeit", "Geschwindigkeitsbegrenzung"),
        ("我", "喜", "□"),
        ("é", "e\u0301"),
        (" ", "  ", "\n", "\t", "\xa0", "␣"),
        ("ab", "a\u200bb", "a\xadb"),
        ("the", " the", "the0", "th…", "□1", "東"),
        ("\x00", "\x1b", "\ud800"),
    ],
)
@pytest.mark.parametrize("room", [40, 1000])
def test_different_tokens_never_look_alike_and_equal_ones_do(tokens, room):
    written = labels([*tokens, tokens[0]], 9, room)
    assert written[0] == written[-1]
    looks = [seen(word) for word in written[:-1]]
    for (one, first), (other, second) in itertools.combinations(
        zip(written, looks, strict=False), 2
    ):
        assert first != second, f"{one!r} and {other!r}"


def test_only_tokens_that_would_look_alike_are_changed():
    assert labels(["the", "cat", " the", "dog"], 9) == ["the", "cat", "␣the", "dog"]
    assert labels(["cat", "а", "a"], 9) == ["cat", "а1", "a2"]
    assert labels(["\u200b", ""], 9) == ["\u200b0", ""]
    assert labels(["a b", "\n", " ", "a\n"], 9) == ["a b", "↵", "␣", "a↵"]


def test_a_number_is_never_cut_to_another_number():
    rows = ["emb.", *map(str, range(120))]
    assert labels(rows, 9, 12)[1:] == rows[1:]
    assert labels(["Geschwindigkeit", "1234567890"], 9, 40)[1].endswith("…")


def test_other_texts_have_a_box_too_for_what_no_font_has():
    _, axes = figure(4, 2)
    panel = MapPanel(axes)
    panel.update(np.eye(2), texts=[["東京", "cat"], ["a\n", "\x07"]])
    assert panel._words.words == ["□□", "cat", "a□", "□"]
    axes.figure.canvas.draw()


def test_tokens_in_cells_have_their_numbers_where_they_would_look_alike():
    _, axes = figure(2.4, 2)
    panel = MapPanel(axes)
    texts = [["Japan", "Geschwindigkeit"], ["Geschwindigkeiten", "Japan"]]
    panel.update(np.eye(2), texts=texts, numbers=[[7, 41], [52, 7]])
    japan, one, other, again = panel._words.words
    assert japan == again == "Japan"
    assert one.startswith("Ge") and one.endswith("…41") and other == one.replace("41", "52")
    panel.update(np.eye(2), texts=texts)
    assert panel._words.words[1] == panel._words.words[2]  # numbers, and not tokens


def test_other_pictures_cut_by_width_and_keep_tokens_apart():
    pair = ["Geschwindigkeitsbegrenzung", "Geschwindigkeitsbegrenzungen"]
    _, axes = figure(6, 2)
    bars = BarsPanel(axes, 2)
    bars.update(pair, [0.25, 0.5])
    tree = TreePanel(figure(6, 2)[1], "log-probability", columns=4)
    more = {"values": [0, 0], "shares": [1, 1]}
    tree.update([1, 1], [0, 1], [-1, -1], ["kept", "dropped"], pair, ["", ""], **more)
    ngrams = NgramsPanel(figure(6, 2)[1])
    ngrams.update(
        ["a", "b"], [[pair[0]] * 9, [pair[1]] * 9], 1, ["missing"] * 9, [], np.zeros((2, 9))
    )
    for words in (bars._words.words[1:3], tree._words.words[:2], {*ngrams._words.words[2:]}):
        one, other = words
        assert one != other and all(word.startswith("Ges") and "…" in word for word in words)
