"""Controls, a live picture below them, and a summary of what it shows."""

import functools
import html
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import ipywidgets
import matplotlib
from IPython import get_ipython
from torch import Tensor, nn

from course_lib import messages
from course_lib.plots.panel import Panel
from course_lib.plots.panel import short as short  # used by every explorer
from course_lib.plots.style import style
from course_lib.topics.attention_maps import weights_version
from course_lib.widgets.code import Call
from course_lib.widgets.controls import Choices, Text, make_control
from course_lib.widgets.live_figure import LiveFigure
from course_lib.widgets.picture import Picture, fallback


def probability(p: float) -> str:
    """Three digits, a fourth below 0.01, and "<0.0001" for what would be 0.0000."""
    return f"{p:.3f}" if p >= 0.01 else f"{p:.4f}" if p >= 0.0001 else "<0.0001"


def largest_weights(weights: Tensor, names: Sequence[str]) -> str:
    """Name the three largest of some weights: "3 cat (0.52), 0 the (0.31), 7 . (0.10)"."""
    most = weights.argsort(descending=True, stable=True)[:3].tolist()
    return ", ".join(f"{names[n]} ({weights[n]:.2f})" for n in most)


def remembered(model: nn.Module, most: int = 1) -> Callable[[Callable], Callable]:
    """Decorate a function that asks `model`: it keeps its last `most` results until the weights change."""

    def decorate(function: Callable) -> Callable:
        kept = functools.lru_cache(most)(lambda version, *arguments: function(*arguments))
        return lambda *arguments: kept(weights_version(model), *arguments)

    return decorate


class View(NamedTuple):
    """What a function decorated with `explorer` returns.

    Attributes:
        title: the first words of the summary.
        panels: of one figure, which `update` changes.
        update: called with the arguments that have controls, by name; updates the panels and returns facts that
            describe them, name → rounded value or short phrase. If it raises a ValueError, the message is shown
            and the picture does not change.
        controls: argument → what it can be. An argument with a single choice, or no text, has no control.
        name: stem of the names of saved files.
        labels: argument → label of its control, where it is not the name of the argument.
        start: argument → initial value, where it was left out.
        approximate: whether the numbers differ from machine to machine, because they are the result of
            training; then tests of a notebook compare only the title.
        limits: called like `update`, and before it; returns the largest value that each of some controls can
            have now. A control beyond it moves there until the limit rises; one with None is switched off.
        shown_by: from the view, the arguments and the call to the explorer; `Explorer` where left out.
    """

    title: str
    panels: Sequence[Panel]
    update: Callable[..., Mapping[str, str]]
    controls: Mapping[str, Choices]
    name: str
    labels: Mapping[str, str] = {}
    start: Mapping[str, object] = {}
    approximate: bool = False
    limits: Callable[..., Mapping[str, float | None]] = lambda **_: {}
    shown_by: Callable[..., "Explorer"] | None = None


def explorer(make: Callable[..., View]) -> Callable[..., "Explorer"]:
    """Decorate a function that returns a `View`: it makes an `Explorer`, whose controls are arguments of the function.

    Each control starts at its argument. Raises ValueError for an argument that its control cannot have.
    """
    signature = inspect.signature(make)

    @functools.wraps(make)
    def made(*args, **kwargs) -> "Explorer":
        given = signature.bind(*args, **kwargs)
        call = Call(make, given.arguments, inspect.currentframe().f_back)
        given.apply_defaults()
        with matplotlib.rc_context(style()):
            view = make(*args, **kwargs)
            return (view.shown_by or Explorer)(view, given.arguments | view.start, call)

    return made


class Explorer(ipywidgets.VBox):
    """A picture that follows its controls.

    A control can be changed by hand or by code; either redraws the picture immediately::

        explorer.controls["bandwidth"].value = 0.3
        explorer.summary

    It can be shown in one cell. Another cell makes an explorer of its own, for example with `explorer.code`.

    Attributes:
        controls: name → widget.
        picture: the `Picture`.
        summary: what the picture shows now, in words and numbers; also its text alternative.
        code: a line of code that makes another explorer in this state.

    Args:
        view: what it shows.
        arguments: argument of the function that made the view → its value.
        call: of this function.
    """

    def __init__(self, view: View, arguments: Mapping[str, object], call: Call) -> None:
        self.title, self.approximate = view.title, view.approximate
        self._update, self._limits, self._call = view.update, view.limits, call
        self._shown_in, self._quiet = None, False
        made = {
            name: make_control(name, arguments[name], choices, view.labels.get(name, name))
            for name, choices in view.controls.items()
        }
        self.controls = {name: control for name, control in made.items() if control}
        self._texts = {
            name: choices
            for name, choices in view.controls.items()
            if isinstance(choices, Text) and name in self.controls
        }
        self._fixed = {name: arguments[name] for name in made.keys() - self.controls.keys()}
        self._start = self._values()
        #: control → what was chosen, and where its limit moved it
        self._chosen: dict[str, tuple] = {}
        self._limit()
        live = LiveFigure(view.panels[0].axes.figure, view.panels)
        words, approximate = self._describe(), view.approximate
        self.picture = Picture(live, words, name=view.name, approximate=approximate, live=True)
        self.picture.code = self.code
        self._words, self._problem = ipywidgets.HTML(), ipywidgets.HTML()
        reset = ipywidgets.Button(description=messages.RESET, layout={"width": "auto"})
        reset.on_click(lambda _: self.reset())
        longest = max((len(one.description) for one in self.controls.values()), default=0)
        for control in self.controls.values():
            control.observe(lambda _: self.refresh(), names="value")
            wide = isinstance(control, ipywidgets.Text)  # space for a sentence
            if wide:
                control.continuous_update = False  # read on Enter, or after a pause in typing
            control.layout = ipywidgets.Layout(
                flex="3 1 440px" if wide else f"1 1 calc(170px + {longest}ch)",
                width="auto",
                max_width="760px" if wide else "480px",
                margin="2px 12px 2px 2px",
            )
            # sliders below one another line up
            control.style.description_width = f"{longest + 1}ch"
        layout = {"flex_flow": "row wrap", "align_items": "center"}
        row = ipywidgets.HBox([*self.controls.values(), reset], layout=layout)
        above = [row, *self._rules(), self._problem]
        super().__init__([*above, self.picture, self._words])
        self.picture.shown_in = self.model_id
        self.picture.observe(
            lambda change: self.choose(**change["new"]["controls"]), names="chosen"
        )
        self.add_class("course-explorer")
        self._tell(self.summary)

    @property
    def summary(self) -> str:
        """What the picture shows now."""
        return self.picture.summary

    @property
    def code(self) -> str:
        """A line of code that makes another explorer in this state."""
        return self._call.code(self._values())

    def refresh(self) -> None:
        """Draw the picture for the current values of the controls."""
        if self._quiet:
            return
        try:
            for name, text in self._texts.items():
                text.require(self.controls[name].value)
            self._limit()
            summary = self._describe()
        except ValueError as problem:
            self._refuse(messages.CANNOT_DRAW.format(reason=problem))
            return
        self._refuse("")
        self.picture.refresh(summary, self.code)
        self._tell(summary)

    def reset(self) -> None:
        """Reset every control to its initial value."""
        self.choose(**self._start)

    def choose(self, **values: object) -> None:
        """Set several controls by name, and draw once."""
        self._quiet = True
        try:
            for name, value in values.items():
                control = self.controls[name]
                self._chosen.pop(name, None)  # what was chosen before
                is_log = isinstance(control, ipywidgets.FloatLogSlider)  # its max is an exponent
                if not is_log and getattr(control, "max", value) < value:
                    control.max = value
                control.value = value
        finally:
            self._quiet = False
        self.refresh()

    def save(self, path: str | Path) -> Path:
        """Write the picture to `path`, which ends in .png or .svg."""
        return self.picture.save(path)

    def _rules(self) -> list[ipywidgets.HTML]:
        """What can be typed, a line for all boxes."""
        lines = []
        for text in dict.fromkeys(self._texts.values()):  # two boxes may have the same rule
            line = html.escape(text.rule)
            if text.known:
                words = html.escape(", ".join(sorted(text.known)))
                line = f"<details><summary>{line}</summary>{words}</details>"
            lines.append(f'<div class="course-picture-help course-rule">{line}</div>')
        return [ipywidgets.HTML("".join(lines))] if lines else []

    def _values(self) -> dict[str, object]:
        return {name: one.value for name, one in self.controls.items()}

    def _limit(self) -> None:
        """Shorten the range of each control to what it controls now; where it grows, go back to the choice."""
        limits = self._limits(**self._fixed, **self._values())
        quiet, self._quiet = self._quiet, True
        try:
            for name, most in limits.items():
                if control := self.controls.get(name):
                    control.disabled = most is None or most <= getattr(control, "min", -math.inf)
                    if most is None:
                        continue
                    chosen, moved_to = self._chosen.pop(name, (None, None))
                    chosen = chosen if moved_to == control.value else control.value
                    # Two messages: in one, the browser would move the value before it has the larger range.
                    if not control.disabled and most > control.max:
                        control.max = most
                    control.value = min(chosen, most)
                    if not control.disabled:  # a slider needs two positions
                        control.max = most
                    self._chosen[name] = chosen, control.value
        finally:
            self._quiet = quiet

    def _describe(self) -> str:
        facts = self._update(**self._fixed, **self._values())
        return "\n  ".join([f"{self.title}:", *(f"{name} {fact}" for name, fact in facts.items())])

    def _refuse(self, words: str) -> None:
        """Show a problem between the controls and the picture, which is dimmed; none for no words."""
        line = f'<p role="alert" class="course-problem">{html.escape(words)}</p>'
        self._problem.value, self.picture.problem = line if words else "", words

    def _tell(self, words: str) -> None:
        line = html.escape(words.replace(":\n  ", ": ").replace("\n  ", "; "))
        self._words.value = f'<p role="status" style="margin:0; line-height:1.5">{line}</p>'

    def _may_be_shown(self) -> bool:
        """Whether this is the first display, or one by the same cell run again."""
        shell = get_ipython()
        if shell is None:  # not in a notebook
            return True
        message = getattr(shell, "parent_header", None) or {}
        now = message.get("metadata", {}).get("cellId"), shell.execution_count
        before = self._shown_in
        if before and (now[0] is None or now[0] != before[0] or now[1] == before[1]):
            return False
        self._shown_in = now
        return True

    def _repr_mimebundle_(self, **kwargs):
        if not self._may_be_shown():
            return {"text/plain": messages.SHOWN_TWICE.format(code=f":\n{self.code}")}, {}
        view = super()._repr_mimebundle_(**kwargs)
        words = f"{self.title}." if self.approximate else self.summary
        data, metadata = fallback(self.picture, words)
        return view | data, metadata

    def __repr__(self) -> str:
        return self.summary
