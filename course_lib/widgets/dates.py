"""The explorer of notebook 03: type a date, and step through the output of a model."""

from datetime import date

import numpy as np

from course_lib import messages
from course_lib.plots import HeadlinePanel, MapPanel, StemsPanel
from course_lib.plots.style import figure_of_three
from course_lib.train.translator import Translation, Translator
from course_lib.widgets.controls import Text
from course_lib.widgets.explorer import View, explorer, largest_weights, remembered

_MOST_SOURCE, _MOST_TARGET = 40, 11


@explorer
def date_explorer(
    translator: Translator,
    text: str = "Tuesday, March 5, 2024",
    *,
    step: int = 1,
    approximate: bool = False,
) -> View:
    """Type a date; the model generates its ISO 8601 form. Step through the output and its attention weights.

    Args:
        translator: of a model with attention that generates at most 11 tokens.
        text: initial date, at most 40 characters.
        step: which generated character to show, from 1.
        approximate: as for `Explorer`; true for a model that was trained in the notebook.

    Raises:
        ValueError: for a model without attention, and a text that is empty, too long or holds unknown characters.
    """
    if translator(text).weights is None:
        raise ValueError("translator has a model without attention; there are no weights to show")

    @remembered(translator.model)  # moving the step does not translate again
    def translated(text: str) -> Translation:
        done = translator(text)
        if len(done.target) > _MOST_TARGET:
            raise ValueError(
                messages.WROTE_TOO_MUCH.format(length=len(done.target), most=_MOST_TARGET)
            )
        return done

    size = {"width_ratios": (1.9, 1), "height_ratios": (1, 6)}
    above, left, right = figure_of_three(10.4, 3.8, **size)
    above.set(title="output")
    left.set(title="attention weights of each step", xlabel="source", ylabel="target")
    right.set(title="weights of this step", xlabel="source position")
    alignment = MapPanel(left, name="weight", space=(0.06, 0.12, 0.1), chooses=("step", None))
    stems = StemsPanel(right, np.arange(_MOST_SOURCE), fewer=True)
    headline = HeadlinePanel(above)

    def limits(text: str, **_) -> dict[str, int]:
        return {"step": len(translated(text).target)}

    def update(text: str, step: int) -> dict[str, str]:
        done = translated(text)
        row = min(step, len(done.target)) - 1
        weights = done.weights[row]
        rows, columns = ([visible(one) for one in side] for side in (done.target, done.source))
        alignment.update(done.weights, rows, columns, cell=(row, None), first=(1, 0))
        stems.update(weights)
        headline.update(done.text)
        try:
            day = f"{date.fromisoformat(done.text):%A}"
        except ValueError:
            day = messages.NO_DATE
        names = [f"{one} at {n}" for n, one in enumerate(columns)]
        return {
            "text": repr(text),
            "output": f"{done.text}, {day}",
            "step": f"{row + 1} of {len(done.target)}, generates {visible(done.target[row])}",
            "attends to": largest_weights(weights, names),
        }

    title = "From a written date to ISO 8601"
    rule = Text(messages.RULE_OF_DATES.format(most=_MOST_SOURCE), most=_MOST_SOURCE)
    controls, labels = {"text": rule, "step": range(1, _MOST_TARGET + 1)}, {"text": "date"}
    panels = [alignment, stems, headline]
    return View(
        title, panels, update, controls, "dates", labels, approximate=approximate, limits=limits
    )


def visible(token: str) -> str:
    """Return a visible form of a token: ␣ for a space, ∎ for the end token."""
    return {" ": "␣", "<eos>": "∎"}.get(token, token)
