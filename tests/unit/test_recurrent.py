"""Recurrent models against PyTorch's GRU, and against the papers' equations in NumPy.

The NumPy versions know no batches, no padding and no masks: one sequence, one step, one equation at a
time. Their gradients are complex steps, f'(x) = Im f(x + ih) / h, which round nothing away.
"""

import numpy as np
import pytest
import torch
from torch import nn

from course_lib.topics.recurrent import (
    BahdanauDecoder,
    DecoderOutput,
    DecoderStep,
    EncoderOutput,
    FixedContextDecoder,
    GenerationOutput,
    GRUCell,
    GRUEncoder,
    LuongDecoder,
    Seq2Seq,
)

DTYPES = [torch.float64, torch.float32]
ROUNDING = {torch.float64: 1e-12, torch.float32: 1e-5}

#: Every size differs from every other, but for "dot", which cannot have it so.
VOCABULARY, EMBEDDING, HIDDEN, MEMORY, SCORE, READOUT = 7, 3, 5, 4, 6, 2
SOURCE_VOCABULARY, SOURCE_EMBEDDING = 9, 8
DECODERS = {
    "bahdanau": lambda: BahdanauDecoder(VOCABULARY, EMBEDDING, HIDDEN, MEMORY, SCORE, READOUT),
    "fixed": lambda: FixedContextDecoder(VOCABULARY, EMBEDDING, HIDDEN, MEMORY, READOUT),
    "dot": lambda: LuongDecoder(VOCABULARY, EMBEDDING, MEMORY, MEMORY, "dot"),
    "general": lambda: LuongDecoder(VOCABULARY, EMBEDDING, HIDDEN, MEMORY, "general"),
    "concat": lambda: LuongDecoder(VOCABULARY, EMBEDDING, HIDDEN, MEMORY, "concat"),
    "feeding": lambda: LuongDecoder(VOCABULARY, EMBEDDING, HIDDEN, MEMORY, input_feeding=True),
}
SOURCE = torch.tensor([[3, 8, 1, 4], [5, 2, 0, 0], [7, 0, 0, 0]])  # 4, 2 and 1 real tokens
TARGET = torch.tensor([[1, 4, 6], [1, 1, 3], [1, 5, 2]])


def wild(module, dtype=torch.float64, scale=0.7, seed=0):
    """Weights large enough that no gate is half open and no attention is even."""
    random = torch.Generator().manual_seed(seed)
    for parameter in module.parameters():
        parameter.data = scale * torch.randn(parameter.shape, generator=random).to(dtype)
    return module


def encoder(dtype=torch.float64):
    return wild(GRUEncoder(SOURCE_VOCABULARY, SOURCE_EMBEDDING, MEMORY // 2), dtype)


def seq2seq(kind):
    return wild(Seq2Seq(encoder(), DECODERS[kind]()))


def talkative(kind, **special):
    """Weights with which the sentences of `many_sources` end at many different places, or never."""
    scale, seed = (2.0, 4) if kind == "fixed" else (1.0, 15)
    return wild(Seq2Seq(encoder(), DECODERS[kind](), **special), scale=scale, seed=seed)


def encoded(dtype=torch.float64):
    """Sources of 4, 2 and 1 tokens; where there is none, the memory holds nonsense."""
    random = torch.Generator().manual_seed(3)
    mask = SOURCE.ne(0)[:, None, :]
    memory = torch.randn(3, 4, MEMORY, generator=random)
    memory = memory.masked_fill(~mask.mT, 99.0).to(dtype).requires_grad_()
    final = torch.randn(3, MEMORY, generator=random).to(dtype).requires_grad_()
    return EncoderOutput(memory, final, mask)


# --- the equations ---------------------------------------------------------------------------


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gru(x, h, W, b, U, c):
    r, z, n = (slice(gate * len(h), (gate + 1) * len(h)) for gate in range(3))
    reset = sigmoid(W[r] @ x + b[r] + U[r] @ h + c[r])
    update = sigmoid(W[z] @ x + b[z] + U[z] @ h + c[z])
    new = np.tanh(W[n] @ x + b[n] + reset * (U[n] @ h + c[n]))
    return (1 - update) * new + update * h


def cell(p, x, h):
    return gru(x, h, p["cell.W.weight"], p["cell.W.bias"], p["cell.U.weight"], p["cell.U.bias"])


def maxout(p, s, y, c, prefix="readout."):
    U, b, V, C = (p[prefix + name] for name in ("U.weight", "U.bias", "V.weight", "C.weight"))
    pieces = U @ s + b + V @ y + C @ c
    largest = [max(pieces[k : k + 2], key=lambda piece: piece.real) for k in range(0, len(b), 2)]
    return p[prefix + "W.weight"] @ np.array(largest) + p[prefix + "W.bias"]


def look(scores, memory):
    """Softmax and weighted sum."""
    alpha = np.exp(scores) / sum(np.exp(scores))
    return alpha, sum(a * h for a, h in zip(alpha, memory, strict=True))


def start(p, x):
    return np.tanh(p["start.weight"] @ x + p["start.bias"])


def bahdanau_start(p, final):
    return start(p, final[len(final) // 2 :])


def bahdanau_step(p, token, s, memory, final):
    W, U, v = (p[f"attention.score.{name}.weight"] for name in "WUv")
    y = p["embedding.weight"][token]
    alpha, c = look(np.array([v[0] @ np.tanh(W @ s + U @ h) for h in memory]), memory)
    s = cell(p, np.concatenate([y, c]), s)
    return maxout(p, s, y, c), s, alpha


def fixed_step(p, token, s, memory, final):
    y = p["embedding.weight"][token]
    s = cell(p, np.concatenate([y, final]), s)
    return maxout(p, s, y, final), s, None


def luong_step(score):
    def step(p, token, s, memory, final):
        s = cell(p, p["embedding.weight"][token], s)
        alpha, c = look(np.array([score(p, s, h) for h in memory]), memory)
        attentional = np.tanh(p["combine.weight"] @ np.concatenate([c, s]))
        return p["readout.weight"] @ attentional, s, alpha

    return step


def feeding_step(p, token, s, memory, final):
    """Input feeding, section 3.3: the state is followed by the attentional state of the step before."""
    s, before = s[:HIDDEN], s[HIDDEN:]
    s = cell(p, np.concatenate([p["embedding.weight"][token], before]), s)
    alpha, c = look(np.array([s @ p["attention.score.W.weight"] @ h for h in memory]), memory)
    attentional = np.tanh(p["combine.weight"] @ np.concatenate([c, s]))
    return p["readout.weight"] @ attentional, np.concatenate([s, attentional]), alpha


def feeding_start(p, final):
    return np.concatenate([start(p, final), np.zeros(HIDDEN)])


def concat_score(p, s, h):
    W, v = p["attention.score.W.weight"], p["attention.score.v.weight"]
    return v[0] @ np.tanh(W @ np.concatenate([s, h]))


STARTS = {kind: start for kind in DECODERS}
STARTS |= {"bahdanau": bahdanau_start, "feeding": feeding_start}
STEPS = {
    "bahdanau": bahdanau_step,
    "fixed": fixed_step,
    "dot": luong_step(lambda p, s, h: s @ h),
    "general": luong_step(lambda p, s, h: s @ p["attention.score.W.weight"] @ h),
    "concat": luong_step(concat_score),
    "feeding": feeding_step,
}


def read(p, tokens):
    """The encoder, for one sequence without padding: the hidden state of each token, and the final state."""
    x = p["embedding.weight"][tokens]
    states = {}
    for way, places in (("", range(len(x))), ("_reverse", reversed(range(len(x))))):
        W, U = p[f"gru.weight_ih_l0{way}"], p[f"gru.weight_hh_l0{way}"]
        b, c = p[f"gru.bias_ih_l0{way}"], p[f"gru.bias_hh_l0{way}"]
        h = np.zeros(U.shape[1])
        for place in places:
            h = states[way, place] = gru(x[place], h, W, b, U, c)
    memory = [np.concatenate([states["", j], states["_reverse", j]]) for j in range(len(x))]
    return memory, np.concatenate([states["", len(x) - 1], states["_reverse", 0]])


def write(kind, p, tokens, memory, final):
    """Teacher forcing for one sequence: logits, states and weights of every step."""
    s, steps = STARTS[kind](p, final), []
    for token in tokens:
        steps.append(STEPS[kind](p, token, s, memory, final))
        s = steps[-1][1]
    return [list(column) for column in zip(*steps, strict=True)]


def under(p, prefix):
    return {
        name.removeprefix(prefix): array for name, array in p.items() if name.startswith(prefix)
    }


def arrays(module):
    return {name: value.detach().double().numpy() for name, value in module.named_parameters()}


def complex_steps(function, p):
    """The gradient of a number with respect to every entry of every array of p."""
    gradients = {}
    for name, array in p.items():
        gradients[name] = np.zeros(array.shape)
        for place in np.ndindex(array.shape):
            moved = array.astype(complex)
            moved[place] += 1e-30j
            gradients[name][place] = function(p | {name: moved}).imag / 1e-30
    return gradients


def check_slopes(ledger, value, leaves, function, p, within):
    """Compare the gradient of a number with that of the same number by equations; return it."""
    oracle = complex_steps(lambda some: function(p | some), {name: p[name] for name in leaves})
    slopes = torch.autograd.grad(value, [*leaves.values()], materialize_grads=True)
    for name, slope in zip(leaves, slopes, strict=True):
        ledger.compare(slope, oracle[name], within=within, backward=True)
    return dict(zip(leaves, slopes, strict=True))


def rows(tensor, lengths):
    """What stands before the padding, row by row."""
    return [row[:length] for row, length in zip(tensor, lengths, strict=True)]


LENGTHS = SOURCE.ne(0).sum(1).tolist()


# --- the cell --------------------------------------------------------------------------------


@pytest.mark.verifies("course_lib.topics.recurrent.GRUCell", against="PyTorch `nn.GRUCell`")
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_cell_is_pytorchs(ledger, dtype):
    ours, theirs = wild(GRUCell(3, 5), dtype), nn.GRUCell(3, 5).double()
    pairs = [(ours.W.weight, theirs.weight_ih), (ours.W.bias, theirs.bias_ih)]
    pairs += [(ours.U.weight, theirs.weight_hh), (ours.U.bias, theirs.bias_hh)]
    for mine, other in pairs:
        other.data = mine.detach().double()
    inputs = [torch.randn(4, size, dtype=dtype, requires_grad=True) for size in (3, 5)]
    oracles = [one.detach().double().requires_grad_() for one in inputs]
    mine, other = ours(*inputs), theirs(*oracles)
    ledger.compare(mine, other, within=ROUNDING[dtype])
    mix = torch.randn(other.shape, dtype=torch.float64)
    mine = torch.autograd.grad((mine * mix).sum(), [one for one, _ in pairs] + inputs)
    slopes = torch.autograd.grad((other * mix).sum(), [one for _, one in pairs] + oracles)
    for one, slope in zip(mine, slopes, strict=True):
        ledger.compare(one, slope, within=10 * ROUNDING[dtype], backward=True)


# --- the encoder -----------------------------------------------------------------------------


@pytest.mark.verifies(
    "course_lib.topics.recurrent.GRUEncoder",
    "course_lib.topics.recurrent.EncoderOutput",
    against="a GRU in NumPy, each sequence alone, unpadded",
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_encoder_reads_each_sequence_as_if_it_were_alone(ledger, dtype):
    ours = encoder(dtype)
    memory, final, mask = result = ours(SOURCE)
    assert isinstance(result, EncoderOutput) and torch.equal(mask, (SOURCE != 0)[:, None])
    mixes = np.random.default_rng(0).normal(size=(3, 5, MEMORY))
    sources = [row.tolist() for row in rows(SOURCE, LENGTHS)]

    def alone(p, row):
        states, last = read(p, sources[row])
        return np.stack([*states, last])

    def mixed(p):
        return sum((alone(p, row) * mixes[row, : LENGTHS[row] + 1]).sum() for row in range(3))

    p, value = arrays(ours), 0.0
    for row, states in enumerate(rows(memory, LENGTHS)):
        mine = torch.cat([states, final[row, None]])
        ledger.compare(mine, alone(p, row), within=ROUNDING[dtype])
        value = value + (mine * torch.tensor(mixes[row, : len(mine)])).sum()
    check_slopes(ledger, value, dict(ours.named_parameters()), mixed, p, 10 * ROUNDING[dtype])


def test_padding_may_be_another_token():
    ours = wild(GRUEncoder(SOURCE_VOCABULARY, SOURCE_EMBEDDING, 2, pad_id=6))
    padded = torch.tensor([[3, 0, 1, 6], [5, 6, 6, 6]])
    memory, final, mask = ours(padded)
    torch.testing.assert_close(memory[1:, :1], ours(padded[1:, :1]).memory)
    torch.testing.assert_close(final[1:], ours(padded[1:, :1]).final_state)
    assert memory.shape == (2, 4, 4) and torch.equal(mask[:, 0], padded != 6)


# --- the decoders ----------------------------------------------------------------------------


@pytest.mark.verifies(
    "course_lib.topics.recurrent.BahdanauDecoder",
    "course_lib.topics.recurrent.LuongDecoder",
    "course_lib.topics.recurrent.FixedContextDecoder",
    against="the paper's equations, step by step in NumPy",
)
@pytest.mark.verifies(
    "course_lib.topics.recurrent.DecoderOutput",
    against="the papers' equations, step by step in NumPy",
)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", DECODERS)
def test_decoders_are_those_of_the_papers(ledger, kind, dtype):
    """Logits, weights and every gradient, those of memory and final state too."""
    ours, source = wild(DECODERS[kind](), dtype), encoded(dtype)
    logits, weights = result = ours(TARGET, source)
    assert isinstance(result, DecoderOutput) and (weights is None) == (kind == "fixed")
    random, within = np.random.default_rng(1), 10 * ROUNDING[dtype]
    mix, mix_weights = random.normal(size=logits.shape), random.normal(size=(3, 3, 4))
    leaves = dict(ours.named_parameters()) | {"memory": source.memory, "final": source.final_state}
    p = {name: leaf.detach().double().numpy() for name, leaf in leaves.items()}

    def steps(p, row):
        """Logits, and weights that are zero at padding."""
        memory = p["memory"][row][: LENGTHS[row]]
        theirs, _, looked = write(kind, p, TARGET[row].tolist(), memory, p["final"][row])
        looked = np.zeros((3, LENGTHS[row])) if kind == "fixed" else np.stack(looked)
        return np.stack(theirs), np.pad(looked, ((0, 0), (0, 4 - LENGTHS[row])))

    def mixed(p):
        theirs = [steps(p, row) for row in range(3)]
        return sum(
            (a * mix[r]).sum() + (b * mix_weights[r]).sum() for r, (a, b) in enumerate(theirs)
        )

    value = (logits * torch.tensor(mix)).sum()
    if weights is not None:
        value = value + (weights * torch.tensor(mix_weights)).sum()
    for row in range(3):
        ledger.compare(logits[row], steps(p, row)[0], within=within)
        if weights is not None:
            ledger.compare(weights[row], steps(p, row)[1], within=within)
    slopes = check_slopes(ledger, value, leaves, mixed, p, 10 * within)
    assert (slopes["memory"][~source.mask[:, 0]] == 0).all()


@pytest.mark.verifies(
    "course_lib.topics.recurrent.DecoderStep",
    against="the papers' equations, step by step in NumPy",
)
@pytest.mark.parametrize("kind", DECODERS)
def test_a_step_holds_logits_the_next_state_and_weights(ledger, kind):
    ours, source = wild(DECODERS[kind]()), encoded()
    p, memory, final = arrays(ours), *(tensor.detach().numpy()[0] for tensor in source[:2])
    theirs = write(kind, p, TARGET[0].tolist(), memory, final)
    state = ours.initial_state(source)
    ledger.compare(state[0], STARTS[kind](p, final), within=1e-12)
    for token, *oracle in zip(TARGET.unbind(1), *theirs, strict=True):
        step = ours.step(token, state, source)
        state = step.state
        assert isinstance(step, DecoderStep) and (step.weights is None) == (oracle[2] is None)
        for mine, other in zip(step, oracle, strict=True):
            if other is not None:
                ledger.compare(mine[0], other, within=1e-12)


def test_sizes_where_left_out():
    usual = BahdanauDecoder(VOCABULARY, EMBEDDING, HIDDEN, MEMORY)
    assert usual.attention.score.v.weight.shape == (1, HIDDEN)
    assert usual.readout.W.weight.shape == (VOCABULARY, 32)
    assert DECODERS["concat"]().attention.score.W.weight.shape == (HIDDEN, HIDDEN + MEMORY)


# --- both together ---------------------------------------------------------------------------


@pytest.mark.verifies(
    "course_lib.topics.recurrent.Seq2Seq", against="the papers' equations, step by step in NumPy"
)
@pytest.mark.parametrize("kind", DECODERS)
def test_the_whole_is_its_equations(ledger, kind):
    ours = seq2seq(kind)
    logits, _ = ours(SOURCE, TARGET)
    p = arrays(ours)
    for row, source in enumerate(rows(SOURCE, LENGTHS)):
        memory, final = read(under(p, "encoder."), source.tolist())
        theirs = write(kind, under(p, "decoder."), TARGET[row].tolist(), memory, final)[0]
        ledger.compare(logits[row], np.stack(theirs), within=1e-11)


def longhand(kind, p, source, max_length, bos_id=1, eos_id=2):
    """Greedy writing for one sequence, in NumPy."""
    memory, final = read(under(p, "encoder."), source)
    p = under(p, "decoder.")
    s, token, tokens, weights = STARTS[kind](p, final), bos_id, [], []
    while len(tokens) < max_length and token != eos_id:
        logits, s, alpha = STEPS[kind](p, token, s, memory, final)
        token = int(np.argmax(logits))
        tokens.append(token)
        weights.append(alpha)
    return tokens, weights


SPECIAL = {"bos_id": 6, "eos_id": 4, "pad_id": 3}


def many_sources(count=40):
    random = torch.Generator().manual_seed(8)
    sources = torch.randint(1, SOURCE_VOCABULARY, (count, 5), generator=random)
    lengths = torch.randint(1, 6, (count,), generator=random)
    return sources.masked_fill(torch.arange(5) >= lengths[:, None], 0), lengths.tolist()


@pytest.mark.verifies(
    "course_lib.topics.recurrent.GenerationOutput", against="greedy decoding in NumPy, one by one"
)
@pytest.mark.parametrize("special", [{}, SPECIAL], ids=["usual", "unusual"])
@pytest.mark.parametrize("kind", DECODERS)
def test_translating_is_writing_the_likeliest_token_again_and_again(ledger, kind, special):
    ours = talkative(kind, **special)
    sources, lengths = many_sources()
    result = tokens, weights = ours.generate(sources, 9)
    assert isinstance(result, GenerationOutput) and result._fields == ("tokens", "weights")
    p, ends, pad = arrays(ours), [], special.get("pad_id", 0)
    for row, source in enumerate(rows(sources, lengths)):
        special_ids = {name: special[name] for name in ("bos_id", "eos_id") if special}
        theirs, looked = longhand(kind, p, source.tolist(), 9, **special_ids)
        ends.append(len(theirs))
        padded = theirs + [pad] * (tokens.shape[1] - len(theirs))
        ledger.compare(tokens[row].double(), torch.tensor(padded).double(), within=0)
        if kind != "fixed":
            mine = weights[row, : len(theirs), : lengths[row]]
            ledger.compare(mine, np.stack(looked), within=1e-10)
    assert tokens.shape[1] == max(ends)
    assert len(set(ends)) > 3, "the test shows too little: all translations are equally long"


def test_it_writes_no_more_than_it_may_and_stops_when_all_have_ended():
    ours = seq2seq("bahdanau")
    ours.decoder.readout.W.bias.data[ours.eos_id] = -1e3  # never
    for most in (1, 4):
        assert ours.generate(SOURCE, most).tokens.shape == (3, most)
    assert ours.generate(SOURCE).tokens.shape == (3, 50)
    ours.decoder.readout.W.bias.data[ours.eos_id] = 1e3  # at once
    tokens, weights = ours.generate(SOURCE)
    assert tokens.tolist() == [[2], [2], [2]] and weights.shape == (3, 1, 4)


def test_translating_leaves_no_gradient():
    assert not seq2seq("general").generate(SOURCE, 3).weights.requires_grad


@pytest.mark.parametrize("kind", DECODERS)
def test_recurrent_models_run_under_autocast(kind):
    model = Seq2Seq(encoder(torch.float32), DECODERS[kind]())
    exact = model(SOURCE, TARGET).logits
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(SOURCE, TARGET).logits
        assert model.generate(SOURCE, max_length=3).tokens.shape[1] <= 3
    torch.testing.assert_close(logits.float(), exact, rtol=0, atol=0.05)


def reads(tokens):
    return lambda: encoder()(torch.tensor(tokens))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (reads([[1, 2], [0, 0]]), r"source\[1\] is all padding; a source needs a token"),
        (reads([[1, 2, 3], [0, 4, 5]]), r"source\[1\] has padding before a token; .* at the end"),
        (lambda: Seq2Seq(GRUEncoder(9, 8, 5), BahdanauDecoder(7, 3, 5, 5)), r"encoder has memory_size=10, but decoder was made with memory_size=5; .* equal"),
        (lambda: LuongDecoder(7, 3, 5, 4, "generel"), r"score='generel' is unknown; .* Did you mean 'general'\?"),
        (lambda: seq2seq("fixed").generate(SOURCE, 0), r"max_length=0 is below 1"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_by_name(call, says):
    with pytest.raises(ValueError, match=says):
        call()
