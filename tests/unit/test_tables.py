"""Measured numbers in a notebook's output: printed with a threshold, or in a table that is stored."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from nbval.plugin import get_sanitize_patterns

from course_lib.notebook import report, show_bars, show_lines, show_table
from course_lib.widgets.table import Table, curve_table, number_text

ROOT = Path(__file__).parents[2]
PATTERNS = get_sanitize_patterns((ROOT / "tests/sanitize.cfg").read_text(encoding="ascii"))


def compared(text):
    """What nbval compares of a text."""
    for pattern, replacement in PATTERNS:
        text = re.sub(pattern, replacement, text)
    return text


def cells(table):
    return re.findall(r"<t[hd]\b[^>]*>(.*?)</t", table._repr_html_())


@pytest.mark.parametrize(
    ("value", "bounds", "said"),
    [
        (0.99712, {"at_least": 0.98}, "score ≈ 0.997 (at least 0.98: yes)"),
        (0.97999, {"at_least": 0.98}, "score ≈ 0.98 (at least 0.98: no)"),  # not the rounded value
        (torch.tensor(0.5), {"at_least": 0.98}, "score ≈ 0.5 (at least 0.98: no)"),
        (3, {"at_most": 10_000}, "score ≈ 3 (at most 10,000: yes)"),
        (2e-7, {"at_least": 0.0, "at_most": 1e-7}, "score ≈ 2e-07 (at least 0: yes; at most 1e-07: no)"),
        (float("nan"), {"at_least": 0.98}, "score ≈ – (at least 0.98: no)"),
        (1020.4, {}, "score ≈ 1,020"),
    ],
)  # fmt: skip
def test_a_value_is_reported_with_its_thresholds(capsys, value, bounds, said):
    report("score", value, **bounds)
    assert capsys.readouterr().out == f"{said}\n"


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"), (12345, "12,345"), (0.12345, "0.123"), (99.96, "100"), (12345.6, "12,300"),
        (-0.00004, "-4e-05"), (np.float32(2.5), "2.5"), (np.int64(7), "7"), (float("nan"), "–"),
    ],
)  # fmt: skip
def test_numbers_have_three_digits(number, text):
    assert number_text(number) == text


def test_a_table_is_stored_with_its_numbers(displayed):
    header = ("text & name", "BLEU", "count", "good", "made")
    rows = [("<eos>", 0.51234, 3, True, "le chat"), (2.5, torch.tensor(0.25), 4, False, "un chien")]
    show_table(header, rows, "Two texts.", generated=["made"])
    (table,) = displayed
    assert repr(table) == "Two texts." and "Two texts.</caption>" in table._repr_html_()
    assert cells(table) == [
        "text &amp; name", "BLEU", "count", "good", "made",
        "&lt;eos&gt;", "≈ 0.512", "≈ 3", "yes", "le chat",
        "2.5", "≈ 0.25", "≈ 4", "no", "un chien",
    ]  # fmt: skip
    exact = Table(header, rows, "Two texts.", approximate=False)
    assert "≈" not in exact._repr_html_()


def test_a_generated_column_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="generated names 'texts', which is not in header"):
        Table(("text", "BLEU"), [("a", 1)], "One.", generated=["texts"])


@pytest.mark.parametrize("approximate", [False, True])
def test_curves_leave_a_few_of_their_points(displayed, approximate):
    x = torch.linspace(0, 1, 101)
    gap = torch.where(x < 0.6, 1.0, float("nan"))
    lines = {"square": x**2, "gap": gap}
    show_lines(x, lines, "Two.", x_label="u", y_label="K(u)", approximate=approximate)
    picture, table = displayed
    sign = "≈ " if approximate else ""
    assert repr(table) == "K(u) at 5 of 101 points"
    assert cells(table)[:6] == ["u", "square", "gap", "0", f"{sign}0", f"{sign}1"]
    assert cells(table)[-3:] == ["1", f"{sign}1", f"{sign}–"]
    assert cells(table)[6::3] == ["0.25", "0.5", "0.75", "1"]


def test_the_points_of_curves_can_be_chosen():
    table = curve_table([1, 2, 4, 8], {"a": [10, 20, 40, 80]}, at=[1, 5])
    assert cells(table) == ["x", "a", "1", "10", "4", "40"]
    assert repr(curve_table([1, 2], {"a": [10, 20]})) == "Values at every point"


def test_bars_leave_their_numbers(displayed):
    show_bars({"one": 0.25, "two": 1.0}, "Two.", approximate=True)
    assert cells(displayed[1]) == ["bar", "value", "one", "≈ 0.25", "two", "≈ 1"]


def test_digits_after_the_sign_and_generated_texts_are_not_compared_and_all_else_is():
    def line(value, rest="(at least 0.98: yes)"):
        return compared(f"score ≈ {value} {rest}")

    assert line("0.997") == line("0.991") == line("-1,234.5") == line("2e-07")
    assert line("0.997") != line("0.997", "(at least 0.98: no)")
    assert line("0.997") != line("–")

    def html(name="a", number=0.5, text="le chat", **options):
        table = Table(("n", "b", "t"), [(name, number, text)], "T.", generated=["t"], **options)
        return compared(table._repr_html_())

    assert html() == html(number=0.25, text="un <b> chien")
    assert html() != html(name="b") and html() != html(number="0.25")
    assert html(approximate=False) != html(number=0.25, approximate=False)
