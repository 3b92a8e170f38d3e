"""The explorers of notebook 06, the picture of several runs, and the experiment behind it."""

import itertools
import math
import random

import numpy as np
import pytest
import torch

from course_lib.experiments import positions
from course_lib.experiments.positions import (
    ARMS,
    LABELS,
    LEARNING_RATES,
    LENGTHS,
    MASKS,
    SEEDS,
    SYMBOLS,
    TASKS,
    TRAINED,
    SmallModel,
    accuracies,
    recorded,
    trained,
)
from course_lib.plots.grid import SIGNED
from course_lib.plots.style import COLOURS
from course_lib.positions import ENCODINGS, AlibiBias, alibi_bias
from course_lib.widgets import bias_explorer, rotary_explorer, sinusoid_explorer
from course_lib.widgets.positions import BASES
from tests.helpers.explorers import move, moved_at_random, pixels

SINUSOIDS = (
    "table",
    "base",
    "wavelengths",
    "position",
    "dot product with its neighbour",
    "dot product with the farthest row",
    "smallest dot product",
)
ROTARY = ("query at", "key at", "relative position", "angles", "dot product")
ADDED = (
    "encoding",
    "head",
    "query",
    "largest",
    "bias at offset 0",
    "bias of the first key",
    "bias of the last key",
)


def facts(explorer, names):
    """The summary, taken apart: name → what is said of it."""
    lines = explorer.summary.split("\n  ")[1:]
    assert len(lines) == len(names)
    for line, name in zip(lines, names, strict=True):
        assert line.startswith(name + " ")
    return {name: line[len(name) + 1 :] for line, name in zip(lines, names, strict=True)}


def at(explorer, axes, x, y):
    """The colours of the picture at places in the data of an Axes."""
    image = pixels(explorer.picture.png)
    across, up = axes.transData.transform(np.stack([x, y], axis=-1)).T
    return image[np.floor(image.shape[0] - up).astype(int), np.floor(across).astype(int)]


def colour(name):
    return np.asarray([int(COLOURS[name][i : i + 2], 16) / 255 for i in (1, 3, 5)])


def values_of(region):
    return np.frombuffer(region["values"], "<f4").reshape(region["shape"])


# --- the sinusoidal table --------------------------------------------------------------------


def closed_formula(places, d_model, base):
    """Column c of place p: the sine, or the cosine, of p / base^(2⌊c/2⌋ / d)."""
    columns = np.arange(d_model)
    angles = np.asarray(places, dtype=float)[:, None] / np.power(
        float(base), 2 * (columns // 2) / d_model
    )
    return np.where(columns % 2 == 0, np.sin(angles), np.cos(angles))


TABLES = ((64, 64, 10_000, 20), (16, 4, 10, 15), (512, 256, 100_000, 0), (128, 8, 100, 64))


@pytest.mark.parametrize(("length", "d_model", "base", "position"), TABLES)
def test_the_table_drawn_is_the_closed_formula(length, d_model, base, position):
    settings = {"length": length, "d_model": d_model, "base": base, "position": position}
    explorer = sinusoid_explorer(**settings)
    wanted = closed_formula(range(length), d_model, base)
    table, waves, alike = explorer.picture.figure.panels
    np.testing.assert_allclose(table.values, wanted, atol=2e-6)
    np.testing.assert_allclose(values_of(explorer.picture.hover[0]), wanted, atol=2e-6)
    assert table.data()["row"] == [position]

    share = np.linspace(0, 1, len(waves.x))
    assert np.allclose(waves.x, share) and np.allclose(alike.x, share)
    fine = closed_formula(share * (length - 1), d_model, base)
    half = d_model // 2
    for name, column in (
        ("first sine", 0),
        ("middle sine", half + half % 2),
        ("last sine", d_model - 2),
    ):
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
        hover = panel.hover()
        assert (hover["x"][0], hover["x"][-1]) == (0, length - 1)
    assert drawn["height"].item() == pytest.approx(likeness[position])

    said = facts(explorer, SINUSOIDS)
    assert said["table"] == f"{length} × {d_model}"
    assert said["base"] == f"{base:,}" and said["position"] == str(position)
    shortest, _, longest = said["wavelengths"].removesuffix(" positions").partition(" to ")
    assert float(shortest) == pytest.approx(2 * math.pi, abs=0.00501)
    slowest = 2 * math.pi * math.pow(base, (d_model - 2) / d_model)
    assert float(longest.replace(",", "")) == pytest.approx(slowest, rel=5.1e-3)
    beside = position + 1 if position == 0 else position - 1
    rounded = {"abs": 0.000501}
    neighbour = float(said["dot product with its neighbour"])
    assert neighbour == pytest.approx(likeness[beside], **rounded)
    farthest = likeness[np.abs(far).argmax()]
    assert float(said["dot product with the farthest row"]) == pytest.approx(farthest, **rounded)
    assert float(said["smallest dot product"]) == pytest.approx(likeness.min(), **rounded)


def test_the_farthest_row_is_at_the_other_end():
    explorer = sinusoid_explorer(length=16, d_model=4, base=100, position=0)
    for position in range(16):
        said = explorer._update(length=16, d_model=4, base=100, position=position)
        far = max(position, 15 - position)
        wanted = (math.cos(far) + math.cos(far / 10)) / 2
        said = float(said["dot product with the farthest row"])
        assert said == pytest.approx(wanted, abs=0.000501), position


def test_each_control_changes_what_it_should():
    explorer = sinusoid_explorer()
    table, waves, alike = explorer.picture.figure.panels

    def shown():
        return [
            table.values.copy(),
            dict(waves.lines),
            np.array(alike.lines["dot product"]),
            alike.data()["marker at"].item(),
        ]

    first = shown()
    move(explorer, position=41)  # nothing but the row and what is compared with it
    then = shown()
    assert np.array_equal(first[0], then[0]) and table.data()["row"] == [41]
    assert all(np.array_equal(first[1][name], then[1][name]) for name in first[1])
    assert not np.allclose(first[2], then[2]) and then[3] == pytest.approx(41)
    move(explorer, base=10)  # the first wave stays: its length is 2π with any base
    other = shown()
    assert np.array_equal(then[1]["first sine"], other[1]["first sine"])
    for name in ("middle sine", "last sine"):
        assert not np.allclose(then[1][name], other[1][name])
    assert np.allclose(then[0][:, :2], other[0][:, :2])
    assert not np.allclose(then[0][:, 2:], other[0][:, 2:])
    move(explorer, base=10_000, length=128)  # more rows, and the old ones stay
    longer = shown()
    assert np.allclose(longer[0][:64], then[0]) and longer[0].shape == (128, 64)
    move(explorer, length=64, d_model=16)  # every fourth pair stays
    narrow = shown()
    assert np.allclose(narrow[0][:, ::2], then[0][:, ::8], atol=1e-6)
    words = [text.get_text() for text in table._corners]
    assert words == ["0", "15", "0", "63"]
    explorer.reset()
    assert explorer.picture.png == sinusoid_explorer().picture.png


def test_a_position_beyond_the_table_is_its_last_row():
    explorer = move(sinusoid_explorer(length=512, position=300), length=16)
    assert facts(explorer, SINUSOIDS)["position"] == "15"
    table, _, alike = explorer.picture.figure.panels
    assert table.data()["row"] == [15] and alike.data()["marker at"].item() == pytest.approx(15)
    assert explorer.picture.png == sinusoid_explorer(length=16, position=15).picture.png
    move(explorer, length=512)
    assert facts(explorer, SINUSOIDS)["position"] == "300", "the slider has kept its place"


def test_the_map_is_coloured_by_sign_and_a_line_marks_the_row():
    explorer = sinusoid_explorer(length=16, d_model=8, base=10, position=5)
    panel = explorer.picture.figure.panels[0]
    rows, columns = np.divmod(np.arange(16 * 8), 8)
    drawn = at(explorer, panel.axes, (columns + 0.5) / 8, (rows + 0.15) / 16)
    wanted = SIGNED((closed_formula(range(16), 8, 10) + 1) / 2)[..., :3]
    np.testing.assert_allclose(drawn, wanted.reshape(-1, 3), atol=0.02)
    line = at(explorer, panel.axes, np.linspace(0.05, 0.95, 9), np.full(9, 5.5 / 16))
    np.testing.assert_allclose(line, np.tile(colour("ink"), (9, 1)), atol=0.25)


def test_no_part_of_a_curve_is_cut_off():
    explorer = sinusoid_explorer()
    for length, base, d_model in itertools.product((16, 128, 512), BASES, (4, 8, 64)):
        explorer._update(length=length, base=base, d_model=d_model, position=0)
        for panel in explorer.picture.figure.panels[1:]:
            low, high = panel.axes.get_ylim()
            for name, line in panel.lines.items():
                assert low <= np.min(line) and np.max(line) <= high, (length, base, d_model, name)


# --- rotary embedding ------------------------------------------------------------------------


def pairs_of(explorer):
    """The query's and the key's pairs as complex numbers."""
    drawn = explorer.picture.figure.panels[0].data()
    return (drawn[name][:, 0] + 1j * drawn[name][:, 1] for name in ("blue", "orange"))


PLACES = (
    (3, 9, 100, 0),
    (0, 64, 10, 5),
    (64, 0, 10_000, 0),
    (17, 17, 1000, 5),
    (50, 13, 100_000, 7),
)


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

    said = facts(explorer, ROTARY)
    distance = key_position - query_position
    assert said["query at"] == str(query_position) and said["key at"] == str(key_position)
    assert said["relative position"] == str(distance)
    rotations, curve = explorer.picture.figure.panels
    degrees = np.degrees(np.abs(np.angle(turned[1] / turned[0])))
    words = said["angles"].split(", ")
    for word, angle, note in zip(words, degrees, rotations._notes, strict=True):
        assert float(word.removesuffix("°")) == pytest.approx(angle, abs=0.501)
        assert note.get_text() == f"angle {word}"

    product = (query * (key * np.exp(1j * distance * speeds)).conj()).real.sum()
    assert product == pytest.approx(np.cos(np.radians(degrees)).sum())
    assert float(said["dot product"]) == pytest.approx(product, abs=0.00501)
    drawn = curve.data()
    assert drawn["marker at"].item() == distance
    assert drawn["height"].item() == pytest.approx(product, abs=1e-5)
    np.testing.assert_array_equal(curve.x, np.arange(-64, 65))
    turns = np.exp(1j * curve.x[:, None] * speeds)
    wanted = (query * (key * turns).conj()).real.sum(axis=1)
    np.testing.assert_allclose(drawn["dot product"], wanted, atol=1e-5)
    assert drawn["dot product"][distance + 64] == pytest.approx(drawn["height"].item(), abs=1e-5)


def test_the_dot_product_depends_on_the_relative_position_alone():
    explorer, found = rotary_explorer(base=100), []
    for distance in (0, 6, -12, 40):
        products, pairs = [], []
        for start in (max(0, -distance), 14, 20, 64 - max(0, distance)):
            explorer._update(query_position=start, key_position=start + distance, base=100)
            products.append(explorer.picture.figure.panels[1].data()["height"].item())
            pairs.append(next(pairs_of(explorer)))
        assert np.ptp(products) < 1e-5
        for one in pairs[1:]:
            assert not np.allclose(one, pairs[0], atol=0.1), "the pairs do rotate"
        found.append(products[0])
    assert np.diff(np.sort(found)).min() > 0.01, "other relative positions, other products"


def test_the_base_leaves_the_first_pair_as_it_is():
    explorer = rotary_explorer(query_position=5, key_position=30)
    first = [*pairs_of(explorer)]
    move(explorer, base=10)
    for before, after in zip(first, pairs_of(explorer), strict=True):
        assert np.isclose(before[0], after[0]) and not np.isclose(before[1:], after[1:]).any()


def test_blue_pairs_are_the_query_and_orange_ones_the_key():
    explorer = rotary_explorer(query_position=10, key_position=33)
    axes = explorer.picture.figure.panels[0].axes
    centres = 2.4 * np.arange(4)
    for pairs, name in zip(pairs_of(explorer), ("main", "second"), strict=True):
        drawn = at(explorer, axes, centres + 0.75 * pairs.real, 0.75 * pairs.imag)
        np.testing.assert_allclose(drawn, np.tile(colour(name), (4, 1)), atol=0.12)


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
    plane, heads, row = explorer.picture.figure.panels
    assert explorer.controls["query"].value == 3, "the middle one"
    for name, bias in biases.items():
        bias, largest = bias.numpy(), np.abs(bias.numpy()).max()
        scale = largest or 1.0
        for head, query in itertools.product(range(4), (0, 3, 6)):
            said = explorer._update(encoding=name, head=head, query=query)
            there = min(head, len(bias) - 1)
            np.testing.assert_array_equal(plane.values, bias[there])
            np.testing.assert_array_equal(values_of(plane.hover()), bias[there])
            assert plane.data()["row"] == [query] and heads.head == there
            np.testing.assert_allclose(row.lines["added"], bias[there, query] / scale, atol=1e-6)
            drawn = row.data()
            assert drawn["marker at"].item() == query
            itself = bias[there, query, query]
            assert drawn["height"].item() == pytest.approx(itself / scale, abs=1e-6)
            # the shares become signed colours under the panel's square root
            shares = 2 * np.sqrt(heads.weights) - 1
            np.testing.assert_allclose(shares, bias / scale, atol=1e-5)
            assert heads.notes == [str(n) for n in range(len(bias))]
            assert (
                tuple(said) == ADDED
                and said["encoding"] == name
                and said["head"] == f"{there} of {len(bias)}"
            )
            assert said["query"] == str(query)
            assert float(said["largest"]) == pytest.approx(largest, rel=5.1e-3, abs=1e-8)
            for fact, value in (
                ("bias at offset 0", itself),
                ("bias of the first key", bias[there, query, 0]),
                ("bias of the last key", bias[there, query, -1]),
            ):
                assert float(said[fact]) == pytest.approx(value, abs=0.000501)


def test_what_is_added_is_not_changed_and_may_have_a_gradient_or_other_numbers():
    bias = torch.randn(2, 5, 5, requires_grad=True)
    before = bias.detach().clone()
    explorer = bias_explorer(
        {"grad": bias, "half": bias.half(), "whole": torch.ones(2, 5, 5).int()}
    )
    for name in ("half", "whole", "grad"):
        move(explorer, encoding=name)
    assert torch.equal(bias, before)
    assert np.array_equal(explorer.picture.figure.panels[0].values, before[0])


def test_the_plane_and_the_thumbnails_are_orange_above_zero_and_blue_below():
    bias = torch.tensor([[[1.0, -1.0], [-0.5, 0.0]], [[-1.0, 1.0], [0.25, 0.5]]])
    explorer = bias_explorer({"small": bias}, query=0)
    plane, heads, _ = explorer.picture.figure.panels
    for head in range(2):
        move(explorer, head=head)
        for drawn, places in (
            (plane, [[(c + 0.5) / 2, (r + 0.2) / 2] for r in range(2) for c in range(2)]),
            (
                heads,
                [
                    [x + 36 * c + 18, y + 36 * r + 18]
                    for x, y in [heads._corner(head)]
                    for r in range(2)
                    for c in range(2)
                ],
            ),
        ):
            x, y = np.array(places).T
            wanted = SIGNED((bias[head].flatten().numpy() + 1) / 2)[:, :3]
            np.testing.assert_allclose(at(explorer, drawn.axes, x, y), wanted, atol=0.02)


def test_equal_planes_on_another_scale_are_drawn_anew():
    one = torch.randn(5, 5)
    biases = {"weak": torch.stack([one, one]), "strong": torch.stack([one, 9 * one])}
    explorer = move(bias_explorer(biases), encoding="strong")
    anew = bias_explorer({name: biases[name] for name in ("strong", "weak")})
    assert anew.summary == explorer.summary
    assert anew.picture.png == explorer.picture.png


def test_with_more_keys_the_queries_are_the_last_of_them():
    explorer = bias_explorer({"alibi": alibi_bias(2, 2, 5)}, query=1)
    assert float(facts(explorer, ADDED)["bias at offset 0"]) == 0
    assert explorer.picture.figure.panels[2].data()["marker at"].item() == 4


def test_what_was_trained_is_compared_by_its_title_alone():
    assert bias_explorer(planes(), approximate=True).approximate
    assert not bias_explorer(planes()).approximate


# --- all three -------------------------------------------------------------------------------

MOVED = {
    "sinusoids": (
        sinusoid_explorer,
        {
            "length": (16, 64, 512),
            "d_model": (4, 32, 256),
            "base": BASES,
            "position": (0, 13, 200, 511),
        },
    ),
    "rotary": (
        rotary_explorer,
        {"query_position": range(65), "key_position": range(65), "base": BASES},
    ),
    "biases": (
        lambda encoding="four", **settings: bias_explorer(
            {encoding: planes()[encoding]} | planes(), **settings
        ),
        {"encoding": list(planes()), "head": range(4), "query": range(7)},
    ),
}


@pytest.mark.parametrize("name", MOVED)
def test_after_any_moves_the_picture_is_that_of_a_full_drawing(name):
    make, positions = MOVED[name]
    moved, pictures = moved_at_random(make, positions, random.Random(name), turns=7)
    assert len(pictures) > 2, "the test shows too little"
    settings = {control: moved.controls[control].value for control in positions}
    if name == "sinusoids":
        settings["position"] = min(settings["position"], settings["length"] - 1)
    assert make(**settings).picture.png == moved.picture.png


BAD = {
    "length": (sinusoid_explorer, {"length": 65}, "length=65 must be one of 16, 32, "),
    "d": (sinusoid_explorer, {"d_model": 3}, "d_model=3 must be one of 4, 8, "),
    "base": (sinusoid_explorer, {"base": 7}, "base=7 must be one of 10, 100, "),
    "beyond": (sinusoid_explorer, {"position": 64}, "position=64 must be below length=64"),
    "before": (sinusoid_explorer, {"position": -1}, "position=-1"),
    "half": (sinusoid_explorer, {"position": 0.5}, "position=0.5"),
    "far query": (rotary_explorer, {"query_position": 65}, "query_position=65 must be at most 64"),
    "far key": (rotary_explorer, {"key_position": 65}, "key_position=65 must be at most 64"),
    "negative": (rotary_explorer, {"key_position": -1}, "key_position=-1"),
    "rotary base": (rotary_explorer, {"base": 0}, "base=0 must be one of 10, 100, "),
    "none": (bias_explorer, {"biases": {}}, "at least one"),
    "flat": (bias_explorer, {"biases": {"a": torch.ones(3, 3)}}, r"\(heads, query, key\)"),
    "shapes": (
        bias_explorer,
        {"biases": {"a": torch.ones(2, 3, 3), "b": torch.ones(2, 4, 4)}},
        r"a \(2, 3, 3\), b \(2, 4, 4\)",
    ),
    "head": (bias_explorer, {"biases": {"a": torch.ones(2, 3, 3)}, "head": 2}, "head=2 .* below 2"),
    "query": (
        bias_explorer,
        {"biases": {"a": torch.ones(2, 3, 3)}, "query": 3},
        "query=3 .* below 3",
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_what_cannot_be_drawn_is_named(what, without_annotations):
    make, settings, words = BAD[what]
    with pytest.raises(ValueError, match=words):
        make(**settings)


# --- the experiment --------------------------------------------------------------------------


def test_the_tasks_ask_what_they_say():
    tokens = torch.randint(SYMBOLS, (5, 11))
    given = tokens.clone()
    for task, first, back in (("three back", 3, lambda at: at - 3), ("the first", 1, lambda at: 0)):
        asked = TASKS[task](tokens)
        assert torch.equal(tokens, given), "the tokens stay as they are"
        for row in range(5):
            for place in range(11):
                wanted = -100 if place < first else tokens[row, back(place)].item()
                assert asked[row, place].item() == wanted, (task, place)
    assert len(TASKS) == 2


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("causal", [False, True])
def test_the_small_model_answers_at_every_place(encoding, causal):
    model = SmallModel(encoding, causal=causal)
    tokens = torch.randint(SYMBOLS, (3, TRAINED))
    with torch.no_grad():
        said = model(tokens)
        assert said.shape == (3, TRAINED, SYMBOLS) and said.isfinite().all()
        changed = tokens.clone()
        changed[:, -1] = (tokens[:, -1] + 1) % SYMBOLS
        before = model(changed)[:, :-1]
    assert torch.allclose(before, said[:, :-1], atol=1e-6) is causal
    shares = accuracies(model, "three back", count=4)
    beyond = encoding == "learned"
    assert [share is None for share in shares] == [False, beyond, beyond, beyond]
    assert all(0 <= share <= 1 for share in shares if share is not None)


def test_the_second_half_of_fresh_sequences_is_counted():
    class Knows(SmallModel):
        def forward(self, tokens):
            right = TASKS["the first"](tokens).clamp(min=0)
            right[:, : tokens.shape[1] // 2] = 0  # wrong, and not counted
            right[: len(tokens) // 4] = (right[: len(tokens) // 4] + 1) % SYMBOLS
            return torch.nn.functional.one_hot(right, SYMBOLS).float()

    assert accuracies(Knows("none"), "the first", count=40) == [0.75] * 4
    assert accuracies(Knows("none"), "three back", count=400) == pytest.approx(
        [1 / 16] * 4, abs=0.05
    )


def test_every_run_is_recorded():
    record = recorded()
    assert list(record) == list(MASKS) and LENGTHS == (16, 32, 64, 128)
    assert set(ENCODINGS) - set(ARMS) == {"learned"} and list(LABELS) == list(ENCODINGS)
    for mask, tasks in record.items():
        assert list(tasks) == list(TASKS)
        for task, arms in tasks.items():
            missing = set(ARMS) - set(arms)
            command = f"python -m course_lib.experiments.positions {' '.join(missing)}"
            assert not missing, f"run: {command}"
            assert list(arms) == list(ARMS)
            for encoding, arm in arms.items():
                assert arm["lr"] in LEARNING_RATES and len(arm["accuracy"]) == len(SEEDS)
                for run in arm["accuracy"]:
                    assert len(run) == 4
                    assert all(0 <= share <= 1 for share in run), (mask, task, encoding)


def test_an_arm_keeps_the_learning_rate_with_the_lowest_loss(monkeypatch, without_annotations):
    made, better = [], {1e-3: 0.3, 3e-3: 0.1, 1e-2: 0.2}

    def trained(encoding, task, *, seed, steps, lr, causal):
        made.append((seed, lr))
        return seed, lr

    monkeypatch.setattr(positions, "trained", trained)
    monkeypatch.setattr(positions, "held_out_loss", lambda model, task: better[model[1]])
    monkeypatch.setattr(positions, "accuracies", lambda model, task, count: list(model))
    arm = positions._arm("t5", "the first", True)
    assert arm == {"lr": 3e-3, "accuracy": [[0, 3e-3], [1, 3e-3], [2, 3e-3]]}
    assert made == [(0, 1e-3), (0, 3e-3), (0, 1e-2), (1, 3e-3), (2, 3e-3)]


def test_an_encoding_of_a_learner_can_be_tried():
    model = SmallModel(lambda: AlibiBias(4), causal=True)
    first, second = (layer.positions for layer in model.attention)
    assert isinstance(first, AlibiBias) and first is not second, "one for each layer"
    assert model.position_embedding is None
    other = SmallModel("alibi", causal=True)
    other.load_state_dict(model.state_dict())
    tokens = torch.randint(SYMBOLS, (2, 9))
    with torch.no_grad():
        assert torch.equal(model(tokens), other(tokens))


def test_a_mask_takes_the_place_of_the_models_own():
    torch.manual_seed(2)
    model, tokens = SmallModel("t5", causal=True), torch.randint(SYMBOLS, (2, 9))
    causal = torch.ones(9, 9).tril().bool()
    alone = causal.clone()
    alone[4, :4] = False
    with torch.no_grad():
        own, given, other = model(tokens), model(tokens, causal), model(tokens, alone)
    assert torch.equal(own, given)
    assert torch.equal(own[:, :4], other[:, :4]) and not torch.allclose(own[:, 4], other[:, 4])


def test_rotary_soon_finds_three_back_and_nothing_does_not(without_annotations):
    one = accuracies(trained("rotary", "three back", steps=300), "three back")
    assert one[0] > 0.95 and one[1] > 0.95
    none = accuracies(trained("none", "three back", steps=100), "three back")
    assert max(none) < 0.4


def test_training_again_gives_the_same_and_refuses_what_there_is_not(without_annotations):
    first, again = (trained("t5", "the first", seed=3, steps=2) for _ in range(2))
    for one, other in zip(first.parameters(), again.parameters(), strict=True):
        assert torch.equal(one, other)
    for settings, words in (
        ({"encoding": "rotary", "task": "four back"}, "task="),
        ({"encoding": "rotor", "task": "three back"}, "rotor"),
        ({"encoding": "rotary", "task": "three back", "steps": 0}, "steps=0"),
    ):
        with pytest.raises(ValueError, match=words):
            trained(**settings)


@pytest.mark.parametrize("length", [16, 32, 64, 128, 256, 512])
def test_positions_are_written_as_whole_round_numbers(length):
    explorer = move(sinusoid_explorer(length=64 if length == 16 else 16), length=length)
    for panel in explorer.picture.figure.panels[1:]:
        numbers = [int(word) for word in panel._ticks.words]
        step = numbers[1]
        assert str(step).strip("0") in ("1", "2", "5") and len(numbers) >= 4
        assert numbers == list(range(0, length, step)), "multiples of one step, to the end"
        at = panel._ticks.get_offsets()[:, 0] * (length - 1)
        assert np.allclose(at, numbers)


def test_the_menu_of_biases_says_what_they_are():
    explorer = bias_explorer(planes(), menu="layer")
    assert explorer.controls["encoding"].description == "layer"
    names = [line.split()[0] for line in explorer.summary.split("\n  ")[1:]]
    assert names[0] == "layer" and "encoding" not in names
