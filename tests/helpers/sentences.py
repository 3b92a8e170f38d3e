"""The sentences of the phrasebook as pairs of texts, sampled once for all tests of a process."""

import functools
from pathlib import Path

from course_lib.data.sentence_pairs import SentencePairs, sentence_pairs
from tests.helpers.annotations import unchecked


@functools.cache
def all_pairs() -> SentencePairs:
    """The 22,000 of `sentence_pairs`."""
    with unchecked():
        return sentence_pairs()


def few_pairs(train: int, val: int, test: int) -> SentencePairs:
    """The first ones of each split."""
    every = all_pairs()
    return SentencePairs(every.train[:train], every.val[:val], every.test[:test], "phrasebook")


def write_pairs(folder: Path, pairs: SentencePairs) -> Path:
    """Write them to the files that --data reads."""
    for split in ("train", "val", "test"):
        for column, language in enumerate(("en", "de")):
            lines = "".join(pair[column] + "\n" for pair in getattr(pairs, split))
            (folder / f"{split}.{language}").write_text(lines, encoding="utf-8")
    return folder
