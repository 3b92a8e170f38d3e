"""Train a translator from scratch on pairs of sentences.

    python -m course_lib.train --minutes 5                                      the phrasebook, English to French
    python -m course_lib.train --data multi30k --minutes 60 --folder runs/en-de English to German, on real sentences
    python -m course_lib.train --data multi30k --minutes 60 --folder runs/en-de --resume
    torchrun --standalone --nproc-per-node 2 --max-restarts 3 -m course_lib.train --data multi30k --steps 5000

Ctrl-C saves and ends; --resume continues. Under torchrun, processes that are killed are started again and continue from
the last checkpoint. On several machines, torchrun needs --nnodes, --rdzv-backend c10d and --rdzv-endpoint HOST:29500.
"""

import argparse
import inspect
import os
import re
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import get_args

import torch
from torch import nn

from course_lib.data.sentence_pairs import DOWNLOADS, sentence_pairs
from course_lib.train.folder import RunFolder
from course_lib.train.processes import Processes
from course_lib.train.run import Moment, Run
from course_lib.train.settings import Settings


def main(
    arguments: list[str] | None = None,
    make_model: Callable[[Settings, int], nn.Module] | None = None,
) -> int:
    """Train as the command line says, a `Transformer` or what is made here; return the exit status."""
    options = parser().parse_args(arguments)
    given = {field.name: getattr(options, field.name) for field in fields(Settings)}
    try:
        settings = Settings(**given)
        processes = Processes.joined(options.device)
        if options.threads:
            torch.set_num_threads(options.threads)
        folder = RunFolder(options.folder)
        restarted = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0
        resume = _resume(options.resume or restarted, settings, folder)
        pairs = sentence_pairs(
            settings.data, settings.source, settings.target, skip_damaged=options.skip_damaged
        )
        run = Run(
            settings,
            pairs,
            folder,
            processes,
            resume=resume,
            compiled=options.compile,
            make_model=make_model,
        )
        show = _shown(run, processes, options.tensorboard)
        ended = run.train(show, save_seconds=options.save_seconds)
    except (ValueError, OSError, FloatingPointError) as error:
        print(f"course_lib.train: {error}", file=sys.stderr)
        return 1
    if not processes.first:
        return 0
    if ended == "stopped":
        print(f"Stopped after step {run.step}; saved in {folder.path}. Continue with --resume.")
        return 0
    result = run.finish()
    for name, score in result["test"].items():
        print(f"test, {name}: BLEU {score['score']:.2f}   ({score['signature']})")
    print(
        f"{result['minutes']:.1f} minutes, {result['epochs']:.1f} epochs; {folder.result} has everything"
    )
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the options: an option for every setting, with its help, and those of this run alone."""
    made = argparse.ArgumentParser(
        "python -m course_lib.train",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Data: " + "; ".join(f"{n}: {d.source}, {d.licence}" for n, d in DOWNLOADS.items()),
    )
    help_of = dict(re.findall(r"^\s+(\w+): (.*)$", inspect.getdoc(Settings), re.MULTILINE))
    settings = made.add_argument_group("settings of the run")
    for field in fields(Settings):
        kinds = [kind for kind in get_args(field.type) or (field.type,) if kind is not type(None)]
        default = "" if field.default is None else f" ({field.default})"
        settings.add_argument(
            "--" + field.name.replace("_", "-"),
            type=kinds[0],
            default=field.default,
            metavar=field.name.rpartition("_")[2].upper(),
            help=help_of[field.name] + default,
        )
    here = made.add_argument_group("this time")
    here.add_argument(
        "--folder", type=Path, default=Path("run"), help="for checkpoints and results (run)"
    )
    here.add_argument("--resume", action="store_true", help="continue what the folder holds")
    here.add_argument(
        "--save-seconds", type=float, default=60.0, metavar="S", help="between checkpoints (60)"
    )
    here.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"), help="(auto)")
    here.add_argument("--threads", type=int, help="of the CPU, in each process")
    here.add_argument(
        "--compile", action="store_true", help="use torch.compile (needs a C++ compiler)"
    )
    here.add_argument(
        "--skip-damaged", action="store_true", help="leave out lines that cannot be used"
    )
    here.add_argument(
        "--tensorboard", action="store_true", help="write event files into the folder"
    )
    return made


def _resume(wanted: bool, settings: Settings, folder: RunFolder) -> bool:
    """Return whether to continue; refuse to overwrite a run, and to continue one with other settings."""
    if not folder.holds_a_run():
        return False
    if not wanted:
        raise ValueError(
            f"{folder.path} holds a run already; continue it with --resume, or name another --folder"
        )
    settings.require_same(Settings.read(folder.settings), folder.path)
    return True


def _shown(run: Run, processes: Processes, tensorboard: bool) -> Callable[[Moment], None]:
    """Return a callback that shows the progress: loss, tokens per second, time left, and each evaluation."""
    if not processes.first:
        return lambda moment: None
    from tqdm import tqdm

    writer = None
    if tensorboard:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise ValueError("--tensorboard needs a package: pip install tensorboard") from None
        writer = SummaryWriter(str(run.folder.path))
    by_steps = run.settings.steps is not None
    total = run.settings.steps if by_steps else round(60 * run.settings.minutes)
    bar = tqdm(total=total, initial=run.step if by_steps else round(run.seconds),
               unit=" steps" if by_steps else " s", bar_format="{percentage:3.0f} %|{bar:20}| {remaining} left{postfix}")  # fmt: skip
    start = {"tokens": 0, "seconds": run.seconds}

    def show(moment: Moment) -> None:
        start["tokens"] += moment.tokens
        speed = start["tokens"] / max(moment.seconds - start["seconds"], 1e-9)
        bar.set_postfix_str(
            f"step {moment.step}, loss {moment.loss:.3f}, {speed:,.0f} tokens/s", refresh=False
        )
        bar.update((moment.step if by_steps else round(moment.seconds)) - bar.n)
        if moment.bleu is not None:
            bar.write(
                f"step {moment.step:6}  {moment.seconds / 60:5.1f} min  loss {moment.loss:.3f}  "
                f"held out {moment.held_out_loss:.3f}  BLEU {moment.bleu:.2f}"
            )
        if writer is not None:
            writer.add_scalar("loss", moment.loss, moment.step)
            if moment.bleu is not None:
                writer.add_scalar("held-out loss", moment.held_out_loss, moment.step)
                writer.add_scalar("BLEU", moment.bleu, moment.step)
            if moment.share >= 1:
                writer.close()

    return show


if __name__ == "__main__":
    sys.exit(main())
