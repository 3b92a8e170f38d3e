"""Bug hunt: the longest sentences."""

import torch


def text_lengths(tokens, eos_id):
    ended = tokens == eos_id  # (sentences, length)
    first = ended.int().argmax(dim=-1)
    return torch.where(ended.any(dim=-1), first, tokens.shape[1])


def reference(tokens, eos_id):
    """Row by row, in lists."""
    rows = tokens.tolist()
    return torch.tensor([row.index(eos_id) if eos_id in row else len(row) for row in rows])


WHOLE = "torch.where(ended.any(dim=-1), first, tokens.shape[1])"
GIVEN = f"{WHOLE} -> first"
MISTAKES = f"""
ended.any(dim=-1) -> first > 0
{WHOLE} -> torch.where(first == 0, tokens.shape[1], first)
    A text that begins with the end token is empty: its length is 0. Position 0 does not tell whether there is an end
    token; ended.any does.
tokens.shape[1] -> tokens.shape[1] - 1
    A text that was cut off has all its tokens, tokens.shape[1]. You drop the last one.
, first, tokens -> , first + 1, tokens
    You count the end token. The text ends before it.
ended.int().argmax(dim=-1) -> (~ended).sum(dim=-1)
{WHOLE} -> (~ended).sum(dim=-1)
    You count all tokens but end tokens, also those after the first of them. The text ends at the first one.
ended.int().argmax(dim=-1) -> tokens.shape[1] - 1 - ended.flip(-1).int().argmax(dim=-1)
    You cut at the last end token. The text ends at the first one.
ended.any(dim=-1) -> ended.any()
    You ask whether any text of the batch has ended. Ask each: ended.any(dim=-1).
ended.any(dim=-1) -> ended.all(dim=-1)
{WHOLE} -> torch.full_like(first, tokens.shape[1])
    Every text has the whole length now. Those with an end token stop there.
ended.any(dim=-1), first, tokens.shape[1] -> ended.any(dim=-1), tokens.shape[1], first
    The two choices are exchanged: with an end token, the length is its position.
tokens.shape[1] -> tokens.shape[0]
    tokens.shape[0] is the number of texts. Their length is tokens.shape[1].
tokens.shape[1] -> -1
    -1 is no length. A text without an end token has tokens.shape[1] tokens.
argmax(dim=-1) -> argmax(dim=0)
{WHOLE} -> first
+ argmax(dim=-1) -> argmax(dim=0)
    Your argmax runs over the texts of the batch. It was right: dim=-1, over the tokens of a text.
"""

CASES = (
    dict(tokens=torch.tensor([[3, 4, 4], [4, 3, 3]]), eos_id=1),
    dict(tokens=torch.tensor([[7, 2, 0, 0], [8, 9, 5, 5]]), eos_id=2),
    dict(tokens=torch.tensor([[7, 5, 2, 0], [2, 0, 0, 0], [6, 6, 8, 9]]), eos_id=2),
    dict(
        tokens=torch.tensor([[5, 1, 4, 1, 0], [9, 9, 6, 5, 1], [1, 7, 1, 7, 7], [6, 7, 6, 7, 8]]),
        eos_id=1,
    ),
)
HINTS = """
What does argmax return for a row in which nothing is largest?
Two texts get 0: one that begins with the end token, and one that has none. Only one of them is empty.
ended.any(dim=-1) says which texts have an end token; the others have tokens.shape[1] tokens.
"""
DIFFERENTIABLE = False
