"""The translator of subwords: what a run leaves in its folder, read and used."""

import io
import re
import sys
from io import TextIOWrapper

import pytest
import torch

from course_lib.data.subwords import Subwords
from course_lib.topics.attention_maps import record_attention
from course_lib.train.folder import RunFolder
from course_lib.train.processes import Processes
from course_lib.train.run import Run
from course_lib.train.settings import Settings
from course_lib.train.translate import main
from course_lib.transformer.decoding import beam_search, greedy
from tests.helpers.annotations import unchecked
from tests.helpers.sentences import few_pairs

pytestmark = pytest.mark.usefixtures("without_annotations")

TEXTS = ["the black cat does not see him .", "", "do we like the small white birds ?"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    pairs = few_pairs(2000, 5, 5)
    settings = Settings(vocabulary=600, d_model=64, heads=2, layers=1, d_ff=128, tokens=1000,
                        steps=120, evaluate_every=60, warmup=20, lr=5e-3)  # fmt: skip
    folder = RunFolder(tmp_path_factory.mktemp("run"))
    run = Run(settings, pairs, folder, Processes(0, 1, torch.device("cpu")))
    with unchecked():
        run.train()
        run.finish()
    return folder


@pytest.mark.verifies(
    "course_lib.train.translator.SubwordTranslator",
    against="the model, called by hand, text by text",
)
def test_translations_are_those_of_each_text_alone(ledger, folder):
    translator = folder.translator()
    model, subwords = translator.model, Subwords.read(folder.subwords)
    for beam in (1, 3):
        alone = []
        for text in TEXTS:
            source = subwords.encode(text, eos=True)[None]
            longest = int(1.5 * source.shape[1] + 20)
            if beam == 1:
                row = greedy(model, source, max_length=longest)[0]
            else:
                row = beam_search(model, source, beam, max_length=longest).tokens[0, 0]
            alone.append(subwords.decode(row) if text else "")
        assert len(set(alone)) > 1
        assert translator.all(TEXTS, beam_size=beam) == alone
        assert translator(TEXTS[0], beam_size=beam) == alone[0]
    ledger.holds()
    with pytest.raises(ValueError, match="must be a list of texts"):
        translator.all("a text")


BLANK = [
    "",
    " ",
    "\t",
    "\u00a0",
    "\u3000 \u2003",
    "\u200b",
    "\ufeff",
    "\x0b",
    "\u2028",
    "\u2800",
    "\u3164\ufe0f",
]


@pytest.mark.parametrize("beam", [1, 3])
def test_blank_texts_stay_blank_and_in_their_places(folder, beam, capsys, monkeypatch):
    translator = folder.translator()
    assert translator.all(BLANK, beam_size=beam) == [""] * len(BLANK)
    assert [translator(text, beam_size=beam) for text in BLANK] == [""] * len(BLANK)
    assert translator.all([], beam_size=beam) == []
    mixed = [text for blank in BLANK for text in (blank, TEXTS[0], TEXTS[2])]
    wanted = [one for _ in BLANK for one in ("", *translator.all(TEXTS[::2], beam_size=beam))]
    assert translator.all(mixed, beam_size=beam) == wanted
    lines = [text for text in mixed if not text or text[0] not in "\x0b\u2028"]
    monkeypatch.setattr("course_lib.train.translate._LINES", 4)
    monkeypatch.setattr(
        sys, "stdin", TextIOWrapper(io.BytesIO("\n".join(lines).encode("utf-8-sig")))
    )
    assert main(["--folder", str(folder.path), "--beam", str(beam)]) == 0
    assert capsys.readouterr().out.split("\n")[:-1] == translator.all(lines, beam_size=beam)
    assert main(["--folder", str(folder.path), "", TEXTS[0], " "]) == 0
    assert capsys.readouterr().out == f"\n{translator(TEXTS[0])}\n\n"


def test_texts_that_can_be_read_once_are_translated_too(folder):
    translator, texts = folder.translator(), [TEXTS[0], "", TEXTS[2]]
    wanted = [translator(TEXTS[0]), "", translator(TEXTS[2])]
    assert wanted[0] and wanted[2]
    for once in (
        iter(texts),
        map(str.strip, texts),
        io.StringIO("\n".join(texts)),
        {text: 1 for text in texts},
    ):
        assert translator.all(once) == wanted
    assert translator.all([f" {text}\t\n" for text in texts], beam_size=2) == translator.all(
        texts, beam_size=2
    )
    (rows, _), *_ = (one.weights.shape[1:] for one in translator.maps(f"{TEXTS[0]}\n").values())
    assert rows == len(translator.subwords.encode(TEXTS[0], eos=True))


@pytest.mark.parametrize("bad", [None, b"a man", 5, float("nan"), ["a", "man"]])
def test_what_is_no_text_is_refused_with_its_place(folder, bad):
    said = re.escape(f"texts[1] is {bad!r}, of type {type(bad).__name__}; it must be a str")
    with unchecked(), pytest.raises(ValueError, match=said):
        folder.translator().all(["a man", bad])


def test_bytes_in_and_bytes_out_are_utf_8(folder, capsys, monkeypatch):
    made = folder.translator()
    monkeypatch.setattr("course_lib.train.folder.RunFolder.translator", lambda self: made)
    monkeypatch.setattr(made, "all", lambda texts, beam_size: [text.upper() for text in texts])
    out = TextIOWrapper(io.BytesIO(), encoding="cp1252")
    monkeypatch.setattr(sys, "stdout", out)
    for text, status in (("ein Café 公园\n\nдом".encode(), 0), (b"a man\ncaf\xe9\n", 1)):
        monkeypatch.setattr(sys, "stdin", TextIOWrapper(io.BytesIO(text), encoding="cp1252"))
        assert main(["--folder", str(folder.path)]) == status
    assert out.buffer.getvalue().decode("utf-8") == "EIN CAFÉ 公园\n\nДОМ\n"
    said = "course_lib.train.translate: line 2: byte 0xe9 at place 3 is not UTF-8\n"
    assert capsys.readouterr().err == said


def test_a_line_is_one_line_whatever_is_in_it(folder, capsys, monkeypatch):
    monkeypatch.setattr(
        sys, "stdin", TextIOWrapper(io.BytesIO(b"we see\rthe cat\r\n\r\nhe sees\n"))
    )
    translator = folder.translator()
    monkeypatch.setattr("course_lib.train.folder.RunFolder.translator", lambda self: translator)
    monkeypatch.setattr(
        translator, "all", lambda texts, beam_size: [f"{text}\n|" for text in texts]
    )
    assert main(["--folder", str(folder.path)]) == 0
    assert capsys.readouterr().out == "we see the cat |\n |\nhe sees |\n"


@pytest.mark.parametrize("beam", ["0", "-1"])
def test_a_beam_below_one_is_refused(folder, capsys, beam):
    for texts in (["a man"], [""]):
        with pytest.raises(ValueError, match=rf"beam_size={beam} is below 1"):
            folder.translator().all(texts, beam_size=int(beam))
        assert main(["--folder", str(folder.path), "--beam", beam, *texts]) == 1
        said = capsys.readouterr()
        assert said.err == f"course_lib.train.translate: beam_size={beam} is below 1\n"
        assert not said.out


def test_names_of_special_tokens_are_translated_as_text(folder):
    translator = folder.translator()
    ids = translator.subwords.encode("the cat <eos> sees him <pad>.", eos=True).tolist()
    assert [number for number in ids if number < 3] == [2]
    text = "the cat sees <eos>"
    source = translator.subwords.encode(text, eos=True)[None]
    alone = greedy(translator.model, source, max_length=int(1.5 * source.shape[1] + 20))
    assert translator(text) == translator.subwords.decode(alone[0])


def test_maps_are_what_the_model_computes_and_rows_are_named_after_its_tokens(folder):
    translator, text = folder.translator(), TEXTS[0]
    subwords = translator.subwords
    maps = translator.maps(text)
    source, target = subwords.encode(text, eos=True), subwords.encode(translator(text), bos=True)
    with torch.no_grad(), record_attention(translator.model) as recorded:
        translator.model(source[None], target[None])
    assert list(maps) == ["encoder 0: self", "decoder 0: self", "decoder 0: cross"]
    cross, outputs, words = maps["decoder 0: cross"]
    assert torch.equal(cross, recorded["decoder.0.cross_attention"][0][0])
    assert (
        "".join(words) == f" {text}<eos>" and "".join(outputs).strip() == f"{translator(text)}<eos>"
    )
    weights, inputs, keys = maps["decoder 0: self"]
    assert inputs == keys == ["<bos>", *outputs[:-1]] and weights.shape[-1] == len(inputs)


def test_the_command_translates_arguments_and_standard_input(folder, capsys, monkeypatch):
    wanted = folder.translator().all(TEXTS)
    assert main(["--folder", str(folder.path), *TEXTS]) == 0
    assert capsys.readouterr().out.splitlines() == wanted
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(TEXTS) + "\n"))
    monkeypatch.setattr("course_lib.train.translate._LINES", 2)
    assert main(["--folder", str(folder.path)]) == 0
    assert capsys.readouterr().out.splitlines() == wanted


def test_before_the_end_of_a_run_the_newest_weights_are_read(folder, tmp_path):
    for path in folder.path.iterdir():
        if path.name not in ("model.safetensors", "result.json"):
            (tmp_path / path.name).write_bytes(path.read_bytes())
    kept = sorted(tmp_path.glob("step-*"))
    assert [path.name for path in kept] == ["step-0000060.safetensors", "step-0000120.safetensors"]
    kept[-1].write_bytes(kept[0].read_bytes())
    kept[0].unlink()
    assert RunFolder(tmp_path).translator()(TEXTS[0])
    kept[-1].write_bytes(b"cut")
    with pytest.raises(ValueError, match="does not fit, or is damaged"):
        RunFolder(tmp_path).translator()


def test_a_folder_without_a_model_is_named(tmp_path, capsys):
    assert main(["--folder", str(tmp_path / "no"), "a"]) == 1
    says = "holds no trained model; make one with python -m course_lib.train"
    assert says in capsys.readouterr().err
