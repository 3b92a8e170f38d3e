"""Head scores against explicit loops, the logit lens against Hugging Face."""

import itertools
import math

import pytest
import torch

from course_lib.topics.interpretability import (
    attention_weights,
    edited,
    first_token_score,
    induction_score,
    logit_lens,
    previous_token_score,
    repeated_tokens,
    residual_streams,
    surprisal,
)
from course_lib.transformer import DecoderOnly, TransformerConfig
from tests.helpers.llama import llama
from tests.helpers.transformer import LLAMA, randomized

HEADS, LAYERS, LENGTH = 4, 3, 13


def model():
    sizes = {"target_vocabulary": 19, "d_model": 24, "decoder_layers": LAYERS, "d_ff": 17}
    config = TransformerConfig(**sizes, num_heads=HEADS, num_kv_heads=2, **LLAMA)
    return randomized(DecoderOnly(config)).eval()


def tokens(batch=1):
    return torch.randint(1, 19, (batch, LENGTH))


@pytest.mark.verifies(
    "course_lib.topics.interpretability.attention_weights",
    against="Hugging Face `output_attentions`",
)
def test_attention_weights_equal_hugging_face(ledger):
    ours, given = model(), tokens()
    theirs = llama(ours, attn_implementation="eager")(given, output_attentions=True).attentions
    found = attention_weights(ours, given)
    assert found.shape == (LAYERS, HEADS, LENGTH, LENGTH)
    ledger.compare(found, torch.stack(theirs)[:, 0], within=2e-6)


@pytest.mark.verifies(
    "course_lib.topics.interpretability.previous_token_score",
    "course_lib.topics.interpretability.first_token_score",
    "course_lib.topics.interpretability.induction_score",
    against="an explicit loop",
)
def test_scores_equal_loops(ledger):
    weights = torch.rand(2, 3, LENGTH, LENGTH, dtype=torch.float64)
    for a, b in itertools.product(range(2), range(3)):
        rows = weights[a, b].tolist()

        def mean(numbers):
            numbers = list(numbers)
            return torch.tensor(sum(numbers) / len(numbers), dtype=torch.float64)

        before = mean(rows[i][i - 1] for i in range(1, LENGTH))
        ledger.compare(previous_token_score(weights)[a, b], before, within=1e-14)
        sink = mean(rows[i][0] for i in range(4, LENGTH))
        ledger.compare(first_token_score(weights, start=4)[a, b], sink, within=1e-14)
        for period in (2, 5, LENGTH - 1):
            after = mean(rows[i][i - period + 1] for i in range(period, LENGTH))
            ledger.compare(induction_score(weights, period)[a, b], after, within=1e-14)


@pytest.mark.verifies("course_lib.topics.interpretability.repeated_tokens", against="properties")
def test_repeated_tokens_repeat(ledger):
    given = repeated_tokens(50, vocabulary=9, batch=3, first=4, seed=1)
    assert given.shape == (3, 100) and given.min() == 4 and given.max() == 8
    ledger.compare(given[:, 50:], given[:, :50], within=0)
    assert not torch.equal(given, repeated_tokens(50, vocabulary=9, batch=3, first=4, seed=2))
    assert not torch.equal(given[0], given[1])


@pytest.mark.verifies(
    "course_lib.topics.interpretability.edited", against="Hugging Face with weights set to zero"
)
def test_an_edit_equals_other_weights_and_ends_with_its_block(ledger):
    ours, given = model(), tokens(2)
    theirs, before = llama(ours), ours(given)
    projection = theirs.model.layers[1].mlp.down_proj
    projection.weight = torch.nn.Parameter(torch.zeros_like(projection.weight))
    ffn, seen = ours.blocks[1].feed_forward, []
    edits = [(ffn, lambda x, output: 0 * output), (ffn, lambda x, output: seen.append(output))]
    with pytest.raises(KeyError), edited(edits):
        ledger.compare(ours(given), theirs(given).logits, within=2e-5)
        raise KeyError
    assert not seen[0].any()  # the second edit sees what the first one wrote
    ledger.compare(ours(given), before, within=0)


@pytest.mark.verifies(
    "course_lib.topics.interpretability.residual_streams",
    against="Hugging Face `output_hidden_states`",
)
def test_residual_streams_equal_hugging_face(ledger):
    ours, given = model(), tokens(2)
    *streams, _ = llama(ours)(given, output_hidden_states=True).hidden_states
    found = residual_streams(ours, given)
    ledger.compare(found[:-1], torch.stack(streams), within=2e-5)
    ledger.compare(ours.lm_head(ours.norm(found[-1])), ours(given), within=1e-12)


@pytest.mark.verifies(
    "course_lib.topics.interpretability.logit_lens", against="Hugging Face `output_hidden_states`"
)
@pytest.mark.parametrize("position", [-1, 0, 5])
def test_the_logit_lens_equals_hugging_face(ledger, position):
    ours, given = model(), tokens(2)
    theirs = llama(ours)
    states = theirs(given, output_hidden_states=True).hidden_states  # the last one is normalised
    *streams, last = (state[:, position] for state in states)
    wanted = [theirs.lm_head(theirs.model.norm(x)) for x in streams] + [theirs.lm_head(last)]
    found = logit_lens(ours, given, position=position)
    ledger.compare(found, torch.stack(wanted), within=2e-5)
    ledger.compare(found[-1], ours(given)[:, position], within=1e-12)


@pytest.mark.verifies("course_lib.topics.interpretability.surprisal", against="an explicit loop")
def test_surprisal_equals_a_loop(ledger):
    ours, given = model(), tokens(2)
    found = surprisal(ours, given)
    assert found.shape == (2, LENGTH - 1)
    for row, t in itertools.product(range(2), range(1, LENGTH)):
        logits = ours(given[row : row + 1, :t])[0, -1].tolist()
        p = math.exp(logits[given[row, t]]) / sum(map(math.exp, logits))
        ledger.compare(found[row, t - 1], torch.tensor(-math.log2(p)), within=2e-5)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: attention_weights(model(), tokens(2)), "2 sequences; give one"),
        (lambda: first_token_score(torch.rand(5, 5)), "start=10 leaves no token"),
        (lambda: induction_score(torch.rand(5, 5), 5), "period=5 must be from 2"),
        (lambda: previous_token_score(torch.rand(1, 5)), "weights are of 1 queries and 5 keys; "),
    ],
)
def test_bad_input_is_refused(without_annotations, call, says):
    with pytest.raises(ValueError, match=says):
        call()
