"""A picture in the browser, with a text alternative, save buttons, and exact values under the pointer."""

import base64
from pathlib import Path

import anywidget
import traitlets

from course_lib import messages
from course_lib.widgets.live_figure import LINE, SHARPNESS, LiveFigure

_MOVING, _SHARPEST = 1.0, 3.0  # pixels drawn per pixel on screen: the fewer, the faster
_BROWSER = Path(__file__).parent / "browser"
#: The browser's half of a picture; the last one puts the others together.
_SCRIPTS = "values pointer saving layout controls play compare code working picture".split()


def scripts(*names: str) -> str:
    """Join files of `browser/` to one module, which works without a network or a build."""
    return "\n".join((_BROWSER / f"{name}.js").read_text(encoding="utf-8") for name in names)


class Picture(anywidget.AnyWidget):
    """Show a `LiveFigure`.

    The values under the pointer are looked up in the browser, without the kernel. Without a kernel (a notebook
    on a web page, saved and opened again, or not yet run), a PNG is shown instead: the picture as last seen.
    Tests compare the summary, which is also the text alternative of the picture.

    Args:
        figure: what to show.
        summary: what the picture shows, in words and numbers.
        name: the stem of the file names that the save buttons give.
        approximate: whether the numbers drawn differ from machine to machine, so that tests compare only
            the summary.
        live: whether controls move it, so that it can be played, compared and recreated.
            A line below it says so where it cannot move.
    """

    _esm = scripts(*_SCRIPTS)
    # not a path, which would keep every picture alive
    _css = (_BROWSER / "picture.css").read_text(encoding="utf-8")

    png = traitlets.Bytes().tag(sync=True)
    summary = traitlets.Unicode().tag(sync=True)
    #: what a file holds beside the picture: the summary and a description of the data
    described = traitlets.Unicode().tag(sync=True)
    hover = traitlets.List().tag(sync=True)
    #: boxes of colour maps, whose colours a dark theme leaves as they are
    maps = traitlets.List().tag(sync=True)
    width = traitlets.Int().tag(sync=True)
    height = traitlets.Int().tag(sync=True)
    name = traitlets.Unicode("picture").tag(sync=True)
    words = traitlets.Dict().tag(sync=True)
    cuts = traitlets.List().tag(sync=True)
    live = traitlets.Bool().tag(sync=True)
    #: why the controls cannot be drawn; the picture is then that of other values, and dimmed
    problem = traitlets.Unicode().tag(sync=True)
    #: device pixels per pixel on screen, which the browser says
    density = traitlets.Float(_MOVING).tag(sync=True)
    #: the cell chosen in the browser: the controls that it sets, and how many were chosen before
    chosen = traitlets.Dict().tag(sync=True)
    #: a line of code that recreates what is shown; empty if there is none
    code = traitlets.Unicode().tag(sync=True)
    #: the id of the widget that is displayed: this one, or the one that holds it
    shown_in = traitlets.Unicode().tag(sync=True)

    def __init__(
        self,
        figure: LiveFigure,
        summary: str,
        *,
        name: str = "picture",
        approximate: bool = False,
        live: bool = False,
    ) -> None:
        self.figure, self.approximate = figure, approximate
        self.line = messages.STATIC if live else ""
        hover = figure.hover()
        how = messages.PICTURE_HELP if hover else ""
        if any(region.get("chooses") for region in hover):
            how = messages.PICTURE_CHOOSE
        if any(region.get("acts") for region in hover):
            how = messages.PICTURE_TAKE
        words = messages.PICTURE | {"help": how, "line": self.line}
        size = {"width": figure.width, "height": figure.height, "cuts": figure.cuts}
        png = figure.png(_MOVING if live else SHARPNESS)
        shown = {"png": png, "hover": hover, "maps": figure.maps()}
        super().__init__(summary=summary, name=name, live=live, words=words, **size, **shown)
        self.shown_in = self.model_id
        self.on_msg(self._answer)

    def refresh(self, summary: str, code: str = "") -> None:
        """Draw the current state of the figure and send it in one message, with the code that recreates it."""
        png = self.figure.png(min(self.density, _MOVING))
        with self.hold_sync():
            self.png, self.summary = png, summary
            self.hover, self.maps = self.figure.hover(), self.figure.maps()
            self.described = words(self.figure, summary, approximate=self.approximate)
            self.code = code

    def save(self, path: str | Path) -> Path:
        """Write the current state to `path`, which ends in .png or .svg.

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
        elif content.get("wanted") == "sharp":  # the controls rest
            self.png = self.figure.png(min(self.density, _SHARPEST))

    def _repr_mimebundle_(self, **kwargs):
        data, metadata = fallback(self, self.summary)
        view, _ = super()._repr_mimebundle_(**kwargs)
        return view | data, metadata

    def __repr__(self) -> str:
        return self.summary


def fallback(picture: Picture, summary: str) -> tuple[dict, dict]:
    """Build what is shown without a kernel and what tests compare.

    That is the PNG with its size, and as text the summary with a description of the data, or without it if
    the numbers are approximate.
    """
    figure = picture.figure
    png = base64.b64encode(figure.small_png(picture.line)).decode("ascii")
    size = {"width": figure.width, "height": figure.height + LINE * bool(picture.line)}
    said = words(figure, summary, approximate=picture.approximate)
    return {"text/plain": said, "image/png": png}, {"image/png": size}


def words(figure: LiveFigure, summary: str, *, approximate: bool) -> str:
    """Say what tests compare: the summary, and the data where they are the same on every machine."""
    return summary if approximate else f"{summary}\n{figure.describe()}"
