"""What every explorer offers: pictures that follow, ranges that follow, code that recreates a state, one display."""

import base64
import io
import random
import re

import ipywidgets
import numpy as np
import pytest
import torch
from PIL import Image
from traitlets import TraitError

from course_lib.checkpoints import date_translator, phrase_translator
from course_lib.data import wave_series
from course_lib.plots import LinesPanel, MapPanel, figure
from course_lib.plots.tokens import labels, visible
from course_lib.plots.words import width
from course_lib.transformer.positions import T5RelativeBias, alibi_bias
from course_lib.widgets import (
    LiveFigure,
    anatomy_explorer,
    attention_explorer,
    beam_explorer,
    bias_explorer,
    bleu_explorer,
    date_explorer,
    depth_explorer,
    explorer,
    generation_explorer,
    heads_explorer,
    kernel_regression_explorer,
    logit_lens_explorer,
    mask_explorer,
    next_token_explorer,
    pattern_explorer,
    reshape_explorer,
    rotary_explorer,
    scaling_explorer,
    score_explorer,
    similarity_explorer,
    sinusoid_explorer,
    translation_explorer,
)
from tests.helpers.annotations import unchecked
from tests.helpers.attention_explorers import Reader, random_weights
from tests.helpers.decoding import TABLE
from tests.helpers.explorers import move, moved_at_random, panels, pixels, positions, shown
from tests.helpers.tiny_language_model import tiny_language_model

with unchecked():
    translator, dates = phrase_translator(), date_translator()
read, wave = Reader(), wave_series()
model, tokenizer = tiny_language_model()
torch.manual_seed(0)
dense, one_head = random_weights(12, 12), random_weights(1, 6, 9)
with torch.no_grad():
    planes = {
        "ALiBi": alibi_bias(8, 6),
        "T5": T5RelativeBias(4)(6, 6),
        "zero": 0 * alibi_bias(1, 6),
    }

ENGLISH = ("she reads .", "are you tired?", "does she see the red house?")
SENTENCES = ("a horse is tired", "it was too tired so the goat stayed", "it", "a bird sat still")
LETTERS = ("once upon a time", "a cat. the cat. a cat", "abc")
DATES = ("5 maja 1980", "7/4/87", "Παρασκευή 30 Σεπτεμβρίου 2022")
CANDIDATES, REFERENCES = ("of the", "a b a b", "the the cat"), ("a b | b a b", "the cat")

#: Name → how it is made, and values of its text boxes or of a control that makes ranges shorter.
EXPLORERS = {
    "anatomy": (lambda: anatomy_explorer(), {"model": ["GPT-2"]}),
    "attention": (
        lambda **more: attention_explorer(read, text="a b c d e f", query=5, **more),
        {"text": SENTENCES},
    ),
    "one head": (lambda: attention_explorer(one_head), {}),
    "beam": (lambda **more: beam_explorer(TABLE, **more), {"beam_size": [1]}),
    "translated beam": (lambda: beam_explorer(translator, ENGLISH[0]), {"text": ENGLISH}),
    "bias": (lambda **more: bias_explorer(planes, head=7, **more), {"encoding": ["zero"]}),
    "bleu": (lambda: bleu_explorer(), {"candidate": CANDIDATES, "reference": REFERENCES}),
    "dates": (lambda **more: date_explorer(dates, **more), {"text": DATES}),
    "depth": (lambda: depth_explorer(), {"depth": [2]}),
    "generation": (
        lambda **more: generation_explorer(model, tokenizer, "once", **more),
        {"text": LETTERS},
    ),
    "heads": (
        lambda **more: heads_explorer(model, tokenizer, "once", **more),
        {"text": LETTERS},
    ),
    "kernel regression": (lambda: kernel_regression_explorer(wave), {"kernel": ["boxcar"]}),
    "kernel regression alone": (lambda: kernel_regression_explorer(wave, error=False), {}),
    "logit lens": (
        lambda **more: logit_lens_explorer(model, tokenizer, "once", **more),
        {"text": LETTERS},
    ),
    "masks": (lambda: mask_explorer(), {"kind": ["causal"]}),
    "next token": (
        lambda **more: next_token_explorer(translator, ENGLISH[1], **more),
        {"text": ENGLISH},
    ),
    "patterns": (lambda: pattern_explorer(dense), {"kind": ["longformer"]}),
    "reshape": (lambda: reshape_explorer(), {"heads": [4]}),
    "rotary": (lambda: rotary_explorer(), {"base": [10]}),
    "scaling": (lambda: scaling_explorer(), {"relative_size": [4.0]}),
    "scores": (lambda: score_explorer(), {"scale": ["1/d"]}),
    "similarity": (lambda: similarity_explorer(), {"score": ["Gaussian"]}),
    "sinusoids": (lambda: sinusoid_explorer(length=64, position=63), {"length": [16]}),
    "translation": (lambda: translation_explorer(translator, ENGLISH[0]), {"text": ENGLISH}),
}
#: Explorer and slider: before there is a text; and in a search whose best hypothesis wins with any penalty.
WITHOUT_EFFECT = {("generation", "length"), ("generation", "seed")} | {
    (name, "length_penalty") for name in ("beam", "translated beam")
}


def require_room_for_short_names(explorer):
    """Of the rows of its maps."""
    for panel in (one for one in panels(explorer) if isinstance(one, MapPanel)):
        sides = panel._row_names
        for row in filter(None, panel.rows):
            if len(row) <= 4:
                assert labels([row], 9, sides._room()) == [visible(row)]
                assert width(visible(row), 9) <= sides._room(), row


@pytest.mark.parametrize("name", EXPLORERS)
def test_moved_pictures_are_full_drawings_and_code_and_reset_recreate_a_state(
    name, without_annotations
):
    make, texts = EXPLORERS[name]
    moved, redrawn = make(), make()
    require_room_for_short_names(moved)
    start = shown(moved)
    pictures = moved_at_random(moved, redrawn, texts, random.Random(name), turns=6)
    assert len(pictures) > 3, "the test shows too little"
    assert shown(eval(moved.code, globals())) == shown(moved), moved.code
    assert moved.code == moved.picture.code
    moved.reset()
    assert shown(moved) == start


@pytest.mark.parametrize("name", EXPLORERS)
def test_the_last_position_of_every_slider_differs_from_the_one_before(name, without_annotations):
    make, values = EXPLORERS[name]
    made = make()
    for changes in ({}, {control: one for control, (one, *_) in values.items()}):
        for control, slider in move(made, **changes).controls.items():
            if (
                not isinstance(slider, ipywidgets.Text | ipywidgets.Dropdown)
                and not slider.disabled
            ):
                if (name, control) in WITHOUT_EFFECT:
                    continue
                places = [positions(slider)[n] for n in (0, -2, -1)]
                first, before, last = [shown(move(made, **{control: at})) for at in places]
                assert before != last, f"{control} does nothing at its end"
                assert first[1] != last[1], f"{control} never changes the picture"


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("attention", "a zebra", "'zebra' is not among the words"),
        ("translated beam", "are you blorf?", "blorf"),
        ("bleu", "", "the text is empty; type 1 to 24 words"),
        ("bleu", "a " * 25, "has 25 tokens"),
        ("dates", "", "the text is empty"),
        ("dates", "1" * 41, "at most 40 can be shown"),
        ("generation", " \n ", "the text is empty; type any text"),
        ("generation", "a" * 4001, "at most 4000 can be shown"),
        ("heads", "", "the text is empty; type any text of 2 to 256 tokens"),
        ("heads", "a", "at least 2 tokens, and has 1"),
        ("heads", "a" * 257, "257 tokens; at most 256"),
        ("logit lens", "a" * 65, "65 tokens; at most 64"),
        ("next token", "are you blorf?", "blorf"),
        ("translation", "He? She.", "type one sentence at a time"),
        ("translation", "the " * 24, "has 25 tokens; at most 24"),
    ],
)
def test_a_text_that_cannot_be_shown_is_said_and_the_picture_stays(name, text, says):
    made = EXPLORERS[name][0]()
    box = next(iter(made.controls))
    *before, _ = shown(made)
    move(made, **{box: text})
    assert says in made.picture.problem and "cannot be drawn" in made._problem.value
    assert [*shown(made)][:-1] == before
    made.refresh()
    assert made.picture.problem and made.picture.png == before[1]
    made.reset()
    assert [*shown(made)] == [*before, ""] and not made.picture.problem


APPROXIMATE = ("attention", "beam", "bias", "generation", "heads", "logit lens")


@pytest.mark.parametrize("name", [*APPROXIMATE, "dates"])
def test_numbers_trained_here_are_compared_by_the_title_alone(name):
    settings = {"title": "Mine"} if name in APPROXIMATE else {}
    made = EXPLORERS[name][0](approximate=True, **settings)
    words = made._repr_mimebundle_()[0]["text/plain"]
    assert words == (f"{settings['title']}." if settings else "From a written date to ISO 8601.")
    assert not EXPLORERS[name][0]().approximate


def test_a_page_without_a_kernel_gets_a_picture_and_the_data():
    made = EXPLORERS["kernel regression"][0]()
    data, metadata = made._repr_mimebundle_()
    assert data["text/plain"] == f"{made.summary}\n{made.picture.figure.describe()}"
    assert "\nfit: keys 0.0137 to 4.99, mean" in data["text/plain"]
    assert metadata["image/png"] == {"width": 1040, "height": 362}
    stored = Image.open(io.BytesIO(base64.b64decode(data["image/png"]))).convert("L")
    assert np.asarray(stored)[442:].min() < 120, "a line says that it does not move"
    assert "application/vnd.jupyter.widget-view+json" in data


def test_the_line_of_code_holds_what_the_cell_says_and_the_present_state():
    made = attention_explorer(read, text="a b c", title="Mine", approximate=True)
    made.controls["query"].value = 2
    assert made.code == (
        "attention_explorer(read, text='a b c', layer='first', query=2, title='Mine', "
        "approximate=True)"
    )
    assert move(heads_explorer(model, tokenizer, "abc"), layer=2).code == (
        "heads_explorer(model, tokenizer, text='abc', layer=2, query=2)"
    )
    assert EXPLORERS["masks"][0]().code == "mask_explorer()"


def test_a_shorter_range_moves_the_slider_and_a_longer_one_moves_it_back():
    made = EXPLORERS["attention"][0]()
    query = made.controls["query"]
    move(made, text="a b c")
    assert (query.value, query.max) == (2, 2)
    move(made, text="a b c d e f")
    assert (query.value, query.max) == (5, 5)
    move(made, text="a b c", query=1)
    move(made, text="a b c d e f")
    assert query.value == 1, "what was chosen last counts"
    move(made, text="a")
    assert query.disabled and query.value == 0
    made.reset()
    assert (query.value, query.max, query.disabled) == (5, 5, False)


def test_a_control_without_effect_is_switched_off():
    masks = mask_explorer(kind="causal")
    assert masks.controls["length"].disabled
    move(masks, kind="padding")
    assert not masks.controls["length"].disabled


def test_a_cell_chosen_in_the_browser_sets_its_controls_and_draws_once():
    made = EXPLORERS["heads"][0]()
    drawn = []
    made.picture.observe(lambda _: drawn.append(1), names="png")
    made.picture.chosen = {"controls": {"layer": 2, "head": 1}, "before": 0}
    assert [made.controls[name].value for name in ("layer", "head")] == [2, 1]
    assert len(drawn) == 1


def test_a_reset_that_fails_does_not_switch_the_explorer_off():
    made = EXPLORERS["kernel regression"][0]()
    made.controls["kernel"].options = ["boxcar"]
    with pytest.raises(TraitError):
        made.reset()
    before = made.picture.png
    assert move(made, query=4.0).picture.png != before


def test_saving_writes_the_present_state_and_refuses_other_formats(tmp_path):
    made, other = (move(EXPLORERS["kernel regression"][0](), query=4.0) for _ in range(2))
    before = made.picture.png
    saved = pixels(made.save(tmp_path / "a.png").read_bytes())
    assert saved.shape == (442, 1352, 3)
    assert np.array_equal(saved, pixels(made.picture.figure.png()))
    svg = made.save(tmp_path / "a.svg").read_text()
    assert svg.startswith("<?xml") and "bandwidth 0.2" in svg
    assert svg == other.save(tmp_path / "b.svg").read_text(), "the same state, the same bytes"
    made.refresh()
    assert made.picture.png == before, "saving disturbed the live picture"
    with pytest.raises(ValueError, match="must end in .png or .svg"):
        made.save(tmp_path / "a.gif")


class Shell:
    """An IPython that runs one cell after the other."""

    def __init__(self):
        self.execution_count, self.parent_header = 0, {}

    def run(self, cell, shown):
        self.execution_count += 1
        self.parent_header = {"metadata": {"cellId": cell} if cell else {}}
        return shown._repr_mimebundle_()[0]


@pytest.fixture
def shell(monkeypatch):
    made = Shell()
    monkeypatch.setattr(explorer, "get_ipython", lambda: made)
    return made


@pytest.mark.parametrize("cells", [("one", "two"), (None, None)])
def test_a_second_display_is_refused_and_says_what_to_do(shell, cells):
    made = move(mask_explorer(), queries=2)
    assert "image/png" in shell.run(cells[0], made)
    refused = shell.run(cells[1], made)
    assert list(refused) == ["text/plain"]
    assert refused["text/plain"].endswith("Make a second explorer:\nmask_explorer(queries=2)")


def test_a_cell_can_be_run_again_but_cannot_show_one_explorer_twice(shell):
    made = mask_explorer()
    for _ in range(3):
        assert "image/png" in shell.run("one", made)
    assert "image/png" not in made._repr_mimebundle_()[0], "twice in one run"
    assert "image/png" not in shell.run("two", made)
    assert "image/png" in shell.run("one", made)


def test_a_text_is_not_read_at_every_keystroke_and_a_picture_knows_its_widget():
    made = EXPLORERS["bleu"][0]()
    assert not any(made.controls[name].continuous_update for name in ("candidate", "reference"))
    assert made.picture.shown_in == made.model_id and re.fullmatch("[0-9a-f]{32}", made.model_id)


def test_a_picture_is_cut_between_its_columns_and_nowhere_else():
    drawn, axes = figure(9, 3, columns=3)
    made = [LinesPanel(one, [0, 1], {"a": [0, 1]}) for one in axes]
    for one in axes:
        one.set(xlabel="x", title="one")
    live = LiveFigure(drawn, made)
    assert len(live.cuts) == 2
    for cut, left, right in zip(live.cuts, axes, axes[1:], strict=False):
        edges = left.get_tightbbox().x1, right.get_tightbbox().x0
        assert edges[0] <= cut * drawn.bbox.width <= edges[1]
    drawn, axes = figure(9, 6, rows=2)
    made = [LinesPanel(one, [0, 1], {"a": [0, 1]}) for one in axes]
    assert LiveFigure(drawn, made).cuts == []
