"""The record of a run on a device: the machine, the versions, how many tests of each kind passed."""

import datetime
import platform
import re
from collections import Counter

import torch

HEAD = "# Devices\n\nWritten by `python -m pytest tests/device`, the last whole run on each kind of device.\n"
FAILURES = 50  # so many are named


def section(stats: dict[str, list]) -> str:
    """Describe a run: the machine, the versions, how many tests of each kind passed, and which failed."""
    counts, failed = Counter(), []
    for outcome in ("passed", "failed", "error"):
        for report in stats.get(outcome, []):
            if not report.nodeid.startswith("tests/device/"):
                continue
            test, _, row = report.nodeid.rpartition("::")[2].partition("[")
            table = re.split(r"[,\-]", row)[0] if test == "test_call" else test
            counts[table, outcome == "passed"] += 1
            failed += [] if outcome == "passed" else [f"- `{report.nodeid.rpartition('::')[2]}`"]
    tables = dict.fromkeys(table for table, _ in counts)
    cudnn = torch.backends.cudnn.version()
    return "\n".join(
        [
            f"## {torch.cuda.get_device_name()}",
            "",
            f"{datetime.date.today()}, Python {platform.python_version()}, PyTorch {torch.__version__}, CUDA "
            f"{torch.version.cuda}, cuDNN {cudnn}, {platform.system()}. float32, float16 and bfloat16, each against "
            f"float64 on the CPU; compiled: bfloat16.",
            "",
            "| calls | passed | failed |",
            "|---|---|---|",
            *(f"| {table} | {counts[table, True]} | {counts[table, False]} |" for table in tables),
            *(["", "Failed:", "", *failed[:FAILURES]] if failed else []),
            "",
        ]
    )


def merged(text: str, new: str) -> str:
    """Replace the section of this device, or add it."""
    title = new.splitlines()[0]
    kept = [part for part in re.split(r"(?m)^(?=## )", text)[1:] if part.splitlines()[0] != title]
    return "\n".join([HEAD, *sorted(part.strip() + "\n" for part in [*kept, new])])
