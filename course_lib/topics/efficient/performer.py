r"""Performer attention (FAVOR+): softmax attention estimated by linear attention with positive random features.

With $w \sim N(0, I)$,

$$e^{q^\top k} = E_w\!\left[ e^{w^\top q - |q|^2/2}\, e^{w^\top k - |k|^2/2} \right]$$

so the mean over $m$ samples of $w$ estimates every unnormalised softmax weight without bias, as a product of
features that are positive. Samples that are orthogonal to each other have a smaller variance.

Source: Choromanski et al. (2021), "Rethinking attention with Performers".
"""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from course_lib.topics.efficient.blocks import in_blocks, joined, require_one_length
from course_lib.topics.efficient.linear import BLOCK, attend_by_features, quotient, with_ones
from course_lib.topics.efficient.precision import in_full_precision


def orthogonal_projection(
    num_features: int,
    d: int,
    generator: torch.Generator | None = None,
    *,
    device: torch.device | str | None = None,
    dtype: torch.dtype = torch.float32,
) -> Float[Tensor, "num_features d"]:
    r"""Sample vectors $w_1, \dots, w_m$, each from $N(0, I)$, and orthogonal to each other in groups of $d$.

    The directions of a group are the columns of a random orthogonal matrix; the norms are those of independent
    vectors from $N(0, I)$.

    Args:
        num_features: $m$; where $d$ does not divide it, the last group is smaller.
        d: the dimension of queries and keys.
        generator: what to sample with, on the CPU; PyTorch's default generator where left out.
        device: where the result is; PyTorch's default device where left out.
        dtype: of the result.

    Source: Choromanski et al. (2021), section 2.4.
    """
    groups = -(-num_features // d)
    normal = torch.randn(2, groups, d, d, generator=generator, dtype=torch.float64, device="cpu")
    q, r = torch.linalg.qr(normal[0])
    signs = r.diagonal(dim1=-2, dim2=-1).sign()  # makes every orthogonal matrix equally likely
    directions = (q * signs[:, None, :]).mT.flatten(0, 1)  # (groups · d, d)
    norms = normal[1].flatten(0, 1).norm(dim=-1, keepdim=True)
    projection = (norms * directions)[:num_features].to(dtype)
    return projection.to(torch.get_default_device() if device is None else device)


def performer_features(
    x: Float[Tensor, "*batch length d"], projection: Float[Tensor, "features d"]
) -> Float[Tensor, "*batch length features"]:
    r"""Return positive random features, whose product estimates the exponential of the dot product.

    $$\phi(x)_r = \frac{1}{\sqrt m} \exp\!\left(w_r^\top x - \tfrac12 |x|^2\right), \qquad
      E[\phi(q)^\top \phi(k)] = e^{q^\top k}$$

    For the weights of scaled dot-product attention, divide queries and keys by $d^{1/4}$ first.

    Args:
        x: queries or keys.
        projection: $w_1, \dots, w_m$ in rows, e.g. an `orthogonal_projection`.

    Source: Choromanski et al. (2021), lemma 1.
    """
    return torch.exp(_exponents(x, projection)) / math.sqrt(projection.shape[-2])


def _exponents(x: Tensor, projection: Tensor) -> Tensor:
    return x @ projection.mT - x.square().sum(-1, keepdim=True) / 2  # (…, length, features)


@in_full_precision
def performer_attention(
    query: Float[Tensor, "*#batch query d"],
    key: Float[Tensor, "*#batch key d"],
    value: Float[Tensor, "*#batch key d_value"],
    projection: Float[Tensor, "features d"],
    *,
    causal: bool = False,
    padding_mask: Bool[Tensor, "..."] | None = None,
    scale: float | None = None,
) -> Float[Tensor, "... query d_value"]:
    r"""Estimate scaled dot-product attention in O(n · m) time and memory, from $m$ random features.

    $$\text{output}_i \approx \frac{\phi(q_i)^\top \sum_j \phi(k_j) v_j^\top}{\phi(q_i)^\top \sum_j \phi(k_j)}$$

    with the `performer_features` $\phi$ of queries and keys times $\sqrt s$, $s = 1/\sqrt d$. Numerator and
    denominator are estimated without bias; their quotient has a bias of the order $1/m$. The largest exponent of each
    query, and of all keys that it attends to, is subtracted before the exponential: both cancel in the quotient. A
    query without a key, because all are padding, gets the zero vector.

    Args:
        query, key, value: $Q$, $K$ and $V$.
        projection: $w_1, \dots, w_m$ in rows: `orthogonal_projection(m, d)`.
        causal: whether a query attends only to keys up to its own position; there are then as many keys as
            queries.
        padding_mask: as for `sliding_window_attention`.
        scale: $s$; $1/\sqrt{d}$ where left out.

    Returns:
        The output in the dtype of the query; computed in float32 at least.

    Source: Choromanski et al. (2021), algorithm 1 and section 2.3.
    """
    if causal:
        require_one_length(query, key, value)
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    root, projection = math.sqrt(abs(scale)), projection.to(query.dtype)
    q = _exponents(math.copysign(root, scale) * query, projection)  # (…, query, features)
    k = _exponents(root * key, projection)  # (…, key, features)
    if padding_mask is not None:
        k = k.masked_fill(~torch.atleast_2d(padding_mask).mT, -torch.inf)
    phi_q = torch.exp(q - q.detach().amax(-1, keepdim=True))
    if causal:
        return quotient(_causal_sums(phi_q, k, with_ones(value)))
    return attend_by_features(phi_q, torch.exp(k - _finite(k.detach().amax((-2, -1), True))), value)


def _finite(largest: Tensor) -> Tensor:
    return largest.masked_fill(largest == -torch.inf, 0.0)  # where all is padding


def _causal_sums(phi_q: Tensor, k: Tensor, value: Tensor) -> Tensor:
    r"""Return $\sum_{j \le i} \phi(q_i)^\top e^{k_j - c_i}\, v_j$; $c_i$ is the largest exponent of the keys up to $i$.

    With a maximum over later keys too, the features of a large key, which are tiny, would be 0 when it is alone. Each
    key's own largest exponent is taken out of its features; what is left of it, a number for each pair, is applied to
    the products.
    """
    length, size = k.shape[-2], min(BLOCK, k.shape[-2])
    own = k.detach().amax(-1, keepdim=True)  # (…, key, 1)
    phi_k = torch.exp(k - _finite(own))
    own = F.pad(own, (0, 0, 0, -length % size), value=-torch.inf)  # whole blocks
    lowest = -_finite((-own).masked_fill(own == -torch.inf, -torch.inf).amax(-2, keepdim=True))
    so_far = own.cummax(-2).values.maximum(lowest)  # (…, query, 1); it never falls
    phi_q, phi_k, value, own, so_far = (
        in_blocks(x, size) for x in (phi_q, phi_k, value, own, so_far)
    )  # (…, block, position, ·)
    inside = (phi_q @ phi_k.mT * torch.exp((own.mT - so_far).tril())).tril() @ value
    total, level, before = (
        torch.zeros_like(phi_k[..., 0, :, :].mT @ value[..., 0, :, :]),
        lowest,
        [],
    )
    for b in range(phi_q.shape[-3]):
        q, k, v, m, c = (x[..., b, :, :] for x in (phi_q, phi_k, value, own, so_far))
        before.append(q @ total * torch.exp(level - c))
        last = c[..., -1:, :]
        total, level = total * torch.exp(level - last) + (k * torch.exp(m - last)).mT @ v, last
    return joined(inside + torch.stack(before, dim=-3), length)
