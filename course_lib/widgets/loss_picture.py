"""A training to watch: its losses, and one answer of the model that gets better."""

import math
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import ipywidgets
import matplotlib
import numpy as np
from IPython import get_ipython
from IPython.display import display

from course_lib import messages
from course_lib.plots import LinesPanel, figure, legend_above
from course_lib.plots.style import style
from course_lib.validation import require_whole
from course_lib.widgets.live_figure import LiveFigure
from course_lib.widgets.picture import Picture
from course_lib.widgets.table import Table, curve_table

#: At least so many seconds lie between two pictures, and so many times the seconds that the last one took.
_PAUSE, _SHARE = 0.5, 100
_FIRST_ANSWER = 16  # then after twice as many steps each time, and at the end

Loss = TypeVar("Loss", float, Mapping[str, float])


def watch(
    losses: Iterable[Loss], steps: int | None = None, *, answer: Callable[[], str] | None = None
) -> Iterator[Loss]:
    """Draw losses as they come, and hand them on: ``for loss in watch(train(model), steps=2000): …``.

    As with tqdm, the training is what makes the losses, step by step: a generator that yields the loss of each. The
    stop button (Ctrl-C) ends the loop after the step that runs, so what was trained is kept and the next line runs;
    pressed twice, it stops at once. Where there is no notebook, lines are printed.

    Args:
        losses: of each step a number, or a mapping name → number with the same names at every step.
        steps: how many there will be; the length of `losses` where it has one.
        answer: called after 16 steps, 32, 64, … and at the end; returns what the model answers then, e.g. the translation
            of one fixed sentence. It may leave the model in evaluation mode: call `model.train()` at every step.
    """
    if steps is None and hasattr(losses, "__len__"):
        steps = len(losses)
    return _watched(losses, LossPicture(steps, answer=answer))


def _watched(losses: Iterable[Loss], picture: "LossPicture") -> Iterator[Loss]:
    with _stop_button() as pressed, picture:
        for loss in losses:
            picture.add(loss)
            yield loss
            if pressed:
                return


@contextmanager
def _stop_button() -> Iterator[list]:
    """Hand out a list that the first interrupt fills; a second one is a KeyboardInterrupt."""
    pressed: list[int] = []

    def note(number: int, frame: object) -> None:
        if pressed:
            raise KeyboardInterrupt
        pressed.append(number)

    try:
        before = signal.signal(signal.SIGINT, note)
    except ValueError:  # signals reach the main thread only
        yield pressed
        return
    try:
        yield pressed
    finally:
        with suppress(ValueError):
            signal.signal(signal.SIGINT, before)


class LossPicture:
    """What `watch` draws, for a training that calls back: ``fit(…, callback=LossPicture())``.

    Around one that does not say when it ends, use it with ``with``: ``with LossPicture(steps) as picture:
    run.train(picture)``. The curve grows in place; at the end, a picture with exact values and a table replace it.
    Each training needs a new LossPicture.

    Attributes:
        losses: name → one loss per step.
        answers: step → what the model answered after it.

    Args:
        steps, answer: as for `watch`.
    """

    def __init__(
        self, steps: int | None = None, *, answer: Callable[[], str] | None = None
    ) -> None:
        if steps is not None:
            require_whole(steps=steps)
        self.steps, self.losses, self.answers = steps, {}, {}
        self._answer, self._view, self._closed = answer, None, False

    def __call__(self, progress: Any) -> None:
        """Take what `fit` or a run of `course_lib.train` reports after a step."""
        if self._closed:
            raise ValueError(messages.LOSS_PICTURE_USED)
        self.steps = self.steps or getattr(progress, "steps", None)
        if not self.losses:  # a run that is resumed
            self.losses = {"loss": [math.nan] * (progress.step - 1)}
        if progress.step > self._step:
            self.add(progress.loss)
        if getattr(progress, "stopped", None):
            self.close()

    def add(self, loss: float | Mapping[str, float]) -> None:
        """Record the loss of a step, or several named ones; draw them if the last picture is long enough ago.

        Raises:
            ValueError: for other names than at the first step, and after the end.
        """
        if self._closed:
            raise ValueError(messages.LOSS_PICTURE_USED)
        named = loss if isinstance(loss, Mapping) else {"loss": loss}
        self.losses = self.losses or {name: [] for name in named}
        if named.keys() != self.losses.keys():
            raise ValueError(
                f"step {self._step + 1} has the losses {', '.join(named)}, the first had {', '.join(self.losses)}"
            )
        for name, value in named.items():
            self.losses[name].append(float(value))
        if self._view is None:
            kernel = getattr(get_ipython(), "kernel", None)
            self._view = _Lines(self) if kernel is None else _Curves(self)
        doubled = self._step & (self._step - 1) == 0 and self._step >= _FIRST_ANSWER
        if doubled:
            self._ask()
        self._view.step(doubled)

    def close(self) -> None:
        """Show the last state; a second call does nothing."""
        if self._closed or self._view is None:
            return
        self._closed = True
        self._ask()
        self._view.end()

    def __enter__(self) -> "LossPicture":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _step(self) -> int:
        return max(map(len, self.losses.values()), default=0)

    def _ask(self) -> None:
        if self._answer is not None and self._step not in self.answers:
            self.answers[self._step] = str(self._answer()) or "–"

    def _title(self, ended: bool = True) -> str:
        if self.steps is None:
            return messages.TRAINED_FREELY
        early = ended and self._step < self.steps
        said = messages.TRAINED_UNTIL if early else messages.TRAINED
        return said.format(step=self._step, steps=self.steps)

    def _table(self) -> Table:
        """The answers, each after twice as many steps as the one before."""
        return Table(
            messages.ANSWERS,
            [*self.answers.items()],
            messages.ANSWERED,
            generated=messages.ANSWERS[1:],
        )


class _Lines:
    """What is printed where there is no notebook."""

    def __init__(self, picture: LossPicture) -> None:
        self.picture, self.started = picture, time.perf_counter()

    def step(self, doubled: bool) -> None:
        if doubled:
            print(self.line(), flush=True)

    def end(self) -> None:
        print(self.line(), flush=True)

    def line(self) -> str:
        """Say where the training is: "step 512 of 2,000, loss 1.21, 20 s left: ein Hund ."."""
        one, step = self.picture, self.picture._step
        last = ", ".join(f"{name} {values[-1]:.3g}" for name, values in one.losses.items())
        said = messages.TRAINING_FREELY.format(step=step, losses=last)
        if one.steps is not None:
            left = (time.perf_counter() - self.started) / step * max(0, one.steps - step)
            said = messages.TRAINING.format(step=step, steps=one.steps, losses=last, left=left)
        return f"{said}: {one.answers[step]}" if step in one.answers else said


class _Box(ipywidgets.VBox):
    """Holds the picture that grows; its text is that of the still one, with which tests compare a notebook."""

    said = ""

    def __repr__(self) -> str:
        return self.said


class _Curves(_Lines):
    """The picture in a notebook: redrawn now and then, and replaced by a still one at the end."""

    def __init__(self, picture: LossPicture) -> None:
        super().__init__(picture)
        self.length = picture.steps or 4 * _FIRST_ANSWER
        first = max((values[0] for values in picture.losses.values()), default=1.0)
        first = first if 0 < first < np.inf else 1.0
        with matplotlib.rc_context(style()):
            drawn, axes = figure(6.4, 2.6)
            axes.set(xlabel="step", ylabel="loss")
            x, limits = self._x(), (1e-5 * first, 2 * first)  # leaves space for long tick labels
            self.panel = LinesPanel(axes, x, self._curves(), log_y=True, y_limits=limits)
            axes.set_xlim(0, self.length + 1)
            if len(picture.losses) > 1:
                legend_above(axes)
        self.figure = LiveFigure(drawn, [self.panel])
        axes.set_ylim(0.5 * first, 1.25 * first)
        title = f"{picture._title(ended=False)}."
        self.picture_shown = Picture(self.figure, title, name="loss", approximate=True)
        self.words = ipywidgets.HTML()
        self.box = _Box([self.picture_shown, self.words])
        self.box.said = title
        self.picture_shown.shown_in = self.box.model_id  # a file saved meanwhile has it as a still
        self.handle = display(self.box, display_id=True)
        self.next = time.perf_counter() + _PAUSE

    def _x(self) -> np.ndarray:
        return np.arange(1, self.length + 1)

    def _curves(self) -> dict[str, np.ndarray]:
        """The losses, with NaN for the steps that are still to come and for what a logarithmic axis cannot show."""
        curves = {name: np.full(self.length, np.nan) for name in self.picture.losses}
        for name, values in self.picture.losses.items():
            known = np.array(values)
            curves[name][: len(values)] = np.where(known > 0, known, np.nan)
        return curves

    def step(self, doubled: bool) -> None:
        now = time.perf_counter()
        if now < self.next and not (doubled and self.picture.answers):
            return
        self._draw()
        self.words.value = f"<p>{self.line()}</p>" + self._answers()
        self.picture_shown.refresh(self.box.said)
        after = time.perf_counter()
        self.next = after + max(_PAUSE, _SHARE * (after - now))

    def _answers(self) -> str:
        return self.picture._table()._repr_html_() if self.picture.answers else ""

    def _draw(self, *, fit: bool = False) -> None:
        """Move the curves; change the limits of the axes where the curves leave them, or to `fit` them."""
        axes, step, length = self.panel.axes, self.picture._step, self.length
        while step > self.length:
            self.length *= 2
        self.length = max(2, step) if fit else self.length
        curves = self._curves()
        self.panel.update(x=self._x(), **curves)
        axes.set_xlim(0, self.length + 1)
        shown = np.concatenate([*curves.values()])
        shown = shown[np.isfinite(shown)]
        low, high = (shown.min(), shown.max()) if shown.size else axes.get_ylim()
        bottom, top = axes.get_ylim()
        if fit or low < bottom or high > top:  # live, there is room for what comes
            axes.set_ylim((0.8 if fit else 0.5) * low, 1.25 * high)
        if axes.get_ylim() != (bottom, top) or self.length != length:
            self.figure.redraw_background()

    def end(self) -> None:
        self._draw(fit=True)
        title = f"{self.picture._title()}."
        still = Picture(self.figure, title, name="loss", approximate=True)
        # The page drops what grew; closing it, too, would take its node away twice.
        self.handle.update(still)
        labels = {"x_label": "step", "y_label": "loss", "approximate": True}
        display(curve_table(np.arange(1, self.picture._step + 1), self.picture.losses, **labels))
        if self.picture.answers:
            display(self.picture._table())
