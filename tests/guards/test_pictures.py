"""What lies in img/ is what its code draws."""

import re

import pytest

from course_lib.tools.pictures import IMAGES, PICTURES

NUMBER = re.compile(r"-?\d+\.\d+")
IDENTIFIER = re.compile(r"\b[a-z][0-9a-f]{10}\b")  # made from the drawing's digits


def test_nothing_else_lies_there():
    assert {path.name for path in IMAGES.iterdir()} == set(PICTURES)


def test_the_moving_picture_is_small_moves_without_scripts_and_respects_reduced_motion():
    picture = (IMAGES / "attention_animation.svg").read_text(encoding="utf-8")
    assert len(picture) < 100_000
    assert "<script" not in picture and "http" not in picture.replace("http://www.w3.org", "")
    moving = picture.split("@media (prefers-reduced-motion: no-preference) {")[1]
    assert picture.count("@keyframes") == moving.split("</style>")[0].count("@keyframes") > 10


@pytest.mark.parametrize("name", PICTURES)
def test_the_picture_is_what_its_code_draws(name):
    drawn, kept = PICTURES[name]().decode(), (IMAGES / name).read_text(encoding="utf-8")
    frames = [IDENTIFIER.sub("id", NUMBER.sub("#", text)) for text in (drawn, kept)]
    assert frames[0] == frames[1], "run: make pictures"
    for one, other in zip(NUMBER.findall(drawn), NUMBER.findall(kept), strict=True):
        assert float(one) == pytest.approx(float(other), abs=0.01), "run: make pictures"
