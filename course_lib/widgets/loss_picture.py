"""A live plot of the training loss."""

import time

import ipywidgets
import matplotlib
import numpy as np
from IPython.display import display

from course_lib import messages
from course_lib.plots import LinesPanel, figure
from course_lib.plots.style import style
from course_lib.train import Progress
from course_lib.widgets.live_figure import LiveFigure
from course_lib.widgets.picture import Picture
from course_lib.widgets.table import curve_table

_PAUSE = 0.5  # seconds between two updates


class _Live(ipywidgets.VBox):
    """Shown only during training; afterwards a static picture replaces it."""

    def __repr__(self) -> str:
        return messages.TRAINING_HERE


class LossPicture:
    """Draw the loss while a model is trained: `fit(…, callback=LossPicture())`.

    During training, the curve grows in place. At the end, a static picture with exact values replaces it. Each
    training needs a new LossPicture.
    """

    def __init__(self) -> None:
        self._curve, self._box, self._drawn = None, None, 0.0

    def __call__(self, progress: Progress) -> None:
        """Record a step; redraw twice a second, and at the end.

        Raises:
            ValueError: when it is used for a second training.
        """
        if self._curve is None:
            self._begin(progress)
        elif self._box is None:
            raise ValueError(messages.LOSS_PICTURE_USED)
        self._curve[progress.step - 1] = progress.loss
        now = time.monotonic()
        if progress.stopped is not None:
            self._end(progress)
        elif now - self._drawn > _PAUSE:
            self._drawn = now
            self._panel.update(loss=self._curve)
            left = progress.seconds / progress.step * (progress.steps - progress.step)
            said = {"step": progress.step, "steps": progress.steps, "left": f"{left:.0f}"}
            self._words.value = messages.TRAINING.format(**said, loss=f"{progress.loss:.3g}")
            self._picture.refresh(self._title)

    def _begin(self, progress: Progress) -> None:
        self._curve = np.full(progress.steps, np.nan)
        largest = progress.loss if progress.loss > 0 else 1.0
        self._title = messages.TRAINED.format(steps=progress.steps)
        with matplotlib.rc_context(style()):
            fig, axes = figure(6.4, 2.6)
            axes.set(xlabel="step", ylabel="loss")
            steps, lines = np.arange(1, progress.steps + 1), {"loss": self._curve}
            limits = 1e-5 * largest, 2 * largest  # leaves space for long tick labels
            self._panel = LinesPanel(axes, steps, lines, log_y=True, y_limits=limits)
            axes.set_xlim(0, progress.steps + 1)
        self._picture = Picture(LiveFigure(fig, [self._panel]), self._title, name="loss")
        self._words = ipywidgets.HTML()
        self._box = _Live([self._picture, self._words])
        display(self._box)

    def _end(self, progress: Progress) -> None:
        self._box.close()
        self._box = None
        self._panel.update(loss=self._curve)
        losses = self._curve[: progress.step]
        if (losses > 0).any():  # the axis is logarithmic
            drawn = losses[losses > 0]
            self._panel.axes.set_ylim(0.8 * drawn.min(), 1.25 * drawn.max())
        self._picture.figure.redraw_background()
        summary = self._title
        if progress.stopped != "steps":
            summary = messages.TRAINED_UNTIL.format(stopped=progress.stopped)
        display(Picture(self._picture.figure, f"{summary}.", name="loss", approximate=True))
        if progress.stopped == "steps":  # otherwise the number of steps differs between machines
            steps = np.arange(1, len(losses) + 1)
            labels = {"x_label": "step", "y_label": "loss"}
            display(curve_table(steps, {"loss": losses}, **labels, approximate=True))
