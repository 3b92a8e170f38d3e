"""The small shipped models of notebooks 04 and 05: what they reached, what their maps are, what they refuse."""

import random

import pytest
import torch
from safetensors import safe_open

from course_lib.checkpoints import HERE, letter_lookup, pronoun_reader
from course_lib.data import pronoun_sentences
from course_lib.inspection import record_attention

HELD_OUT = pronoun_sentences("held out")


def metadata(name):
    with safe_open(HERE / f"{name}.safetensors", "pt") as file:
        return file.metadata()


# --- notebook 04 -----------------------------------------------------------------------------


@pytest.mark.verifies(
    "course_lib.checkpoints.pronoun_reader",
    against="the grammar: 99 % of the antecedents of held-out sentences",
)
def test_the_pronoun_reader_reaches_what_its_file_says(ledger):
    reader = pronoun_reader()
    right = sum(reader(str(one)) == one.words[one.answer] for one in HELD_OUT) / len(HELD_OUT)
    assert right == pytest.approx(float(metadata("pronouns")["held out"]), abs=0.005)
    assert right >= 0.99
    ledger.holds()


def test_the_adjective_attends_to_its_noun_except_for_hen_and_river():
    reader, on_answer = pronoun_reader(), {}
    tokens = torch.stack([reader.vocabulary.encode(one.words) for one in HELD_OUT])
    with torch.no_grad(), record_attention(reader.model) as maps:
        reader.model(tokens)
    for one, weights in zip(HELD_OUT, maps["attention"][0][:, 0], strict=True):
        weight = weights[one.adjective, one.answer].item()
        on_answer.setdefault(one.words[one.answer], []).append(weight)
    means = {noun: sum(weights) / len(weights) for noun, weights in on_answer.items()}
    assert len(means) == 16
    assert {noun for noun, mean in means.items() if mean < 0.1} == {"hen", "river"}
    assert all(mean > 0.9 for noun, mean in means.items() if noun not in ("hen", "river"))


def test_the_map_of_a_sentence_is_a_softmax_of_scaled_dot_products():
    reader, text = pronoun_reader(), "the horse was too tired"
    weights, queries, keys = reader.maps(text)["self-attention"]
    assert queries == text.split() and keys is None
    layer = reader.model.attention
    x = reader.model.embedding.weight[[reader.vocabulary.tokens.index(word) for word in queries]]
    q = x @ layer.q_proj.weight.T + layer.q_proj.bias
    k = x @ layer.k_proj.weight.T + layer.k_proj.bias
    torch.testing.assert_close(weights[0], torch.softmax(q @ k.T / 64**0.5, dim=-1).detach())


def test_a_sentence_without_an_adjective_is_asked_at_its_last_word():
    reader = pronoun_reader()
    logits = reader.model(reader.vocabulary.encode(["the", "horse"])[None])
    assert reader("the horse") == reader.vocabulary.tokens[logits[0, -1].argmax()]


def test_the_pronoun_reader_says_what_it_cannot_read():
    with pytest.raises(ValueError, match="at least one word"):
        pronoun_reader()(" ")


# --- notebook 05 -----------------------------------------------------------------------------


def questions(count):
    draw = random.Random(4)
    for _ in range(count):
        letters = "".join(draw.choices("ABCDEFGH", k=12))
        yield letters, draw.sample(range(12), 4)


@pytest.mark.verifies(
    "course_lib.checkpoints.letter_lookup", against="Python's indexing: 99 % of 2,000 letters"
)
def test_the_lookup_reaches_what_its_file_says(ledger):
    right = 0
    for letters, asked in questions(500):
        said = letter_lookup()(f"{letters} {' '.join(map(str, asked))}")
        right += sum(letters[n] == letter for n, letter in zip(asked, said, strict=True))
    assert right / 2000 == pytest.approx(float(metadata("lookup")["letters right"]), abs=0.005)
    assert right / 2000 >= 0.99
    ledger.holds()


def test_each_head_of_the_lookup_keeps_to_one_rank_of_the_question():
    kept = torch.zeros(4, 4)  # (head, rank)
    for letters, asked in questions(50):
        maps = letter_lookup().maps(f"{letters} {' '.join(map(str, asked))}")
        favourites = maps["attention"].weights[0].argmax(dim=-1)  # (head,)
        kept += (favourites[:, None] == torch.tensor(asked)) / 50
    assert kept.argmax(dim=1).tolist() == [3, 1, 0, 2]
    assert kept.max(dim=1).values.min() > 0.9


def test_the_map_of_a_question_has_a_row_per_head_and_names_the_letters():
    weights, queries, keys = letter_lookup().maps("ABCDEFGHABCD 3 0 7 5")["attention"]
    assert queries == [f"head {n}" for n in range(4)]
    assert keys == [f"{n} {letter}" for n, letter in enumerate("ABCDEFGHABCD")]
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(1, 4))


@pytest.mark.parametrize("text", ["ABCDEFGHABCZ 3 0 7 5", "ABCDEFGHABCD 3 0 7 12"])
def test_the_lookup_says_how_a_question_must_look(text):
    with pytest.raises(ValueError, match="twelve letters from A to H"):
        letter_lookup()(text)
