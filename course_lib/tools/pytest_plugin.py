"""What every run of pytest needs: it leaves the learner's progress alone and keeps the verification ledger.

nbval compares the numbers in outputs of notebooks as `course_lib.tools.compared_numbers` says.

The notebook of the language model is skipped where the model's weights are not installed.

`@pytest.mark.verifies("course_lib.topics.pooling.gaussian_kernel", against="scikit-learn KernelDensity")` marks a
test that compares a public name, or several, with an oracle independent of this project. Its fixture `ledger` measures
the largest difference. ``pytest --ledger`` prints the table at the end; ``--ledger FILE`` also writes it to a
file, and ``--ledger-summary README.md`` writes its summary between the two marks in that file.
"""

import os
from functools import partial
from pathlib import Path

import pytest

from course_lib.tools import ledger as text
from course_lib.tools.compared_numbers import outputs_as_stored

os.environ["COURSE_PROGRESS"] = "off"
os.environ.setdefault("OMP_NUM_THREADS", "1")  # several workers share the cores

BEGIN, END = "<!-- ledger -->\n", "\n<!-- end of ledger -->"
_KEY = "ledger"
#: What a notebook that loads the language model calls.
LANGUAGE_MODEL = "load_smollm2"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --ledger and --ledger-summary."""
    add = partial(parser.addoption, metavar="FILE")
    add("--ledger", nargs="?", const="", help="print the verification ledger, and write it to FILE")
    add("--ledger-summary", help="write a summary of the ledger between its marks in FILE")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Let nbval compare the numbers in the outputs of a cell as numbers."""
    compare = getattr(item, "compare_outputs", None)  # of nbval's cells alone
    if compare:
        item.compare_outputs = lambda outputs, stored: compare(
            outputs_as_stored(outputs, stored, item.sanitize), stored
        )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the notebooks of the language model where its weights are not installed, and say why."""
    cells = [item for item in items if hasattr(item, "cell")]  # of nbval
    models = {item.path for item in cells if LANGUAGE_MODEL in item.cell.source}
    concerned = [item for item in cells if item.path in models]
    if not concerned:
        return
    from course_lib.topics.pretrained.weights_file import is_installed

    if not is_installed():
        reason = "the language model is not installed; `make lab` and `make test` install it"
        for item in concerned:
            item.add_marker(pytest.mark.skip(reason=reason))


class Ledger:
    """Compares with an oracle and records the differences."""

    def __init__(self, node: pytest.Item) -> None:
        marks = node.iter_markers("verifies")
        self._rows = [(name, mark.kwargs["against"]) for mark in marks for name in mark.args]
        self._properties = node.user_properties

    def compare(self, ours, theirs, *, within: float, backward: bool = False) -> None:
        """Assert that two tensors agree within an absolute difference, and record the largest one.

        Args:
            ours: a tensor of the course; its dtype decides the column of the table.
            theirs: the oracle's, of the same shape; converted to float64 for the comparison.
            within: the largest absolute difference allowed.
            backward: whether these are gradients.
        """
        import torch

        theirs = torch.as_tensor(theirs)
        assert ours.shape == theirs.shape, (
            f"shape {tuple(ours.shape)}, the oracle's is {tuple(theirs.shape)}"
        )
        gaps = (ours.detach().double() - theirs.detach().double()).abs()
        largest = gaps.max().item() if gaps.numel() else 0.0
        assert largest <= within, (
            f"differs from the oracle by {largest:.3g}, allowed is {within:.3g}"
        )
        dtype = str(ours.dtype).removeprefix("torch.")
        for name, against in self._rows:
            self._properties.append((_KEY, [name, against, dtype, backward, largest]))

    def holds(self) -> None:
        """Record one passed case of an exact property."""
        for name, against in self._rows:
            self._properties.append((_KEY, [name, against, "exact", False, 0.0]))


@pytest.fixture
def ledger(request: pytest.FixtureRequest) -> Ledger:
    """Compare with an oracle; see `Ledger`."""
    return Ledger(request.node)


def pytest_terminal_summary(terminalreporter, config: pytest.Config) -> None:
    """Print the ledger, and write it where --ledger and --ledger-summary say."""
    file, summary_file = config.getoption("ledger"), config.getoption("ledger_summary")
    if file is None and summary_file is None:
        return
    passed = terminalreporter.stats.get("passed", [])
    properties = (each for report in passed for each in getattr(report, "user_properties", []))
    table = text.table([value for key, value in properties if key == _KEY])
    terminalreporter.section("verification ledger")
    terminalreporter.write_line(table)
    if file:
        Path(file).write_text(f"{text.HEAD}\n{table}\n", encoding="utf-8")
    if summary_file:
        path = Path(summary_file)
        before, rest = path.read_text(encoding="utf-8").split(BEGIN)
        after = rest.split(END)[1]
        path.write_text(f"{before}{BEGIN}{text.summary(table)}{END}{after}", encoding="utf-8")
