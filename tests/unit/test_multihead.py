"""Splitting and merging heads, and which arguments of multi-head attention may be left out."""

import numpy as np
import pytest
import torch

from course_lib.transformer.multihead import MultiHeadAttention, merge_heads, split_heads
from tests.helpers.multihead import BATCH, D_HEAD, D_MODEL, HEADS, QUERIES, sequences


@pytest.mark.verifies(
    "course_lib.transformer.multihead.split_heads",
    "course_lib.transformer.multihead.merge_heads",
    against="an explicit loop over indices",
)
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
