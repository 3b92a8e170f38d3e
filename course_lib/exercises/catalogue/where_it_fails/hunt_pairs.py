"""Bug hunt: pairs that are none."""

from functools import partial

import torch

from course_lib import messages
from course_lib.exercises.exercise import Mistake


def pair_lengths(source, target):
    sides = [text.split("\n") for text in (source, target)]
    pairs = [(s.split(), t.split()) for s, t in zip(*sides, strict=True)]
    return torch.tensor([[len(s), len(t)] for s, t in pairs if s and t])


def reference(source, target):
    """Line by line, with an index."""
    left, right = source.split("\n"), target.split("\n")
    rows = [[len(left[n].split()), len(right[n].split())] for n in range(len(left))]
    return torch.tensor([row for row in rows if min(row) > 0])


def _attempt(source, target, *, lines=(True, True), blank=(False, False)):
    """With `lines`, cut only at the end of a line; with `blank`, drop blank lines of this side alone."""
    sides = [
        text.split("\n") if right else text.splitlines()
        for text, right in zip((source, target), lines, strict=True)
    ]
    sides = [
        [line for line in side if line.strip()] if wrong else side
        for side, wrong in zip(sides, blank, strict=True)
    ]
    pairs = [(s.split(), t.split()) for s, t in zip(*sides, strict=False)]
    return torch.tensor([[len(s), len(t)] for s, t in pairs if s and t])


CUT = "a line is cut at a character that does not end a line of the file"
MOVED = "a blank line on one side moves all pairs after it"
GIVEN = partial(_attempt, lines=(False, False), blank=(True, True))
GIVEN_MESSAGE = messages.ALL_BUGS_LEFT.format(count=2)
LEFT = tuple(
    Mistake(
        name,
        partial(_attempt, **wrong),
        messages.BUGS_LEFT.format(repaired=1, count=2, symptoms=symptom),
    )
    for name, wrong, symptom in (
        ("lines", {"lines": (False, False)}, CUT),
        ("blank", {"blank": (True, True)}, MOVED),
        ("source lines", {"lines": (False, True)}, CUT),
        ("target lines", {"lines": (True, False)}, CUT),
        ("source blank", {"blank": (True, False)}, MOVED),
        ("target blank", {"blank": (False, True)}, MOVED),
    )
)
MISTAKES = """
(s.split(), t.split()) -> (s.strip() and s.split(" "), t.strip() and t.split(" "))
    You cut at every single space, and only there: two in a row make an empty word. split() without an argument cuts at any
    white space.
if s and t -> if s or t
    A pair with a blank line on one side is kept. It has no translation: drop it.
if s and t ->
    Blank lines are pairs too in your result. A pair needs words on both sides.
if s and t -> if s
    A pair with a blank target is kept. It needs words on both sides.
if s and t -> if t
    A pair with a blank source is kept. It needs words on both sides.
len(s), len(t) -> len(t), len(s)
    The two columns are exchanged: first the source, then the target.
(s.split(), t.split()) -> (s.strip(), t.strip())
    You count characters. Count words: split().
(s.split(), t.split()) -> (s, t)
    You count characters, and a line of spaces is not taken as blank. Count words: split().
(s.split(), t.split()) -> (s.split(" "), t.split(" "))
    split(" ") cuts at every single space, and makes a word of an empty line. split() without an argument cuts at any
    white space.
zip(*sides, strict=True)] -> zip(*sides, strict=True) if s and t]
+ for s, t in pairs if s and t -> for s, t in pairs
    A line of spaces is not empty, and has no words all the same: ask for words.
"""

CASES = (
    dict(source="a b\n\nc\nd e f\n", target="x\ny y\nz z z z\nw w\n"),
    dict(source="a b\u2028c\nd\n", target="x x x\ny y\n"),
    dict(source="a\nb b\n", target="x x x\u2028x\n y y\n"),
    dict(source="a\n\nb b\n", target="x x x\n\ny y y y\n"),
    dict(source="a\nb b\nc c c\n", target="x x\n\nz z z z z\n"),
    dict(  # blank lines on both sides, elsewhere: as many as each other
        source="a\n\nb b\nc c c\n d\n", target="x x\ny y y\n \nz\x85z\nw w w w w\n"
    ),
)
HINTS = r"""
Remove the third of ten source lines, and nothing else. Which pairs are wrong afterwards?
Pair the lines first, then drop pairs. And look up which characters str.splitlines() cuts at.
sides = [text.split("\n") for text in (source, target)], then if s and t.
"""
DIFFERENTIABLE = False
