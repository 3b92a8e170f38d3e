"""The experiment of study 12a that trains the translator of captions on joined captions."""

import json

import pytest
import sacrebleu
import torch

from course_lib.checkpoints import sentence_translator
from course_lib.experiments import joined_captions as experiment

PAIRS = [
    ("A dog runs.", "Ein Hund rennt."),
    ("Two men talk.", "Zwei Männer reden."),
    ("A girl reads a book.", "Ein Mädchen liest ein Buch."),
]


def test_neighbours_are_joined_in_both_languages_and_a_rest_is_left_out():
    assert experiment.joined(PAIRS, 1) == PAIRS
    wanted = [("A dog runs. Two men talk.", "Ein Hund rennt. Zwei Männer reden.")]
    assert experiment.joined(PAIRS, 2) == wanted


def test_a_translation_goes_on_after_the_start_where_it_would_end():
    translator = sentence_translator()
    source, start = "A man is sleeping. A dog is running.", "Ein Mann schläft."
    assert translator(source).count(".") == 1
    found = experiment.continued(translator, source, start)
    assert found.startswith(f"{start} ") and found.count(".") == 2


def test_half_of_each_batch_are_pairs_and_a_seed_decides_the_training(monkeypatch):
    seen = []

    def step(model, optimizer, loss, batches, **_):
        seen.append([target for _, target in batches])
        weight = next(model.parameters())
        weight.data += torch.rand(()) * optimizer.param_groups[0]["lr"]

    monkeypatch.setattr(experiment, "train_step", step)
    before = next(sentence_translator().model.parameters()).clone()
    pairs = [(f"A {n}.", f"Ein {n}.") for n in range(100)]
    first, same, other = (experiment.trained(pairs, seed, 2) for seed in (0, 0, 1))
    weights = [next(one.model.parameters()) for one in (first, same, other)]
    assert torch.equal(weights[0], weights[1]) and not torch.equal(weights[0], weights[2])
    assert torch.equal(next(sentence_translator().model.parameters()), before)
    for batch in seen:
        texts = [[first.subwords.decode(row.tolist()) for row in part] for part in batch]
        assert [len(part) for part in texts] == [experiment.TEXTS // 2] * 2
        assert {text.count(".") for text in texts[0]} == {2}
        captions = [one for text in texts[0] for one in text.removesuffix(".").split(". ")]
        assert len({*captions, *(text.removesuffix(".") for text in texts[1])}) == 48


def test_joined_captions_are_scored(monkeypatch):
    found = dict([*PAIRS, *experiment.joined(PAIRS, 2)])
    translator = sentence_translator()
    monkeypatch.setattr(
        translator, "all", lambda sources: [found.get(s, "Ein Hund.") for s in sources]
    )
    scored = experiment.evaluated(translator, PAIRS)
    assert [scored[size]["full stops"] for size in "123"] == [100, 100, 0]
    assert [scored[size]["own words"] for size in "12"] == [[100], [100, 100]]
    assert scored["3"]["own words"] == [50, 0, 0]  # "Hund" of "Hund rennt"; "Ein" has another too
    assert scored["1"]["BLEU"] == scored["2"]["BLEU"] == pytest.approx(100)


def test_the_command_records_every_seed(tmp_path, monkeypatch):
    for split in ("train", "val", "test"):
        for number, language in enumerate(("en", "de")):
            lines = "".join(f"{pair[number]}\n" for pair in PAIRS * 20)
            (tmp_path / f"{split}.{language}").write_text(lines, encoding="utf-8")
    monkeypatch.setattr(experiment, "TESTED", 6)
    monkeypatch.setattr(experiment, "SEEDS", (0, 1))
    path = tmp_path / "record.json"
    experiment.main(["--data", str(tmp_path), "--record", str(path), "--steps", "1"])
    record = json.loads(path.read_text())
    assert len(record["after"]) == len(record["forced on"]) == 2
    sources, references = zip(*PAIRS, strict=True)
    wanted = sacrebleu.corpus_bleu(sentence_translator().all(sources) * 2, [references * 2]).score
    assert record["before"]["1"]["BLEU"] == pytest.approx(wanted, abs=0.01)


def test_the_record_is_whole():
    record = experiment.recorded()
    assert len(record["after"]) == len(experiment.SEEDS) and len(record["forced on"]) == 2
    for scored in (record["before"], *record["after"]):
        assert list(scored) == [str(size) for size in experiment.SIZES]
        assert [len(scored[size]["own words"]) for size in "123"] == [1, 2, 3]
