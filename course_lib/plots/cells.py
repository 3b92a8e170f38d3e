"""A map of numbers whose cells are coloured and enlarged straight to pixels."""

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import Colormap
from matplotlib.image import AxesImage
from matplotlib.transforms import IdentityTransform
from numpy.typing import ArrayLike

_WHITE = np.full((1, 4), 255, dtype=np.uint8)


class Cells(AxesImage):
    """Numbers from 0 to 1 in the colours of a map; what is below 0 stays white.

    `imshow` resamples the numbers, then colours every pixel. This colours every cell and repeats it: the
    same picture in a quarter of the time.

    Args:
        axes: where to draw.
        extent: left, right, bottom, top in the data's units; row 0 is at the top.
        colours: a matplotlib colour map, or its name.
    """

    def __init__(
        self,
        axes: Axes,
        extent: tuple[float, float, float, float],
        colours: Colormap | str = "viridis",
    ) -> None:
        super().__init__(axes, extent=extent, origin="upper", interpolation="nearest")
        ramp = colormaps.get_cmap(colours)(np.arange(256))
        self._colours = np.concatenate([(255 * ramp).round().astype(np.uint8), _WHITE])
        self.show(np.zeros((1, 1)))
        axes.add_image(self)

    def show(self, shares: ArrayLike) -> None:
        """Show other numbers, shape (rows, columns)."""
        shares = np.asarray(shares, dtype=float)
        self.set_data(shares)
        self._levels = np.where(shares < 0, 256, np.clip(255 * shares, 0, 255).round()).astype(int)

    def make_image(self, renderer, magnification=1.0, unsampled=False):
        """What matplotlib asks for: pixels from the bottom up, and where they go."""
        box = self.get_window_extent(renderer)
        left, bottom, right, top = (round(edge * magnification) for edge in box.extents)
        rows, columns = (
            ((np.arange(pixels) + 0.5) * cells / pixels).astype(int)
            for cells, pixels in zip(self._levels.shape, (top - bottom, right - left), strict=True)
        )
        pixels = self._colours[self._levels[np.ix_(rows[::-1], columns)]]
        return pixels, left / magnification, bottom / magnification, IdentityTransform()
