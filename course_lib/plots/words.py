"""Many short words in one drawing."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.font_manager import FontProperties
from matplotlib.path import Path
from matplotlib.textpath import TextToPath
from matplotlib.transforms import IdentityTransform
from numpy.typing import ArrayLike

from course_lib.plots.style import COLOURS

_FONT = FontProperties(family="DejaVu Sans")
_SIZE = 100  # points at which outlines are kept
_MOST_KEPT = 4096
_outlines: dict[str, tuple[Path, float]] = {}
_places: dict[tuple[str, float, float], Path] = {}  # outlines in their size, moved to their place


class Words(PathCollection):
    """Words as outlines, all drawn at once: a fifth of the time that as many texts of matplotlib take.

    Args:
        axes: where to draw, at places in its data.
    """

    def __init__(self, axes: Axes) -> None:
        super().__init__(
            [],
            sizes=[1],  # a point of an outline is a point on paper
            linewidths=0,
            transform=IdentityTransform(),
            offset_transform=axes.transData,
            clip_on=False,
        )
        self.words: list[str] = []
        axes.add_collection(self, autolim=False)

    def show(
        self,
        words: Sequence[str],
        places: ArrayLike,
        *,
        size: ArrayLike = 9,
        colour: str | Sequence[str] = COLOURS["ink"],
        align: ArrayLike = 0.5,
    ) -> None:
        """Show other words, (x, y) being the middle of their height.

        Args:
            words, places: one of each per word.
            size: in points, of all, or of each.
            colour: of all, or of each.
            align: which share of its width lies left of a word's place: 0, ½ or 1; one, or one for each.
        """
        self.words = list(words)
        count = len(self.words)
        sizes, aligns = (np.broadcast_to(one, count) for one in (size, align))
        self.set_paths(
            [
                _placed(word, float(points), float(share))
                for word, points, share in zip(self.words, sizes, aligns, strict=True)
            ]
        )
        self.set_offsets(np.asarray(places, dtype=float).reshape(count, 2))
        self.set_facecolor(colour if isinstance(colour, str) else list(colour))


def width(word: str, size: float) -> float:
    """Return how wide a word is, in points."""
    return _outline(word)[1] * size / _SIZE


def _placed(word: str, size: float, share: float) -> Path:
    if (word, size, share) not in _places:
        path, across = _outline(word)
        if len(_places) >= _MOST_KEPT:
            _places.clear()
        # the middle of a line of text: half the height of a capital letter above its foot
        moved = (path.vertices - (share * across, 0.36 * _SIZE)) * (size / _SIZE)
        _places[word, size, share] = Path(moved, path.codes)
    return _places[word, size, share]


def _outline(word: str) -> tuple[Path, float]:
    """The outline of a word, and its width, at `_SIZE` points."""
    if word not in _outlines:
        if len(_outlines) >= _MOST_KEPT:
            _outlines.clear()
        maker = TextToPath()
        scale = _SIZE / maker.FONT_SCALE
        if word.strip():
            vertices, codes = maker.get_text_path(_FONT, word, ismath=False)
            path = Path(np.asarray(vertices) * scale, codes)
        else:
            path = Path(np.zeros((1, 2)))
        across, _, _ = maker.get_text_width_height_descent(word, _FONT, ismath=False)
        _outlines[word] = path, across * _SIZE / _FONT.get_size_in_points()
    return _outlines[word]
