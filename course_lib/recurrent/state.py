"""What a recurrent model keeps between two decode steps."""

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor

from course_lib.outputs import EncoderOutput


@dataclass
class RecurrentState:
    """The hidden state of the decoder, and the encoder's output.

    Attributes:
        hidden: (batch, hidden_size).
        encoded: from the encoder.
    """

    hidden: Float[Tensor, "batch hidden_size"]
    encoded: EncoderOutput

    def reorder(self, rows: Int[Tensor, " new_batch"], *, same_sources: bool = False) -> None:
        """Keep these sequences of the batch, in this order; see `course_lib.decoding.DecodingState`."""
        self.hidden = self.hidden.index_select(0, rows)
        if not same_sources:
            self.encoded = EncoderOutput(*(part.index_select(0, rows) for part in self.encoded))
