"""The translator against a hand-made model that spells backwards, and against the model it holds."""

import pytest
import torch
from torch import nn

from course_lib.data import Vocabulary
from course_lib.topics.recurrent import BahdanauDecoder, FixedContextDecoder, GRUEncoder, Seq2Seq
from course_lib.train.translator import Translation, Translator

LETTERS = Vocabulary("abcdefghijklmnopqrstuvwxyz ")
CAPITALS = Vocabulary("ZYXWVUTSRQPONMLKJIHGFEDCBA_")
TEXTS = ["a", "attention", "to be or not", "zz"]


class Backwards(nn.Module):
    """Spells a text backwards, in capitals, looking only at the letter that it writes."""

    def __init__(self, writes_the_end=True):
        super().__init__()
        self.writes_the_end, self.called = writes_the_end, []

    def generate(self, source, max_length):
        self.called.append((source.shape, max_length, self.training))
        tokens = torch.zeros(len(source), max_length, dtype=torch.long)
        weights = torch.rand(len(source), max_length, source.shape[1])
        for row, text in enumerate(source):
            text = text[text != 0].flip(0)
            letters = [LETTERS.tokens[number].upper().replace(" ", "_") for number in text]
            written = CAPITALS.encode(letters, eos=self.writes_the_end)[:max_length]
            tokens[row, : len(written)] = written
            turned = torch.eye(len(text)).flip(0)[:max_length]
            weights[row, : len(turned), : len(text)] = turned
        width = tokens.ne(0).any(0).sum()
        return tokens[:, :width], weights[:, :width]


def upper(text):
    return text.upper().replace(" ", "_")


@pytest.mark.verifies(
    "course_lib.train.translator.Translator",
    against="Python's `text[::-1]`: a model that spells backwards",
)
@pytest.mark.parametrize("text", TEXTS)
def test_it_writes_what_the_model_writes(ledger, text):
    model = Backwards()
    written = Translator(model, LETTERS, CAPITALS, max_length=20)(text)
    assert isinstance(written, Translation)
    assert written.text == upper(text)[::-1]
    assert model.called == [(torch.Size([1, len(text)]), 20, False)] and not model.training
    ledger.holds()


@pytest.mark.verifies(
    "course_lib.train.translator.Translation",
    against="Python's `list`, and PyTorch `eye` for the weights",
)
def test_a_translation_holds_its_tokens_and_where_each_step_looked(ledger):
    written = Translator(Backwards(), LETTERS, CAPITALS)("say what")
    assert written.source == list("say what")
    assert written.target == [*"TAHW_YAS", "<eos>"]
    assert written.text == "TAHW_YAS"
    assert written.weights.shape == (9, 8)
    ledger.compare(written.weights[:8], torch.eye(8).flip(0), within=0)

    assert Translation(["a"], ["<bos>", "A", "<pad>", "B", "<eos>"], None).text == "AB"


def test_a_translation_without_an_end_is_all_that_was_written():
    cut = Translator(Backwards(), LETTERS, CAPITALS, max_length=2)("abc")
    assert cut.target == ["C", "B"] and cut.text == "CB" and cut.weights.shape == (2, 3)


def test_many_texts_are_one_batch_and_come_as_one_by_one():
    model = Backwards()
    translator = Translator(model, LETTERS, CAPITALS, max_length=20)
    together = translator.all(TEXTS)
    assert model.called == [(torch.Size([4, 12]), 20, False)]
    for text, written in zip(TEXTS, together, strict=True):
        alone = translator(text)
        assert written[:2] == alone[:2] and written.text == upper(text)[::-1]
        assert written.weights.shape == (len(text) + 1, len(text))
        torch.testing.assert_close(written.weights[:-1], alone.weights[:-1])


def test_texts_that_can_be_read_once_are_translated_too():
    translator = Translator(Backwards(), LETTERS, CAPITALS, max_length=20)
    assert [one.text for one in translator.all(iter(TEXTS))] == [
        upper(text)[::-1] for text in TEXTS
    ]


def untrained(kind=BahdanauDecoder, seed=0):
    """Writes anything: padding, starts and ends in any order."""
    torch.manual_seed(seed)
    target = Vocabulary("xy")
    model = Seq2Seq(GRUEncoder(len(LETTERS), 6, 4), kind(len(target), 3, 5, 8)).double()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=1.0)
    return Translator(model, LETTERS, target, max_length=7)


RANDOM_TEXTS = [text * n for text in ("attention", "q", "is", "all you") for n in (1, 2)]


@pytest.mark.parametrize("seed", [8, 10, 16])
def test_a_batch_is_as_one_by_one_and_a_row_of_weights_belongs_to_the_token_beside_it(seed):
    """Also where the model, which knows no better, writes padding in the middle."""
    translator, strange = untrained(seed=seed), 0
    for text, written in zip(RANDOM_TEXTS, translator.all(RANDOM_TEXTS), strict=True):
        alone = translator(text)
        assert (written.source, written.target) == (alone.source, alone.target)
        torch.testing.assert_close(written.weights, alone.weights)
        assert "<eos>" not in written.target[:-1]
        assert len(written.target) == 7 or written.target[-1] == "<eos>"
        strange += "<pad>" in written.target[:-1]
        numbers = [translator.target.tokens.index(token) for token in written.target]
        source = translator.source.encode(text)[None]
        forced = translator.model(source, torch.tensor([[1, *numbers[:-1]]]))
        assert forced.logits.argmax(-1)[0].tolist() == numbers
        torch.testing.assert_close(written.weights, forced.weights[0])
    assert strange, "the test shows too little: no padding was written"


def test_a_model_without_attention_has_no_weights():
    translator = untrained(FixedContextDecoder)
    assert all(written.weights is None for written in translator.all(RANDOM_TEXTS))


def test_a_single_text_is_no_list_of_texts():
    with pytest.raises(ValueError, match=r"texts is a str; .* list of texts, e\.g\. \['abc'\]"):
        Translator(Backwards(), LETTERS, CAPITALS).all("abc")
