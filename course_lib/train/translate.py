"""Translate with what a run has trained, a line for every line.

python -m course_lib.train.translate --folder runs/en-de "A man rides a bicycle."
python -m course_lib.train.translate --folder runs/en-de --beam 5 < sentences.en > sentences.de
"""

import argparse
import sys
from collections.abc import Iterator
from io import TextIOWrapper
from itertools import islice
from pathlib import Path

from course_lib.train.folder import RunFolder

_LINES = 500  # read at once, so that a long file does not have to fit into memory


def main(arguments: list[str] | None = None) -> int:
    """Print a translation of each sentence; return the exit status."""
    options = argparse.ArgumentParser(
        "python -m course_lib.train.translate",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_argument("sentences", nargs="*", help="to translate; else those of standard input")
    options.add_argument("--folder", type=Path, default=Path("run"), help="of the run (run)")
    options.add_argument("--beam", type=int, default=1, metavar="SIZE", help="1 for greedy (1)")
    chosen = options.parse_args(arguments)
    try:
        translator = RunFolder(chosen.folder).translator()
        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8")
        lines = (line.strip() for line in chosen.sentences or _typed())
        while texts := list(islice(lines, _LINES)):
            translated = translator.all(texts, beam_size=chosen.beam)
            print(*(" ".join(text.splitlines()) for text in translated), sep="\n", flush=True)
    except (ValueError, OSError) as error:
        print(f"course_lib.train.translate: {error}", file=sys.stderr)
        return 1
    return 0


def _typed() -> Iterator[str]:
    """Yield the lines of standard input, read as the files of --data are."""
    for number, row in enumerate(getattr(sys.stdin, "buffer", sys.stdin), start=1):
        try:
            yield (
                row if isinstance(row, str) else row.decode("utf-8-sig" if number == 1 else "utf-8")
            )
        except UnicodeDecodeError as error:
            raise ValueError(
                f"line {number}: byte {row[error.start]:#04x} at place {error.start} is not UTF-8"
            ) from None


if __name__ == "__main__":
    sys.exit(main())
