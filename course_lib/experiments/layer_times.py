"""How long do self-attention, a GRU and a convolution take, by the length of the sequence?

::

    export MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=100000000000
    python -m course_lib.experiments.layer_times

measures processor time on one thread, for the layers and for the operations of self-attention (about a minute). With
the two variables, the C library (glibc) keeps the memory of large tensors; otherwise it returns that of 16 MB to the
operating system after every call, which takes longer than some of the operations. Other programs on the machine
lengthen a measurement, through the caches that they share: run it while it is quiet. Each time is the least of
`REPETITIONS`, which alternate between all that is measured.
"""

import math
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.experiments.runs import fill, read, where

LENGTHS, BATCHES = (16, 32, 64, 128, 256, 512, 1024, 2048), (1, 64)
#: With as many vectors as each has components, self-attention and the GRU need equally many multiplications.
DIMENSIONS = (64, 128, 256, 512)
#: Dimension of the vectors; the length at which batches are compared.
D, LENGTH_OF_BATCHES, KERNEL_SIZE = 64, 64, 3
REPETITIONS, LEAST_SECONDS = 40, 0.002


class CausalConvolution(nn.Module):
    """Combine each vector with the `KERNEL_SIZE` - 1 before it."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(D, D, KERNEL_SIZE)

    def forward(self, x: Tensor) -> Tensor:
        """Return as many vectors as `x` has, (batch, length, d)."""
        return self.convolution(F.pad(x.mT, (KERNEL_SIZE - 1, 0))).mT


class SelfAttentionLayer(nn.Module):
    """One head with an output projection, as in the Transformer."""

    def __init__(self, d: int = D, *, fused: bool = False) -> None:
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (nn.Linear(d, d) for _ in range(4))
        self.fused = fused

    def forward(self, x: Tensor) -> Tensor:
        """Return the output, (batch, length, d)."""
        q, k, v = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        if self.fused:  # the fused kernel needs an axis of heads
            q, k, v = q[:, None], k[:, None], v[:, None]  # (batch, 1, length, d)
            return self.out_proj(F.scaled_dot_product_attention(q, k, v)[:, 0])
        weights = torch.softmax(q @ k.mT / math.sqrt(k.shape[-1]), dim=-1)  # (batch, query, key)
        return self.out_proj(weights @ v)


def layers() -> dict[str, nn.Module]:
    """Return the layers, name → module."""
    return {
        "self-attention": SelfAttentionLayer(),
        "self-attention, fused": SelfAttentionLayer(fused=True),
        "GRU": nn.GRU(D, D, batch_first=True),
        "convolution": CausalConvolution(),
    }


def operations(n: int) -> dict[str, Callable[[], Tensor]]:
    """Return the operations of self-attention over `n` vectors, name → a call."""
    projections, x = [nn.Linear(D, D) for _ in range(4)], torch.randn(1, n, D)
    q, k, v = torch.randn(3, 1, n, D)
    scores = q @ k.mT  # (batch, query, key)
    weights = torch.softmax(scores, dim=-1)  # (batch, query, key)
    return {
        "four projections": lambda: [projection(x) for projection in projections][-1],
        "scores": lambda: q @ k.mT / math.sqrt(D),
        "softmax": lambda: torch.softmax(scores, dim=-1),
        "weighted sum": lambda: weights @ v,
    }


@torch.inference_mode()
def least_times(calls: dict, repetitions: int = REPETITIONS) -> dict:
    """Return name → the least processor time of one call, in milliseconds."""
    counts, least = {name: _calls_in(call) for name, call in calls.items()}, {}
    for _ in range(repetitions):
        for name, call in calls.items():
            spent = 1000 * _seconds(call, counts[name]) / counts[name]
            least[name] = min(spent, least.get(name, math.inf))
    return least


def _calls_in(call: Callable[[], Tensor]) -> int:
    """How many calls take at least `LEAST_SECONDS`, also without a disturbance."""
    count = 1
    while min(_seconds(call, count) for _ in range(3)) < LEAST_SECONDS:
        count *= 2
    return count


def _seconds(call: Callable[[], Tensor], count: int) -> float:
    started = time.process_time()
    for _ in range(count):
        call()
    return time.process_time() - started


def recorded(group: str) -> dict[str, list[float]]:
    """Return the times of a group, in milliseconds, name → one for each size.

    The groups are "layers" and "operations", by length, "batches" and "dimensions".
    """
    times: dict[str, list[float]] = {}
    for row in where(read("layer_times"), group=group):
        times.setdefault(row["name"], []).append(row["ms"])
    return times


def run(threads: int) -> list[dict]:
    """Measure everything, one call of each after the other."""
    torch.manual_seed(0)
    modules, calls = layers(), {}

    def add(group: str, layers: dict[str, nn.Module], size: int, *shape: int) -> None:
        x = torch.randn(*shape)
        for name, layer in layers.items():
            calls[group, name, size] = lambda layer=layer: layer(x)

    for n in LENGTHS:
        add("layers", modules, n, 1, n, D)
        for name, call in operations(n).items():
            calls["operations", name, n] = call
    for batch in BATCHES:
        add("batches", modules, batch, batch, LENGTH_OF_BATCHES, D)
    for d in DIMENSIONS:
        both = {"self-attention": SelfAttentionLayer(d), "GRU": nn.GRU(d, d, batch_first=True)}
        add("dimensions", both, d, 1, d, d)
    return [
        {"group": group, "name": name, "size": size, "ms": ms}
        for (group, name, size), ms in least_times(calls).items()
    ]


PLAN = [{"threads": 1}]

if __name__ == "__main__":
    fill("layer_times", run, PLAN, __doc__)
