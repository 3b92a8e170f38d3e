"""A matplotlib figure that is drawn once and then updated by blitting."""

import io
import struct
import zlib
from collections.abc import Sequence

import matplotlib
import numpy as np
from jaxtyping import UInt8
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from PIL import Image, ImageDraw, ImageFont

from course_lib.plots.panel import Panel, rounded
from course_lib.plots.style import COLOURS, STYLE

#: Pixels drawn per pixel on screen, in files and while a picture moves: fast to draw and to compress.
SHARPNESS = 1.3
#: Height of the line below a picture, in pixels on screen.
LINE = 22


class LiveFigure:
    """Redraw only the artists that change, over a cached background (blitting).

    A full draw with axes, ticks and labels takes about ten times as long and happens once. The static
    artists of each panel are cached as further layers of the background, until their state changes.

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
        with matplotlib.rc_context(STYLE):
            figure.draw_without_rendering()  # lay out the Axes once; after this they keep their positions
        figure.set_layout_engine("none")
        self.cuts = _cuts(figure)
        self._maps = [one for kind in (AxesImage, QuadMesh) for one in figure.findobj(kind)]
        self._artists = [artist for panel in self.panels for artist in panel.artists]
        for panel in self.panels:
            for artist in [*panel.artists, *panel.static_artists]:
                artist.set_animated(True)
        #: density → the background, and for each panel its static state and the background with its static artists
        self._cached: dict[float, tuple[object, list[tuple]]] = {}
        self._background, self._layers = None, []

    def redraw_background(self) -> None:
        """Redraw everything at the next `png()`; needed after limits, ticks or labels changed."""
        self._cached.clear()
        self._background, self._layers = None, []

    def _set_density(self, density: float) -> None:
        """Draw with so many pixels per pixel on screen from now on."""
        before = self.figure.get_dpi() / 100
        if density != before:
            self._cached[before] = self._background, self._layers
            self.figure.set_dpi(100 * density)
            self._background, self._layers = self._cached.pop(density, (None, []))

    def png(self, density: float = SHARPNESS) -> bytes:
        """Draw the current state; return a PNG, compressed for speed."""
        return _png(self._drawn(density))

    def small_png(self, line: str = "") -> bytes:
        """Draw the same with 256 colours, and a line of text below it; return a PNG of a quarter of the size."""
        image = self._drawn(SHARPNESS)
        if line:
            image = _with_line(image, line)
        image = image.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
        file = io.BytesIO()
        image.save(file, "PNG", optimize=True)
        return file.getvalue()

    def _drawn(self, density: float) -> Image.Image:
        self._set_density(density)
        return Image.fromarray(self._pixels()).convert("RGB")

    def _pixels(self) -> UInt8[np.ndarray, "height width 4"]:
        if self._background is None:
            with matplotlib.rc_context(STYLE):
                self._canvas.draw()
            self._background, self._layers = self._canvas.copy_from_bbox(self.figure.bbox), []
        self._over(self._static_background(), self._artists, cache=False)
        return np.asarray(self._canvas.buffer_rgba())

    def _static_background(self):
        """Draw the static artists, starting with the first panel whose state changed."""
        below = self._background
        for number, panel in enumerate(self.panels):
            state = panel.static_state()
            if number == len(self._layers) or self._layers[number][0] != state:
                del self._layers[number:]
                self._layers.append((state, self._over(below, panel.static_artists)))
            below = self._layers[number][1]
        return below

    def _over(self, background, artists: list, *, cache: bool = True):
        """Draw artists over a cached background; return the result, to be cached in turn."""
        self._canvas.restore_region(background)
        for artist in artists:
            if artist.axes.get_visible():
                artist.axes.draw_artist(artist)
        return self._canvas.copy_from_bbox(self.figure.bbox) if cache and artists else background

    def svg(self, title: str = "") -> bytes:
        """Draw the current state; return an SVG with `title` inside. Equal states give equal bytes."""
        file = io.BytesIO()
        with matplotlib.rc_context(STYLE):
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
        shown = [one for one in self._maps if one.axes.get_visible()]
        extents = [
            one.get_window_extent().transformed(self.figure.transFigure.inverted()) for one in shown
        ]
        return [rounded([one.x0, 1 - one.y1, one.x1, 1 - one.y0]) for one in extents]

    def hover(self) -> list[dict]:
        """Collect the exact values of all panels."""
        return [region for panel in self.panels for region in panel.regions()]


def _png(image: Image.Image) -> bytes:
    """Write a PNG whose rows are not filtered: of flat colours as small as Pillow's, in a third of the time."""
    rows = np.zeros((image.height, 1 + 3 * image.width), np.uint8)  # 0: not filtered
    rows[:, 1:] = np.asarray(image).reshape(image.height, -1)
    header = struct.pack(">2I5B", *image.size, 8, 2, 0, 0, 0)  # 8 bits, red, green and blue
    chunks = (b"IHDR", header), (b"IDAT", zlib.compress(rows, 1)), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in chunks
    )


def _with_line(image: Image.Image, line: str) -> Image.Image:
    """Write a line below a picture, as picture.js does."""
    higher = Image.new("RGB", (image.width, image.height + round(LINE * SHARPNESS)), "white")
    higher.paste(image)
    file = matplotlib.get_data_path() + "/fonts/ttf/DejaVuSans.ttf"
    place, font = (
        (10, image.height + LINE / 2 * SHARPNESS),
        ImageFont.truetype(file, 12 * SHARPNESS),
    )
    ImageDraw.Draw(higher).text(place, line, COLOURS["main"], font, anchor="lm")
    return higher


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
