"""From the values that an argument of an explorer can have to the control that chooses among them."""

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from numbers import Integral, Real
from typing import NamedTuple

import ipywidgets

from course_lib import messages
from course_lib.validation import require_one_of


class Numbers(NamedTuple):
    """Real numbers from `first` to `last`, on a slider with this `step`."""

    first: float
    last: float
    step: float

    def control(self, value: float, **options: str) -> ipywidgets.FloatSlider:
        """Return a slider at the step nearest to `value`, where the browser would put it."""
        digits = max(0, -Decimal(repr(self.step)).normalize().as_tuple().exponent)
        value = self.first + whole_steps(value - self.first, self.step)
        return ipywidgets.FloatSlider(
            round(value, 10), min=self.first, max=self.last, step=self.step,
            readout_format=f".{digits}f", **options,
        )  # fmt: skip


class Powers(NamedTuple):
    """Real numbers from `first` to `last`, on a slider whose `step` is one of their logarithm to base 10."""

    first: float
    last: float
    step: float
    readout_format: str = ".3g"

    def control(self, value: float, **options: str) -> ipywidgets.FloatLogSlider:
        """Return a slider; ends and value are whole steps, where the browser would put them."""
        first, last, now = (
            whole_steps(math.log10(number), self.step) for number in (self.first, self.last, value)
        )
        return ipywidgets.FloatLogSlider(
            10**now, min=first, max=last, step=self.step, readout_format=self.readout_format,
            **options,
        )  # fmt: skip


class Text(NamedTuple):
    """A text with something that can be seen, typed into a box.

    Attributes:
        rule: what can be typed, which stands below the controls.
        known: the words that can be typed, which unfold there.
        most: characters of the longest text.
    """

    rule: str
    known: Sequence[str] = ()
    most: int = 4000

    def require(self, text: str) -> None:
        """Raise ValueError for an empty, a blank and a longer text."""
        if not text.strip():
            raise ValueError(messages.EMPTY_TEXT.format(rule=self.rule))
        if len(text) > self.most:
            raise ValueError(messages.TOO_LONG.format(length=len(text), most=self.most))


#: What an argument can be: a text, whole numbers (`range`), real numbers, or one of a few values, which a mapping gives
#: names.
Choices = Text | range | Numbers | Powers | Sequence | Mapping[str, object]


def make_control(
    name: str, value: object, choices: Choices, label: str
) -> ipywidgets.ValueWidget | None:
    """Return a text box, a slider or a menu; None where there is nothing to choose.

    Raises:
        ValueError: for a value that is not among the choices.
    """
    if isinstance(choices, Text):
        if value is None:
            return None
        choices.require(value)
        return ipywidgets.Text(value=value, description=label)
    values = list(choices.values()) if isinstance(choices, Mapping) else choices
    _require_among(values, name, value)
    if isinstance(choices, Numbers | Powers):
        return choices.control(value, description=label)
    if len(values) < 2:
        return None
    if isinstance(choices, range):
        first, *_, last = choices
        return ipywidgets.IntSlider(
            value, min=first, max=last, step=choices.step, description=label
        )
    if isinstance(values[0], str):
        return ipywidgets.Dropdown(value=value, options=list(values), description=label)
    value = values[list(values).index(value)]  # 2, not 2.0
    names = choices if isinstance(choices, Mapping) else [f"{one:g}" for one in values]
    return ipywidgets.SelectionSlider(
        value=value, options=list(zip(names, values, strict=True)), description=label
    )


def _require_among(values: range | Numbers | Powers | Sequence, name: str, value: object) -> None:
    if isinstance(values, Numbers | Powers):
        known = isinstance(value, Real) and values.first <= value <= values.last
        said = f"{values.first:g} to {values.last:g}"
    elif isinstance(values, range):
        known = isinstance(value, Integral) and value in values
        steps = f" in steps of {values.step}" * (values.step > 1)
        said = f"a whole number from {values[0]} to {values[-1]}{steps}"
    elif isinstance(values[0], str):
        return require_one_of(values, **{name: value})
    else:
        known, said = value in values, "one of " + ", ".join(f"{one:g}" for one in values)
    if isinstance(value, bool) or not known:
        raise ValueError(f"{name}={value!r} must be {said}")


def whole_steps(number: float, step: float, towards: Callable[[float], int] = round) -> float:
    """Round to a whole number of steps, as the browser does with the value of a slider."""
    return round(towards(round(number / step, 6)) * step, 10)


def round_step(span: float, steps: int = 200) -> float:
    """Return a slider step of 1, 2 or 5 times a power of ten, such that `span` is about `steps` steps."""
    exponent = math.floor(math.log10(span / steps))
    leading = span / steps / 10**exponent
    return min((1, 2, 5, 10), key=lambda candidate: abs(candidate - leading)) * 10**exponent
