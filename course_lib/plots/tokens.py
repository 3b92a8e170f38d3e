"""The tokens along a side of a map."""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from course_lib.plots.words import Words

MOST_LABELS = 40  # of a longer sequence, every second, third, … token is written
_LONGEST = {True: 10, False: 15}  # characters of a vertical and of a horizontal token


class TokenLabels(Words):
    """Tokens on one side of a picture, at (n + ½)/length between 0 and 1.

    Args:
        axes: where to draw.
        fixed: the other coordinate, shared by all.
        across: whether the tokens are side by side, rotated by 90° unless they are single characters, or one
            below the other.
        align: of horizontal texts: the share of their width that lies left of `fixed`, 0 or 1.
    """

    def __init__(self, axes: Axes, fixed: float, *, across: bool, align: float = 1) -> None:
        super().__init__(axes)
        self._fixed, self._across, self._align = fixed, across, align

    def update(self, tokens: Sequence[str]) -> None:
        """Write other tokens."""
        named = [number for number, token in enumerate(tokens) if token]
        shown = named[:: math.ceil(len(named) / MOST_LABELS) or 1]
        along = (np.array(shown, dtype=float) + 0.5) / len(tokens)
        other = np.full_like(along, self._fixed)
        words = [shortened(tokens[number], _LONGEST[self._across]) for number in shown]
        # a rotated full stop would be hard to see
        short = [len(word) == 1 or word.isdigit() for word in words]
        upright = np.array([not self._across or one for one in short], dtype=bool)
        self.show(
            words,
            np.column_stack([along, other] if self._across else [other, along]),
            size=float(np.interp(len(named), (28, MOST_LABELS), (9, 6))),
            align=np.where(upright, 0.5, 1) if self._across else self._align,
            rotated=~upright,
            hanging=upright & self._across,
        )


def visible(token: str) -> str:
    """Return the token, ␣ for white space alone."""
    return token if token.strip() or not token else "␣"


def shortened(token: str, most: int) -> str:
    """Cut a token to at most `most` characters; a space alone becomes ␣."""
    token = visible(token)
    return token if len(token) <= most else f"{token[: most - 1]}…"


def numbered(tokens: Sequence[str], side: str = "") -> list[str]:
    """Tokens with their positions, since a token may occur twice.

    One that says its position, as "5 F" does, or "head 0" on the side "head", does not get it again; a space alone
    becomes ␣.
    """
    names = []
    for position, token in enumerate(tokens):
        own = token.removeprefix(f"{side} ")
        says = own.startswith(f"{position} ") or (own != token and own == str(position))
        names.append(own if says else f"{position} {visible(token)}")
    return names


def pooled(weights: np.ndarray, most: int) -> np.ndarray:
    """Max-pool to at most `most` rows and columns."""
    for axis in (0, 1):
        if weights.shape[axis] > most:
            starts = np.linspace(0, weights.shape[axis], most, endpoint=False).astype(int)
            weights = np.maximum.reduceat(weights, starts, axis=axis)
    return weights
