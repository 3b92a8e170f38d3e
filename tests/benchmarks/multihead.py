"""How fast multi-head attention is beside PyTorch's layer and beside the least work there is.

Run it with ``python -m tests.benchmarks.multihead``; every ratio compares calls that took turns in one run.
"""

import torch
import torch.nn.functional as F
from torch import nn

from course_lib.convert import from_torch
from course_lib.multihead import MultiHeadAttention
from course_lib.positions import make_positions
from tests.helpers.multihead import HeadLoop
from tests.helpers.timing import in_turn

BATCH, LENGTH, D_MODEL, HEADS, THREADS = 8, 256, 512, 8, 2
TORCH = "nn.MultiheadAttention(need_weights=False)"
BARE = "the bare limit (four matrix products and the fused kernel)"


def step(layer, call):
    """Return a step of training without an optimizer."""

    def run() -> None:
        layer.zero_grad()
        call().square().mean().backward()

    return run


def report(what: str, took: dict[str, float]) -> None:
    """Print the time of "ours", and the others beside it."""
    print(f"{what}: {took['ours']:6.1f} ms")
    for name, other in took.items():
        if name != "ours":
            print(f"  {other / took['ours']:5.2f} × the throughput of {name}")


def main() -> None:
    """Print both comparisons."""
    x = torch.randn(BATCH, LENGTH, D_MODEL)
    theirs = nn.MultiheadAttention(D_MODEL, HEADS, batch_first=True)
    ours, loop = from_torch(theirs), HeadLoop(D_MODEL, HEADS)
    matrices = [torch.randn(D_MODEL, D_MODEL) / D_MODEL**0.5 for _ in range(4)]

    def pytorch():
        return theirs(x, x, x, need_weights=False)[0]

    def bare():
        """Less cannot be done."""
        q, k, v = ((x @ m).view(BATCH, LENGTH, HEADS, -1).transpose(1, 2) for m in matrices[:3])
        heads = F.scaled_dot_product_attention(q, k, v)
        return heads.transpose(1, 2).reshape(BATCH, LENGTH, D_MODEL) @ matrices[3]

    steps = {
        "ours": step(ours, lambda: ours(x).output),
        TORCH: step(theirs, pytorch),
        "the same layer with its weights": step(ours, lambda: ours(x, need_weights=True).output),
        "a loop over the heads": step(loop, lambda: loop(x).output),
    }
    report("forward and backward, MultiHeadAttention", in_turn(**steps))
    forward = {"ours": lambda: ours(x), BARE: bare, TORCH: pytorch}
    with torch.no_grad():
        took = in_turn(**forward, **{"a loop over the heads": lambda: loop(x)})
    report("forward alone", took)


def with_positions() -> None:
    """What an encoding inside attention adds to the time of a layer, forward and backward."""
    x, steps = torch.randn(BATCH, LENGTH, D_MODEL), {}
    for name in ("none", "rotary", "alibi", "t5", "shaw"):
        positions = make_positions(name, D_MODEL, HEADS, max_length=LENGTH).attention
        layer = MultiHeadAttention(D_MODEL, HEADS, positions=positions)
        steps[name] = step(layer, lambda layer=layer: layer(x).output)
    times = in_turn(rounds=20, **steps)
    print("time of the layer with an encoding, over that without:")
    for name in list(times)[1:]:
        print(f"  {times[name] / times['none']:5.2f} × {name}")


if __name__ == "__main__":
    torch.set_num_threads(THREADS)
    torch.manual_seed(0)
    print(f"batch {BATCH}, length {LENGTH}, d_model {D_MODEL}, {HEADS} heads, {THREADS} threads")
    main()
    with_positions()
