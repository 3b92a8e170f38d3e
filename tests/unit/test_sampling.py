"""Sampling: the same draws as `generate` of Hugging Face."""

import pytest
import torch

from course_lib.transformer import DecoderOnly, Transformer
from course_lib.transformer.decoding import sample, stream, temperature, top_k, top_p
from tests.helpers.decoding import BOS, EOS, SOURCE, SOURCES, TARGETS, leaning, model, words
from tests.helpers.generate import wrapper

INF = float("inf")
MODELS = [Transformer, DecoderOnly]


def source_for(made, *padded, vocabulary=TARGETS):
    return words(SOURCES if made is Transformer else vocabulary, SOURCE, *padded)


def both(made, seed, ours, several=1, **theirs):
    """What a function of ours and `generate` of Hugging Face write, from the same random state."""
    one = leaning(model(made, seed=seed, target_vocabulary=20), 0.25, eos=1.5).float()
    source = source_for(made, 0, 0, 0, vocabulary=20)
    start, rest = source, {}
    if made is Transformer:
        start, rest = torch.full((3, 1), BOS), {"source": source}
    torch.manual_seed(7)
    wanted = wrapper()(one).generate(
        start, attention_mask=torch.ones_like(start), num_return_sequences=several,
        max_new_tokens=8, use_cache=False, **theirs, **rest,
    )  # fmt: skip
    torch.manual_seed(7)
    return ours(one, source), wanted[:, start.shape[1] :]


@pytest.mark.verifies(
    "course_lib.transformer.decoding.sample", against="Hugging Face `generate`, the same draws"
)
@pytest.mark.parametrize("made", MODELS)
@pytest.mark.parametrize("several", [1, 3])
def test_sample_equals_hugging_face(ledger, made, several):
    processors = [lambda z: temperature(z, 1.3), lambda z: top_k(z, 9), lambda z: top_p(z, 0.95)]
    options = {"logits_processors": processors, "num_samples": several, "max_length": 8}
    theirs = {"do_sample": True, "temperature": 1.3, "top_k": 9, "top_p": 0.95}
    ends = set()
    for seed in range(3):
        found, wanted = both(made, seed, lambda *given: sample(*given, **options), several, **theirs)  # fmt: skip
        assert torch.equal(found, wanted)
        ends |= {line.index(EOS) if EOS in line else -1 for line in found.tolist()}
    assert len(ends) > 2
    ledger.holds()


@pytest.mark.verifies(
    "course_lib.transformer.decoding.stream",
    against="Hugging Face `generate`, greedy and the same draws",
)
@pytest.mark.parametrize("made", MODELS)
@pytest.mark.parametrize("k", [0, 9])
def test_streamed_tokens_equal_hugging_face(ledger, made, k):
    options = {"logits_processors": [lambda z: top_k(z, k)] if k else None, "max_length": 8}
    theirs = {"do_sample": True, "top_k": k} if k else {"do_sample": False}
    for seed in range(3):
        found, wanted = both(made, seed, lambda *given: list(stream(*given, **options)), **theirs)
        ledger.compare(torch.stack(found, dim=1), wanted, within=0)


def test_stream_yields_each_token_before_the_next_is_computed():
    one, steps = leaning(model(DecoderOnly), 0.25), []
    one.lm_head.register_forward_hook(lambda *_: steps.append(len(steps)))
    tokens = stream(one, source_for(DecoderOnly, 0), max_length=5, eos_id=TARGETS - 1)
    next(tokens)
    assert len(steps) == 1
    next(tokens)
    assert len(steps) == 2


def test_samples_are_padded_after_the_end_token():
    one, source = leaning(model(pad_id=4), 0.2, eos=1.0), torch.full((2, 3), 5)
    lines = sample(one, source, num_samples=20, max_length=6, seed=0).tolist()
    ends = [line.index(EOS) if EOS in line else 6 for line in lines]
    assert len(set(ends)) > 3 and {6, 0} < set(ends)
    assert all(set(line[end + 1 :]) <= {4} for line, end in zip(lines, ends, strict=True))


def test_sample_seed():
    one, source = leaning(model(), 0.2), words(SOURCES, SOURCE, 0, 0)

    def lines(**choices):
        return sample(one, source, num_samples=5, max_length=6, eos_id=99, **choices)

    torch.manual_seed(11)
    first = lines(seed=1)
    state = torch.get_rng_state()
    torch.manual_seed(12)
    assert torch.equal(lines(seed=1), first)  # whatever the global generator holds
    assert not torch.equal(lines(seed=2), first) and not torch.equal(lines(seed=0), first)
    assert torch.equal(lines(seed=0), lines(seed=0))
    torch.manual_seed(11)
    assert torch.equal(torch.get_rng_state(), state)  # which a seed leaves as it was
    free = lines()
    assert not torch.equal(torch.get_rng_state(), state) and not torch.equal(lines(), free)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda z: z - INF, r"every logit is minus infinity, so there is nothing to choose from"),
        (lambda z: z * float("nan"), r"logits holds NaN or plus infinity"),
        (lambda z: z + INF, r"logits holds NaN or plus infinity"),
    ],
)
def test_logits_without_a_distribution_are_refused(spoil, says):
    with pytest.raises(ValueError, match=says):
        sample(model(), words(SOURCES, SOURCE, 0, 2), logits_processors=[spoil])
