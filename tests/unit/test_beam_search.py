"""Beam search against all sequences there are, and against `generate` of Hugging Face."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.transformer import DecoderOnly, Transformer
from course_lib.transformer.decoding import Beams, beam_search, greedy
from tests.helpers.decoding import (
    BOS,
    EOS,
    PAD,
    SOURCE,
    SOURCES,
    TARGETS,
    always,
    competing,
    every_line,
    leaning,
    model,
    words,
)
from tests.helpers.generate import beams_of, wrapper

INF = float("inf")
drawn = settings(max_examples=8)


def source_for(made, *padded, vocabulary=20):
    """Sources, or prompts; the second source ends in padding if there are several."""
    source = words(SOURCES if made is Transformer else vocabulary, SOURCE, *padded)
    if made is Transformer and len(padded) > 1:
        source[1, 3:] = PAD
    return source


def log_p(one, source, lines, bos=BOS):
    """The log-probability of each line after one source, line by line and without cache."""
    sums = []
    for line in lines:
        tokens = torch.tensor([line])
        with torch.no_grad():
            if isinstance(one, Transformer):
                logits = one(source[None], torch.cat([torch.tensor([[bos]]), tokens[:, :-1]], 1))
            else:
                logits = one(torch.cat([source[None], tokens[:, :-1]], 1))[:, len(source) - 1 :]
        chosen = logits.double().log_softmax(-1).gather(-1, tokens[..., None])
        sums.append(chosen.sum().item())
    return sums


def rescored(one, source, lines, penalty, bos=BOS):
    sums = log_p(one, source, lines, bos)
    return [total / len(line) ** penalty for line, total in zip(lines, sums, strict=True)]


def lines_of(found, row, max_length, eos=EOS):
    """The lines without what stands behind their ends; None where there was none."""
    pairs = zip(found.tokens[row].tolist(), found.scores[row].tolist(), strict=True)
    ended = lambda line: line[: line.index(eos) + 1] if eos in line else line[:max_length]  # noqa: E731
    return [None if score == -INF else ended(line) for line, score in pairs]


@pytest.mark.verifies(
    "course_lib.transformer.decoding.beam_search",
    "course_lib.transformer.decoding.Beams",
    against="every sequence enumerated",
)
@pytest.mark.parametrize("made", [Transformer, DecoderOnly])
@drawn
@given(
    seed=st.integers(0, 10_000),
    choices=st.sampled_from([(1, 3), (2, 2), (3, 2), (2, 3)]),
    penalty=st.sampled_from([-1.0, -0.3, 0.0, 0, 0.6, 1, 2.0]),
    out=st.sampled_from([-INF, -1e9]),
    end=st.sampled_from([-2.0, 0.0, 2.0]),
)
def test_beam_search_over_all_prefixes_finds_the_best(
    ledger, made, seed, choices, penalty, out, end
):
    max_length, others = choices
    tokens = [EOS, *range(3, 3 + others)]
    beam = others ** (max_length - 1) * (others + 1)
    one = leaning(model(made, seed=seed, target_vocabulary=40), 0.3, only=tokens, out=out, eos=end)
    source = source_for(made, 0, 0, vocabulary=40)
    found = beam_search(one, source, beam, penalty, max_length=max_length)
    assert found.tokens.shape[:2] == found.scores.shape == (2, beam)
    every = list(every_line(tokens, max_length))
    for row in range(2):
        truth = dict(
            zip(map(tuple, every), rescored(one, source[row], every, penalty), strict=True)
        )
        best = sorted(truth.values(), reverse=True)[:beam]
        scores, lines = found.scores[row], lines_of(found, row, max_length)[: len(best)]
        ledger.compare(scores[: len(best)], torch.tensor(best), within=1e-3)
        assert [truth[tuple(line)] for line in lines] == pytest.approx(best, abs=1e-3, rel=1e-5)
        assert len(set(map(tuple, lines))) == len(best)  # none comes twice
        assert (scores[len(best) :] < -1e4).all()
    ledger.holds()


def theirs_of(one, source, written, **choices):
    """What `generate` makes of a model of ours; theirs has ends behind the end where padding is token 0."""
    start, rest = source, {}
    if isinstance(one, Transformer):
        start, rest = torch.full((len(source), 1), BOS), {"source": source}
    found = beams_of(wrapper()(one), start, written, use_cache=False, **rest, **choices)
    ends = found.tokens == EOS
    return found._replace(tokens=found.tokens.masked_fill(ends.cumsum(-1) > ends.long(), PAD))


@pytest.mark.verifies(
    "course_lib.transformer.decoding.beam_search",
    "course_lib.transformer.decoding.Beams",
    against="Hugging Face `generate`, a wrapper around the model",
)
@pytest.mark.parametrize("made", [Transformer, DecoderOnly])
@pytest.mark.parametrize("penalty", [-1.0, 0.0, 0.6, 2.0])
def test_beam_search_equals_hugging_face(ledger, made, penalty):
    lengths = set()
    for beam, written in itertools.product((3, 5), (3, 9)):
        one, source = competing(made, beam), source_for(made, 0, 0, 0)
        ours = beam_search(one, source, beam, penalty, max_length=written)
        theirs = theirs_of(one, source, written, num_beams=beam, length_penalty=penalty)
        assert torch.equal(ours.tokens, theirs.tokens)
        ledger.compare(ours.scores, theirs.scores, within=1e-5 * 10 ** max(0, -penalty))
        lengths |= {len(line) for row in range(3) for line in lines_of(ours, row, written)}
    assert len(lengths) > 2


@pytest.mark.verifies("course_lib.transformer.decoding.beam_search", against="greedy decoding")
@pytest.mark.parametrize("made", [Transformer, DecoderOnly])
@pytest.mark.parametrize("penalty", [-1.0, 0.0, 3.0])
def test_beam_search_of_size_one_is_greedy(ledger, made, penalty):
    ends = set()
    for seed, max_length in itertools.product(range(3), (1, 7)):
        one, source = competing(made, seed), source_for(made, *[0] * 6)
        found = beam_search(one, source, 1, penalty, max_length=max_length).tokens
        assert torch.equal(found[:, 0], greedy(one, source, max_length=max_length))
        ends |= {line.index(EOS) if EOS in line else -1 for line in found[:, 0].tolist()}
    assert len(ends) > 2
    ledger.holds()


@pytest.mark.parametrize("max_length", [1, 6])
def test_generated_padding_counts(max_length):
    """A model that was badly trained writes padding; what comes behind it is not lost."""
    one, source = leaning(model(), 0.2, pad=3.0), words(SOURCES, SOURCE, 0, 2)
    found = beam_search(one, source, 3, max_length=max_length)
    assert (found.tokens == PAD).any()
    for row in range(2):
        anew = rescored(one, source[row], lines_of(found, row, max_length), 1)
        assert found.scores[row].tolist() == pytest.approx(anew, abs=1e-4)
    assert beam_search(always(5, PAD, EOS), source, 1).tokens.tolist() == [[[5, PAD, EOS]]] * 2


def test_missing_hypotheses_are_padding_with_minus_infinity():
    one = leaning(model(), 0.2, only=[EOS, 5])
    found = beam_search(one, words(SOURCES, SOURCE, 0, 2), 6, max_length=3)
    for row in range(2):
        lines = lines_of(found, row, 3)
        assert sorted(lines[:4]) == [[EOS], [5, EOS], [5, 5, EOS], [5, 5, 5]]
        assert lines[4:] == [None] * 2 and found.tokens[row, 4:].tolist() == [[PAD] * 3] * 2


@pytest.mark.parametrize("made", [Transformer, DecoderOnly])
def test_beam_search_with_other_special_tokens(made):
    one = leaning(model(made, pad_id=4, target_vocabulary=9), 0.2)
    source = words(9, SOURCE, 0, 0)
    source[source == 4] = 5
    found = beam_search(one, source, 3, 0.5, max_length=5, bos_id=6, eos_id=7)
    for row in range(2):
        lines = lines_of(found, row, 5, eos=7)
        anew = rescored(one, source[row], lines, 0.5, bos=6)
        assert found.scores[row].tolist() == pytest.approx(anew, abs=1e-4)
        for line, whole in zip(lines, found.tokens[row].tolist(), strict=True):
            assert set(whole[len(line) :]) <= {4}


@pytest.mark.parametrize("beam", [1, 3])
def test_beams_may_hold_the_start_token(beam):
    one = leaning(model(DecoderOnly), bos=50.0)
    found = beam_search(one, words(TARGETS, SOURCE, 0, 0), beam, max_length=4)
    assert found.tokens[:, 0].tolist() == [[BOS] * 4] * 2


def test_beam_search_keeps_the_mode_of_the_model_and_adds_in_float32():
    one, source = model(dropout=0.5).train().bfloat16(), words(SOURCES, SOURCE, 0)
    found = beam_search(one, source.repeat(30, 1), 2, max_length=4)
    assert one.training and len({str(row) for row in found.tokens.tolist()}) > 1
    assert found.scores.dtype == torch.float32 and not found.scores.requires_grad


# --- the callback ----------------------------------------------------------------------------


@pytest.mark.verifies(
    "course_lib.transformer.decoding.BeamStep", against="the steps done over by hand"
)
@pytest.mark.parametrize(("made", "beam"), [(Transformer, 1), (Transformer, 2), (DecoderOnly, 4)])
def test_beam_search_callback_sees_each_step(ledger, made, beam):
    """From parents and tokens alone the lines are rebuilt; what is kept is continued, what ends returned."""
    for seed, penalty in itertools.product(range(2), (0.0, 1.0)):
        one, source, steps = competing(made, seed), source_for(made, 0, 0, 0), []
        found = beam_search(one, source, beam, penalty, max_length=6, callback=steps.append)
        for row in range(3):
            rows, finished = [[]], {}
            for number, step in enumerate(steps):
                parent, token, score, ends, kept, rows_of = (part[row].tolist() for part in step)
                if not any(kept) and not any(ends):
                    continue  # this source was done before
                lines = [[*rows[p], t] for p, t in zip(parent, token, strict=True)]
                assert len(set(map(tuple, lines))) == len(lines) == 2 * beam
                assert score == sorted(score, reverse=True)
                assert score == pytest.approx(log_p(one, source[row], lines), abs=1e-4)
                for line, total, end in zip(lines[:beam], score, ends, strict=False):
                    assert end == (line[-1] == EOS or len(line) == 6)
                    finished |= {tuple(line): total / len(line) ** penalty} if end else {}
                assert not any(ends[beam:])  # only those in the beam count
                best = [n for n, t in enumerate(token) if t != EOS and number < 5][:beam]
                assert [n for n, k in enumerate(kept) if k] in ([], best)
                rows = [lines[n] for n in rows_of]
            wanted = sorted(finished, key=finished.get, reverse=True)[:beam]
            assert set(map(tuple, lines_of(found, row, 6))) == set(wanted)
    ledger.holds()


def test_beam_search_stops_where_nothing_can_become_better():
    one, steps = leaning(model(), 0.2, eos=30.0), []  # the end is all but certain
    for beam, penalty, count in ((1, 0.0, 1), (2, 0.0, 2), (2, 3.0, 20)):
        steps.clear()
        source = words(SOURCES, SOURCE, 0, 0)
        beam_search(one, source, beam, penalty, max_length=20, callback=steps.append)
        assert len(steps) == count  # with 3.0, the longest could still be best


def test_all_tokens_may_be_in_the_beam():
    found = beam_search(model(), words(SOURCES, SOURCE, 0, 1), TARGETS, max_length=1)
    assert isinstance(found, Beams)
    assert found.tokens.sort(1).values[..., 0].tolist() == [list(range(TARGETS))] * 2


S = torch.tensor([[3, 4, 5, 0], [6, 7, 8, 9]])


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: beam_search(model(), S, 0), r"beam_size=0 is below 1"),
        (lambda: beam_search(model(), S, 9), r"beam_size=9 is larger than the vocabulary of 8 tokens"),
        (lambda: beam_search(model(), S, 2, max_length=0), r"max_length=0 is below 1"),
        (lambda: beam_search(leaning(model(), only=[]), S), r"every logit is minus infinity"),
    ],
)  # fmt: skip
def test_invalid_input_raises_value_error(call, says):
    with pytest.raises(ValueError, match=says):
        call()
