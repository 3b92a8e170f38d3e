"""The runs of an experiment: a table in a file beside its module, and the command that fills it.

A row holds the settings of a run and what was measured: {"arm": "GRU", "lr": 0.01, "seed": 0, "accuracy": 0.98}.
`seaborn.lineplot(pandas.DataFrame(rows), x="lr", y="accuracy", hue="arm")` draws such a table.
"""

import argparse
import json
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import nullcontext
from functools import partial
from itertools import product
from multiprocessing import active_children, get_context
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

Row = dict[str, Any]


def path_of(table: str | Path) -> Path:
    """Return where a table is: beside this file, unless it is an absolute path."""
    return Path(__file__).parent / f"{table}.jsonl"


def read(table: str | Path) -> list[Row]:
    """Return the rows of an experiment, by the name of its module; a line that a kill has cut off is left out."""
    path = path_of(table)
    *lines, _ = path.read_text(encoding="utf-8").split("\n") if path.exists() else [""]
    return [json.loads(line) for line in lines]


def _lines(rows: Iterable[Row]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def grid(**choices: Iterable) -> list[Row]:
    """Return every combination of settings."""
    return [dict(zip(choices, values, strict=True)) for values in product(*choices.values())]


def where(rows: Iterable[Row], **settings: Any) -> list[Row]:
    """Return the rows with these settings."""
    return [row for row in rows if settings.items() <= row.items()]


def by_rate(rows: Iterable[Row], measure: str) -> dict[float, list]:
    """Return learning rate → what was measured, one per seed; rising."""
    found: dict[float, list] = {}
    for row in rows:
        if measure in row:
            found.setdefault(row["lr"], []).append(row[measure])
    return dict(sorted(found.items()))


def best(rows: Iterable[Row], measure: str, better: Callable = max) -> tuple[float, list[float]]:
    """Return the learning rate with the best mean, and what was measured there, one per seed."""
    return better(by_rate(rows, measure).items(), key=lambda item: fmean(item[1]))


def sweep(
    rows: Iterable[Row],
    arm: Row,
    measure: str,
    *,
    start: float,
    better: Callable = max,
    enough: float | None = None,
    compared: int = 1,
    seeds: int = 3,
) -> list[Row]:
    """Plan the runs of an arm: its learning rate is found with the first seeds, then all seeds train at the best one.

    The rate begins at `start`, and half and twice the best so far are tried until the best has a worse one on both
    sides; so a plan that calls this is a function of the rows.

    Args:
        rows: what is recorded.
        arm: settings of the arm, without rate and seed.
        measure: by which rates are compared, as `best` does.
        start: the first rate.
        better: `min` for a loss.
        enough: where the best so far reaches this, no more rates are tried.
        compared: the number of seeds by whose mean rates are compared.
        seeds: the number of seeds at the best rate.
    """
    first, known = range(compared), [row for row in where(rows, **arm) if row["seed"] < compared]
    if not known:
        return [arm | one for one in grid(lr=[start], seed=first)]
    centre, reached = best(known, measure, better)
    rates = set(by_rate(known, measure))
    if enough is None or better(fmean(reached), enough) == enough:
        rates |= {centre / 2, centre * 2}
    found = len(rates) == len(by_rate(known, measure))
    others = range(compared, seeds) if found else []
    chosen = grid(lr=sorted(rates), seed=first) + grid(lr=[centre], seed=others)
    return [arm | one for one in chosen]


def rounded(row: Row, spec: str) -> Row:
    """Return a row as JSON gives it back, every fraction but the learning rate rounded as by `format(number, spec)`."""
    as_text = json.dumps(row)
    new = json.loads(as_text, parse_float=lambda number: float(f"{float(number):{spec}}"))
    return new | {name: row[name] for name in row.keys() & {"lr"}}


def processes(workers: int) -> ProcessPoolExecutor:
    """Return a pool of processes with one thread each, which leave Ctrl-C to this one."""
    return ProcessPoolExecutor(workers, get_context("spawn"), initializer=_start)


def _start() -> None:
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _results(run: Callable, asked: list[Row], pool: ProcessPoolExecutor | None) -> Iterator:
    """Give the settings of every run as soon as it is done, and what returns its result or raises its exception."""
    if pool is None:
        yield from ((one, partial(run, **one)) for one in asked)
    else:
        jobs = {pool.submit(run, **one): one for one in asked}
        yield from ((jobs[job], job.result) for job in as_completed(jobs))


def fill(
    table: str | Path,
    run: Callable[..., list[Row]],
    plan: Iterable[Row] | Callable[[list[Row]], Iterable[Row]],
    doc: str,
    *,
    spec: str = ".4g",
) -> None:
    """Run what the plan asks for and the table lacks, until it asks for nothing more; add each run as it ends.

    Words on the command line choose the runs with these values among their settings; ``--workers 2`` runs two at a
    time, each in a process with one thread; otherwise they run in this process. Other runs go on after one that raises. Ctrl-C, or a kill, loses the runs of the moment and no others.

    Args:
        table: where the rows are, as for `read`.
        run: settings → rows of what was measured, which may name further settings. Other processes import it.
        plan: settings of runs; or a function that returns them, given the rows so far.
        doc: docstring of the experiment; ``--help`` shows its first line.
        spec: of `rounded`, for what was measured.

    Raises:
        ValueError: for a word that is the value of no setting.
        ExceptionGroup: the exceptions of runs, with their settings.
    """
    parser = argparse.ArgumentParser(description=doc.partition("\n")[0])
    parser.add_argument("values", nargs="*", help="of settings: only runs with these")
    parser.add_argument("--workers", type=int, default=1, help="how many run at a time")
    options, tried, failed = parser.parse_args(), [], {}
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, lambda *_: sys.exit(130))  # `fit` ends early at KeyboardInterrupt

    def planned() -> list[Row]:
        return list(plan(read(table)) if callable(plan) else plan)

    def missing() -> list[Row]:
        rows, asked = read(table), []
        for one in planned():
            chosen = set(options.values) <= set(map(str, one.values()))
            if chosen and one not in tried and not where(rows, **one):
                asked.append(one)
                tried.append(one)
        return asked

    known = {str(value) for one in read(table) + planned() for value in one.values()}
    if unknown := set(options.values) - known:
        raise ValueError(f"no setting has the value {', '.join(map(repr, sorted(unknown)))}")
    path_of(table).write_text(_lines(read(table)), encoding="utf-8")  # without a cut off line
    with processes(options.workers) if options.workers > 1 else nullcontext() as pool:
        try:
            while asked := missing():
                for one, result in _results(run, asked, pool):
                    try:
                        new = [one | rounded(row, spec) for row in result()]
                    except Exception as error:
                        failed[error] = one
                        print(one, repr(error), flush=True)
                        continue
                    print(_lines(new), end="", flush=True)
                    with path_of(table).open("a", encoding="utf-8") as file:
                        file.write(_lines(new))
        except BaseException:  # Ctrl-C: leaving the pool would wait for all runs
            for process in active_children():
                process.terminate()
            raise
    if failed:
        raise ExceptionGroup(f"not recorded: {list(failed.values())}", list(failed))
