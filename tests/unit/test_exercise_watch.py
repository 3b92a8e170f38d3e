"""The text of some exercises forbids large tensors, and the check measures them."""

import pytest
import torch
import torch.nn.functional as F

from course_lib.exercises.grading import grade
from course_lib.exercises.watch import LargestTensor


def masked_blocks(q, k, v, size):
    block = torch.arange(len(q)) // size
    return F.scaled_dot_product_attention(q, k, v, block[:, None] == block)


def padded_blocks(q, k, v, size):
    n = len(q)
    q, k, v = (F.pad(x, (0, 0, 0, -n % size)).unflatten(0, (-1, size)) for x in (q, k, v))
    exists = (torch.arange(q.shape[0] * size) < n).view(-1, 1, size)
    return F.scaled_dot_product_attention(q, k, v, exists).flatten(0, 1)[:n]


def masked_window(q, k, v, w):
    place = torch.arange(len(q))
    near = (place[:, None] - place).abs() <= w
    scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~near, -torch.inf)
    return torch.softmax(scores, dim=-1) @ v


def rolled_window(q, k, v, w):
    keys, values = (F.pad(x, (0, 0, w, w)).unfold(0, 2 * w + 1, 1) for x in (k, v))
    exists = F.pad(torch.ones(len(q), dtype=torch.bool), (w, w)).unfold(0, 2 * w + 1, 1)
    scores = (q[:, :, None] * keys).sum(dim=1) / q.shape[-1] ** 0.5
    weights = torch.softmax(scores.masked_fill(~exists, -torch.inf), dim=-1)
    return (values @ weights[:, :, None])[:, :, 0]


def dense(q, k, v, block):
    return torch.softmax(q @ k.T / q.shape[-1] ** 0.5, -1) @ v


@pytest.mark.parametrize(
    ("name", "attempt", "state"),
    [
        ("within_blocks", masked_blocks, "tried"),
        ("within_blocks", padded_blocks, "passed"),
        ("hunt_border", masked_window, "tried"),
        ("hunt_border", rolled_window, "passed"),
        ("hunt_online", dense, "tried"),
    ],
)
def test_a_masked_dense_map_is_no_sparse_attention(name, attempt, state):
    report = grade(name, attempt, seconds=30)
    assert report.state == state, str(report)
    assert ("makes a tensor of shape" in report.message) == (state == "tried")


def test_memory_counts_and_not_the_shape():
    x = torch.zeros(10)
    with LargestTensor() as largest:
        x.expand(100, 10)
        x[:, None].repeat(1, 3)
    assert (largest.elements, largest.shape) == (30, (10, 3))
