"""Record how the explorers of a notebook move: ``python -m course_lib.tools.site.record NOTEBOOK FOLDER``.

The code cells run in this process, up to the last explorer. Each explorer is swept along each of its controls, then in
the planes and spaces of several controls, the smallest first, with fewer stops where it would exceed its limit of
bytes. A picture is kept as what differs from the first one, without loss; equal ones are kept once.
"""

import base64
import contextlib
import hashlib
import io
import itertools
import json
import math
import os
import sys
from pathlib import Path

import ipywidgets
import nbformat
import numpy as np
from IPython.core.interactiveshell import InteractiveShell
from PIL import Image

from course_lib.widgets import Explorer
from course_lib.widgets.generation import GenerationExplorer
from course_lib.widgets.live_figure import SHARPNESS

STOPS = 21  # of a slider, at most
GENERATED = 6  # the same where a text is generated at each, which takes seconds
BYTES = 900_000  # of an explorer, at most, if the sweeps of its controls alone are no more
FRAMES = "_frames"


def needed_cells(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    """Return the code cells up to the last one that shows an explorer."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    last = max((n for n, cell in enumerate(cells) if "_explorer(" in cell.source), default=-1)
    return cells[: last + 1]


def record(path: Path, folder: Path) -> None:
    """Run a notebook; write pictures and states into `folder`, and there `explorers.json`, execution count → player."""
    os.environ["COURSE_PROGRESS"] = "off"
    os.chdir(path.parent)
    (folder / FRAMES).mkdir(parents=True, exist_ok=True)
    shell, players = InteractiveShell.instance(), {}
    for number, cell in enumerate(needed_cells(nbformat.read(path, as_version=4)), start=1):
        with contextlib.redirect_stdout(io.StringIO()):
            result = shell.run_cell(cell.source)
        result.raise_error()
        if isinstance(result.result, Explorer):
            name = f"{path.stem}-{number}"
            players[number], states = sweep(result.result, folder / FRAMES)
            players[number]["name"] = name
            said = json.dumps(states, ensure_ascii=False, separators=(",", ":"))
            script = f"recordedStates({json.dumps(name)}, {said});\n"
            (folder / FRAMES / f"{name}.js").write_text(script, encoding="utf-8")
    (folder / "explorers.json").write_text(json.dumps(players), encoding="utf-8")


def sweep(explorer: Explorer, folder: Path) -> tuple[dict, dict]:
    """Move an explorer; return what its page shows at first, and what its controls lead to.

    A place is the number of a stop of each control. The second result has for each place the numbers of its picture,
    its summary and its regions for the pointer, where limits moved the controls (0 if nowhere), which are off, and the
    number of the boxes of its colour maps.
    """
    start = {name: control.value for name, control in explorer.controls.items()}
    generates = isinstance(explorer, GenerationExplorer)
    stops = _stops(explorer, start, min(STOPS, GENERATED) if generates else STOPS)
    at = {name: _nearest(stops[name], value) for name, value in start.items()}

    def move(values: dict[str, object]) -> None:
        explorer.choose(**values)
        if generates:
            explorer.generate()

    move(start)
    frames, texts, regions, maps, states = Frames(explorer, folder), {}, {}, {}, {}

    def visit(place: tuple[int, ...]) -> None:
        move({name: stops[name][n][0] for name, n in zip(stops, place, strict=True)})
        if explorer.picture.problem:
            return
        hover = [_number(regions, _json(region)) for region in explorer.picture.hover]
        moved = [_nearest(stops[name], one.value) for name, one in explorer.controls.items()]
        off = [n for n, control in enumerate(explorer.controls.values()) if control.disabled]
        text = _number(texts, explorer.summary)
        boxes = _number(maps, _json(explorer.picture.maps))
        changed = moved if moved != list(place) else 0
        states[place] = [frames.add(), text, hover, changed, off, boxes]

    def size() -> int:
        return frames.size + sum(map(len, [*texts, *regions]))

    subsets = [itertools.combinations(stops, count) for count in range(len(stops) + 1)]
    spaces = sorted(
        itertools.chain(*subsets),
        key=lambda names: (len(names) > 1, math.prod(len(stops[name]) for name in names)),
    )
    for names, thin in itertools.product(spaces, (1, 2, 4, 8)):  # every stop, every second one …
        lines = [
            range(at[name] % thin, len(line), thin) if name in names else [at[name]]
            for name, line in stops.items()
        ]
        new = [place for place in itertools.product(*lines) if place not in states]
        if len(names) < 2:
            most = math.inf
        else:
            most = 0 if generates or size() * (1 + len(new) / len(states)) > BYTES else BYTES
        for place in new:
            if size() < most:
                visit(place)
    move(start)
    controls = [
        {
            "label": control.description,
            "kind": _KINDS.get(type(control), "slider"),
            "stops": [said for _, said in stops[name]],
            "at": at[name],
        }
        for name, control in explorer.controls.items()
    ]
    figure = explorer.picture.figure
    player = {
        "base": frames.base, "summary": explorer.summary, "controls": controls, "generates": generates,
        "width": figure.width, "height": figure.height, "cuts": figure.cuts, "title": explorer.title,
    }  # fmt: skip
    return player, {
        "names": list(stops), "states": {",".join(map(str, one)): said for one, said in states.items()},
        "frames": list(frames.names), "texts": list(texts), "regions": list(map(json.loads, regions)),
        "maps": list(map(json.loads, maps)),
    }  # fmt: skip


class Frames:
    """The pictures of an explorer: `base`, the first one, and of each other what differs from it.

    Attributes:
        names: of the files of the others, in the order in which they came.
        size: of the files, in bytes.
    """

    def __init__(self, explorer: Explorer, folder: Path) -> None:
        self._figure, self._folder, self.names, self.size = explorer.picture.figure, folder, {}, 0
        self._first, self._seen = np.asarray(self._figure.image(SHARPNESS)), {}
        self.base = self._write(self._first)

    def add(self) -> int:
        """Keep the picture as it is now, transparent where it is as the first; return its number."""
        pixels = np.asarray(self._figure.image(SHARPNESS))
        key = hashlib.sha256(pixels.tobytes()).digest()
        if key not in self._seen:
            differs = (pixels != self._first).any(axis=2, keepdims=True)
            overlay = np.concatenate([pixels * differs, 255 * differs.astype(np.uint8)], axis=2)
            self._seen[key] = _number(self.names, self._write(overlay))
        return self._seen[key]

    def _write(self, pixels: np.ndarray) -> str:
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, "WEBP", lossless=True, quality=50, method=3)
        name = f"{hashlib.sha256(file.getvalue()).hexdigest()[:16]}.webp"
        (self._folder / name).write_bytes(file.getvalue())
        self.size += len(file.getvalue())
        return name


_KINDS = {ipywidgets.Text: "text", ipywidgets.Dropdown: "menu"}


def _stops(explorer: Explorer, start: dict, most: int) -> dict[str, list[tuple[object, str]]]:
    """Return for each control its values and their names; a slider has its longest range under any menu's choice."""
    widest = {name: getattr(control, "max", 0) for name, control in explorer.controls.items()}
    for name, control in explorer.controls.items():
        for value, _ in _options(control):
            explorer.choose(**start | {name: value})
            for other in widest:
                widest[other] = max(widest[other], getattr(explorer.controls[other], "max", 0))
    explorer.choose(**start)
    return {
        name: _options(control) or _numbers(control, widest[name], most)
        for name, control in explorer.controls.items()
    }


def _options(control: ipywidgets.ValueWidget) -> list[tuple[object, str]]:
    if isinstance(control, ipywidgets.Text):
        return [(control.value, control.value)]
    options = getattr(control, "options", ())
    return [(one, one) if isinstance(one, str) else (one[1], one[0]) for one in options]


def _numbers(control: ipywidgets.ValueWidget, widest: float, most: int) -> list[tuple[float, str]]:
    """Choose evenly among the positions of a slider; the one where it stands is among them."""
    is_log = isinstance(control, ipywidgets.FloatLogSlider)
    now = math.log10(control.value) if is_log else control.value
    last, here = (round((one - control.min) / control.step) for one in (widest, now))
    steps = sorted({here, *np.linspace(0, last, min(last + 1, most)).round().astype(int).tolist()})
    values = [round(control.min + n * control.step, 10) for n in steps]
    values = [10**value for value in values] if is_log else values
    return [(value, format(value, control.readout_format)) for value in values]


def _nearest(stops: list[tuple[object, str]], value: object) -> int:
    values = [stop for stop, _ in stops]
    if value in values:
        return values.index(value)
    return min(range(len(values)), key=lambda n: abs(values[n] - value))


def _number(numbers: dict, key: str) -> int:
    return numbers.setdefault(key, len(numbers))


def _json(region: dict | list) -> str:
    """Write a region of `Picture.hover`, or boxes; the bytes of numbers in base 64."""
    return json.dumps(
        region, ensure_ascii=False, default=lambda one: base64.b64encode(one).decode()
    )


if __name__ == "__main__":
    record(*(Path(one).resolve() for one in sys.argv[1:]))
