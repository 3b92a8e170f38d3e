"""Greedy decoding and its session against loops without a cache."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.transformer import DecoderOnly, Transformer
from course_lib.transformer.decoding import DecodingSession, beam_search, greedy, sample, stream
from course_lib.transformer.positions import ENCODINGS
from tests.helpers.decoding import (
    BATCH,
    EOS,
    PAD,
    SOURCE,
    SOURCES,
    TARGETS,
    always,
    leaning,
    model,
    one_by_one,
    rectangle,
    sized,
    words,
)
from tests.helpers.encodings import SHIFT_INVARIANT
from tests.helpers.ids import encoding_id


def hold(ledger, model, source, *lengths):
    lines = one_by_one(model, source, max(lengths))
    for length in lengths:
        assert torch.equal(greedy(model, source, max_length=length), rectangle(lines, length))
    ledger.holds()


# --- greedy ----------------------------------------------------------------------------------


@pytest.mark.verifies(
    "course_lib.transformer.decoding.greedy", against="a loop without cache, sequence by sequence"
)
@pytest.mark.parametrize(
    ("positions", "norm"), [*((name, "pre") for name in ENCODINGS), ("t5", "post")], ids=encoding_id
)
def test_greedy_equals_a_loop_without_kv_cache(ledger, positions, norm):
    one = model(positions=positions, norm=norm, num_kv_heads=1)
    hold(ledger, one, words(SOURCES, SOURCE, 0, 2, 4), 1, 3, 7)


@pytest.mark.verifies(
    "course_lib.transformer.decoding.greedy", against="a loop without cache, sequence by sequence"
)
@pytest.mark.parametrize("positions", ENCODINGS, ids=encoding_id)
def test_greedy_continues_prompts_that_may_be_padded_on_the_left(ledger, positions):
    one, prompt = model(DecoderOnly, positions=positions), words(TARGETS, SOURCE, 0, 0, 0)
    hold(ledger, one, prompt, 1, 7)
    if positions in SHIFT_INVARIANT:
        prompt[1, :2] = prompt[2, :4] = PAD
        hold(ledger, one, prompt, 7)


@pytest.mark.verifies(
    "course_lib.transformer.decoding.greedy", against="a loop without cache, sequence by sequence"
)
@settings(max_examples=8)
@given(
    seed=st.integers(0, 10_000),
    tokens=st.permutations(range(TARGETS)),
    batch=st.integers(1, 4),
    max_length=st.integers(1, 6),
)
def test_greedy_with_any_special_tokens(ledger, seed, tokens, batch, max_length):
    pad, bos, eos = tokens[:3]
    one = model(seed=seed, pad_id=pad)
    source = torch.randint(0, SOURCES, (batch, SOURCE))
    source[source == pad] = (pad + 1) % SOURCES
    source[0, 2:] = pad
    ours = greedy(one, source, max_length=max_length, bos_id=bos, eos_id=eos)
    lines = one_by_one(one, source, max_length, bos, eos, pad)
    assert torch.equal(ours, rectangle(lines, max_length, pad))
    ledger.holds()


def test_greedy_stops_at_eos_or_max_length():
    source = words(SOURCES, SOURCE, 0, 1)
    assert greedy(always(5, 4, 7, EOS, 6), source).tolist() == [[5, 4, 7, EOS]] * 2
    assert greedy(always(5, EOS), source, eos_id=5).tolist() == [[5]] * 2
    assert greedy(always(5, 4, EOS), source, max_length=2).tolist() == [[5, 4]] * 2
    assert greedy(always(3), source, max_length=30).shape == (2, 30)  # as far as positions reach
    continued = always(3, 3, 3, 3, 6, 7, EOS, made=DecoderOnly)  # the prompt's last position is 4
    assert greedy(continued, words(TARGETS, SOURCE, 0, 0)).tolist() == [[6, 7, EOS]] * 2


def test_one_sequence_ends_before_the_others():
    one, source = model(pad_id=5), words(SOURCES, SOURCE, *[0] * 9) % 5 + 6
    free = one_by_one(one, source, 8, eos=None, pad=5)
    wanted = [line[: line.index(3) + 1] if 3 in line else line for line in free]
    assert len(set(map(len, wanted))) > 2
    assert torch.equal(greedy(one, source, max_length=8, eos_id=3), rectangle(wanted, 8, 5))


def test_decoding_keeps_the_mode_of_the_model_and_builds_no_graph():
    one, source = model(dropout=0.5).train(), words(SOURCES, SOURCE, *[0] * 40)
    first, again = (greedy(one, source, max_length=8) for _ in range(2))
    assert one.training and (first.shape != again.shape or not torch.equal(first, again))
    session = DecodingSession(one, source)
    assert not session.logits.requires_grad and not session.state.memory.vectors.requires_grad
    assert not session.step(torch.full((40,), 3)).requires_grad and torch.is_grad_enabled()


@pytest.mark.parametrize("decode", [greedy, sample, beam_search])
def test_decoding_starts_with_the_given_token_in_any_dtype(decode):
    generator, source, starts = model().bfloat16(), words(SOURCES, SOURCE, 0, 2), []
    generator.target_embedding.register_forward_pre_hook(
        lambda _, args: starts.append(args[0][:, 0].unique().tolist())
    )
    found = decode(generator, source.int(), bos_id=7, max_length=1)
    assert getattr(found, "tokens", found).dtype == torch.int64
    list(stream(generator, source, bos_id=7, max_length=1))
    assert starts == [[7], [7]]


# --- the session -----------------------------------------------------------------------------


@pytest.mark.verifies(
    "course_lib.transformer.decoding.DecodingSession",
    against="the whole sequence anew at every token",
)
@pytest.mark.parametrize("positions", ENCODINGS, ids=encoding_id)
@pytest.mark.parametrize("made", [Transformer, DecoderOnly])
def test_incremental_decoding_equals_the_full_pass_also_after_reordering(ledger, made, positions):
    one, encodes = model(made, positions=positions), made is Transformer
    source = words(SOURCES, SOURCE, 0, 2, 4) if encodes else words(TARGETS, SOURCE, 0, 0, 0)
    line = torch.full((BATCH, 1), 4) if encodes else source
    session = DecodingSession(one, source, bos_id=4)
    for rows in ([0, 1, 2], [2, 0], [1, 1, 0, 0], [0, 3, 1, 2]):
        session.reorder(torch.tensor(rows))
        source, line = source[rows], line[rows]
        whole = one(source, line) if encodes else one(line)
        ledger.compare(session.logits, whole[:, -1], within=1e-10)
        token = words(TARGETS, 1, *[0] * len(rows))
        assert session.step(token[:, 0]) is session.logits
        line = torch.cat([line, token], 1)


S = torch.tensor([[3, 4, 5, 0], [6, 7, 8, 9]])


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: greedy(model(), S, max_length=0), r"max_length=0 is below 1"),
        (lambda: greedy(DecoderOnly(sized(positions="alibi")), S % 8), r"source\[0\] ends in padding \(pad_id=0\), and a DecoderOnly continues after the last token; pad on the left"),
    ],
)  # fmt: skip
def test_invalid_input_raises_value_error(call, says):
    with pytest.raises(ValueError, match=says):
        call()


@pytest.mark.parametrize("made", [Transformer, DecoderOnly])
@pytest.mark.parametrize("decode", [greedy, sample, beam_search, stream])
@pytest.mark.parametrize(
    ("source", "came"),
    [
        (S[0], r"has shape \(4,\)"),
        (S[None], r"has shape \(1, 2, 4\)"),
        (S[:, :0], r"has shape \(2, 0\)"),
        (S[:0], r"has shape \(0, 4\)"),
        (torch.tensor(3), r"has shape \(\)"),
        (S.tolist(), "is a list"),
        (S.numpy(), "is a ndarray"),
        ("3 4", "is a str"),
    ],
)
def test_a_source_of_another_shape_is_refused(without_annotations, made, decode, source, came):
    says = rf"source {came}; it must be a tensor of token ids of shape \(batch, length\), with at least one"
    with pytest.raises(ValueError, match=says):
        decode(model(made), source)


@pytest.mark.parametrize("decode", [greedy, sample, beam_search])
def test_logits_that_are_nan_are_refused(decode):
    with pytest.raises(ValueError, match="logits holds NaN"):
        decode(leaning(model(), torch.nan), S)
