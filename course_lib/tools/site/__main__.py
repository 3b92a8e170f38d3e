"""Write the site: ``python -m course_lib.tools.site [FOLDER]``."""

import argparse
import html
import re
import shutil
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path

import nbformat

from course_lib.tools import normal_form
from course_lib.tools.site.fonts import write_maths_font
from course_lib.tools.site.markdown import markdown
from course_lib.tools.site.page import lesson, page, render

ROOT = normal_form.NOTEBOOKS.parent
README, SITE = ROOT / "README.md", ROOT / "site"
_PICTURE = re.compile(r'(<img [^>]*?src=")(?:\.\./)*(img/[^"]+)')


def write_site(folder: Path, notebooks: list[Path]) -> list[Path]:
    """Write a page for every notebook, an index, a style sheet and a font; copy the pictures they show.

    Args:
        folder: emptied first if it is there.
        notebooks: in the order of the course.

    Returns:
        The pages, the index first.

    Raises:
        ValueError: if the folder holds something that is no part of a site, or for a formula that cannot be
            converted.
    """
    _empty(folder)
    books = {path.stem: nbformat.read(path, as_version=4) for path in notebooks}
    lessons = [lesson(stem, book) for stem, book in books.items()]
    texts = {each.stem: page(books[each.stem], each, lessons) for each in lessons}
    title, introduction = _introduction()
    index = {
        "index": render("index.html.j2", title=title, introduction=introduction, lessons=lessons)
    }
    pages = []
    for stem, text in (index | texts).items():
        pages.append(folder / f"{stem}.html")
        pages[-1].write_text(_PICTURE.sub(r"\1\2", text), encoding="utf-8")
        for _, name in _PICTURE.findall(text):
            (folder / name).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    shutil.copy(str(files("course_lib.tools.site") / "style.css"), folder)
    write_maths_font(folder / "maths.woff", _formula_characters(texts.values()))
    return pages


def _empty(folder: Path) -> None:
    if folder.exists() and any(folder.iterdir()):
        if not (folder / "index.html").exists():
            raise ValueError(f"{folder} holds something else than a site; it is left as it is")
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)


def _introduction() -> tuple[str, str]:
    """Return title and first paragraphs of the README."""
    title, text = README.read_text(encoding="utf-8").split("\n## ")[0].split("\n", 1)
    return title.removeprefix("# "), markdown(text)


def _formula_characters(pages: Iterable[str]) -> str:
    formulas = re.findall(r"<math.*?</math>", "".join(pages), re.DOTALL)
    return "".join(sorted(set(html.unescape(re.sub(r"<[^>]+>", "", "".join(formulas))))))


def main() -> None:
    """Write the site and say where it is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=SITE)
    index = write_site(parser.parse_args().folder, normal_form.paths())[0]
    print(f"Open {index}")


if __name__ == "__main__":
    main()
