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


def main() -> None:
    torch.set_num_threads(THREADS)
    torch.manual_seed(0)
    print(
        f"batch {BATCH}, length {LENGTH}, d_model {D_MODEL}, {HEADS} heads, float32, {THREADS} threads"
    )
    x = torch.randn(BATCH, LENGTH, D_MODEL)
    theirs = nn.MultiheadAttention(D_MODEL, HEADS, batch_first=True)
    ours = from_torch(theirs)
    loop = HeadLoop(D_MODEL, HEADS)
    matrices = [torch.randn(D_MODEL, D_MODEL) / D_MODEL**0.5 for _ in range(4)]

    def trained(layer, call):
        def step() -> None:
            layer.zero_grad()
            call().square().mean().backward()

        return step

    def pytorch():
        return theirs(x, x, x, need_weights=False)[0]

    def bare():
        """Four matrix products and the fused kernel: less cannot be done."""
        q, k, v = ((x @ m).view(BATCH, LENGTH, HEADS, -1).transpose(1, 2) for m in matrices[:3])
        heads = F.scaled_dot_product_attention(q, k, v)
        return heads.transpose(1, 2).reshape(BATCH, LENGTH, D_MODEL) @ matrices[3]

    both = in_turn(
        ours=trained(ours, lambda: ours(x).output),
        pytorch=trained(theirs, pytorch),
        weights=trained(ours, lambda: ours(x, need_weights=True).output),
        loop=trained(loop, lambda: loop(x).output),
    )
    print(f"forward and backward, MultiHeadAttention: {both['ours']:6.1f} ms")
    print(
        f"  {both['pytorch'] / both['ours']:5.2f} × the throughput of nn.MultiheadAttention(need_weights=False)"
    )
    print(f"  {both['weights'] / both['ours']:5.2f} × that of the same layer with its weights")
    print(f"  {both['loop'] / both['ours']:5.2f} × that of a loop over the heads")
    with torch.no_grad():
        forward = in_turn(
            ours=lambda: ours(x),
            bare=bare,
            pytorch=pytorch,
            loop=lambda: loop(x),
        )
    print(f"forward alone:                            {forward['ours']:6.1f} ms")
    for name, words in (
        ("bare", "the bare limit (four matrix products and the fused kernel)"),
        ("pytorch", "nn.MultiheadAttention(need_weights=False)"),
        ("loop", "a loop over the heads"),
    ):
        print(f"  {forward[name] / forward['ours']:5.2f} × the throughput of {words}")


def with_positions() -> None:
    """What an encoding inside attention adds to the time of a layer, forward and backward."""
    x = torch.randn(BATCH, LENGTH, D_MODEL)
    layers = {
        name: MultiHeadAttention(
            D_MODEL,
            HEADS,
            positions=make_positions(name, D_MODEL, HEADS, max_length=LENGTH).attention,
        )
        for name in ("none", "rotary", "alibi", "t5", "shaw")
    }

    def step(layer):
        def run() -> None:
            layer.zero_grad()
            layer(x).output.square().mean().backward()

        return run

    times = in_turn(rounds=20, **{name: step(layer) for name, layer in layers.items()})
    print("time of the layer with an encoding, over that without:")
    for name in ("rotary", "alibi", "t5", "shaw"):
        print(f"  {times[name] / times['none']:5.2f} × {name}")


if __name__ == "__main__":
    main()
    with_positions()
