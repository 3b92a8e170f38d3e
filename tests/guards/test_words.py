"""Prose, printed lines, messages, hints and figures use the field's words, so that papers can be read after the course."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

#: A word of no paper → the field's. Matched in any case, whole words only.
REFUSED = {
    r"way (?:around|past)": "residual connection",
    r"(?:the|a|without the) bend": "nonlinearity, ReLU",
    r"lonely|nobody": "fully masked row; no error is raised",
    r"when you are through": "after this notebook",
    r"brought to (?:length|size)": "L2-normalised",
    r"number by number": "elementwise",
    r"repeats? until they fit": "broadcasting",
    r"marked against": "evaluated, scored",
    r"stutters?|stuttering": "degenerate repetition",
    r"dearer|mends?|mended": "more expensive; fixes",
    r"held against": "compared with",
    r"heads of keys": "key/value heads",
    r"numbers of (?:a|one|the|each) (?:vector|head|token)": "components",
    r"clock hands?|hands of (?:a|the) clock": "rotation",
    r"first weights": "initialisation",
    r"length of the gradient": "gradient norm",
    r"free running": "autoregressive (free-running) decoding",
    r"finished texts?": "complete hypothesis",
    r"high(?:er)? stack|tower|climb": "deep stack, depth",
    r"share right|without a fault": "exact-match accuracy",
    r"half the bits": "mixed precision",
    r"sure of nonsense": "overconfident",
    r"middle 96 of 100": "confidence interval",
    r"all but the (?:first|last)": "target shifted right; labels",
    r"a model that writes": "autoregressive decoder",
    r"a (?:well-known book|real course|published tutorial)|example that circulates|in circulation": "name the source",
}
PATTERN = re.compile("|".join(rf"(?P<w{n}>\b(?:{word})\b)" for n, word in enumerate(REFUSED)), re.I)
#: A measured number, not whether it keeps a threshold.
BOOLEAN = re.compile(r"(?:at least|above|below|more than|less than)[^\n]{0,50}: (?:True|False)\b")

NOTEBOOKS = sorted((ROOT / "notebooks").rglob("*.ipynb"))
FOLDERS = [ROOT / "course_lib" / name for name in ("exercises", "widgets", "plots")]
TEXTS = [path for folder in FOLDERS for path in folder.rglob("*.py")]
TEXTS += [ROOT / "course_lib" / "messages.py", ROOT / "README.md"]


def refused(text: str) -> list[str]:
    """What stands in the text, and what should."""
    better = list(REFUSED.values())
    return [f"{hit[0]!r} → {better[int(hit.lastgroup[1:])]}" for hit in PATTERN.finditer(text)]


@pytest.mark.parametrize("path", [pytest.param(p, id=p.stem) for p in NOTEBOOKS])
def test_a_notebook_uses_the_words_of_the_field(path):
    for number, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
        assert not refused("".join(cell["source"])), f"cell {number}"
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            printed = "".join(output.get("text", "")) + "".join(data.get("text/plain", ""))
            assert not refused(printed), f"output of cell {number}"
            assert not BOOLEAN.search(printed), f"print the number after ≈, in cell {number}"


def test_hints_messages_and_figures_use_the_words_of_the_field():
    found = {path.name: refused(path.read_text(encoding="utf-8")) for path in TEXTS}
    assert not {name: words for name, words in found.items() if words}


def test_words_are_found():
    assert refused("The way around.") == ["'way around' → residual connection"]
    assert not refused("bending towers")
    assert BOOLEAN.search("at least 0.98: True")
