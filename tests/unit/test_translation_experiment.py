"""The hour of training: what is recorded of it, and how."""

import json

import pytest
import torch
from sacrebleu.metrics import CHRF

from course_lib.experiments import translation
from course_lib.train.folder import RunFolder
from course_lib.train.processes import Processes
from course_lib.train.run import Run
from course_lib.train.scores import sacrebleu_scores
from course_lib.train.settings import Settings
from tests.helpers.sentences import few_pairs, write_pairs

pytestmark = pytest.mark.usefixtures("without_annotations")

SMALL = {"vocabulary": 320, "d_model": 16, "heads": 2, "layers": 1, "d_ff": 32, "tokens": 400,
         "evaluate_every": 2, "average": 2, "warmup": 2, "steps": 4}  # fmt: skip
ALONE = Processes(0, 1, torch.device("cpu"))
ARMS = ("this course", "nn.Transformer")


@pytest.fixture(scope="module", autouse=True)
def small_beams():
    """Barely trained models never end a sentence, which makes a wide beam slow."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(translation, "BEAMS", (1, 2))
        yield


@pytest.fixture(scope="module")
def pairs():
    return few_pairs(150, 4, 9)


@pytest.fixture(scope="module")
def folders(pairs, tmp_path_factory):
    made = {}
    for seed, name in enumerate(ARMS):
        made[name] = RunFolder(tmp_path_factory.mktemp("run"))
        run = Run(Settings(**SMALL, seed=seed), pairs, made[name], ALONE)
        run.train()
        run.finish()
    return made


@pytest.fixture(scope="module")
def new(folders, pairs):
    return translation.record(folders, pairs, "phrasebook", folders["this course"].path)


def test_a_run_is_recorded_as_it_was(new, folders):
    for name in ARMS:
        result = json.loads(folders[name].result.read_text(encoding="utf-8"))
        assert new[name]["settings"] == result["settings"] and new[name]["test"] == result["test"]
        assert new[name]["curves"]["step"] == [2, 4]
        assert new[name]["curves"]["bleu"] == [one["bleu"] for one in result["measured"]]
    assert new["this course"] != new["nn.Transformer"]


def test_the_lengths_are_those_of_the_training_pairs(new, folders, pairs):
    subwords = folders["this course"].translator().subwords
    for side in range(2):
        tokens = subwords.encode_all([pair[side] for pair in pairs.train], bos=side == 1, eos=True)
        counted = sum(row[side] * row[2] for row in new["lengths"])
        assert counted == sum(map(len, tokens))
    assert sum(count for *_, count in new["lengths"]) == len(pairs.train)


def test_scores_are_those_of_sacrebleu(new, folders, pairs):
    translator = folders["this course"].translator()
    sources, references = zip(*pairs.test, strict=True)
    for size in translation.BEAMS:
        texts = translator.all(sources, beam_size=size)
        assert new["beams"][str(size)]["bleu"] == sacrebleu_scores(texts, references)["score"]
    for row in new["quoted"]:
        assert (row["source"], row["reference"]) in pairs.test
        assert row["translation"] == translator(row["source"])
        score = CHRF().sentence_score(row["translation"], [row["reference"]]).score
        assert row["chrf"] == round(score, 1)
    scores = [row["chrf"] for row in new["quoted"]]
    assert scores == sorted(scores, reverse=True)


def test_translations_after_some_steps_are_of_those_weights(new, folders):
    assert set(new["after steps"]) == {"2", "4"}
    assert all(len(texts) == len(translation.SENTENCES) for texts in new["after steps"].values())
    assert new["kept"] == folders["this course"].translator().all(translation.SENTENCES)


def test_the_command_writes_the_record_and_keeps_what_it_cannot_measure(tmp_path, folders, capsys):
    path = tmp_path / "record.json"
    path.write_text('{"after steps": {"7": []}, "more": ["kept"]}')
    write_pairs(tmp_path, few_pairs(30, 5, 10))
    ours, peer = (str(folder.path) for folder in folders.values())
    arguments = ["--data", str(tmp_path), "--ours", ours, "--peer", peer]
    assert translation.main(arguments, path) == 0
    written = json.loads(path.read_text(encoding="utf-8"))
    assert written["after steps"] == {"7": []} and set(ARMS) < set(written)
    assert written["more"] == ["kept"]
    assert translation.main([*arguments, "--more", peer, ours], path) == 0
    written = json.loads(path.read_text(encoding="utf-8"))
    assert written["more"] == [written[name] for name in reversed(ARMS)]


def test_what_is_recorded():
    record = translation.recorded()
    ours, peer = (record[name] for name in ARMS)
    assert ours["settings"] == peer["settings"] and ours["settings"]["data"] == "multi30k"
    assert ours["minutes"] == pytest.approx(60, abs=1) == peer["minutes"]
    assert ours["test"]["greedy"]["score"] >= 36
    for search in ("greedy", "beam 5"):
        assert ours["test"][search]["score"] >= peer["test"][search]["score"]
        assert ours["test"][search]["signature"] == peer["test"][search]["signature"]
    assert sum(count for *_, count in record["lengths"]) == 29_000
    assert len(record["quoted"]) == translation.QUOTED
    assert all(len(row["source"].split()) <= translation.SHORT for row in record["quoted"])
    assert record["beams"]["1"]["bleu"] == ours["test"]["greedy"]["score"]
    assert record["beams"]["5"]["bleu"] == ours["test"]["beam 5"]["score"]
    assert [run["settings"]["seed"] for run in record["more"][:9]] == [0, 1, 2] * 3
