"""One notebook as one page, as it was last saved: pictures with their summaries, tables, text."""

import re
from dataclasses import dataclass
from importlib.resources import files

import jinja2
from markupsafe import Markup
from nbformat import NotebookNode

from course_lib import messages
from course_lib.tools.site.markdown import anchor, code, markdown, page_address

_TEMPLATES = jinja2.Environment(
    loader=jinja2.FunctionLoader(
        lambda name: (files("course_lib.tools.site") / name).read_text(encoding="utf-8")
    ),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.globals["inline"] = lambda source: Markup(_inline(source))
_TEMPLATES.globals["plain"] = lambda source: Markup(re.sub(r"<[^>]+>", "", _inline(source)))
#: What only a running notebook shows.
_LIVE_ONLY = {messages.TRAINING_HERE}


@dataclass(frozen=True)
class Lesson:
    """What the index and the neighbours of a page say about it.

    Attributes:
        stem: of the notebook's and the page's file name.
        title: its first heading.
        question: the paragraph in bold below it; "" where there is none.
        needs, time: what it takes; "" where the notebook does not say.
    """

    stem: str
    title: str
    question: str
    needs: str
    time: str


def lesson(stem: str, notebook: NotebookNode) -> Lesson:
    """Read a notebook's first cell.

    Raises:
        ValueError: if it does not begin with a heading.
    """
    first = notebook.cells[0].source
    title = re.match(r"# (.+)", first)
    if title is None:
        raise ValueError(f"{stem} does not begin with a heading")
    question = re.search(r"^\*\*(.+)\*\*$", first, re.MULTILINE)
    needs = re.search(r"^\*\*You need\*\* (.+)$", first, re.MULTILINE)
    time = re.search(r"^\*\*It runs in\*\* (.+?)\. ", first, re.MULTILINE)
    said = [found[1] if found else "" for found in (question, needs, time)]
    return Lesson(stem, title[1].strip(), *said)


def page(notebook: NotebookNode, this: Lesson, lessons: list[Lesson]) -> str:
    """Return the page of a notebook.

    Args:
        notebook: as it was saved, with its outputs.
        this: the lesson of the notebook.
        lessons: all lessons in order, for the links to the one before and the one after.

    Raises:
        ValueError: for a formula that cannot be converted.
    """
    cells = [(cell.cell_type, _cell(cell)) for cell in notebook.cells]
    headings = re.findall(
        r"^## (.+)$",
        "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown"),
        re.MULTILINE,
    )
    here = lessons.index(this)
    return render(
        "page.html.j2",
        lesson=this,
        cells=cells,
        contents=[(anchor(_inline(each)), each) for each in headings],
        before=lessons[here - 1] if here else None,
        after=lessons[here + 1] if here + 1 < len(lessons) else None,
    )


def render(template: str, **values: object) -> str:
    """Fill a template of this folder."""
    return _TEMPLATES.get_template(template).render(**values)


def _inline(source: str) -> str:
    return markdown(source).strip().removeprefix("<p>").removesuffix("</p>")


def _cell(cell: NotebookNode) -> str:
    if cell.cell_type == "markdown":
        return markdown(cell.source)
    if cell.cell_type != "code":
        return ""
    return code(cell.source) + "".join(map(_output, cell.outputs))


def _output(output: NotebookNode) -> str:
    if output.output_type == "stream":
        return render("text.html.j2", text=output.text)
    if output.output_type == "error":
        return render("text.html.j2", text=f"{output.ename}: {output.evalue}")
    data = output.data
    if "image/png" in data:
        return _figure(output)
    if "text/html" in data:
        shown = re.sub(r'(?<=href=")[^":]+', lambda url: page_address(url[0]), data["text/html"])
        return f'<div class="output" tabindex="0">{shown}</div>'
    if "text/markdown" in data:
        return f'<div class="output">{markdown(data["text/markdown"])}</div>'
    text = data.get("text/plain", "")
    return "" if text in _LIVE_ONLY else render("text.html.j2", text=text)


def _figure(output: NotebookNode) -> str:
    """A picture; its summary as text alternative and caption; below that the data that it draws.

    Of the text that is stored with a picture, the first line and the indented lines that follow it are the
    summary.
    """
    first, *others = output.data["text/plain"].splitlines()
    indented = next((n for n, line in enumerate(others) if not line.startswith("  ")), len(others))
    facts = [line.strip() for line in others[:indented]]
    size = output.metadata.get("image/png", {})
    return render(
        "figure.html.j2",
        png=output.data["image/png"].replace("\n", ""),
        width=size.get("width"),
        height=size.get("height"),
        title=first,
        alt=f"{first} {'; '.join(facts)}".strip(),
        details=facts + others[indented:],
    )
