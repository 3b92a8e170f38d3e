"""Sampling: the draws against the distribution, and against `generate` of Hugging Face."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import stats

from course_lib.decoding import greedy, sample, stream, temperature, top_k, top_p
from course_lib.transformer import DecoderOnly, Transformer
from tests.helpers.decoding import (
    BOS,
    EOS,
    PAD,
    SOURCE,
    SOURCES,
    TARGETS,
    always,
    competing,
    leaning,
    model,
    words,
)
from tests.helpers.generate import wrapper

INF = float("inf")
MODELS = [Transformer, DecoderOnly]
PROCESSORS = {
    "none": (),
    "temperature": [lambda z: temperature(z, 1.8)],
    "top_k": [lambda z: top_k(z, 3)],
    "top_p": [lambda z: top_p(z, 0.8)],
    "all": [lambda z: temperature(z, 0.7), lambda z: top_k(z, 6), lambda z: top_p(z, 0.9)],
}


def source_for(made, *padded, vocabulary=TARGETS):
    return words(SOURCES if made is Transformer else vocabulary, SOURCE, *padded)


def probabilities(one, source, line, processors=()):
    """What the next token must follow, from the whole model without cache and the processors by hand."""
    with torch.no_grad():
        if isinstance(one, Transformer):
            logits = one(source[None], torch.tensor([[BOS, *line]]))[0, -1]
        else:
            logits = one(torch.cat([source, torch.tensor(line, dtype=torch.int64)])[None])[0, -1]
    for each in processors:
        logits = each(logits)
    return logits.double().softmax(-1)


def plausible(drawn, wanted):
    """Chi-square: nothing impossible was drawn, and the rest as often as it should be."""
    counts = torch.bincount(drawn, minlength=len(wanted)).double()
    assert (counts[wanted == 0] == 0).all()
    expected = wanted * len(drawn)
    rare = expected < 5
    seen, due = counts[~rare].tolist(), expected[~rare].tolist()
    if rare.any() and expected[rare].sum() > 1:
        seen, due = [*seen, counts[rare].sum().item()], [*due, expected[rare].sum().item()]
    due = [one * sum(seen) / sum(due) for one in due]
    return len(due) == 1 or stats.chisquare(seen, due).pvalue > 1e-3


@pytest.mark.verifies("course_lib.decoding.sample", against="a chi-square test of 100,000 draws")
@pytest.mark.parametrize("processors", PROCESSORS)
@pytest.mark.parametrize("made", MODELS)
def test_samples_follow_the_filtered_distribution(ledger, made, processors):
    one, source = leaning(model(made), 0.2), source_for(made, 0, 0)
    drawn = sample(
        one, source, logits_processors=PROCESSORS[processors], num_samples=50_000, max_length=1, seed=3
    )  # fmt: skip
    assert drawn.shape == (100_000, 1)
    for row in range(2):
        wanted = probabilities(one, source[row], [], PROCESSORS[processors])
        assert plausible(drawn[row * 50_000 : (row + 1) * 50_000, 0], wanted)
        others = probabilities(one, source[1 - row], [])
        assert not plausible(drawn[row * 50_000 : (row + 1) * 50_000, 0], others + 1e-9)
    ledger.holds()


@pytest.mark.verifies("course_lib.decoding.sample", against="a chi-square test of 100,000 draws")
@pytest.mark.parametrize("made", MODELS)
def test_second_sampled_token_depends_on_the_first(ledger, made):
    one, source = leaning(model(made), 0.2), source_for(made, 0)
    drawn = sample(one, source, num_samples=100_000, max_length=2, seed=4)
    first = torch.bincount(drawn[:, 0], minlength=TARGETS)
    for token in first.topk(4).indices.tolist():
        after = drawn[drawn[:, 0] == token, 1]
        if token == EOS:
            assert (after == PAD).all()
        else:
            assert plausible(after, probabilities(one, source[0], [token]))
    ledger.holds()


@pytest.mark.verifies(
    "course_lib.decoding.sample", against="Hugging Face `generate`, the same draws"
)
@pytest.mark.parametrize("made", MODELS)
@pytest.mark.parametrize("several", [1, 3])
def test_sample_equals_hugging_face(ledger, made, several):
    ends = set()
    for seed in range(3):
        one = leaning(model(made, seed=seed, target_vocabulary=20), 0.25, eos=1.5).float()
        source = source_for(made, 0, 0, 0, vocabulary=20)
        start, rest = source, {}
        if made is Transformer:
            start, rest = torch.full((3, 1), BOS), {"source": source}
        torch.manual_seed(7)
        theirs = wrapper()(one).generate(
            start, attention_mask=torch.ones_like(start), do_sample=True, temperature=1.3, top_k=9,
            top_p=0.95, num_return_sequences=several, max_new_tokens=8, use_cache=False, **rest,
        )  # fmt: skip
        torch.manual_seed(7)
        processors = [
            lambda z: temperature(z, 1.3),
            lambda z: top_k(z, 9),
            lambda z: top_p(z, 0.95),
        ]
        ours = sample(one, source, logits_processors=processors, num_samples=several, max_length=8)
        assert torch.equal(ours, theirs[:, start.shape[1] :])
        ends |= {line.index(EOS) if EOS in line else -1 for line in ours.tolist()}
    assert len(ends) > 2
    ledger.holds()


@pytest.mark.verifies(
    "course_lib.decoding.stream", against="Hugging Face `generate`, greedy and the same draws"
)
@pytest.mark.parametrize("made", MODELS)
def test_streamed_tokens_equal_hugging_face(ledger, made):
    for seed in range(3):
        one = leaning(model(made, seed=seed, target_vocabulary=20), 0.25, eos=1.5).float()
        source = source_for(made, 0, 0, 0, vocabulary=20)
        start, rest = source, {}
        if made is Transformer:
            start, rest = torch.full((3, 1), BOS), {"source": source}
        options = {
            "attention_mask": torch.ones_like(start),
            "max_new_tokens": 8,
            "use_cache": False,
        }
        for processors, theirs in (
            (None, {"do_sample": False}),
            ([lambda z: top_k(z, 9)], {"do_sample": True, "top_k": 9}),
        ):
            torch.manual_seed(7)
            wanted = wrapper()(one).generate(start, **options, **theirs, **rest)[
                :, start.shape[1] :
            ]
            torch.manual_seed(7)
            found = list(stream(one, source, logits_processors=processors, max_length=8))
            assert all(token.shape == (3,) for token in found)
            ledger.compare(torch.stack(found, dim=1), wanted, within=0)


def test_stream_yields_each_token_before_the_next_is_computed():
    one = leaning(model(DecoderOnly), 0.25)
    steps = []
    one.lm_head.register_forward_hook(lambda *_: steps.append(len(steps)))
    tokens = stream(one, source_for(DecoderOnly, 0), max_length=5, eos_id=TARGETS - 1)
    next(tokens)
    before = len(steps)
    next(tokens)
    assert (before, len(steps)) == (1, 2)


@pytest.mark.parametrize("made", MODELS)
def test_sample_of_one_remaining_token_is_greedy(made):
    for seed in range(3):
        one = competing(made, seed)
        source = source_for(made, 0, 0, 0, vocabulary=20)
        for only in (lambda z: top_k(z, 1), lambda z: top_p(z, 1e-6), lambda z: temperature(z, 1e-4)):  # fmt: skip
            drawn = sample(one, source, logits_processors=[only], max_length=7)
            assert torch.equal(drawn, greedy(one, source, max_length=7))


@settings(
    deadline=None, max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    seed=st.integers(0, 10_000),
    made=st.sampled_from(MODELS),
    batch=st.integers(1, 3),
    several=st.integers(1, 4),
    max_length=st.integers(1, 6),
)
def test_samples_end_at_eos_and_are_padded(seed, made, batch, several, max_length):
    one = leaning(model(made, seed=seed, pad_id=4), 0.2, eos=1.0)
    source = source_for(made, *[0] * batch)
    source[source == 4] = 5
    lines = sample(one, source, num_samples=several, max_length=max_length, seed=seed)
    assert lines.dtype == torch.int64 and lines.shape[0] == batch * several
    assert lines.shape[1] <= max_length
    for line in lines.tolist():
        assert EOS in line or len(line) == max_length
        assert EOS not in line or set(line[line.index(EOS) + 1 :]) <= {4}


def test_samples_of_a_source_are_adjacent():
    first, second = always(5, EOS), words(SOURCES, SOURCE, 0, 0)
    sure = [lambda z: z * 1000]
    assert sample(first, second, num_samples=3, logits_processors=sure).tolist() == [[5, EOS]] * 6
    one, source = model(DecoderOnly, seed=1), words(TARGETS, SOURCE, *[0] * 6)
    firsts = [row.argmax().item() for row in (probabilities(one, row, []) for row in source)]
    assert len(set(firsts)) > 1
    drawn = sample(
        one, source, num_samples=4, max_length=1, logits_processors=[lambda z: top_k(z, 1)]
    )
    assert drawn[:, 0].tolist() == [token for token in firsts for _ in range(4)]


def test_sample_stops_at_eos():
    source = words(SOURCES, SOURCE, 0, 1)
    sure = [lambda z: z * 1000]
    assert (
        sample(always(5, 4, 7, EOS, 6), source, logits_processors=sure).tolist()
        == [[5, 4, 7, EOS]] * 2
    )
    assert sample(always(5, EOS), source, logits_processors=sure, eos_id=5).tolist() == [[5]] * 2
    assert (
        sample(always(5, 4, EOS), source, logits_processors=sure, max_length=2).tolist()
        == [[5, 4]] * 2
    )
    assert sample(always(3, max_length=60), source, eos_id=99).shape == (2, 50)
    prompt = words(TARGETS, SOURCE, 0, 0)
    continued = always(3, 3, 3, 3, 6, 7, EOS, made=DecoderOnly)
    assert sample(continued, prompt, logits_processors=sure).tolist() == [[6, 7, EOS]] * 2
    one = leaning(model(), 0.2)
    lines = [sample(one, source, seed=5, max_length=6, bos_id=bos) for bos in (BOS, 4)]
    assert lines[0].shape != lines[1].shape or not torch.equal(*lines)


def test_sample_applies_logits_processors_in_order():
    seen = []

    def note(name, then):
        def one(z):
            seen.append((name, z.clone()))
            return then(z)

        return one

    one, source = leaning(model(), 0.2), words(SOURCES, SOURCE, 0, 0)
    both = note("first", lambda z: 2 * z), note("second", lambda z: top_k(z, 2))
    lines = sample(
        one, source, logits_processors=iter(both), num_samples=2, max_length=3, eos_id=99, seed=0
    )
    assert [name for name, _ in seen] == ["first", "second"] * 3 and lines.shape == (4, 3)
    for place in range(3):
        (_, before), (_, after) = seen[2 * place : 2 * place + 2]
        torch.testing.assert_close(after, 2 * before)
        for row in range(4):
            wanted = probabilities(one, source[row // 2], lines[row, :place].tolist())
            torch.testing.assert_close(before[row].softmax(-1), wanted)
            assert lines[row, place] in after[row].topk(2).indices


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
    torch.manual_seed(11)
    assert torch.equal(torch.get_rng_state(), state)  # which a seed leaves as it was
    free = lines()
    assert not torch.equal(torch.get_rng_state(), state) and not torch.equal(lines(), free)
    torch.manual_seed(11)
    assert torch.equal(lines(), free)
    assert len({tuple(row) for row in first.tolist()}) > 5  # samples differ


def test_sample_does_not_change_the_model_and_builds_no_graph():
    one, source = model(dropout=0.5).train(), words(SOURCES, SOURCE, *[0] * 40)
    only = [lambda z: top_k(z, 1)]
    first, again = (sample(one, source, logits_processors=only, max_length=8) for _ in range(2))
    assert one.training and (first.shape != again.shape or not torch.equal(first, again))
    seen = []
    sample(
        one.eval(),
        source,
        logits_processors=[lambda z: seen.append(z.requires_grad) or z],
        max_length=3,
    )
    assert not any(seen) and torch.is_grad_enabled()
    half = sample(model().bfloat16(), source.int(), max_length=3, seed=0)
    assert half.dtype == torch.int64


S = torch.tensor([[3, 4, 5, 0], [6, 7, 8, 9]])
READER = model()


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: list(stream(READER, S, max_length=0)), r"max_length=0 is below 1"),
        (lambda: sample(READER, S, logits_processors=[lambda z: z - INF]), r"every logit is minus infinity, so there is nothing to choose from"),
        (lambda: sample(READER, S, logits_processors=[lambda z: z * float("nan")]), r"logits holds NaN or plus infinity"),
        (lambda: sample(READER, S, logits_processors=[lambda z: z + INF]), r"logits holds NaN or plus infinity"),
        (lambda: sample(leaning(model(), eos=float("nan")), S), r"logits holds NaN"),
    ],
)  # fmt: skip
def test_invalid_input_raises_value_error(call, says):
    with pytest.raises(ValueError, match=says):
        call()
