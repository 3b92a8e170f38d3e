"""What one attention layer keeps during generation: projected keys and values."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from course_lib.checks import cache as checks
from course_lib.validation import validated


class KeyValueCache:
    """The projected keys and values of one self-attention layer, of all tokens so far.

    A new token needs the keys and values of all tokens before it, and these do not change. So the layer
    projects the new token alone, adds it to the cache, and attends to everything in it.
    """

    def __init__(self) -> None:
        self._key: Tensor | None = None
        self._value: Tensor | None = None
        self._rows: Tensor | None = None  # reordered, and not copied yet

    @property
    def key(self) -> Tensor | None:
        """The keys, (batch, heads, length, d_head) with one head per key/value head; None while empty."""
        return None if self._key is None else self.get()[0]

    @property
    def value(self) -> Tensor | None:
        """The values, shaped like the keys."""
        return None if self._value is None else self.get()[1]

    @property
    def batch(self) -> int | None:
        """The number of sequences; None while empty."""
        if self._key is None:
            return None
        return len(self._key if self._rows is None else self._rows)

    @property
    def length(self) -> int:
        """The number of tokens."""
        return 0 if self._key is None else self._key.shape[-2]

    @property
    def nbytes(self) -> int:
        """How many bytes the keys and values take."""
        return 0 if self._key is None else self.key.nbytes + self.value.nbytes

    @validated(checks.update)
    def update(
        self,
        key: Float[Tensor, "batch heads new d_head"],
        value: Float[Tensor, "batch heads new d_value"],
    ) -> tuple[Float[Tensor, "batch heads key d_head"], Float[Tensor, "batch heads key d_value"]]:
        """Add the keys and values of new tokens; return those of all tokens.

        Raises:
            ValueError: for keys and values of unequal number, and for those of another batch, head count,
                dimension, dtype or device than the cached ones, as when the cache is that of another layer.
        """
        if self._key is not None:
            key = _append(self._key, self._rows, key)  # (batch, heads, key, d_head)
            value = _append(self._value, self._rows, value)  # (batch, heads, key, d_value)
        self._key, self._value, self._rows = key, value, None
        return key, value

    def get(self) -> tuple[Tensor, Tensor]:
        """Return the keys and values of all tokens."""
        if self._rows is not None:
            # index_select copies whole sequences, self._key[rows] single elements.
            self._key = self._key.index_select(0, self._rows)
            self._value = self._value.index_select(0, self._rows)
            self._rows = None
        return self._key, self._value

    @validated(checks.reorder)
    def reorder(self, rows: Int[Tensor, " new_batch"]) -> None:
        """Keep these sequences of the batch, in this order; one may be kept several times.

        The copy is made when it is needed: `update` makes it together with its own.

        Raises:
            ValueError: for rows that are not whole numbers of one axis, and that the batch does not have.
        """
        if self._key is not None:
            self._rows = rows.clone() if self._rows is None else self._rows[rows]

    def __repr__(self) -> str:
        return f"{type(self).__name__} of {self.length} tokens, {self.nbytes} bytes"


class CrossAttentionCache(KeyValueCache):
    """The projected keys and values of a sequence that does not grow: the encoder's output.

    The first call of a layer projects and stores them, later calls take them with `get`.
    """


def _append(kept: Tensor, rows: Tensor | None, new: Tensor) -> Tensor:
    """Return these rows of `kept`, followed by `new`: in one copy where no gradient is needed."""
    if rows is None:
        return torch.cat([kept, new], dim=-2)
    if torch.is_grad_enabled():
        return torch.cat([kept.index_select(0, rows), new], dim=-2)
    batch, heads, added, d = new.shape
    past = kept.shape[-2]
    joined = new.new_empty(batch, heads, past + added, d)
    torch.index_select(kept, 0, rows, out=joined[:, :, :past])
    joined[:, :, past:] = new
    return joined
