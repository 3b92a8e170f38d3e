"""Every test runs with the shapes and dtypes in the signatures enforced."""

import functools
import sys

import jaxtyping
from hypothesis import HealthCheck, settings

from course_lib import TOP  # loads none of them

# All modules but the exercises: their guard interrupts code between any two instructions, and a checker around
# every call would be interrupted with it. No tensor shape stands in a signature there.
HOOKED = [f"course_lib.{name}" for name in TOP if name != "exercises"]
# An int is a float where a float is asked for, as for type checkers (PEP 484).
jaxtyping.install_import_hook(
    HOOKED, "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))"
)

# Every example is quick on an idle machine (no test fails for a time), and fixtures such as the ledger collect over
# all of them.
settings.register_profile(
    "course",
    deadline=None,
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
settings.load_profile("course")

import pytest  # noqa: E402  (no module of course_lib may be imported before the hook)
import torch  # noqa: E402

pytest.register_assert_rewrite("tests.helpers")

from tests.helpers.annotations import unchecked  # noqa: E402


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def _closed():
    """Close all widgets: ipywidgets keeps those that are open, each explorer with its pictures of several MB."""
    yield
    if widgets := sys.modules.get("ipywidgets"):
        widgets.Widget.close_all()


@pytest.fixture
def without_annotations():
    """Call course_lib as a learner does: annotations cost nothing and check nothing."""
    with unchecked():
        yield


@pytest.fixture
def displayed(monkeypatch):
    """What `show` and its like display."""
    things = []
    monkeypatch.setattr("course_lib.notebook.display", things.append)
    return things


@pytest.fixture
def as_one_graph(without_annotations):
    """Return what compiles a function or a module as one graph; a checker of annotations cannot be compiled."""
    torch.compiler.reset()  # annotated functions share one code object, and so one limit of compilations
    return functools.partial(torch.compile, backend="eager", fullgraph=True)
