"""The explorer of notebook 03: type a date, and step through what a model writes."""

from datetime import date
from functools import lru_cache

import ipywidgets
import matplotlib
import numpy as np

from course_lib import texts
from course_lib.inputs import require_whole
from course_lib.plots import AlignmentPanel, StemsPanel, figure
from course_lib.plots.alignment import visible
from course_lib.plots.style import STYLE
from course_lib.translator import Translation, Translator
from course_lib.widgets.explorer import Explorer, learned
from course_lib.widgets.live_figure import LiveFigure

_MOST_SOURCE, _MOST_TARGET = 40, 11


def date_explorer(
    translator: Translator,
    text: str = "Tuesday, March 5, 2024",
    *,
    step: int = 1,
    measured: bool = False,
) -> Explorer:
    """Type a date; the model writes it in ISO 8601. Step through the output, and see where each step looks.

    Args:
        translator: of a model with attention that writes at most 11 tokens.
        text: the date to start with, at most 40 characters.
        step: which written character to look at, from 1.
        measured: as for `Explorer`; true for a model that was trained in the notebook.

    Raises:
        ValueError: for a model without attention, an empty or too long text, and characters that the
            model does not know.
    """
    require_whole(step=step)
    if step > _MOST_TARGET:
        raise ValueError(f"step={step} must be at most {_MOST_TARGET}")
    if not isinstance(translator, Translator):
        raise ValueError(
            f"translator is a {type(translator).__name__}; it must be a Translator, e.g. "
            f"Translator(model, source_vocabulary, target_vocabulary, max_length={_MOST_TARGET})"
        )
    if translator(text).weights is None:
        raise ValueError(
            "translator has a model without attention; there are no weights to show, so give one with "
            "a BahdanauDecoder or a LuongDecoder"
        )

    @lru_cache(maxsize=1)  # moving the step does not translate anew; training does
    def translated(text: str, version: int) -> Translation:
        done = translator(text)
        if len(done.target) > _MOST_TARGET:
            raise ValueError(
                texts.WROTE_TOO_MUCH.format(length=len(done.target), most=_MOST_TARGET)
            )
        return done

    with matplotlib.rc_context(STYLE):
        drawn, (left, right) = figure(10.4, 3.2, columns=2, width_ratios=(1.9, 1))
        alignment = AlignmentPanel(left, _MOST_SOURCE, _MOST_TARGET, title="where each step looks")
        stems = StemsPanel(
            right, np.arange(_MOST_SOURCE), key_label="place in the source", title="this step"
        )
        live = LiveFigure(drawn, [alignment, stems])

    def update(text: str, step: int) -> dict[str, str]:
        if len(text) > _MOST_SOURCE:
            raise ValueError(texts.TOO_LONG.format(length=len(text), most=_MOST_SOURCE))
        done = translated(text, learned(translator.model))
        row = min(step, len(done.target)) - 1
        looked = done.weights[row].numpy()
        alignment.update(done.weights, done.source, done.target[:_MOST_TARGET], row)
        stems.update(np.pad(looked, (0, _MOST_SOURCE - len(looked))))
        most = looked.argsort()[::-1][:3]
        return {
            "text": repr(text),
            "written": f"{done.text}, {_meaning(done.text)}",
            "step": f"{row + 1} of {len(done.target)}, writes {visible(done.target[row])}",
            "looks at": ", ".join(f"{visible(text[n])} at {n} ({looked[n]:.2f})" for n in most),
        }

    controls = {
        "text": ipywidgets.Text(value=text, description="date"),
        "step": ipywidgets.IntSlider(value=step, min=1, max=_MOST_TARGET, description="step"),
    }
    return Explorer(
        "From a written date to ISO 8601", controls, live, update, name="dates", measured=measured
    )


def _meaning(iso: str) -> str:
    try:
        return f"{date.fromisoformat(iso):%A}"
    except ValueError:
        return texts.NO_DATE
