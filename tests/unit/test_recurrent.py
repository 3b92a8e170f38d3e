"""Recurrent models against PyTorch's GRU, and against the papers' equations in NumPy.

The NumPy versions know no batches, no padding and no masks: one sequence, one step, one equation at a
time. Their gradients are complex steps, f'(x) = Im f(x + ih) / h, which round nothing away.
"""

import numpy as np
import pytest
import torch
from torch import nn

from course_lib.recurrent import (
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
from course_lib.recurrent.decoders import MaxoutReadout

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
ATTENDING = [kind for kind in DECODERS if kind != "fixed"]
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


def rows(tensor, lengths):
    """What stands before the padding, row by row."""
    return [row[:length] for row, length in zip(tensor, lengths, strict=True)]


LENGTHS = SOURCE.ne(0).sum(1).tolist()


# --- the cell --------------------------------------------------------------------------------


def carry_over(ours, theirs, suffix=""):
    with torch.no_grad():
        for layer, name in ((ours.W, "ih"), (ours.U, "hh")):
            getattr(theirs, f"weight_{name}{suffix}").copy_(layer.weight)
            getattr(theirs, f"bias_{name}{suffix}").copy_(layer.bias)
    mine = (ours.W.weight, ours.U.weight, ours.W.bias, ours.U.bias)
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    return [*zip(mine, (getattr(theirs, name + suffix) for name in names), strict=True)]


def check_gradients(ledger, ours, theirs, pairs, within):
    mix = torch.randn(ours.shape, dtype=torch.float64)
    mine = torch.autograd.grad((ours * mix).sum(), [one for one, _ in pairs])
    oracle = torch.autograd.grad((theirs * mix).sum(), [other for _, other in pairs])
    for one, other in zip(mine, oracle, strict=True):
        ledger.compare(one, other, within=within, backward=True)


@pytest.mark.verifies("course_lib.recurrent.GRUCell", against="PyTorch `nn.GRUCell`")
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_cell_is_pytorchs(ledger, dtype):
    ours, theirs = wild(GRUCell(3, 5), dtype), nn.GRUCell(3, 5).double()
    pairs = carry_over(ours, theirs)
    x, h = torch.randn(4, 3, dtype=dtype), torch.randn(4, 5, dtype=dtype)
    mine = [tensor.clone().requires_grad_() for tensor in (x, h)]
    oracle = [tensor.double().requires_grad_() for tensor in (x, h)]
    ledger.compare(ours(*mine), theirs(*oracle), within=ROUNDING[dtype])
    pairs += zip(mine, oracle, strict=True)
    check_gradients(ledger, ours(*mine), theirs(*oracle), pairs, 10 * ROUNDING[dtype])


@pytest.mark.verifies("course_lib.recurrent.GRUCell", against="PyTorch `nn.GRU`, over a sequence")
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_cell_stepping_through_a_sequence_is_pytorchs_gru(ledger, dtype):
    ours, theirs = wild(GRUCell(3, 5), dtype), nn.GRU(3, 5, batch_first=True).double()
    pairs = carry_over(ours, theirs, "_l0")
    x, h = torch.randn(4, 9, 3, dtype=dtype), torch.randn(4, 5, dtype=dtype)
    mine = [tensor.clone().requires_grad_() for tensor in (x, h)]
    oracle = [tensor.double().requires_grad_() for tensor in (x, h)]
    states = [mine[1]]
    for word in mine[0].unbind(1):
        states.append(ours(word, states[-1]))
    states = torch.stack(states[1:], 1)
    reference, _ = theirs(oracle[0], oracle[1][None])
    ledger.compare(states, reference, within=ROUNDING[dtype])
    pairs += zip(mine, oracle, strict=True)
    check_gradients(ledger, states, reference, pairs, 10 * ROUNDING[dtype])


def test_the_cell_takes_any_axes_in_front():
    ours = wild(GRUCell(3, 5))
    x, h = torch.randn(2, 4, 3).double(), torch.randn(2, 4, 5).double()
    torch.testing.assert_close(ours(x, h)[1], ours(x[1], h[1]))
    torch.testing.assert_close(ours(x, h)[1, 2], ours(x[1, 2], h[1, 2]))


# --- the encoder -----------------------------------------------------------------------------


@pytest.mark.verifies(
    "course_lib.recurrent.GRUEncoder", against="a GRU in NumPy, each sequence alone, unpadded"
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_encoder_reads_each_sequence_as_if_it_were_alone(ledger, dtype):
    ours = encoder(dtype)
    memory, final, mask = ours(SOURCE)
    p, sources = arrays(ours), [row.tolist() for row in rows(SOURCE, LENGTHS)]
    theirs = [read(p, tokens) for tokens in sources]
    for mine, (states, last), length in zip(
        zip(memory, final, strict=True), theirs, LENGTHS, strict=True
    ):
        ledger.compare(mine[0][:length], np.stack(states), within=ROUNDING[dtype])
        ledger.compare(mine[1], last, within=ROUNDING[dtype])
    assert mask.tolist() == (SOURCE != 0)[:, None].tolist()

    random = np.random.default_rng(0)
    mixes = [
        (random.normal(size=(length, MEMORY)), random.normal(size=MEMORY)) for length in LENGTHS
    ]

    def mixed(p):
        return sum(
            (np.stack(states) * mix[0]).sum() + (last * mix[1]).sum()
            for (states, last), mix in zip((read(p, row) for row in sources), mixes, strict=True)
        )

    value = sum(
        (states * torch.tensor(mix[0])).sum() + (last * torch.tensor(mix[1])).sum()
        for states, last, mix in zip(rows(memory, LENGTHS), final, mixes, strict=True)
    )
    oracle = complex_steps(mixed, p)
    mine = torch.autograd.grad(value, [*ours.parameters()])
    for (name, _), gradient in zip(ours.named_parameters(), mine, strict=True):
        ledger.compare(gradient, oracle[name], within=10 * ROUNDING[dtype], backward=True)


@pytest.mark.verifies(
    "course_lib.recurrent.EncoderOutput", against="PyTorch `nn.GRU`, both directions"
)
def test_encoded_holds_memory_summary_and_mask_in_this_order(ledger):
    ours, source = encoder(), SOURCE[:1]
    result = memory, final, mask = ours(source)
    assert isinstance(result, EncoderOutput) and result._fields == ("memory", "final_state", "mask")
    x = ours.embedding(source)
    forward, backward = (nn.GRU(SOURCE_EMBEDDING, MEMORY // 2).double() for _ in range(2))
    for way, suffix in ((forward, ""), (backward, "_reverse")):
        for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"):
            getattr(way, name).data = getattr(ours.gru, name + suffix).data
    there, last_there = forward(x[0])
    back, last_back = backward(x[0].flip(0))
    ledger.compare(memory[0], torch.cat([there, back.flip(0)], -1), within=1e-12)
    ledger.compare(final[0], torch.cat([last_there[0], last_back[0]]), within=1e-12)
    assert mask.shape == (1, 1, 4) and mask.all()


@pytest.mark.parametrize("kind", DECODERS)
def test_longer_padding_changes_nothing(kind):
    model = seq2seq(kind)
    longer = torch.cat([SOURCE, torch.zeros(3, 5, dtype=torch.long)], 1)
    before, after = model.encoder(SOURCE), model.encoder(longer)
    real = SOURCE.ne(0)
    torch.testing.assert_close(after.memory[:, :4][real], before.memory[real])
    torch.testing.assert_close(after.final_state, before.final_state)
    logits, weights = model(SOURCE, TARGET)
    logits_after, weights_after = model(longer, TARGET)
    torch.testing.assert_close(logits_after, logits)
    if weights is not None:
        torch.testing.assert_close(weights_after[..., :4], weights)
        assert (weights_after[~longer.ne(0)[:, None].expand_as(weights_after)] == 0).all()
    assert torch.equal(model.generate(longer, 6).tokens, model.generate(SOURCE, 6).tokens)


def test_padding_may_be_another_token():
    ours = wild(GRUEncoder(SOURCE_VOCABULARY, SOURCE_EMBEDDING, 2, pad_id=6))
    padded = torch.tensor([[3, 0, 1], [5, 6, 6]])
    memory, final, mask = ours(padded)
    torch.testing.assert_close(memory[1:, :1], ours(padded[1:, :1]).memory)
    torch.testing.assert_close(final[1:], ours(padded[1:, :1]).final_state)
    assert mask[:, 0].tolist() == [[True] * 3, [True, False, False]]


# --- the decoders ----------------------------------------------------------------------------


def check_decoder(ledger, kind, dtype):
    """Logits, states, weights and every gradient, those of memory and final state too."""
    ours, source = wild(DECODERS[kind](), dtype), encoded(dtype)
    result = logits, weights = ours(TARGET, source)
    assert isinstance(result, DecoderOutput)
    random = np.random.default_rng(1)
    mix = random.normal(size=logits.shape)
    mix_weights = random.normal(size=(3, 3, 4))
    p = arrays(ours)
    p |= {"memory": source.memory.detach().double().numpy()}
    p |= {"final": source.final_state.detach().double().numpy()}

    def steps(p, row):
        memory = p["memory"][row][: LENGTHS[row]]
        return write(kind, p, TARGET[row].tolist(), memory, p["final"][row])

    def mixed(p):
        value = 0
        for row in range(3):
            logits, _, weights = steps(p, row)
            value += (np.stack(logits) * mix[row]).sum()
            if weights[0] is not None:
                value += (np.stack(weights) * mix_weights[row, :, : LENGTHS[row]]).sum()
        return value

    for row in range(3):
        theirs, _, looked = steps(p, row)
        ledger.compare(logits[row], np.stack(theirs), within=10 * ROUNDING[dtype])
        if kind != "fixed":
            wide = np.zeros((3, 4))
            wide[:, : LENGTHS[row]] = np.stack(looked)
            ledger.compare(weights[row], wide, within=10 * ROUNDING[dtype])
    assert (weights is None) == (kind == "fixed")

    value = (logits * torch.tensor(mix)).sum()
    if weights is not None:
        value = value + (weights * torch.tensor(mix_weights)).sum()
    leaves = dict(ours.named_parameters()) | {"memory": source.memory, "final": source.final_state}
    mine = torch.autograd.grad(value, [*leaves.values()], materialize_grads=True)
    oracle = complex_steps(mixed, p)
    for name, gradient in zip(leaves, mine, strict=True):
        ledger.compare(gradient, oracle[name], within=100 * ROUNDING[dtype], backward=True)
    masked = ~source.mask[:, 0]
    assert (mine[[*leaves].index("memory")][masked] == 0).all()


@pytest.mark.verifies(
    "course_lib.recurrent.BahdanauDecoder", against="the paper's equations, step by step in NumPy"
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_bahdanaus_decoder_is_the_papers(ledger, dtype):
    check_decoder(ledger, "bahdanau", dtype)


@pytest.mark.verifies(
    "course_lib.recurrent.LuongDecoder", against="the paper's equations, step by step in NumPy"
)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("score", ["dot", "general", "concat", "feeding"])
def test_luongs_decoder_is_the_papers(ledger, score, dtype):
    check_decoder(ledger, score, dtype)


@pytest.mark.verifies(
    "course_lib.recurrent.FixedContextDecoder",
    against="the paper's equations, step by step in NumPy",
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_decoder_with_a_fixed_context_is_the_papers(ledger, dtype):
    check_decoder(ledger, "fixed", dtype)


@pytest.mark.verifies(
    "course_lib.recurrent.DecoderStep", against="the papers' equations, step by step in NumPy"
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
        assert isinstance(step, DecoderStep) and step._fields == ("logits", "state", "weights")
        for mine, other in zip(step, oracle, strict=True):
            if other is None:
                assert mine is None
            else:
                ledger.compare(mine[0], other, within=1e-12)


@pytest.mark.verifies(
    "course_lib.recurrent.DecoderOutput", against="PyTorch `stack` of the steps, one by one"
)
@pytest.mark.parametrize("kind", DECODERS)
def test_decoded_is_its_steps_on_top_of_each_other(ledger, kind):
    ours, source = wild(DECODERS[kind]()), encoded()
    decoded, state, steps = ours(TARGET, source), ours.initial_state(source), []
    for token in TARGET.unbind(1):
        steps.append(ours.step(token, state, source))
        state = steps[-1].state
    assert decoded._fields == ("logits", "weights")
    ledger.compare(decoded.logits, torch.stack([step.logits for step in steps], 1), within=1e-14)
    if kind != "fixed":
        weights = torch.stack([step.weights for step in steps], 1)
        ledger.compare(decoded.weights, weights, within=1e-14)


def weights_after_another_token(kind, place):
    """The weights before and after one token of the target is replaced."""
    ours, source = wild(DECODERS[kind]()), encoded()
    other = TARGET.clone()
    other[:, place] = (other[:, place] + 2) % VOCABULARY
    return ours(TARGET, source).weights[0], ours(other, source).weights[0]


def test_bahdanau_asks_with_the_state_before_the_token_is_read():
    before, after = weights_after_another_token("bahdanau", 1)
    torch.testing.assert_close(after[:2], before[:2], rtol=0, atol=0)
    assert (after[2] - before[2]).abs().max() > 1e-3


@pytest.mark.parametrize("score", ["dot", "general", "concat"])
def test_luong_asks_with_the_state_that_has_read_the_token(score):
    before, after = weights_after_another_token(score, 1)
    torch.testing.assert_close(after[:1], before[:1], rtol=0, atol=0)
    assert (after[1] - before[1]).abs().max() > 1e-3


@pytest.mark.parametrize("kind", DECODERS)
def test_the_context_goes_into_the_state_in_bahdanaus_decoder_and_with_input_feeding(kind):
    ours, source = wild(DECODERS[kind]()), encoded()
    other = source._replace(memory=source.memory.flip(-1))
    state = ours.initial_state(source)
    same = torch.equal(
        ours.step(TARGET[:, 1], state, source).state, ours.step(TARGET[:, 1], state, other).state
    )
    assert same == (kind not in ("bahdanau", "feeding"))


def test_without_input_feeding_the_states_do_not_depend_on_the_attention_and_with_it_they_do():
    for kind, fed in (("general", False), ("feeding", True)):
        ours, source = wild(DECODERS[kind]()), encoded()
        other = source._replace(memory=source.memory.flip(-1))
        states = []
        for one in (source, other):
            state = ours.initial_state(one)
            for token in TARGET.unbind(1):
                state = ours.step(token, state, one).state
            states.append(state[:, :HIDDEN])
        assert torch.equal(*states) != fed


@pytest.mark.parametrize("kind", ATTENDING)
def test_the_weights_of_a_source_sum_to_one_and_are_zero_at_its_padding(kind):
    weights = wild(DECODERS[kind]())(TARGET, encoded()).weights
    torch.testing.assert_close(weights.sum(-1), torch.ones(3, 3).double())
    assert (weights[1, :, 2:] == 0).all() and (weights[2, :, 0] == 1).all()


def test_sizes_are_those_that_were_asked_for():
    def shapes(layers):
        return {
            name: tuple(value.shape) for name, value in layers.named_parameters() if "b" not in name
        }

    bahdanau, readout = DECODERS["bahdanau"](), 2 * READOUT
    assert shapes(bahdanau.attention.score) == {
        "W.weight": (SCORE, HIDDEN), "U.weight": (SCORE, MEMORY), "v.weight": (1, SCORE),
    }  # fmt: skip
    for decoder in (bahdanau, DECODERS["fixed"]()):
        assert shapes(decoder.readout) == {
            "U.weight": (readout, HIDDEN), "V.weight": (readout, EMBEDDING),
            "C.weight": (readout, MEMORY), "W.weight": (VOCABULARY, READOUT),
        }  # fmt: skip
    for decoder in (make() for make in DECODERS.values()):
        assert decoder.embedding.weight.shape == (VOCABULARY, EMBEDDING)
        assert decoder.memory_size == MEMORY
    assert DECODERS["concat"]().attention.score.W.weight.shape == (HIDDEN, HIDDEN + MEMORY)
    usual = BahdanauDecoder(VOCABULARY, EMBEDDING, HIDDEN, MEMORY)
    assert usual.attention.score.v.weight.shape == (1, HIDDEN)
    assert usual.readout.W.weight.shape == (VOCABULARY, 32)
    assert encoder().memory_size == MEMORY


def test_maxout_takes_the_larger_of_every_two():
    layer = wild(MaxoutReadout(HIDDEN, EMBEDDING, MEMORY, READOUT, VOCABULARY))
    state, word, context = (torch.randn(2, 6, n).double() for n in (HIDDEN, EMBEDDING, MEMORY))
    logits, p = layer(state, word, context).detach(), arrays(layer)
    assert logits.shape == (2, 6, VOCABULARY)
    for place in np.ndindex(2, 6):
        theirs = maxout(p, *(x[place].numpy() for x in (state, word, context)), prefix="")
        np.testing.assert_allclose(logits[place], theirs, rtol=0, atol=1e-12)


# --- both together ---------------------------------------------------------------------------


@pytest.mark.verifies(
    "course_lib.recurrent.Seq2Seq", against="the papers' equations, step by step in NumPy"
)
@pytest.mark.parametrize("kind", DECODERS)
def test_the_whole_is_its_equations_and_learns_through_all_of_them(ledger, kind):
    ours = seq2seq(kind)
    logits, _ = ours(SOURCE, TARGET)
    mix = np.random.default_rng(2).normal(size=logits.shape)
    sources = [row.tolist() for row in rows(SOURCE, LENGTHS)]

    def theirs(p, row):
        memory, final = read(under(p, "encoder."), sources[row])
        return np.stack(write(kind, under(p, "decoder."), TARGET[row].tolist(), memory, final)[0])

    def mixed(p):
        return sum((theirs(p, row) * mix[row]).sum() for row in (0, 1))

    p = arrays(ours)
    for row in range(3):
        ledger.compare(logits[row], theirs(p, row), within=1e-11)
    names = ["encoder.embedding.weight", "encoder.gru.weight_hh_l0_reverse", "decoder.start.bias"]
    value = (logits[:2] * torch.tensor(mix[:2])).sum()
    mine = torch.autograd.grad(value, [ours.get_parameter(name) for name in names])
    fixed = {name: array for name, array in p.items() if name not in names}
    oracle = complex_steps(lambda some: mixed(fixed | some), {name: p[name] for name in names})
    for name, gradient in zip(names, mine, strict=True):
        ledger.compare(gradient, oracle[name], within=1e-10, backward=True)


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
    "course_lib.recurrent.GenerationOutput", against="greedy decoding in NumPy, one by one"
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


@pytest.mark.parametrize("kind", DECODERS)
def test_translating_is_teacher_forcing_with_what_it_wrote_itself(kind):
    ours = talkative(kind)
    sources, _ = many_sources()
    tokens, weights = ours.generate(sources, 9)
    fed = torch.cat([torch.full((len(sources), 1), ours.bos_id), tokens[:, :-1]], 1)
    logits, forced = ours(sources, fed)
    until = (fed == ours.eos_id).cumsum(1) == 0  # up to the end token, it included
    assert torch.equal(logits.argmax(-1)[until], tokens[until])
    assert (tokens[~until] == ours.pad_id).all()
    if kind != "fixed":
        torch.testing.assert_close(weights[until], forced[until])


@pytest.mark.parametrize("kind", DECODERS)
def test_a_batch_is_translated_as_one_by_one(kind):
    ours = talkative(kind)
    sources, lengths = many_sources()
    tokens, weights = ours.generate(sources, 9)
    for row, source in enumerate(rows(sources, lengths)):
        alone = ours.generate(source[None], 9)
        end = alone.tokens.shape[1]
        assert torch.equal(tokens[row, :end], alone.tokens[0])
        assert (tokens[row, end:] == ours.pad_id).all()
        if kind != "fixed":
            torch.testing.assert_close(weights[row, :end, : lengths[row]], alone.weights[0])
            assert (weights[row, :, lengths[row] :] == 0).all()


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
    ours = seq2seq("general")
    assert not ours.generate(SOURCE, 3).weights.requires_grad
    assert ours(SOURCE, TARGET).logits.requires_grad


@pytest.mark.parametrize("kind", DECODERS)
def test_other_whole_numbers_are_tokens_too(kind):
    ours = seq2seq(kind)
    torch.testing.assert_close(ours(SOURCE.int(), TARGET.int()), ours(SOURCE, TARGET))
    assert torch.equal(ours.generate(SOURCE.int(), 4).tokens, ours.generate(SOURCE, 4).tokens)


# --- bad input -------------------------------------------------------------------------------


def reads(tokens):
    return lambda: encoder()(torch.tensor(tokens))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (reads([[1, 2], [0, 0]]), r"source\[1\] is all padding; a source needs a token"),
        (
            reads([[1, 2, 3], [0, 4, 5]]),
            r"source\[1\] has padding before a token; padding must be at the end",
        ),
        (reads([[1, 0, 3]]), r"source\[0\] has padding before a token"),
        (
            lambda: Seq2Seq(GRUEncoder(9, 8, 5), BahdanauDecoder(7, 3, 5, 5)),
            r"encoder has memory_size=10, but decoder was made with memory_size=5; .* equal",
        ),
        (
            lambda: LuongDecoder(7, 3, 5, 4, "generel"),
            r"score='generel' is unknown; .*'dot', 'general', 'concat'.* Did you mean 'general'\?",
        ),
        (lambda: seq2seq("fixed").generate(SOURCE, 0), r"max_length=0 is below 1"),
    ],
)
def test_bad_input_is_refused_by_name(call, says):
    with pytest.raises(ValueError, match=says):
        call()
