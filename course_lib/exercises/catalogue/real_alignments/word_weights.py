"""From a map of tokens to a map of words."""

import torch
import torch.nn.functional as F

from course_lib.exercises.catalogue._shared import random_tensor


def word_weights(weights, source_word, target_word):
    columns = F.one_hot(source_word).to(weights.dtype)  # (source token, source word)
    rows = F.one_hot(target_word).to(weights.dtype)  # (target token, target word)
    rows = rows / rows.sum(dim=0)
    return rows.T @ weights @ columns


def reference(weights, source_word, target_word):
    """Word by word."""
    return torch.stack(
        [
            torch.stack(
                [
                    weights[target_word == t][:, source_word == s].sum(1).mean()
                    for s in source_word.unique()
                ]
            )
            for t in target_word.unique()
        ]
    )


MISTAKES = """
rows / rows.sum(dim=0) -> rows
    A target word of two tokens has weights that sum to 2. Take the mean over its tokens.
@ columns -> @ (columns / columns.sum(dim=0))
    You take the mean over the tokens of a source word, so a word in three pieces gets a third of what it receives.
    Weights on its pieces are weight on the word: add them.
rows / rows.sum(dim=0) -> rows
+ @ columns -> @ (columns / columns.sum(dim=0))
    Mean and sum are exchanged: add over the tokens of a source word, take the mean over those of a target word.
rows / rows.sum(dim=0) -> rows * (rows.cumsum(dim=0) == 1)
    You take the first token of each target word. Take the mean over all of its tokens.
rows / rows.sum(dim=0) -> rows * (rows.flip(0).cumsum(dim=0).flip(0) == 1)
    You take the last token of each target word. Take the mean over all of its tokens.
@ columns -> @ (columns * (columns.cumsum(dim=0) == 1))
    You take the first token of each source word, so weight on its other tokens is lost. Add over all of them.
rows.T @ weights @ columns -> torch.stack([(rows.T @ weights)[:, source_word == n].amax(1) for n in range(columns.shape[1])], dim=1)
    You take the largest weight among the tokens of a source word. Add them: together they are the weight on the word.
rows.T @ weights @ columns -> (rows.T @ weights @ columns).softmax(dim=-1)
    You apply a softmax to weights. Sums and means of weights are weights already.
rows.T @ weights @ columns -> (rows.T @ weights @ columns).T
    Your map is transposed: a row for each target word, a column for each source word.
rows / rows.sum(dim=0) -> rows / len(rows)
    You divide by the number of target tokens. Divide by the number of tokens of each word.
rows.T @ weights @ columns -> weights @ columns
    Your rows are still those of tokens. A target word has one row, the mean of the rows of its tokens.
rows.T @ weights @ columns -> rows.T @ weights
    Your columns are still those of tokens. A source word has one column, the sum of those of its tokens.
"""


def _of(*words):
    return torch.tensor(words)


CASES = (
    dict(
        weights=torch.tensor([[0.3, 0.3, 0.4], [0.1, 0.1, 0.8]]),
        source_word=_of(0, 0, 1),
        target_word=_of(0, 1),
    ),
    dict(
        weights=torch.tensor([[0.5, 0.1, 0.4], [0.1, 0.1, 0.8], [0.0, 0.9, 0.1]]),
        source_word=_of(0, 1, 1),
        target_word=_of(0, 1, 1),
    ),
    dict(
        weights=random_tensor(5, 7, seed=12).softmax(dim=-1),
        source_word=_of(0, 1, 1, 1, 2, 3, 3),
        target_word=_of(0, 0, 0, 1, 2),
    ),
)
HINTS = """
A word in three pieces receives weight on each piece. How much weight does the word receive?
The weights of a target word must still sum to 1. What does that say about its rows?
F.one_hot(source_word) is (source token, source word): weights @ it adds columns. Divide F.one_hot(target_word) by its
    sums over tokens, and rows.T @ weights takes means.
"""
DIFFERENTIABLE = False
