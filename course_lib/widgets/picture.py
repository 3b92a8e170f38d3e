"""A picture in the browser: sharp, described, savable, with exact values under the pointer."""

import base64
from pathlib import Path

import anywidget
import traitlets

from course_lib import texts
from course_lib.widgets.live_figure import LiveFigure

_HERE = Path(__file__).parent


class Picture(anywidget.AnyWidget):
    """Show a `LiveFigure`.

    What the pointer reads off is looked up in the browser, with no way back to the kernel. Where
    there is no kernel (a notebook on a web page, or not yet run), the PNG is shown instead; tests
    compare the summary, which is also the picture's description for those who cannot see it.

    Args:
        figure: what to show.
        summary: what the picture shows, in words and numbers.
        name: the stem of the file names that the save buttons give.
        measured: whether the numbers drawn differ from machine to machine, so that only the summary is
            compared.
    """

    _esm = _HERE / "picture.js"
    _css = _HERE / "picture.css"

    png = traitlets.Bytes().tag(sync=True)
    summary = traitlets.Unicode().tag(sync=True)
    hover = traitlets.List().tag(sync=True)
    width = traitlets.Int().tag(sync=True)
    height = traitlets.Int().tag(sync=True)
    name = traitlets.Unicode("picture").tag(sync=True)
    words = traitlets.Dict().tag(sync=True)

    def __init__(
        self, figure: LiveFigure, summary: str, *, name: str = "picture", measured: bool = False
    ) -> None:
        self.figure, self.measured = figure, measured
        hover = figure.hover()
        super().__init__(
            png=figure.png(),
            summary=summary,
            hover=hover,
            width=figure.width,
            height=figure.height,
            name=name,
            words={
                "png": texts.SAVE_PNG,
                "svg": texts.SAVE_SVG,
                "help": texts.PICTURE_HELP if hover else "",
            },
        )
        self.on_msg(self._answer)

    def refresh(self, summary: str) -> None:
        """Draw the figure's present state and send it, in one message."""
        png = self.figure.png()
        with self.hold_sync():
            self.png, self.summary, self.hover = png, summary, self.figure.hover()

    def save(self, path: str | Path) -> Path:
        """Write the present state to `path`, which ends in .png or .svg.

        Raises:
            ValueError: for any other ending.
        """
        path = Path(path)
        if path.suffix == ".png":
            path.write_bytes(self.figure.png())
        elif path.suffix == ".svg":
            path.write_bytes(self.figure.svg(self.summary))
        else:
            raise ValueError(f"path={str(path)!r} must end in .png or .svg")
        return path

    def _answer(self, _, content: dict, buffers: list) -> None:
        if content.get("wanted") == "svg":
            self.send({"answer": "svg"}, buffers=[self.figure.svg(self.summary)])

    def _repr_mimebundle_(self, **kwargs):
        data, metadata = fallback(self.figure, self.summary, measured=self.measured)
        view, _ = super()._repr_mimebundle_(**kwargs)
        return view | data, metadata

    def __repr__(self) -> str:
        return self.summary


def fallback(figure: LiveFigure, summary: str, *, measured: bool = False) -> tuple[dict, dict]:
    """Build what a place without a kernel shows, and what tests compare.

    That is the PNG at its size, and as text the summary with the numbers that are drawn, or without
    them if they were measured on this machine.
    """
    png = base64.b64encode(figure.small_png()).decode("ascii")
    size = {"width": figure.width, "height": figure.height}
    words = summary if measured else f"{summary}\n{figure.describe()}"
    return {"text/plain": words, "image/png": png}, {"image/png": size}
