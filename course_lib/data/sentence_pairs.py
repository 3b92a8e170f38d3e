"""Pairs of a sentence and its translation, from files: the learner's own, or public ones downloaded when asked for."""

import gzip
import io
import warnings
import zipfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from course_lib.data.phrasebook import detokenize, phrases

SPLITS = ("train", "val", "test")
_HELD_OUT_PERCENT = 2  # of the sentences of a file without splits, for "val" and for "test" each
_SHOWN = 5  # line numbers named in a message
_MULTI30K = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw/"
_D2L = "http://d2l-data.s3-accelerate.amazonaws.com/"


class Download(NamedTuple):
    """A public data set: its files with their checksums, its languages and its licence."""

    files: dict[str, str]  # address → checksum
    languages: tuple[str, ...]
    licence: str
    source: str


#: Data sets that `sentence_pairs` downloads by name. The checksums are those of the files of November 2026.
DOWNLOADS = {
    "multi30k": Download(
        {
            _MULTI30K + name: "sha256:" + checksum
            for name, checksum in {
                "train.de.gz": "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6",
                "train.en.gz": "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
                "train.fr.gz": "622e75069e9f4c577425c4f277116ce66e63a2401c0a2312d90073cb12379a3c",
                "val.de.gz": "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a",
                "val.en.gz": "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
                "val.fr.gz": "ca3106f1a72390591d25f6c45cb4cd39dec4cd3f123e099748a3ce5256c160e9",
                "test_2016_flickr.de.gz": "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8",
                "test_2016_flickr.en.gz": "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9",
                "test_2016_flickr.fr.gz": "6d326e188d259fb1d04ac19eae3af956559b3a0b93d7635e56c90987c40c8b90",
            }.items()
        },
        ("en", "de", "fr"),
        "CC BY-NC-SA 4.0",
        "Elliott et al. (2016), Multi30K; https://github.com/multi30k/dataset",
    ),
    "tatoeba": Download(
        {_D2L + "fra-eng.zip": "sha1:94646ad1522d915e7b0f9296181140edcf86a4f5"},
        ("en", "fr"),
        "CC BY 2.0 FR",
        "tatoeba.org, by way of manythings.org/anki and d2l.ai",
    ),
}


class SentencePairs(NamedTuple):
    """The pairs (source, target) of each split, and what they are."""

    train: list[tuple[str, str]]
    val: list[tuple[str, str]]
    test: list[tuple[str, str]]
    name: str


def sentence_pairs(
    data: str | Path = "phrasebook",
    source: str = "en",
    target: str = "de",
    *,
    skip_damaged: bool = False,
) -> SentencePairs:
    """Read pairs of sentences with their splits.

    Args:
        data: "phrasebook", which needs no file (English to French); a name in `DOWNLOADS`, which is downloaded once,
            checked and kept; a folder with line-aligned files such as `train.en` and `train.de`, `val.en`, …,
            `test.en` or `test_2016_flickr.en`, each also as `.gz`; or a file with a source and a target in the first
            two columns, separated by a tab, as those of manythings.org/anki, also inside a `.zip`: 2 % of its source
            sentences each are held out as "val" and "test".
        source, target: the languages, as in the names of the files.
        skip_damaged: leave out lines that are empty or damaged, with a warning that names them.

    Raises:
        ValueError: for lines that cannot be used, with file and line; for files that do not fit together.
        FileNotFoundError: for a folder or file that is not there.
        ConnectionError: if a download fails; it says what to do.
    """
    name, path = str(data), Path(data)
    if name == "phrasebook":
        return _phrasebook()
    if name in DOWNLOADS:
        path = _downloaded(name)
    if path.is_dir():
        return _from_folder(path, source, target, name, skip_damaged)
    if not path.exists():
        raise FileNotFoundError(
            f"data={name!r} is no file, no folder, and not among 'phrasebook', "
            f"{', '.join(map(repr, DOWNLOADS))}"
        )
    return _from_table(path, name, skip_damaged)


def _phrasebook() -> SentencePairs:
    def pairs(**options) -> list[tuple[str, str]]:
        def english(text: str) -> str:  # French has a space before the mark
            return detokenize(text).replace(" ?", "?")

        return [(english(one.english), detokenize(one.french)) for one in phrases(**options)]

    held_out = pairs(count=2000, split="held out")
    return SentencePairs(pairs(count=20_000), held_out[:1000], held_out[1000:], "phrasebook")


def _from_folder(
    folder: Path, source: str, target: str, name: str, skip_damaged: bool
) -> SentencePairs:
    found = {}
    for split in SPLITS:
        files = [_split_file(folder, split, language) for language in (source, target)]
        lines = [list(_lines(path.name, path.read_bytes(), path)) for path in files]
        if len(lines[0]) != len(lines[1]):
            counts = " and ".join(
                f"{len(some):,} lines in {path}" for some, path in zip(lines, files, strict=True)
            )
            raise ValueError(f"the files must have as many lines as each other: {counts}")
        bad = [
            f"{path}, line {number}: {problem}"
            for path, some in zip(files, lines, strict=True)
            for number, (_, problem) in enumerate(some, start=1)
            if problem
        ]
        _report(bad, skip_damaged)
        rows = zip(*lines, strict=True)
        found[split] = [(one, other) for (one, no), (other, nor) in rows if not (no or nor)]
    return SentencePairs(**found, name=name)


def _split_file(folder: Path, split: str, language: str) -> Path:
    """Return the one file of a split; "test_2016_flickr.de.gz" is of "test"."""
    names = (f"{split}.{language}", f"{split}_*.{language}")
    found = [path for name in names for end in ("", ".gz") for path in folder.glob(name + end)]
    if not found:
        raise FileNotFoundError(
            f"{folder} has no {split}.{language} and no {split}.{language}.gz; it has "
            f"{', '.join(sorted(path.name for path in folder.iterdir())[:12]) or 'nothing'}"
        )
    return found[0]


def _from_table(path: Path, name: str, skip_damaged: bool) -> SentencePairs:
    found: dict[str, list] = {split: [] for split in SPLITS}
    bad, what, data = [], str(path), path.read_bytes()
    if path.suffix == ".zip":
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            texts = [one for one in archive.namelist() if one.endswith((".txt", ".tsv"))]
            inside = max(texts, key=lambda one: archive.getinfo(one).file_size, default=None)
            if inside is None:
                raise ValueError(f"{path} holds no .txt and no .tsv file")
            what, data = f"{path}/{inside}", archive.read(inside)
    for number, (line, problem) in enumerate(_lines(what, data, path), start=1):
        columns = [column.strip() for column in line.split("\t")]
        if not problem and (len(columns) < 2 or not all(columns[:2])):
            problem = "it needs a source and a target, separated by a tab"
        if problem:
            bad.append(f"{what}, line {number}: {problem}")
        else:
            found[_split_of(columns[0])].append((columns[0], columns[1]))
    _report(bad, skip_damaged)
    return SentencePairs(**found, name=name)


def _split_of(sentence: str) -> str:
    """Held out or not by the sentence alone: the same sentence is never in two splits."""
    number = int(sha256(sentence.encode()).hexdigest(), 16) % 100
    held_out = {0: "val", 1: "test"}
    return held_out.get(number // _HELD_OUT_PERCENT, "train")


def _lines(what: str, data: bytes, path: Path) -> Iterator[tuple[str, str]]:
    """Yield each line with what is wrong with it, or with ""."""
    if path.suffix == ".gz":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError) as error:
            raise ValueError(f"{path} is damaged, or not compressed by gzip: {error}") from None
    data = data.removeprefix(b"\xef\xbb\xbf")  # the mark that some editors put first
    rows = data.split(b"\n")
    for row in rows[:-1] if rows[-1] == b"" else rows:
        try:
            line = row.removesuffix(b"\r").decode("utf-8").strip()
        except UnicodeDecodeError as error:
            byte = row[error.start]
            yield (
                "",
                f"byte {byte:#04x} at place {error.start} is not UTF-8; save the file as UTF-8",
            )
            continue
        if not line:
            yield line, "it is empty"
        elif "\ufffd" in line or "\0" in line:
            yield line, "it holds a character that stands for a damaged one"
        else:
            yield line, ""


def _report(bad: list[str], skip_damaged: bool) -> None:
    if not bad:
        return
    said = "\n".join(bad[:_SHOWN]) + (f"\nand {len(bad) - _SHOWN} more" if bad[_SHOWN:] else "")
    if not skip_damaged:
        raise ValueError(f"{said}\nRepair these lines, or leave them out: skip_damaged=True")
    warnings.warn(f"left out, with their translations:\n{said}", stacklevel=4)


def _downloaded(name: str) -> Path:
    """Return the file, or the folder of the files, downloading what is not there; a partial file is never kept."""
    import pooch

    files, _, licence, source = DOWNLOADS[name]
    folder = pooch.os_cache("attention-course") / name
    pooch.get_logger().setLevel("WARNING")
    for address, checksum in files.items():
        file = address.rpartition("/")[2]
        try:
            path = pooch.retrieve(address, checksum, file, folder)
        except ValueError as error:  # another checksum
            raise ValueError(f"{address} is not the file it was: {error}") from None
        except OSError as error:  # requests' errors are OSErrors
            raise ConnectionError(
                f"{address} could not be downloaded ({type(error).__name__}). Without a network: copy the files of "
                f"{source} into a folder, and name that folder. (Licence: {licence}.)"
            ) from None
    return folder if len(files) > 1 else Path(path)
