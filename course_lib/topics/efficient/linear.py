r"""Linear attention: a product of features in place of the softmax, so that keys can be summed before queries come.

With features $\phi(q), \phi(k) \ge 0$ the output is

$$\text{output}_i = \frac{\phi(q_i)^\top \sum_j \phi(k_j) v_j^\top}{\phi(q_i)^\top \sum_j \phi(k_j)}$$

Both sums are the same for every query: O(n) time and memory. With a causal mask they run over $j \le i$: prefix
sums in training, a state of fixed size, updated by each token, in generation.

Source: Katharopoulos et al. (2020), "Transformers are RNNs: fast autoregressive Transformers with linear attention".
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from course_lib.topics.efficient.blocks import in_blocks, joined, require_one_length
from course_lib.topics.efficient.precision import (
    in_full_precision,
    output_dtype,
    widened,
    without_autocast,
)

FeatureMap = Callable[[Tensor], Tensor]

BLOCK = 64  # prefix sums are kept once per so many tokens


def elu_plus_one(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    r"""$\phi(x) = \mathrm{elu}(x) + 1$: $x + 1$ above 0 and $e^x$ below, elementwise, so that all features are positive.

    Source: Katharopoulos et al. (2020), equation 7.
    """
    return F.elu(x) + 1


class LinearAttentionState(NamedTuple):
    r"""What linear attention keeps of a sequence so far; its size does not depend on the length.

    Attributes:
        key_value: $S = \sum_j \phi(k_j) v_j^\top$, (…, features, d_value).
        key_sum: $z = \sum_j \phi(k_j)$, (…, features).
    """

    key_value: Tensor
    key_sum: Tensor


@in_full_precision
def linear_attention(
    query: Float[Tensor, "*#batch query d"],
    key: Float[Tensor, "*#batch key d"],
    value: Float[Tensor, "*#batch key d_value"],
    *,
    causal: bool = False,
    feature_map: FeatureMap = elu_plus_one,
    padding_mask: Bool[Tensor, "..."] | None = None,
) -> Float[Tensor, "... query d_value"]:
    r"""Attend with weights $\phi(q_i)^\top \phi(k_j)$, divided by their sum, in O(n) time and memory.

    $$\text{output}_i = \frac{\phi(q_i)^\top \sum_j \phi(k_j) v_j^\top}{\phi(q_i)^\top \sum_j \phi(k_j)},
      \qquad \text{causal: } j \le i$$

    A query without a key, because all are padding, gets the zero vector.

    Args:
        query, key, value: $Q$, $K$ and $V$.
        causal: whether a query attends only to keys up to its own position; there are then as many keys as
            queries.
        feature_map: $\phi$, from (…, length, d) to (…, length, features), nowhere negative.
        padding_mask: as for `sliding_window_attention`.

    Returns:
        The output in the dtype of the query; computed in float32 at least.

    Source: Katharopoulos et al. (2020), equations 5 and 9.
    """
    if causal:
        require_one_length(query, key, value)
    return attend_by_features(feature_map(query), feature_map(key), value, causal, padding_mask)


def attend_by_features(
    phi_q: Tensor,
    phi_k: Tensor,
    value: Tensor,
    causal: bool = False,
    padding_mask: Tensor | None = None,
) -> Tensor:
    """Return the quotient of the two sums; a column of ones beside the values gives the denominator."""
    phi_k = _without_padding(phi_k, padding_mask)
    value = with_ones(value)
    sums = _causal_sums(phi_q, phi_k, value) if causal else phi_q @ (phi_k.mT @ value)
    return quotient(sums)


def _without_padding(phi_k: Tensor, padding_mask: Tensor | None) -> Tensor:
    """Set the features of padding to zero, so that no sum contains them."""
    if padding_mask is None:
        return phi_k
    return torch.where(torch.atleast_2d(padding_mask).mT, phi_k, 0.0)


def _causal_sums(phi_q: Tensor, phi_k: Tensor, value: Tensor) -> Tensor:
    """Add what a query gets from its own block of keys, and from the sum over all blocks before."""
    length = phi_q.shape[-2]
    # (…, block, position, ·)
    q, k, v = (in_blocks(x, min(BLOCK, length)) for x in (phi_q, phi_k, value))
    upto = (k.mT @ v).cumsum(-3)  # (…, block, features, d_value + 1)
    before = F.pad(upto[..., :-1, :, :], (0, 0, 0, 0, 1, 0))
    return joined((q @ k.mT).tril() @ v + q @ before, length)


def with_ones(value: Tensor) -> Tensor:
    """Append a column of ones, (…, key, d_value + 1): its sum is the denominator."""
    return F.pad(value, (0, 1), value=1.0)


def quotient(sums: Tensor) -> Tensor:
    """Divide by the last column."""
    weight = sums[..., -1:]
    return sums[..., :-1] / weight.masked_fill(weight == 0, 1.0)  # a query without a key: 0/1


def linear_attention_state(
    key: Float[Tensor, "*#batch key d"],
    value: Float[Tensor, "*#batch key d_value"],
    *,
    feature_map: FeatureMap = elu_plus_one,
    padding_mask: Bool[Tensor, "..."] | None = None,
) -> LinearAttentionState:
    r"""Return the state after all these tokens: what `linear_attention_step` continues from (prefill).

    The state is in float32 at least. The arguments are those of `linear_attention`.
    """
    with without_autocast(key):
        phi_k = _without_padding(feature_map(widened(key)), padding_mask)
        return LinearAttentionState(phi_k.mT @ widened(value), phi_k.sum(-2))


def linear_attention_step(
    query: Float[Tensor, "*#batch 1 d"],
    key: Float[Tensor, "*#batch 1 d"],
    value: Float[Tensor, "*#batch 1 d_value"],
    state: LinearAttentionState | None = None,
    *,
    feature_map: FeatureMap = elu_plus_one,
) -> tuple[Float[Tensor, "... 1 d_value"], LinearAttentionState]:
    r"""Attend with one more token: a recurrent network whose hidden state is the two sums.

    $$S_i = S_{i-1} + \phi(k_i) v_i^\top, \qquad z_i = z_{i-1} + \phi(k_i), \qquad
      \text{output}_i = \frac{\phi(q_i)^\top S_i}{\phi(q_i)^\top z_i}$$

    Args:
        query, key, value: of the new token.
        state: after the tokens before; None for the first token.
        feature_map: $\phi$, as for `linear_attention`.

    Returns:
        The output, and the state with the new token; the given one is not changed.

    Source: Katharopoulos et al. (2020), equations 16 to 20.
    """
    if query.shape[-2] != 1 or key.shape[-2] != 1:
        raise ValueError(
            f"query has shape {tuple(query.shape)} and key {tuple(key.shape)}; a step takes one token, "
            f"(…, 1, d)"
        )
    new = linear_attention_state(key, value, feature_map=feature_map)
    if state is not None:
        new = LinearAttentionState(state.key_value + new.key_value, state.key_sum + new.key_sum)
    with without_autocast(query):
        phi_q = feature_map(widened(query))
        output = quotient(phi_q @ torch.cat([new.key_value, new.key_sum[..., None]], dim=-1))
    return output.to(output_dtype(query)), new
