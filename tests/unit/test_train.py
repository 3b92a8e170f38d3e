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
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import psutil
import pytest
import sacrebleu
import torch
import torch.distributed as dist

import course_lib.train
from course_lib.train.__main__ import main
from course_lib.train.folder import RunFolder
from course_lib.train.processes import Processes, _of_this_start
from course_lib.train.run import Run, bleu
from course_lib.train.settings import Settings
from tests.helpers.sentences import few_pairs, write_pairs

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
    assert result["kept"] == max(result["val"], key=lambda name: result["val"][name]["bleu"])
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
    run = run_of(pairs, tmp_path, steps=300, average=3, evaluate_every=1000)
    run.train()
    run.finish()
    kept = [int(path.stem.removeprefix("average-")) for path in tmp_path.glob("average-*")]
    assert sorted(kept) == [295, 298, 300], "after 98 and 99 percent of the steps, and at the end"


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
    found = bleu(candidates, references)
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
def test_slurm_continues_on_two_machines_what_one_process_began(tmp_path, pairs, text_folder):
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
