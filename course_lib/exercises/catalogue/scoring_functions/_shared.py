"""Tensors of several exercises of notebook 02."""

import torch

QUERY = torch.tensor([[1.0, 0.0], [0.0, 2.0]])  # (2, 2)
KEY = torch.tensor([[2.0, 1.0], [0.0, 1.0], [-1.0, 3.0]])  # (3, 2)
