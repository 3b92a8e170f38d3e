"""`torch.nn.Transformer` as a peer of the translator: the same embeddings, loss, batches, optimizer and decoding.

python -m tests.benchmarks.translator --data multi30k --minutes 60 --folder runs/peer     options of course_lib.train
python -m tests.benchmarks.translator speed --data multi30k                               tokens per second, in turns
python -m tests.benchmarks.translator convert FROM TO      the weights of such a run in a run folder of course_lib.train
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_model
from torch import Tensor, nn

from course_lib.data.sentence_pairs import sentence_pairs
from course_lib.data.subwords import Subwords
from course_lib.train.__main__ import main as train
from course_lib.train.folder import RunFolder, write_weights
from course_lib.train.processes import Processes
from course_lib.train.run import Run
from course_lib.train.settings import Settings
from tests.helpers.peers import PyTorchTransformer

STEPS, ROUNDS, WARM_UP = 20, 6, 5


class PlainLoss(Run):
    """The loss as PyTorch computes it, over all positions."""

    def _mean_loss(self, model: nn.Module, shard, smoothing: float) -> Tensor:
        logits = model(shard.source, shard.target[:, :-1]).float()
        options = {"ignore_index": 0, "label_smoothing": smoothing, "reduction": "sum"}
        labels = shard.target[:, 1:].flatten()
        return F.cross_entropy(logits.flatten(0, 1), labels, **options) / shard.tokens


def speed(arguments: list[str]) -> None:
    """Print target tokens per second of three trainings; they take turns, so a slow moment hits all alike."""
    options = argparse.ArgumentParser("python -m tests.benchmarks.translator speed")
    options.add_argument("--data", default="multi30k")
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--precision", default="float32")
    chosen = options.parse_args(arguments)
    torch.set_num_threads(chosen.threads)
    settings = Settings(
        data=chosen.data, vocabulary=8000, d_model=128, heads=4, layers=4, d_ff=256, tokens=2048,
        steps=10**6, precision=chosen.precision,
    )  # fmt: skip
    pairs = sentence_pairs(settings.data, settings.source, settings.target)
    arms = {
        "this course": (Run, None),
        "nn.Transformer, loss of this course": (Run, PyTorchTransformer),
        "nn.Transformer, F.cross_entropy": (PlainLoss, PyTorchTransformer),
    }
    with tempfile.TemporaryDirectory() as folder:
        alone = Processes(0, 1, torch.device("cpu"))
        runs = {
            name: kind(settings, pairs, RunFolder(Path(folder, name[:20])), alone, make_model=make)
            for name, (kind, make) in arms.items()
        }
        seconds, tokens = dict.fromkeys(runs, 0.0), dict.fromkeys(runs, 0)
        for turn in range(ROUNDS + 1):
            for name, run in runs.items():
                started = time.perf_counter()
                for _ in range(STEPS if turn else WARM_UP):
                    run.step += 1
                    count = run._step(run.step, 0.5)[1]
                    tokens[name] += count if turn else 0
                seconds[name] += time.perf_counter() - started if turn else 0.0
    ours = tokens["this course"] / seconds["this course"]
    for name in runs:
        rate = tokens[name] / seconds[name]
        print(f"{name:40} {rate:8,.0f} target tokens/s   this course: {ours / rate:.2f} x")


def convert(arguments: list[str]) -> None:
    """Write a trained `PyTorchTransformer` as a run of the course's own model, the same function."""
    options = argparse.ArgumentParser("python -m tests.benchmarks.translator convert")
    options.add_argument("source", metavar="FROM", type=RunFolder)
    options.add_argument("target", metavar="TO", type=RunFolder)
    chosen = options.parse_args(arguments)
    settings = Settings.read(chosen.source.settings)
    subwords = Subwords.read(chosen.source.subwords)
    model = PyTorchTransformer(settings, len(subwords))
    load_model(model, chosen.source.model)
    chosen.target.start(settings, subwords)
    write_weights(model.ours(), chosen.target.model)


if __name__ == "__main__":
    if sys.argv[1:2] == ["speed"]:
        speed(sys.argv[2:])
    elif sys.argv[1:2] == ["convert"]:
        convert(sys.argv[2:])
    else:
        sys.exit(train(sys.argv[1:], make_model=PyTorchTransformer))
