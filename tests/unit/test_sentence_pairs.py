"""Sentence pairs from files: what is read, and what cannot be, with file and line."""

import gzip
import zipfile

import pooch
import pytest

from course_lib.data import sentence_pairs as module
from course_lib.data.sentence_pairs import DOWNLOADS, sentence_pairs
from tests.helpers.sentences import all_pairs

PAIRS = [("A dog.", "Ein Hund."), ("Two – cats\u2028!", "Zwei Katzen!"), ("Æ", "ß")]


def folder_of(path, compressed=False, **lines):
    """Files such as train.en; a split is the same in both languages where it is not given."""
    for split in ("train", "val", "test_2016_flickr"):
        for language, column in (("en", 0), ("de", 1)):
            text = lines.get(f"{split}_{language}", "".join(f"{pair[column]}\n" for pair in PAIRS))
            data = text if isinstance(text, bytes) else text.encode()
            name = path / f"{split}.{language}"
            if compressed:
                name, data = path / f"{split}.{language}.gz", gzip.compress(data)
            name.write_bytes(data)
    return path


@pytest.mark.parametrize("compressed", [False, True])
def test_line_aligned_files_are_read_line_by_line(tmp_path, compressed):
    found = sentence_pairs(folder_of(tmp_path, compressed))
    assert found.train == found.val == found.test == PAIRS  # U+2028 ends no line
    assert sentence_pairs(tmp_path, "de", "en").train == [pair[::-1] for pair in PAIRS]


def test_windows_line_ends_and_a_byte_order_mark_do_not_count(tmp_path):
    text = "\ufeff" + "\r\n".join(pair[0] for pair in PAIRS) + "\r\n"
    assert sentence_pairs(folder_of(tmp_path, train_en=text)).train == PAIRS


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ({"train_de": "Ein Hund.\n"}, r"3 lines in .*train\.en and 1 lines in .*train\.de"),
        ({"val_de": b"Ein Hund.\nKatzen f\xfcr\nx\n"}, r"val\.de, line 2: byte 0xfc at place 8"),
        ({"train_en": "A dog.\n \nx\n"}, r"train\.en, line 2: it is empty"),
        ({"train_en": "A\ufffd dog.\ny\nx\n"}, r"train\.en, line 1: it holds a character"),
    ],
)
def test_lines_that_cannot_be_used_are_named(tmp_path, lines, says):
    folder_of(tmp_path, **lines)
    with pytest.raises(ValueError, match=says):
        sentence_pairs(tmp_path)


def test_damaged_lines_are_left_out_with_their_translations_if_asked_and_named(tmp_path):
    folder_of(tmp_path, train_de=b"Ein Hund.\n\xff\nx\n")
    with pytest.warns(UserWarning, match=r"train\.de, line 2"):
        assert sentence_pairs(tmp_path, skip_damaged=True).train == [PAIRS[0], ("Æ", "x")]


def test_what_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="no file, no folder.*'multi30k'"):
        sentence_pairs(tmp_path / "nothing")
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(FileNotFoundError, match=r"no train\.en.*it has notes\.txt"):
        sentence_pairs(tmp_path)
    folder_of(tmp_path, compressed=True)
    whole = (tmp_path / "train.en.gz").read_bytes()
    (tmp_path / "train.en.gz").write_bytes(whole[:-9])
    with pytest.raises(ValueError, match=r"train\.en\.gz is damaged"):
        sentence_pairs(tmp_path)


@pytest.mark.parametrize("zipped", [False, True])
def test_a_table_is_split_by_its_sources(tmp_path, zipped):
    rows = [(f"sentence {n}", f"Satz {n} {m}") for n in range(900) for m in "ab"]
    text = "".join(f"{a}\t{b}\tCC-BY 2.0\n" for a, b in rows)
    path = tmp_path / "deu.txt"
    path.write_text(text, encoding="utf-8")
    if zipped:
        path = tmp_path / "deu.zip"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("_about.txt", "about")
            archive.writestr("deu.txt", text)
    found = sentence_pairs(path)
    assert sorted(found.train + found.val + found.test) == sorted(rows)
    sources = [{a for a, _ in split} for split in (found.train, found.val, found.test)]
    assert not sources[0] & sources[1] and not sources[0] & sources[2]
    assert all(9 < len(some) < 30 for some in sources[1:])
    path = tmp_path / "bad.txt"
    path.write_text("one\ttwo\nthree\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"bad\.txt, line 2: it needs a source and a target"):
        sentence_pairs(path)


def test_the_phrasebook_needs_no_file():
    found = all_pairs()
    assert [len(split) for split in found[:3]] == [20_000, 1000, 1000]
    assert not {*found.train} & {*found.val, *found.test}
    assert found.train[0][0].endswith((".", "?"))


@pytest.fixture
def served(tmp_path, monkeypatch):
    """Instead of the network: files of a folder, and a cache of its own."""
    served = tmp_path / "public"
    served.mkdir()

    def fetch(url, output, _):
        source = served / url.rpartition("/")[2]
        if not source.exists():
            raise ConnectionError("no network")
        with open(output, "wb") as file:
            file.write(source.read_bytes())

    monkeypatch.setattr(pooch, "os_cache", lambda name: tmp_path / "cache")
    monkeypatch.setattr(pooch.core, "choose_downloader", lambda *_, **__: fetch)
    return served


def test_a_download_is_checked_kept_and_never_half(served, tmp_path, monkeypatch):
    folder_of(served, compressed=True)
    names = [url.rpartition("/")[2] for url in DOWNLOADS["multi30k"].files]
    for name in names:
        if not (served / name).exists():  # French
            (served / name).write_bytes(gzip.compress(b"x\n"))
    with pytest.raises(ValueError, match="is not the file it was"):
        sentence_pairs("multi30k")
    assert not list((tmp_path / "cache").rglob("*.gz")), "a file with another checksum is kept"
    files = {
        url: "sha256:" + pooch.file_hash(served / url.rpartition("/")[2])
        for url in DOWNLOADS["multi30k"].files
    }
    known = DOWNLOADS["multi30k"]._replace(files=files)
    monkeypatch.setitem(module.DOWNLOADS, "multi30k", known)
    assert sentence_pairs("multi30k").test == PAIRS
    for name in names:
        (served / name).unlink()
    assert sentence_pairs("multi30k").test == PAIRS, "it is downloaded again"


def test_without_a_network_it_is_said_what_to_do(served):
    with pytest.raises(ConnectionError, match="Without a network: copy the files of Elliott"):
        sentence_pairs("multi30k")
