"""What a computation costs: time on this machine, and memory."""

import weakref
from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.benchmark import Timer

__all__ = ["milliseconds", "peak_memory"]


def milliseconds(
    function: Callable[[], object], *, seconds: float = 0.1, threads: int = 1
) -> float:
    """Return the median time of one call, in milliseconds, over as many calls as fit into `seconds`.

    On one thread where `threads` is left out: what else runs on the machine then matters least.
    """
    timer = Timer("function()", globals={"function": function}, num_threads=threads)
    return 1000 * timer.blocked_autorange(min_run_time=seconds).median


def peak_memory(function: Callable[[], object]) -> int:
    """Return how many bytes of new tensors lived at most at one time during one call.

    The same number on every machine: it counts what each operation hands out, until it is dropped. What
    lived before the call does not count, nor what an operation uses inside and frees, nor tensors made
    from Python lists, nor the growth of one that is resized.

    Raises:
        ValueError: for sparse tensors.
    """
    with _Counting() as counting:
        function()
    return counting.peak


class _Counting(TorchDispatchMode):
    """Follow every storage that an operation makes, until Python drops it."""

    def __init__(self) -> None:
        super().__init__()
        self.held = self.peak = 0
        self._known = weakref.WeakSet()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        for storage in _storages((args, kwargs)):
            self._known.add(storage)
        result = function(*args, **(kwargs or {}))
        for storage in _storages(result):
            if storage not in self._known:  # neither a view of something nor changed in place
                self._known.add(storage)
                self.held += storage.nbytes()
                weakref.finalize(storage, self._drop, storage.nbytes())
        self.peak = max(self.peak, self.held)
        return result

    def _drop(self, size: int) -> None:
        self.held -= size


def _storages(nested) -> list:
    tensors = [leaf for leaf in tree_leaves(nested) if isinstance(leaf, Tensor)]
    if any(tensor.layout != torch.strided for tensor in tensors):
        raise ValueError(
            "function makes or takes a sparse tensor; peak_memory counts dense ones only"
        )
    return [tensor.untyped_storage() for tensor in tensors]
