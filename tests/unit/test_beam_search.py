"""Beam search against all sequences there are, and against `generate` of Hugging Face."""

import itertools
import math

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

from course_lib.decoding import Beams, beam_search, greedy
from course_lib.positions import ENCODINGS
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
    one_by_one,
    rectangle,
    wild,
    words,
)
from tests.helpers.generate import beams_of, from_gpt2, gpt2, wrapper
from tests.helpers.ids import encoding_id

INF = float("inf")
drawn = settings(
    deadline=None, max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def log_p(one, source, lines, bos=BOS):
    """The log-probability of each line after one source, without cache."""
    made, again = {}, sorted(set(map(tuple, lines)), key=len)
    for length, group in itertools.groupby(again, key=len):
        group = list(group)
        tokens, sources = torch.tensor(group), source.repeat(len(group), 1)
        with torch.no_grad():
            if isinstance(one, Transformer):
                start = torch.full((len(group), 1), bos)
                logits = one(sources, torch.cat([start, tokens[:, :-1]], 1))
            else:
                logits = one(torch.cat([sources, tokens[:, :-1]], 1))[:, len(source) - 1 :]
        chosen = logits.double().log_softmax(-1).gather(-1, tokens[..., None])
        assert chosen.shape == (len(group), length, 1)
        made |= zip(group, chosen.sum((1, 2)).tolist(), strict=True)
    return [made[tuple(line)] for line in lines]


def every_line(tokens, max_length, eos=EOS):
    """All that can be written: with an end, or as long as allowed."""
    others = [token for token in tokens if token != eos]
    for length in range(1, max_length + 1):
        for line in itertools.product(others, repeat=length - 1):
            yield [*line, eos]
            if length == max_length:
                yield from ([*line, token] for token in others)


def trimmed(line, score, max_length, eos=EOS):
    """The line without what stands behind its end; None where there was none."""
    if score == -INF:
        return None
    return line[: line.index(eos) + 1] if eos in line else line[:max_length]


def lines_of(found, row, max_length, eos=EOS):
    pairs = zip(found.tokens[row].tolist(), found.scores[row].tolist(), strict=True)
    return [trimmed(line, score, max_length, eos) for line, score in pairs]


# --- exhaustive search -----------------------------------------------------------------------


@pytest.mark.verifies("course_lib.decoding.beam_search", against="every sequence enumerated")
@pytest.mark.verifies("course_lib.decoding.Beams", against="every sequence enumerated")
@pytest.mark.parametrize("made", [Transformer, DecoderOnly])
@drawn
@given(
    seed=st.integers(0, 10_000),
    choices=st.sampled_from([(1, 3), (2, 2), (3, 2), (4, 2), (2, 3), (3, 3)]),
    penalty=st.sampled_from([-1.0, -0.3, 0.0, 0, 0.6, 1.0, 1, 2.0]),
    out=st.sampled_from([-INF, -1e9]),
    end=st.sampled_from([-2.0, 0.0, 2.0]),
)
def test_beam_search_over_all_prefixes_finds_the_best(
    ledger, made, seed, choices, penalty, out, end
):
    max_length, others = choices
    tokens = [EOS, *range(3, 3 + others)]
    beam = others ** (max_length - 1) * (others + 1)
    one = model(made, seed=seed, target_vocabulary=40)
    one = leaning(one, 0.3, only=tokens, out=out, eos=end)
    source = words(SOURCES if made is Transformer else 40, SOURCE, 0, 0)
    if made is Transformer:
        source[1, 3:] = PAD
    found = beam_search(one, source, beam, penalty, max_length=max_length)
    assert found.tokens.shape[:2] == found.scores.shape == (2, beam)
    for row in range(2):
        all_lines = list(every_line(tokens, max_length))
        totals = log_p(one, source[row], all_lines)
        truth = {
            tuple(line): total / len(line) ** penalty
            for line, total in zip(all_lines, totals, strict=True)
        }
        best = sorted(truth.values(), reverse=True)[:beam]
        scores, lines = found.scores[row], lines_of(found, row, max_length)
        ledger.compare(scores[: len(best)], torch.tensor(best), within=1e-3)
        ours = [truth[tuple(line)] for line in lines[: len(best)]]
        assert ours == pytest.approx(best, abs=1e-3, rel=1e-5)
        assert len(set(map(tuple, lines[: len(best)]))) == len(best)  # none comes twice
        assert (scores[len(best) :] < -1e4).all()
        if out == -INF:
            assert (scores[len(best) :] == -INF).all()
            assert (found.tokens[row, len(best) :] == PAD).all()


def theirs_of(one, source, written, **choices):
    """What `generate` makes of a model of ours."""
    if isinstance(one, DecoderOnly):
        return beams_of(wrapper()(one), source, written, use_cache=False, **choices)
    start = torch.full((len(source), 1), BOS)
    return beams_of(wrapper()(one), start, written, use_cache=False, source=source, **choices)


def alike(ledger, ours, theirs, within):
    """Sequence for sequence, score for score. Theirs has ends behind the end where padding is token 0."""
    ended = (theirs.tokens == EOS).cumsum(-1)
    hers = theirs.tokens.masked_fill(ended - (theirs.tokens == EOS).long() > 0, PAD)
    assert torch.equal(ours.tokens, hers)
    ledger.compare(ours.scores, theirs.scores, within=within)


def lengths(tokens):
    return {len(line[: line.index(EOS) + 1]) if EOS in line else 0 for line in tokens.flatten(0, 1).tolist()}  # fmt: skip


@pytest.mark.verifies(
    "course_lib.decoding.beam_search", against="Hugging Face `generate`, a wrapper around the model"
)
@pytest.mark.verifies(
    "course_lib.decoding.Beams", against="Hugging Face `generate`, a wrapper around the model"
)
@pytest.mark.parametrize("made", [Transformer, DecoderOnly])
@pytest.mark.parametrize("penalty", [-1.0, 0.0, 0.6, 1.0, 2.0])
def test_beam_search_equals_hugging_face(ledger, made, penalty):
    seen, full = set(), 0
    for beam in (2, 3, 4, 5):
        one = competing(made, beam)
        source = words(SOURCES if made is Transformer else 20, SOURCE, 0, 0, 0)
        if made is Transformer:
            source[1, 2:] = PAD
        for written in (3, 9):
            ours = beam_search(one, source, beam, penalty, max_length=written)
            theirs = theirs_of(one, source, written, num_beams=beam, length_penalty=penalty)
            alike(ledger, ours, theirs, within=1e-5 * 10 ** max(0, -penalty))
            seen |= lengths(ours.tokens)
            full += ours.tokens.shape[-1] == written
    assert len(seen) > 2 and full


@pytest.mark.verifies(
    "course_lib.decoding.beam_search", against="Hugging Face `GPT2LMHeadModel.generate`"
)
@pytest.mark.parametrize("beam", [2, 3, 5])
@pytest.mark.parametrize("seed", range(3))
def test_beam_search_equals_gpt2(ledger, seed, beam):
    torch.manual_seed(seed)
    theirs = gpt2(vocab_size=20, n_positions=30, n_embd=12, n_layer=2, n_head=3, n_inner=7)
    ours, prompt = from_gpt2(wild(theirs)), words(20, SOURCE, 0, 0, 0, 0)
    leaning(ours, 0.25, eos=1.5, pad=-INF)  # padding is never written: theirs would look at it
    theirs.lm_head.register_forward_hook(
        lambda layer, given, logits: (
            logits * 0.25 + torch.tensor([-INF, 0, 1.5, *[0] * 17], dtype=logits.dtype)
        )
    )
    for penalty in (0.0, 0.7, 1.0, 1.5):
        mine = beam_search(ours, prompt, beam, penalty, max_length=12)
        hers = beams_of(theirs, prompt, 12, num_beams=beam, length_penalty=penalty)
        assert len(lengths(mine.tokens)) > 1
        alike(ledger, mine, hers, within=1e-4)


@pytest.mark.verifies("course_lib.decoding.beam_search", against="greedy, and theirs")
@pytest.mark.parametrize("made", [Transformer, DecoderOnly])
@pytest.mark.parametrize("penalty", [-1.0, 0.0, 1.0, 3.0])
def test_beam_search_of_size_one_is_greedy(ledger, made, penalty):
    late = 0
    for seed in range(4):
        one = competing(made, seed)
        source = words(SOURCES if made is Transformer else 20, SOURCE, *[0] * 6)
        for max_length in (1, 7):
            found = beam_search(one, source, 1, penalty, max_length=max_length)
            assert found.tokens.shape[1] == found.scores.shape[1] == 1
            lines = greedy(one, source, max_length=max_length)
            assert torch.equal(found.tokens[:, 0], lines)
            late += len({line.index(EOS) if EOS in line else 9 for line in lines.tolist()}) > 1
            if made is DecoderOnly:
                theirs = wrapper()(one).generate(
                    source, attention_mask=torch.ones_like(source), max_new_tokens=max_length,
                    do_sample=False, num_beams=1, use_cache=False,
                )  # fmt: skip
                assert torch.equal(lines, theirs[:, SOURCE:])
    assert late
    ledger.holds()


# --- invariants ------------------------------------------------------------------------------


@pytest.mark.verifies(
    "course_lib.decoding.beam_search", against="the whole sequences anew, without cache"
)
@pytest.mark.parametrize("positions", ENCODINGS, ids=encoding_id)
@pytest.mark.parametrize("made", [Transformer, DecoderOnly])
def test_beam_search_scores_equal_the_full_pass(ledger, made, positions):
    one = leaning(model(made, positions=positions, target_vocabulary=20), 0.25, eos=2.0)
    source = words(SOURCES if made is Transformer else 20, SOURCE, 0, 0, 0)
    if made is Transformer:
        source[1, 2:] = PAD
    for penalty in (-0.5, 0.0, 1.0):
        found = beam_search(one, source, 4, penalty, max_length=7)
        assert (found.scores.diff(dim=1) <= 0).all() and found.scores.isfinite().all()
        for row in range(3):
            lines = lines_of(found, row, 7)
            assert len(set(map(tuple, lines))) == 4
            anew = [
                total / len(line) ** penalty
                for line, total in zip(lines, log_p(one, source[row], lines), strict=True)
            ]
            ledger.compare(found.scores[row], torch.tensor(anew), within=1e-4)


@pytest.mark.verifies("course_lib.decoding.beam_search", against="each source alone")
@pytest.mark.parametrize("made", [Transformer, DecoderOnly])
@pytest.mark.parametrize("beam", [1, 2, 4])
def test_batched_beam_search_equals_each_source_alone(ledger, made, beam):
    for seed, penalty in itertools.product(range(2), (-1.0, 0.0, 1.0)):
        one = competing(made, seed)
        source = words(SOURCES if made is Transformer else 20, SOURCE, *[0] * 4)
        together = beam_search(one, source, beam, penalty, max_length=9)
        alone = [beam_search(one, row[None], beam, penalty, max_length=9) for row in source]
        longest = max(one.tokens.shape[-1] for one in alone)
        assert together.tokens.shape[-1] == longest
        padded = [nn.functional.pad(a.tokens, (0, longest - a.tokens.shape[-1]), value=PAD) for a in alone]  # fmt: skip
        assert torch.equal(together.tokens, torch.cat(padded))
        ledger.compare(together.scores, torch.cat([a.scores for a in alone]), within=1e-4)


@pytest.mark.parametrize("penalty", [-1.0, 0.0, 1.0])
@pytest.mark.parametrize("max_length", [1, 2, 6])
def test_beam_search_ends_at_eos_or_max_length(penalty, max_length):
    for seed in range(6):
        one = competing(Transformer, seed)
        source = words(SOURCES, SOURCE, 0, 0, 0)
        found = beam_search(one, source, 5, penalty, max_length=max_length)
        assert found.tokens.dtype == torch.int64 and found.tokens.shape[-1] <= max_length
        for line in found.tokens.flatten(0, 1).tolist():
            if EOS in line:
                assert set(line[line.index(EOS) + 1 :]) <= {PAD}
            else:
                assert len(line) == max_length
        assert (found.tokens != PAD).any(0).any(0).all()  # no empty column


def test_beam_search_counts_generated_padding():
    """A model that was badly trained writes padding; what comes behind it is not lost."""
    one = leaning(model(), 0.2, pad=3.0)
    source = words(SOURCES, SOURCE, 0, 2)
    for max_length in (1, 4, 6):
        found = beam_search(one, source, 3, max_length=max_length)
        assert (found.tokens == PAD).any()
        for row, k in itertools.product(range(2), range(3)):
            line = lines_of(found, row, max_length)[k]
            wanted = log_p(one, source[row], [line])[0] / len(line)
            assert found.scores[row, k].item() == pytest.approx(wanted, abs=1e-4)
        alone = beam_search(one, source, 1, max_length=max_length)
        assert torch.equal(alone.tokens[:, 0], greedy(one, source, max_length=max_length))
    assert beam_search(always(5, PAD, EOS), source, 1).tokens.tolist() == [[[5, PAD, EOS]]] * 2


def test_beam_search_pads_missing_hypotheses_with_minus_infinity():
    one = leaning(model(), 0.2, only=[EOS, 5])
    found = beam_search(one, words(SOURCES, SOURCE, 0, 2), 6, max_length=3)
    wanted = {(EOS,), (5, EOS), (5, 5, EOS), (5, 5, 5)}
    for row in range(2):
        lines = lines_of(found, row, 3)
        assert {tuple(line) for line in lines[:4]} == wanted and lines[4:] == [None] * 2
        assert found.tokens[row, 4:].tolist() == [[PAD] * 3] * 2
    nothing = beam_search(leaning(model(), only=[EOS]), words(SOURCES, SOURCE, 0), 3)
    assert nothing.tokens.tolist() == [[[EOS], [PAD], [PAD]]]
    assert nothing.scores.tolist() == [[0.0, -INF, -INF]]


def test_length_penalty_decides_between_short_and_long():
    """The end at once has probability 0.6; a line of four tokens has 0.4 in all."""
    short, long = math.log(0.6), math.log(0.4)
    one = always(3, 4, 5, EOS)
    first = torch.full((TARGETS,), -INF, dtype=torch.float64)
    first[EOS], first[3] = short, long

    def say(layer, given, logits):
        # The first place says 0.6 and 0.4; all later ones are sure.
        start = logits[..., 3:4] > 0.5
        return torch.where(start, first, logits * 1000)

    one.lm_head.register_forward_hook(say)
    source = words(SOURCES, SOURCE, 0)
    for penalty, lines in ((0.0, [[EOS], [3, 4, 5, EOS]]), (1.0, [[3, 4, 5, EOS], [EOS]])):
        found = beam_search(one, source, 2, penalty)
        assert lines_of(found, 0, 50) == lines
        wanted = [short if line == [EOS] else long / 4**penalty for line in lines]
        assert found.scores[0].tolist() == pytest.approx(wanted, abs=1e-6)


def test_negative_length_penalty_does_not_stop_beam_search_early():
    """Two full slots after two tokens, and yet a third token, which is sure, makes a better line."""
    one = always(3, 4, EOS)
    choices = {}
    for token in (3, 4):  # at the first place 3 or the end, at the second 4 or the end
        choices[token] = torch.full((TARGETS,), -INF, dtype=torch.float64)
        choices[token][[EOS, token]] = torch.tensor([0.3, 0.7], dtype=torch.float64).log()

    def say(layer, given, logits):
        first, second = (logits[..., token, None] > 0.5 for token in (3, 4))
        return torch.where(first, choices[3], torch.where(second, choices[4], logits * 1000))

    one.lm_head.register_forward_hook(say)
    found = beam_search(one, words(SOURCES, SOURCE, 0), 2, -1.0, max_length=20)
    assert lines_of(found, 0, 20) == [[EOS], [3, 4, EOS]]
    wanted = [math.log(0.3), 3 * 2 * math.log(0.7)]
    assert found.scores[0].tolist() == pytest.approx(wanted, abs=1e-6)


@pytest.mark.parametrize("made", [Transformer, DecoderOnly])
def test_beam_search_with_other_special_tokens(made):
    one = leaning(model(made, pad_id=4, target_vocabulary=9), 0.2)
    source = words(9, SOURCE, 0, 0)
    source[source == 4] = 5
    found = beam_search(one, source, 3, 0.5, max_length=5, bos_id=6, eos_id=7)
    for row in range(2):
        lines = lines_of(found, row, 5, eos=7)
        totals = log_p(one, source[row], lines, bos=6)
        anew = [total / len(line) ** 0.5 for line, total in zip(lines, totals, strict=True)]
        assert found.scores[row].tolist() == pytest.approx(anew, abs=1e-4)
        for line, whole in zip(lines, found.tokens[row].tolist(), strict=True):
            assert set(whole[len(line) :]) <= {4}
    never = beam_search(one, source, 3, max_length=5, eos_id=99)  # no token ends it
    assert never.tokens.shape == (2, 3, 5)


def test_beam_search_defaults():
    one, source = competing(Transformer, 1), words(SOURCES, SOURCE, 0, 0)
    plain = beam_search(one, source)
    said = beam_search(one, source, 4, 1.0, max_length=50, bos_id=1, eos_id=2)
    assert torch.equal(plain.tokens, said.tokens) and torch.equal(plain.scores, said.scores)
    assert beam_search(leaning(model(), eos=-INF), source, 2).tokens.shape == (2, 2, 50)


def test_beam_search_does_not_change_the_model_and_builds_no_graph():
    one, source = competing(Transformer, 0), words(SOURCES, SOURCE, 0, 0)
    found = beam_search(one.train(), source, 3, max_length=4)
    assert one.training and not found.scores.requires_grad and torch.is_grad_enabled()
    half = beam_search(model().bfloat16(), source, 3, max_length=4)
    assert half.scores.dtype == torch.float32 and half.scores.isfinite().all()
    again = beam_search(one.eval(), source.int(), 3, max_length=4)
    assert torch.equal(found.tokens, again.tokens)
    noisy = model(dropout=0.5).train()
    many = beam_search(noisy, source[:1].repeat(30, 1), 2, max_length=4)
    assert len({str(row) for row in many.tokens.tolist()}) > 1


# --- the callback ----------------------------------------------------------------------------


@pytest.mark.verifies("course_lib.decoding.BeamStep", against="the steps done over by hand")
@pytest.mark.parametrize("made", [Transformer, DecoderOnly])
@pytest.mark.parametrize("beam", [1, 2, 4])
def test_beam_search_callback_sees_each_step(ledger, made, beam):
    """From parents and tokens alone the lines are rebuilt; what is kept is continued, what ends returned."""
    for seed, penalty in itertools.product(range(3), (0.0, 1.0)):
        one, steps = competing(made, seed), []
        source = words(SOURCES if made is Transformer else 20, SOURCE, 0, 0, 0)
        found = beam_search(one, source, beam, penalty, max_length=6, callback=steps.append)
        quiet = beam_search(one, source, beam, penalty, max_length=6)
        assert torch.equal(found.tokens, quiet.tokens) and torch.equal(found.scores, quiet.scores)
        for row in range(3):
            rows, finished = [[]], {}
            for number, step in enumerate(steps):
                parent, token, score, ends, kept, rows_of = (part[row].tolist() for part in step)
                assert len(parent) == len(kept) == min(2 * beam, beam * 20)
                assert score == sorted(score, reverse=True)
                assert not any(e and k for e, k in zip(ends, kept, strict=True))
                assert sum(kept) in ({0} if number == 5 else {0, beam})
                assert not any(ends[beam:])  # only those in the beam count
                if not any(kept) and not any(ends):
                    continue  # this source was done before
                if number:
                    assert {p for p, k in zip(parent, kept, strict=True) if k} <= set(range(beam))
                lines = [[*rows[p], t] for p, t in zip(parent, token, strict=True)]
                assert len(set(map(tuple, lines))) == len(lines)
                assert score == pytest.approx(log_p(one, source[row], lines), abs=1e-4)
                for line, total, end in zip(lines, score, ends, strict=True):
                    assert not end or line[-1] == EOS or len(line) == 6
                    if end:
                        finished[tuple(line)] = total / len(line) ** penalty
                best = [line for line, t in zip(lines, token, strict=True) if t != EOS][:beam]
                assert {n for n, k in enumerate(kept) if k} <= set(rows_of)
                rows = [lines[n] for n in rows_of if kept[n]]
                assert rows == (best if number < 5 and rows else [])
            lines = [tuple(line) for line in lines_of(found, row, 6)]
            wanted = sorted(finished, key=finished.get, reverse=True)[:beam]
            if beam > 1:
                assert lines == wanted
            assert lines[0] in finished
        assert len(steps) == 6 or all(step.kept.any() for step in steps)
    ledger.holds()


def test_beam_search_stops_early():
    steps = []
    one = leaning(model(), 0.2, eos=30.0)  # the end is all but certain
    source = words(SOURCES, SOURCE, 0, 0)
    beam_search(one, source, 1, 0.0, max_length=20, callback=steps.append)
    assert len(steps) == 1
    steps.clear()
    beam_search(one, source, 2, 0.0, max_length=20, callback=steps.append)
    assert len(steps) == 2  # [end] and [x, end]; whatever comes next has two improbable tokens
    for penalty, enough in ((0.0, False), (3.0, True)):
        steps.clear()
        beam_search(one, source, 2, penalty, max_length=20, callback=steps.append)
        assert (len(steps) == 20) == enough  # the longest could still be best


# --- invalid input ---------------------------------------------------------------------------

S = torch.tensor([[3, 4, 5, 0], [6, 7, 8, 9]])
READER = model()
BROKEN = leaning(model(), eos=float("nan"))
SHUT = leaning(model(), only=[])


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: beam_search(READER, S, 0), r"beam_size=0 is below 1"),
        (lambda: beam_search(READER, S, 9), r"beam_size=9 is larger than the vocabulary of 8 tokens"),
        (lambda: beam_search(READER, S, 2, max_length=0), r"max_length=0 is below 1"),
        (lambda: beam_search(BROKEN, S), r"logits holds NaN"),
        (lambda: beam_search(SHUT, S), r"every logit is minus infinity, so there is nothing to choose from"),
    ],
)  # fmt: skip
def test_invalid_input_raises_value_error(call, says):
    with pytest.raises(ValueError, match=says):
        call()


def test_beam_size_up_to_the_vocabulary():
    found = beam_search(READER, S, TARGETS, max_length=1)
    assert isinstance(found, Beams) and found.tokens.shape == (2, TARGETS, 1)
    assert found.tokens.sort(1).values[..., 0].tolist() == [list(range(TARGETS))] * 2
    assert torch.equal(
        beam_search(READER, S, 1, max_length=5).tokens[:, 0],
        rectangle(one_by_one(READER, S, 5), 5),
    )
