"""The forward pass of FlashAttention as a GPU kernel, in Triton. Needs `triton`, which the course does not install.

Checked against PyTorch with Triton's interpreter, on a CPU; it was never timed on a GPU.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def flash_kernel(q, k, v, out, lse, n, scale, group, d: tl.constexpr, B: tl.constexpr):
    tile, head = tl.program_id(0), tl.program_id(1)  # one program for each tile of queries of a head
    i, c = tile * B + tl.arange(0, B), tl.arange(0, d)  # positions of the queries, components
    at_q = head * n * d + i[:, None] * d + c  # (B, d)
    q_i = tl.load(q + at_q, mask=i[:, None] < n, other=0.0)  # (B, d), from HBM to the chip
    m = tl.full((B,), -float("inf"), tl.float32)  # running maximum
    total = tl.zeros((B,), tl.float32)  # running sum
    o = tl.zeros((B, d), tl.float32)  # running weighted sum of values
    for start in range(0, (tile + 1) * B, B):  # the tiles above the diagonal are skipped
        j = start + tl.arange(0, B)  # positions of the keys
        at_k = head // group * n * d + j[:, None] * d + c  # (B, d)
        k_j = tl.load(k + at_k, mask=j[:, None] < n, other=0.0)  # (B, d)
        v_j = tl.load(v + at_k, mask=j[:, None] < n, other=0.0)  # (B, d)
        s = tl.dot(q_i, tl.trans(k_j)) * scale  # (B, B), never leaves the chip
        s = tl.where(j <= i[:, None], s, -float("inf"))
        m_new = tl.maximum(m, tl.max(s, axis=1))
        p, rescale = tl.exp(s - m_new[:, None]), tl.exp(m - m_new)
        total = rescale * total + tl.sum(p, axis=1)
        o = rescale[:, None] * o + tl.dot(p.to(v_j.dtype), v_j)
        m = m_new
    tl.store(out + at_q, o / total[:, None], mask=i[:, None] < n)
    tl.store(lse + head * n + i, m + tl.log(total), mask=i < n)


def flash_forward(q, k, v, block=64):  # (batch, heads, n, d), twice (batch, kv_heads, n, d)
    batch, heads, n, d = q.shape  # d and block: powers of 2, at least 16
    q, k, v = (x.contiguous() for x in (q, k, v))
    out, lse = torch.empty_like(q), q.new_empty(batch, heads, n, dtype=torch.float32)
    grid = (triton.cdiv(n, block), batch * heads)
    group = heads // k.shape[1]
    flash_kernel[grid](q, k, v, out, lse, n, d**-0.5, group, d=d, B=block)
    return out, lse
