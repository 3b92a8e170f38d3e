"""The table of an experiment: which runs the command makes, in how many processes, and what stays when one fails."""

import itertools
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import pytest
import torch

from course_lib.experiments.runs import best, by_rate, fill, grid, path_of, read, sweep, where
from tests.helpers.runs import PLAN, failing, measured


@pytest.fixture
def command(monkeypatch, tmp_path):
    """Run an experiment with words on its command line; return the rows of its table."""
    table, threads = tmp_path / "table", torch.get_num_threads()
    handler = signal.getsignal(signal.SIGINT)

    def call(*words, run=measured, plan=PLAN, **options):
        monkeypatch.setattr(sys, "argv", ["experiment", *words])
        fill(table, run, plan, "What is measured?\n\nMore.", **options)
        return read(table)

    call.table = table
    yield call
    torch.set_num_threads(threads)
    signal.signal(signal.SIGINT, handler)


def ordered(rows):
    return sorted(rows, key=str)


def test_two_workers_fill_the_table_as_one_does_and_what_is_there_is_not_run_again(command):
    one = command(spec=".2f")
    assert [where(one, **settings) for settings in PLAN] == [
        [settings | {"length": len(settings["part"] + settings["name"]),
                     "third": round(len(settings["name"]) / 3, 2), "threads": 1}]
        for settings in PLAN
    ]  # fmt: skip
    assert command(run=failing) == one, "nothing is left to run"
    path_of(command.table).unlink()
    assert ordered(command("--workers", "2", spec=".2f")) == ordered(one)
    assert os.listdir(command.table.parent) == ["table.jsonl"]


def test_values_choose_runs(command):
    rows = command("longer")
    assert {(row["part"], row["name"]) for row in rows} == {
        ("first", "longer"),
        ("second", "longer"),
    }
    rows = command("second", "short")
    assert len(rows) == 3 and where(rows, part="second", name="short")
    with pytest.raises(ValueError, match="no setting has the value 'shorter'"):
        command("shorter")


def test_a_plan_may_depend_on_the_rows_so_far(command):
    def plan(rows):
        yield {"part": "first", "name": "x"}
        for row in rows:
            if row["length"] < 9:
                yield {"part": "first", "name": row["name"] + "x"}

    assert [row["name"] for row in command(plan=plan)] == ["x", "xx", "xxx", "xxxx"]


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_run_that_raises_is_named_and_the_others_are_recorded(command, workers):
    with pytest.raises(
        ExceptionGroup, match="'first', 'name': 'longer'.*|'second', 'name'"
    ) as raised:
        command("--workers", workers, run=failing)
    assert len(raised.value.exceptions) == 2
    assert {row["name"] for row in read(command.table)} == {"short", "the longest"}


def test_a_line_that_was_cut_off_is_run_again(command):
    whole, path = command("first"), path_of(command.table)
    path.write_text(path.read_text(encoding="utf-8")[:-9], encoding="utf-8")
    assert read(command.table) == whole[:2]
    assert ordered(command("first")) == ordered(whole)


def test_the_best_learning_rate_has_the_best_mean():
    rows = [
        {"arm": arm, "lr": lr, "seed": seed, "right": (7 * lr + 3 * seed) % 5}
        for arm, lr, seed in itertools.product("ab", (8.0, 1.0, 2.0, 4.0), range(3))
    ]
    assert [row for row in rows if row["arm"] == "b" and row["seed"] == 2] == where(
        rows, arm="b", seed=2
    )
    means = {lr: sum((7 * lr + 3 * seed) % 5 for seed in range(3)) / 3 for lr in (1, 2, 4, 8)}
    for better in (max, min):
        lr, right = best(where(rows, arm="a"), "right", better)
        assert means[lr] == better(means.values())
        assert right == [(7 * lr + 3 * seed) % 5 for seed in range(3)]
    assert list(by_rate(rows, "right")) == [1, 2, 4, 8] and by_rate(rows, "loss") == {}
    assert grid(a=[1, 2], b="xyz")[4] == {"a": 2, "b": "y"}


@pytest.mark.skipif(os.name == "nt", reason="needs process groups and signals of Unix")
@pytest.mark.parametrize(("workers", "whole_group"), [("1", True), ("2", True), ("2", False)])
def test_ctrl_c_ends_an_experiment_and_keeps_what_is_recorded(tmp_path, workers, whole_group):
    table = tmp_path / "table"
    words = [sys.executable, "-m", "tests.helpers.runs", str(table), "--workers", workers, "first"]
    process = subprocess.Popen(words, start_new_session=True)
    try:
        deadline = time.monotonic() + 120
        while not read(table) and time.monotonic() < deadline:
            time.sleep(0.1)
        time.sleep(1)  # the next ones train
        os.killpg(process.pid, signal.SIGINT) if whole_group else process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert [row["name"] for row in read(table)] == ["short"]
        with pytest.raises(ProcessLookupError):  # no process of the group is left
            for _ in range(100):
                os.killpg(process.pid, 0)
                time.sleep(0.1)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.parametrize("best_rate", [0.25, 1, 8])
def test_a_sweep_ends_when_the_best_rate_has_a_worse_one_on_both_sides_and_all_seeds(best_rate):
    arm, rows, rounds = {"arm": "wide"}, [{"arm": "narrow", "lr": 64, "seed": 0, "loss": 0}], 0
    while missing := [
        one for one in sweep(rows, arm, "loss", start=1, better=min) if not where(rows, **one)
    ]:
        rows += [one | {"loss": abs(one["lr"] - best_rate) + one["seed"]} for one in missing]
        rounds += 1
    own = where(rows, **arm)
    tried = sorted({row["lr"] for row in own})
    least, most = min(best_rate, 1) / 2, 2 * max(best_rate, 1)
    assert tried == [2.0**n for n in range(-9, 9) if least <= 2.0**n <= most]
    assert {row["lr"]: sum(other["lr"] == row["lr"] for other in own) for row in own} == {
        lr: 3 if lr == best_rate else 1 for lr in tried
    }
    assert rounds < 8


def test_a_sweep_ends_where_enough_is_reached_and_compares_the_seeds_that_it_is_told_to():
    rows = [{"arm": 1, "lr": 1, "seed": 0, "share": 0.999}]
    planned = sweep(rows, {"arm": 1}, "share", start=1, enough=0.99)
    assert planned == [{"arm": 1, "lr": 1, "seed": seed} for seed in range(3)]
    rows = [
        {"arm": 1, "lr": lr, "seed": seed, "share": lr * (1 - 3 * seed)}
        for lr in (1, 2)
        for seed in (0, 1)
    ]
    planned = sweep(rows, {"arm": 1}, "share", start=1, compared=2)
    assert {one["seed"] for one in planned} == {0, 1}
    assert {one["lr"] for one in planned} == {0.5, 1, 2}, (
        "2 has the best first seed, and no better mean"
    )
