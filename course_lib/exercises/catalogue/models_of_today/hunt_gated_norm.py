"""Bug hunt: the gated norm."""

import torch
import torch.nn.functional as F

from course_lib.exercises.catalogue._shared import random_tensor


def gated_norm(o, z):
    normal = o * torch.rsqrt(o.square().mean(-1, keepdim=True) + 1e-6)
    return normal * torch.nn.functional.silu(z)


def reference(o, z):
    return F.rms_norm(o, o.shape[-1:], eps=1e-6) * z * z.sigmoid()


BUGS = """
normal = o * torch.rsqrt(o.square().mean(-1, keepdim=True) + 1e-6) -> gated = o * torch.nn.functional.silu(z)
+ return normal * torch.nn.functional.silu(z) -> return gated * torch.rsqrt(gated.square().mean(-1, keepdim=True) + 1e-6)
    the gate is applied before the norm, which divides what it has changed by its size again
"""
MISTAKES = """
silu(z) -> silu(z).sigmoid()
    The gate is SiLU(z), which can be larger than 1: no further sigmoid.
torch.nn.functional.silu(z) -> z
    Your gate is z itself, without SiLU.
torch.nn.functional.silu(z) -> z.sigmoid()
    Your gate is a sigmoid. SiLU(z) is z times it.
torch.nn.functional.silu(z) -> torch.nn.functional.silu(z * torch.rsqrt(z.square().mean(-1, keepdim=True) + 1e-6))
    You normalise z as well, so the gate no longer sees its size. Only o is normalised.
mean(-1, keepdim=True) -> sum(-1, keepdim=True)
    You divide by the length of the vector. RMSNorm divides by the root of the mean of the squares.
mean(-1, keepdim=True) -> mean(0, keepdim=True)
    You take the mean over the tokens. Each vector is normalised by itself.
"""

CASES = (
    dict(o=torch.tensor([[2.0, 2.0]]), z=torch.tensor([[1.0, 3.0]])),
    dict(o=random_tensor(4, 6, seed=1), z=random_tensor(4, 6, seed=2)),
    dict(o=3 * random_tensor(7, 5, seed=3), z=random_tensor(7, 5, seed=4)),
)
HINTS = """
With z the same in all components, which outputs should depend on its size?
A norm undoes every common factor. So the gate comes after it.
"""
