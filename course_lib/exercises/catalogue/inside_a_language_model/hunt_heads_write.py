"""Bug hunt: what each head writes."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor


def heads_write(z, W_o):
    length, heads, d_head = z.shape
    per_head = W_o.T.view(heads, d_head, -1)  # (heads, d_head, d)
    return z.transpose(0, 1) @ per_head  # (heads, length, d)


def reference(z, W_o):
    """Each head alone, with zeros in the components of the others, through the whole projection."""
    alone = torch.eye(z.shape[1])[:, None, :, None] * z  # (heads, length, heads, d_head)
    return alone.flatten(-2) @ W_o.T


PER_HEAD = "W_o.T.view(heads, d_head, -1)"
BUGS = f"""
{PER_HEAD} -> W_o.view(heads, d_head, -1)
    head i uses rows of W_o, but nn.Linear computes x @ W_o.T: component j of the input meets column j
"""
WRITES = "z.transpose(0, 1) @ per_head"
MISTAKES = rf"""
{PER_HEAD} -> W_o.T.view(d_head, heads, -1).transpose(0, 1)
{PER_HEAD} -> W_o.view(-1, d_head, heads).permute(2, 1, 0)
    Head i gets every heads-th column of W_o. Its d_head components are consecutive, so its columns are too.
{PER_HEAD} -> W_o.view(heads, -1, d_head).mT
    You cut the rows of W_o into heads. Component j of the input meets column j: cut the columns.
{WRITES} -> ({WRITES}).sum(dim=0)
    This is the output of the layer. Keep the axis of the heads.
{WRITES} -> ({WRITES}).transpose(0, 1)
    Yours is (length, heads, d). The heads come first.
{WRITES} -> z.reshape(heads, length, d_head) @ per_head
    A view moves no axis: a row of yours mixes heads and positions. z.transpose(0, 1) was right.
{WRITES} -> ({WRITES}) / heads
    The output is the sum of what the heads write, not their mean.
{WRITES} -> (z.flatten(1) @ W_o.T).expand(heads, -1, -1)
    Every head writes the whole output of the layer here. Use its own d_head components.
z.transpose(0, 1) @ per_head -> (z.transpose(0, 1) @ per_head).mean(dim=0).expand(heads, -1, -1)
    Every head gets an equal share of the output. Each writes what its own part of z gives.
"""

CASES = (
    dict(z=torch.tensor([[[1.0], [2.0]]]), W_o=torch.tensor([[1.0, 2.0], [3.0, 4.0]])),
    dict(z=random_tensor(3, 2, 2, seed=1), W_o=random_tensor(4, 4, seed=2)),
    dict(z=random_tensor(5, 3, 2, seed=3), W_o=random_tensor(6, 6, seed=4)),
)
HINTS = """
With z = 1 in head 0 and 0 elsewhere, the layer returns a column of W_o. Which one, and what does the function use?
nn.Linear computes x @ W_o.T. So head i meets the columns i · d_head to (i + 1) · d_head - 1.
"""
