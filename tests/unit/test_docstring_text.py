"""The docstrings of four packages: against the standard library's parser, their checksum, and their split."""

import ast
import hashlib
import inspect
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from course_lib import data


def as_string(text):
    return bytes(text.tolist()).decode("ascii")


@pytest.mark.verifies("course_lib.data.docstring_text", against="Python's `ast`")
@pytest.mark.verifies("course_lib.data.DocstringText", against="Python's `ast`")
def test_the_text_is_what_the_parser_finds_in_the_installed_package(ledger):
    text = data.docstring_text()
    assert isinstance(text, data.DocstringText)
    if version("statsmodels") != text.versions["statsmodels"]:
        pytest.skip(f"the text is of statsmodels {text.versions['statsmodels']}")
    parts = as_string(text.training), as_string(text.held_out)
    written, longer = {one.strip() for part in parts for one in part.split("\n\n")}, []
    root = Path(find_spec("statsmodels").origin).parent
    for path in [path for path in root.rglob("*.py") if "tests" not in path.parts]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                docstring = ast.get_docstring(node, clean=False) or ""
                for paragraph in inspect.cleandoc(docstring).split("\n\n"):
                    if len(paragraph) >= 60 and "\\" not in paragraph and paragraph.isascii():
                        longer.append(paragraph.strip())
    assert len(longer) > 5000
    found = sum(paragraph in written for paragraph in longer)
    assert found > 0.99 * len(longer)  # the others stand between ''', or have expressions in them
    ledger.holds()


def test_the_text_is_the_one_that_the_recorded_ladder_was_trained_on():
    training, held_out = (bytes(part.tolist()) for part in data.docstring_text()[:2])
    found = hashlib.sha256(training + b"\0" + held_out).hexdigest()
    assert found == "01e6448f024427a918a309eb40f2c36d76e44ed7f3ced0df8f3006dbabc15288"


@pytest.mark.verifies("course_lib.data.DOCSTRING_PACKAGES", against="their text")
@pytest.mark.verifies("course_lib.data.BYTE_VOCABULARY", against="their text")
def test_no_long_paragraph_of_the_held_out_text_is_in_the_training_text(ledger):
    text, seen = data.docstring_text(), set()
    licences = Path(data.__file__).with_name("docstrings.licenses.txt").read_text(encoding="utf-8")
    for package, number in data.DOCSTRING_PACKAGES.items():
        assert f"{package} {number}" in licences.lower()
        assert package in as_string(text.training).lower()
    assert len(text.training) > 6_000_000 and len(text.held_out) > 400_000
    for part in (text.training, text.held_out):
        assert part.dtype == torch.uint8 and 0 < part.min() and part.max() < data.BYTE_VOCABULARY
        kept = [p for p in as_string(part).split("\n\n") if len(p) >= 60]
        assert len(set(kept)) == len(kept) and not seen & set(kept)
        seen |= set(kept)
    ledger.holds()


@pytest.mark.verifies("course_lib.data.text_windows", against="slices of the text")
@pytest.mark.parametrize("length", [1, 4, 29])
def test_windows_predict_every_byte_once(ledger, length):
    text = torch.arange(30, dtype=torch.uint8)
    windows = data.text_windows(text, length)
    predicted = windows[:, 1:].flatten().tolist()
    assert predicted == list(range(1, 1 + len(predicted))) and 30 - len(predicted) <= length
    for place, window in enumerate(windows):
        assert window.tolist() == text[place * length : (place + 1) * length + 1].tolist()
    mixed = data.text_windows(text, length, seed=3)
    assert torch.equal(mixed, data.text_windows(text, length, seed=3))
    assert sorted(mixed.tolist()) == windows.tolist()
    ledger.holds()
