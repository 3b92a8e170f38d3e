"""Fine-tuning by LoRA: what is trained, what is a label, and which days are held out."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.experiments import lora
from course_lib.experiments.runs import read
from course_lib.topics.pretrained import load_smollm2
from course_lib.transformer import DecoderOnly, TransformerConfig

pytestmark = pytest.mark.usefixtures("without_annotations")


class Characters:
    """A tokenizer of one token per character."""

    eos_id = 90

    def encode(self, text, *, split_special_tokens=True):
        return [min(ord(c), 89) for c in text]


def small_model():
    sizes = {"target_vocabulary": 128, "d_model": 16, "num_heads": 2, "decoder_layers": 2}
    config = TransformerConfig(**sizes, d_ff=16, norm="pre", positions="rotary", pad_id=127)
    return DecoderOnly(config).eval()


def test_the_product_starts_at_zero_and_can_be_merged():
    linear, x = nn.Linear(6, 4, bias=False), torch.randn(3, 6)
    layer = lora.LoRALinear(linear, rank=2, alpha=8)
    assert torch.equal(layer(x), linear(x))
    nn.init.normal_(layer.B)
    merged = linear.weight + 8 / 2 * layer.B @ layer.A
    torch.testing.assert_close(layer(x), x @ merged.T)
    assert not torch.allclose(layer(x), linear(x))


def test_only_a_and_b_are_trained():
    model = small_model()
    trained = lora.add_lora(model, rank=2)
    wanted = [p for p in model.parameters() if p.requires_grad]
    assert {id(p) for p in trained} == {id(p) for p in wanted}
    assert len(trained) == 2 * 2 * len(model.blocks)


def test_the_loss_counts_the_tokens_of_the_answers_alone():
    model, tokenizer = small_model(), Characters()
    pairs = [("ab", [65, 66, 90]), ("a longer question", [67, 90])]
    each = []
    for question, answer in pairs:
        start = tokenizer.encode(lora.turns(question))
        tokens = torch.tensor([start + answer])
        logits = model(tokens)[0, len(start) - 1 : -1]
        each.append(F.cross_entropy(logits, torch.tensor(answer), reduction="none"))
    found = lora.answer_loss(model, tokenizer, pairs)
    torch.testing.assert_close(found, torch.cat(each).mean(), atol=1e-5, rtol=0)


def test_held_out_days_are_in_no_training_text():
    held_out = {one.iso for one in lora.english_dates(500, held_out=True)}
    assert not held_out & {one.iso for one in lora.english_dates(5000)}
    assert {one.language for one in lora.english_dates(20)} == {"en"}


def test_examples_before_a_question_are_turns_of_the_chat():
    said = lora.turns("May 7, 1991", "1991-05-07", "Dec 1, 2030")
    assert said.count("<|im_start|>user") == said.count("<|im_start|>assistant") == 2
    assert said.endswith("<|im_start|>assistant\n")


def test_other_answers_are_measured_at_one_rate():
    keys = {"loss of unlike answers", "loss of replayed answers"}
    assert keys < set(lora.before())
    for row in read("lora"):
        compared = row["arm"] == "before" or row["lr"] == lora.COMPARED_RATE
        assert keys & set(row) == (keys if compared else set())
    scores = lora.by_rate("dates", 45, "exact match")
    assert [len([one for one in run if one == one]) for run in scores] == [5, 3, 3]  # NaN: not run
    model, tokenizer, answers = small_model(), Characters(), [("a", [65, 90]), ("b", [66, 90])]
    found = lora.other_losses(model, tokenizer, answers[:1], answers[1:])
    each = [lora.answer_loss(model, tokenizer, [one]).item() for one in answers]
    assert list(found.values()) == each


@torch.no_grad()
def test_the_capital_is_nearly_a_tie_before_training():
    model, tokenizer = load_smollm2()
    prompt = lora.turns(lora.QUESTIONS[0]) + "The capital of Australia is"
    tokens = torch.tensor([tokenizer.encode(prompt, split_special_tokens=False)])
    p = model(tokens)[0, -1].softmax(dim=-1)
    cities = [token for city in (" Canberra", " Sydney") for token in tokenizer.encode(city)]
    assert p[cities].tolist() == pytest.approx([0.56, 0.40], abs=0.005)  # as study 13c says
