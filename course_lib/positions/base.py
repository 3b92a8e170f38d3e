"""What an encoding that works inside attention may do."""

from collections.abc import Mapping
from types import MappingProxyType

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.inputs import require_whole


class AttentionPositions(nn.Module):
    """Base of the encodings inside attention. Each overrides what it needs; the rest does nothing.

    Attributes:
        needs_weights: whether `move_output` reads the weights, so that they must be computed.
        made_for: the sizes that a layer must have, "num_heads" or "d_head".
    """

    needs_weights = False
    made_for: Mapping[str, int] = MappingProxyType({})

    def turn(
        self,
        query: Float[Tensor, "batch heads query d_head"],
        key: Float[Tensor, "batch kv_heads new d_head"],
        offset: int = 0,
    ) -> tuple[Tensor, Tensor]:
        """Change the projected queries and keys; the first of them stands at position `offset`."""
        return query, key

    def bias(
        self, query: Float[Tensor, "batch heads query d_head"], key_length: int
    ) -> Float[Tensor, "..."] | None:
        """Return what is added to the scaled scores, broadcastable to (batch, heads, query, key), or None."""
        return None

    def move_output(
        self,
        output: Float[Tensor, "batch heads query d_head"],
        weights: Float[Tensor, "batch heads query key"] | None,
    ) -> Float[Tensor, "batch heads query d_head"]:
        """Change what the heads found, before they are merged."""
        return output

    def require_fits(self, **sizes: int) -> None:
        """Refuse the sizes of a layer that this encoding was not made for."""
        for name, made in self.made_for.items():
            if sizes[name] != made:
                raise ValueError(
                    f"positions was made with {name}={made}, but the layer has {name}={sizes[name]}"
                )


def relative_positions(
    query_length: int, key_length: int, device: torch.device | str | None = None
) -> Int[Tensor, "query key"]:
    r"""Return $j - i$: how far each key stands behind each query; negative in front of it.

    With more keys than queries, the queries are the last ones, as in `causal_mask`.

    Raises:
        ValueError: for lengths below 1, and for fewer keys than queries.
    """
    require_whole(query_length=query_length, key_length=key_length)
    if key_length < query_length:
        raise ValueError(
            f"key_length={key_length} is below query_length={query_length}; the queries are the last "
            f"of the keys, so there must be at least as many keys"
        )
    i = torch.arange(key_length - query_length, key_length, device=device)[:, None]  # (query, 1)
    j = torch.arange(key_length, device=device)  # (key,)
    return j - i


def require_positions(positions: object) -> None:
    """Refuse what is neither None nor an encoding that works inside attention."""
    if positions is not None and not isinstance(positions, AttentionPositions):
        raise ValueError(
            f"positions is a {type(positions).__name__}; it must be an AttentionPositions, such as "
            f"RotaryPositions(d_head). Encodings that are added to the vectors go before the layer"
        )


def require_one_sequence(positions: AttentionPositions, query: Tensor, key: Tensor) -> None:
    """Refuse to look at another sequence with positions that count along one."""
    if key is not query and type(positions) is not AttentionPositions:
        raise ValueError(
            f"{type(positions).__name__} counts positions along one sequence, so this layer does "
            f"self-attention only; leave key out"
        )
