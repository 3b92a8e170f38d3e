"""SwiGLU."""

import torch
import torch.nn.functional as F

from course_lib.exercises.catalogue._shared import random_tensor


def swiglu(x, W_gate, W_up, W_down):
    gate = F.silu(x @ W_gate.mT)  # (batch, length, d_ff)
    out = (gate * (x @ W_up.mT)) @ W_down.mT  # (batch, length, d_model)
    return out


MISTAKES = """
F.silu(x @ W_gate.mT) -> x @ W_gate.mT
    Your gate has no activation function. The product is then a quadratic function of x (Shazeer calls it bilinear).
F.silu -> torch.sigmoid
    Your gate is a sigmoid: this is GLU. SiLU(u) is u times the sigmoid of u.
F.silu -> F.relu
    Your gate is a ReLU: this is ReGLU. SwiGLU takes SiLU(u), u times the sigmoid of u.
F.silu -> F.gelu
    Your gate is a GELU: this is GEGLU. SwiGLU takes SiLU(u), u times the sigmoid of u.
x @ W_gate.mT -> x @ W_up.mT
+ x @ W_up.mT)) -> x @ W_gate.mT))
    The projections are exchanged: the activation function belongs to the gate, W_gate.
gate * (x @ W_up.mT) -> gate * F.silu(x @ W_up.mT)
    You apply the activation function to both projections. Only the gate has one.
(gate * (x @ W_up.mT)) -> F.silu(x @ W_gate.mT * (x @ W_up.mT))
    You apply the activation function to the product. It belongs to the gate only.
(gate * (x @ W_up.mT)) -> (gate + x @ W_up.mT)
    You add the gate. It multiplies, elementwise.
(gate * (x @ W_up.mT)) -> gate
    W_up is never used: gate and up projection are multiplied, elementwise.
gate = F.silu(x @ W_gate.mT) -> gate = x @ W_gate.mT
+ out = (gate * (x @ W_up.mT)) @ W_down.mT -> out = F.silu((gate * (x @ W_up.mT)) @ W_down.mT)
    Your SiLU comes last. It is applied to the gate alone, before the product.
return out -> return x + out
    You add the residual connection. SwiGLU is the FFN alone: the block adds x.
"""

CASES = (
    dict(
        x=torch.tensor([[[1.0, -2.0]]]),
        W_gate=torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]),
        W_up=torch.tensor([[2.0, 1.0], [1.0, 1.0], [0.0, -1.0]]),
        W_down=torch.tensor([[1.0, 0.0, 2.0], [0.0, 1.0, -1.0]]),
    ),
    dict(
        x=random_tensor(2, 3, 4, seed=1),
        W_gate=random_tensor(5, 4, seed=2),
        W_up=random_tensor(5, 4, seed=3),
        W_down=random_tensor(4, 5, seed=4),
    ),
)
HINTS = """
Two projections of x to d_ff hidden units, and one back. nn.Linear stores W so that it computes x @ W.mT.
gate = F.silu(x @ W_gate.mT). What happens to the other projection?
Multiply them elementwise, then project back with W_down.
"""
