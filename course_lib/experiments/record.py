"""The record of an experiment: JSON in a file beside its module."""

import argparse
import json
import signal
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from functools import partial, reduce
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any

import torch

from course_lib.validation import require_one_of

Keys = tuple[str, ...]
Record = dict[str, Any]


def read(path: Path) -> Record:
    """Return what is recorded; an empty dictionary where nothing is."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def text_options(doc: str, record: Path) -> argparse.ArgumentParser:
    """Return the options of a command that measures translators on a text: the text, and where it is recorded."""
    options = argparse.ArgumentParser(description=doc.partition("\n")[0])
    options.add_argument("--data", default="multi30k", help="as for course_lib.train (multi30k)")
    options.add_argument("--record", type=Path, default=record, help="the file to write")
    return options


def rounded(result: Any, spec: str) -> Any:
    """Return a result as JSON gives it back, with every fraction rounded as by `format(number, spec)`."""
    return json.loads(
        json.dumps(result), parse_float=lambda number: float(f"{float(number):{spec}}")
    )


def write(path: Path, result: Record, *, indent: int | None = 1) -> None:
    """Replace the record, whole or not at all; without an indent, by one line."""
    text, new = json.dumps(result, indent=indent, ensure_ascii=False), path.with_suffix(".partial")
    new.write_text(text + "\n", encoding="utf-8")
    new.replace(path)


def processes(workers: int) -> ProcessPoolExecutor:
    """Return a pool of processes with one thread each."""
    spawn = get_context("spawn")
    return ProcessPoolExecutor(workers, spawn, initializer=torch.set_num_threads, initargs=(1,))


def run_arms(
    path: Path,
    arms: Iterable[str | Keys],
    run: Callable[..., Any],
    doc: str,
    *,
    last: Collection[str] = (),
    place: Callable[[Record, Any, str], Record] | None = None,
    spec: str | None = None,
    indent: int | None = 1,
    **choices: Collection[str],
) -> None:
    """Run the arms that the command line names, or all, and record each as soon as it is done.

    With ``--workers 2`` two run at a time, each in a process with one thread; with one worker they run in this process,
    which alone writes the record. After an arm that raises, the others run all the same.

    Args:
        path: of the record, in which the arms keep this order.
        arms: of each its name, or the keys that lead to it in a nested record; the command line takes any of these.
        run: name, or keys one by one → result. Other processes import it, so it stands in a module.
        doc: docstring of the experiment; ``--help`` shows its first line.
        last: names of arms that read the record of others, and so wait for these.
        place: (record, result, name) → new record, where an arm has not a key of its own.
        spec: of `rounded`; results are not rounded where it is left out.
        indent: as for `write`.
        choices: further options of the command line, and the keys that each takes.

    Raises:
        ValueError: for a name that is not among them.
        ExceptionGroup: the exceptions of arms, with the names of these.
    """
    arms = [(arm,) if isinstance(arm, str) else arm for arm in arms]
    chosen, workers = _chosen(arms, doc, choices)
    place = place or partial(_place, arms)
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, lambda *_: sys.exit(130))  # `fit` ends early at KeyboardInterrupt
    for now in (False, True):
        failed = {}
        some = [arm for arm in chosen if (arm[0] in last) == now]
        with _results(run, some, workers) as results:
            for arm, result in results:
                try:
                    new = rounded(result(), spec) if spec else result()
                except Exception as error:
                    failed[", ".join(arm)] = error
                    print(*arm, repr(error), flush=True)
                    continue
                print(*arm, new, flush=True)
                write(path, place(read(path), new, *arm), indent=indent)
        if failed:
            raise ExceptionGroup(f"not recorded: {'; '.join(failed)}", list(failed.values()))


def _chosen(arms: list[Keys], doc: str, choices: dict) -> tuple[list[Keys], int]:
    """Return the arms that the command line names, and how many of them run at a time."""
    known = list(dict.fromkeys(key for arm in arms for key in arm))
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("arms", nargs="*", help=f"of {', '.join(map(repr, known))}; or all")
    parser.add_argument("--workers", type=int, default=1, help="how many arms run at a time")
    for name, some in choices.items():
        parser.add_argument(f"--{name}", choices=some, help="all where left out")
    options = parser.parse_args()
    for key in options.arms:
        require_one_of(known, arm=key)
    sets = [set(options.arms or known)]
    sets += [{getattr(options, name)} for name in choices if getattr(options, name)]
    return [arm for arm in arms if all(some & set(arm) for some in sets)], options.workers


@contextmanager
def _results(run: Callable, arms: list[Keys], workers: int) -> Iterator[Iterator]:
    """Give every arm as soon as it is done, with a function that returns its result or raises its exception."""
    if workers == 1:
        yield ((arm, partial(run, *arm)) for arm in arms)
        return
    with processes(workers) as pool:
        jobs = {pool.submit(run, *arm): arm for arm in arms}
        try:
            yield ((jobs[job], job.result) for job in as_completed(jobs))
        except BaseException:  # Ctrl-C: leaving the pool would wait for all arms
            for process in active_children():
                process.terminate()
            raise


def _place(order: list[Keys], record: Record, new: Any, *arm: str) -> Record:
    """Return the record with the result of an arm, all in order."""
    placed: Record = {}
    for keys in order:
        *outer, name = keys
        part = reduce(lambda part, key: part.get(key, {}), outer, record)
        if keys == arm or name in part:
            inner = reduce(lambda part, key: part.setdefault(key, {}), outer, placed)
            inner[name] = new if keys == arm else part[name]
    return placed
