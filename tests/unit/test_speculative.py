"""Prompt lookup against decoding token by token, and sampling against the enumeration of all sequences."""

import itertools

import pytest
import torch

from course_lib.transformer import DecoderOnly
from course_lib.transformer.decoding import prompt_lookup, temperature
from course_lib.transformer.decoding.speculative import continuation
from tests.helpers.decoding import EOS, SOURCE, TARGETS, model, one_by_one, words


def passes(one):
    """How many tokens each call of the model reads, from now on."""
    read = []
    one.embedding.register_forward_pre_hook(lambda _, args: read.append(args[0].shape[1]))
    return read


@pytest.mark.verifies(
    "course_lib.transformer.decoding.prompt_lookup",
    against="a loop without cache, and counted passes",
)
@pytest.mark.parametrize("positions", ["rotary", "t5", "learned"])
def test_prompt_lookup_gives_the_greedy_tokens_in_fewer_passes(ledger, positions):
    saved = 0
    for seed in range(8):
        one = model(DecoderOnly, seed, positions=positions, max_length=SOURCE + 24)
        prompt = words(TARGETS, SOURCE, 0)
        (wanted,) = one_by_one(one, prompt, 24, eos=None)
        wanted = wanted[: wanted.index(EOS) + 1] if EOS in wanted else wanted
        read = passes(one)
        found = [int(token) for token in prompt_lookup(one, prompt, max_length=24)]
        assert found == wanted
        saved += len(wanted) - len(read)
    assert saved > 20
    ledger.holds()


@pytest.mark.verifies(
    "course_lib.transformer.decoding.prompt_lookup", against="probabilities of all sequences"
)
def test_samples_by_prompt_lookup_have_the_distribution_of_the_model(ledger, without_annotations):
    one, prompt, length, count = (
        model(DecoderOnly, 3, target_vocabulary=4),
        torch.tensor([[3, 1, 3, 1, 3]]),
        3,
        400,
    )
    soft = [lambda logits: temperature(logits, 6.0)]
    with torch.no_grad():
        expected = {}
        for line in itertools.product(range(4), repeat=length):
            logits = one(torch.cat([prompt, torch.tensor([line])], 1))[0] / 6
            log_p = logits.log_softmax(-1)[prompt.shape[1] - 1 : -1]
            expected[line] = log_p.gather(1, torch.tensor(line)[:, None]).sum().exp().item()
        assert sum(expected.values()) == pytest.approx(1)
        read = passes(one)
        found = dict.fromkeys(expected, 0)
        for seed in range(count):
            options = {"logits_processors": soft, "max_length": length, "eos_id": -1, "seed": seed}
            options["max_ngram"] = 1  # so that nearly every text has a proposal
            found[tuple(int(token) for token in prompt_lookup(one, prompt, **options))] += 1
    proposals = sum(1 < size < prompt.shape[1] for size in read)
    assert proposals > count / 2  # one token each
    assert count < len(read) < 3 * count - 0.1 * proposals  # a tenth of them accepted
    chi_squared = 0
    for last in itertools.product(range(4), repeat=2):  # where proposals are
        p = sum(p for line, p in expected.items() if line[1:] == last)
        seen = sum(n for line, n in found.items() if line[1:] == last)
        chi_squared += (seen - count * p) ** 2 / (count * p)
    assert chi_squared < 42  # 15 degrees of freedom: 1 in 4,000 is above
    ledger.holds()


def test_continuation_is_what_followed_the_last_occurrence_of_the_longest_ngram():
    assert continuation([5, 6, 7, 8, 9, 6, 7], 2) == [8, 9, 6, 7]
    assert continuation([5, 6, 1, 6, 2, 6], 1) == [2, 6]
    assert continuation([5, 6, 1, 6, 2, 6], 3) == []  # one token alone is no match
    assert continuation([1, 2, 3, 2, 3, 4, 9, 2, 3], 2) == [4, 9, 2, 3]
    assert continuation([4, 4, 4], 3) == [4]
    assert continuation([1, 2, 3], 3) == continuation([1], 3) == []


def test_prompt_lookup_refuses_several_prompts():
    with pytest.raises(ValueError, match="source has 2 prompts; prompt lookup continues one"):
        next(prompt_lookup(model(DecoderOnly), words(TARGETS, SOURCE, 0, 0)))
