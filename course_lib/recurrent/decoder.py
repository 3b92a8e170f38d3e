"""What all recurrent decoders share: a hidden state, a step, and the loop over the steps."""

from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor, nn

from course_lib.checks import recurrent as checks
from course_lib.outputs import DecoderOutput, EncoderOutput
from course_lib.recurrent.cell import GRUCell
from course_lib.validation import validated


class DecoderStep(NamedTuple):
    """The result of one decoding step.

    Attributes:
        logits: of the next token, (batch, vocabulary).
        state: the new hidden state, (batch, hidden_size); with input feeding, the attentional hidden state
            follows it.
        weights: attention weights, (batch, source); None for a decoder without attention.
    """

    logits: Tensor
    state: Tensor
    weights: Tensor | None


class RecurrentDecoder(nn.Module):
    """Base class: a decoder defines its initial hidden state and one step.

    Args:
        vocabulary_size: of the target.
        embedding_size: the dimension of a target token's embedding.
        hidden_size: the dimension of the hidden state.
        memory_size: the dimension of the encoder's hidden states.
        input_size: the dimension of the cell's input.
    """

    @validated(checks.decoder_init)
    def __init__(
        self,
        vocabulary_size: int,
        embedding_size: int,
        hidden_size: int,
        memory_size: int,
        input_size: int,
    ) -> None:
        super().__init__()
        self.memory_size = memory_size
        self.embedding = nn.Embedding(vocabulary_size, embedding_size)
        self.cell = GRUCell(input_size, hidden_size)

    def initial_state(self, encoded: EncoderOutput) -> Tensor:
        """Return the hidden state before the first step, (batch, hidden_size)."""
        raise NotImplementedError

    def step(
        self, token: Int[Tensor, " batch"], state: Tensor, encoded: EncoderOutput
    ) -> DecoderStep:
        """Read the previous token and return the logits of the next one."""
        raise NotImplementedError

    @validated(checks.decoder_forward)
    def forward(self, target: Int[Tensor, "batch target"], encoded: EncoderOutput) -> DecoderOutput:
        """Teacher forcing: each step reads a token of the target, not the one predicted before it.

        Raises:
            ValueError: for a target that is not whole numbers of shape (batch, target), is outside the
                vocabulary, or has another number of sequences than the source, and for a memory of another
                dimension than the decoder was made for.
        """
        state, steps = self.initial_state(encoded), []
        for token in target.unbind(dim=1):  # (batch,)
            steps.append(self.step(token, state, encoded))
            state = steps[-1].state
        logits, _, weights = zip(*steps, strict=True)
        weights = None if weights[0] is None else torch.stack(weights, dim=1)
        return DecoderOutput(torch.stack(logits, dim=1), weights)
