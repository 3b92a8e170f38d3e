"""Weights of the experts."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor


def expert_weights(scores, bias, k):
    chosen = (scores + bias).topk(k, dim=-1).indices  # (token, k)
    weights = scores.gather(-1, chosen)
    weights = weights / weights.sum(dim=-1, keepdim=True)
    return torch.zeros_like(scores).scatter(-1, chosen, weights)  # (token, expert)


def reference(scores, bias, k):
    """Expert by expert: it is chosen if fewer than k others are better."""
    choice = scores + bias
    better = (choice[:, None, :] > choice[:, :, None]).sum(dim=-1)  # (token, expert)
    kept = torch.where(better < k, scores, 0.0)
    return kept / kept.sum(dim=-1, keepdim=True)


def _case(tokens, experts, k, seed):
    bias = random_tensor(experts, seed=seed + 1) / 2
    return dict(scores=random_tensor(tokens, experts, seed=seed).sigmoid(), bias=bias, k=k)


CHOSEN = "(scores + bias).topk(k, dim=-1).indices"
MISTAKES = rf"""
{CHOSEN} -> scores.topk(k, dim=-1).indices
    You choose without the bias. It decides who is chosen, so that idle experts get tokens.
{CHOSEN} -> (scores - bias).topk(k, dim=-1).indices
    You subtract the bias. It is added to the scores.
{CHOSEN} -> (scores * bias).topk(k, dim=-1).indices
    You multiply by the bias. It is added to the scores.
{CHOSEN} -> (scores + bias).topk(k, dim=-1, largest=False).indices
    You choose the experts with the lowest sums. The highest are chosen.
weights = scores.gather -> weights = (scores + bias).gather
    The bias is in your weights. It counts for choosing alone: gather from `scores`.
weights = weights / weights.sum(dim=-1, keepdim=True) -> pass
    Your weights do not sum to 1. Divide by the sum of the chosen scores.
weights / weights.sum(dim=-1, keepdim=True) -> weights / scores.sum(dim=-1, keepdim=True)
    You divide by the sum over all experts. Divide by that of the chosen ones.
weights / weights.sum(dim=-1, keepdim=True) -> weights.softmax(dim=-1)
    You take a softmax of the chosen scores. Divide them by their sum.
scatter(-1, chosen, weights) -> scatter(-1, chosen, 1 / k)
    All chosen experts weigh the same here. Each weighs by its score.
torch.zeros_like(scores).scatter(-1, chosen, weights) -> weights
    You return the weights of the chosen experts alone, (token, k). Scatter them into zeros: (token, expert).
scatter(-1, chosen, weights) -> scatter(-1, chosen, 1.0)
    These are ones for the chosen experts. Write their weights.
"""

CASES = (
    dict(scores=torch.tensor([[0.5, 0.4, 0.3]]), bias=torch.tensor([0.0, 0.0, 0.5]), k=2),
    _case(4, 5, 2, seed=1),
    _case(6, 8, 3, seed=5),
)
HINTS = """
Two steps: choose by scores + bias, weigh by scores.
topk(...).indices are (token, k); gather reads the scores there, scatter writes into zeros.
"""
