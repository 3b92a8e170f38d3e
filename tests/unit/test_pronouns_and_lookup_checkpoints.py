"""The small shipped models of notebooks 04 and 05: what they reached, what their maps are, what they refuse."""

import random

import pytest
import torch
from safetensors import safe_open

from course_lib.checkpoints import HERE, letter_lookup, pronoun_reader
from course_lib.data import pronoun_sentences

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
    with pytest.raises(ValueError, match="the text is empty; type words that the model knows"):
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


def test_the_map_of_a_question_has_a_row_per_head_and_names_the_letters():
    weights, queries, keys = letter_lookup().maps("ABCDEFGHABCD 3 0 7 5")["attention"]
    assert queries == [f"head {n}" for n in range(4)]
    assert keys == [f"{n} {letter}" for n, letter in enumerate("ABCDEFGHABCD")]
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(1, 4))


@pytest.mark.parametrize("text", ["ABCDEFGHABCZ 3 0 7 5", "ABCDEFGHABCD 3 0 7 12"])
def test_the_lookup_says_how_a_question_must_look(text):
    with pytest.raises(ValueError, match="twelve letters from A to H"):
        letter_lookup()(text)
