"""The copying score of a head."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor


def copying_score(x, W_v, W_o, unembedding):
    written = x @ W_v.T @ W_o.T  # (tokens, d)
    logits = written @ unembedding.T  # (tokens, tokens)
    best = logits.argmax(dim=-1)
    return (best == torch.arange(len(x))).float().mean()


def reference(x, W_v, W_o, unembedding):
    """The OV circuit as one matrix, token by token."""
    circuit = (W_o.double() @ W_v.double()).T  # (d, d)
    hits = 0
    for i, row in enumerate(x.double()):
        own = row @ circuit @ unembedding[i].double()
        rivals = [row @ circuit @ other.double() for other in unembedding]
        hits += own >= max(rivals)
    return torch.tensor(hits / len(x), dtype=x.dtype)


MISTAKES = r"""
x @ W_v.T @ W_o.T -> x @ W_v.T @ W_v
    You leave out W_o: what a head writes is x W_v and then W_o.
x @ W_v.T @ W_o.T -> x
    You score the tokens themselves. The head writes x W_v W_o.
argmax(dim=-1) -> argmax(dim=0)
    For each logit you look for the token that raises it most. For each token, look for the logit that it raises most:
    dim=-1.
argmax(dim=-1) -> argmin(dim=-1)
    You look for the logit that is lowered most.
logits.argmax(dim=-1) -> logits.abs().argmax(dim=-1)
    A large negative number lowers the logit. Leave out abs.
.float().mean() -> .float().sum()
    This is a number of tokens. Return the share.
.float().mean() -> .float()
    This says which tokens are copied. Return their share.
(best == torch.arange(len(x))).float().mean() -> (logits.diagonal() > 0).float().mean()
    You ask whether the own logit rises at all. It must rise more than every other one.
(best == torch.arange(len(x))).float().mean() -> logits.softmax(dim=-1).diagonal().mean()
    This is a mean probability. Return for what share of the tokens the own logit is the largest.
(best == torch.arange(len(x))).float().mean() -> (logits.diagonal() > logits.mean(dim=1)).float().mean()
    You compare the own logit with the mean of its row. It must be the largest.
(best == torch.arange(len(x))).float().mean() -> (logits.diagonal()[:, None] > logits).sum() / (len(x) * (len(x) - 1))
    This is a share of pairs: how many logits the own one exceeds. Return for what share of the tokens it is the largest.
x @ W_v.T @ W_o.T -> x + x @ W_v.T @ W_o.T
    You add the token itself. The head writes x W_v W_o alone.
"""


def _case(tokens, d, d_head, seed):
    E = random_tensor(tokens, d, seed=seed)
    W_v = random_tensor(d_head, d, seed=seed + 1)
    noise = random_tensor(d, d_head, seed=seed + 2)
    return dict(x=E, W_v=W_v, W_o=W_v.T + 1.5 * noise, unembedding=E)


CASES = (
    dict(
        x=torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]),
        W_v=torch.tensor([[1.0, -2.0]]),
        W_o=torch.tensor([[2.0], [1.0]]),
        unembedding=torch.tensor([[1.0, 0.0], [0.0, 1.0], [3.0, -3.0]]),
    ),
    _case(6, 5, 3, seed=1),
    _case(9, 8, 4, seed=11),
    _case(16, 12, 6, seed=21),
)
HINTS = """
What does the head write if it attends to token i alone?
written = x @ W_v.T @ W_o.T; its logits are written @ unembedding.T.
Compare the best column of each row with the number of the row.
"""
DIFFERENTIABLE = False
