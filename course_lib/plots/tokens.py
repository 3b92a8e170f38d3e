"""The tokens along a map's side: as many texts as there is room for, set anew for each sequence."""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

MOST_LABELS = 40  # so many are written; of a longer sequence every second, third, …
_LONGEST = {True: 10, False: 15}  # letters, where the tokens stand upright and where they lie


class TokenLabels:
    """Texts on one side of a picture, at (n + ½)/length between 0 and 1.

    Args:
        axes: where to draw.
        fixed: the other coordinate, at which all stand.
        across: whether they stand side by side, turned upright unless they are single letters, or one below the other.
        align: of the texts: "left" or "right"; upright texts hang from their top.
    """

    def __init__(self, axes: Axes, fixed: float, *, across: bool, align: str = "right") -> None:
        style = (
            {"va": "center", "ha": align}
            if not across
            else {"rotation": 90, "va": "top", "ha": "center"}
        )
        self._fixed, self._across = fixed, across
        self.texts = [axes.text(0, 0, "", parse_math=False, **style) for _ in range(MOST_LABELS)]

    def update(self, tokens: Sequence[str]) -> None:
        """Write other tokens."""
        every = math.ceil(len(tokens) / MOST_LABELS)
        size = float(np.interp(len(tokens), (16, MOST_LABELS), (9, 6)))
        written = list(range(0, len(tokens), every))
        for number, text in enumerate(self.texts):
            text.set_visible(number < len(written))
            if number < len(written):
                place = (written[number] + 0.5) / len(tokens)
                text.set_position((place, self._fixed) if self._across else (self._fixed, place))
                token = shortened(tokens[written[number]], _LONGEST[self._across])
                text.set(text=token, fontsize=size)
                if self._across:  # a full stop on its side would be hard to see
                    text.set_rotation(0 if len(token) == 1 else 90)


def shortened(token: str, most: int) -> str:
    """A token of at most `most` letters, as it fits beside a map; a space alone is drawn as ␣."""
    token = token if token.strip() or not token else "␣"
    return token if len(token) <= most else f"{token[: most - 1]}…"


def pooled(weights: np.ndarray, most: int) -> np.ndarray:
    """At most `most` rows and columns: where there are more, each shows the largest of those it stands for."""
    for axis in (0, 1):
        if weights.shape[axis] > most:
            starts = np.linspace(0, weights.shape[axis], most, endpoint=False).astype(int)
            weights = np.maximum.reduceat(weights, starts, axis=axis)
    return weights
