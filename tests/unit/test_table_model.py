"""A model that is a table of probabilities."""

from collections import Counter

import numpy as np
import pytest
import torch

from course_lib.data import table_model
from course_lib.data.table_model import random_table
from course_lib.transformer.decoding import beam_search, greedy, sample
from tests.helpers.decoding import TABLE


@pytest.mark.verifies("course_lib.data.table_model", against="products of the table's numbers")
def test_table_model_decodes_its_table(ledger):
    model, vocabulary = table_model(TABLE)
    start = torch.tensor([[1]])
    assert vocabulary.decode(greedy(model, start)[0]) == ["the", "cat"]
    best = beam_search(model, start, 3, 0.0)
    assert vocabulary.decode(best.tokens[0, 0]) == ["a", "bird"]
    np.testing.assert_allclose(best.scores[0].exp(), [0.36, 0.2, 0.175], rtol=1e-5)
    drawn = Counter(
        tuple(vocabulary.decode(row)) for row in sample(model, start, num_samples=4000, seed=1)
    )
    wanted = {("the", "cat"): 0.2, ("the", "dog"): 0.175, ("the", "bird"): 0.125}
    wanted |= {("a", "bird"): 0.36, ("a",): 0.04, ("one", "dog"): 0.1}
    assert set(drawn) == set(wanted)
    for text, p in wanted.items():
        assert drawn[text] / 4000 == pytest.approx(p, abs=0.03)
    ledger.holds()


def test_table_model_looks_up_each_prefix_once_and_continues_prompts():
    model, vocabulary = table_model(TABLE)
    asked, logits = [], model._next_token_logits
    model._next_token_logits = lambda prefixes: asked.extend(prefixes) or logits(prefixes)
    for beam_size in (1, 2, 3, 3):
        beam_search(model, torch.tensor([[1]]), beam_size)
    assert len(asked) == len(set(asked))
    prompt = vocabulary.encode(["a"], bos=True)[None]
    assert vocabulary.decode(greedy(model, prompt)[0]) == ["bird"]


def test_table_model_gives_the_logits_of_a_batch_of_prefixes():
    model, vocabulary = table_model(TABLE)
    prefixes = torch.stack([vocabulary.encode([word], bos=True) for word in ("the", "a")])
    p = model.next_logits(prefixes).softmax(dim=-1)
    for row, word in zip(p, ("the", "a"), strict=True):
        for token, wanted in TABLE[word,].items():
            assert row[vocabulary.tokens.index(token)].item() == pytest.approx(wanted)


def test_random_table_has_a_row_for_every_prefix():
    table = random_table(torch.Generator().manual_seed(0), "ab", length=3)
    assert set(table) == {(), ("a",), ("b",), *((x, y) for x in "ab" for y in "ab")}
    for row in table.values():
        assert list(row) == ["a", "b", "<eos>"]
        assert sum(row.values()) == pytest.approx(1)
    assert table == random_table(torch.Generator().manual_seed(0), "ab", length=3)


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({("a",): {"b": 1.0}}, r"the table has no entry for \(\), the prefix before the first token"),
        ({(): {"a": 1.0}, "a": {"b": 1.0}}, "the prefix 'a' must be a tuple of words"),
        ({(): {"b": 2.0, "c": -1.0}}, r"the probabilities after \(\) sum to 1; .* 0 or more and sum to 1"),
        ({(): {"b": 0.5}}, r"after \(\) sum to 0.5"),
    ],
)  # fmt: skip
def test_invalid_table_raises_value_error(table, says):
    with pytest.raises(ValueError, match=says):
        table_model(table)
