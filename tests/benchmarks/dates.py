"""How well notebook 03's models read dates they never saw: ``python -m tests.benchmarks.dates``.

Three seeds per decoder, on held-out days, the held-out style, and held-out days by length (6 to 11
characters, 12 to 17, 18 to 23, 24 and more).
"""

import time

import torch

from course_lib.checkpoints import untrained_date_translator
from course_lib.data import written_dates
from course_lib.recurrent import BahdanauDecoder, FixedContextDecoder, LuongDecoder
from course_lib.workshop.checkpoints import exact_match, train_on_dates

SEEDS = (0, 1, 2)
EDGES = (6, 12, 18, 24, 41)


DECODERS = {
    "Bahdanau": (BahdanauDecoder, {}),
    "fixed context": (FixedContextDecoder, {}),
    "Luong, dot": (LuongDecoder, {"score": "dot"}),
    "Luong, general": (LuongDecoder, {"score": "general"}),
    "Luong, concat": (LuongDecoder, {"score": "concat"}),
}


def translator_with(kind, settings):
    translator = untrained_date_translator()
    vocabulary = len(translator.target)
    translator.model.decoder = kind(vocabulary, 16, hidden_size=32, memory_size=32, **settings)
    return translator


def main() -> None:
    torch.set_num_threads(1)
    days = written_dates(1000, split="held-out days")
    style = written_dates(500, split="held-out style")
    classes = [
        [one for one in days if low <= len(one.text) < high]
        for low, high in zip(EDGES, EDGES[1:], strict=False)
    ]
    for name, (kind, settings) in DECODERS.items():
        for seed in SEEDS:
            torch.manual_seed(seed)
            translator = translator_with(kind, settings)
            started = time.perf_counter()
            train_on_dates(translator, seed=seed)
            seconds = time.perf_counter() - started
            by_length = ", ".join(f"{exact_match(translator, part):.3f}" for part in classes)
            print(
                f"{name:14} seed {seed}: held-out days {exact_match(translator, days):.3f}, "
                f"held-out style {exact_match(translator, style):.3f}, "
                f"by length {by_length}; {seconds:.0f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
