"""What a computation costs: time on this machine, and memory."""

import time
import weakref
from collections.abc import Callable

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.benchmark import Timer

__all__ = ["milliseconds", "peak_memory"]


def milliseconds(
    function: Callable[[], object], *, seconds: float = 0.1, threads: int = 1, cpu: bool = False
) -> float:
    """Return the median time of one call, in milliseconds, over as many calls as fit into `seconds`.

    Args:
        function: what is measured; it is called without arguments.
        seconds: how long to measure, at least.
        threads: how many threads PyTorch uses; one depends least on what else the machine does.
        cpu: measure the processor time of the calling thread in place of the time on the clock: other programs
            hardly change it. It does not contain waiting, and needs threads=1.
    """
    if cpu and threads != 1:
        raise ValueError(f"cpu=True measures one thread, and threads is {threads}")
    clock = {"timer": time.thread_time} if cpu else {}
    timer = Timer("function()", globals={"function": function}, num_threads=threads, **clock)
    return 1000 * timer.blocked_autorange(min_run_time=seconds).median


def peak_memory(function: Callable[[], object]) -> int:
    """Return the largest number of bytes that new tensors occupy at one time during one call.

    It is the same on every machine: the result of each operation counts until Python frees it. Not counted
    are tensors from before the call, memory that an operation allocates and frees inside, tensors made from
    Python lists, and the growth of a tensor that is resized.

    Args:
        function: what is measured; it is called once, without arguments.
    """
    with _Counting() as counting:
        function()
    return counting.peak


class _Counting(TorchDispatchMode):
    """Count the bytes of every storage that an operation creates, until Python frees it."""

    def __init__(self) -> None:
        super().__init__()
        self.live = self.peak = 0
        self._known = weakref.WeakSet()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        for storage in _storages((args, kwargs)):
            self._known.add(storage)
        result = function(*args, **(kwargs or {}))
        for storage in _storages(result):
            if storage not in self._known:  # no view, and not the result of an in-place operation
                self._known.add(storage)
                self.live += storage.nbytes()
                weakref.finalize(storage, self._free, storage.nbytes())
        self.peak = max(self.peak, self.live)
        return result

    def _free(self, size: int) -> None:
        self.live -= size


def _storages(nested) -> list:
    return [leaf.untyped_storage() for leaf in tree_leaves(nested) if isinstance(leaf, Tensor)]
