"""What decoding asks of a model: *prefill* reads the prompt, each *decode step* adds one token."""

from typing import Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor


@runtime_checkable
class DecodingState(Protocol):
    """What a model keeps of a batch between two decode steps, such as its KV cache."""

    def reorder(self, rows: Int[Tensor, " new_batch"], *, same_sources: bool = False) -> None:
        """Keep these sequences of the batch, in this order; one may be kept several times.

        Args:
            rows: indices of the sequences to keep.
            same_sources: whether every new sequence has the same source as the one whose row it takes, as in
                a beam search. What depends on the source alone, such as the encoder's output, can then stay.
        """


@runtime_checkable
class IncrementalDecoder(Protocol):
    """A model that generates token by token: what `greedy`, `sample` and `beam_search` take.

    Any object with these four members will do; it needs no base class. `PrefixModel` in `table_model.py` is
    a small example.

    Attributes:
        vocabulary_size: how many tokens it can generate, with the ids 0 to vocabulary_size - 1.
        pad_id: the token that fills a sequence after its end.
    """

    vocabulary_size: int
    pad_id: int

    def prefill(
        self, source: Int[Tensor, "batch source"], *, bos_id: int
    ) -> tuple[Float[Tensor, "batch vocabulary"], DecodingState]:
        """Read everything that is known before the first token is generated, in parallel.

        Args:
            source: of an encoder–decoder, what the encoder reads; of a language model, the prompt.
            bos_id: the start token of the target; a language model ignores it.

        Returns:
            Logits for the first generated token, and the state that decode steps go on with.

        Raises:
            ValueError: for a source that the model refuses.
        """

    def decode_step(
        self, token: Int[Tensor, " batch"], state: DecodingState
    ) -> Float[Tensor, "batch vocabulary"]:
        """Append one token to every sequence; return logits for the token after it, and update the state."""
