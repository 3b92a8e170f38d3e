"""Greedy decoding against loops without a cache, and against `generate` of Hugging Face."""

import copy

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from course_lib.decoding import DecodingSession, greedy
from course_lib.positions import ENCODINGS
from course_lib.transformer import DecoderOnly, Transformer
from tests.helpers.decoding import (
    BATCH,
    EOS,
    PAD,
    SOURCE,
    SOURCES,
    TARGETS,
    always,
    model,
    one_by_one,
    rectangle,
    sized,
    wild,
    words,
)
from tests.helpers.encodings import SHIFT_INVARIANT
from tests.helpers.generate import from_gpt2, gpt2
from tests.helpers.ids import encoding_id


def hold(ledger, model, source, *lengths):
    lines = one_by_one(model, source, max(lengths))
    for length in lengths:
        assert torch.equal(greedy(model, source, max_length=length), rectangle(lines, length))
    ledger.holds()


# --- greedy ----------------------------------------------------------------------------------


@pytest.mark.verifies(
    "course_lib.decoding.greedy", against="a loop without cache, sequence by sequence"
)
@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("positions", ENCODINGS, ids=encoding_id)
def test_greedy_equals_a_loop_without_kv_cache(ledger, positions, norm):
    one = model(positions=positions, norm=norm, num_kv_heads=1)
    hold(ledger, one, words(SOURCES, SOURCE, 0, 2, 4), 1, 3, 7)


@pytest.mark.verifies(
    "course_lib.decoding.greedy", against="a loop without cache, sequence by sequence"
)
@pytest.mark.parametrize("positions", ENCODINGS, ids=encoding_id)
def test_greedy_continues_prompts(ledger, positions):
    one = model(DecoderOnly, positions=positions)
    hold(ledger, one, words(TARGETS, SOURCE, 0, 0, 0), 1, 3, 7)


@pytest.mark.verifies(
    "course_lib.decoding.greedy", against="a loop without cache, sequence by sequence"
)
@pytest.mark.parametrize(
    "positions", [name for name in ENCODINGS if name in SHIFT_INVARIANT], ids=encoding_id
)
def test_greedy_with_left_padded_prompts(ledger, positions):
    one = model(DecoderOnly, positions=positions)
    prompt = words(TARGETS, SOURCE, 0, 0, 0)
    prompt[1, :2] = prompt[2, :4] = PAD
    hold(ledger, one, prompt, 7)


@pytest.mark.verifies(
    "course_lib.decoding.greedy", against="a loop without cache, sequence by sequence"
)
@settings(
    deadline=None, max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    seed=st.integers(0, 10_000),
    tokens=st.permutations(range(TARGETS)),
    batch=st.integers(1, 4),
    max_length=st.integers(1, 8),
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


@pytest.mark.verifies(
    "course_lib.decoding.greedy", against="Hugging Face `GPT2LMHeadModel.generate`"
)
@pytest.mark.parametrize("seed", range(4))
def test_greedy_equals_hugging_face(ledger, seed):
    torch.manual_seed(seed)
    theirs = wild(
        gpt2(vocab_size=TARGETS, n_positions=30, n_embd=12, n_layer=2, n_head=3, n_inner=7)
    )
    with torch.no_grad():  # padding is never generated: theirs would attend to it afterwards
        theirs.transformer.ln_f.bias.fill_(1.0)
        theirs.transformer.wte.weight[PAD] = -1.0
    ours = from_gpt2(theirs)
    prompt = words(TARGETS, SOURCE, 0, 0, 0, 0)
    generated = theirs.generate(
        prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=12, do_sample=False
    )
    mine = greedy(ours, prompt, max_length=12)
    assert all(EOS in line[: line.index(PAD)] for line in mine.tolist() if PAD in line)
    assert torch.equal(mine, generated[:, SOURCE:])
    ledger.holds()


def test_greedy_stops_at_eos():
    source = words(SOURCES, SOURCE, 0, 1)
    assert greedy(always(5, 4, 7, EOS, 6), source).tolist() == [[5, 4, 7, EOS]] * 2
    assert greedy(always(5, EOS), source, eos_id=5).tolist() == [[5]] * 2
    assert greedy(always(EOS), source).tolist() == [[EOS]] * 2
    assert greedy(always(5, 4, 7), source, max_length=3).tolist() == [[5, 4, 7]] * 2
    assert greedy(always(5, 4, EOS), source, max_length=2).tolist() == [[5, 4]] * 2
    assert greedy(always(5, 4, EOS), source, max_length=3).tolist() == [[5, 4, EOS]] * 2
    assert greedy(always(3), source, max_length=30).shape == (2, 30)  # as far as positions reach
    assert greedy(always(3, max_length=60), source).shape == (2, 50)


def test_greedy_output_starts_after_the_prompt():
    prompt = words(TARGETS, SOURCE, 0, 0)
    one = always(3, 3, 3, 3, 6, 7, EOS, made=DecoderOnly)  # position 4 is the last of the prompt
    assert greedy(one, prompt).tolist() == [[6, 7, EOS]] * 2


def test_greedy_pads_finished_sequences():
    """The token that ends them is one that some sequence writes early and another one late or never."""
    early = 0
    for seed in range(4):
        one, source = model(seed=seed, pad_id=5), words(SOURCES, SOURCE, 0, 0, 0, 0) % 5 + 6
        free = one_by_one(one, source, 8, eos=None, pad=5)
        for eos in {line[1] for line in free}:
            wanted = [line[: line.index(eos) + 1] if eos in line else line for line in free]
            lines = greedy(one, source, max_length=8, eos_id=eos)
            assert torch.equal(lines, rectangle(wanted, 8, 5))
            early += len({len(line) for line in wanted}) > 1
    assert early > 1


def test_greedy_does_not_change_the_model():
    one = model(dropout=0.5).train()
    source, before = words(SOURCES, SOURCE, *[0] * 40), copy.deepcopy(one.state_dict())
    first, again = greedy(one, source, max_length=8), greedy(one, source, max_length=8)
    assert one.training and (first.shape != again.shape or not torch.equal(first, again))
    one.eval()
    assert torch.equal(greedy(one, source, max_length=8), greedy(one, source, max_length=8))
    assert not one.training
    assert all(
        torch.equal(before[name], p) and p.grad is None for name, p in one.state_dict().items()
    )
    plain = model().train()
    assert torch.equal(greedy(plain, source), greedy(plain.eval(), source))


def test_decoding_builds_no_graph():
    one, source = model(), words(SOURCES, SOURCE, 0, 2)
    session = DecodingSession(one, source)
    assert not session.logits.requires_grad
    assert not session.step(torch.tensor([3, 4])).requires_grad
    assert not any(kept.key.requires_grad for block in session.state.cache.blocks for kept in block)
    assert not session.state.memory.vectors.requires_grad
    assert torch.is_grad_enabled() and one(source, source % TARGETS).requires_grad


def test_greedy_returns_int64_tokens():
    one, source = model(), words(SOURCES, SOURCE, 0, 2)
    assert greedy(one, source).dtype == torch.int64
    assert torch.equal(greedy(one, source.int()).long(), greedy(one, source))
    half = model().bfloat16()
    assert greedy(half, source).dtype == torch.int64
    with torch.autocast("cpu", torch.bfloat16):
        assert greedy(model().float(), source).shape[0] == 2


# --- the session -----------------------------------------------------------------------------


@pytest.mark.verifies(
    "course_lib.decoding.DecodingSession", against="the whole sequence anew at every token"
)
@pytest.mark.parametrize("positions", ENCODINGS, ids=encoding_id)
def test_incremental_decoding_equals_the_full_pass(ledger, positions):
    reader, alone = (model(made, positions=positions) for made in (Transformer, DecoderOnly))
    source, prompt = words(SOURCES, SOURCE, 0, 2, 4), words(TARGETS, SOURCE, 0, 0, 0)
    tokens = words(TARGETS, 6, 0, 0, 0)
    sessions = DecodingSession(reader, source, bos_id=4), DecodingSession(alone, prompt)
    for place in range(7):
        start = torch.full((BATCH, 1), 4)
        whole = (
            reader(source, torch.cat([start, tokens[:, :place]], 1)),
            alone(torch.cat([prompt, tokens[:, :place]], 1)),
        )
        for session, theirs in zip(sessions, whole, strict=True):
            ledger.compare(session.logits, theirs[:, -1], within=1e-10)
            if place < 6:
                assert session.step(tokens[:, place]) is session.logits
    assert [session.state.cache.length for session in sessions] == [7, SOURCE + 6]


@pytest.mark.verifies(
    "course_lib.decoding.DecodingSession", against="the chosen sequences decoded anew"
)
@pytest.mark.parametrize("rows", [[2, 0], [1, 1, 0, 2], [0]])
@pytest.mark.parametrize("made", [Transformer, DecoderOnly])
def test_incremental_decoding_after_reordering(ledger, made, rows):
    one, rows = model(made), torch.tensor(rows)
    source = words(SOURCES, SOURCE, 0, 2, 4) if made is Transformer else words(TARGETS, SOURCE, 0, 0, 0)  # fmt: skip
    tokens, later = words(TARGETS, 2, 0, 0, 0), words(TARGETS, 2, *[0] * len(rows))
    session, anew = DecodingSession(one, source), DecodingSession(one, source[rows])
    for place in range(2):
        session.step(tokens[:, place])
        anew.step(tokens[rows, place])
    session.reorder(rows)
    ledger.compare(session.logits, anew.logits, within=1e-12)
    for place in range(2):
        ledger.compare(session.step(later[:, place]), anew.step(later[:, place]), within=1e-10)


# --- invalid input ---------------------------------------------------------------------------

S = torch.tensor([[3, 4, 5, 0], [6, 7, 8, 9]])
READER, ALONE = Transformer(sized()), DecoderOnly(sized())
FREE = DecoderOnly(sized(positions="alibi"))
FRONT = torch.tensor([[3, 4, 5], [0, 3, 4]])


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: greedy(READER, S, max_length=0), r"max_length=0 is below 1"),
        (lambda: greedy(ALONE, S % 8), r"source\[0\] ends in padding \(pad_id=0\), and a DecoderOnly continues after the last token; pad on the left"),
        (lambda: greedy(FREE, S[:1]), r"source\[0\] ends in padding"),
        (lambda: greedy(ALONE, FRONT), r"source\[1\] holds padding \(pad_id=0\), which moves its tokens .* positions='sinusoidal' counts them from the start"),
    ],
)  # fmt: skip
def test_invalid_input_raises_value_error(call, says):
    with pytest.raises(ValueError, match=says):
        call()


def test_left_padding_is_accepted_with_relative_positions():
    assert greedy(FREE.eval(), FRONT, max_length=3).shape[0] == 2
