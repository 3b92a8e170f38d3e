"""Sentence pairs from files: what is read, and what cannot be, with file and line."""

import functools
import gzip
import zipfile

import pooch
import pytest

from course_lib.data import sentence_pairs as module
from course_lib.data.sentence_pairs import DOWNLOADS, SentencePairs, sentence_pairs
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


# --- directions, places, fingerprints ---------------------------------------------------------


def test_named_data_are_turned_round_or_refused(served, monkeypatch, without_annotations):
    monkeypatch.setattr(module, "phrases", functools.cache(module.phrases))  # sampled once
    french = [pair[1] for pair in all_pairs().train[:5]]
    turned = sentence_pairs("phrasebook", "fr", "en")
    assert [pair[0] for pair in turned.train[:5]] == french and turned[4:6] == ("fr", "en")
    assert all_pairs()[4:6] == ("en", "fr") == sentence_pairs(source="en")[4:6]
    assert sentence_pairs(target="en").train == turned.train
    for source, target, says in (
        ("en", "de", "phrasebook has no 'de'; it has 'en', 'fr', in either direction"),
        ("xx", "yy", "phrasebook has no 'xx'"),
        ("fr", "fr", "source and target are both 'fr'"),
    ):
        with pytest.raises(ValueError, match=says):
            sentence_pairs("phrasebook", source, target)
    with pytest.raises(ValueError, match="multi30k has no 'cs'; it has 'en', 'de', 'fr'"):
        sentence_pairs("multi30k", "en", "cs")
    with zipfile.ZipFile(served / "fra-eng.zip", "w") as archive:
        archive.writestr("fra.txt", "".join(f"word {n}\tmot {n}\n" for n in range(300)))
    (address,) = DOWNLOADS["tatoeba"].files
    known = "sha256:" + pooch.file_hash(served / "fra-eng.zip")
    monkeypatch.setitem(module.DOWNLOADS, "tatoeba", DOWNLOADS["tatoeba"]._replace(files={address: known}))  # fmt: skip
    for languages, first in ((("en", "fr"), "word"), (("fr", "en"), "mot")):
        found = sentence_pairs("tatoeba", *languages)
        assert found[4:6] == languages and found.train[0][0].startswith(first)


def test_the_columns_of_a_table_are_those_asked_for(tmp_path):
    table = tmp_path / "four.tsv"
    rows = [(f"{n}", f"word {n}", f"{n + 1}", f"Wort {n}") for n in range(300)]
    table.write_text("".join("\t".join(row) + "\n" for row in rows))
    for columns, pick in (((2, 4), (1, 3)), ((4, 2), (3, 1)), (None, (0, 1))):
        found = sentence_pairs(table, columns=columns)
        every = [pair for split in found[:3] for pair in split]
        assert sorted(every) == sorted((row[pick[0]], row[pick[1]]) for row in rows)
        assert found.columns == (columns or (1, 2)) and found[4:6] == (None, None)
    assert sentence_pairs(table, "de", "en", columns=(4, 2))[4:6] == ("de", "en")
    for columns in ((1, 1), (0, 1), (2, -1)):
        with pytest.raises(ValueError, match="must be two different columns, the first being 1"):
            sentence_pairs(table, columns=columns)
    for data in ("phrasebook", folder_of(tmp_path)):
        with pytest.raises(ValueError, match="is for a table"):
            sentence_pairs(data, columns=(2, 1))
    table.write_text("\tEin Hund.\tCC-BY\n")
    with pytest.raises(
        ValueError, match="line 1: it needs a source and a target, in columns 1 and 2"
    ):
        sentence_pairs(table)


@pytest.mark.parametrize("split", ["train", "val", "test"])
def test_pairs_are_found_again_in_their_files(tmp_path, split):
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "table.tsv").write_text("".join(f"source {n}\ttarget {n}\n" for n in range(900)))
    name = "test_2016_flickr" if split == "test" else split
    found = sentence_pairs(folder_of(folder))
    place = f"{folder}/{name}.en and {name}.de, line "
    assert found.places([PAIRS[2], PAIRS[0]], split) == [place + "3", place + "1"]
    table = sentence_pairs(tmp_path / "table.tsv", columns=(2, 1))
    pair = getattr(table, split)[-1]
    line = int(pair[0].split()[1]) + 1
    assert table.places([pair], split) == [f"{tmp_path}/table.tsv, line {line}"]
    by_hand = SentencePairs([("a", "b"), ("c", "d")], [("e", "f")], [("g", "h")], "mine")
    assert by_hand.places([getattr(by_hand, split)[-1]], split)[0].startswith("mine, pair ")
    (folder / f"{name}.en").unlink()
    assert found.places([PAIRS[1]], split) == [f"{folder}, pair 2 of {split}"]


def test_equal_pairs_are_found_in_different_places(tmp_path):
    (tmp_path / "table.tsv").write_text("a\tb\nc\td\na\tb\na\tb\n")
    found = sentence_pairs(tmp_path / "table.tsv")
    places = found.places([("a", "b"), ("c", "d"), ("a", "b")], "train")
    assert places == [f"{tmp_path}/table.tsv, line {line}" for line in (1, 2, 3)]
    by_hand = SentencePairs([("a", "b"), ("c", "d"), ("a", "b")], [], [], "mine")
    assert by_hand.places([("a", "b")] * 2, "train") == [f"mine, pair {n} of train" for n in (1, 3)]


def test_a_fingerprint_is_that_of_the_sentences_alone(tmp_path):
    found, other = tmp_path / "one", tmp_path / "other"
    for folder in (found, other):
        folder.mkdir()
    one = sentence_pairs(folder_of(found))
    assert one.fingerprint() == sentence_pairs(folder_of(other, True)).fingerprint()
    assert one.fingerprint() == one._replace(name="x").fingerprint()
    seen = {one.fingerprint(), sentence_pairs(found, "de", "en").fingerprint()}
    for split in ("train", "val", "test"):
        for changed in (PAIRS[:2], PAIRS[::-1], [*PAIRS[:2], ("Æ", "ss")], [("Æ ß", ""), *PAIRS]):
            seen.add(one._replace(**{split: changed}).fingerprint())
    assert len(seen) == 14
    held_out = one._replace(train=PAIRS[:2], val=[PAIRS[2], *PAIRS])
    assert held_out.fingerprint() != one.fingerprint(), "a pair has moved to another split"


def test_a_damaged_archive_is_refused(tmp_path):
    (tmp_path / "a.zip").write_bytes(b"PK\x03\x04 nothing")
    with pytest.raises(ValueError, match=r"a\.zip is damaged, or no \.zip file"):
        sentence_pairs(tmp_path / "a.zip")
