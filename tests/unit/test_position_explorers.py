"""The explorers of notebook 06: the sinusoidal table, rotary embedding, biases."""

import itertools
import math

import numpy as np
import pytest
import torch

from course_lib.transformer.positions import alibi_bias
from course_lib.widgets import bias_explorer, rotary_explorer, sinusoid_explorer
from tests.helpers.explorers import fact, move, panels, values_of

# --- the sinusoidal table --------------------------------------------------------------------


def closed_formula(places, d_model, base):
    """Column c of place p: the sine, or the cosine, of p / base^(2⌊c/2⌋ / d)."""
    columns = np.arange(d_model)
    angles = np.asarray(places, dtype=float)[:, None] / np.power(
        float(base), 2 * (columns // 2) / d_model
    )
    return np.where(columns % 2 == 0, np.sin(angles), np.cos(angles))


TABLES = ((64, 64, 10_000, 20), (16, 4, 10, 8), (512, 256, 100_000, 0), (128, 8, 100, 127))


@pytest.mark.parametrize(("length", "d_model", "base", "position"), TABLES)
def test_the_table_drawn_is_the_closed_formula(length, d_model, base, position):
    settings = {"length": length, "d_model": d_model, "base": base, "position": position}
    explorer = sinusoid_explorer(**settings)
    wanted = closed_formula(range(length), d_model, base)
    table, waves, alike = panels(explorer)
    np.testing.assert_allclose(table.values, wanted, atol=2e-6)
    np.testing.assert_allclose(values_of(explorer.picture.hover[0]), wanted, atol=2e-6)
    assert table.data()["row"] == [position]

    share = np.linspace(0, 1, len(waves.x))
    assert np.allclose(waves.x, share * (length - 1)) and np.allclose(alike.x, waves.x)
    fine = closed_formula(share * (length - 1), d_model, base)
    half = d_model // 2
    columns = {"component 0": 0, "component d/8": max(2, d_model // 16 * 2)}
    columns["component d/4"] = max(2, d_model // 8 * 2)
    for name, column in columns.items():
        np.testing.assert_allclose(waves.lines[name], fine[:, column], atol=1e-9)

    # sin a sin b + cos a cos b = cos(a - b)
    far = np.arange(length) - position
    likeness = sum(np.cos(far / base ** (2 * i / d_model)) for i in range(half)) / half
    drawn = alike.data()
    where = np.rint(share * (length - 1)).astype(int)
    on_a_row = np.isclose(where, share * (length - 1))
    np.testing.assert_allclose(drawn["dot product"][on_a_row], likeness[where[on_a_row]], atol=5e-6)
    assert on_a_row[[0, -1]].all()
    assert drawn["marker at"].item() == pytest.approx(position)
    for panel in (waves, alike):
        (hover,), (low, high) = panel.hover(), panel.axes.get_ylim()
        assert (hover["x"][0], hover["x"][-1]) == (0, length - 1)
        for line in panel.lines.values():
            assert low <= np.min(line) and np.max(line) <= high, "a curve is cut off"
    assert drawn["height"].item() == pytest.approx(likeness[position])

    slowest = float(fact(explorer, "wavelengths").split()[2].replace(",", ""))
    assert slowest == pytest.approx(2 * math.pi * base ** ((d_model - 2) / d_model), rel=5.1e-3)
    beside = position + 1 if position == 0 else position - 1
    for name, value in (
        ("dot product with its neighbour", likeness[beside]),
        ("dot product with the farthest row", likeness[np.abs(far).argmax()]),
        ("smallest dot product", likeness.min()),
    ):
        assert float(fact(explorer, name)) == pytest.approx(value, abs=0.000501)


def test_a_position_beyond_the_table_is_its_last_row_until_the_table_is_longer():
    explorer = move(sinusoid_explorer(length=512, position=300), length=16)
    table, _, alike = panels(explorer)
    assert table.data()["row"] == [15] and alike.data()["marker at"].item() == pytest.approx(15)
    move(explorer, length=512)
    assert fact(explorer, "position") == "300", "the slider has kept its place"


@pytest.mark.parametrize("length", [16, 512])
def test_positions_are_written_as_whole_round_numbers(length):
    explorer = move(sinusoid_explorer(), length=length)
    for panel in panels(explorer)[1:]:
        low, high = panel.axes.get_xlim()
        seen = [
            tick for tick in panel.axes.xaxis.get_major_ticks() if low <= tick.get_loc() <= high
        ]
        numbers = [int(tick.label1.get_text()) for tick in seen]
        step = numbers[1]
        assert str(step).strip("0") in ("1", "2", "5") and len(numbers) >= 4
        assert numbers == list(range(0, length, step)), "multiples of one step, to the end"
        assert np.allclose([tick.get_loc() for tick in seen], numbers)


# --- rotary embedding ------------------------------------------------------------------------


def pairs_of(explorer):
    """The query's and the key's pairs as complex numbers."""
    drawn = panels(explorer)[0].data()
    return (drawn[name][:, 0] + 1j * drawn[name][:, 1] for name in ("blue", "orange"))


PLACES = ((3, 9, 100, 0), (0, 64, 10, 5), (64, 0, 10_000, 0), (50, 13, 100_000, 7))


@pytest.mark.parametrize(("query_position", "key_position", "base", "seed"), PLACES)
def test_pairs_rotate_as_complex_numbers_do(query_position, key_position, base, seed):
    query, key = pairs_of(rotary_explorer(query_position=0, key_position=0, seed=seed))
    assert np.allclose(np.abs([query, key]), 1), "every pair has norm 1"
    explorer = rotary_explorer(
        query_position=query_position, key_position=key_position, base=base, seed=seed
    )

    speeds = np.array([base ** (-2 * i / 8) for i in range(4)])
    turned = query * np.exp(1j * query_position * speeds), key * np.exp(1j * key_position * speeds)
    for drawn, wanted in zip(pairs_of(explorer), turned, strict=True):
        np.testing.assert_allclose(drawn, wanted, atol=2e-6)

    distance = key_position - query_position
    assert fact(explorer, "relative position") == str(distance)
    rotations, curve = panels(explorer)
    degrees = np.degrees(np.abs(np.angle(turned[1] / turned[0])))
    words = fact(explorer, "angles").split(", ")
    for word, angle, note in zip(words, degrees, rotations._notes, strict=True):
        assert float(word.removesuffix("°")) == pytest.approx(angle, abs=0.501)
        assert note.get_text() == f"angle {word}"

    product = (query * (key * np.exp(1j * distance * speeds)).conj()).real.sum()
    assert product == pytest.approx(np.cos(np.radians(degrees)).sum())
    assert float(fact(explorer, "dot product")) == pytest.approx(product, abs=0.00501)
    drawn = curve.data()
    assert drawn["marker at"].item() == distance
    assert drawn["height"].item() == pytest.approx(product, abs=1e-5)
    np.testing.assert_array_equal(curve.x, np.arange(-64, 65))
    turns = np.exp(1j * curve.x[:, None] * speeds)
    wanted = (query * (key * turns).conj()).real.sum(axis=1)
    np.testing.assert_allclose(drawn["dot product"], wanted, atol=1e-5)
    assert drawn["dot product"][distance + 64] == pytest.approx(drawn["height"].item(), abs=1e-5)


# --- what is added ---------------------------------------------------------------------------


def planes():
    draw = torch.Generator().manual_seed(1)
    return {
        "four": torch.randn(4, 7, 7, generator=draw),
        "two": 30 * torch.randn(2, 7, 7, generator=draw),
        "nothing": torch.zeros(1, 7, 7),
    }


def test_planes_and_rows_are_those_handed_in():
    biases = planes()
    explorer = bias_explorer(biases)
    plane, heads, row = panels(explorer)
    for name, bias in biases.items():
        bias, largest = bias.numpy(), np.abs(bias.numpy()).max()
        scale = largest or 1.0
        for head, query in itertools.product(range(4), (0, 3, 6)):
            said = explorer._update(encoding=name, head=head, query=query)
            there = min(head, len(bias) - 1)
            np.testing.assert_array_equal(plane.values, bias[there])
            np.testing.assert_array_equal(values_of(*plane.hover()), bias[there])
            assert plane.data()["row"] == [query] and heads.head == there
            np.testing.assert_allclose(row.lines["added"], bias[there, query] / scale, atol=1e-6)
            drawn = row.data()
            assert drawn["marker at"].item() == query
            itself = bias[there, query, query]
            assert drawn["height"].item() == pytest.approx(itself / scale, abs=1e-6)
            # the shares become signed colours under the panel's square root
            shares = 2 * np.sqrt(heads.weights) - 1
            np.testing.assert_allclose(shares, bias / scale, atol=1e-5)
            assert said["head"] == f"{there} of {len(bias)}" and said["query"] == str(query)
            for fact_, value in (
                ("largest", largest),
                ("bias at offset 0", itself),
                ("bias of the first key", bias[there, query, 0]),
                ("bias of the last key", bias[there, query, -1]),
            ):
                assert float(said[fact_]) == pytest.approx(value, rel=5.1e-3, abs=0.000501)


def test_other_numbers_are_read_and_left_as_they_are():
    bias = torch.randn(2, 5, 5, requires_grad=True)
    before = bias.detach().clone()
    explorer = bias_explorer({"half": bias.half(), "whole": bias.int(), "grad": bias})
    assert np.array_equal(panels(move(explorer, encoding="grad"))[0].values, before[0])
    assert torch.equal(bias, before)


def test_equal_planes_on_another_scale_are_drawn_anew():
    one = torch.randn(5, 5)
    biases = {"weak": torch.stack([one, one]), "strong": torch.stack([one, 9 * one])}
    explorer = move(bias_explorer(biases), encoding="strong")
    anew = bias_explorer({name: biases[name] for name in ("strong", "weak")})
    assert anew.picture.png == explorer.picture.png


def test_with_more_keys_the_queries_are_the_last_of_them():
    explorer = bias_explorer({"alibi": alibi_bias(2, 2, 5)}, query=1)
    assert float(fact(explorer, "bias at offset 0")) == 0
    assert panels(explorer)[2].data()["marker at"].item() == 4


def test_the_menu_of_biases_says_what_they_are():
    assert fact(bias_explorer(planes(), menu="layer"), "layer") == "four"


@pytest.mark.parametrize(
    "biases", [{"a": torch.ones(2, 3, 3), "b": torch.ones(2, 4, 4)}, {"a": torch.ones(2, 4, 3)}]
)
def test_biases_of_another_shape_are_refused(biases):
    with pytest.raises(ValueError, match="equally many keys"):
        bias_explorer(biases)
