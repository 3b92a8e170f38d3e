"""What lies in img/ is what its code draws."""

import re

import pytest

from course_lib.workshop.pictures import IMAGES, PICTURES

NUMBER = re.compile(r"-?\d+\.\d+")
IDENTIFIER = re.compile(r"\b[a-z][0-9a-f]{10}\b")  # made from the drawing's digits


def test_nothing_else_lies_there():
    assert {path.name for path in IMAGES.iterdir()} == set(PICTURES)


@pytest.mark.parametrize("name", PICTURES)
def test_the_picture_is_what_its_code_draws(name):
    drawn, kept = PICTURES[name]().decode(), (IMAGES / name).read_text(encoding="utf-8")
    frames = [IDENTIFIER.sub("id", NUMBER.sub("#", text)) for text in (drawn, kept)]
    assert frames[0] == frames[1], "run: make pictures"
    for one, other in zip(NUMBER.findall(drawn), NUMBER.findall(kept), strict=True):
        assert float(one) == pytest.approx(float(other), abs=0.01), "run: make pictures"
