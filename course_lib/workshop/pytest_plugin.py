"""What every run of pytest needs: no trace in the learner's progress, and the verification ledger.

`@pytest.mark.verifies("course_lib.pooling.gaussian_kernel", against="scikit-learn KernelDensity")`
marks a test that holds a public name against something independent of this project. Its fixture
`ledger` measures the largest difference; ``pytest --ledger`` prints the table at the end, and
``pytest --ledger README.md`` also writes it between the ledger's two marks in that file.
"""

import os
from collections import defaultdict
from pathlib import Path

import pytest

os.environ["COURSE_PROGRESS"] = "off"
os.environ.setdefault("OMP_NUM_THREADS", "1")  # several workers share the cores

_BEGIN, _END = "<!-- ledger -->", "<!-- end of ledger -->"
_KEY = "ledger"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --ledger."""
    parser.addoption(
        "--ledger",
        nargs="?",
        const="",
        default=None,
        metavar="FILE",
        help="print the verification ledger",
    )


class Ledger:
    """Compares with an oracle and remembers by how much the two differ."""

    def __init__(self, node: pytest.Item) -> None:
        marks = list(node.iter_markers("verifies"))
        self._rows = [(mark.args[0], mark.kwargs["against"]) for mark in marks]
        self._properties = node.user_properties

    def compare(self, ours, theirs, *, within: float, backward: bool = False) -> None:
        """Assert that two tensors agree within an absolute difference, and note the largest.

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
        """Note one case of an exact property: nothing to measure, it held."""
        for name, against in self._rows:
            self._properties.append((_KEY, [name, against, "exact", False, 0.0]))


@pytest.fixture
def ledger(request: pytest.FixtureRequest) -> Ledger:
    """Compare with an oracle; see `Ledger`."""
    return Ledger(request.node)


def pytest_terminal_summary(terminalreporter, config: pytest.Config) -> None:
    """Print the ledger, and write it where --ledger says."""
    wanted = config.getoption("ledger")
    if wanted is None:
        return
    reports = [
        report
        for report in terminalreporter.stats.get("passed", [])
        if hasattr(report, "user_properties")
    ]
    rows = [value for report in reports for key, value in report.user_properties if key == _KEY]
    table = _table(rows)
    terminalreporter.section("verification ledger")
    terminalreporter.write_line(table)
    if wanted:
        file = Path(wanted)
        before, rest = file.read_text(encoding="utf-8").split(_BEGIN)
        after = rest.split(_END)[1]
        file.write_text(f"{before}{_BEGIN}\n{table}\n{_END}{after}", encoding="utf-8")


def _table(rows: list) -> str:
    cells, cases = defaultdict(dict), defaultdict(int)
    for name, against, dtype, backward, largest in rows:
        row = (name, against)
        cases[row] += 1
        column = (dtype, backward)
        cells[row][column] = max(largest, cells[row].get(column, 0.0))
    columns = [("float64", False), ("float64", True), ("float32", False), ("float32", True)]
    lines = [
        "| name | held against | cases | float64 | its gradient | float32 | its gradient |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    for row in sorted(cells):
        measured = [
            f"{cells[row][column]:.0e}" if column in cells[row] else "–" for column in columns
        ]
        if set(cells[row]) == {("exact", False)}:
            measured = ["holds", "–", "–", "–"]
        lines.append(
            f"| `{row[0].removeprefix('course_lib.')}` | {row[1]} | {cases[row]} | {' | '.join(measured)} |"
        )
    return "\n".join(lines)
