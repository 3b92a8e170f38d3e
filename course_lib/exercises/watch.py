"""Watch how large the tensors are that a function makes."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


def load() -> None:
    """Import what PyTorch imports with its first dispatch mode: hundreds of modules, seconds on a busy machine."""
    with LargestTensor():
        torch.zeros(1)


class LargestTensor(TorchDispatchMode):
    """Keep number of elements and shape of the largest tensor that an operation returns in this context.

    What is in memory counts: an expanded view has the elements of its base.
    """

    elements, shape = 0, ()

    def __torch_dispatch__(
        self, operation: Callable, types: Iterable, args: tuple = (), kwargs: Mapping | None = None
    ) -> Any:
        result = operation(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, Tensor) and tensor.layout == torch.strided:
                elements = tensor.untyped_storage().nbytes() // tensor.element_size()
                if elements > self.elements:
                    self.elements, self.shape = elements, tuple(tensor.shape)
        return result
