"""Learned positions against `nn.Embedding` and BERT."""

import pytest
import torch
from torch import nn

from course_lib.transformer.positions import LearnedPositions
from tests.helpers.positions import LENGTH, heads, learned
from tests.helpers.tensors import DTYPES, ROUNDING, check, in_float64


@pytest.mark.verifies(
    "course_lib.transformer.positions.LearnedPositions", against="PyTorch `nn.Embedding`"
)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("offset", [0, 4])
def test_learned_positions_equal_pytorch_embedding(ledger, offset, dtype):
    positions = LearnedPositions(LENGTH + 4, 6).to(dtype)
    x = heads(LENGTH, 6, dtype=dtype)
    (oracle,), embedding = in_float64(x), nn.Embedding(LENGTH + 4, 6).double()
    embedding.load_state_dict({"weight": positions.table})
    theirs = oracle + embedding(torch.arange(offset, offset + LENGTH))
    ours = positions(x, offset) if offset else positions(x)
    leaves, oracles = [x, positions.table], [oracle, embedding.weight]
    check(ledger, ours, leaves, theirs, oracles, ROUNDING[dtype])


def test_learned_positions_initialisation():
    positions = LearnedPositions(400, 30)
    assert learned(positions) == {"table": (400, 30)}
    assert positions.table.std().item() == pytest.approx(0.02, rel=0.05)
