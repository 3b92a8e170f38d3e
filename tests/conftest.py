"""Every test runs with the shapes and dtypes in the signatures enforced."""

from pathlib import Path

import jaxtyping

# All rooms but the exercises: their guard interrupts code between any two instructions, and a checker
# around every call would be interrupted with it. No tensor's shape stands in a signature there.
ROOMS = [
    f"course_lib.{path.stem}"
    for path in Path(__file__).parents[1].joinpath("course_lib").iterdir()
    if not path.stem.startswith("_") and path.stem != "exercises"
]
# An int is a float where a float is asked for, as for type checkers (PEP 484).
jaxtyping.install_import_hook(
    ROOMS, "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))"
)

import pytest  # noqa: E402  (nothing of course_lib may be imported before the hook)
import torch  # noqa: E402


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


@pytest.fixture
def without_annotations():
    """Call course_lib as a learner does: annotations cost nothing and check nothing."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
