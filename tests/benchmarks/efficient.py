"""Time and memory of efficient attention against the length of the sequence, with fitted exponents.

Run it with ``python -m tests.benchmarks.efficient``; the functions take turns in one run, on two threads. The
exponent p is that of the power law t = c · nᵖ, by least squares on the logarithms.
"""

import math
from collections.abc import Callable
from statistics import median
from time import perf_counter

import numpy as np
import torch
import torch.nn.functional as F

from course_lib.topics.efficient import (
    block_attention,
    flash_attention,
    linear_attention,
    longformer_attention,
    orthogonal_projection,
    performer_attention,
    sliding_window_attention,
)
from course_lib.topics.profiling import peak_memory
from course_lib.transformer.attention import scaled_dot_product_attention

HEADS, D_HEAD, WINDOW, FEATURES, THREADS = 4, 64, 128, 64, 2
LENGTHS = (2048, 4096, 8192)


def in_turn(rounds: int = 40, **functions: Callable[[], object]) -> dict[str, float]:
    """Median milliseconds of each function; they take turns, so that a slow moment hits all alike."""
    seconds = {name: [] for name in functions}
    for turn in range(rounds + 3):
        for name, function in functions.items():
            started = perf_counter()
            function()
            if turn >= 3:  # the first calls set up
                seconds[name].append(perf_counter() - started)
    return {name: 1000 * median(times) for name, times in seconds.items()}


def calls(length: int) -> dict[str, Callable[[], torch.Tensor]]:
    """What is compared, at one length."""
    q, k, v = torch.randn(3, 1, HEADS, length, D_HEAD)
    projection = orthogonal_projection(FEATURES, D_HEAD)
    return {
        "dense, fused": lambda: F.scaled_dot_product_attention(q, k, v),
        "sliding window": lambda: sliding_window_attention(q, k, v, WINDOW),
        "causal window": lambda: sliding_window_attention(q, k, v, WINDOW, causal=True),
        "block": lambda: block_attention(q, k, v, WINDOW),
        "longformer": lambda: longformer_attention(q, k, v, WINDOW, [0]),
        "linear": lambda: linear_attention(q, k, v),
        "causal linear": lambda: linear_attention(q, k, v, causal=True),
        "performer": lambda: performer_attention(q, k, v, projection),
        "causal performer": lambda: performer_attention(q, k, v, projection, causal=True),
    }


@torch.no_grad()
def times() -> dict[str, list[float]]:
    """Milliseconds of each function at each length."""
    taken: dict[str, list[float]] = {}
    for length in LENGTHS:
        rounds = max(7, 7 * LENGTHS[-1] // length)
        for name, took in in_turn(rounds=rounds, **calls(length)).items():
            taken.setdefault(name, []).append(took)
    return taken


def explicit(length: int) -> int:
    """Bytes of softmax(Q Kᵀ) V with the matrix held, for all heads: one head is measured."""
    q, k, v = torch.randn(3, 1, length, D_HEAD)
    return HEADS * peak_memory(lambda: torch.softmax(q @ k.mT / math.sqrt(D_HEAD), -1) @ v)


@torch.no_grad()
def memory() -> None:
    """Peak bytes of new tensors in a forward pass."""
    length = LENGTHS[-1]
    wanted = {"dense, explicit": explicit(length)}
    wanted |= {name: peak_memory(call) for name, call in calls(length).items()}
    q, k, v = torch.randn(3, 1, 1024, D_HEAD)
    for name, peak in wanted.items():
        share = wanted["dense, explicit"] / peak
        print(f"  {name:18} {peak / 2**20:8.1f} MiB, 1/{share:.0f} of explicit dense attention")
    by_hand = peak_memory(lambda: flash_attention(q, k, v))
    _, weights = scaled_dot_product_attention(q, k, v)
    held = weights.numel() * weights.element_size()
    print(f"  flash_attention, one head, n = 1024: {by_hand / held:.2f} × the matrix of weights")


if __name__ == "__main__":
    torch.set_num_threads(THREADS)
    torch.manual_seed(0)
    print(
        f"{HEADS} heads of {D_HEAD}, window {WINDOW} on each side, {FEATURES} features, {THREADS} threads"
    )
    print(f"milliseconds at n = {', '.join(map(str, LENGTHS))}; exponent; against dense at the end")
    taken = times()
    for name, row in taken.items():
        numbers = " ".join(f"{one:8.1f}" for one in row)
        ratio = taken["dense, fused"][-1] / row[-1]
        exponent = np.polyfit(np.log(LENGTHS), np.log(row), 1)[0]
        print(f"  {name:18} {numbers}   n^{exponent:.2f}   {ratio:5.1f} ×")
    print(f"memory of a forward pass at n = {LENGTHS[-1]}:")
    memory()
