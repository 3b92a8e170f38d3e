"""Exact match by the number of digits."""

import torch


def match_by_length(tokens, labels, longest):
    real = labels != 0  # (batch, steps)
    right = ((tokens == labels) | ~real).all(dim=1).float()  # (batch,)
    lengths = real.sum(dim=1) - 1  # without <eos>
    shares = torch.zeros(longest + 1)
    for n in range(longest + 1):
        if (lengths == n).any():
            shares[n] = right[lengths == n].mean()
    return shares


MISTAKES = r"""
real.sum(dim=1) - 1 -> real.sum(dim=1)
    Your lengths count <eos>, so each share stands one position too far right. A string of n digits has n + 1 labels.
((tokens == labels) | ~real) -> (tokens == labels)
    What the model generates after <eos> counts as an error in your code. Positions where the label is <pad> are right
    whatever stands there.
((tokens == labels) | ~real).all(dim=1).float() -> ((tokens == labels) & real).sum(dim=1) / real.sum(dim=1)
    These are the shares of right tokens. A string counts as right only if all of its tokens are.
((tokens == labels) | ~real).all(dim=1).float() -> ((tokens == labels) | ~real).any(dim=1).float()
    A string counts as right in your code as soon as one token is. All of them must be: all(dim=1).
(tokens == labels) | ~real -> (tokens == labels) | ~real | (labels == 2)
    You leave <eos> out. A model that does not stop has not copied the string: <eos> is a label like the others.
right[lengths == n].mean() -> right[lengths == n].sum() / len(right)
    You divide by the number of all strings. Divide by the number of strings of this length.
right[lengths == n].mean() -> right[lengths == n].sum()
    These are counts. Divide each by the number of strings of its length.
right[lengths == n].mean() -> 1 - right[lengths == n].mean()
    These are the shares with an error. Return those without.
right[lengths == n].mean() -> right[lengths <= n].mean()
    You average over all strings up to this length. Take those of exactly this length.
labels != 0 -> tokens != 0
    You take padding and lengths from what was generated. They are those of the labels.
torch.zeros(longest + 1) -> torch.zeros(longest + 1) / 0
    A length that does not occur gives NaN in your code. Its share is 0 here.
return shares -> return shares[1:]
    Your result begins with strings of one digit. It has longest + 1 entries, and entry n is that of n digits.
lengths = real.sum(dim=1) - 1 -> lengths = (tokens != 0).sum(dim=1) - 1
    You group by the length of what was generated. Group by the length of the label.
"""

_LABELS = torch.tensor([[5, 2, 0, 0], [6, 7, 2, 0], [8, 9, 2, 0], [4, 5, 6, 2]])
_TOKENS = torch.tensor([[5, 2, 7, 2], [6, 7, 2, 2], [8, 3, 2, 0], [4, 5, 6, 2]])


def _batch(count, seed):
    """Strings of 1 to 5 digits, and what a poor model generates for them."""
    random = torch.Generator().manual_seed(seed)
    steps = torch.arange(7)
    lengths = torch.randint(1, 6, (count, 1), generator=random)
    labels = torch.randint(3, 13, (count, 7), generator=random)
    labels[(steps == lengths).expand_as(labels)] = 2
    labels[(steps > lengths).expand_as(labels)] = 0
    noise = torch.rand(count, 7, generator=random)
    other = torch.randint(0, 13, (count, 7), generator=random)
    return torch.where((noise < 0.15) | (labels == 0), other, labels), labels


_MANY, _WANTED = _batch(60, seed=5)

CASES = (
    dict(  # it does not stop where it should
        tokens=torch.tensor([[5, 9, 9], [6, 7, 9], [8, 2, 3]]),
        labels=torch.tensor([[5, 2, 0], [6, 7, 2], [8, 2, 0]]),
        longest=2,
    ),
    dict(tokens=_TOKENS, labels=_LABELS, longest=3),
    dict(tokens=_MANY, labels=_WANTED, longest=6),
)
HINTS = """
First one boolean per string: right where the token is the label, or where the label is padding.
The number of digits of a string is the number of labels that are not 0, minus one for <eos>.
shares[n] = right[lengths == n].mean(), where there is a string of that length.
"""
DIFFERENTIABLE = False
