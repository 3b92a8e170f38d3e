"""What each head adds to the output."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.transformer.multihead import merge_heads


def head_contributions(heads, W_o):
    batch, num_heads, length, d_head = heads.shape
    columns = W_o.view(-1, num_heads, d_head)  # (d_model, heads, d_head)
    return heads @ columns.permute(1, 2, 0)  # (heads, d_head, d_model) broadcasts over the batch


def reference(heads, W_o):
    """Each head alone, with zeros in the components of the others, through the whole output projection."""
    alone = []
    for i in range(heads.shape[1]):
        kept = torch.zeros_like(heads)
        kept[:, i] = heads[:, i]
        alone.append(merge_heads(kept) @ W_o.mT)
    return torch.stack(alone, dim=1)


TERMS = "heads @ columns.permute(1, 2, 0)"
ALONE = "torch.eye(num_heads)[:, :, None, None] * heads[:, None]"
OUTPUT = "heads.transpose(1, 2).flatten(2) @ W_o.T"
MISTAKES = f"""
{TERMS} -> heads @ W_o.view(num_heads, d_head, -1)
    You use the rows of W_o. It is applied as x @ W_o.T, so component j of the concatenation meets column j: head i
    has d_head consecutive columns.
W_o.view(-1, num_heads, d_head) -> W_o.view(-1, d_head, num_heads).mT
    You give head i every num_heads-th column. A head has d_head consecutive components of the concatenation, so
    consecutive columns.
{TERMS} -> ({TERMS}).sum(dim=1)
    This is the sum over the heads, the output of the layer. Keep the axis of the heads.
{TERMS} -> ({OUTPUT})[:, None].expand(-1, num_heads, -1, -1)
    Every head gets the whole output. A contribution uses the components of one head only.
{TERMS} -> {TERMS} / num_heads
    You divide by the number of heads. The output is the sum of the contributions, not their mean.
{TERMS} -> ({TERMS}).transpose(1, 2)
    Yours is (batch, length, heads, d_model). The heads come before the positions.
{TERMS} -> heads @ W_o[:, :d_head].T
    Every head uses the columns of head 0. Head i has the columns from i · d_head on.
columns.permute -> columns.roll(1, dims=1).permute
    Each head uses the columns of the head before it. Head i, counted from 0, has the columns from i · d_head to (i +
    1) · d_head.
return heads -> return heads.reshape(batch, length, num_heads, d_head).transpose(1, 2)
    You move the axis of the heads with a view, so a row holds parts of other positions. Axes are exchanged with
    transpose, or keep them as they are.
{TERMS} -> ({TERMS}).cumsum(dim=1)
    You add up the terms from head to head. Each term is that of one head alone.
{TERMS} -> ({ALONE}).reshape(batch, num_heads, length, -1) @ W_o.T
    You merge the heads without transposing back, so a row holds several positions of one head. First transpose(1, 2),
    then merge the last two axes.
columns.permute -> columns.roll(-1, dims=1).permute
    Each head uses the columns of the head after it. Head i, counted from 0, has the columns from i · d_head to (i +
    1) · d_head.
columns.permute -> columns.flip(1).permute
    You count the heads from the last one. Head 0 has the first d_head columns.
{TERMS} -> heads @ W_o.view(d_head, num_heads, -1).transpose(0, 1)
    You give head i every num_heads-th row of W_o. Its d_head components of the concatenation meet consecutive
    columns.
{TERMS} -> ({OUTPUT})[:, None] - {TERMS}
    This is the output without each head. Return what each head adds.
{TERMS} -> ({TERMS}).sum(dim=2)
    You add up the positions. Keep their axis.
{TERMS} -> ({TERMS}).mean(dim=1)
    This is the mean over the heads. Keep their axis.
W_o.view(-1, num_heads, d_head) -> W_o.view(num_heads, d_head, -1)
+ columns.permute(1, 2, 0) -> columns.mT
    You use the rows of W_o, transposed. Component j of the concatenation meets column j: heads @ W_o[:, columns].T.
heads @ columns.permute(1, 2, 0) -> (heads @ columns.permute(1, 2, 0)).mean(dim=1, keepdim=True).expand(-1, num_heads, -1, -1)
    Every head gets an equal share of the output. Each adds what its own columns of W_o give.
heads @ columns.permute(1, 2, 0) -> (heads.transpose(1, 2).flatten(2) @ W_o.T).view(batch, length, num_heads, d_head).transpose(1, 2)
    You split the output into parts. Every head writes to all d_model components: split the columns of W_o.
"""

CASES = (
    dict(heads=torch.tensor([[[[1.0, 0.0]], [[0.0, 2.0]]]]), W_o=torch.arange(16.0).view(4, 4)),
    dict(heads=random_tensor(2, 3, 5, 4, seed=1), W_o=random_tensor(12, 12, seed=2)),
)
HINTS = """
The concatenation of a position has d_model components. Which of them come from head 0, and which columns of W_o do
    they meet in x @ W_o.T?
W_o.view(d_model, num_heads, d_head) splits the columns by head.
heads[:, i] @ W_o[:, i * d_head : (i + 1) * d_head].T is the term of head i.
"""
