"""Training a translator: what continues, what is refused, and what several processes compute together."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import sacrebleu
import torch

import course_lib.train
from course_lib.data.sentence_pairs import SentencePairs, sentence_pairs
from course_lib.train import Processes, Run, RunFolder, Settings, bleu
from course_lib.train.__main__ import main

SMALL = {"vocabulary": 320, "d_model": 16, "heads": 2, "layers": 1, "d_ff": 32, "tokens": 400,
         "evaluate_every": 4, "average": 2, "warmup": 4}  # fmt: skip
ALONE = Processes(0, 1, torch.device("cpu"))


@pytest.fixture(scope="module")
def pairs():
    text = sentence_pairs()
    return SentencePairs(text.train[:200], text.val[:12], text.test[:10], "phrasebook")


def run_of(pairs, folder, steps=10, resume=False, **changes):
    settings = Settings(**(SMALL | {"steps": steps} | changes))
    return Run(settings, pairs, RunFolder(folder), ALONE, resume=resume)


def until(step):
    """A callback that stops a run after a step, as Ctrl-C does."""

    def stop(moment):
        if moment.step == step:
            signal.raise_signal(signal.SIGINT)

    return stop


@pytest.mark.parametrize("stops", [(3,), (4, 7), (1, 2, 9)])
def test_a_stopped_run_continues_as_if_it_had_not_been(tmp_path, pairs, stops):
    whole = run_of(pairs, tmp_path / "whole")
    assert whole.train() == "done"
    for number, step in enumerate(stops):
        run = run_of(pairs, tmp_path / "parts", resume=number > 0)
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
        run.folder.save_weights(run.model, step, keep=2)
        kept.append({name: one.clone() for name, one in run.model.state_dict().items()})
    for name, mean in run.folder.average().items():
        torch.testing.assert_close(mean, (kept[1][name] + kept[2][name]) / 2)


def test_the_learning_rate_rises_and_falls_to_zero():
    settings = Settings(steps=100, warmup=10, lr=0.5)
    rates = [settings.lr_at(step, (step - 1) / 100) for step in range(1, 101)]
    assert rates[0] == pytest.approx(0.05) and max(rates) == rates[9] == pytest.approx(0.455)
    assert rates[-1] == pytest.approx(0.005) and settings.lr_at(101, 1.0) == 0


def test_minutes_end_a_run(tmp_path, pairs):
    run = run_of(pairs, tmp_path, steps=None, minutes=0.03, evaluate_every=1000)
    started = time.perf_counter()
    assert run.train() == "done"
    assert 1.7 < time.perf_counter() - started < 8


def test_bleu_is_that_of_sacrebleu():
    candidates, references = ["a cat sees the dog ."], ("the cat sees the dog .",)
    found = bleu(candidates, references)
    assert found["score"] == round(sacrebleu.corpus_bleu(candidates, [list(references)]).score, 2)
    assert "tok:13a" in found["signature"]


# --- the command -----------------------------------------------------------------------------

ARGUMENTS = [f"--{name.replace('_', '-')}={value}" for name, value in SMALL.items()]


@pytest.fixture
def text_folder(tmp_path, pairs):
    folder = tmp_path / "text"
    folder.mkdir()
    for split in ("train", "val", "test"):
        for column, language in enumerate(("en", "de")):
            lines = "".join(pair[column] + "\n" for pair in getattr(pairs, split))
            (folder / f"{split}.{language}").write_text(lines, encoding="utf-8")
    return folder


def command(folder, text, *more):
    return [*ARGUMENTS, f"--data={text}", f"--folder={folder}", *more]


def test_the_command_trains_and_says_what_came_out(tmp_path, text_folder, capsys):
    run = tmp_path / "run"
    assert main(command(run, text_folder, "--steps=6", "--threads=1")) == 0
    said = capsys.readouterr()
    assert "test, greedy: BLEU" in said.out and "beam 5" in said.out
    assert "tokens/s" in said.err and "held out" in said.out + said.err
    assert main(command(run, text_folder, "--steps=6")) == 1
    assert "holds a run already; continue it with --resume" in capsys.readouterr().err
    assert main(command(run, text_folder, "--steps=8", "--resume")) == 0, "a larger budget"
    assert json.loads((run / "result.json").read_text())["steps"] == 8


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
def test_a_changed_setting_is_refused_and_the_run_is_kept(
    tmp_path, text_folder, capsys, more, says
):
    run = tmp_path / "run"
    main(command(run, text_folder, "--steps=4"))
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    capsys.readouterr()
    assert main(command(run, text_folder, *more, "--resume")) == 1
    assert re.search(says, capsys.readouterr().err)
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before


def test_a_truncated_checkpoint_is_refused(tmp_path, text_folder, capsys):
    run = tmp_path / "run"
    main(command(run, text_folder, "--steps=4"))
    whole = (run / "checkpoint.pt").read_bytes()
    for size in (0, 100, len(whole) // 2, len(whole) - 1):
        (run / "checkpoint.pt").write_bytes(whole[:size])
        capsys.readouterr()
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


def test_every_setting_has_its_help():
    shown = subprocess.run(
        [sys.executable, "-m", "course_lib.train", "--help"], capture_output=True, text=True
    ).stdout
    assert "torchrun" in shown and "CC BY-NC-SA 4.0" in shown
    assert "largest learning rate (0.001)" in shown


# --- several processes -----------------------------------------------------------------------


def torchrun(folder, text, *more, restarts=0, machines=("--standalone", "--nproc-per-node=2")):
    """Two processes, or one of two machines, in a process group of their own."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", *machines]
    arguments = [f"--max-restarts={restarts}", "-m", "course_lib.train"]
    arguments += command(folder, text, "--dropout=0", "--threads=1", *more)
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [*torchrun, *arguments], env=environment, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def losses_in(folder):
    return torch.load(folder / "checkpoint.pt", weights_only=True)["losses"]


@pytest.mark.skipif(os.name == "nt", reason="needs process groups and signals of Unix")
def test_two_machines_compute_what_one_process_does(tmp_path, text_folder):
    """As --help says for several machines, with two launchers on this one that find each other by its port."""
    with socket.create_server(("localhost", 0)) as free:
        at = f"--rdzv-endpoint=localhost:{free.getsockname()[1]}"
    machine = ("--nnodes=2", "--nproc-per-node=1", "--rdzv-backend=c10d", "--rdzv-id=1", at)
    more = ("--steps=50", "--accumulation=2")
    both = [torchrun(tmp_path / "two", text_folder, *more, machines=machine) for _ in range(2)]
    one = command(tmp_path / "one", text_folder, "--steps=50", "--dropout=0", "--accumulation=2")
    assert main(one) == 0
    for run in both:
        said, _ = run.communicate(timeout=200)
        assert run.returncode == 0, said
    gaps = [
        abs(a - b)
        for a, b in zip(losses_in(tmp_path / "one"), losses_in(tmp_path / "two"), strict=True)
    ]
    assert len(gaps) == 50 and max(gaps) < 1e-5


def workers(run):
    """The process ids of the workers."""
    found = subprocess.run(
        ["pgrep", "-P", str(run.pid)], capture_output=True, text=True
    ).stdout.split()
    return [int(one) for one in found]


@pytest.mark.skipif(sys.platform != "linux", reason="needs bash")
def test_the_slurm_script_trains_and_continues(tmp_path, text_folder):
    """With a `srun` and a `scontrol` that do what those of Slurm do on one machine."""
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    for name, does in {"srun": 'exec "$@"', "scontrol": "echo localhost"}.items():
        (bin_folder / name).write_text(f"#!/bin/bash\n{does}\n")
        (bin_folder / name).chmod(0o755)
    environment = os.environ | {
        "PATH": f"{bin_folder}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "SLURM_JOB_NODELIST": "localhost", "SLURM_NNODES": "1", "SLURM_GPUS_ON_NODE": "2",
        "SLURM_JOB_ID": "7", "SLURM_CPUS_PER_TASK": "2",
    }  # fmt: skip
    script = Path(course_lib.train.__file__).with_name("slurm.sh")
    for steps in (4, 8):
        given = command(tmp_path / "run", text_folder, f"--steps={steps}", "--device=cpu")
        done = subprocess.run(
            ["bash", str(script), *given], env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        result = json.loads((tmp_path / "run/result.json").read_text(encoding="utf-8"))
        assert result["steps"] == steps and "2 process(es)" in result["machine"]


def test_the_event_files_hold_the_curves(tmp_path, text_folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    assert main(command(tmp_path / "run", text_folder, "--steps=8", "--tensorboard")) == 0
    events = EventAccumulator(str(tmp_path / "run")).Reload()
    losses = [event.value for event in events.Scalars("loss")]
    assert losses == pytest.approx(losses_in(tmp_path / "run")) and len(losses) == 8
    assert [event.step for event in events.Scalars("BLEU")] == [4, 8]


@pytest.mark.skipif(sys.platform != "linux", reason="needs pgrep")
@pytest.mark.skipif(os.name == "nt", reason="needs process groups and signals of Unix")
def test_a_killed_worker_is_started_again_and_the_curve_is_the_same(tmp_path, text_folder):
    more = ("--steps=300", "--save-seconds=0.2", "--evaluate-every=1000")
    assert main(command(tmp_path / "one", text_folder, *more, "--dropout=0")) == 0
    folder = tmp_path / "killed"
    run = torchrun(folder, text_folder, *more, restarts=5)
    kills, deadline = 0, time.monotonic() + 120
    while run.poll() is None and time.monotonic() < deadline and kills < 3:
        time.sleep(0.05)
        if (folder / "checkpoint.pt").exists() and len(workers(run)) == 2:
            time.sleep(0.3 + 0.4 * kills)
            for victim in workers(run)[kills % 2 : kills % 2 + 1]:
                os.kill(victim, signal.SIGKILL)
                kills += 1
                time.sleep(1)
    said, _ = run.communicate(timeout=200)
    assert run.returncode == 0 and kills, said
    ours, whole = losses_in(folder), losses_in(tmp_path / "one")
    assert max(abs(a - b) for a, b in zip(ours, whole, strict=True)) < 1e-3
