"""A matplotlib figure that is drawn once and then updated by blitting."""

import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from PIL import Image, ImageDraw, ImageFont

from course_lib.plots.panel import Panel, rounded
from course_lib.plots.style import COLOURS, style

#: Pixels drawn per pixel on screen, in files.
SHARPNESS = 1.3
#: Height of the line below a picture, in pixels on screen.
LINE = 22


class LiveFigure:
    """Redraw only the artists that change, over a kept background (blitting).

    A full draw with axes, ticks and labels takes several times as long and happens once.

    Attributes:
        width, height: in pixels on screen.
        cuts: where a narrow window may break the picture, between columns of panels; fractions of the width.

    Args:
        figure: with every panel already on it.
        panels: the panels whose artists change.
    """

    def __init__(self, figure: Figure, panels: Sequence[Panel]) -> None:
        self.figure, self.panels = figure, list(panels)
        self.width, self.height = (round(inches * 100) for inches in figure.get_size_inches())
        figure.set_dpi(100 * SHARPNESS)
        self._canvas = FigureCanvasAgg(figure)
        with _quiet_drawing():
            figure.draw_without_rendering()  # lay out the Axes once; after this they keep their positions
        figure.set_layout_engine("none")
        self.cuts = _cuts(figure)
        self._maps = [one for kind in (AxesImage, QuadMesh) for one in figure.findobj(kind)]
        self._artists = [artist for panel in self.panels for artist in panel.artists]
        for artist in self._artists:
            artist.set_animated(True)
        self._backgrounds: dict[float, object] = {}  # by density

    def redraw_background(self) -> None:
        """Redraw everything at the next `png()`; needed after limits, ticks or labels changed."""
        self._backgrounds.clear()

    def png(self, density: float = SHARPNESS) -> bytes:
        """Draw the current state with so many pixels per pixel on screen; return a PNG, compressed for speed."""
        file = io.BytesIO()
        self.image(density).save(file, "PNG", compress_level=1)
        return file.getvalue()

    def small_png(self, line: str = "") -> bytes:
        """Draw the same with 256 colours, and a line of text below it; return a PNG of a quarter of the size."""
        image = self.image(SHARPNESS)
        if line:  # as picture.js writes it
            drawn, high = image, round(LINE * SHARPNESS)
            image = Image.new("RGB", (drawn.width, drawn.height + high), "white")
            image.paste(drawn)
            file = matplotlib.get_data_path() + "/fonts/ttf/DejaVuSans.ttf"
            place = 10, drawn.height + LINE / 2 * SHARPNESS
            font = ImageFont.truetype(file, 12 * SHARPNESS)
            ImageDraw.Draw(image).text(place, line, COLOURS["main"], font, anchor="lm")
        image = image.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
        file = io.BytesIO()
        image.save(file, "PNG", optimize=True)
        return file.getvalue()

    def image(self, density: float) -> Image.Image:
        """Draw the current state with so many pixels per pixel on screen."""
        self.figure.set_dpi(100 * density)
        if density not in self._backgrounds:
            with _quiet_drawing():
                self._canvas.draw()
            self._backgrounds[density] = self._canvas.copy_from_bbox(self.figure.bbox)
        self._canvas.restore_region(self._backgrounds[density])
        for artist in self._artists:
            if artist.axes.get_visible():
                artist.axes.draw_artist(artist)
        return Image.fromarray(np.asarray(self._canvas.buffer_rgba())).convert("RGB")

    def svg(self, title: str = "") -> bytes:
        """Draw the current state; return an SVG with `title` inside. Equal states give equal bytes."""
        file = io.BytesIO()
        with _quiet_drawing():
            self.figure.savefig(
                file, format="svg", metadata={"Date": None, "Creator": None, "Title": title}
            )
        self.redraw_background()
        return file.getvalue()

    def describe(self) -> str:
        """Say in numbers what every visible panel shows now, a line each."""
        return "\n".join(panel.describe() for panel in self.panels if panel.axes.get_visible())

    def maps(self) -> list[list[float]]:
        """Return the boxes of colour maps and colour bars, as fractions of the picture: left, top, right, bottom."""
        shown = [one for one in self._maps if one.get_visible() and one.axes.get_visible()]
        pixels = [np.round(one.get_window_extent().extents) for one in shown]  # as they are drawn
        shares = [each / np.tile(self.figure.bbox.size, 2) for each in pixels]
        return [rounded([x0, 1 - y1, x1, 1 - y0]) for x0, y0, x1, y1 in shares]

    def hover(self) -> list[dict]:
        """Collect the exact values of all panels."""
        return [region for panel in self.panels for region in panel.hover()]


@contextmanager
def _quiet_drawing() -> Iterator[None]:
    """Draw in the course's style, without a warning for each character of a title that no font has."""
    with matplotlib.rc_context(style()), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        yield


def _cuts(figure: Figure) -> list[float]:
    """Return the middle of each gap between columns of Axes, as fractions of the width."""
    extents = {axes: axes.get_tightbbox() for axes in figure.axes}
    columns: dict[int, float] = {}  # column → where it starts
    for axes, extent in extents.items():
        if spec := axes.get_subplotspec():
            first = spec.get_topmost_subplotspec().colspan.start
            columns[first] = min(columns.get(first, np.inf), extent.x0)
    cuts = []
    for start in sorted(columns.values())[1:]:
        ends = max(extent.x1 for extent in extents.values() if extent.x0 < start)
        if ends <= start:  # nothing reaches across
            cuts.append(round(float((ends + start) / 2 / figure.bbox.width), 4))
    return cuts
