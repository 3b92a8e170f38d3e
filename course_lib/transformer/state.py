"""What a Transformer keeps between two decode steps."""

from dataclasses import dataclass

from jaxtyping import Int
from torch import Tensor

from course_lib.cache import ModelCache


@dataclass
class TransformerState:
    """The KV cache and, of an encoder–decoder, the encoder's output.

    Attributes:
        cache: from `new_cache`.
        memory: from `encode`; None for a model without an encoder.
    """

    cache: ModelCache
    memory: tuple[Tensor, ...] | None = None

    def reorder(self, rows: Int[Tensor, " new_batch"], *, same_sources: bool = False) -> None:
        """Keep these sequences of the batch, in this order; see `course_lib.decoding.DecodingState`."""
        self.cache.reorder(rows, same_sources=same_sources)
        if self.memory is not None and not same_sources:
            parts = (part.index_select(0, rows) for part in self.memory)
            self.memory = type(self.memory)(*parts)
