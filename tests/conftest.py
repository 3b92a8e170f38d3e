"""Every test runs with the shapes and dtypes in the signatures enforced."""

import jaxtyping

# An int is a float where a float is asked for, as for type checkers (PEP 484).
jaxtyping.install_import_hook(
    "course_lib", "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))"
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
