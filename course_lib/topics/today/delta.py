r"""The gated delta rule: a memory of fixed size that forgets by a gate and corrects what a key already recalls.

$$S_t = e^{g_t} S_{t-1} + \beta_t\, k_t \big(v_t - (e^{g_t} S_{t-1})^\top k_t\big)^\top, \qquad o_t = S_t^\top q_t$$

Linear attention only adds $k_t v_t^\top$. Here the value that the state recalls for $k_t$ is subtracted first, so that
a key written again is overwritten.

Source: Schlag et al. (2021), "Linear Transformers are secretly fast weight programmers"; Yang et al. (2024), "Gated
delta networks".
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from course_lib.validation import require_divides, require_whole

Vectors = Float[Tensor, "*batch length d_key"]
Numbers = Float[Tensor, "*batch length"]


def delta_rule(
    query: Vectors,
    key: Vectors,
    value: Float[Tensor, "*batch length d_value"],
    decay: Numbers,
    beta: Numbers,
    state: Float[Tensor, "*batch d_key d_value"] | None = None,
) -> tuple[Float[Tensor, "*batch length d_value"], Float[Tensor, "*batch d_key d_value"]]:
    r"""Apply the rule token by token, as in generation.

    Args:
        query, key, value: $q$, $k$ and $v$; keys of length 1 keep the state bounded.
        decay: $g_t \le 0$, the logarithm of what remains of the state.
        beta: $\beta_t$ in (0, 1), how far the recalled value moves to the new one; up to 2 in OLMo Hybrid.
        state: $S$ before the first token; zero where left out.

    Returns:
        $o$ of every token, and the state after the last one.
    """
    if state is None:
        state = value.new_zeros(*value.shape[:-2], key.shape[-1], value.shape[-1])
    outputs = []
    for q, k, v, g, b in zip(
        *(x.unbind(-2) for x in (query, key, value)),
        *(x.unbind(-1) for x in (decay, beta)),
        strict=True,
    ):
        state = state * g.exp()[..., None, None]
        recalled = (k[..., None, :] @ state)[..., 0, :]  # (…, d_value)
        state = state + k[..., None] * (b[..., None] * (v - recalled))[..., None, :]
        outputs.append((q[..., None, :] @ state)[..., 0, :])
    return torch.stack(outputs, dim=-2), state


def delta_rule_in_chunks(
    query: Vectors,
    key: Vectors,
    value: Float[Tensor, "*batch length d_value"],
    decay: Numbers,
    beta: Numbers,
    state: Float[Tensor, "*batch d_key d_value"] | None = None,
    *,
    chunk: int = 64,
) -> tuple[Float[Tensor, "*batch length d_value"], Float[Tensor, "*batch d_key d_value"]]:
    r"""Apply the rule to `chunk` tokens at a time, as in training; the result is that of `delta_rule`.

    Inside a chunk each correction depends on those before it: $u_i = \beta_i (v_i - \sum_{j<i} e^{G_i - G_j}
    (k_i^\top k_j)\, u_j - e^{G_i} S^\top k_i)$ with $G$ the sum of the decays. That is one triangular system per chunk,
    $(I + L)\,U = B\,(V - e^{G} K S)$, whose solution is linear in $S$; so all chunks are solved at once, and the loop
    over them has matrix products alone.

    The arguments are those of `delta_rule`; `chunk` is the number of tokens of a chunk.

    Source: Yang et al. (2024), "Parallelizing linear Transformers with the delta rule over sequence length", section 3, without
    the gate; with it Yang et al. (2024), "Gated delta networks", section 3.3.
    """
    require_whole(chunk=chunk)
    length = query.shape[-2]
    if state is None:
        state = value.new_zeros(*value.shape[:-2], key.shape[-1], value.shape[-1])
    q, k, v = (F.pad(x, (0, 0, 0, -length % chunk)) for x in (query, key, value))
    q, k, v = (x.unflatten(-2, (-1, chunk)) for x in (q, k, v))  # (…, chunks, chunk, ·)
    decay, beta = (F.pad(x, (0, -length % chunk)).unflatten(-1, (-1, chunk)) for x in (decay, beta))
    total = decay.cumsum(-1)  # G
    causal = torch.ones(chunk, chunk, dtype=torch.bool, device=q.device).tril()
    between = (total[..., None] - total[..., None, :]).masked_fill(~causal, -torch.inf).exp()
    system = (beta[..., None] * (k @ k.mT) * between).tril(-1)
    right = torch.cat([v, k * total.exp()[..., None]], dim=-1) * beta[..., None]
    exact = torch.promote_types(right.dtype, torch.float32)  # there is no solver in half precision
    solved = torch.linalg.solve_triangular(
        system.to(exact), right.to(exact), upper=False, unitriangular=True
    ).to(right.dtype)
    new, old = solved.split([v.shape[-1], k.shape[-1]], dim=-1)  # U = new − old S
    within = (q @ k.mT) * between
    q = q * total.exp()[..., None]
    k = k * (total[..., -1:] - total).exp()[..., None]
    outputs = []
    for i in range(q.shape[-3]):
        update = new[..., i, :, :] - old[..., i, :, :] @ state  # (…, chunk, d_value)
        outputs.append(q[..., i, :, :] @ state + within[..., i, :, :] @ update)
        state = state * total[..., i, -1, None, None].exp() + k[..., i, :, :].mT @ update
    return torch.cat(outputs, dim=-2)[..., :length, :], state


class DeltaState(NamedTuple):
    """What a `GatedDeltaLayer` keeps of a sequence; its size does not depend on the length.

    Attributes:
        inputs: (batch, channels, width − 1), what the convolution still needs.
        memory: (batch, heads, d_key, d_value), the state of the delta rule.
    """

    inputs: Tensor
    memory: Tensor


class GatedDeltaLayer(nn.Module):
    r"""A layer that takes the place of attention: projections, a short convolution, the delta rule, norm and gate.

    $$\beta = \sigma(W^\beta x), \quad g = -e^{A}\, \mathrm{softplus}(W^g x + b), \quad
      y = W^O\big(\mathrm{RMSNorm}(o) \odot \mathrm{SiLU}(W^z x)\big)$$

    Queries, keys and values pass a causal convolution over `width` tokens, channel by channel, and a SiLU; queries and keys
    then get length 1, and queries a factor $1/\sqrt{d_\text{key}}$. Each key head serves several value heads.

    Args:
        d_model: the dimension of input and output.
        key_heads, value_heads: the first divides the second.
        d_key, d_value: of a head.
        width: of the convolution.
        eps: of the RMSNorm.

    Source: Yang et al. (2024), "Gated delta networks", section 3.3; as in Qwen3-Next and Qwen3.5.
    """

    def __init__(
        self,
        d_model: int,
        *,
        key_heads: int,
        value_heads: int,
        d_key: int,
        d_value: int,
        width: int = 4,
        eps: float = 1e-6,
    ) -> None:
        super().__init__()
        require_divides(key_heads=key_heads, value_heads=value_heads)
        self.heads, self.d_key, self.d_value = (key_heads, value_heads), d_key, d_value
        self.sizes = [key_heads * d_key, key_heads * d_key, value_heads * d_value]
        channels = sum(self.sizes)
        self.qkv_proj = nn.Linear(d_model, channels, bias=False)
        self.conv = nn.Conv1d(channels, channels, width, groups=channels, bias=False)
        self.beta_proj = nn.Linear(d_model, value_heads, bias=False)
        self.decay_proj = nn.Linear(d_model, value_heads, bias=False)
        self.decay_bias = nn.Parameter(torch.ones(value_heads))
        self.log_rate = nn.Parameter(torch.empty(value_heads).uniform_(0.01, 16).log())
        self.gate_proj = nn.Linear(d_model, value_heads * d_value, bias=False)
        self.norm = nn.RMSNorm(d_value, eps=eps)
        self.out_proj = nn.Linear(value_heads * d_value, d_model, bias=False)

    def forward(
        self,
        x: Float[Tensor, "batch length d_model"],
        state: DeltaState | None = None,
        *,
        chunk: int = 64,
    ) -> tuple[Float[Tensor, "batch length d_model"], DeltaState]:
        """Transform the new tokens; return the output, and the state with them.

        Args:
            x: the new tokens, one or many.
            state: after the tokens before; None for the first ones.
            chunk: the number of tokens of a chunk; 1 goes token by token.
        """
        projected = self.qkv_proj(x).mT  # (batch, channels, length)
        width = self.conv.kernel_size[0]
        if state is None:
            inputs = F.pad(projected, (width - 1, 0))
        else:
            inputs = torch.cat([state.inputs, projected], dim=-1)
        mixed = F.silu(self.conv(inputs)).mT.split(self.sizes, dim=-1)
        q, k, v = (  # (batch, heads, length, ·)
            one.unflatten(-1, (-1, d)).transpose(1, 2)
            for one, d in zip(mixed, (self.d_key, self.d_key, self.d_value), strict=True)
        )
        q, k = (
            self._unit(one).repeat_interleave(self.heads[1] // self.heads[0], 1) for one in (q, k)
        )
        decay = -self.log_rate.exp() * F.softplus(self.decay_proj(x) + self.decay_bias)
        beta = self.beta_proj(x).sigmoid()  # (batch, length, heads)
        rule = delta_rule if chunk == 1 or x.shape[1] == 1 else delta_rule_in_chunks
        options = {"chunk": chunk} if rule is delta_rule_in_chunks else {}
        memory = None if state is None else state.memory
        o, memory = rule(q * self.d_key**-0.5, k, v, decay.mT, beta.mT, memory, **options)
        gate = F.silu(self.gate_proj(x)).unflatten(-1, (-1, self.d_value))
        y = self.out_proj((self.norm(o.transpose(1, 2)) * gate).flatten(2))
        return y, DeltaState(inputs[..., inputs.shape[-1] - width + 1 :], memory)

    @staticmethod
    def _unit(x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.square().sum(-1, keepdim=True) + 1e-6)
