"""Subwords against merges by hand; batches by tokens: every pair once per epoch, within the budget."""

import copy
import pickle
import unicodedata
from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from course_lib.data.batching import TokenBatches
from course_lib.data.subwords import Subwords
from tests.helpers.sentences import all_pairs

TEXTS = ["the cat sees the cats", "the bat hats", "über Straße  – 東京 🙂"]


def merges_by_hand(words):
    """The loop of Sennrich et al. (2016), until two pairs are equally frequent: merge the most frequent pair."""
    parts, merged = {word: tuple(word) for word in words}, []
    while True:
        pairs = Counter()
        for word, symbols in parts.items():
            for pair in zip(symbols, symbols[1:], strict=False):
                pairs[pair] += words[word]
        (best, most), (_, next_most) = pairs.most_common(2)
        if most == next_most:
            return merged
        merged.append("".join(best))
        for word, symbols in parts.items():
            joined, n = [], 0
            while n < len(symbols):
                pair = symbols[n : n + 2]
                joined.append("".join(pair) if pair == best else symbols[n])
                n += 2 if pair == best else 1
            parts[word] = tuple(joined)


def test_merges_are_those_of_the_loop():
    counted = {"low": 64, "lower": 31, "newest": 17, "wide": 9, "slow": 4, "owe": 2}
    subwords = Subwords.learned([f"{word} " * n for word, n in counted.items()], 275)
    wanted = merges_by_hand({"Ġ" + word: n for word, n in counted.items()})
    assert len(wanted) >= 3
    assert [subwords._tokenizer.id_to_token(259 + n) for n in range(len(wanted))] == wanted


@pytest.mark.parametrize("text", [*TEXTS, "unseen Wörter", "a\u0308 decomposed"])
def test_every_text_comes_back(tmp_path, text):
    subwords = Subwords.learned(TEXTS, 300)
    subwords.write(tmp_path / "subwords.json")
    for one in (subwords, Subwords.read(tmp_path / "subwords.json")):
        ids = one.encode(text, bos=True, eos=True)
        assert ids[0] == 1 and ids[-1] == 2 and len(one) == 300
        assert one.decode(torch.cat([ids, torch.tensor([0, 5])])) == text.replace("a\u0308", "ä")
        assert "".join(one.tokens("cats")) == " cats"


SPECIAL = ["<pad>", "<bos>", "<eos>"]
PARTS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs", "Cn"]), max_size=8),
    st.sampled_from([*SPECIAL, "<", ">", "eos", " ", "\u00a0", "\u0301", "\n", "\t", "e\u0301"]),
)


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """Learned from texts with the names of special tokens, and the same after reading and copying."""
    learned = Subwords.learned([*TEXTS, *["a <eos> b<pad>c"] * 50], 320)
    path = tmp_path_factory.mktemp("subwords") / "subwords.json"
    learned.write(path)
    return learned, Subwords.read(path), copy.deepcopy(learned), pickle.loads(pickle.dumps(learned))


@given(st.lists(PARTS, max_size=6).map("".join))
def test_any_text_comes_back_composed_and_stripped(both, text):
    wanted = unicodedata.normalize("NFC", text).strip()
    for subwords in both:
        ids = subwords.encode(text)
        assert not ids.tolist() or min(ids.tolist()) >= len(SPECIAL), "a special token in a text"
        assert subwords.decode(subwords.encode(text, bos=True, eos=True)) == wanted


def test_only_what_is_asked_for_is_special(both):
    for subwords in both:
        for text in (*SPECIAL, "the dog <eos> sees", "a<pad>b", "<bos> hi", "<eos><eos>"):
            ids = subwords.encode(text, bos=True, eos=True).tolist()
            assert [n for n in ids if n < len(SPECIAL)] == [1, 2] and ids[-1] == 2
            assert subwords.decode(ids) == text == "".join(subwords.tokens(text)).strip()


def test_damaged_subwords_are_refused(tmp_path):
    (tmp_path / "subwords.json").write_text('{"model"')
    with pytest.raises(ValueError, match="no file of subwords, or is damaged"):
        Subwords.read(tmp_path / "subwords.json")
    with pytest.raises(ValueError, match="size=100; it must be at least 259"):
        Subwords.learned(TEXTS, 100)


def made(count=300, tokens=120, **options):
    random = torch.Generator().manual_seed(1)
    lengths = torch.randint(2, 30, (2, count), generator=random).tolist()
    sides = [[torch.full((n,), place + 3) for place, n in enumerate(some)] for some in lengths]
    return TokenBatches(*sides, tokens, **options), sides


def epoch_of(batches):
    count = 1
    while batches.epoch_of(count) < 1:
        count += 1
    return [batches[n] for n in range(count)]


def test_an_epoch_has_every_pair_once_and_every_batch_keeps_to_the_budget():
    batches, (sources, _) = made()
    first = epoch_of(batches)
    seen = [row[0].item() - 3 for batch in first for row in batch.source]
    assert sorted(seen) == list(range(len(sources)))
    for number, batch in enumerate(first):
        rows, longest = len(batch.source), max(batch.source.shape[1], batch.target.shape[1])
        assert rows * longest <= 120
        assert (batch.source[:, 0] == batch.target[:, 0]).all(), "pairs stay together"
        assert batches.target_tokens(number) == (batch.target[:, 1:] != 0).sum()
    real = sum((batch.source != 0).sum().item() + (batch.target != 0).sum() for batch in first)
    assert real / sum(batch.source.numel() + batch.target.numel() for batch in first) > 0.6
    second = [batches[len(first) + n] for n in range(3)]
    assert [len(one.source) for one in second] != [len(one.source) for one in first[:3]]


def test_a_batch_depends_on_its_number_alone():
    there, back = made(seed=4)[0], made(seed=4)[0]
    numbers = [0, 57, 3, 200, 57]
    for number, other in zip(numbers, sorted(numbers), strict=True):
        there[number], back[other]
    assert torch.equal(there[57].source, back[57].source)
    assert not torch.equal(there[5].source, made(seed=5)[0][5].source)


def test_shards_are_the_batch():
    batches, _ = made(world=3)
    for number in range(40):
        whole = sorted(batches[number].target[:, 0].tolist())
        parts = [batches.shard(number, rank, 3) for rank in range(3)]
        assert sorted(row for part in parts for row in part.target[:, 0].tolist()) == whole
        assert all(len(part.target) for part in parts)


def test_too_small_a_budget_is_refused():
    with pytest.raises(ValueError, match="tokens=20 is less than the 29 tokens"):
        made(tokens=20)
    with pytest.raises(ValueError, match="tokens=60 is less than .* times 3 processes"):
        made(tokens=60, world=3)


def test_pairs_and_subwords_fit_together():
    train = all_pairs().train[:500]
    subwords = Subwords.learned((text for pair in train for text in pair), 400)
    assert all(subwords.decode(subwords.encode(text)) == text for pair in train for text in pair)
