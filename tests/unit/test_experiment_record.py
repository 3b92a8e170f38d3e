"""The command of an experiment: which arms run, in how many processes, and what is recorded when one fails."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import pytest
import torch

from course_lib.experiments.record import read, run_arms, write
from tests.helpers.arms import ARMS, failing, measured


@pytest.fixture
def command(monkeypatch, tmp_path):
    """Run an experiment with words on its command line; return the text of its record."""
    path, threads = tmp_path / "record.json", torch.get_num_threads()
    handler = signal.getsignal(signal.SIGINT)

    def call(*words, run=measured, arms=ARMS, **options):
        monkeypatch.setattr(sys, "argv", ["experiment", *words])
        run_arms(path, arms, run, "What is measured?\n\nMore.", **options)
        return path.read_text(encoding="utf-8")

    call.path = path
    yield call
    torch.set_num_threads(threads)
    signal.signal(signal.SIGINT, handler)


def test_two_workers_write_the_record_that_one_writes(command):
    one = command(spec=".2f")
    recorded = read(command.path)
    assert [(part, name) for part, arms in recorded.items() for name in arms] == ARMS
    assert recorded["second"]["longer"] == {"length": 12, "third": 2.0, "threads": 1}
    assert recorded["first"]["short"]["third"] == 1.67
    command.path.unlink()
    assert command("--workers", "2", spec=".2f") == one
    assert os.listdir(command.path.parent) == [command.path.name]


@pytest.mark.parametrize(
    ("words", "run"),
    [
        (["longer"], [("first", "longer"), ("second", "longer")]),
        (["second"], ARMS[3:]),
        (["longer", "short", "--part", "first"], ARMS[:2]),
    ],
)
def test_words_choose_arms_by_their_keys_and_the_others_stay(command, words, run):
    kept = {part: {name: 0 for one, name in ARMS if one == part} for part in ("first", "second")}
    write(command.path, kept)
    command(*words, part=["first", "second"])
    recorded = read(command.path)
    assert [(part, name) for part, name in ARMS if recorded[part][name]] == run
    with pytest.raises(ValueError, match="arm='shorter' is unknown"):
        command("shorter")


def test_arms_that_read_the_record_wait_for_the_others(command):
    def run(name):
        return sorted(read(command.path)) if name == "sum" else 1

    command(run=run, arms=["a", "sum", "b"], last=["sum"])
    assert list(read(command.path).items()) == [("a", 1), ("sum", ["a", "b"]), ("b", 1)]


def test_an_arm_without_a_key_of_its_own_is_placed_by_the_experiment(command):
    command(
        run=len, arms=["b", "aa"], place=lambda record, new, arm: record | {f"{arm} {new}": new}
    )
    assert read(command.path) == {"b 1": 1, "aa 2": 2}


@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_arm_that_raises_is_named_and_the_others_are_recorded(command, workers):
    with pytest.raises(ExceptionGroup, match="first, longer; second, longer|second, longer; first"):
        command("--workers", workers, run=failing)
    recorded = read(command.path)
    assert [list(arms) for arms in recorded.values()] == [["short", "the longest"]] * 2


@pytest.mark.skipif(os.name == "nt", reason="needs process groups and signals of Unix")
@pytest.mark.parametrize(("workers", "whole_group"), [("1", True), ("2", True), ("2", False)])
def test_ctrl_c_ends_an_experiment_and_keeps_what_is_recorded(tmp_path, workers, whole_group):
    path = tmp_path / "record.json"
    words = [sys.executable, "-m", "tests.helpers.arms", str(path), "--workers", workers, "first"]
    process = subprocess.Popen(words, start_new_session=True)
    try:
        deadline = time.monotonic() + 120
        while not path.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        time.sleep(1)  # the next arms train
        os.killpg(process.pid, signal.SIGINT) if whole_group else process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert list(read(path)["first"]) == ["short"]
        with pytest.raises(ProcessLookupError):  # no process of the group is left
            for _ in range(100):
                os.killpg(process.pid, 0)
                time.sleep(0.1)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
