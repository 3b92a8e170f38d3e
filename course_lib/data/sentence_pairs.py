"""Pairs of a sentence and its translation, from files: the learner's own, or public ones downloaded when asked for."""

import gzip
import io
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
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


#: The languages of data that have a name, in their own direction first.
LANGUAGES = {"phrasebook": ("en", "fr")} | {name: one.languages for name, one in DOWNLOADS.items()}


class SentencePairs(NamedTuple):
    """The pairs (source, target) of each split, and where they come from.

    Attributes:
        train, val, test: the pairs.
        name: of the data, as it was asked for.
        source, target: the languages; None for a table, which does not say them.
        columns: of a table, those of source and target, the first being 1; None for other data.
    """

    train: list[tuple[str, str]]
    val: list[tuple[str, str]]
    test: list[tuple[str, str]]
    name: str
    source: str | None = None
    target: str | None = None
    columns: tuple[int, int] | None = None

    def fingerprint(self) -> str:
        """Return a checksum of all pairs, in their order: other data have another one, wherever they are kept."""
        checksum = sha256()
        for split in SPLITS:
            checksum.update(f"{split}\n".encode())
            for pair in getattr(self, split):
                checksum.update("".join(f"{text}\n" for text in pair).encode())
        return checksum.hexdigest()[:16]

    def places(self, wanted: Iterable[tuple[str, str]], split: str) -> list[str]:
        """Return where these pairs of a split stand, as "file, line number", looked up in the files again.

        A pair that is wanted several times is found at several places.
        """
        wanted = list(wanted)
        missing = Counter(wanted)
        places: dict[tuple[str, str], list[str]] = {pair: [] for pair in wanted}
        try:
            for row in _rows(self.name, self.source, self.target, self.columns):
                if not missing:
                    break
                if row.split == split and row.pair in missing:
                    missing -= Counter([row.pair])
                    places[row.pair].append(row.place)
        except (OSError, ValueError):  # made by hand, or gone meanwhile
            pass
        for number, pair in enumerate(getattr(self, split), start=1):
            if pair in missing:
                missing -= Counter([pair])
                places[pair].append(f"{self.name}, pair {number} of {split}")
        return [places[pair].pop(0) for pair in wanted]


class _Row(NamedTuple):
    """A pair with the place where it stands, and what is wrong with it, or ""."""

    split: str
    place: str
    pair: tuple[str, str]
    problem: str = ""


def sentence_pairs(
    data: str | Path = "phrasebook",
    source: str | None = None,
    target: str | None = None,
    *,
    columns: tuple[int, int] | None = None,
    skip_damaged: bool = False,
) -> SentencePairs:
    """Read pairs of sentences with their splits.

    Args:
        data: "phrasebook", which needs no file; a name in `DOWNLOADS`, which is downloaded once, checked and kept; a
            folder with line-aligned files such as `train.en` and `train.de`, `val.en`, …, `test.en` or
            `test_2016_flickr.en`, each also as `.gz`; or a table: a file with columns separated by tabs, as those of
            manythings.org/anki, also inside a `.zip`: 2 % of its source sentences each are held out as "val" and
            "test".
        source, target: the languages. They choose the files of a folder, and the direction of named data. Left out: "en"
            to "de" for a folder and Multi30k, "en" to "fr" for the phrasebook and Tatoeba. A table does not say its
            languages: there they are names, and `columns` gives the direction.
        columns: of a table, those of source and target; (1, 2) where left out, (2, 1) for the other direction.
        skip_damaged: leave out lines that are empty or damaged, with a warning that names them.

    Raises:
        ValueError: for lines that cannot be used, with file and line; for files that do not fit together; for languages
            that named data do not have.
        FileNotFoundError: for a folder or file that is not there.
        ConnectionError: if a download fails; it says what to do.
    """
    name = str(data)
    source, target, columns = _direction(name, source, target, columns)
    found: dict[str, list] = {split: [] for split in SPLITS}
    bad = []
    for row in _rows(name, source, target, columns):
        if row.problem:
            bad.append(f"{row.place}: {row.problem}")
        else:
            found[row.split].append(row.pair)
    _report(bad, skip_damaged)
    return SentencePairs(**found, name=name, source=source, target=target, columns=columns)


def _direction(
    name: str, source: str | None, target: str | None, columns: tuple[int, int] | None
) -> tuple[str | None, str | None, tuple[int, int] | None]:
    """Return the languages and the columns that are meant, or refuse what the data do not have."""
    known, path = LANGUAGES.get(name), Path(name)
    if known is None and not path.exists():
        raise FileNotFoundError(
            f"data={name!r} is no file, no folder, and not among {', '.join(map(repr, LANGUAGES))}"
        )
    table = known is None and path.is_file()
    if columns is not None:
        if not table:
            raise ValueError(f"columns={columns} is for a table, and data={name!r} is none")
        if len(columns) != 2 or min(columns) < 1 or columns[0] == columns[1]:
            raise ValueError(
                f"columns={columns} must be two different columns, the first being 1: (1, 2) or (2, 1)"
            )
    if table:
        if source is not None and source == target:
            raise ValueError(f"source and target are both {source!r}")
        return source, target, tuple(columns or (1, 2))
    first, second, *_ = known or ("en", "de")
    if source is None:
        source = second if target == first else first
    if target is None:
        target = first if source == second else second
    if known and not {source, target} <= {*known}:
        unknown = source if source not in known else target
        raise ValueError(
            f"{name} has no {unknown!r}; it has {', '.join(map(repr, known))}, in either direction"
        )
    if source == target:
        raise ValueError(f"source and target are both {source!r}")
    return source, target, None


def _rows(
    name: str, source: str | None, target: str | None, columns: tuple[int, int] | None
) -> Iterator[_Row]:
    """Yield the pairs of all splits, and the lines that cannot be used."""
    path = Path(name)
    if name == "phrasebook":
        yield from _phrasebook(turned=source == "fr")
        return
    if name in DOWNLOADS:
        path = _downloaded(name)
        if path.is_file():
            places = [LANGUAGES[name].index(language) + 1 for language in (source, target)]
            columns = (places[0], places[1])
    if path.is_dir():
        yield from _from_folder(path, source, target)
    else:
        yield from _from_table(path, columns or (1, 2))


def _phrasebook(turned: bool) -> Iterator[_Row]:
    held_out = phrases(2000, split="held out")
    splits = {"train": phrases(20_000), "val": held_out[:1000], "test": held_out[1000:]}
    for split, some in splits.items():
        for number, one in enumerate(some, start=1):
            # French has a space before the mark
            english = detokenize(one.english).replace(" ?", "?")
            pair = (english, detokenize(one.french))
            place = f"phrasebook, pair {number} of {split}"
            yield _Row(split, place, pair[::-1] if turned else pair)


def _from_folder(folder: Path, source: str, target: str) -> Iterator[_Row]:
    for split in SPLITS:
        files = [_split_file(folder, split, language) for language in (source, target)]
        lines = [list(_lines(path.read_bytes(), path)) for path in files]
        if len(lines[0]) != len(lines[1]):
            counts = " and ".join(
                f"{len(some):,} lines in {path}" for some, path in zip(lines, files, strict=True)
            )
            raise ValueError(f"the files must have as many lines as each other: {counts}")
        for number, (one, other) in enumerate(zip(*lines, strict=True), start=1):
            problem = one[1] or other[1]
            where = (
                (files[0] if one[1] else files[1]) if problem else f"{files[0]} and {files[1].name}"
            )
            pair = one[0].strip(), other[0].strip()
            yield _Row(split, f"{where}, line {number}", pair, problem)


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


def _from_table(path: Path, columns: tuple[int, int]) -> Iterator[_Row]:
    what, data = str(path), path.read_bytes()
    if path.suffix == ".zip":
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                texts = [one for one in archive.namelist() if one.endswith((".txt", ".tsv"))]
                inside = max(texts, key=lambda one: archive.getinfo(one).file_size, default=None)
                if inside is None:
                    raise ValueError(f"{path} holds no .txt and no .tsv file")
                what, data = f"{path}/{inside}", archive.read(inside)
        except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError) as error:
            raise ValueError(
                f"{path} is damaged, or no .zip file that can be read: {error}"
            ) from None
    for number, (line, problem) in enumerate(_lines(data, path), start=1):
        cells = [cell.strip() for cell in line.split("\t")] + [""] * max(columns)
        pair = cells[columns[0] - 1], cells[columns[1] - 1]
        if not problem and not all(pair):
            problem = f"it needs a source and a target, in columns {columns[0]} and {columns[1]}, separated by a tab"
        yield _Row(_split_of(pair[0]), f"{what}, line {number}", pair, problem)


def _split_of(sentence: str) -> str:
    """Held out or not by the sentence alone: the same sentence is never in two splits."""
    number = int(sha256(sentence.encode()).hexdigest(), 16) % 100
    held_out = {0: "val", 1: "test"}
    return held_out.get(number // _HELD_OUT_PERCENT, "train")


def _lines(data: bytes, path: Path) -> Iterator[tuple[str, str]]:
    """Yield each line with what is wrong with it, or with ""."""
    if path.suffix == ".gz":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{path} is damaged, or not compressed by gzip: {error}") from None
    data = data.removeprefix(b"\xef\xbb\xbf")  # the mark that some editors put first
    rows = data.split(b"\n")
    for row in rows[:-1] if rows[-1] == b"" else rows:
        try:
            line = row.removesuffix(b"\r").decode("utf-8")
        except UnicodeDecodeError as error:
            byte = row[error.start]
            yield (
                "",
                f"byte {byte:#04x} at place {error.start} is not UTF-8; save the file as UTF-8",
            )
            continue
        if not line.strip():
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
        raise ValueError(
            f"{said}\nRepair these lines, or leave them out: skip_damaged=True, --skip-damaged"
        )
    warnings.warn(f"left out, with their translations:\n{said}", stacklevel=3)


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
