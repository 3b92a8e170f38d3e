"""The tokens along a side of a map."""

import math
from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from matplotlib.axes import Axes

from course_lib.plots.style import families
from course_lib.plots.words import Words, drawable, fitted, ink, width

MOST_LABELS = 40  # of a longer sequence, every second, third, … token is written
#: What stands for white space.
SPACES = str.maketrans({" ": "␣", "\n": "↵", "\t": "⇥", "\r": "←", "\xa0": "⍽"})
_BREAKS = {code: sign for code, sign in SPACES.items() if code != ord(" ")}


class TokenLabels(Words):
    """Tokens on one side of a picture, at (n + ½)/length between 0 and 1, cut to the space up to the edge of its Axes.

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
        size = float(np.interp(len(named), (28, MOST_LABELS), (9, 6)))
        words = labels([tokens[number] for number in shown], size, self._room(), numbers=shown)
        # a rotated full stop would be hard to see
        short = [len(word) == 1 or word.isdigit() for word in words]
        upright = np.array([not self._across or one for one in short], dtype=bool)
        self.show(
            words,
            np.column_stack([along, other] if self._across else [other, along]),
            size=size,
            align=np.where(upright, 0.5, 1) if self._across else self._align,
            rotated=~upright,
            hanging=upright & self._across,
        )

    def _room(self) -> float:
        """Points from where the texts begin to the edge of the Axes that they run towards."""
        axes, side = self.axes, int(self._across)
        begin = axes.transData.transform([[self._fixed] * 2])[0, side]
        end = (axes.bbox.max if not self._across and self._align == 0 else axes.bbox.min)[side]
        return abs(end - begin) * 72 / axes.figure.dpi


def labels(
    tokens: Sequence[str],
    size: float,
    room: float = math.inf,
    numbers: Sequence[int] | None = None,
) -> list[str]:
    """Return what to write for tokens so that each fits, and no two different ones look alike.

    A token is cut at its end, "…", a number of up to three digits never: the rest would be another one. □ stands for a character
    that no font has, with the token's number at the end. Tokens that would look alike have their spaces written as ␣
    and, where that does not help, their numbers.

    Args:
        tokens: white space alone and line ends are always written.
        size: in points.
        room: for each, in points.
        numbers: of the tokens; their positions where left out. Equal tokens have the first of theirs.
    """
    numbers = range(len(tokens)) if numbers is None else numbers
    first = dict(zip(reversed(tokens), reversed(numbers), strict=True))
    written = _labels(tuple(first.items()), size, round(room, 1), families())
    return [written[token] for token in tokens]


@lru_cache(64)
def _labels(
    first: tuple[tuple[str, int], ...], size: float, room: float, _: tuple[str, ...]
) -> dict[str, str]:
    """Return token → label, for different tokens with a number each."""
    forms = {
        token: [
            (visible(token), ""),
            (token.translate(SPACES), ""),
            (token.translate(SPACES), str(number)),
        ]
        for token, number in first
    }
    plain = {token: drawable(visible(token)) for token in forms}
    chosen = {  # 2, its number, where something of it cannot be drawn
        token: 2 * (text.count("□") > token.count("□") or bool(token) and ink(text) == ink(""))
        for token, text in plain.items()
    }
    while True:
        written, alike = {}, defaultdict(list)
        for token, form in chosen.items():
            text, end = (drawable(part) for part in forms[token][form])
            whole = len(token) <= 3 and token.isdecimal()
            fits = whole or width(text + end, size) <= room
            written[token] = (
                text + end if fits else fitted(text, size, room - width(end, size)) + end
            )
            alike[ink(written[token])].append(token)
        undecided = [
            one for some in alike.values() if len(some) > 1 for one in some if chosen[one] < 2
        ]
        if not undecided:
            return written
        for token in undecided:
            chosen[token] += 1


def visible(token: str) -> str:
    """Return the token with its line ends as ↵; white space alone as ␣ and the like."""
    return token.translate(_BREAKS if token.strip() else SPACES)


def numbered(tokens: Sequence[str], side: str = "") -> list[str]:
    """Tokens with their positions, since a token may occur twice.

    One that says its position, as "5 F" does, or "head 0" on the side "head", does not get it again; white space
    alone becomes ␣.
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
