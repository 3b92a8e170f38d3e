"""Many short texts in one artist."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.path import Path
from matplotlib.textpath import TextToPath
from matplotlib.transforms import IdentityTransform, Transform
from numpy.typing import ArrayLike

from course_lib.plots.style import COLOURS, families

_SIZE = 100  # points at which outlines are cached
_DIGITS = frozenset("0123456789,")  # in the first font no pair of them is kerned
_MIDDLE, _TOP = 0.36, 0.72  # of a capital letter, above the baseline, per size


class Words(PathCollection):
    """Texts as outlines in one collection, drawn in a fraction of the time that as many matplotlib texts take.

    A character that no font has is drawn as □; `rcParams["font.family"]` may name fonts for other scripts.

    Args:
        axes: where to draw.
        coordinates: of the positions; the data's where left out.
    """

    def __init__(self, axes: Axes, coordinates: Transform | None = None) -> None:
        super().__init__(
            [],
            sizes=[1],  # a point of an outline is a point on paper
            linewidths=0,
            transform=IdentityTransform(),
            offset_transform=coordinates or axes.transData,
            clip_on=False,
            zorder=3,  # as that of matplotlib's texts
        )
        self.words: list[str] = []
        axes.add_collection(self, autolim=False)

    def show(
        self,
        words: Sequence[str],
        positions: ArrayLike,
        *,
        size: ArrayLike = 9,
        colour: str | Sequence[str] = COLOURS["ink"],
        align: ArrayLike = 0.5,
        rotated: ArrayLike = False,
        hanging: ArrayLike = False,
    ) -> None:
        """Show other words at their position (x, y).

        Args:
            words, positions: one of each per word.
            size: in points, for all or for each.
            colour: for all or for each.
            align: the share of a word's width that lies before its position: 0, ½ or 1; for all or for each.
            rotated: whether it reads upwards; for all or for each.
            hanging: whether it hangs from its position instead of being vertically centred there; for all or
                for each.
        """
        self.words = [drawable(word) for word in words]
        count = len(self.words)
        options = [np.broadcast_to(one, count).tolist() for one in (size, align, rotated, hanging)]
        options.append([families()] * count)
        self.set_paths([_aligned_outline(*each) for each in zip(self.words, *options, strict=True)])
        self.set_offsets(np.asarray(positions, dtype=float).reshape(count, 2))
        self.set_facecolor(colour if isinstance(colour, str) else list(colour))


def drawable(text: str) -> str:
    """Replace characters that no font has, which would be drawn as warnings, by □."""
    return text if text.isascii() and text.isprintable() else _drawable(text, families())


def width(word: str, size: float) -> float:
    """Return how wide a word is, in points."""
    return _outline(drawable(word), families())[1] * size / _SIZE


def fitted(word: str, size: float, room: float) -> str:
    """Cut a word to so many points, with "…" at its end."""
    if (across := width(word, size)) <= room:
        return word
    kept = word[: int(1.5 * len(word) * room / across)]  # letters are not equally wide
    while kept and width(f"{kept}…", size) > room:
        kept = kept[:-1]
    return f"{kept}…"


def ink(word: str) -> bytes:
    """Return what can be seen of a word, whatever its characters are and wherever it begins."""
    vertices = _outline(drawable(word), families())[0].vertices
    return np.round(vertices - [vertices[:, 0].min(), 0], 1).tobytes()


@lru_cache(4096)
def _drawable(text: str, fonts: tuple[str, ...]) -> str:
    return "".join(one if ord(one) in _characters(fonts) else "□" for one in text)


@lru_cache(16)
def _characters(fonts: tuple[str, ...]) -> frozenset[int]:
    files = (findfont(FontProperties(family=font)) for font in fonts)
    return frozenset().union(*(get_font(file).get_charmap() for file in files))


@lru_cache(4096)
def _aligned_outline(
    word: str, size: float, share: float, rotated: bool, hanging: bool, fonts: tuple[str, ...]
) -> Path:
    path, across = _outline(word, fonts)
    above = (_TOP if hanging else _MIDDLE) * _SIZE
    moved = (path.vertices - (share * across, above)) * (size / _SIZE)
    return Path(moved[:, ::-1] * (-1, 1) if rotated else moved, path.codes)


@lru_cache(4096)
def _outline(word: str, fonts: tuple[str, ...]) -> tuple[Path, float]:
    """The outline of a word and its width, at `_SIZE` points; digits, of which there are many, stand side by side."""
    if len(word) > 1 and _DIGITS.issuperset(word):
        paths, widths = zip(*(_outline(digit, fonts) for digit in word), strict=True)
        starts = np.cumsum([0, *widths])
        placed = [path.vertices + (x, 0) for path, x in zip(paths, starts, strict=False)]
        codes = np.concatenate([path.codes for path in paths])
        return Path(np.concatenate(placed), codes), starts[-1]
    maker, path, font = TextToPath(), Path(np.zeros((1, 2))), FontProperties(family=fonts)
    vertices, codes = maker.get_text_path(font, word, ismath=False)
    if len(vertices):  # none of white space
        path = Path(np.asarray(vertices) * (_SIZE / maker.FONT_SCALE), codes)
    across, _, _ = maker.get_text_width_height_descent(word, font, ismath=False)
    return path, across * _SIZE / font.get_size_in_points()
