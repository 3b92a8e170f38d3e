"""What Sphinx reads: notebooks with players, hints and solutions, the first page, the API, how to cite."""

import base64
import hashlib
import html
import inspect
import io
import json
import re
import shutil
from importlib import import_module
from pathlib import Path

import jinja2
import nbformat
import numpy as np
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell, new_output
from PIL import Image

from course_lib import LAYERS
from course_lib.exercises import EXERCISES
from course_lib.tools import normal_form
from course_lib.tools.site.record import FRAMES

ROOT, HERE = normal_form.NOTEBOOKS.parent, Path(__file__).parent
#: What a notebook says of itself → what its page says.
ON_A_PAGE = {
    r"Run the cells in order with \*\*Shift \+ Enter\*\*\..*": "This page shows a notebook with its results. Its "
    "explorers can be moved here; to run its cells and to type, download it (at the top right) or see "
    "[the first page](../index.md#two-commands).",
    r"\*\*Type": "**In the notebook, type",
}
_TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(HERE), autoescape=True, trim_blocks=True, lstrip_blocks=True
)


def write(folder: Path, notebooks: dict[Path, Path | None]) -> None:
    """Write the sources of the site: notebook → where its explorers are recorded."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "img", folder / "img")
    extra = folder / "extra" / FRAMES  # copied as it is
    for path, recorded in notebooks.items():
        if recorded:
            shutil.copytree(recorded / FRAMES, extra, dirs_exist_ok=True)
        place = folder / path.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        players = json.loads((recorded / "explorers.json").read_text()) if recorded else {}
        notebook = nbformat.read(path, as_version=4)
        transform(notebook, path.relative_to(ROOT), players, extra)
        nbformat.write(notebook, place)
    for name in ("LICENSE", "CITATION.cff"):
        shutil.copy(ROOT / name, folder)
    (folder / "api").mkdir()
    modules = LAYERS["library"]
    for name, module in modules.items():
        package = hasattr(import_module(f"course_lib.{name}"), "__path__")
        text = _render("module.md.j2", name=name, summary=module.summary, package=package)
        (folder / "api" / f"{name}.md").write_text(text, encoding="utf-8")
    titles = {path: path.relative_to(ROOT).with_suffix("") for path in notebooks}
    readme = (ROOT / "README.md").read_text(encoding="utf-8").split("\nRun times are for")[0]
    introduction, mark, rest = on_the_site(readme, folder).partition("\n![")  # the first picture
    pages = {"index.md": mark + rest, "api/index.md": "", "about.md": ""}
    for name, text in pages.items():
        values = {"introduction": introduction, "readme": text, "modules": modules}
        values["lessons"] = [titles[one] for one in notebooks if not normal_form.is_study(one)]
        values["studies"] = [titles[one] for one in notebooks if normal_form.is_study(one)]
        written = _render(name.replace("/", "_") + ".j2", **values)
        (folder / name).write_text(written, encoding="utf-8")


def on_the_site(text: str, folder: Path) -> str:
    """Keep of the links of a text those that lead to a page, a picture or another site; of the rest, only the words."""
    pages = [path.relative_to(ROOT).as_posix() for path in normal_form.paths()]

    def kept(found: re.Match) -> str:
        address = found[2].partition("#")[0]
        there = "://" in address or not address or address in pages or (folder / address).exists()
        return found[0] if there else found[1]

    return re.sub(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)", kept, text)


def _render(template: str, **values: object) -> str:
    return _TEMPLATES.get_template(template).render(**values)


def transform(notebook: NotebookNode, path: Path, players: dict[str, dict], pictures: Path) -> None:
    """Put players, pictures and words of a page into a notebook, and hints and solutions below its exercises.

    Args:
        notebook: changed in place.
        path: of its file in the repository.
        players: execution count of a cell → what `record.sweep` said of its explorer.
        pictures: folder for what the page shows.
    """
    pictures.mkdir(parents=True, exist_ok=True)
    cells = []
    for cell in notebook.cells:
        cells.append(cell)
        if cell.cell_type == "markdown":
            for said, instead in ON_A_PAGE.items():
                cell.source = re.sub(said, instead, cell.source)
        if cell.cell_type != "code":
            continue
        player = players.get(str(cell.execution_count))
        shown = [_output(one, player, path, pictures) for one in cell.outputs]
        cell.outputs = [one for one in shown if one]
        for name in re.findall(r'^check\("(\w+)"', cell.source, re.MULTILINE):
            exercise = EXERCISES[name]
            source = inspect.cleandoc(inspect.getsource(exercise.solution))
            cells.append(new_markdown_cell(_render("help.md.j2", exercise=exercise, source=source)))
    notebook.cells = cells


def _output(
    output: NotebookNode, player: dict | None, path: Path, pictures: Path
) -> NotebookNode | None:
    data = output.get("data", {})
    up = "../" * len(path.parents[1:])
    if "image/png" in data:
        played = player if output.output_type == "execute_result" else None
        shown = {"up": up, "notebook": path, "player": played, **_still(output, pictures)}
        return new_output("display_data", {"text/html": _render("picture.html.j2", **shown)})
    if "text/html" in data:  # progress() links to notebooks from their folder
        page = rf'href="{up}notebooks/\1.html'
        data["text/html"] = re.sub(r'href="([^":]+)\.ipynb', page, data["text/html"])
        data["text/html"] = data["text/html"].replace("≈ ", "≈\N{NO-BREAK SPACE}")
    return output


def _still(output: NotebookNode, pictures: Path) -> dict[str, object]:
    """Write the picture; of its text, the first line and the indented lines after it are the alternative."""
    png = base64.b64decode(output.data["image/png"])
    name = f"{hashlib.sha256(png).hexdigest()[:16]}.png"
    pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))
    (pictures / name).write_bytes(png)
    first, *others = output.data["text/plain"].splitlines()
    count = next((n for n, line in enumerate(others) if not line.startswith("  ")), len(others))
    facts = [line.strip() for line in others[:count]]
    return {
        "still": name, "plain": (pixels.min(axis=2) > 200).mean() > 0.8, "size": output.metadata.get("image/png", {}), "title": first.rstrip(":"),
        "alt": html.unescape(f"{first} {'; '.join(facts)}".strip()), "numbers": facts + others[count:],
    }  # fmt: skip
