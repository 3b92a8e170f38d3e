"""The web site: what is recorded of an explorer, and what is put into a notebook. The built site is in tests/browser."""

import base64
import io
import re
from pathlib import Path

import nbformat
import nbformat.v4 as v4
import numpy as np
import pytest
from PIL import Image

from course_lib.exercises import EXERCISES
from course_lib.tools import normal_form
from course_lib.tools.site import record, sources
from course_lib.tools.site.__main__ import recorded, write_site
from course_lib.widgets import generation_explorer, mask_explorer, similarity_explorer
from course_lib.widgets.live_figure import SHARPNESS
from course_lib.widgets.similarity import SCORES
from tests.helpers.tiny_language_model import tiny_language_model


@pytest.fixture(scope="module")
def similarity(tmp_path_factory):
    """The folder of the pictures, the player and the states of an explorer, few enough to be recorded quickly."""
    folder = tmp_path_factory.mktemp("frames")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record, "STOPS", 5)
        patch.setattr(record, "BYTES", 150_000)
        explorer = similarity_explorer(direction=90)
        explorer.controls["norm"].value = 2.0
        return folder, *record.sweep(explorer, folder)


def pixels(folder, name):
    return Image.open(folder / name).convert("RGBA")


def test_a_recorded_state_is_the_picture_and_the_words_of_the_explorer(similarity):
    folder, player, recorded = similarity
    stops = [control["stops"] for control in player["controls"]]
    for key in [*recorded["states"]][:: len(recorded["states"]) // 6]:
        score, direction, norm = (stops[n][int(stop)] for n, stop in enumerate(key.split(",")))
        explorer = similarity_explorer(score=score, direction=int(direction), norm=float(norm))
        frame, text, regions, moved, off, boxes = recorded["states"][key]
        shown = pixels(folder, player["base"])
        shown.alpha_composite(pixels(folder, recorded["frames"][frame]))
        drawn = explorer.picture.figure.image(SHARPNESS)
        assert np.array_equal(np.asarray(shown.convert("RGB")), np.asarray(drawn))
        assert recorded["texts"][text] == explorer.summary
        values = [np.asarray(one["values"]).tobytes() for one in explorer.picture.hover]
        kept = [
            recorded["regions"][one]["values"]
            for one in regions
            if "values" in recorded["regions"][one]
        ]
        assert [base64.b64decode(one) for one in kept] == values
        assert (moved, off) == (0, [])
        assert recorded["maps"][boxes] == explorer.picture.maps
    assert player["cuts"] == explorer.picture.figure.cuts


def test_each_control_is_swept_from_end_to_end_and_starts_where_it_stood(similarity):
    _, player, recorded = similarity
    score, direction, norm = player["controls"]
    assert (score["kind"], direction["kind"]) == ("menu", "slider")
    assert score["stops"] == list(SCORES)
    assert (direction["stops"][0], direction["stops"][-1]) == ("0", "355")
    assert direction["stops"][direction["at"]] == "90" and norm["stops"][norm["at"]] == "2.00"
    start = [control["at"] for control in player["controls"]]
    for number, control in enumerate(player["controls"]):
        for stop in range(len(control["stops"])):
            place = [*start[:number], stop, *start[number + 1 :]]
            assert ",".join(map(str, place)) in recorded["states"]
    assert len(recorded["states"]) > sum(len(control["stops"]) for control in player["controls"])


def test_a_control_that_another_one_limits_is_recorded_where_it_moves(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "BYTES", 0)  # no more than the sweeps
    player, recorded = record.sweep(mask_explorer(kind="causal", length=3), tmp_path)
    moved_or_off = [state for state in recorded["states"].values() if state[3] or state[4]]
    assert moved_or_off
    for state in moved_or_off:
        for number, stop in enumerate(state[3] or []):
            assert 0 <= stop < len(player["controls"][number]["stops"])


def test_a_text_is_generated_at_each_place(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "STOPS", 2)
    pair = tiny_language_model()
    player, recorded = record.sweep(generation_explorer(*pair, "the cat", length=3), tmp_path)
    seed = [control["label"] for control in player["controls"]].index("seed")
    start = [control["at"] for control in player["controls"]]
    for stop, said in enumerate(player["controls"][seed]["stops"]):
        text = recorded["texts"][
            recorded["states"][",".join(map(str, start[:seed] + [stop] + start[seed + 1 :]))][1]
        ]
        explorer = generation_explorer(*pair, "the cat", length=3, seed=int(said))
        explorer.generate()
        assert text == explorer.summary and "generated 3 tokens" in text


def png(colour="white"):
    file = io.BytesIO()
    Image.new("RGB", (10, 5), colour).save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()


def transformed(tmp_path, *cells):
    book = v4.new_notebook(cells=list(cells))
    sources.transform(book, Path("notebooks/01_a.ipynb"), {}, tmp_path or Path())
    return book.cells


def run(source, data, count=1):
    output = v4.new_output(
        "display_data", data=data, metadata={"image/png": {"width": 10, "height": 5}}
    )
    return v4.new_code_cell(source, outputs=[output], execution_count=count)


def test_a_picture_that_a_cell_drew_before_its_explorer_stays_still(similarity, tmp_path):
    _, player, _ = similarity
    cell = run("train()\nsimilarity_explorer()", {"image/png": png(), "text/plain": "Loss."})
    data = {"image/png": png(), "text/plain": "Similarity."}
    cell.outputs.append(v4.new_output("execute_result", data=data, execution_count=1))
    book = v4.new_notebook(cells=[cell])
    players = {"1": player | {"name": "similarity"}}
    sources.transform(book, Path("notebooks/01_a.ipynb"), players, tmp_path)
    shown = [output.data["text/html"] for output in book.cells[0].outputs]
    assert ["course-player" in one for one in shown] == [False, True]


def test_a_picture_keeps_its_words_as_text_alternative_and_caption(tmp_path):
    words = "Bars of <a> & b:\n  first 0.5\n  second 0.7\nbars: value 0.5 to 0.7"
    (cell,) = transformed(tmp_path, run("show()", {"image/png": png(), "text/plain": words}))
    shown = cell.outputs[0].data["text/html"]
    assert 'alt="Bars of &lt;a&gt; &amp; b: first 0.5; second 0.7"' in shown
    assert 'width="10" height="5"' in shown and "<figcaption>Bars of &lt;a&gt; &amp; b<" in shown
    assert re.findall(r"<li>(.*)</li>", shown) == [
        "first 0.5",
        "second 0.7",
        "bars: value 0.5 to 0.7",
    ]
    (written,) = tmp_path.glob("*.png")
    assert f'src="../_frames/{written.name}"' in shown


def test_links_of_a_table_lead_to_pages(tmp_path):
    table = '<a href="02_b.ipynb#c">b</a> <a href="https://example.org/d.ipynb">d</a>'
    (linked,) = transformed(tmp_path, run("progress()", {"text/html": table}))
    assert linked.outputs[0].data["text/html"] == table.replace(
        "02_b.ipynb", "../notebooks/02_b.html"
    )


def test_only_a_picture_that_is_mostly_white_is_turned_dark(tmp_path):
    for colour, plain in (
        ("white", True),
        ("#d2dfee", True),
        ("#440154", False),
        ("#fde725", False),
    ):
        data = {"image/png": png(colour), "text/plain": "1"}
        (cell,) = transformed(tmp_path, run("show()", data))
        assert ('class="course-plain"' in cell.outputs[0].data["text/html"]) == plain


def test_no_page_asks_to_press_keys_or_to_type_into_it():
    asks = re.compile(r"Shift \+ Enter|^\d\. \*\*Type|Click Run", re.MULTILINE)
    asked = []
    for path in normal_form.paths():
        book = nbformat.read(path, as_version=4)
        texts = [one.source for one in book.cells if one.cell_type == "markdown"]
        asked += filter(asks.search, texts)
        for cell in transformed(None, *map(v4.new_markdown_cell, texts)):
            assert not asks.search(cell.source), path.stem
    assert len(asked) >= 5


def test_the_first_page_keeps_the_links_that_lead_somewhere(tmp_path):
    (tmp_path / "img").mkdir()
    (tmp_path / "img" / "a.svg").touch()
    kept = "[a](notebooks/00_start_here.ipynb) [b](https://example.org/x) [c](#two-commands) ![d](img/a.svg)"
    text = f"{kept} [the workflow](.github/workflows/test.yml) [all](tests/LEDGER.md#x)"
    assert sources.on_the_site(text, tmp_path) == f"{kept} the workflow all"


def test_a_checked_exercise_is_followed_by_its_hints_and_a_solution_folded(tmp_path):
    source = 'def weighted_sum(weights, values):\n    ...\n\n\ncheck("weighted_sum", weighted_sum)'
    stub, help_ = transformed(tmp_path, v4.new_code_cell(source))
    hints = EXERCISES["weighted_sum"].hints
    assert stub.source == source
    assert help_.source.count("<details") == len(hints) + 1 and "<details open" not in help_.source
    assert all(hint in help_.source for hint in hints)
    assert "```python\ndef weighted_sum(weights, values):\n" in help_.source


def test_a_notebook_that_cannot_be_run_is_named_and_its_pictures_stand_still(tmp_path, capsys):
    cell = v4.new_code_cell("1 / 0  # some_explorer(")
    (tmp_path / "01_a.ipynb").write_text(v4.writes(v4.new_notebook(cells=[cell])))
    assert recorded(tmp_path / "01_a.ipynb", tmp_path / "kept") is None
    assert "01_a stands still: ZeroDivisionError" in capsys.readouterr().out


def test_a_folder_with_something_else_is_left_as_it_is(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(ValueError, match="holds something else than a site"):
        write_site(tmp_path, [])
    assert (tmp_path / "thesis.txt").read_text() == "mine"
