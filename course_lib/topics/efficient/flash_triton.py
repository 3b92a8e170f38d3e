"""The forward pass of causal FlashAttention as a GPU kernel, in Triton.

It needs `triton`, which the course does not install. On a GPU,
`python -m tests.benchmarks.flash_triton` times it beside PyTorch's own kernel.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def flash_kernel(q, k, v, out, lse, n, scale, group, d: tl.constexpr, B: tl.constexpr):
    """Compute one block of queries of one head."""
    block, head = tl.program_id(0), tl.program_id(1)
    i, c = block * B + tl.arange(0, B), tl.arange(0, d)  # queries, components
    at_q = head * n * d + i[:, None] * d + c  # (B, d): addresses
    q_i = tl.load(q + at_q, mask=i[:, None] < n, other=0.0)  # from HBM to the chip
    m = tl.full((B,), -float("inf"), tl.float32)  # running maximum
    total = tl.zeros((B,), tl.float32)  # running sum
    o = tl.zeros((B, d), tl.float32)  # running weighted sum of values
    for start in range(0, (block + 1) * B, B):  # no tile above the diagonal
        j = start + tl.arange(0, B)  # keys
        at_k = head // group * n * d + j[:, None] * d + c  # (B, d)
        k_j = tl.load(k + at_k, mask=j[:, None] < n, other=0.0)  # (B, d)
        v_j = tl.load(v + at_k, mask=j[:, None] < n, other=0.0)  # (B, d)
        s = tl.dot(q_i, tl.trans(k_j)) * scale  # (B, B): never leaves the chip
        s = tl.where(j <= i[:, None], s, -float("inf"))
        m_new = tl.maximum(m, tl.max(s, axis=1))
        p, rescale = tl.exp(s - m_new[:, None]), tl.exp(m - m_new)
        total = rescale * total + tl.sum(p, axis=1)
        o = rescale[:, None] * o + tl.dot(p.to(v_j.dtype), v_j)
        m = m_new
    tl.store(out + at_q, o / total[:, None], mask=i[:, None] < n)
    tl.store(lse + head * n + i, m + tl.log(total), mask=i < n)


def flash_forward(q, k, v, block=64):
    """Return the output and the log-sum-exp of each row.

    q is (batch, heads, n, d), k and v are (batch, kv_heads, n, d); d and block are
    powers of 2, 16 or more.
    """
    batch, heads, n, d = q.shape
    q, k, v = (x.contiguous() for x in (q, k, v))
    out, lse = torch.empty_like(q), q.new_empty(batch, heads, n, dtype=torch.float32)
    grid = (triton.cdiv(n, block), batch * heads)  # programs
    group = heads // k.shape[1]
    flash_kernel[grid](q, k, v, out, lse, n, d**-0.5, group, d=d, B=block)
    return out, lse
