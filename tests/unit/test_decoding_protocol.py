"""Any model that follows the protocol can be decoded: one written here, and the recurrent ones."""

import itertools
import math

import pytest
import torch

from course_lib.topics.recurrent import (
    BahdanauDecoder,
    FixedContextDecoder,
    GRUEncoder,
    LuongDecoder,
    Seq2Seq,
)
from course_lib.transformer import DecoderOnly, TransformerConfig
from course_lib.transformer.decoding import (
    DecodingSession,
    beam_search,
    greedy,
)
from course_lib.transformer.positions import AttentionPositions
from course_lib.validation import require_tokens
from tests.helpers.decoding import every_line

PAD, BOS, EOS = 0, 1, 2
TOKENS = 6


class BigramState:
    """How often each sequence was continued."""

    def __init__(self, batch):
        self.steps = torch.zeros(batch, dtype=torch.int64)
        self.same = []

    def reorder(self, rows, *, same_sources=False):
        self.steps = self.steps[rows]
        self.same.append(same_sources)


class Bigram:
    """A model of nobody's library: the next token depends on the last one alone."""

    vocabulary_size, pad_id = TOKENS, PAD

    def __init__(self, seed=0):
        generator = torch.Generator().manual_seed(seed)
        self.logits = torch.randn(TOKENS, TOKENS, generator=generator, dtype=torch.float64)
        self.logits[:, [PAD, BOS]] = -math.inf

    def prefill(self, source, *, bos_id):
        require_tokens(TOKENS, source=source)
        return self.logits[source[:, -1]], BigramState(len(source))

    def decode_step(self, token, state):
        state.steps += 1
        return self.logits[token]

    def log_p(self, prompt, line):
        table = self.logits.log_softmax(-1)
        pairs = itertools.pairwise([prompt[-1].item(), *line])
        return sum(table[last, token].item() for last, token in pairs)


def lines(tokens):
    return [
        tuple(row[: row.index(EOS) + 1]) if EOS in row else tuple(row) for row in tokens.tolist()
    ]


PROMPT = torch.tensor([[3, 4], [5, 5], [4, 3]])


@pytest.mark.verifies(
    "course_lib.transformer.decoding.IncrementalDecoder",
    against="a bigram model, all its sequences enumerated",
)
def test_a_model_needs_the_protocol_and_nothing_else(ledger):
    model, by_hand = Bigram(), []
    for last in PROMPT[:, -1].tolist():
        line = ()
        while len(line) < 5 and EOS not in line:
            last = model.logits[last].argmax().item()
            line += (last,)
        by_hand.append(line)
    assert lines(greedy(model, PROMPT, max_length=5)) == by_hand
    for alpha in (0.0, 1.0):
        found = beam_search(model, PROMPT, TOKENS, alpha, max_length=2)  # drops nothing
        for row, prompt in enumerate(PROMPT):
            every = list(map(tuple, every_line([EOS, *range(3, TOKENS)], 2)))
            scores = {line: model.log_p(prompt, line) / len(line) ** alpha for line in every}
            best = sorted(scores, key=scores.get, reverse=True)[:TOKENS]
            assert lines(found.tokens[row]) == best
            wanted = torch.tensor([scores[line] for line in best])
            ledger.compare(found.scores[row], wanted, within=1e-5)
    ledger.holds()


def test_the_state_is_reordered_with_the_sequences():
    session = DecodingSession(Bigram(), PROMPT)
    session.step(torch.tensor([3, 4, 5]))
    session.reorder(torch.tensor([2, 0]), same_sources=True)
    assert session.state.same == [True] and session.state.steps.tolist() == [1, 1]
    assert torch.equal(session.logits, session.model.logits[[5, 3]])


def recurrent(kind, seed=0):
    """A small model whose weights are so large that sources differ in what is generated."""
    torch.manual_seed(seed)
    kinds = {"fixed": FixedContextDecoder, "bahdanau": BahdanauDecoder, "luong": LuongDecoder}
    model = Seq2Seq(GRUEncoder(9, 4, 3), kinds[kind](TOKENS, 4, 5, 6)).eval()
    for parameter in model.parameters():
        parameter.data *= 4
    return model


RECURRENT = ["fixed", "bahdanau", "luong"]
SOURCE = torch.tensor([[3, 4, 5, 6], [7, 8, 0, 0], [6, 6, 3, 0], [8, 3, 8, 8], [5, 0, 0, 0]])


@pytest.mark.verifies("course_lib.transformer.decoding.greedy", against="`Seq2Seq.translate`")
@pytest.mark.parametrize("kind", RECURRENT)
def test_greedy_of_a_recurrent_model_is_its_translation(ledger, kind):
    ends = set()
    for seed, eos in itertools.product(range(2), range(1, TOKENS)):
        model = recurrent(kind, seed)
        model.eos_id = eos  # some sequences end early, and some late or never
        for max_length in (1, 6):
            ours = greedy(model, SOURCE, max_length=max_length, eos_id=eos)
            assert torch.equal(ours, model.generate(SOURCE, max_length).tokens)
            ends |= {line.index(eos) if eos in line else -1 for line in ours.tolist()}
            beam = beam_search(model, SOURCE, 1, max_length=max_length, eos_id=eos)
            assert torch.equal(beam.tokens[:, 0], ours)
    assert len(ends) > 2
    ledger.holds()


@pytest.mark.verifies(
    "course_lib.transformer.decoding.beam_search", against="teacher forcing of a recurrent model"
)
@pytest.mark.parametrize("kind", RECURRENT)
def test_beam_scores_of_a_recurrent_model_are_those_of_teacher_forcing(ledger, kind):
    model = recurrent(kind)
    found = beam_search(model, SOURCE, 4, 0.0, max_length=5)
    for source, tokens, scores in zip(SOURCE, found.tokens, found.scores, strict=True):
        anew = []
        for line in lines(tokens):
            target = torch.tensor([[BOS, *line]])
            with torch.no_grad():
                log_p = model(source[None], target[:, :-1]).logits.log_softmax(-1)
            anew.append(log_p.gather(-1, target[:, 1:, None]).sum())
        ledger.compare(scores, torch.stack(anew), within=1e-4)


class FromTheStart(AttentionPositions):
    """An encoding inside attention whose bias depends on absolute positions."""

    shift_invariant = False

    def bias(self, query, key_length):
        return torch.arange(float(key_length))


def test_padding_on_the_left_is_refused_where_any_encoding_counts_from_the_start():
    sizes = {"d_model": 12, "num_heads": 3, "decoder_layers": 1, "d_ff": 7}
    config = TransformerConfig(target_vocabulary=TOKENS, positions="alibi", **sizes)
    model = DecoderOnly(config).eval()
    padded = torch.tensor([[3, 4], [PAD, 5]])
    assert greedy(model, padded, max_length=2).shape[0] == 2
    model.blocks[0].attention.positions = FromTheStart()
    with pytest.raises(
        ValueError, match=r"source\[1\] holds padding .* counts them from the start"
    ):
        greedy(model, padded)
