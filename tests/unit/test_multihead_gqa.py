"""Grouped-query (GQA) and multi-query attention (MQA) against PyTorch's kernel."""

import pytest
import torch
import torch.nn.functional as F

from course_lib.transformer.attention import AttentionOutput, scaled_dot_product_attention
from course_lib.transformer.multihead import MultiHeadAttention
from tests.helpers.multihead import (
    FULLY_MASKED,
    KEY_SIZE,
    KEYS,
    MASKS,
    QUERIES,
    SHARING,
    VALUE_SIZE,
    compare_all,
    cut,
    mixes_for,
    sequences,
)
from tests.helpers.tensors import (
    DTYPES,
    ROUNDING,
    gradients,
    in_float64,
    random_mask,
    without_second_query,
)


def shared(kv_heads, dtype=torch.float64):
    """A layer in which heads share keys, and inputs for it."""
    sizes = {"d_model": 2 * SHARING, "kdim": KEY_SIZE, "vdim": VALUE_SIZE}
    layer = MultiHeadAttention(num_heads=SHARING, num_kv_heads=kv_heads, **sizes)
    return layer.to(dtype), sequences(**sizes, dtype=dtype)


def by_pytorch(layer, query, key, value, mask, heads, kv_heads):
    """The kernel of PyTorch that knows of groups."""
    q, k, v = (
        cut(project(x), n)
        for project, x, n in (
            (layer.q_proj, query, heads),
            (layer.k_proj, key, kv_heads),
            (layer.v_proj, value, kv_heads),
        )
    )
    if mask is not None and mask.dim() == 3:
        mask = mask[:, None]
    attended = F.scaled_dot_product_attention(q, k, v, mask, enable_gqa=True)
    return AttentionOutput(layer.out_proj(torch.cat(attended.unbind(1), -1)), None)


SHARED_MASKS = {
    "none": MASKS["none"],
    "(batch, query, key)": MASKS["(batch, query, key)"],
    "all rows masked": FULLY_MASKED["all rows masked"],
    "a fully masked row per head": lambda: without_second_query(
        random_mask(1, SHARING, QUERIES, KEYS)
    ),
}


@pytest.mark.verifies(
    "course_lib.transformer.multihead.MultiHeadAttention",
    against="PyTorch `F.scaled_dot_product_attention(enable_gqa=True)`",
)
@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("mask", SHARED_MASKS)
@pytest.mark.parametrize("kv_heads", [1, 3, SHARING], ids=["mqa", "gqa", "mha"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_gqa_equals_pytorch(ledger, dtype, kv_heads, mask, need_weights):
    layer, inputs = shared(kv_heads, dtype)
    oracle, _ = shared(kv_heads)
    oracle.load_state_dict(layer.state_dict())
    copies, mask = in_float64(*inputs), SHARED_MASKS[mask]()
    ours = AttentionOutput(layer(*inputs, mask, need_weights=need_weights).output, None)
    theirs = by_pytorch(oracle, *copies, mask, SHARING, kv_heads)
    ledger.compare(ours.output, theirs.output, within=ROUNDING[dtype])
    mixes = mixes_for(theirs)
    slopes = gradients(theirs, [*copies, *oracle.parameters()], mixes)
    mine = gradients(ours, [*inputs, *layer.parameters()], mixes)
    compare_all(ledger, mine, slopes, ROUNDING[dtype], backward=True)


def test_grouped_heads_where_all_axes_are_equally_long():
    query, (key, value) = torch.randn(4, 4, 4, 4), torch.randn(2, 4, 2, 4, 4)
    ours = scaled_dot_product_attention(query, key, value, enable_gqa=True)
    theirs = F.scaled_dot_product_attention(query, key, value, enable_gqa=True)
    torch.testing.assert_close(ours.output, theirs)
