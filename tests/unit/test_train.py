"""Training a translator: what continues, what is refused, and what several processes compute together."""

import itertools
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from datetime import timedelta
from pathlib import Path

import psutil
import pytest
import sacrebleu
import torch
import torch.distributed as dist

import course_lib.train
from course_lib.data.sentence_pairs import sentence_pairs
from course_lib.train.__main__ import main
from course_lib.train.folder import RunFolder
from course_lib.train.processes import Processes, _of_this_start
from course_lib.train.run import Run
from course_lib.train.scores import sacrebleu_scores
from course_lib.train.settings import Settings
from tests.helpers.sentences import few_pairs, write_pairs

#: All but the run of the fixture `trained`, which is made with the annotations enforced.
pytestmark = pytest.mark.usefixtures("without_annotations")
SMALL = {"vocabulary": 320, "d_model": 16, "heads": 2, "layers": 1, "d_ff": 32, "tokens": 400,
         "evaluate_every": 4, "average": 2, "warmup": 4}  # fmt: skip
ALONE = Processes(0, 1, torch.device("cpu"))


@pytest.fixture(scope="module")
def pairs():
    return few_pairs(200, 12, 10)


def run_of(pairs, folder, steps=10, resume=False, **changes):
    settings = Settings(**(SMALL | {"steps": steps} | changes))
    return Run(settings, pairs, RunFolder(folder), ALONE, resume=resume)


def until(step):
    """A callback that stops a run after a step, as Ctrl-C does."""

    def stop(moment):
        if moment.step == step:
            signal.raise_signal(signal.SIGINT)

    return stop


def test_a_stopped_run_continues_as_if_it_had_not_been(tmp_path, pairs):
    whole = run_of(pairs, tmp_path / "whole")
    assert whole.train() == "done"
    for step in (1, 4, 9):  # the second one with a measurement
        run = run_of(pairs, tmp_path / "parts", resume=step > 1)
        assert run.train(until(step)) == "stopped" and run.step == step
    run = run_of(pairs, tmp_path / "parts", resume=True)
    assert run.train() == "done"
    assert run.losses == whole.losses and len(run.losses) == 10
    for name, weights in whole.model.state_dict().items():
        assert torch.equal(weights, run.model.state_dict()[name]), name
    scores = [[one["bleu"], one["held_out_loss"]] for one in run.measured]
    assert scores == [[one["bleu"], one["held_out_loss"]] for one in whole.measured]


def test_the_result_has_everything(tmp_path, pairs):
    run = run_of(pairs, tmp_path)
    run.train()
    result = run.finish()
    assert result == json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))
    assert result["settings"] == vars(run.settings) and result["steps"] == 10
    scores = {name: (one["bleu"], one["chrf"]) for name, one in result["val"].items()}
    assert result["kept"] == max(scores, key=scores.get)
    weights = run.folder.average()
    assert len(list(tmp_path.glob("step-*"))) == 2, "of the last two measurements"
    kept = [path.name for path in sorted(tmp_path.glob("average-*"))]
    assert kept == ["average-0000010.safetensors"], "a step is ten percent: only the last one"
    again = run_of(pairs, tmp_path / "other").model
    again.load_state_dict(weights, strict=False)
    assert torch.equal(again.lm_head.weight, again.target_embedding.token_embedding.weight)
    references = [target for _, target in pairs.test]
    for beam, name in ((1, "greedy"), (5, "beam 5")):
        candidates = run.translator.all([source for source, _ in pairs.test], beam_size=beam)
        score = sacrebleu.corpus_bleu(candidates, [references]).score
        assert result["test"][name]["score"] == pytest.approx(score, abs=0.005)


def test_the_mean_of_weights_is_their_mean(tmp_path, pairs):
    run = run_of(pairs, tmp_path)
    kept = []
    for step in (1, 2, 3):
        for parameter in run.model.parameters():
            torch.nn.init.normal_(parameter)
        run.folder.save_for_average(run.model, step, keep=2)
        kept.append({name: one.clone() for name, one in run.model.state_dict().items()})
    for name, mean in run.folder.average().items():
        torch.testing.assert_close(mean, (kept[1][name] + kept[2][name]) / 2)


def test_the_weights_of_the_last_percents_are_averaged(tmp_path, pairs):
    run = run_of(pairs, tmp_path, steps=200, average=3, evaluate_every=1000)
    run.train()
    run.finish()
    kept = [int(path.stem.removeprefix("average-")) for path in tmp_path.glob("average-*")]
    assert sorted(kept) == [197, 199, 200], "after 98 and 99 percent of the steps, and at the end"


def test_the_learning_rate_rises_and_falls_to_zero():
    settings = Settings(steps=100, warmup=10, lr=0.5)
    rates = [settings.lr_at(step, (step - 1) / 100) for step in range(1, 101)]
    assert rates[0] == pytest.approx(0.05) and max(rates) == rates[9] == pytest.approx(0.455)
    assert rates[-1] == pytest.approx(0.005) and settings.lr_at(101, 1.0) == 0


def test_minutes_end_a_run(tmp_path, pairs, monkeypatch):
    run = run_of(pairs, tmp_path, steps=None, minutes=0.5, evaluate_every=1000)
    clock, seen = itertools.count(), []
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))  # a second from look to look
    assert run.train(lambda moment: seen.append(moment.seconds)) == "done"
    assert 3 < len(seen) and seen[-2] < 30 <= seen[-1]


def test_bleu_is_that_of_sacrebleu():
    candidates, references = ["a cat sees the dog ."], ("the cat sees the dog .",)
    found = sacrebleu_scores(candidates, references)
    assert found["score"] == round(sacrebleu.corpus_bleu(candidates, [list(references)]).score, 2)
    assert "tok:13a" in found["signature"]


# --- the command -----------------------------------------------------------------------------

ARGUMENTS = [f"--{name.replace('_', '-')}={value}" for name, value in SMALL.items()]


@pytest.fixture(scope="module")
def text_folder(tmp_path_factory, pairs):
    return write_pairs(tmp_path_factory.mktemp("text"), pairs)


def command(folder, text, *more):
    return [*ARGUMENTS, f"--data={text}", f"--folder={folder}", *more]


@pytest.fixture(scope="module")
def trained(tmp_path_factory, text_folder):
    """The folder of a run of four steps; a test that changes it takes a copy."""
    folder = tmp_path_factory.mktemp("trained")
    assert main(command(folder, text_folder, "--steps=4")) == 0
    return folder


def test_the_command_trains_and_says_what_came_out(tmp_path, text_folder, capsys):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run, more = tmp_path / "run", ["--tensorboard", "--threads=1"]
    assert main(command(run, text_folder, "--steps=6", *more)) == 0
    said = capsys.readouterr()
    assert "test, greedy: BLEU" in said.out and "beam 5" in said.out
    assert "tokens/s" in said.err and "held out" in said.out + said.err
    assert main(command(run, text_folder, "--steps=6")) == 1
    assert "holds a run already; continue it with --resume" in capsys.readouterr().err
    assert main(command(run, text_folder, "--steps=8", "--resume", *more)) == 0, "a larger budget"
    assert json.loads((run / "result.json").read_text())["steps"] == 8
    events = EventAccumulator(str(run)).Reload()
    losses = [event.value for event in events.Scalars("loss")]
    assert losses == pytest.approx(losses_in(run)) and len(losses) == 8
    assert [event.step for event in events.Scalars("BLEU")] == [4, 8]


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--steps=9", "--lr=0.1"], "--lr 0.1, but .* was trained with --lr 0.001"),
        (["--steps=9", "--d-model=32"], "--d-model 32, but .* --d-model 16"),
        (["--steps=2"], "--steps 2, but .* --steps 4"),
        (["--minutes=1"], "--steps None, but .* --steps 4"),
        ([], "give either steps or minutes"),
        (["--steps=9", "--precision=half"], "precision='half' is unknown"),
    ],
)
def test_a_changed_setting_is_refused_and_the_run_is_kept(trained, text_folder, capsys, more, says):
    before = {path.name: path.read_bytes() for path in trained.iterdir()}
    assert main(command(trained, text_folder, *more, "--resume")) == 1
    assert re.search(says, capsys.readouterr().err)
    assert {path.name: path.read_bytes() for path in trained.iterdir()} == before


def test_a_truncated_checkpoint_is_refused(tmp_path, trained, text_folder, capsys):
    run = shutil.copytree(trained, tmp_path / "run")
    whole = (run / "checkpoint.pt").read_bytes()
    for size in (0, 100, len(whole) // 2, len(whole) - 1):
        (run / "checkpoint.pt").write_bytes(whole[:size])
        assert main(command(run, text_folder, "--steps=6", "--resume")) == 1
        assert "no checkpoint of train, or is damaged" in capsys.readouterr().err


def test_on_a_full_disk_the_last_checkpoint_stays(tmp_path, pairs, monkeypatch):
    run = run_of(pairs, tmp_path)
    run.train(until(5))
    whole = (tmp_path / "checkpoint.pt").read_bytes()

    def full(state, path):
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(torch, "save", full)
    with pytest.raises(OSError, match=r"No space left on device.*file before it is intact"):
        run.save()
    assert (tmp_path / "checkpoint.pt").read_bytes() == whole
    assert not list(tmp_path.glob("*.part"))


def test_every_setting_has_its_help(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    shown = capsys.readouterr().out
    assert "torchrun" in shown and "CC BY-NC-SA 4.0" in shown
    assert "largest learning rate (0.001)" in shown


# --- what can be known before the work ---------------------------------------------------------


def table_of(path, count):
    path.write_text("".join(f"sentence number {n}\tSatz Nummer {n}\n" for n in range(count)))
    return path


def texts_in(folder, *, train=30, val=3, test=3, source="a man walks {} .", target="er geht {} ."):
    """Files of English and German, a split of each size."""
    folder.mkdir(exist_ok=True)
    for split, count in (("train", train), ("val", val), ("test", test)):
        for language, text in (("en", source), ("de", target)):
            lines = "".join(text.format(f"{split} {n}") + "\n" for n in range(count))
            (folder / f"{split}.{language}").write_text(lines, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--steps=-5"], "steps=-5 is below 1"),
        (["--steps=0"], "steps=0 is below 1"),
        (["--minutes=0"], "minutes=0 is not a finite number above 0"),
        (["--minutes=-1"], "minutes=-1 is not a finite number above 0"),
        (["--minutes=nan"], "minutes=nan is not a finite number above 0"),
        (["--steps=2", "--tokens=5"], r"24 of 24 pairs of train \(.*train\.en and train\.de, line 1 \(\d+ tokens\).* do not fit into tokens=5\."),
        (["--steps=2", "--max-grad-norm=-1"], "max_grad_norm=-1.0 .*; 0 turns clipping off"),
        (["--steps=2", "--lr=-1"], "lr=-1 is not a finite number above 0"),
        (["--steps=2", "--lr=nan"], "lr=nan is not a finite number above 0"),
        (["--steps=2", "--d-model=33", "--heads=2"], "d_model=33 is not divisible by heads=2; try heads=1 or 3"),
        (["--steps=2", "--d-model=34", "--heads=2", "--positions=rotary", "--data=nowhere"],
         "positions='rotary' with d_model=34 and heads=2: a dimension of 17 is odd; it must be even"),
        (["--steps=2", "--norm=Pre"], "norm='Pre' is unknown; .*Did you mean 'pre'"),
        (["--steps=2", "--positions=sinus"], "positions='sinus' is unknown"),
        (["--steps=2", "--vocabulary=258"], "vocabulary=258 is below 259"),
        (["--steps=2", "--seed=-1"], "seed=-1 is below 0"),
        (["--steps=2", f"--seed={2**32}"], r"seed=4294967296 is not below 2\*\*32"),
        (["--steps=2", "--threads=0"], "threads=0 is below 1"),
        (["--steps=2", "--threads=100000"], r"threads=100000, but this machine has \d+ cores"),
        (["--steps=2", "--save-seconds=nan"], "save_seconds=nan must be 0 or more"),
        (["--steps=2", "--skip-longer=2"], "skip_longer=2 is below 3"),
        (["--steps=2", "--skip-longer=3"], "skip_longer=3 leaves no pair for training"),
        (["--steps=2", "--skip-longer=9", "--cut-longer=9"], "give either skip_longer or cut_longer"),
        (["--steps=2", "--columns=2,1"], r"columns=\(2, 1\) is for a table"),
        (["--steps=2", "--columns=2"], "columns='2' must be two numbers of columns"),
        (["--steps=2", "--source=fr"], r"has no train\.fr"),
        (["--steps=2", "--source=de", "--target=de"], "source and target are both 'de'"),
        (["--steps=2", "--data=nowhere"], "data='nowhere' is no file, no folder"),
        (["--steps=2", "--data=phrasebook", "--target=de"], "phrasebook has no 'de'; it has 'en', 'fr'"),
    ],
)  # fmt: skip
def test_a_refused_start_leaves_nothing(tmp_path, capsys, more, says):
    text = texts_in(tmp_path / "text", train=24)
    options = [one for one in more if one.startswith("--data")] or [f"--data={text}"]
    options += [f"--folder={tmp_path / 'run'}"]
    assert main([*ARGUMENTS, *more, *options]) == 1
    said = capsys.readouterr()
    assert re.search(says, said.err) and said.err.startswith("course_lib.train: ")
    assert "Traceback" not in said.err and not (tmp_path / "run").exists()


def test_splits_without_sentences_are_named_before_the_first_step(tmp_path, capsys):
    table = table_of(tmp_path / "forty.tsv", 40)
    assert main([*ARGUMENTS, "--steps=2", f"--data={table}", f"--folder={tmp_path / 'run'}"]) == 1
    said = capsys.readouterr().err
    assert re.search(r"no pair of sentences in '(val|test)': there are \d+ in 'train', \d in 'val', \d in 'test'\. Of a table, 2 %", said)  # fmt: skip
    for split in ("train", "val", "test"):
        text = texts_in(tmp_path / split, **{split: 0})
        folder = tmp_path / "run"
        assert main([*ARGUMENTS, "--steps=2", f"--data={text}", f"--folder={folder}"]) == 1
        assert f"no pair of sentences in '{split}'" in capsys.readouterr().err
        assert not folder.exists()


def test_devices_that_are_not_there_are_named_in_one_line(tmp_path, capsys, monkeypatch):
    def refused(device):
        with pytest.raises(ValueError) as error:
            Processes.joined(device)
        return str(error.value)

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert re.fullmatch(r"no GPU is usable here: PyTorch .*\. Leave out --device, or name cpu", refused("cuda"))  # fmt: skip
    assert "no GPU of Apple is usable here" in refused("mps")
    assert Processes.joined("auto").device.type == "cpu"
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert Processes.joined("mps").device.type == "mps"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setenv("LOCAL_RANK", "2")
    assert "process 2 of this machine needs a GPU of its own, and there are 2" in refused("cuda")
    text = texts_in(tmp_path / "text")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert main(command(tmp_path / "run", text, "--steps=2", "--device=cuda")) == 1
    assert "no GPU is usable here" in capsys.readouterr().err and not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("name", "trained"),
    [
        ("checkpoint.pt", True), ("model.safetensors", True), ("step-0000003.safetensors", True),
        ("average-0000003.safetensors", True), ("settings.json", False), ("subwords.json", False), ("notes.txt", False),
    ],
)  # fmt: skip
def test_a_folder_holds_a_run_where_a_file_says_that_something_was_trained(tmp_path, name, trained):
    folder = RunFolder(tmp_path)
    assert not folder.holds_a_run()
    (tmp_path / name).touch()
    assert folder.holds_a_run() == trained
    folder.require_usable(resume=True)
    with pytest.raises(ValueError, match="holds a run already") if trained else nullcontext():
        folder.require_usable(resume=False)


def test_a_folder_without_a_checkpoint_may_be_started_anew(tmp_path, text_folder, capsys):
    folder = tmp_path / "run"
    run_of(few_pairs(20, 3, 3), folder)  # made, and never trained
    assert folder.exists() and not RunFolder(folder).holds_a_run()
    assert main(command(folder, text_folder, "--steps=2", "--d-ff=48")) == 0
    assert Settings.read(folder / "settings.json").d_ff == 48
    assert main(command(folder, text_folder, "--steps=2")) == 1
    (tmp_path / "file").write_text("x")
    for name in ("file", "file/run"):
        assert main(command(tmp_path / name, text_folder, "--steps=2")) == 1
        assert "file is no folder that can be written to" in capsys.readouterr().err


def test_what_cannot_be_computed_fails_before_the_first_file(tmp_path, pairs, monkeypatch):
    class Full(torch.nn.Module):
        def __init__(self, settings, size):
            raise RuntimeError("out of memory")

    settings = Settings(**(SMALL | {"steps": 4}))
    with pytest.raises(ValueError, match="cannot be trained here: out of memory"):
        Run(settings, pairs, RunFolder(tmp_path / "run"), ALONE, make_model=Full)
    tried = []
    monkeypatch.setattr(Run, "_mean_loss", lambda self, model, shard, smoothing: tried.append(shard.target.numel()) or 1 / 0)  # fmt: skip
    with pytest.raises(ZeroDivisionError):
        run_of(pairs, tmp_path / "run")
    monkeypatch.undo()
    run = run_of(pairs, tmp_path / "other")
    sizes = [run._shard(n).target.numel() for n in range(run.batches._starts[-1] + 30)]
    assert tried == [run._shard(run.batches.largest).target.numel()] and tried[0] > sum(sizes) / len(sizes)  # fmt: skip
    assert not (tmp_path / "run").exists()


def test_the_trial_changes_nothing(tmp_path, pairs, monkeypatch):
    one = run_of(pairs, tmp_path / "one", steps=3)
    monkeypatch.setattr(Run, "_try", lambda self: None)
    other = run_of(pairs, tmp_path / "other", steps=3)
    one.train(), other.train()
    assert one.losses == other.losses


def test_nothing_after_the_last_step_costs_the_model(tmp_path, text_folder, capsys, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("no score")

    folder = tmp_path / "run"
    evaluate = Run.evaluate
    monkeypatch.setattr(Run, "evaluate", lambda self, some: evaluate(self, some) if len(some) == 1 else broken())  # fmt: skip
    assert main(command(folder, text_folder, "--steps=3")) == 1
    said = capsys.readouterr().err
    assert f"the model is trained, and saved in {folder}; it could not be measured: RuntimeError: no score" in said  # fmt: skip
    assert RunFolder(folder).translator()("a man") is not None
    monkeypatch.undo()
    assert main(command(folder, text_folder, "--steps=3", "--resume")) == 0
    assert json.loads((folder / "result.json").read_text())["steps"] == 3


def test_a_measurement_that_fails_in_the_middle_costs_no_step(tmp_path, pairs, monkeypatch):
    run = run_of(pairs, tmp_path, steps=10)
    monkeypatch.setattr(Run, "evaluate", lambda self, some: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run.train()
    assert run.folder.load()["step"] == 4 == SMALL["evaluate_every"]
    assert run.folder.weights(4).exists()


def test_a_step_that_fails_is_not_counted(tmp_path, pairs, monkeypatch):
    run = run_of(pairs, tmp_path, steps=10)
    run.train(until(2))
    before = {name: one.clone() for name, one in run.model.state_dict().items()}
    monkeypatch.setattr(Run, "_loss", lambda self, model, shard: model.lm_head.weight.sum() * torch.nan)  # fmt: skip
    run.stopping = False
    with pytest.raises(FloatingPointError):
        run.train()
    kept = run.folder.load()
    assert kept["step"] == 2 and len(kept["losses"]) == 2
    assert all(torch.equal(kept["model"][name], one) for name, one in before.items())


def test_without_clipping_gradients_are_what_they_are(tmp_path, pairs, monkeypatch):
    norms = {}
    for norm in (0.0, 1e9, 1e-3):
        run = run_of(pairs, tmp_path / str(norm), steps=1, max_grad_norm=norm)
        monkeypatch.setattr(run.optimizer, "step", lambda: None)
        loss = run._loss
        monkeypatch.setattr(run, "_loss", lambda *given, loss=loss: 1000 * loss(*given))
        run.train()
        squares = (p.grad.square().sum() for p in run.model.parameters() if p.grad is not None)
        norms[norm] = sum(squares).sqrt().item()
    assert norms[0.0] == norms[1e9] > 10 and norms[1e-3] < 0.01


# --- what is recorded is what happened ------------------------------------------------------------


def test_the_direction_is_recorded(tmp_path, capsys):
    table = table_of(tmp_path / "pairs.tsv", 400)
    for columns in ("1,2", "2,1"):
        folder = tmp_path / columns
        more = ["--steps=2", "--target=de", f"--data={table}", f"--folder={folder}"]
        assert main([*ARGUMENTS, *more, f"--columns={columns}"]) == 0
        said = capsys.readouterr().out
        one, other = columns.split(",")
        assert f"from column {one} to column {other} (de)" in said
        assert f"--columns {other},{one} turns the direction round" in said
        for name in ("settings.json", "result.json"):
            found = json.loads((folder / name).read_text())
            found = found.get("settings", found)
            assert found["columns"] == columns and found["target"] == "de"
    assert main([*ARGUMENTS, *more, "--columns=1,2", "--resume"]) == 1
    assert "--columns 1,2, but" in capsys.readouterr().err


def test_the_same_sentences_elsewhere_are_welcome_and_others_are_not(tmp_path, capsys):
    text, folder = texts_in(tmp_path / "text"), tmp_path / "run"
    assert main(command(folder, text, "--steps=2")) == 0
    elsewhere = shutil.copytree(text, tmp_path / "elsewhere")
    assert main(command(folder, elsewhere, "--steps=3", "--resume")) == 0
    assert Settings.read(folder / "settings.json").data == str(elsewhere)
    capsys.readouterr()
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for name in ("train.en", "val.de", "test.en"):
        changed = shutil.copytree(text, tmp_path / f"with another {name}")
        lines = (changed / name).read_text().splitlines()
        (changed / name).write_text("\n".join([*lines[:-1], "another ."]) + "\n")
        assert main(command(folder, changed, "--steps=4", "--resume")) == 1
        said = capsys.readouterr().err
        assert "are not those that" in said and "their fingerprint is" in said
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_the_phrasebook_was_always_read_from_english_to_french(tmp_path):
    old = vars(Settings(steps=2)) | {"source": "en", "target": "de"}
    del old["fingerprint"], old["columns"]
    (tmp_path / "settings.json").write_text(json.dumps(old))
    had = Settings.read(tmp_path / "settings.json")
    assert (had.source, had.target) == ("en", "fr")
    Settings(steps=3, source="en", target="fr", fingerprint="x").require_same(had, tmp_path)
    with pytest.raises(ValueError, match="--source fr, but .* --source en"):
        Settings(steps=3, source="fr", target="en").require_same(had, tmp_path)


@pytest.mark.parametrize("data", ["folder", "table"])
def test_runs_of_before_fingerprints_continue(tmp_path, capsys, data):
    where = {"folder": texts_in(tmp_path / "text"), "table": table_of(tmp_path / "a.tsv", 400)}
    given = [*ARGUMENTS, f"--data={where[data]}", f"--folder={tmp_path / 'run'}"]
    assert main([*given, "--steps=2"]) == 0
    path = tmp_path / "run/settings.json"
    old = json.loads(path.read_text())
    for name in ("fingerprint", "columns", "skip_longer", "cut_longer"):
        del old[name]
    path.write_text(json.dumps(old | {"source": "en", "target": "de"}))  # as it was written then
    turned = {"folder": ["--source=de", "--target=en"], "table": ["--columns=2,1"]}
    assert main([*given, "--steps=3", "--resume", *turned[data]]) == 1
    assert main([*given, "--steps=3", "--resume"]) == 0
    assert Settings.read(path).fingerprint and Settings.read(path).steps == 3


@pytest.mark.parametrize(
    ("language", "name"),
    [
        (None, "zh"), ("cn", "zh"), ("yue_Hant", "zh"), ("zh", "zh"), ("zh-TW", "zh"), ("zho_Hans", "zh"), ("ZH", "zh"),
    ],
)  # fmt: skip
def test_bleu_is_tokenised_for_the_language(language, name):
    references = ["我喜欢在公园里散步。", "他每天早上喝一杯茶。"]
    found = sacrebleu_scores(["我喜欢在公园里跑步。", references[1]], references, language)
    metric = sacrebleu.BLEU(tokenize=name)
    wanted = metric.corpus_score(["我喜欢在公园里跑步。", references[1]], [references])
    assert found["score"] == round(wanted.score, 2) and f"tok:{name}|" in found["signature"]
    assert found["score"] > 50
    chrf = sacrebleu.CHRF()
    wanted = chrf.corpus_score(["我喜欢在公园里跑步。", references[1]], [references]).score
    assert found["chrf"] == round(wanted, 2) and found["chrf_signature"] == str(
        chrf.get_signature()
    )


@pytest.mark.parametrize(
    ("language", "reference", "name"),
    [
        ("th", "ผมชอบเดินเล่นในสวน", "char"), (None, "ຂ້ອຍມັກຍ່າງ", "char"), ("my", "ကျွန်တော် ပန်းခြံ", "char"),
        ("jp", "私は公園を歩くのが好きだ。", "char"), ("", "公園でコーヒーを飲む。", "char"),
        ("de", "Ich gehe gern im Park.", "13a"), (None, "我喜欢 DNA 和 RNA。", "13a"), ("hi", "मुझे पार्क में चलना पसंद है।", "13a"),
        ("kr", "나는 공원에서 걷는 것을 좋아한다.", "13a"), ("ar", "أحب المشي في الحديقة.", "13a"), (None, "12 + 34 = 46 .", "13a"),
        (None, "我喜欢在公园里散步, and 他喝茶 3 杯 .", "zh"),
    ],
)  # fmt: skip
def test_without_a_tokenisation_of_its_own_the_script_of_a_language_decides(
    language, reference, name
):
    assert f"tok:{name}|" in sacrebleu_scores([reference], [reference], language)["signature"]


def test_japanese_is_split_as_sacrebleu_names_it_or_by_characters():
    try:
        sacrebleu.BLEU(trg_lang="ja")
        name = "ja-mecab"
    except RuntimeError:
        name = "char"
    found = sacrebleu_scores(["私は公園を歩く。"], ["私は公園を歩く。"], "ja")
    assert found["score"] == 100 and f"tok:{name}" in found["signature"]


@pytest.mark.filterwarnings("ignore")  # what the command says does not depend on filters outside
def test_a_corpus_of_two_words_gets_a_word(tmp_path, capsys):
    for target, warned in (("geh{} !", True), ("geh jetzt los {} !", False)):
        text = texts_in(
            tmp_path / str(warned), target=target.replace("{}", "") if warned else target
        )
        assert main(command(tmp_path / f"run {warned}", text, "--steps=2")) == 0
        said = capsys.readouterr().err
        for split in ("val", "test"):
            says = f"no target sentence of {split} has four tokens as BLEU counts them (tok:13a)"
            assert (says in said) == warned
    found = sacrebleu_scores(["geh !"], ["geh !"])
    assert (found["score"], found["chrf"]) == (0.0, 100.0)


@pytest.mark.parametrize("precision", ["bfloat16", "float32"])
@pytest.mark.parametrize("has", [True, False])
def test_bfloat16_without_its_instructions_gets_a_word(tmp_path, monkeypatch, precision, has):
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: has)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        run_of(sentence_pairs(texts_in(tmp_path)), tmp_path / "run", precision=precision)
    slow = [one for one in said if "10 to 19 times" in str(one.message)]
    assert len(slow) == (precision == "bfloat16" and not has)


# --- sentences that are too long -----------------------------------------------------------------


def numbers(count):
    """A text of so many numbers, each of which takes several tokens."""
    return " ".join(str(7919 * (n + 11)) for n in range(count))


@pytest.fixture(scope="module")
def long_lines(tmp_path_factory):
    """Thirty pairs; in two, one side is long."""
    text = texts_in(tmp_path_factory.mktemp("long"), source="a man {} .")
    for name, number, words in (("train.en", 7, 40), ("train.de", 21, 30)):
        lines = (text / name).read_text(encoding="utf-8").splitlines()
        lines[number - 1] = numbers(words)
        (text / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return text


def test_lines_over_the_budget_are_named_and_left_out_or_cut(tmp_path, long_lines, capsys):
    where = rf"2 of 30 pairs of train \({long_lines}/train\.en and train\.de, line 7 \(\d+ tokens\); .*line 21 \(\d+ tokens\)\)"  # fmt: skip
    given = ["--steps=2", "--tokens=100"]
    assert main(command(tmp_path / "run", long_lines, *given)) == 1
    said = capsys.readouterr().err
    assert re.search(
        where + " do not fit into tokens=100.*--skip-longer 100.*--cut-longer 100", said
    )
    assert not (tmp_path / "run").exists()
    for option, done in (("--skip-longer=100", "left out"), ("--cut-longer=40", "cut")):
        folder = tmp_path / done
        assert main(command(folder, long_lines, *given, option)) == 0
        said = capsys.readouterr().err
        number = option.partition("=")[2]
        assert re.search(where + f" have more than {number} tokens, and are {done}", said)
        result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
        assert result["too long, for training"] == {"left out": 0, "cut": 0} | {done: 2}
        assert result["pairs"] == {"train": 30, "val": 3, "test": 3}


def test_what_is_left_out_and_what_is_cut(tmp_path, long_lines):
    pairs = sentence_pairs(long_lines)
    with pytest.warns(UserWarning, match="left out"):
        run = run_of(pairs, tmp_path / "skip", tokens=100, skip_longer=100)
    assert len(run.batches._sources) == 28
    with pytest.warns(UserWarning, match="cut"):
        run = run_of(pairs, tmp_path / "cut", tokens=100, cut_longer=40)
    sources, targets = run.batches._sources, run.batches._targets
    assert len(sources) == 30 and len(sources[6]) == len(targets[20]) == 40
    assert sources[6][-1] == targets[20][-1] == 2 and targets[20][0] == 1
    encoded = run.subwords.encode(pairs.train[6][0], eos=True)
    assert torch.equal(sources[6][:-1], encoded[:39])
    assert torch.equal(targets[6], run.subwords.encode(pairs.train[6][1], bos=True, eos=True))


@pytest.mark.parametrize("split", ["val", "test"])
def test_a_long_line_that_is_measured_is_named(tmp_path, long_lines, split):
    pairs = sentence_pairs(long_lines)
    long = numbers(40), "ein Mann ."
    pairs = pairs._replace(**{split: [*getattr(pairs, split), long]})
    with pytest.warns(UserWarning) as warned:
        run_of(pairs, tmp_path / "run", tokens=100, skip_longer=100)
    said = [str(one.message) for one in warned if "each measurement" in str(one.message)]
    length = len(run_of(pairs, tmp_path / "run", tokens=1000).subwords.encode(long[0], eos=True))
    assert [re.search(rf"1 of 4 pairs of {split} \(.*pair 4 of {split} \({length} tokens\)\) have more than tokens=100", one) is not None for one in said] == [True]  # fmt: skip


def test_learned_positions_refuse_sentences_beyond_their_end(tmp_path, long_lines):
    text = shutil.copytree(long_lines, tmp_path / "text")
    lines = (text / "test.en").read_text(encoding="utf-8").splitlines()
    (text / "test.en").write_text("\n".join([*lines[:-1], numbers(300)]) + "\n", encoding="utf-8")
    says = r"1 of 3 pairs of test \(.*test\.en and test\.de, line 3 \([\d,]+ tokens\)\) have more than the 512 positions"
    with pytest.raises(ValueError, match=says):
        run_of(sentence_pairs(text), tmp_path / "run", tokens=2000, positions="learned")
    run = run_of(sentence_pairs(long_lines), tmp_path / "run", tokens=2000, positions="learned")
    assert len(run.translator(numbers(60))) > 0  # its translation ends where the positions do
    with pytest.raises(ValueError, match=r"texts\[1\] has \d+ tokens, and the model 512 positions"):
        run.translator.all(["a", numbers(300)])


# --- several processes -----------------------------------------------------------------------


def losses_in(folder):
    return torch.load(folder / "checkpoint.pt", weights_only=True)["losses"]


def test_a_restarted_process_meets_those_of_its_own_start_alone():
    """The store of `torchrun` outlives its workers: here, what was left by those of two earlier starts."""
    store = dist.HashStore()
    store.set_timeout(timedelta(minutes=1))  # where one waits for an answer that nobody gives
    with ThreadPoolExecutor(3) as pool:
        for start in "abc":
            parts = list(pool.map(_of_this_start, [store] * 3, (2, 0, 1), [3] * 3))
            for rank, part in enumerate(parts):
                assert not part.check([f"address {rank}"]), "it is that of an earlier start"
                part.set(f"address {rank}", start)
            assert all(part.check([f"address {rank}" for rank in range(3)]) for part in parts)


@pytest.mark.skipif(os.name == "nt", reason="needs signals and bash of Unix")
def test_slurm_continues_on_two_machines_what_one_process_began(tmp_path, text_folder):
    """With a `srun` and a `scontrol` that do what those of Slurm do, but with two machines on this one."""
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    for name, does in {"srun": '"$@" & "$@"; wait $!', "scontrol": "echo localhost"}.items():
        (bin_folder / name).write_text(f"#!/bin/bash\nset -e\n{does}\n")
        (bin_folder / name).chmod(0o755)
    with socket.create_server(("localhost", 0)) as free:
        port = str(free.getsockname()[1])
    environment = os.environ | {
        "MASTER_PORT": port,
        "PATH": f"{bin_folder}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "SLURM_JOB_NODELIST": "localhost", "SLURM_NNODES": "2", "SLURM_JOB_ID": "7",
        "SLURM_CPUS_PER_TASK": "1",
    }  # fmt: skip
    settings = {"steps": 20, "data": str(text_folder), "dropout": 0.0, "accumulation": 2}
    pairs = sentence_pairs(text_folder)
    whole = run_of(pairs, tmp_path / "whole", **settings)
    assert whole.train() == "done"
    assert run_of(pairs, tmp_path / "run", **settings).train(until(10)) == "stopped"
    script = Path(course_lib.train.__file__).with_name("slurm.sh")
    given = command(tmp_path / "run", text_folder, "--device=cpu")
    given += [f"--{name}={value}" for name, value in settings.items()]
    done = subprocess.run(
        ["bash", str(script), *given], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "holds a run already" not in done.stderr, "it continues at once, not when restarted"
    result = json.loads((tmp_path / "run/result.json").read_text(encoding="utf-8"))
    assert result["steps"] == 20 and "2 process(es)" in result["machine"]
    assert losses_in(tmp_path / "run") == pytest.approx(whole.losses, abs=1e-5)


@pytest.mark.skipif(os.name == "nt", reason="needs signals and bash of Unix")
def test_killed_workers_are_started_again_and_the_curve_is_the_same(tmp_path, text_folder):
    """One is killed at a random moment of its start, and one after a checkpoint."""
    more = ("--steps=120", "--save-seconds=0.1", "--evaluate-every=1000", "--dropout=0")
    assert main(command(tmp_path / "one", text_folder, *more)) == 0
    folder, moment = tmp_path / "killed", random.uniform(0, 3)  # seconds of the CPU
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    launcher += ["--nproc-per-node=2", "--max-restarts=5", "-m", "course_lib.train"]
    run = subprocess.Popen(
        [*launcher, *command(folder, text_folder, *more, "--threads=1")],
        start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    due = [
        lambda worker: worker.cpu_times().user > moment,
        lambda worker: (folder / "checkpoint.pt").exists(),
    ]
    kills = 0
    try:
        while run.poll() is None and kills < len(due):
            time.sleep(0.01)
            workers = psutil.Process(run.pid).children()
            with suppress(psutil.NoSuchProcess):
                if len(workers) == 2 and due[kills](worker := random.choice(workers)):
                    worker.kill()
                    kills += 1
        said, _ = run.communicate()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)
    assert run.returncode == 0 and kills, said
    assert losses_in(folder) == pytest.approx(losses_in(tmp_path / "one"), abs=1e-3)
