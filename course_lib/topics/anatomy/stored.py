"""The facts of the models, as `python -m course_lib.tools.model_facts` reads them from `transformers`."""

import json
from functools import cache
from pathlib import Path

FACTS = Path(__file__).with_name("facts.json")


@cache
def stored() -> dict:
    """Return what the file holds: the version of `transformers`, and class and configuration of each model."""
    return json.loads(FACTS.read_text(encoding="utf-8"))
