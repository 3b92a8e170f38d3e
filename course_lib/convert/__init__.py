"""Weights from and to PyTorch's layers, and between the versions of multi-head attention.

PyTorch's boolean masks have the opposite convention: in `nn.MultiheadAttention` and `nn.Transformer`, True
means that a key is masked.
"""

from course_lib.convert.attention import from_per_head, to_torch
from course_lib.convert.torch import from_torch

__all__ = ["from_per_head", "from_torch", "to_torch"]
