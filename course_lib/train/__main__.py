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
import warnings
from collections.abc import Callable
from dataclasses import Field, fields
from pathlib import Path
from typing import get_args

import torch
from torch import nn

from course_lib.data.sentence_pairs import DOWNLOADS, SentencePairs, sentence_pairs
from course_lib.train.folder import RunFolder
from course_lib.train.processes import Processes
from course_lib.train.run import Moment, Run
from course_lib.train.settings import Settings
from course_lib.validation import require_whole


def main(
    arguments: list[str] | None = None,
    make_model: Callable[[Settings, int], nn.Module] | None = None,
) -> int:
    """Train as the command line says, a `Transformer` or what is made here; return the exit status."""
    options = parser().parse_args(arguments)
    given = {
        field.name: getattr(options, field.name) for field in fields(Settings) if _is_option(field)
    }
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)  # said whatever filters are set outside
            warnings.showwarning = lambda said, *_, **__: _say(said)
            settings = Settings(**given)
            run = _run(settings, options, make_model)
            writer = _event_writer(options.tensorboard, run)
        ended = run.train(_shown(run, writer), save_seconds=options.save_seconds)
    except (ValueError, OSError, FloatingPointError) as error:
        _say(error)
        return 1
    if not run.processes.first:
        return 0
    if ended == "stopped":
        print(f"Stopped after step {run.step}; saved in {run.folder.path}. Continue with --resume.")
        return 0
    try:
        result = run.finish()
    except Exception as error:  # whatever it is: the training is not lost
        _say(
            f"the model is trained, and saved in {run.folder.path}; it could not be measured: "
            f"{type(error).__name__}: {error}. The same command with --resume measures it again"
        )
        return 1
    for name, score in result["test"].items():
        print(f"test, {name}: BLEU {score['score']:.2f}   ({score['signature']})")
        print(f"test, {name}: chrF {score['chrf']:.2f}   ({score['chrf_signature']})")
    print(
        f"{result['minutes']:.1f} minutes, {result['epochs']:.1f} epochs; {run.folder.result} has everything"
    )
    return 0


def _say(what: object) -> None:
    print(f"course_lib.train: {what}", file=sys.stderr)


def _run(
    settings: Settings,
    options: argparse.Namespace,
    make_model: Callable[[Settings, int], nn.Module] | None,
) -> Run:
    """Return the run, after all checks; the folder is written last."""
    processes = Processes.joined(options.device)
    if options.threads is not None:
        require_whole(threads=options.threads)
        if options.threads > (most := os.cpu_count() or 1):
            raise ValueError(f"threads={options.threads}, but this machine has {most} cores")
        torch.set_num_threads(options.threads)
    if not options.save_seconds >= 0:
        raise ValueError(f"save_seconds={options.save_seconds} must be 0 or more")
    if options.tensorboard:
        try:
            from torch.utils.tensorboard import SummaryWriter  # noqa: F401
        except ImportError:
            raise ValueError("--tensorboard needs a package: pip install tensorboard") from None
    folder = RunFolder(options.folder)
    restarted = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0
    resume = options.resume or restarted
    folder.require_usable(resume)
    pairs = sentence_pairs(
        settings.data,
        settings.source,
        settings.target,
        columns=settings.table_columns,
        skip_damaged=options.skip_damaged,
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
    if processes.first:
        print(_described(pairs))
        if settings.steps is not None and settings.warmup > settings.steps:
            _say(
                f"warmup={settings.warmup} is more than steps={settings.steps}: the learning rate rises to "
                f"{settings.steps / settings.warmup:.0%} of lr={settings.lr:g} at most"
            )
    return run


def _described(pairs: SentencePairs) -> str:
    """Return what the data are, and in which direction they are read."""
    counts = f"{len(pairs.train):,} pairs to train, {len(pairs.val):,} to choose and {len(pairs.test):,} to test by"
    if pairs.columns is None:
        return f"{pairs.name}, {pairs.source} to {pairs.target}: {counts}"
    (one, source), (other, target) = zip(pairs.columns, (pairs.source, pairs.target), strict=True)
    named = [f" ({language})" if language else "" for language in (source, target)]
    return (
        f"{pairs.name}, from column {one}{named[0]} to column {other}{named[1]}: {counts}. "
        f"--columns {other},{one} turns the direction round"
    )


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
    for field in filter(_is_option, fields(Settings)):
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
    here.add_argument(
        "--device",
        default="auto",
        choices=("auto", "cpu", "cuda", "mps"),
        help="mps: Apple's GPUs, untested (auto)",
    )
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


def _is_option(field: Field) -> bool:
    """Whether a setting is given on the command line; the fingerprint is computed."""
    return field.name != "fingerprint"


def _event_writer(wanted: bool, run: Run):
    """Return what writes TensorBoard's event files into the folder of the run, or None."""
    if not wanted or not run.processes.first:
        return None
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(run.folder.path))


def _shown(run: Run, writer) -> Callable[[Moment], None]:
    """Return a callback that shows the progress: loss, tokens per second, time left, and each evaluation."""
    if not run.processes.first:
        return lambda moment: None
    from tqdm import tqdm

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
                f"held out {moment.held_out_loss:.3f}  BLEU {moment.bleu:.2f}  chrF {moment.chrf:.2f}"
            )
        if writer is not None:
            writer.add_scalar("loss", moment.loss, moment.step)
            if moment.bleu is not None:
                writer.add_scalar("held-out loss", moment.held_out_loss, moment.step)
                writer.add_scalar("BLEU", moment.bleu, moment.step)
                writer.add_scalar("chrF", moment.chrf, moment.step)
            if moment.share >= 1:
                writer.close()

    return show


if __name__ == "__main__":
    sys.exit(main())
