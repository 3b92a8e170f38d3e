"""Controls on top, a live picture below, and what it shows in words."""

import html
import math
from collections.abc import Callable, Mapping
from pathlib import Path

import ipywidgets
import numpy as np
from torch import nn

from course_lib import texts
from course_lib.widgets.live_figure import LiveFigure
from course_lib.widgets.picture import Picture, fallback

#: What an explorer's `update` returns: what is drawn, name → rounded value or short phrase.
Facts = Mapping[str, str]


def short(number: float) -> str:
    """Three significant digits without an exponent: 0.0123, 18,900."""
    rounded = float(f"{number:.3g}")
    if abs(rounded) >= 100:
        return f"{rounded:,.0f}"
    return np.format_float_positional(rounded, trim="-")


def probability(p: float) -> str:
    """Three digits, a fourth for the improbable, and a bound for what would be 0.0000."""
    return f"{p:.3f}" if p >= 0.01 else f"{p:.4f}" if p >= 0.0001 else "<0.0001"


def learned(model: nn.Module) -> int:
    """A number that is another one whenever the weights of a model were changed in place, as training does."""
    return sum(weights._version for weights in model.parameters())


def whole_steps(number: float, step: float, towards: Callable[[float], int] = round) -> float:
    """Return a whole number of steps: where the browser would put a slider anyway."""
    return round(towards(round(number / step, 6)) * step, 10)


def round_step(span: float, steps: int = 200) -> float:
    """Return a slider step of 1, 2 or 5 times a power of ten: about `steps` of them make up `span`."""
    exponent = math.floor(math.log10(span / steps))
    leading = span / steps / 10**exponent
    return min((1, 2, 5, 10), key=lambda candidate: abs(candidate - leading)) * 10**exponent


class Explorer(ipywidgets.VBox):
    """A picture that moves when a control does.

    A control is changed by hand or by code; both redraw at once, in the cell that did it::

        explorer.controls["bandwidth"].value = 0.3
        explorer.summary

    Attributes:
        controls: name → widget.
        picture: the `Picture`.
        summary: what is drawn now, in words and numbers; also the description of the picture.

    Args:
        title: the first words of the summary.
        controls: name → widget with a `value`.
        figure: its panels are moved by `update`.
        update: called with every control's value by name; moves the panels and returns the `Facts`.
            A ValueError that it raises is shown in words, and the picture stays.
        name: stem of the names of saved files.
        measured: whether what is drawn differs from machine to machine, because it comes of training;
            then only the title is compared when a notebook is tested.
    """

    def __init__(
        self,
        title: str,
        controls: Mapping[str, ipywidgets.ValueWidget],
        figure: LiveFigure,
        update: Callable[..., Facts],
        *,
        name: str,
        measured: bool = False,
    ) -> None:
        self.measured = measured
        self.title, self.controls, self._update = title, dict(controls), update
        self._start = {name: control.value for name, control in self.controls.items()}
        self._quiet = False
        self.picture = Picture(figure, self._describe(), name=name)
        self._words = ipywidgets.HTML()
        reset = ipywidgets.Button(description=texts.RESET, layout=ipywidgets.Layout(width="auto"))
        reset.on_click(lambda _: self.reset())
        for control in self.controls.values():
            control.observe(lambda _: self.refresh(), names="value")
            wide = isinstance(control, ipywidgets.Text)  # room for a sentence
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
        super().__init__([row, self.picture, self._words])
        self.add_class("course-explorer")
        self._tell(self.summary)

    @property
    def summary(self) -> str:
        """What is drawn now."""
        return self.picture.summary

    def refresh(self) -> None:
        """Draw what the controls say now."""
        if self._quiet:
            return
        try:
            summary = self._describe()
        except ValueError as problem:
            self._tell(texts.CANNOT_DRAW.format(reason=problem))
            return
        self.picture.refresh(summary)
        self._tell(summary)

    def reset(self) -> None:
        """Put every control back to where it started."""
        self._quiet = True
        try:
            for name, value in self._start.items():
                self.controls[name].value = value
        finally:
            self._quiet = False
        self.refresh()

    def save(self, path: str | Path) -> Path:
        """Write the picture to `path`, which ends in .png or .svg."""
        return self.picture.save(path)

    def _describe(self) -> str:
        facts = self._update(**{name: control.value for name, control in self.controls.items()})
        return "\n  ".join([f"{self.title}:", *(f"{name} {fact}" for name, fact in facts.items())])

    def _tell(self, words: str) -> None:
        line = html.escape(words.replace(":\n  ", ": ").replace("\n  ", "; "))
        self._words.value = f'<p role="status" style="margin:0; line-height:1.5">{line}</p>'

    def _repr_mimebundle_(self, **kwargs):
        view = super()._repr_mimebundle_(**kwargs)
        words = f"{self.title}." if self.measured else self.summary
        data, metadata = fallback(self.picture.figure, words, measured=self.measured)
        return view | data, metadata

    def __repr__(self) -> str:
        return self.summary
