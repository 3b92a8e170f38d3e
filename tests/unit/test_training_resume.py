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

from course_lib.training import TrainingConfig, fit
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


def start(*arguments):
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.helpers.killed_training", *map(str, arguments)]
    root = Path(__file__).parents[2]
    return subprocess.Popen(command, cwd=root, env=environment, stderr=subprocess.PIPE, text=True)


def ended(process):
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a process that forks kills its children")
def test_resume_after_a_kill_at_any_step_is_exact(tmp_path):
    whole = start("train", tmp_path / "whole", tmp_path / "wanted")
    ended(start("kill", tmp_path / "killed"))
    ended(whole)
    left = {run: holds(f"{tmp_path}/killed.{run}") for run in RUNS}
    assert [len(state["history"]["losses"]) for state in left.values()] == [12, 12, 12]
    ended(start("train", tmp_path / "killed", tmp_path / "got"))
    assert not list(tmp_path.glob("*.part"))
    wanted, got = torch.load(tmp_path / "wanted"), torch.load(tmp_path / "got")
    for run in RUNS:
        assert len(wanted[run][0]) == STEPS and len(wanted[run][1]) == STEPS / 2
        assert got[run][:2] == wanted[run][:2]
        assert same(got[run][2], wanted[run][2])
    assert wanted["float32"][0] != wanted["bfloat16"][0] != wanted["momentum"][0]
    best = max(wanted["float32"][1], key=wanted["float32"][1].get)
    last = holds(tmp_path / "whole.float32")["weights"]
    assert best < STEPS and not same(last, wanted["float32"][2])  # the best, not the last


# --- interrupted -----------------------------------------------------------------------------


def stopping(at):
    def callback(progress):
        if progress.step == at and progress.stopped is None:
            raise KeyboardInterrupt

    return callback


def test_resume_after_repeated_interrupts_is_exact(tmp_path):
    wanted, whole = train(tmp_path / "whole", "float32")
    for step in range(1, STEPS):
        _, history = train(tmp_path / "run", "float32", callback=stopping(step), checkpoint_every=1)
        assert history.stopped == "interrupted" and len(history.losses) == step
    ours, history = train(tmp_path / "run", "float32")
    assert history.losses == whole.losses and history.scores == whole.scores
    assert same(weights(ours), weights(wanted)) and history.stopped == "steps"


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


def test_failure_leaves_the_previous_checkpoint(saved):
    def lr(step):
        return 0.05 / step if step < 9 else -1.0

    with pytest.raises(ValueError, match="lr is -1.0 at step 9"):
        train(saved, "float32", lr, checkpoint_every=1)
    assert len(holds(f"{saved}.float32")["history"]["losses"]) == 8


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


def test_resume_adds_up_the_seconds(saved):
    before = holds(f"{saved}.float32")["history"]["seconds"]
    seen = []
    _, history = train(saved, "float32", callback=seen.append)
    assert 0 < before < seen[0].seconds <= seen[-1].seconds == history.seconds
    assert [progress.step for progress in seen] == [7, 8, 9, 10, 11, 12, 13, 14]


def test_training_starts_anew_without_a_checkpoint_or_without_resume(tmp_path):
    _, first = train(tmp_path / "run", "float32", steps=4)
    _, again = train(tmp_path / "run", "float32", steps=4, resume=False)
    assert again.losses == first.losses and again.seconds != first.seconds


def test_saving_checkpoints_does_not_change_training(tmp_path):
    ours, history = train(tmp_path / "run", "float32", checkpoint_every=1)
    theirs, bare = train(tmp_path / "run", "float32", checkpoint_path=None, resume=False)
    assert history.losses == bare.losses and same(weights(ours), weights(theirs))


def test_resume_restores_the_global_random_state(saved):
    model, before = Tied(), torch.get_rng_state()
    for steps in (2, 4):
        config = TrainingConfig(checkpoint_path=f"{saved}.other", resume=steps == 4)
        fit(model, Batches(), loss, steps=steps, config=config)
    assert torch.equal(torch.get_rng_state(), before)


# --- the file --------------------------------------------------------------------------------


def test_checkpoint_holds_tensors_and_plain_values_only(saved):
    state = holds(f"{saved}.float32")
    assert state["history"]["stopped"] == "steps" and len(state["history"]["losses"]) == 6
    settings = state["settings"]
    assert {name: settings[name] for name in settings if "." not in name} == {
        "lr": "a function", "max_grad_norm": 0.5, "gradient_accumulation_steps": 2,
        "token_count": "a function", "seed": 3, "precision": "float32", "evaluate": "a function",
        "every": 2, "target_score": None, "patience": 9, "device": "cpu", "optimizer": "Adam",
    }  # fmt: skip
    assert settings["model.first.weight"] == "float32 (6, 6)"
    assert settings["optimizer.param_groups[0].params"] == 5
    assert settings["optimizer.param_groups[0].betas"] == (0.9, 0.999)
    assert "optimizer.param_groups[0].lr" not in settings  # a schedule sets it


def refused(call, says):
    with pytest.raises(ValueError, match=says) as caught:
        call()
    return caught


@pytest.mark.usefixtures("without_annotations")
@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"steps": 5}, r"steps=5, but .*run.float32 has 6; it must be 6 or more"),
        (
            {"seed": 4},
            r"seed=4, but .*run.float32 has seed=3; resume with what it was written with",
        ),
        (
            {"gradient_accumulation_steps": 3},
            r"gradient_accumulation_steps=3, but .* has gradient_accumulation_steps=2; .* anew with "
            r"resume=False",
        ),
        ({"max_grad_norm": 1}, r"max_grad_norm=1, but .* has max_grad_norm=0.5"),
        ({"token_count": None}, r"token_count=None, but .* has token_count='a function'"),
        ({"lr": 0.1}, r"lr=0.1, but .* has lr='a function'"),
        ({"lr": None}, r"lr=None, but .* has lr='a function'"),
        ({"every": 3}, r"every=3, but .* has every=2"),
        ({"target_score": 1}, r"target_score=1, but .* has target_score=None"),
        ({"patience": None}, r"patience=None, but .* has patience=9"),
        ({"patience": None, "evaluate": None}, r"evaluate=None, but .* has evaluate='a function'"),
    ],
)
def test_resume_with_other_settings_raises_value_error(saved, settings, says):
    refused(lambda: train(saved, "float32", **settings), says)
    assert len(holds(f"{saved}.float32")["history"]["losses"]) == 6


def test_resume_with_another_precision_raises_value_error(saved):
    says = "precision='bfloat16', but .* has precision='float32'"
    refused(lambda: train(saved, "bfloat16", checkpoint_path=f"{saved}.float32"), says)


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (
            nn.Linear(3, 4),
            r"model.weight='float32 \(4, 3\)', but .* has model.weight='float32 \(2, 3\)'; resume with",
        ),
        (nn.Linear(3, 2).double(), r"model.weight='float64 \(2, 3\)', but .*='float32 \(2, 3\)'"),
        (nn.Linear(3, 2, bias=False), r"model.bias=None, but .* has model.bias='float32 \(2,\)'"),
        (nn.Sequential(nn.Linear(3, 2)), r"model.weight=None, but .* has model.weight="),
    ],
)
def test_resume_with_another_model_raises_value_error(tmp_path, model, says):
    config = TrainingConfig(checkpoint_path=tmp_path / "file", resume=True)
    given = {"steps": 2, "config": config}
    fit(nn.Linear(3, 2), [torch.ones(3)] * 2, lambda model, x: model(x).sum(), **given)
    before = weights(model)
    refused(lambda: fit(model, [torch.ones(3).double()], lambda model, x: x, **given), says)
    assert same(before, weights(model))


def sgd(model, **settings):
    return torch.optim.SGD(model.parameters(), **{"lr": 0.1, "momentum": 0.9} | settings)


def apart(model):
    """Matrices in one group, vectors in another."""
    matrices = [one for one in model.parameters() if one.dim() > 1]
    vectors = [one for one in model.parameters() if one.dim() <= 1]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "lr": 0.02}]
    return torch.optim.AdamW(groups, lr=0.01, amsgrad=True)


OPTIMIZERS = {
    "sgd": sgd,
    "adamw": apart,
    "plain adam": lambda model: torch.optim.Adam(model.parameters()),
    "rmsprop": lambda model: torch.optim.RMSprop(model.parameters(), momentum=0.5, lr=0.003),
}


def descend(make, file, lr=None, **settings):
    """Train a fresh `Tied` by an optimizer of one's own."""
    model = Tied()
    config = TrainingConfig(
        checkpoint_path=file, checkpoint_every=3, resume=True, max_grad_norm=0.5
    )
    settings = {"steps": 12, "optimizer": make(model), "config": config, "lr": lr} | settings
    return model, fit(model, Batches(), loss, **settings)


@pytest.mark.parametrize(
    "lr", [None, 0.02, lambda step: 0.05 / step], ids=["own", "number", "schedule"]
)
@pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_an_optimizer_of_the_callers_resumes_bit_for_bit(tmp_path, make, lr):
    wanted, whole = descend(make, tmp_path / "whole", lr)
    for step in (2, 5, 10):
        _, history = descend(make, tmp_path / "run", lr, callback=stopping(step))
        assert history.stopped == "interrupted" and len(history.losses) == step
    ours, history = descend(make, tmp_path / "run", lr)
    assert history.losses == whole.losses and len(whole.losses) == 12
    assert same(weights(ours), weights(wanted))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (apart, r"optimizer='AdamW', but .* has optimizer='SGD'; resume with what it was written"),
        (None, r"optimizer='Adam', but .* has optimizer='SGD'"),
        (
            lambda model: sgd(model, momentum=0.8),
            r"optimizer.param_groups\[0\].momentum=0.8, but .* has .*momentum=0.9;",
        ),
        (
            lambda model: sgd(model, lr=0.2),
            r"optimizer.param_groups\[0\].lr=0.2, but .* has .*lr=0.1;",
        ),
        (
            lambda model: torch.optim.SGD(
                [{"params": [one]} for one in model.parameters()], lr=0.1, momentum=0.9
            ),
            r"optimizer.param_groups\[0\].params=1, but .* has .*params=5;",
        ),
    ],
)
def test_another_optimizer_is_refused(tmp_path, make, says):
    descend(sgd, tmp_path / "run", steps=3)
    refused(lambda: descend(make or (lambda model: None), tmp_path / "run"), says)


def test_resume_with_untied_parameters_raises_value_error(saved, monkeypatch):
    build = Tied.__init__

    def untie(self):
        build(self)
        self.last.weight = nn.Parameter(self.last.weight.detach().clone())

    monkeypatch.setattr(Tied, "__init__", untie)
    says = r"optimizer.param_groups\[0\].params=6, but .* has .*params=5;"
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


def test_flipped_bit_in_a_checkpoint_is_detected(saved):
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


def test_invalid_checkpoint_path_raises_before_training(tmp_path):
    for place in (tmp_path, tmp_path / "missing/run", str(tmp_path)):
        says = f"checkpoint_path={re.escape(repr(str(place)))} is no file in a folder that exists"
        config = TrainingConfig(checkpoint_path=place)
        refused(lambda config=config: fit(Tied(), [], never, steps=1, config=config), says)
