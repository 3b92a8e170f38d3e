"""Splitting and merging heads; what holds of multi-head attention whatever the weights."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from course_lib.multihead import MultiHeadAttention, merge_heads, split_heads
from tests.helpers.multihead import BATCH, D_HEAD, D_MODEL, HEADS, KEYS, QUERIES, sequences
from tests.helpers.tensors import all_true

BOTH_PATHS = pytest.mark.parametrize("need_weights", [True, False])


# --- splitting and merging -------------------------------------------------------------------


@pytest.mark.verifies("course_lib.multihead.split_heads", against="an explicit loop over indices")
@pytest.mark.verifies("course_lib.multihead.merge_heads", against="an explicit loop over indices")
@pytest.mark.parametrize("batch", [(), (BATCH,), (BATCH, 7)])
def test_heads_are_contiguous_slices_of_each_vector(ledger, batch):
    x = torch.randn(*batch, QUERIES, D_MODEL, dtype=torch.float64)
    theirs = torch.empty(*batch, HEADS, QUERIES, D_HEAD, dtype=torch.float64)
    for *where, head, place, number in np.ndindex(*theirs.shape):
        theirs[*where, head, place, number] = x[*where, place, head * D_HEAD + number]
    ledger.compare(split_heads(x, HEADS), theirs, within=0)
    ledger.compare(merge_heads(theirs), x, within=0)


def test_key_defaults_to_query_and_value_to_key():
    layer, (x, memory, _) = MultiHeadAttention(D_MODEL, HEADS).double(), sequences()
    torch.testing.assert_close(layer(x), layer(x, x, x), rtol=0, atol=0)
    torch.testing.assert_close(layer(x, memory), layer(x, memory, memory), rtol=0, atol=0)
    torch.testing.assert_close(layer(x, value=2 * x), layer(x, x, 2 * x), rtol=0, atol=0)


# --- invariants ------------------------------------------------------------------------------


@BOTH_PATHS
def test_attention_is_permutation_equivariant(need_weights):
    layer, (x, memory, other) = MultiHeadAttention(D_MODEL, HEADS).double(), sequences()
    order, options = torch.randperm(QUERIES), {"need_weights": need_weights}
    torch.testing.assert_close(layer(x[:, order], **options).output, layer(x).output[:, order])
    order = torch.randperm(KEYS)
    shuffled = layer(x, memory[:, order], other[:, order], **options).output
    torch.testing.assert_close(shuffled, layer(x, memory, other).output)


@BOTH_PATHS
@pytest.mark.parametrize("kv_heads", [1, HEADS], ids=["mqa", "mha"])
def test_causal_mask_hides_future_tokens(kv_heads, need_weights):
    layer = MultiHeadAttention(D_MODEL, HEADS, num_kv_heads=kv_heads).double()
    x = torch.randn(BATCH, KEYS, D_MODEL, dtype=torch.float64, requires_grad=True)
    mask = all_true(KEYS, KEYS).tril()
    output = layer(x, mask=mask, need_weights=need_weights).output
    for now in range(KEYS):
        (reach,) = torch.autograd.grad(output[:, now].sum(), x, retain_graph=True)
        assert (reach[:, now + 1 :] == 0).all() and (reach[:, : now + 1] != 0).any(-1).all()
        prefix = layer(x[:, : now + 1], mask=mask[: now + 1, : now + 1], need_weights=need_weights)
        torch.testing.assert_close(prefix.output, output[:, : now + 1])


@BOTH_PATHS
def test_length_of_padding_has_no_effect(need_weights):
    layer, (x, memory, other) = MultiHeadAttention(D_MODEL, HEADS).double(), sequences()
    plain = layer(x, memory, other).output
    for extra in (1, 6):
        longer = [F.pad(tensor, (0, 0, 0, extra), value=9.0) for tensor in (memory, other)]
        mask = (torch.arange(KEYS + extra) < KEYS).expand(BATCH, 1, -1)
        padded = layer(x, *longer, mask, need_weights=need_weights).output
        torch.testing.assert_close(padded, plain)
