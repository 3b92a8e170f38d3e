"""What every explorer offers: ranges that follow, code that recreates a state, one display, saved pictures."""

import re

import ipywidgets
import pytest
import torch

from course_lib.checkpoints import date_translator, phrase_translator
from course_lib.data import wave_series
from course_lib.inspection import AttentionMap
from course_lib.plots import LinesPanel, figure
from course_lib.positions import T5RelativeBias, alibi_bias
from course_lib.widgets import (
    Explorer,
    LiveFigure,
    attention_explorer,
    beam_explorer,
    bias_explorer,
    bleu_explorer,
    date_explorer,
    depth_explorer,
    explorer,
    kernel_regression_explorer,
    mask_explorer,
    next_token_explorer,
    reshape_explorer,
    rotary_explorer,
    scaling_explorer,
    score_explorer,
    similarity_explorer,
    sinusoid_explorer,
    translation_explorer,
)
from tests.helpers.explorers import move

translator, dates, wave = phrase_translator(), date_translator(), wave_series()
table = {(): {"the": 0.6, "a": 0.4}, ("the",): {"cat": 0.7, "dog": 0.3}, ("a",): {"cat": 1.0}}
with torch.no_grad():
    planes = {"ALiBi": alibi_bias(8, 6), "T5": T5RelativeBias(4)(6, 6)}


def read(text):
    words = text.split()
    weights = torch.rand(
        3, len(words), len(words), generator=torch.Generator().manual_seed(len(words))
    )
    return {name: AttentionMap(weights.softmax(-1) ** n, words) for n, name in ((1, "a"), (2, "b"))}


#: Name → how it is made, and values that make the ranges of its sliders shorter.
EXPLORERS = {
    "attention": (lambda: attention_explorer(read, text="a b c d e f", query=5), {"text": "a b"}),
    "beam": (lambda: beam_explorer(table), {"beam_size": 1}),
    "beam of a translator": (lambda: beam_explorer(translator, "she reads ."), {}),
    "bias": (lambda: bias_explorer(planes, head=7), {"encoding": "T5"}),
    "bleu": (lambda: bleu_explorer(), {}),
    "dates": (lambda: date_explorer(dates), {}),
    "depth": (lambda: depth_explorer(), {}),
    "kernel regression": (lambda: kernel_regression_explorer(wave), {"kernel": "boxcar"}),
    "kernel regression alone": (lambda: kernel_regression_explorer(wave, error=False), {}),
    "masks": (lambda: mask_explorer(), {"kind": "causal"}),
    "next token": (lambda: next_token_explorer(translator, "he sleeps ."), {}),
    "reshape": (lambda: reshape_explorer(), {"variant": "merge without transpose"}),
    "rotary": (lambda: rotary_explorer(), {}),
    "scaling": (lambda: scaling_explorer(), {"relative_size": 4.0}),
    "scores": (lambda: score_explorer(), {"scale": "1/d"}),
    "similarity": (lambda: similarity_explorer(), {"score": "Gaussian"}),
    "sinusoids": (lambda: sinusoid_explorer(length=64, position=63), {"length": 16}),
    "translation": (lambda: translation_explorer(translator, "she reads ."), {"temperature": 1.0}),
}


def positions(slider):
    """Up to twelve neighbouring positions of a slider, to its end."""
    if hasattr(slider, "options"):
        return list(slider._options_values)[-12:]
    if isinstance(slider, ipywidgets.FloatLogSlider):
        return [slider.base ** (slider.max - n * slider.step) for n in range(11, -1, -1)]
    count = min(round((slider.max - slider.min) / slider.step), 11)
    return [slider.max - n * slider.step for n in range(count, -1, -1)]


def sliders(made):
    kinds = (ipywidgets.IntSlider, ipywidgets.FloatSlider, ipywidgets.FloatLogSlider)
    kinds = (*kinds, ipywidgets.SelectionSlider)
    return [name for name, one in made.controls.items() if isinstance(one, kinds)]


@pytest.mark.parametrize("moved", [False, True])
@pytest.mark.parametrize("name", EXPLORERS)
def test_every_position_of_every_slider_does_something(name, moved):
    make, values = EXPLORERS[name]
    made = move(make(), **(values if moved else {}))
    for slider in sliders(made):
        control, seen = made.controls[slider], []
        if control.disabled:
            continue
        for position in positions(control):
            control.value = position
            seen.append((made.summary, made.picture.png))
        same = [
            n for n, (one, other) in enumerate(zip(seen, seen[1:], strict=False)) if one == other
        ]
        assert not same, f"{slider} does nothing after {[positions(control)[n] for n in same]}"
        made.reset()
        move(made, **(values if moved else {}))


@pytest.mark.parametrize("name", EXPLORERS)
def test_a_line_of_code_recreates_any_state(name):
    make, values = EXPLORERS[name]
    made = move(make(), **values)
    for slider in sliders(made):
        made.controls[slider].value = positions(made.controls[slider])[-2]
    again = eval(made.code, globals())
    assert (again.summary, again.picture.png) == (made.summary, made.picture.png), made.code
    assert made.code == made.picture.code


def test_the_line_of_code_holds_what_the_cell_says_and_the_present_state():
    made = attention_explorer(read, text="a b c", title="Mine", approximate=True)
    made.controls["query"].value = 2
    assert made.code == (
        "attention_explorer(read, text='a b c', layer='a', query=2, title='Mine', approximate=True)"
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
    masks, translation = mask_explorer(kind="causal"), EXPLORERS["translation"][0]()
    assert masks.controls["length"].disabled and translation.controls["sample"].disabled
    move(masks, kind="padding"), move(translation, temperature=1.0)
    assert not masks.controls["length"].disabled and not translation.controls["sample"].disabled


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
    assert "already shown in another cell" in refused["text/plain"]
    assert refused["text/plain"].endswith("Make a second explorer:\nmask_explorer(queries=2)")


def test_a_cell_can_be_run_again_but_cannot_show_one_explorer_twice(shell):
    made = mask_explorer()
    for _ in range(3):
        assert "image/png" in shell.run("one", made)
    assert "image/png" not in made._repr_mimebundle_()[0], "twice in one run"
    assert "image/png" not in shell.run("two", made)
    assert "image/png" in shell.run("one", made)


def test_a_text_is_not_read_at_every_keystroke():
    texts = [
        control
        for make, _ in EXPLORERS.values()
        for control in make().controls.values()
        if isinstance(control, ipywidgets.Text)
    ]
    assert len(texts) >= 6 and not any(text.continuous_update for text in texts)


def test_a_picture_is_cut_between_its_columns_and_nowhere_else():
    drawn, axes = figure(9, 3, columns=3)
    panels = [LinesPanel(one, [0, 1], {"a": [0, 1]}, x_label="x", title="one") for one in axes]
    live = LiveFigure(drawn, panels)
    assert len(live.cuts) == 2
    for cut, left, right in zip(live.cuts, axes, axes[1:], strict=False):
        edges = left.get_tightbbox().x1, right.get_tightbbox().x0
        assert edges[0] <= cut * drawn.bbox.width <= edges[1]
    drawn, axes = figure(9, 6, rows=2)
    panels = [LinesPanel(one, [0, 1], {"a": [0, 1]}) for one in axes]
    assert LiveFigure(drawn, panels).cuts == []


def test_every_widget_that_holds_a_picture_is_known_to_it():
    made = mask_explorer()
    assert made.picture.shown_in == made.model_id
    assert re.fullmatch("[0-9a-f]{32}", made.picture.shown_in)


def test_an_explorer_made_by_hand_has_no_code():
    drawn, axes = figure(3, 3)
    live = LiveFigure(drawn, [LinesPanel(axes, [0, 1], {"a": [0, 1]})])
    made = Explorer("Mine", {}, live, lambda: {"a": "b"}, name="mine")
    assert made.code == made.picture.code == ""
