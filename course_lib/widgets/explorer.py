"""Controls, a live picture below them, and a summary of what it shows."""

import html
import math
from collections.abc import Callable, Mapping
from pathlib import Path

import ipywidgets
from IPython import get_ipython

from course_lib import messages
from course_lib.plots.panel import short as short  # used by every explorer
from course_lib.widgets.code import Call
from course_lib.widgets.live_figure import LiveFigure
from course_lib.widgets.picture import Picture, fallback

#: What an explorer's `update` returns to describe the figure: name → rounded value or short phrase.
Facts = Mapping[str, str]

#: What an explorer's `limits` returns: the largest value that each of some controls can have now, or None for
#: a control that has no effect now.
Limits = Mapping[str, float | None]


def probability(p: float) -> str:
    """Three digits, a fourth below 0.01, and "<0.0001" for what would be 0.0000."""
    return f"{p:.3f}" if p >= 0.01 else f"{p:.4f}" if p >= 0.0001 else "<0.0001"


def whole_steps(number: float, step: float, towards: Callable[[float], int] = round) -> float:
    """Round to a whole number of steps, as the browser does with the value of a slider."""
    return round(towards(round(number / step, 6)) * step, 10)


def round_step(span: float, steps: int = 200) -> float:
    """Return a slider step of 1, 2 or 5 times a power of ten, such that `span` is about `steps` steps."""
    exponent = math.floor(math.log10(span / steps))
    leading = span / steps / 10**exponent
    return min((1, 2, 5, 10), key=lambda candidate: abs(candidate - leading)) * 10**exponent


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
        code: a line of code that makes another explorer in this state; empty if it is not known how.

    Args:
        title: the first words of the summary.
        controls: name → widget with a `value`.
        figure: `update` changes its panels.
        update: called with every control's value by name; updates the panels and returns the `Facts`.
            If it raises a ValueError, the message is shown and the picture does not change.
        name: stem of the names of saved files.
        approximate: whether the numbers differ from machine to machine, because they are the result of
            training; then tests of a notebook compare only the title.
        limits: called with every control's value by name before `update`; returns the `Limits`. A control
            beyond its largest value moves there until the limit rises, and one without effect is switched off.
    """

    def __init__(
        self,
        title: str,
        controls: Mapping[str, ipywidgets.ValueWidget],
        figure: LiveFigure,
        update: Callable[..., Facts],
        *,
        name: str,
        approximate: bool = False,
        limits: Callable[..., Limits] = lambda **_: {},
    ) -> None:
        self.approximate = approximate
        self.title, self.controls, self._update = title, dict(controls), update
        self._limits, self._call, self._shown_in, self._quiet = limits, None, None, False
        self._start = self._values()
        self._chosen: dict[
            str, tuple
        ] = {}  # control → what was chosen, and where its limit moved it
        self._limit()
        self.picture = Picture(
            figure, self._describe(), name=name, approximate=approximate, live=True
        )
        self._words, self._problem = ipywidgets.HTML(), ipywidgets.HTML()
        reset = ipywidgets.Button(
            description=messages.RESET, layout=ipywidgets.Layout(width="auto")
        )
        reset.on_click(lambda _: self.reset())
        for control in self.controls.values():
            control.observe(lambda _: self.refresh(), names="value")
            wide = isinstance(control, ipywidgets.Text)  # space for a sentence
            if wide:
                control.continuous_update = False  # read on Enter, or after a pause in typing
            control.layout = ipywidgets.Layout(
                flex="3 1 440px" if wide else "1 1 280px",
                width="auto",
                max_width="760px" if wide else "480px",
                margin="2px 12px 2px 2px",
            )
            control.style.description_width = "initial"  # a long name is not cut off
        row = ipywidgets.HBox(
            [*self.controls.values(), reset],
            layout=ipywidgets.Layout(flex_flow="row wrap", align_items="center"),
        )
        super().__init__([row, self._problem, self.picture, self._words])
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
        return self._call.code(self._values()) if self._call else ""

    def remember(self, call: Call) -> None:
        """Take note of the call that made this explorer."""
        self._call = call
        self.picture.code = self.code

    def refresh(self) -> None:
        """Draw the picture for the current values of the controls."""
        if self._quiet:
            return
        try:
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
        self._chosen.clear()
        self.choose(**self._start)

    def choose(self, **values: object) -> None:
        """Set several controls by name, and draw once."""
        self._quiet = True
        try:
            for name, value in values.items():
                control = self.controls[name]
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

    def _values(self) -> dict[str, object]:
        return {name: control.value for name, control in self.controls.items()}

    def _limit(self) -> None:
        """Shorten the range of each control to what it controls now; where it grows, go back to the choice."""
        limits = self._limits(**self._values())
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
        facts = self._update(**self._values())
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
        before, self._shown_in = self._shown_in, self._shown_in or now
        again = now[0] is not None and before and now[0] == before[0] and now[1] != before[1]
        if again:
            self._shown_in = now
        return before is None or bool(again)

    def _repr_mimebundle_(self, **kwargs):
        if not self._may_be_shown():
            code = f":\n{self.code}" if self.code else "."
            return {"text/plain": messages.SHOWN_TWICE.format(code=code)}, {}
        view = super()._repr_mimebundle_(**kwargs)
        words = f"{self.title}." if self.approximate else self.summary
        data, metadata = fallback(self.picture.figure, words, approximate=self.approximate)
        return view | data, metadata

    def __repr__(self) -> str:
        return self.summary
