"""A matplotlib figure that is drawn once and then only moved."""

import io
from collections.abc import Sequence

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from course_lib.plots.panel import Panel
from course_lib.plots.style import STYLE

#: Pixels drawn per pixel shown: sharp on dense screens, still quick to compress.
SHARPNESS = 1.3


class LiveFigure:
    """Redraw only the panels' moving artists over a kept background (blitting).

    A full draw with axes, ticks and labels takes about ten times as long; it happens once.

    Args:
        figure: with every panel already on it.
        panels: whose artists move.
    """

    def __init__(self, figure: Figure, panels: Sequence[Panel]) -> None:
        self.figure, self.panels = figure, list(panels)
        self.width, self.height = (round(inches * 100) for inches in figure.get_size_inches())
        figure.set_dpi(100 * SHARPNESS)
        self._canvas = FigureCanvasAgg(figure)
        with matplotlib.rc_context(STYLE):
            figure.draw_without_rendering()  # place the Axes once; from here on they stay
        figure.set_layout_engine("none")
        self._artists = [artist for panel in self.panels for artist in panel.artists]
        for panel in self.panels:
            for artist in [*panel.artists, *panel.seldom]:
                artist.set_animated(True)
        self._background = None
        self._settled: list[
            tuple
        ] = []  # panel by panel: its seldom state, and the canvas with it drawn

    def redraw_background(self) -> None:
        """Draw everything anew at the next `png()`; needed after limits, ticks or labels changed."""
        self._background = None

    def png(self) -> bytes:
        """Draw the present state, as the bytes of a PNG that is quick to make."""
        return _encoded(self._pixels(), compress_level=1)

    def small_png(self) -> bytes:
        """Draw the present state with 256 colours: a quarter of the bytes, for files that are kept."""
        return _encoded(self._pixels().quantize(256, dither=Image.Dither.NONE), optimize=True)

    def _pixels(self) -> Image.Image:
        if self._background is None:
            with matplotlib.rc_context(STYLE):
                self._canvas.draw()
            self._background = self._canvas.copy_from_bbox(self.figure.bbox)
            self._settled = []
        self._over(self._settle(), self._artists, keep=False)
        return Image.fromarray(np.asarray(self._canvas.buffer_rgba())).convert("RGB")

    def _settle(self):
        """Draw the seldom changing artists, from the first panel on whose state changed."""
        below = self._background
        for number, panel in enumerate(self.panels):
            state = panel.seldom_state()
            if number == len(self._settled) or self._settled[number][0] != state:
                del self._settled[number:]
                self._settled.append((state, self._over(below, panel.seldom)))
            below = self._settled[number][1]
        return below

    def _over(self, background, artists: list, *, keep: bool = True):
        """Draw artists over a kept background; return the result, to be kept in turn."""
        self._canvas.restore_region(background)
        for artist in artists:
            if artist.axes.get_visible():
                artist.axes.draw_artist(artist)
        return self._canvas.copy_from_bbox(self.figure.bbox) if keep and artists else background

    def svg(self, title: str = "") -> bytes:
        """Draw the present state, as the bytes of an SVG with `title` inside; the same state, the same bytes."""
        file = io.BytesIO()
        with matplotlib.rc_context(STYLE):
            self.figure.savefig(
                file, format="svg", metadata={"Date": None, "Creator": None, "Title": title}
            )
        self._background = None
        return file.getvalue()

    def describe(self) -> str:
        """Say in numbers what every visible panel shows now, a line each."""
        return "\n".join(panel.describe() for panel in self.panels if panel.axes.get_visible())

    def hover(self) -> list[dict]:
        """Collect the exact values of all panels."""
        return [region for panel in self.panels if (region := panel.hover()) is not None]


def _encoded(pixels: Image.Image, **options) -> bytes:
    file = io.BytesIO()
    pixels.save(file, "PNG", **options)
    return file.getvalue()
