"""Annotations check nothing here, and a whole run is recorded in `tests/DEVICES.md`."""

from pathlib import Path

import pytest
import torch

from tests.helpers.device_record import merged, section

RECORD = Path(__file__).parents[1] / "DEVICES.md"


@pytest.fixture(autouse=True)
def as_a_learner(without_annotations):
    """Annotations check nothing; matrix products in float32 are not rounded to TF32, which is PyTorch's default."""
    assert not torch.backends.cuda.matmul.allow_tf32


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the record of a whole run, where there is a device."""
    options = session.config.option
    whole = not (options.keyword or options.markexpr or any("::" in one for one in session.config.args))  # fmt: skip
    if hasattr(session.config, "workerinput") or not (whole and torch.cuda.is_available()):
        return
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or session.shouldstop:
        return
    before = RECORD.read_text(encoding="utf-8") if RECORD.exists() else ""
    RECORD.write_text(merged(before, section(reporter.stats)), encoding="utf-8")
