"""Signatures enforced or not: a check of every call takes most of the time where functions are small."""

import contextlib
from collections.abc import Iterator

import jaxtyping


@contextlib.contextmanager
def unchecked() -> Iterator[None]:
    """Call course_lib as a learner does: annotations cost nothing and check nothing."""
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)
