"""The experiment behind study 12a: where a translator of real sentences fails."""

import json
from collections import Counter

import pytest
import sacrebleu
import torch

from course_lib.data.subwords import Subwords
from course_lib.experiments import translation_errors as experiment
from course_lib.train.folder import RunFolder, write_weights
from course_lib.train.settings import Settings
from course_lib.transformer import Transformer

TEXTS = ["A dog runs.", "Two men in red shirts talk.", "It's a well-known café!", "Men cook."]
GERMAN = ["Ein Hund rennt.", "Zwei Männer reden.", "Das ist ein Café!", "Männer kochen."]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run that was never trained, and the text for it."""
    folder = RunFolder(tmp_path_factory.mktemp("run"))
    settings = Settings(vocabulary=270, d_model=16, heads=2, layers=1, d_ff=16, steps=1)
    folder.start(settings, Subwords.learned(TEXTS + GERMAN, 270))
    torch.manual_seed(0)
    write_weights(Transformer(settings.model_config(270)), folder.model)
    for split in ("train", "val", "test"):
        for language, lines in (("en", TEXTS), ("de", GERMAN)):
            path = folder.path / f"{split}.{language}"
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def test_words_keep_their_apostrophes_and_hyphens_and_lose_punctuation():
    assert experiment.words(TEXTS[2]) == ["it's", "a", "well-known", "café"]


@pytest.mark.parametrize("kept", [slice(None), slice(1, 3)])
def test_the_counts_give_the_bleu_of_sacrebleu(kept):
    candidates = [
        "A dog runs fast.",
        "Two men in shirts talk now",
        "It's a well-known café!",
        "Cook",
    ]
    candidates, references = candidates[kept], TEXTS[kept]
    counts = experiment.counts(candidates, references)
    assert counts.shape == (len(candidates), 10)
    wanted = sacrebleu.corpus_bleu(candidates, [references]).score
    assert experiment.bleu(counts.sum(dim=0)).item() == pytest.approx(wanted)


def test_resampling_keeps_rows_whole_and_the_interval_is_the_middle_95_percent():
    rows = torch.tensor([[1, 100], [2, 200], [3, 300]])
    sums = experiment.resampled(rows)
    assert sums.shape == (experiment.RESAMPLES, 2)
    assert torch.equal(100 * sums[:, 0], sums[:, 1]) and len(sums[:, 0].unique()) == 7
    assert experiment.interval(torch.arange(1001.0)) == [25.0, 975.0]


def test_a_clause_loses_its_full_stop_and_the_capital_that_only_begins_a_sentence():
    capitals = experiment.capitals(
        ["Der Hund sieht Männer und der Mann lacht.", "Hier sind Männer."]
    )
    assert experiment.as_clause("Männer lachen.", capitals) == "Männer lachen"
    assert experiment.as_clause("Der Hund bellt.", capitals) == "der Hund bellt"
    assert experiment.as_clause("Wo?", capitals) == "wo?"


class Copies:
    """Returns the texts, the first one wrong; remembers them."""

    def __call__(self, texts):
        self.texts = texts
        return ["x", *texts[1:]]


def test_sentences_are_joined_in_both_languages_and_translated_as_one():
    pairs = [(text, text) for text in TEXTS]
    copies = Copies()
    capitals = Counter(men=1), Counter(men=1)
    found = experiment.joined(copies, pairs, TEXTS, capitals)
    assert copies.texts == [
        "A dog runs and two men in red shirts talk and it's a well-known café! and Men cook."
    ]
    assert list(found["and"]) == list(found["full stops"]) == [str(n) for n in experiment.JOINED]
    two = found["full stops"]["2"]
    assert two["words"] == 7.5 and two["apart"] == pytest.approx(100)
    assert two["joined"] < 70 and two["difference"][0] < -30 and two["length"] < 0.8
    assert two["texts"] == 2 and two["one full stop"] == 1
    assert [place["apart"] for place in two["own words"]] == [100, 100]
    assert [place["words"] for place in two["own words"]] == [7, 8]


def test_of_joined_sentences_only_the_words_count_that_no_other_has():
    references = [["Ein Hund rennt.", "Ein Mann lacht laut."]]
    alone = [["Ein Hund schläft.", "Ein Mann lacht laut."]]
    first, second = experiment.own_words(["Ein Hund rennt laut."], alone, references)
    assert (first["words"], first["joined"], first["apart"]) == (2, 100, 50)
    assert (second["words"], second["joined"], second["apart"]) == (3, 33.3, 100)
    assert first["difference"] == [50, 50] and second["difference"] == [-66.67, -66.67]


def test_the_training_text_is_counted():
    pairs = [
        ("A man in Oslo. He reads.", "Ein Mann in Oslo. Er liest."),
        ("A man without a shirt in Rome.", "Ein Mann ohne Hemd in Rom."),
        ("Two men in Red hats, red shoes?", "Zwei Männer in Red."),
        ("No dog runs without a ball.", "Kein Hund."),
    ]
    counted = experiment.training_text(pairs)
    assert counted["pairs"] == 4 and counted["longest"] == 7 and counted["questions"] == 1
    assert counted["full stop before a word"] == counted["no or not"] == 1
    assert counted["without"] == 2 and counted["without a shirt"] == 1
    assert counted["capitalised and seen once"] == 3  # Oslo, He, Rome
    assert counted["copied of these"] == 1


def test_words_are_found_by_their_frequency_in_the_training_text():
    frequency = Counter(ein=2000, hund=50, rennt=3)
    groups = experiment.recall(
        ["ein hund", "ein"], ["ein Hund rennt Hund", "ein Dackel"], frequency
    )
    shares = {group["from"]: (group["words"], group["found"]) for group in groups}
    assert shares[1000] == (2, 100) and shares[20] == (2, 50)
    assert [group["chance"] for group in groups] == [0, 0, 0, 0, 0, 100]
    assert shares[1] == (1, 0) and shares[0] == (1, 0) and shares[5] == (0, 0)


def test_the_command_records_a_run(folder, tmp_path, capsys):
    path = tmp_path / "record.json"
    experiment.main(
        ["--data", str(folder.path), "--record", str(path), "--first", "4", f"new={folder.path}"]
    )
    record = json.loads(path.read_text())
    assert record["words"] == [3, 6, 4, 2] and record["rarest"] == [1, 1, 1, 1]
    counted = {"pairs": 4, "longest": 6}
    assert {name: count for name, count in record["training"].items() if count} == counted
    assert set(record["names"].values()) == {0}
    run = record["runs"]["new"]
    assert {len(row) for row in run["greedy"] + run["beam"]} == {10}
    assert f"{run['BLEU']['greedy']}" in capsys.readouterr().out
    found = folder.translator().all(TEXTS)
    assert run["greedy"] == experiment.counts(found, GERMAN).tolist()


def test_the_record_is_whole():
    record = experiment.recorded()
    assert len(record["words"]) == len(record["rarest"]) == 1000
    for run in record["runs"].values():
        for search in ("greedy", "beam"):
            rows = torch.tensor(run[search])
            assert rows.shape == (1000, 10)
            assert experiment.bleu(rows.sum(dim=0)).item() == pytest.approx(
                run["BLEU"][search], abs=0.01
            )
