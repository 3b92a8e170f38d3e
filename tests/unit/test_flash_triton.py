"""The Triton kernel of notebook 10, in Triton's interpreter on a CPU."""

import os

import pytest
import torch
import torch.nn.functional as F

if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")  # read when the kernel is decorated
pytest.importorskip("triton", reason="the Triton kernel is optional: pip install triton")


@pytest.mark.parametrize(
    ("n", "heads", "kv_heads", "block"),
    [(48, 2, 2, 16), (70, 4, 2, 16), (70, 4, 1, 32), (5, 2, 1, 16)],
)
def test_the_kernel_computes_what_pytorch_computes(n, heads, kv_heads, block):
    from course_lib.topics.efficient.flash_triton import flash_forward

    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    q = torch.randn(2, heads, n, 32, device=device)
    k, v = torch.randn(2, 2, kv_heads, n, 32, device=device)
    out, lse = flash_forward(q, k, v, block)
    expected = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    tolerance = 1e-2 if device == "cuda" else 1e-5  # TF32
    torch.testing.assert_close(out, expected, atol=tolerance, rtol=0)
    keys = k.repeat_interleave(heads // kv_heads, dim=1)
    scores = q @ keys.mT / 32**0.5
    past = torch.ones(n, n, dtype=torch.bool, device=device).tril()
    scores = scores.masked_fill(~past, -torch.inf)
    torch.testing.assert_close(lse, scores.logsumexp(dim=-1), atol=tolerance, rtol=0)
