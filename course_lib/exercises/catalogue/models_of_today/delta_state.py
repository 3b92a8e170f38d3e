"""One step of the gated delta rule."""

import torch

from course_lib.exercises.catalogue._shared import random_tensor


def delta_state(S, k, v, g, beta):
    S = S * g.exp()
    return S + beta * torch.outer(k, v - k @ S)  # (d_k, d_v)


def reference(S, k, v, g, beta):
    """As one matrix from the left: decay, erase along k, write."""
    erase = torch.eye(len(k)) - beta * torch.outer(k, k)
    return g.exp() * (erase @ S) + beta * torch.outer(k, v)


def _case(d_k, d_v, seed):
    k = random_tensor(d_k, seed=seed)
    return dict(
        S=random_tensor(d_k, d_v, seed=seed + 1),
        k=k / k.norm(),
        v=random_tensor(d_v, seed=seed + 2),
        g=-random_tensor(1, seed=seed + 3)[0].abs() - 0.1,
        beta=random_tensor(1, seed=seed + 4)[0].sigmoid(),
    )


WRITE = "beta * torch.outer(k, v - k @ S)"
MISTAKES = rf"""
S = S * g.exp() -> pass
    The gate is missing: the old state is multiplied by e^g first.
S = S * g.exp() -> S = S * g
    You multiply by g, a logarithm. The state is multiplied by e^g.
S = S * g.exp() -> S = S * (-g).exp()
    Your state grows: it is multiplied by e^(-g).
S = S * g.exp() -> S = S * g.sigmoid()
    g is the logarithm of what remains: e^g, not a sigmoid.
v - k @ S -> v
    This is the additive rule. Subtract first what the state recalls for k.
v - k @ S -> v + k @ S
    You add what the state recalls. Subtract it: only the difference is written.
{WRITE} -> torch.outer(k, v - k @ S)
    beta is missing: how far the recalled value moves to the new one.
{WRITE} -> torch.outer(k, beta * v - k @ S)
    beta multiplies the new value alone. It multiplies the whole difference.
S + {WRITE} -> (1 - beta) * S + {WRITE}
    The whole state fades by 1 - beta. The rule erases along k alone.
S = S * g.exp() -> old, S = S, S * g.exp()
+ return S + beta * torch.outer(k, v - k @ S) -> return S + beta * torch.outer(k, v - k @ old)
    You read before the decay. What is subtracted is what the decayed state recalls.
S = S * g.exp() -> pass
+ return S + beta * torch.outer(k, v - k @ S) -> return (S + beta * torch.outer(k, v - k @ S)) * g.exp()
    What is written now decays, too. Multiply the old state by e^g first, then write.
"""

CASES = (
    dict(
        S=torch.tensor([[2.0], [0.0]]),
        k=torch.tensor([1.0, 0.0]),
        v=torch.tensor([3.0]),
        g=torch.tensor(-0.5),
        beta=torch.tensor(0.5),
    ),
    _case(3, 4, seed=1),
    _case(5, 3, seed=7),
)
HINTS = """
Three steps: decay, read with k, write the difference times beta.
k @ S is what the state recalls, (d_v,). torch.outer(k, ·) writes.
"""
