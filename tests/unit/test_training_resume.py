"""Training that was killed, interrupted or finished, and goes on."""

import io
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from course_lib.training import fit
from tests.unit.killed_training import PRECISIONS, STEPS, Batches, Tied, loss, train


def weights(model):
    return {name: value.clone() for name, value in model.state_dict().items()}


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def holds(file):
    return torch.load(file, weights_only=True)


@pytest.fixture
def saved(tmp_path):
    """A run of 6 steps of `train`, saved at step 3 and at its end."""
    train(tmp_path / "run", "float32", steps=6)
    return tmp_path / "run"


# --- killed ----------------------------------------------------------------------------------


def start(*arguments):
    script = Path(__file__).with_name("killed_training.py")
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(script), *map(str, arguments)]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)


def ended(process):
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a process that forks kills its children")
def test_killed_at_any_moment_it_comes_to_the_same_losses_and_weights(tmp_path):
    whole = start("train", tmp_path / "whole", tmp_path / "wanted")
    ended(start("kill", tmp_path / "killed"))
    ended(whole)
    left = {precision: holds(f"{tmp_path}/killed.{precision}") for precision in PRECISIONS}
    assert [len(state["history"]["losses"]) for state in left.values()] == [12, 12]
    ended(start("train", tmp_path / "killed", tmp_path / "got"))
    assert not list(tmp_path.glob("*.part"))
    wanted, got = torch.load(tmp_path / "wanted"), torch.load(tmp_path / "got")
    for precision in PRECISIONS:
        assert len(wanted[precision][0]) == STEPS and len(wanted[precision][1]) == STEPS / 2
        assert got[precision][:2] == wanted[precision][:2]
        assert same(got[precision][2], wanted[precision][2])
    assert wanted["float32"][0] != wanted["bfloat16"][0]
    best = max(wanted["float32"][1], key=wanted["float32"][1].get)
    last = holds(tmp_path / "whole.float32")["weights"]
    assert best < STEPS and not same(last, wanted["float32"][2])  # the best, not the last


# --- interrupted -----------------------------------------------------------------------------


def stopping(at):
    def watch(progress):
        if progress.step == at and progress.stopped is None:
            raise KeyboardInterrupt

    return watch


def test_interrupted_again_and_again_it_comes_to_the_same(tmp_path):
    wanted, whole = train(tmp_path / "whole", "float32")
    for step in range(1, STEPS):
        _, history = train(tmp_path / "run", "float32", watch=stopping(step), save_every=1)
        assert history.stopped == "interrupted" and len(history.losses) == step
    ours, history = train(tmp_path / "run", "float32")
    assert history.losses == whole.losses and history.scores == whole.scores
    assert same(weights(ours), weights(wanted)) and history.stopped == "steps"


@pytest.mark.parametrize("where", ["torch.save", "os.fsync", "os.replace"])
def test_an_interrupt_while_saving_leaves_the_file_before(tmp_path, monkeypatch, where):
    train(tmp_path / "run", "float32", watch=stopping(5))
    before = (tmp_path / "run.float32").read_bytes()

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(where, interrupt)
    _, history = train(tmp_path / "run", "float32")
    assert history.stopped == "interrupted" and len(history.losses) == 6
    assert [file.name for file in tmp_path.iterdir()] == ["run.float32"]
    assert (tmp_path / "run.float32").read_bytes() == before


def test_a_failure_leaves_the_file_before(saved):
    def rate(step):
        return 0.05 / step if step < 9 else "fast"

    with pytest.raises(ValueError, match="rate gave fast at step 9"):
        train(saved, "float32", rate, save_every=1)
    assert len(holds(f"{saved}.float32")["history"]["losses"]) == 8


# --- finished --------------------------------------------------------------------------------


def never(*_):
    raise AssertionError("nothing is left to do")


@pytest.mark.parametrize(
    ("settings", "stopped"),
    [
        ({}, "steps"),
        ({"goal": -9.0, "steps": 99}, "goal"),
        ({"patience": 1, "steps": 99}, "patience"),
    ],
)
def test_a_finished_run_is_returned_at_once(tmp_path, monkeypatch, settings, stopped):
    wanted, first = train(tmp_path / "run", "float32", **settings)
    assert first.stopped == stopped
    monkeypatch.setattr(Batches, "__iter__", lambda self: (never() for _ in "."))
    ours, history = train(tmp_path / "run", "float32", never, evaluate=never, **settings)
    assert history == first and not ours.training
    assert same(weights(ours), weights(wanted))


def test_more_steps_go_on_from_the_last_weights_not_the_best(saved):
    ours, history = train(saved, "float32")
    wanted, whole = train(f"{saved}-anew", "float32")
    assert history.losses == whole.losses and len(history.losses) == STEPS
    assert same(weights(ours), weights(wanted))


def test_the_seconds_add_up(saved):
    before = holds(f"{saved}.float32")["history"]["seconds"]
    seen = []
    _, history = train(saved, "float32", watch=seen.append)
    assert 0 < before < seen[0].seconds <= seen[-1].seconds == history.seconds
    assert [progress.step for progress in seen] == [7, 8, 9, 10, 11, 12, 13, 14]


def test_without_a_file_it_starts_at_the_beginning_and_without_resume_it_starts_anew(tmp_path):
    _, first = train(tmp_path / "run", "float32", steps=4)
    _, again = train(tmp_path / "run", "float32", steps=4, resume=False)
    assert again.losses == first.losses and again.seconds != first.seconds


def test_saving_changes_nothing(tmp_path):
    ours, history = train(tmp_path / "run", "float32", save_every=1)
    theirs, bare = train(tmp_path / "run", "float32", save_to=None, resume=False)
    assert history.losses == bare.losses and same(weights(ours), weights(theirs))


def test_the_worlds_random_numbers_are_left_as_they_were(saved):
    model, before = Tied(), torch.get_rng_state()
    fit(model, Batches(), loss, steps=2, save_to=f"{saved}.other")
    fit(model, Batches(), loss, steps=4, save_to=f"{saved}.other", resume=True)
    assert torch.equal(torch.get_rng_state(), before)


# --- the file --------------------------------------------------------------------------------


def test_the_file_holds_numbers_and_words_only(saved):
    state = holds(f"{saved}.float32")
    assert state["history"]["stopped"] == "steps" and len(state["history"]["losses"]) == 6
    assert state["settings"] == {
        "rate": "a function", "clip": 0.5, "accumulate": 2, "weight": "a function", "seed": 3,
        "precision": "float32", "evaluate": "a function", "every": 2, "goal": None, "patience": 9,
        "device": "cpu",
    }  # fmt: skip
    assert "first.weight: float32 (6, 6)" in state["layout"]
    assert "last.weight: first.weight" in state["layout"]
    assert state["random"].keys() == {"cpu"}


def refused(call, says):
    with pytest.raises(ValueError, match=says) as caught:
        call()
    return caught


@pytest.mark.usefixtures("without_annotations")
@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"steps": 5}, r"steps=5, but .*run.float32 has 6 steps; it must be 6 or more"),
        (
            {"seed": 4},
            r"seed=4, but .*run.float32 has seed=3; resume with what it was written with",
        ),
        ({"accumulate": 3}, r"accumulate=3, but .* has accumulate=2; .* anew with resume=False"),
        ({"clip": 1}, r"clip=1, but .* has clip=0.5"),
        ({"weight": None}, r"weight=None, but .* has weight='a function'"),
        ({"rate": 0.1}, r"rate=0.1, but .* has rate='a function'"),
        ({"every": 3}, r"every=3, but .* has every=2"),
        ({"goal": 1}, r"goal=1, but .* has goal=None"),
        ({"patience": None}, r"patience=None, but .* has patience=9"),
        ({"patience": None, "evaluate": None}, r"evaluate=None, but .* has evaluate='a function'"),
        ({"save_every": 0}, r"save_every=0 is below 1"),
        ({"resume": 1}, r"resume=1, save_to=.*; resume must be True or False"),
        ({"save_to": None}, r"resume=True, save_to=None; resume must .* and needs save_to, a file"),
    ],
)
def test_settings_that_disagree_are_refused_by_name(saved, settings, says):
    refused(lambda: train(saved, "float32", **settings), says)
    assert len(holds(f"{saved}.float32")["history"]["losses"]) == 6


def test_another_precision_is_refused(saved):
    says = "precision='bfloat16', but .* has precision='float32'"
    refused(lambda: train(saved, "bfloat16", save_to=f"{saved}.float32"), says)


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (
            nn.Linear(3, 4),
            r"model has weight: float32 \(4, 3\), but .* has weight: float32 \(2, 3\)",
        ),
        (nn.Linear(3, 2).double(), r"model has weight: float64 \(2, 3\), but .* float32 \(2, 3\)"),
        (nn.Linear(3, 2, bias=False), r"model has nothing more, but .* has bias: float32 \(2,\)"),
        (nn.Sequential(nn.Linear(3, 2)), r"model has 0.weight: .*, but .* has weight: "),
    ],
)
def test_another_model_is_refused(tmp_path, model, says):
    given = {"steps": 2, "save_to": tmp_path / "file", "resume": True}
    fit(nn.Linear(3, 2), [torch.ones(3)] * 2, lambda model, x: model(x).sum(), **given)
    before = weights(model)
    refused(lambda: fit(model, [torch.ones(3).double()], lambda model, x: x, **given), says)
    assert same(before, weights(model))


def test_parameters_that_are_no_longer_tied_are_refused(saved, monkeypatch):
    build = Tied.__init__

    def untie(self):
        build(self)
        self.last.weight = nn.Parameter(self.last.weight.detach().clone())

    monkeypatch.setattr(Tied, "__init__", untie)
    says = r"model has last.weight: float32 \(6, 6\), but .* has last.weight: first.weight"
    refused(lambda: train(saved, "float32"), says)


def saving(value):
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getvalue()


BROKEN_INTO = []


def break_in():
    BROKEN_INTO.append("this process")


class Burglar:
    def __reduce__(self):
        return break_in, ()


@pytest.mark.parametrize(
    "damage",
    [
        lambda whole: b"",
        lambda whole: b"losses: 3, 2, 1",
        lambda whole: whole[:100],
        lambda whole: whole[: len(whole) // 2],
        lambda whole: whole[:-1],
        lambda whole: saving({"weights": torch.ones(3)}),
        lambda whole: saving(torch.ones(3)),
        lambda whole: saving(Burglar()),
        lambda whole: pickle.dumps(Burglar()),
    ],
)
def test_a_file_that_is_damaged_or_another_is_refused_by_name_and_nothing_in_it_runs(saved, damage):
    file = Path(f"{saved}.float32")
    file.write_bytes(damage(file.read_bytes()))
    says = f"{re.escape(repr(str(file)))} is no checkpoint of fit, or is damaged; start anew with"
    refused(lambda: train(saved, "float32"), says)
    assert not BROKEN_INTO
    _, history = train(saved, "float32", resume=False)
    assert history.stopped == "steps"


def test_a_bit_that_turned_shows(saved):
    """Or lies in the padding of the file, and does no harm."""
    file, noticed = Path(f"{saved}.float32"), 0
    whole, wanted = file.read_bytes(), train(saved, "float32", steps=6)[1]
    places = range(0, len(whole), len(whole) // 40)
    for place in places:
        turned = bytearray(whole)
        turned[place] ^= 1
        file.write_bytes(turned)
        try:
            assert train(saved, "float32", steps=6)[1] == wanted
        except ValueError as error:
            assert "is damaged" in str(error)
            noticed += 1
    assert noticed > 10


def test_a_place_where_no_file_can_be_is_refused_before_training(tmp_path):
    for place in (tmp_path, tmp_path / "missing/run", str(tmp_path)):
        says = f"save_to={re.escape(repr(str(place)))} must be a file in a folder that exists"
        refused(lambda place=place: fit(Tied(), [], never, steps=1, save_to=place), says)


def test_a_model_with_more_than_tensors_in_its_state_is_refused_before_training(tmp_path):
    model = type("Extra", (nn.Linear,), {"get_extra_state": lambda self: {"seen": 3}})(3, 2)
    says = "model has a dict as _extra_state in its state; save_to needs tensors"
    refused(lambda: fit(model, [], loss, steps=1, save_to=tmp_path / "run"), says)
