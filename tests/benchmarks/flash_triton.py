"""Time the Triton kernel of notebook 10 beside PyTorch's own kernel and beside three plain operations, on a GPU.

Run it with ``python -m tests.benchmarks.flash_triton``; it needs `triton` and a GPU. Causal attention, bfloat16.
"""

import torch
import torch.nn.functional as F
import triton
from torch.nn.attention import SDPBackend, sdpa_kernel

from course_lib.topics.efficient.flash_triton import flash_forward

HEADS, D_HEAD, LENGTHS = 16, 64, (1024, 4096, 16384)


def explicit(q, k, v):
    """Scores, softmax and weighted sum, one after the other."""
    n = q.shape[2]
    scores = q @ k.mT / D_HEAD**0.5
    future = torch.ones(n, n, dtype=torch.bool, device=q.device).triu(1)
    return torch.softmax(scores.masked_fill(future, -torch.inf), dim=-1) @ v


def pytorch(q, k, v):
    """FlashAttention-2, as PyTorch has it."""
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def milliseconds(function, *inputs) -> float:
    """The median of many calls."""
    return triton.testing.do_bench(lambda: function(*inputs), quantiles=[0.5])


@torch.no_grad()
def main() -> None:
    """Print a row for each length."""
    print(
        f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, Triton {triton.__version__}"
    )
    print(f"1 sequence, {HEADS} heads of {D_HEAD}, causal, bfloat16, forward; median milliseconds")
    torch.manual_seed(0)
    for n in LENGTHS:
        q, k, v = torch.randn(3, 1, HEADS, n, D_HEAD, device="cuda").bfloat16()
        kernels = {f"Triton, tiles of {size}": lambda *qkv, size=size: flash_forward(*qkv, size)[0]
                   for size in (32, 64, 128)} | {"PyTorch, FlashAttention-2": pytorch}  # fmt: skip
        expected = F.scaled_dot_product_attention(*(x.float() for x in (q, k, v)), is_causal=True)
        for name, kernel in {"three operations": explicit, **kernels}.items():
            gap = (kernel(q, k, v).float() - expected).abs().max().item()
            print(
                f"n = {n:6,}  {name:26} {milliseconds(kernel, q, k, v):8.3f}   largest difference {gap:.1e}"
            )


if __name__ == "__main__":
    main()
