"""The pictures in img/ can be read by everyone, need nothing else, and are shown somewhere."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from course_lib.plots import COLOURS
from course_lib.tools import animation

ROOT = Path(__file__).parents[2]
PICTURES = sorted((ROOT / "img").iterdir())
DRAWN = [path for path in PICTURES if path != animation.FILE]  # by hand
SVG = "{http://www.w3.org/2000/svg}"
NUMBER = re.compile(r"-?\d+\.\d+")
IMAGE = re.compile(r'!\[([^\]]*)\]\(([^)]+)\)|<img src="([^"]+)"(?: width="\d+")? alt="([^"]*)">')


def named(paths):
    return pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in paths])


def shown():
    """(file, text alternative) of every picture in the README and the Markdown of the notebooks."""
    texts = [(ROOT, (ROOT / "README.md").read_text(encoding="utf-8"))]
    for path in (ROOT / "notebooks").rglob("*.ipynb"):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        texts += [
            (path.parent, "".join(c["source"])) for c in cells if c["cell_type"] == "markdown"
        ]
    for folder, text in texts:
        found = IMAGE.findall(text)
        assert len(found) == len(re.findall(r"<img\b|!\[", text)), text
        yield from (((folder / (a or b)).resolve(), alt or other) for alt, a, b, other in found)


def test_every_picture_is_shown_and_what_is_shown_exists():
    assert {path for path, _ in shown()} == set(PICTURES)


def test_every_picture_has_a_short_text_alternative():
    assert not [path.name for path, alt in shown() if not 5 <= len(alt.split()) <= 25]


@named(PICTURES)
def test_it_is_an_svg_with_title_and_description_that_loads_nothing(path):
    text = path.read_text(encoding="utf-8")
    root = ElementTree.fromstring(text)
    assert root.tag == f"{SVG}svg" and root[0].tag == f"{SVG}title" and root[1].tag == f"{SVG}desc"
    assert root[0].text.strip() and root[1].text.strip()
    assert root.get("viewBox") == f"0 0 {root.get('width')} {root.get('height')}"
    addresses = re.findall(r'(?:href|src)="([^"]*)"|url\(([^)]*)\)', text)
    assert all(one.startswith("#") for pair in addresses for one in pair if one)
    assert not re.search(r"<script|<image|<foreignObject|@import|\son\w+=", text)
    ids = re.findall(r'\sid="([^"]*)"', text)
    assert len(ids) == len(set(ids))
    assert {one or other for one, other in addresses} <= {f"#{each}" for each in ids}


@named(PICTURES)
def test_its_letters_are_large_enough(path):
    text = path.read_text(encoding="utf-8")
    sizes = re.findall(r'font-size[:=" ]+([\d.]+)|font: ([\d.]+)px', text)
    assert sizes and min(float(one or other) for one, other in sizes) >= 12


@named(DRAWN)
def test_it_has_the_colours_of_the_course(path):
    text = path.read_text(encoding="utf-8")
    painted = re.findall(r'(?:fill|stroke|color)[:=" ]+([#\w]+)', text)
    assert set(painted) <= {*COLOURS.values(), "#ffffff", "none", "url"}


def test_the_moving_picture_is_small_moves_without_scripts_and_respects_reduced_motion():
    picture = animation.FILE.read_text(encoding="utf-8")
    assert len(picture) < 100_000
    moving = picture.split("@media (prefers-reduced-motion: no-preference) {")[1]
    assert picture.count("@keyframes") == moving.split("</style>")[0].count("@keyframes") > 10


def test_the_moving_picture_is_what_its_code_draws():
    drawn, kept = animation.drawn(), animation.FILE.read_text(encoding="utf-8")
    assert NUMBER.sub("#", drawn) == NUMBER.sub("#", kept), "run: make pictures"
    for one, other in zip(NUMBER.findall(drawn), NUMBER.findall(kept), strict=True):
        assert float(one) == pytest.approx(float(other), abs=0.01), "run: make pictures"
