"""Tokens and batches against Python's own lists and counters, and NumPy."""

from collections import Counter
from itertools import chain, islice

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.data import PairBatch, PairBatches, Vocabulary, pad

ALPHABET = "abcdefgh äß.-7あ"
LETTERS = Vocabulary(ALPHABET)
over_all_examples = settings(max_examples=100)


# --- tokens to ids and back --------------------------------------------------------------


@pytest.mark.verifies(
    "course_lib.data.Vocabulary", against="Python's `list.index`, and there and back"
)
@over_all_examples
@given(text=st.text(ALPHABET, min_size=1), bos=st.booleans(), eos=st.booleans())
def test_letters_become_ids_and_come_back(ledger, text, bos, eos):
    ids = LETTERS.encode(text, bos=bos, eos=eos)
    indices = [3 + list(ALPHABET).index(letter) for letter in text]
    assert ids.dtype == torch.int64
    assert ids.tolist() == [1] * bos + indices + [2] * eos
    assert LETTERS.text(ids) == LETTERS.text(ids.tolist()) == text
    assert LETTERS.decode(ids) == list(text)
    ledger.holds()


def test_decoding_stops_at_the_first_end_and_leaves_out_padding_and_starts():
    a, b, end = *LETTERS.encode("ab").tolist(), LETTERS.eos_id
    assert LETTERS.decode([1, a, 0, b, 1, end, a, end, 0]) == ["a", "b"]
    assert LETTERS.decode([end, a]) == LETTERS.decode([]) == []


def test_a_vocabulary_is_the_special_tokens_and_what_occurs_in_the_texts_sorted():
    assert Vocabulary.of(["cab", "bad"]).tokens == ("<pad>", "<bos>", "<eos>", *"abcd")
    words = Vocabulary.of(iter([["sat", "cat"], ["sat"]]))
    assert words.tokens[3:] == ("cat", "sat") and words.decode(words.encode(["sat"])) == ["sat"]
    assert len(LETTERS) == 3 + len(ALPHABET) and "a" in LETTERS and "z" not in LETTERS


# --- padding ---------------------------------------------------------------------------------


@pytest.mark.verifies("course_lib.data.pad", against="NumPy, row by row")
@over_all_examples
@given(
    sequences=st.lists(st.lists(st.integers(0, 99), min_size=1, max_size=9), min_size=1),
    pad_id=st.integers(-1, 99),
)
def test_shorter_sequences_are_filled_up_at_the_end(ledger, sequences, pad_id):
    theirs = np.full((len(sequences), max(map(len, sequences))), pad_id)
    for row, sequence in zip(theirs, sequences, strict=True):
        row[: len(sequence)] = sequence
    ours = pad([torch.tensor(sequence) for sequence in sequences], pad_id)
    assert ours.tolist() == theirs.tolist() and ours.dtype == torch.int64
    ledger.holds()


# --- batches of pairs ------------------------------------------------------------------------


def pairs(count, longest=20, seed=0):
    """Pair i holds the number i + 1 throughout, in the source and, negative, in the target."""
    random = np.random.default_rng(seed)
    lengths = random.integers(1, longest + 1, (count, 2)).tolist()
    sources = [torch.full((length,), i + 1) for i, (length, _) in enumerate(lengths)]
    targets = [torch.full((length,), -i - 1) for i, (_, length) in enumerate(lengths)]
    return sources, targets


def chosen(batch):
    """Which pairs a batch holds."""
    return (batch.source[:, 0] - 1).tolist()


@pytest.mark.verifies(
    "course_lib.data.PairBatches", against="Python's `Counter`: every pair once in every round"
)
@pytest.mark.parametrize(("count", "batch_size"), [(330, 10), (7, 7), (5, 1), (64, 4)])
def test_every_pair_comes_once_in_every_round(ledger, count, batch_size):
    batches = iter(PairBatches(*pairs(count), batch_size))
    rounds = []
    for _ in range(3):
        seen = [chosen(batch) for batch in islice(batches, count // batch_size)]
        assert all(len(batch) == batch_size for batch in seen)
        assert Counter(chain(*seen)) == Counter(range(count))
        rounds.append(seen)
    assert count == batch_size or rounds[0] != rounds[1] != rounds[2]
    ledger.holds()


@pytest.mark.verifies("course_lib.data.PairBatch", against="NumPy `full`, pair by pair")
def test_a_batch_holds_whole_pairs_and_is_no_longer_than_its_longest(ledger):
    sources, targets = pairs(100)
    batches = PairBatches(sources, targets, 8, pad_id=-777)
    for batch in islice(batches, 60):
        assert isinstance(batch, PairBatch) and batch._fields == ("source", "target")
        for ours, whole in zip(batch, (sources, targets), strict=True):
            alone = [whole[i].numpy() for i in chosen(batch)]
            theirs = np.full((8, max(map(len, alone))), -777)
            for row, sequence in zip(theirs, alone, strict=True):
                row[: len(sequence)] = sequence
            assert ours.tolist() == theirs.tolist()
        ledger.holds()


def wasted(batches):
    sources = [batch.source for batch in batches]
    return sum((source == 0).sum().item() for source in sources) / sum(map(torch.numel, sources))


def test_little_is_padded():
    sources, targets = pairs(640)
    ours = wasted(islice(PairBatches(sources, targets, 8), 80))
    anyhow = wasted(PairBatch(pad(sources[i : i + 8]), None) for i in range(0, 640, 8))
    assert ours < 0.07 < 0.35 < anyhow
    widths = [batch.source.shape[1] for batch in islice(PairBatches(*pairs(128), 8), 16)]
    assert sorted(widths) not in (widths, widths[::-1]), "short batches come first, or last"


def test_what_does_not_fill_a_batch_is_left_out_of_a_round_but_never_of_all():
    """Left out by chance, not by length: else the longest would never be seen."""
    sources, targets = pairs(10)
    batches = iter(PairBatches(sources, targets, 4))
    seen = Counter()
    for _ in range(600):
        two = [*chosen(next(batches)), *chosen(next(batches))]
        assert len(set(two)) == 8
        seen.update(two)
    assert all(430 < seen[i] < 530 for i in range(10)), seen  # 480 each, give or take 5 deviations


def test_an_iterator_starts_from_the_beginning_and_disturbs_no_other():
    def numbers(batches, count):
        return [chosen(batch) for batch in islice(batches, count)]

    batches, before = PairBatches(*pairs(60), 5, seed=1), torch.random.get_rng_state()
    one, other = iter(batches), iter(batches)
    begun = numbers(one, 7)
    assert numbers(other, 7) == begun != numbers(iter(PairBatches(*pairs(60), 5, seed=2)), 7)
    assert begun + numbers(one, 13) == numbers(iter(PairBatches(*pairs(60), 5, seed=1)), 20)
    assert torch.equal(torch.random.get_rng_state(), before)


# --- bad input -------------------------------------------------------------------------------


@pytest.mark.usefixtures("without_annotations")
def test_bad_input_is_refused_by_name():
    with pytest.raises(ValueError, match=r"tokens holds '<eos>' more than once"):
        Vocabulary(["<eos>"])
    with pytest.raises(ValueError, match=r"the text is empty; it needs at least one token"):
        LETTERS.encode("")
    with pytest.raises(
        ValueError, match=r"'k' at position 3 of 'bäcker' is not among the 18 tokens"
    ):
        LETTERS.encode("bäcker")
    two = [torch.tensor([3, 4]), torch.tensor([5])]
    with pytest.raises(ValueError, match=r"batch_size=3 is more than the 2 pairs in sources"):
        PairBatches(two, two, 3)
