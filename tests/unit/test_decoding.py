"""Greedy decoding against loops without a cache, and against `generate` of Hugging Face."""

import copy
import math

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

from course_lib.decoding import Writer, greedy
from course_lib.positions import ENCODINGS
from course_lib.transformer import DecoderOnly, Transformer, TransformerConfig

BATCH, SOURCE = 3, 5  # no two axes are equally long
TARGETS, SOURCES, PAD, BOS, EOS = 8, 11, 0, 1, 2


def sized(**choices):
    sizes = {
        "target_vocabulary": TARGETS, "source_vocabulary": SOURCES, "d_model": 12, "num_heads": 3,
        "encoder_layers": 1, "decoder_layers": 2, "d_ff": 7, "dropout": 0.0, "max_length": 30,
        "norm": "pre",
    }  # fmt: skip
    return TransformerConfig(**(sizes | choices))


def wild(layer, dtype=torch.float64):
    """Matrices so large, and no biases, that different sequences are written differently."""
    for name, parameter in layer.named_parameters():
        plain = torch.full(parameter.shape, float(name.endswith("weight")))
        parameter.data = (torch.randn(parameter.shape) if parameter.dim() > 1 else plain).to(dtype)
    return layer.eval()


def model(made=Transformer, seed=0, **choices):
    torch.manual_seed(seed)
    return wild(made(sized(**choices)))


def words(vocabulary, length, *padded):
    tokens = torch.randint(3, vocabulary, (len(padded), length))
    for row, count in zip(tokens, padded, strict=True):
        row[length - count :] = PAD
    return tokens


def one_by_one(model, source, max_length, bos=BOS, eos=EOS, pad=PAD):
    """One sequence at a time, one token at a time, and everything computed anew each time."""
    lines = []
    with torch.no_grad():
        for row in source:
            row, line = row[row != pad][None], []
            while len(line) < max_length and line[-1:] != [eos]:
                if isinstance(model, Transformer):
                    logits = model(row, torch.tensor([[bos, *line]]))
                else:
                    logits = model(torch.cat([row, torch.tensor([line], dtype=torch.int64)], 1))
                scores = logits[0, -1].tolist()
                line.append(scores.index(max(scores)))
            lines.append(line)
    return lines


def rectangle(lines, max_length, pad=PAD):
    """The first tokens of each line, padded."""
    lines = [line[:max_length] for line in lines]
    longest = max(map(len, lines))
    return torch.tensor([line + [pad] * (longest - len(line)) for line in lines])


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
@pytest.mark.parametrize("positions", ENCODINGS)
def test_greedy_is_a_loop_over_sequences_of_any_length(ledger, positions, norm):
    one = model(positions=positions, norm=norm, num_kv_heads=1)
    hold(ledger, one, words(SOURCES, SOURCE, 0, 2, 4), 1, 3, 7)


@pytest.mark.verifies(
    "course_lib.decoding.greedy", against="a loop without cache, sequence by sequence"
)
@pytest.mark.parametrize("positions", ENCODINGS)
def test_greedy_continues_prompts(ledger, positions):
    one = model(DecoderOnly, positions=positions)
    hold(ledger, one, words(TARGETS, SOURCE, 0, 0, 0), 1, 3, 7)


@pytest.mark.verifies(
    "course_lib.decoding.greedy", against="a loop without cache, sequence by sequence"
)
@pytest.mark.parametrize("positions", ["none", "shaw", "t5", "rotary", "alibi"])
def test_prompts_of_unequal_length_are_padded_in_front(ledger, positions):
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
def test_greedy_is_that_of_hugging_face(ledger, seed):
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(seed)
    config = GPT2Config(
        vocab_size=TARGETS, n_positions=30, n_embd=12, n_layer=2, n_head=3, n_inner=7,
        activation_function="gelu", bos_token_id=BOS, eos_token_id=EOS, pad_token_id=PAD,
    )  # fmt: skip
    theirs = wild(GPT2LMHeadModel(config))
    with torch.no_grad():  # padding is never written: theirs would look at it afterwards
        theirs.transformer.ln_f.bias.fill_(1.0)
        theirs.transformer.wte.weight[PAD] = -1.0
    ours = DecoderOnly(sized(positions="learned", activation="gelu")).double()
    state = theirs.transformer.state_dict()
    made = {
        "input.embedding.table.weight": state["wte.weight"] / math.sqrt(12),
        "input.positions.table": state["wpe.weight"],
        "out.weight": state["wte.weight"],
    }
    names = {
        "attention.out": "attn.c_proj",
        "network.wider": "mlp.c_fc",
        "network.back": "mlp.c_proj",
    }
    for what in ("weight", "bias"):
        made[f"norm.{what}"] = state[f"ln_f.{what}"]
        for place in range(2):
            thirds = state[f"h.{place}.attn.c_attn.{what}"].chunk(3, -1)
            for part, third in zip(("query", "key", "value"), thirds, strict=True):
                made[f"blocks.{place}.attention.{part}.{what}"] = (
                    third.T if third.dim() == 2 else third
                )
            for mine, hers in names.items():
                tensor = state[f"h.{place}.{hers}.{what}"]
                made[f"blocks.{place}.{mine}.{what}"] = tensor.T if tensor.dim() == 2 else tensor
            for number in (0, 1):
                made[f"blocks.{place}.residuals.{number}.norm.{what}"] = state[f"h.{place}.ln_{number + 1}.{what}"]  # fmt: skip
    ours.load_state_dict(made)
    prompt = words(TARGETS, SOURCE, 0, 0, 0, 0)
    generated = theirs.generate(
        prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=12, do_sample=False
    )
    mine = greedy(ours.eval(), prompt, max_length=12)
    assert all(EOS in line[: line.index(PAD)] for line in mine.tolist() if PAD in line)
    assert torch.equal(mine, generated[:, SOURCE:])
    ledger.holds()


def always(*tokens, made=Transformer, **choices):
    """A model that writes these tokens one after the other, whatever the source, then the last for ever.

    Its blocks change nothing, and position p alone decides.
    """
    one = made(sized(positions="learned", norm="pre", final_norm=False, **choices)).double().eval()
    with torch.no_grad():
        for parameter in one.parameters():
            parameter.zero_()
        part = one.target_input if made is Transformer else one.input
        for place in range(30):
            token = tokens[min(place, len(tokens) - 1)]
            part.positions.table[place, token] = 1.0
        one.out.weight.copy_(torch.eye(TARGETS, 12))
    return one


def test_greedy_stops_at_the_end_and_not_before():
    source = words(SOURCES, SOURCE, 0, 1)
    assert greedy(always(5, 4, 7, EOS, 6), source).tolist() == [[5, 4, 7, EOS]] * 2
    assert greedy(always(5, EOS), source, eos_id=5).tolist() == [[5]] * 2
    assert greedy(always(EOS), source).tolist() == [[EOS]] * 2
    assert greedy(always(5, 4, 7), source, max_length=3).tolist() == [[5, 4, 7]] * 2
    assert greedy(always(5, 4, EOS), source, max_length=2).tolist() == [[5, 4]] * 2
    assert greedy(always(5, 4, EOS), source, max_length=3).tolist() == [[5, 4, EOS]] * 2
    assert greedy(always(3), source, max_length=30).shape == (2, 30)  # as far as positions reach
    assert greedy(always(3, max_length=60), source).shape == (2, 50)


def test_greedy_of_prompts_begins_behind_them():
    prompt = words(TARGETS, SOURCE, 0, 0)
    one = always(3, 3, 3, 3, 6, 7, EOS, made=DecoderOnly)  # position 4 is the last of the prompt
    assert greedy(one, prompt).tolist() == [[6, 7, EOS]] * 2


def test_behind_the_end_stands_padding_while_others_go_on():
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


def test_greedy_takes_the_model_as_it_is_and_leaves_it_so():
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


def test_no_graph_is_built_and_gradients_stay_switched_on():
    one, source = model(), words(SOURCES, SOURCE, 0, 2)
    writer = Writer(one, source)
    assert not writer.logits.requires_grad and not writer.write(torch.tensor([3, 4])).requires_grad
    assert not any(kept.key.requires_grad for block in writer.cache.blocks for kept in block)
    assert not writer._memory.vectors.requires_grad
    assert torch.is_grad_enabled() and one(source, source % TARGETS).requires_grad


def test_what_is_written_is_whole_numbers():
    one, source = model(), words(SOURCES, SOURCE, 0, 2)
    assert greedy(one, source).dtype == torch.int64
    assert torch.equal(greedy(one, source.int()).long(), greedy(one, source))
    half = model().bfloat16()
    assert greedy(half, source).dtype == torch.int64
    with torch.autocast("cpu", torch.bfloat16):
        assert greedy(model().float(), source).shape[0] == 2


# --- the writer ------------------------------------------------------------------------------


@pytest.mark.verifies(
    "course_lib.decoding.Writer", against="the whole sequence anew at every token"
)
@pytest.mark.parametrize("positions", ENCODINGS)
def test_the_writer_has_the_logits_of_what_would_come_next(ledger, positions):
    reader, alone = (model(made, positions=positions) for made in (Transformer, DecoderOnly))
    source, prompt = words(SOURCES, SOURCE, 0, 2, 4), words(TARGETS, SOURCE, 0, 0, 0)
    tokens = words(TARGETS, 6, 0, 0, 0)
    writers = Writer(reader, source, bos_id=4), Writer(alone, prompt)
    for place in range(7):
        start = torch.full((BATCH, 1), 4)
        whole = (
            reader(source, torch.cat([start, tokens[:, :place]], 1)),
            alone(torch.cat([prompt, tokens[:, :place]], 1)),
        )
        for writer, theirs in zip(writers, whole, strict=True):
            ledger.compare(writer.logits, theirs[:, -1], within=1e-10)
            if place < 6:
                assert writer.write(tokens[:, place]) is writer.logits
    assert (writers[0].cache.length, writers[1].cache.length) == (7, SOURCE + 6)


@pytest.mark.verifies("course_lib.decoding.Writer", against="the chosen sequences written anew")
@pytest.mark.parametrize("rows", [[2, 0], [1, 1, 0, 2], [0]])
@pytest.mark.parametrize("made", [Transformer, DecoderOnly])
def test_the_writer_goes_on_with_some_of_the_sequences(ledger, made, rows):
    one, rows = model(made), torch.tensor(rows)
    source = words(SOURCES, SOURCE, 0, 2, 4) if made is Transformer else words(TARGETS, SOURCE, 0, 0, 0)  # fmt: skip
    tokens, later = words(TARGETS, 2, 0, 0, 0), words(TARGETS, 2, *[0] * len(rows))
    writer, anew = Writer(one, source), Writer(one, source[rows])
    for place in range(2):
        writer.write(tokens[:, place])
        anew.write(tokens[rows, place])
    writer.select(rows)
    ledger.compare(writer.logits, anew.logits, within=1e-12)
    for place in range(2):
        ledger.compare(writer.write(later[:, place]), anew.write(later[:, place]), within=1e-10)


# --- bad input -------------------------------------------------------------------------------

S = torch.tensor([[3, 4, 5, 0], [6, 7, 8, 9]])
P = torch.tensor([[3, 4, 5, 6], [6, 7, 3, 4]])
READER, ALONE = Transformer(sized()), DecoderOnly(sized())
FREE = DecoderOnly(sized(positions="alibi"))
SHORT = Transformer(sized(positions="learned", max_length=6))
FRONT = torch.tensor([[3, 4, 5], [0, 3, 4]])
ONE_EACH = r"it must be whole numbers \(int64 or int32\) of shape \(2,\), one per sequence"


@pytest.mark.usefixtures("without_annotations")
@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: greedy(nn.Linear(2, 2), S), r"model is a Linear; it must be a Transformer or a DecoderOnly"),
        (lambda: greedy(Transformer, S), r"model is a type; it must be"),
        (lambda: greedy(READER, S, max_length=0), r"max_length=0 is below 1"),
        (lambda: greedy(READER, S, max_length=2.0), r"max_length=2\.0 is a float"),
        (lambda: greedy(READER, S, bos_id=8), r"bos_id=8, but the vocabulary has 8 tokens, 0 to 7"),
        (lambda: greedy(READER, S, bos_id=-1), r"bos_id=-1 is below 0"),
        (lambda: greedy(READER, S, bos_id="<s>"), r"bos_id='<s>' is a str"),
        (lambda: greedy(READER, S, eos_id=-1), r"eos_id=-1 is below 0"),
        (lambda: greedy(READER, S, eos_id=None), r"eos_id=None is a NoneType"),
        (lambda: greedy(READER, S + 2), r"source holds 11; the vocabulary has 11 tokens, 0 to 10"),
        (lambda: greedy(READER, S.float()), r"source has .* dtype float32"),
        (lambda: greedy(READER, S[0]), r"source has shape \(4,\)"),
        (lambda: greedy(READER, S[:0]), r"source has shape \(0, 4\) .* at least one"),
        (lambda: greedy(READER, [[3, 4]]), r"source is a list; a tensor is needed"),
        (lambda: greedy(ALONE, P + 2), r"source holds 9; the vocabulary has 8 tokens, 0 to 7"),
        (lambda: greedy(ALONE, [[3, 4]]), r"source is a list"),
        (lambda: greedy(ALONE, P[0]), r"source has shape \(4,\)"),
        (lambda: greedy(ALONE, S % 8), r"source\[0\] ends in padding \(pad_id=0\), and a DecoderOnly continues behind the last token; pad in front"),
        (lambda: greedy(FREE, S[:1]), r"source\[0\] ends in padding"),
        (lambda: greedy(ALONE, FRONT), r"source\[1\] holds padding \(pad_id=0\), which moves its tokens .* positions='sinusoidal' counts them from the start"),
        (lambda: greedy(SHORT, S, max_length=7, eos_id=99), r"target reaches position 6, but the model was made with max_length=6"),
        (lambda: Writer(READER, S).write(torch.tensor([3])), rf"token has shape \(1,\) and dtype int64; {ONE_EACH}"),
        (lambda: Writer(READER, S).write(torch.tensor([[3], [4]])), rf"token has shape \(2, 1\) and dtype int64; {ONE_EACH}"),
        (lambda: Writer(READER, S).write(torch.tensor(3)), rf"token has shape \(\) and dtype int64; {ONE_EACH}"),
        (lambda: Writer(READER, S).write(torch.tensor([3.0, 4.0])), rf"token has shape \(2,\) and dtype float32; {ONE_EACH}"),
        (lambda: Writer(READER, S).write([3, 4]), rf"token is a list; {ONE_EACH}"),
        (lambda: Writer(READER, S).write(torch.tensor([3, 8])), r"token holds 8; the vocabulary has 8 tokens"),
        (lambda: Writer(ALONE, P).write(torch.tensor([3, -1])), r"token holds -1"),
        (lambda: Writer(READER, S).select([0]), r"rows is a list; it must be a tensor of whole numbers"),
        (lambda: Writer(READER, S).select(torch.tensor([2])), r"rows holds 2; the batch has 2 sequences, 0 to 1"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_by_name(call, says):
    with pytest.raises(ValueError, match=says):
        call()


def test_padding_in_front_is_no_hindrance_where_positions_are_relative():
    assert greedy(FREE.eval(), FRONT, max_length=3).shape[0] == 2
