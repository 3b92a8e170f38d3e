"""Old names stay gone: the course speaks the field's terms."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

#: Old name → the field's name. Matched as whole words in code.
RENAMED = {
    "Attended": "AttentionOutput",
    "Encoded": "EncoderOutput",
    "Decoded": "DecoderOutput",
    "MemoryCache": "CrossAttentionCache",
    "ModelInput": "InputEmbedding",
    "Stepper": "train_step",
    "Tower": "DeepStack",
    "Writer": "DecodingSession",
    "ByPrefix": "PrefixModel",
    "Translated": "GenerationOutput",
    "carry_layer": "from_torch",
    "carry_stacks": "from_torch",
    "settings_of": "from_torch",
    "climb": "train_stack",
    "filters": "logits_processors",
    "lonely": "fully_masked",
    "made_for": "layer_sizes",
    "move_output": "attend",
    "save_to": "checkpoint_path",
    "seldom": "static_artists",
    "token_mask": "padding_mask_from_tokens",
    "warmup_decay": "linear_schedule_with_warmup",
}
#: Old modules of course_lib.
MODULES = ("inputs", "texts", "measure", "workshop", "carry", "rates", "by_prefix", "writer")
#: Old keyword arguments.
KEYWORDS = ("accumulate", "clip", "goal", "measured", "rate", "save_every", "watch")

FILES = sorted(
    path
    for folder in ("course_lib", "tests")
    for path in (ROOT / folder).rglob("*.py")
    if path.name not in (Path(__file__).name, "test_words.py")  # both list refused words
)
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
NAMES = re.compile(rf"\b({'|'.join(RENAMED)})\b")
#: Old attributes whose names are ordinary words elsewhere.
ATTRIBUTES = re.compile(r"\.(wider|residuals|source_input|target_input|added|inside)\b")


def code_of(path: Path) -> str:
    """The code of a file or notebook, without comments and strings of more than one word."""
    if path.suffix == ".ipynb":
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    else:
        text = path.read_text(encoding="utf-8")
    text = re.sub(r'r?"""(?:.|\n)*?"""', "", text)
    text = re.sub(r"#.*", "", text)
    return re.sub(r'"[^"\n]* [^"\n]*"', '""', text)


@pytest.mark.parametrize("path", [pytest.param(p, id=p.name) for p in (*FILES, *NOTEBOOKS)])
def test_no_old_name_is_back(path):
    code = code_of(path)
    found = {old: RENAMED[old] for old in NAMES.findall(code)}
    assert not found, f"rename {found}"
    assert not ATTRIBUTES.findall(code)


@pytest.mark.parametrize("path", [pytest.param(p, id=p.name) for p in (*FILES, *NOTEBOOKS)])
def test_no_old_module_is_imported(path):
    found = re.findall(rf"course_lib(?:\.\w+)*\.({'|'.join(MODULES)})\b", code_of(path))
    assert not found


@pytest.mark.parametrize("path", [pytest.param(p, id=p.name) for p in NOTEBOOKS])
def test_no_old_argument_in_a_notebook(path):
    assert not re.findall(rf"[(,]\s*({'|'.join(KEYWORDS)})=", code_of(path))


def test_an_old_name_is_found():
    assert NAMES.findall("x = Attended(output, None)") == ["Attended"]
    assert not NAMES.findall("unattended = Attendedness")
