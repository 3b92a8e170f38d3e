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

from course_lib.train import TrainingConfig, fit
from tests.helpers.killed_training import RUNS, STEPS, Batches, Tied, loss, train


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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a process that forks kills its children")
def test_resume_after_a_kill_at_any_step_is_exact(tmp_path):
    killing = [sys.executable, "-m", "tests.helpers.killed_training", str(tmp_path / "killed")]
    subprocess.run(killing, cwd=Path(__file__).parents[2], check=True)
    left = {run: holds(f"{tmp_path}/killed.{run}") for run in RUNS}
    assert [len(state["history"]["losses"]) for state in left.values()] == [12, 12, 12]
    wanted = {run: train(tmp_path / "whole", run) for run in RUNS}
    for run, (theirs, whole) in wanted.items():
        ours, history = train(tmp_path / "killed", run)
        assert len(whole.losses) == STEPS and len(whole.scores) == STEPS / 2
        assert (history.losses, history.scores) == (whole.losses, whole.scores)
        assert same(weights(ours), weights(theirs))
    assert not list(tmp_path.glob("*.part"))
    losses = [whole.losses for _, whole in wanted.values()]
    assert losses[0] != losses[1] != losses[2]
    theirs, whole = wanted["float32"]
    last = holds(tmp_path / "whole.float32")["weights"]
    assert max(whole.scores, key=whole.scores.get) < STEPS and not same(last, weights(theirs))


# --- interrupted -----------------------------------------------------------------------------


def stopping(at):
    def callback(progress):
        if progress.step == at and progress.stopped is None:
            raise KeyboardInterrupt

    return callback


@pytest.mark.parametrize("where", ["torch.save", "os.fsync", "os.replace"])
def test_interrupt_while_saving_leaves_the_previous_checkpoint(tmp_path, monkeypatch, where):
    train(tmp_path / "run", "float32", callback=stopping(5))
    before = (tmp_path / "run.float32").read_bytes()

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(where, interrupt)
    _, history = train(tmp_path / "run", "float32")
    assert history.stopped == "interrupted" and len(history.losses) == 6
    assert [file.name for file in tmp_path.iterdir()] == ["run.float32"]
    assert (tmp_path / "run.float32").read_bytes() == before


# --- finished --------------------------------------------------------------------------------


def never(*_):
    raise AssertionError("nothing is left to do")


@pytest.mark.parametrize(
    ("settings", "stopped"),
    [
        ({}, "steps"),
        ({"target_score": -9.0, "steps": 99}, "target_score"),
        ({"patience": 1, "steps": 99}, "patience"),
    ],
)
def test_resume_of_a_finished_run_returns_at_once(tmp_path, monkeypatch, settings, stopped):
    wanted, first = train(tmp_path / "run", "float32", **settings)
    assert first.stopped == stopped
    monkeypatch.setattr(Batches, "__iter__", lambda self: (never() for _ in "."))
    ours, history = train(tmp_path / "run", "float32", never, evaluate=never, **settings)
    assert history == first and not ours.training
    assert same(weights(ours), weights(wanted))


def test_resume_with_more_steps_continues_from_the_last_weights(saved):
    ours, history = train(saved, "float32")
    wanted, whole = train(f"{saved}-anew", "float32")
    assert history.losses == whole.losses and len(history.losses) == STEPS
    assert same(weights(ours), weights(wanted))


def test_checkpoints_do_not_change_training(tmp_path):
    ours, history = train(tmp_path / "run", "float32", checkpoint_every=1)
    again, anew = train(tmp_path / "run", "float32", resume=False)
    theirs, bare = train(tmp_path / "run", "float32", checkpoint_path=None, resume=False)
    assert history.losses == anew.losses == bare.losses
    assert same(weights(ours), weights(theirs)) and same(weights(again), weights(theirs))


def test_resume_restores_the_global_random_state(tmp_path):
    model, before = Tied(), torch.get_rng_state()
    for steps in (2, 4):
        config = TrainingConfig(checkpoint_path=tmp_path / "run", resume=steps == 4)
        fit(model, Batches(), loss, steps=steps, config=config)
    assert torch.equal(torch.get_rng_state(), before)


# --- the file --------------------------------------------------------------------------------


def refused(call, says):
    with pytest.raises(ValueError, match=says):
        call()


@pytest.mark.usefixtures("without_annotations")
@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"steps": 5}, r"steps=5, but .*run.float32 has 6; it must be 6 or more"),
        ({"seed": 4}, r"seed=4, but .*has seed=3; resume with what .* anew with resume=False"),
        ({"lr": 0.1}, r"lr=0.1, but .* has lr='a function'"),
        ({"patience": None, "evaluate": None}, r"evaluate=None, but .* has evaluate='a function'"),
    ],
)
def test_resume_with_other_settings_raises_value_error(saved, settings, says):
    refused(lambda: train(saved, "float32", **settings), says)
    assert len(holds(f"{saved}.float32")["history"]["losses"]) == 6


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (nn.Linear(3, 4), r"model.weight='float32 \(4, 3\)', but .* has model.weight='float32 \(2, 3\)'"),
        (nn.Linear(3, 2, bias=False), r"model.bias=None, but .* has model.bias='float32 \(2,\)'"),
    ],
)  # fmt: skip
def test_resume_with_another_model_raises_value_error(tmp_path, model, says):
    config = TrainingConfig(checkpoint_path=tmp_path / "file", resume=True)
    given = {"steps": 2, "config": config}
    fit(nn.Linear(3, 2), [torch.ones(3)] * 2, lambda model, x: model(x).sum(), **given)
    before = weights(model)
    refused(lambda: fit(model, [torch.ones(3)], lambda model, x: x, **given), says)
    assert same(before, weights(model))


def sgd(model, **settings):
    return torch.optim.SGD(model.parameters(), **{"lr": 0.1, "momentum": 0.9} | settings)


def apart(model):
    """Matrices in one group, vectors in another."""
    matrices = [one for one in model.parameters() if one.dim() > 1]
    vectors = [one for one in model.parameters() if one.dim() <= 1]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "lr": 0.02}]
    return torch.optim.AdamW(groups, lr=0.01, amsgrad=True)


def descend(make, file, lr=None, **settings):
    """Train a fresh `Tied` by an optimizer of one's own."""
    model = Tied()
    config = TrainingConfig(
        checkpoint_path=file, checkpoint_every=3, resume=True, max_grad_norm=0.5
    )
    settings = {"steps": 12, "optimizer": make(model), "config": config, "lr": lr} | settings
    return model, fit(model, Batches(), loss, **settings)


@pytest.mark.parametrize(
    ("make", "lr"), [(sgd, 0.02), (apart, None), (apart, lambda step: 0.05 / step)]
)
def test_an_optimizer_of_the_callers_resumes_bit_for_bit(tmp_path, make, lr):
    wanted, whole = descend(make, tmp_path / "whole", lr)
    for step in (2, 5, 10):
        _, history = descend(make, tmp_path / "run", lr, callback=stopping(step))
        assert history.stopped == "interrupted" and len(history.losses) == step
    ours, history = descend(make, tmp_path / "run", lr)
    assert history.losses == whole.losses and len(whole.losses) == 12
    assert same(weights(ours), weights(wanted))


def one_group_each(model):
    return torch.optim.SGD([{"params": [one]} for one in model.parameters()], lr=0.1, momentum=0.9)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (apart, r"optimizer='AdamW', but .* has optimizer='SGD'; resume with what it was written"),
        (lambda model: sgd(model, momentum=0.8), r"groups\[0\].momentum=0.8, but .* has .*momentum=0.9;"),
        (lambda model: sgd(model, lr=0.2), r"optimizer.param_groups\[0\].lr=0.2, but .* has .*lr=0.1;"),
        (one_group_each, r"optimizer.param_groups\[0\].params=1, but .* has .*params=5;"),
    ],
)  # fmt: skip
def test_another_optimizer_is_refused(tmp_path, make, says):
    descend(sgd, tmp_path / "run", steps=3)
    refused(lambda: descend(make, tmp_path / "run"), says)


# --- files -----------------------------------------------------------------------------------


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


def flip_a_bit(whole):
    """Of a weight: `torch.load` alone does not look at checksums."""
    first, *_ = torch.load(io.BytesIO(whole), weights_only=True)["weights"].values()
    place = whole.index(first.numpy().tobytes())
    return whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]


@pytest.mark.parametrize(
    "damage",
    [
        flip_a_bit,
        lambda whole: b"",
        lambda whole: whole[:-1],
        lambda whole: saving({"weights": torch.ones(3)}),
        lambda whole: saving(torch.ones(3)),
        lambda whole: saving(Burglar()),
        lambda whole: pickle.dumps(Burglar()),
    ],
)
def test_damaged_checkpoint_raises_value_error_and_runs_no_code(saved, damage):
    file = Path(f"{saved}.float32")
    file.write_bytes(damage(file.read_bytes()))
    says = f"{re.escape(repr(str(file)))} is no checkpoint of fit, or is damaged; delete it"
    refused(lambda: train(saved, "float32"), says)
    refused(lambda: train(saved, "float32", resume=False), says)
    assert not BROKEN_INTO
    file.unlink()
    _, history = train(saved, "float32", resume=False)
    assert history.stopped == "steps"


@pytest.mark.parametrize("place", ["", "missing/run"])
def test_invalid_checkpoint_path_raises_before_training(tmp_path, place):
    says = f"checkpoint_path={re.escape(repr(str(tmp_path / place)))} is no file in a folder that"
    config = TrainingConfig(checkpoint_path=tmp_path / place)
    refused(lambda: fit(Tied(), [], never, steps=1, config=config), says)


def saved_to(path, **settings):
    fit(Tied(), Batches(), loss, steps=2, config=TrainingConfig(checkpoint_path=path, **settings))


@pytest.mark.parametrize("resume", [False, True])
def test_a_file_that_is_no_checkpoint_is_not_overwritten(tmp_path, resume):
    notes = tmp_path / "notes.txt"
    notes.write_text("mine")
    refused(
        lambda: saved_to(notes, resume=resume), "is no checkpoint of fit, or is damaged; delete"
    )
    assert notes.read_text() == "mine"
