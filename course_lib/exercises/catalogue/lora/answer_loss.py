"""The loss of the answers alone."""

import torch
import torch.nn.functional as F

from course_lib.exercises.catalogue._shared import random_tensor, token_losses


def answer_loss(logits, tokens, begin, end):
    at = torch.arange(1, tokens.shape[1])  # (length - 1,), the positions that are predicted
    labelled = (at >= begin[:, None]) & (at < end[:, None])  # (batch, length - 1)
    return F.cross_entropy(logits[:, :-1][labelled], tokens[:, 1:][labelled])


def reference(logits, tokens, begin, end):
    losses = token_losses(logits[:, :-1], tokens[:, 1:])  # (batch, length - 1)
    rows = zip(losses, (begin - 1).tolist(), (end - 1).tolist(), strict=True)
    return torch.cat([row[first:last] for row, first, last in rows]).mean()


LOSS = "F.cross_entropy(logits[:, :-1][labelled], tokens[:, 1:][labelled])"
LOSSES = "F.cross_entropy(logits[:, :-1].mT, tokens[:, 1:], reduction='none')"
MISTAKES = rf"""
(at >= begin[:, None]) & (at < end[:, None]) -> at < end[:, None]
    The tokens of the question count too. Only those of the answer are labels: from begin on.
(at >= begin[:, None]) & (at < end[:, None]) -> at >= begin[:, None]
    The padding behind the answer counts too: labels end before end.
(at >= begin[:, None]) & (at < end[:, None]) -> at > 0
    Every position counts: the question, the answer and the padding. Only those from begin to end - 1 are labels.
>= begin[:, None] -> > begin[:, None]
    The first token of each answer is missing: the logits at begin - 1 predict it.
begin[:, None] -> begin[:, None] - 1
    The last token of each question counts too. Labels begin at begin.
< end[:, None] -> <= end[:, None]
    One token behind each answer counts too. Its last token is at end - 1.
end[:, None] -> end[:, None] - 1
    The last token of each answer is missing, at end - 1. Without it the model does not learn to stop.
logits[:, :-1][labelled], tokens[:, 1:][labelled] -> logits[:, 1:][labelled], tokens[:, 1:][labelled]
    You score each token with the logits at its own position. The logits at position t predict token t + 1.
{LOSS} -> ({LOSSES} * labelled).sum()
    This is the sum. Divide by the number of labels.
{LOSS} -> ({LOSSES} * labelled).mean()
    You divide by all positions, labels or not. Divide by the number of labels.
{LOSS} -> (({LOSSES} * labelled).sum(1) / labelled.sum(1)).mean()
    You take the mean of each text, then the mean of these: a token in a short answer weighs more. Take one mean over
    all labels.
begin[:, None] -> begin[:1, None].expand(len(begin), 1)
+ end[:, None] -> end[:1, None].expand(len(end), 1)
    All rows get the answer of the first one. Each has its own begin and end.
"""


def _case(batch, length, begin, end, seed):
    generator = torch.Generator().manual_seed(seed)
    return dict(
        logits=random_tensor(batch, length, 5, seed=seed),
        tokens=torch.randint(5, (batch, length), generator=generator),
        begin=torch.tensor(begin),
        end=torch.tensor(end),
    )


CASES = (
    _case(1, 5, [2], [4], seed=0),
    _case(2, 6, [2, 3], [4, 5], seed=1),
    _case(3, 9, [2, 5, 3], [8, 7, 4], seed=2),
)
HINTS = """
Which logits predict the token at position begin, and which the one at end - 1?
Make a mask (batch, length - 1) of the tokens 1, 2, … that are labels, and shift logits and tokens by one.
Index logits[:, :-1] and tokens[:, 1:] by the mask: cross_entropy of the two is the mean over all labels.
"""
