"""Clamped SwiGLU."""

import torch
import torch.nn.functional as F

from course_lib.exercises.catalogue._shared import random_tensor


def clamped_swiglu(gate_up, limit):
    gate, up = gate_up.chunk(2, dim=-1)
    return F.silu(gate.clamp(max=limit)) * up.clamp(-limit, limit)


def reference(gate_up, limit):
    """By slices, with minima and maxima."""
    d_ff = gate_up.shape[-1] // 2
    gate = torch.minimum(gate_up[..., :d_ff], torch.tensor(limit))
    up = torch.maximum(
        torch.minimum(gate_up[..., d_ff:], torch.tensor(limit)), torch.tensor(-limit)
    )
    return gate * gate.sigmoid() * up


SPLIT = "gate_up.chunk(2, dim=-1)"
MISTAKES = rf"""
gate, up = {SPLIT} -> up, gate = {SPLIT}
    Your halves are the other way round: the gate comes first.
{SPLIT} -> gate_up[..., ::2], gate_up[..., 1::2]
    You take every second component, as gpt-oss does. Here the first half is the gate.
gate.clamp(max=limit) -> gate
    The gate is not clamped. It is, from above.
gate.clamp(max=limit) -> gate.clamp(-limit, limit)
    You clamp the gate from below, too. It is clamped from above alone.
F.silu(gate.clamp(max=limit)) -> F.silu(gate).clamp(max=limit)
    You clamp after the SiLU. The gate is clamped before it.
up.clamp(-limit, limit) -> up
    The second half is not clamped. It is, on both sides.
up.clamp(-limit, limit) -> up.clamp(max=limit)
    You clamp the second half from above alone. It is clamped on both sides.
F.silu( -> torch.sigmoid(
    This is a sigmoid. SiLU(x) is x times its sigmoid.
F.silu( -> F.gelu(
    This is a GELU. SwiGLU has SiLU.
"""

CASES = (
    dict(gate_up=torch.tensor([[3.0, -4.0, 5.0, -6.0]]), limit=2.0),
    dict(gate_up=3 * random_tensor(4, 6, seed=1), limit=1.5),
    dict(gate_up=3 * random_tensor(3, 10, seed=2), limit=0.5),
)
HINTS = """
Split the last axis into two halves: the gate, then what it multiplies.
clamp(max=limit) bounds from above, clamp(-limit, limit) on both sides. The SiLU comes after the clamp.
"""
