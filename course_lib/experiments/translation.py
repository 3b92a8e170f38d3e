"""How well does an hour on one CPU core translate, and what changes in that hour?

Two models of one size are trained side by side by the same recipe, on the same batches, for the same time: that of this
course, and `nn.Transformer`. Then what their folders hold is recorded beside this file (about five minutes)::

    python -m course_lib.train --data multi30k --d-model 128 --layers 4 --heads 4 --d-ff 256 --dropout 0.2 \
        --precision bfloat16 --minutes 60 --lr 0.003 --warmup 1000 --evaluate-every 1000 --threads 1 --folder runs/ours
    python -m tests.benchmarks.translator … --folder runs/peer                            the same options
    python -m course_lib.experiments.translation --data multi30k --ours runs/ours --peer runs/peer --weights kept

Runs of other seeds, settings or machines are recorded beside them with `--more`. Those of the record are three seeds of
6.3 minutes on one NVIDIA H200, at once; three seeds each of 3.6 minutes with `--vocabulary` 1000 and 8000, `--dropout 0.2
--lr 0.004 --warmup 1000 --evaluate-every 1000`, all six at once; and the same with `--lr` 0.001, 0.002, 0.008 and 0.016,
seed 0, and 0.008 with two more, six at once on a machine with slower CPUs (the hour and the first nine averaged the
weights of their last five measurements, a run now averages those of its last five percents)::

    python -m course_lib.train --data multi30k --d-model 128 --layers 4 --heads 4 --d-ff 256 --dropout 0.3 --minutes 6.3 \
        --tokens 4096 --precision bfloat16 --lr 0.005 --warmup 2000 --evaluate-every 1500 --seed 0 --folder runs/gpu0
    python -m course_lib.experiments.translation … --more runs/gpu0 runs/gpu1 runs/gpu2

`--weights` is a folder with copies of `step-*.safetensors`, made while the first one was training (a run keeps only the
last five of them). What is not given stays as it is recorded.
"""

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_model

from course_lib.data.sentence_pairs import SentencePairs, sentence_pairs
from course_lib.experiments.record import read, write
from course_lib.train.folder import RunFolder
from course_lib.train.scores import sacrebleu_scores
from course_lib.train.settings import Settings
from course_lib.train.translator import SubwordTranslator

RECORD = Path(__file__).with_suffix(".json")
BEAMS = (1, 2, 5, 10)
#: Sentences of our own that show what an hour changes.
SENTENCES = (
    "A woman in a yellow dress is reading a book under a big tree.",
    "An old man sells apples on the market.",
    "Zaphod is riding a green bicycle through the city.",
    "The parliament rejected the new law on Friday.",
)
#: As many test sentences of at most so many words are quoted, with references and translations.
QUOTED, SHORT = 8, 10


def recorded() -> dict[str, Any]:
    """Return the record."""
    return read(RECORD)


def arm(folder: RunFolder, data: str) -> dict[str, Any]:
    """Return what is recorded of a run: its result, with one list per curve."""
    result = json.loads(folder.result.read_text(encoding="utf-8"))
    measured = result.pop("measured")
    curves = {
        "step": [one["step"] for one in measured],
        "minutes": [round(one["seconds"] / 60, 2) for one in measured],
        "held_out_loss": [one["held_out_loss"] for one in measured],
        "bleu": [one["bleu"] for one in measured],
    }
    return result | {"settings": result["settings"] | {"data": data}, "curves": curves}


def pair_lengths(translator: SubwordTranslator, pairs: SentencePairs) -> list[list[int]]:
    """Return the lengths of the training pairs in tokens, as rows of source, target and number of such pairs."""
    sources, targets = zip(*pairs.train, strict=True)
    encode = translator.subwords.encode_all
    sides = encode(sources, eos=True), encode(targets, bos=True, eos=True)
    counts = Counter(tuple(map(len, pair)) for pair in zip(*sides, strict=True))
    return [[source, target, count] for (source, target), count in sorted(counts.items())]


def scored(translator: SubwordTranslator, pairs: SentencePairs, beam_size: int) -> dict[str, Any]:
    """Return the BLEU of the test sentences and how long they took."""
    sources, references = zip(*pairs.test, strict=True)
    started = time.perf_counter()
    translations = translator.all(sources, beam_size=beam_size)
    seconds = time.perf_counter() - started
    tokens = sum(map(len, translator.subwords.encode_all(translations)))
    return {
        "bleu": sacrebleu_scores(translations, references)["score"],
        "seconds": round(seconds, 1),
        "tokens": round(tokens / len(translations), 2),
    }


def quoted(translator: SubwordTranslator, pairs: SentencePairs) -> list[dict[str, Any]]:
    """Return short test sentences with greedy translations, one from each part of those sorted by chrF.

    They are the middle ones of `QUOTED` equal parts, so none is chosen by hand.
    """
    from sacrebleu.metrics import CHRF

    short = [pair for pair in pairs.test if len(pair[0].split()) <= SHORT]
    translations = translator.all([source for source, _ in short])
    metric = CHRF()
    rows = [
        {
            "chrf": round(metric.sentence_score(translation, [reference]).score, 1),
            "source": source,
            "reference": reference,
            "translation": translation,
        }
        for (source, reference), translation in zip(short, translations, strict=True)
    ]
    rows.sort(key=lambda row: -row["chrf"])
    return [rows[(2 * part + 1) * len(rows) // (2 * QUOTED)] for part in range(QUOTED)]


def after_steps(translator: SubwordTranslator, folder: Path) -> dict[str, list[str]]:
    """Return the translations of `SENTENCES` with each of the kept weights, step → texts."""
    texts = {}
    for path in sorted(folder.glob("step-*.safetensors")):
        load_model(translator.model, path)
        texts[str(int(path.stem.removeprefix("step-")))] = translator.all(SENTENCES)
    return texts


def record(
    folders: dict[str, RunFolder], pairs: SentencePairs, data: str, weights: Path | None = None
) -> dict[str, Any]:
    """Return all that is recorded; see the module.

    Args:
        folders: of both runs, "this course" first.
        pairs: the text.
        data: its name.
        weights: folder with the weights after some steps.
    """
    result: dict[str, Any] = {name: arm(folder, data) for name, folder in folders.items()}
    ours = next(iter(folders.values()))
    translator = ours.translator()
    result["lengths"] = pair_lengths(translator, pairs)
    result["beams"] = {str(beam): scored(translator, pairs, beam) for beam in BEAMS}
    result["quoted"] = quoted(translator, pairs)
    result["kept"] = translator.all(SENTENCES)
    if weights is not None:
        result["after steps"] = after_steps(translator, weights)
    return result


def main(arguments: list[str] | None = None, path: Path = RECORD) -> int:
    """Write the record; return the exit status."""
    parser = argparse.ArgumentParser(
        "python -m course_lib.experiments.translation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", default="multi30k", help="what both were trained on (multi30k)")
    parser.add_argument("--ours", type=Path, required=True, help="folder of this course's run")
    parser.add_argument("--peer", type=Path, required=True, help="folder of nn.Transformer's run")
    parser.add_argument("--weights", type=Path, help="folder with the weights after some steps")
    parser.add_argument("--more", type=Path, nargs="*", default=[], help="folders of further runs")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    folders = {"this course": RunFolder(options.ours), "nn.Transformer": RunFolder(options.peer)}
    settings = Settings.read(folders["this course"].settings)
    pairs = sentence_pairs(options.data, settings.source, settings.target)
    name = Path(options.data).name
    new = record(folders, pairs, name, options.weights)
    if options.more:
        new["more"] = [arm(RunFolder(folder), name) for folder in options.more]
    had = read(path)
    write(path, {key: had[key] for key in ("after steps", "more") if key in had} | new, indent=None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
