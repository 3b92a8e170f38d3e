"""A model that is a table of probabilities."""

from collections import Counter

import numpy as np
import pytest
import torch

from course_lib.decoding import beam_search, greedy, sample, table_model

#: The most probable first word does not lead to the most probable sentence.
TABLE = {
    (): {"the": 0.5, "a": 0.4, "one": 0.1},
    ("the",): {"cat": 0.4, "dog": 0.35, "bird": 0.25},
    ("a",): {"bird": 0.9, "<eos>": 0.1},
    ("one",): {"dog": 1.0},
}


@pytest.mark.verifies("course_lib.decoding.table_model", against="products of the table's numbers")
def test_a_table_is_written_from_as_it_says(ledger):
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


def test_no_prefix_is_asked_for_twice_and_a_prompt_is_continued():
    model, vocabulary = table_model(TABLE)
    asked, following = [], model._following
    model._following = lambda prefixes: asked.extend(prefixes) or following(prefixes)
    for beam_size in (1, 2, 3, 3):
        beam_search(model, torch.tensor([[1]]), beam_size)
    assert len(asked) == len(set(asked))
    prompt = vocabulary.encode(["a"], bos=True)[None]
    assert vocabulary.decode(greedy(model, prompt)[0]) == ["bird"]


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({("a",): {"b": 1.0}}, r"the table has no entry for \(\), the start"),
        ({(): {"a": 1.0}, "a": {"b": 1.0}}, "the beginning 'a'; it must be a tuple of words"),
        (
            {(): {"b": 2.0, "c": -1.0}},
            r"behind \(\) stands {'b': 2.0, 'c': -1.0}; give numbers from 0 up",
        ),
        ({(): {"b": 0.5}}, r"the probabilities behind \(\) add up to 0.5; they must add up to 1"),
    ],
)
def test_a_table_that_is_none_is_refused(table, says):
    with pytest.raises(ValueError, match=says):
        table_model(table)
