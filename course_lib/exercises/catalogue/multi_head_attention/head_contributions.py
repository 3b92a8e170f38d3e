"""Exercise `head_contributions` of notebook 05."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.multihead import merge_heads


def head_contributions(heads, W_o):
    batch, num_heads, length, d_head = heads.shape
    columns = W_o.view(-1, num_heads, d_head)  # (d_model, heads, d_head)
    return heads @ columns.permute(1, 2, 0)  # (heads, d_head, d_model) broadcasts over the batch


def _masked_concatenation(heads, W_o):
    """Each head alone, with zeros in the components of the others, through the whole output projection."""
    alone = []
    for i in range(heads.shape[1]):
        kept = torch.zeros_like(heads)
        kept[:, i] = heads[:, i]
        alone.append(merge_heads(kept) @ W_o.mT)
    return torch.stack(alone, dim=1)


def _merged_by_view(heads, W_o):
    batch, num_heads, length, _ = heads.shape
    alone = torch.eye(num_heads, dtype=heads.dtype)[:, :, None, None] * heads[:, None]
    return alone.reshape(batch, num_heads, length, -1) @ W_o.mT


def _rows(heads, W_o):
    return heads @ W_o.reshape(heads.shape[1], heads.shape[-1], -1)


def _every_hth_column(heads, W_o):
    num_heads = heads.shape[1]
    return heads @ torch.stack([W_o[:, i::num_heads].mT for i in range(num_heads)])


EXERCISE = Exercise(
    name="head_contributions",
    notebook="05_multi_head_attention",
    title="What each head adds to the output",
    reference=_masked_concatenation,
    solution=head_contributions,
    cases=(
        Case(
            heads=torch.tensor([[[[1.0, 0.0]], [[0.0, 2.0]]]]),
            W_o=torch.arange(16.0).view(4, 4),
        ),
        Case(heads=random_tensor(2, 3, 5, 4, seed=1), W_o=random_tensor(12, 12, seed=2)),
    ),
    mistakes=(
        Mistake(
            "rows",
            _rows,
            "You use the rows of W_o. It is applied as x @ W_o.T, so component j of the concatenation meets column j: "
            "head i has d_head consecutive columns.",
        ),
        Mistake(
            "every_hth_column",
            _every_hth_column,
            "You give head i every num_heads-th column. A head has d_head consecutive components of the "
            "concatenation, so consecutive columns.",
        ),
        Mistake(
            "summed",
            lambda heads, W_o: _masked_concatenation(heads, W_o).sum(1),
            "This is the sum over the heads, the output of the layer. Keep the axis of the heads.",
        ),
        Mistake(
            "shared",
            lambda heads, W_o: (merge_heads(heads) @ W_o.mT)[:, None].expand(
                -1, heads.shape[1], -1, -1
            ),
            "Every head gets the whole output. A contribution uses the components of one head only.",
        ),
        Mistake(
            "divided",
            lambda heads, W_o: _masked_concatenation(heads, W_o) / heads.shape[1],
            "You divide by the number of heads. The output is the sum of the contributions, not their mean.",
        ),
        Mistake(
            "heads_last",
            lambda heads, W_o: _masked_concatenation(heads, W_o).transpose(1, 2),
            "Yours is (batch, length, heads, d_model). The heads come before the positions.",
        ),
        Mistake(
            "columns_of_head_0",
            lambda heads, W_o: heads @ W_o[:, : heads.shape[-1]].mT,
            "Every head uses the columns of head 0. Head i has the columns from i · d_head on.",
        ),
        Mistake(
            "columns_of_another_head",
            lambda heads, W_o: _masked_concatenation(heads, W_o.roll(heads.shape[-1], 1)),
            "Each head uses the columns of the head before it. Head i, counted from 0, has the columns from i · d_head to "
            "(i + 1) · d_head.",
        ),
        Mistake(
            "heads_by_view",
            lambda heads, W_o: _masked_concatenation(
                heads.reshape(len(heads), heads.shape[2], heads.shape[1], -1).transpose(1, 2), W_o
            ),
            "You move the axis of the heads with a view, so a row holds parts of other positions. Axes are exchanged with "
            "transpose, or keep them as they are.",
        ),
        Mistake(
            "cumulative",
            lambda heads, W_o: _masked_concatenation(heads, W_o).cumsum(1),
            "You add up the terms from head to head. Each term is that of one head alone.",
        ),
        Mistake(
            "merged_by_view",
            _merged_by_view,
            "You merge the heads without transposing back, so a row holds several positions of one head. First "
            "transpose(1, 2), then merge the last two axes.",
        ),
    ),
    hints=(
        "The concatenation of a position has d_model components. Which of them come from head 0, and which columns "
        "of W_o do they meet in x @ W_o.T?",
        "W_o.view(d_model, num_heads, d_head) splits the columns by head.",
        "heads[:, i] @ W_o[:, i * d_head : (i + 1) * d_head].T is the term of head i.",
    ),
)
