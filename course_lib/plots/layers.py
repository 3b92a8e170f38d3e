"""The layers of a model as a field of tiles, one per layer."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.patches import Patch

from course_lib.plots.panel import Panel
from course_lib.plots.style import COLOURS, blank
from course_lib.plots.words import Words

_TILE = np.array([(-0.46, -0.46), (0.46, -0.46), (0.46, 0.46), (-0.46, 0.46)])
_BAR = np.array([(-0.46, 0.3), (0.46, 0.3), (0.46, 0.46), (-0.46, 0.46)])


class LayersPanel(Panel):
    """A tile per layer, in rows from the top left: its kind by colour and letter, a bar at its foot where it is marked.

    Args:
        axes: where to draw.
        kinds: kind → name of its colour in `COLOURS`; its letter is its first one.
        mark: what the bar says.
        columns, rows: of the field.
    """

    def __init__(
        self, axes: Axes, kinds: Mapping[str, str], mark: str, *, columns: int = 10, rows: int = 8
    ) -> None:
        super().__init__(axes)
        blank(axes, (-0.6, columns - 0.4), (rows - 0.4, -0.6))
        axes.set_aspect("equal", anchor="N")
        self._kinds, self._columns, self._mark = dict(kinds), columns, mark
        self._tiles, self._feet = PolyCollection([]), PolyCollection([], fc=COLOURS["ink"])
        for collection in (self._tiles, self._feet):
            axes.add_collection(collection, autolim=False)
        self._words = Words(axes)
        named = [Patch(color=COLOURS[colour], label=kind) for kind, colour in kinds.items()]
        axes.legend(
            handles=[*named, Patch(color=COLOURS["ink"], label=mark)],
            loc="upper center", bbox_to_anchor=(0.5, 0), ncols=3, handlelength=1, columnspacing=1,
        )  # fmt: skip
        self.artists = [self._tiles, self._feet, self._words]

    def update(self, kinds: Sequence[str], marked: Sequence[bool]) -> None:
        """Show other layers: the kind of each, and whether it has a bar."""
        self.kinds, self.marked = list(kinds), np.asarray(marked, dtype=bool)
        number = np.arange(len(self.kinds))
        at = np.stack([number % self._columns, number // self._columns], axis=-1)  # (layer, 2)
        self._tiles.set_verts(at[:, None] + _TILE)
        self._tiles.set_facecolor([COLOURS[self._kinds[kind]] for kind in self.kinds])
        self._feet.set_verts(at[self.marked][:, None] + _BAR)
        dark = {"data", "faint"}
        colours = [COLOURS["ink"] if self._kinds[kind] in dark else "white" for kind in self.kinds]
        letters = [kind[0].upper() for kind in self.kinds]
        self._words.show(letters, at - (0, 0.08), colour=colours, size=9)

    def data(self) -> dict:
        """How many layers there are of each kind, and how many are marked."""
        counted = {kind: self.kinds.count(kind) for kind in self._kinds}
        return {"layers": len(self.kinds)} | counted | {self._mark: self.marked.sum()}
