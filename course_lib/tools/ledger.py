"""The verification ledger as text: the full table, and its summary by kind of oracle."""

import re
from collections import defaultdict

COLUMNS = [("float64", False), ("float64", True), ("float32", False), ("float32", True)]
HEAD = """# Verification ledger

Every public name of the library, the oracles that the unit tests compare it with, the number of comparisons,
and the largest absolute difference seen, of the values and of their gradients. "holds" marks exact properties
and whole numbers: there is no difference to measure. `make verified` writes this file.
"""
#: What an oracle is, in words → how it is recognised; the first that fits counts.
KINDS = {
    "Hugging Face Transformers": "Hugging Face",
    "PyTorch": "PyTorch",
    "SciPy, scikit-learn, statsmodels, mpmath": "SciPy|scikit-learn|statsmodels|mpmath",
    "sacreBLEU": "(?i:sacrebleu)",
    "Babel": "Babel",
    "equations in NumPy": "NumPy",
    "published values and code": r"\(\d{4}\)|the code of its authors",
    "moments and frequencies of many random samples": "draws|on a million",
    "explicit loops and formulas in Python": "loop|Python's|itertools|enumerated|equation|formula|"
    "complex numbers|products of|exact fractions|one pair of tokens",
    "invariants: cached = uncached, batched = alone, padded, permuted": "anew|at once|alone|full causal pass|"
    "without a cache|the same model|later tokens|longer padding|slices of|projections|difference of positions|rotated",
    "values and rules written by hand": "",
}


def table(rows: list[list]) -> str:
    """Return the full table.

    Args:
        rows: [name, oracle, dtype or "exact", whether it is a gradient, difference] of each comparison.
    """
    cells, counts = defaultdict(dict), defaultdict(int)
    for name, oracle, dtype, backward, largest in rows:
        counts[name, oracle] += 1
        row, column = cells[name, oracle], (dtype, backward)
        row[column] = max(largest, row.get(column, 0.0))
    lines = [
        "| name | oracle | comparisons | float64 | gradient | float32 | gradient |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    for (name, oracle), row in sorted(cells.items()):
        measured = [f"{row[column]:.0e}" if column in row else "–" for column in COLUMNS]
        if not any("float" in dtype for dtype, _ in row):
            measured[0] = "holds"
        short, count = name.removeprefix("course_lib."), counts[name, oracle]
        lines.append(f"| `{short}` | {oracle} | {count} | {' | '.join(measured)} |")
    return "\n".join(lines)


def read(text: str) -> dict[tuple[str, str], list[str]]:
    """Return (name, oracle) → the other cells of its row."""
    rows = (
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in text.splitlines()
        if line.startswith("| `")
    )
    return {(name.strip("`"), oracle): cells for name, oracle, *cells in rows}


def kind(oracle: str) -> str:
    """Return the kind of an oracle, a key of `KINDS`."""
    return next(name for name, pattern in KINDS.items() if re.search(pattern, oracle))


def summary(text: str) -> str:
    """Return the summary of a full table: totals, and a row per kind of oracle."""
    rows, kinds = read(text), defaultdict(list)
    for (name, oracle), cells in rows.items():
        kinds[kind(oracle)].append((name, oracle, cells))
    total = sum(int(cells[0]) for cells in rows.values())
    lines = [
        f"{len({name for name, _ in rows})} public names, {len({oracle for _, oracle in rows})} oracles,"
        f" {total:,} comparisons. The largest absolute differences, of values and of gradients:",
        "",
        "| kind of oracle | oracles | names | comparisons | float64 | gradient | float32 | gradient |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name in filter(kinds.get, KINDS):
        names, oracles, cells = zip(*kinds[name], strict=True)
        columns = list(zip(*cells, strict=True))
        counts = [len(set(oracles)), len(set(names)), sum(map(int, columns[0]))]
        largest = [
            max((cell for cell in column if cell[0].isdigit()), key=float, default="–")
            for column in columns[1:]
        ]
        lines.append(f"| {name} | {' | '.join(f'{n:,}' for n in counts)} | {' | '.join(largest)} |")
    return "\n".join(lines)
