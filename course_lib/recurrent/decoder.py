"""What all recurrent decoders share: a state, a step, and a loop over it."""

from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor, nn

from course_lib.inputs import require_size, require_tokens, require_whole
from course_lib.recurrent.cell import GRUCell
from course_lib.recurrent.encoder import Encoded


class Step(NamedTuple):
    """One step of a decoder.

    `logits` (batch, vocabulary), `state` (batch, hidden_size) for the next step, and `weights`
    (batch, source), None for a decoder without attention.
    """

    logits: Tensor
    state: Tensor
    weights: Tensor | None


class Decoded(NamedTuple):
    """All steps: `logits` (batch, target, vocabulary), `weights` (batch, target, source) or None."""

    logits: Tensor
    weights: Tensor | None


class RecurrentDecoder(nn.Module):
    """Base of the decoders: they say how to start and what one step is.

    Args:
        vocabulary_size: of the target.
        embedding_size: of a target token.
        hidden_size: of the state.
        memory_size: of the encoder's states and summary.
        input_size: of what the cell reads at each step.
    """

    def __init__(
        self,
        vocabulary_size: int,
        embedding_size: int,
        hidden_size: int,
        memory_size: int,
        input_size: int,
    ) -> None:
        super().__init__()
        require_whole(
            vocabulary_size=vocabulary_size,
            embedding_size=embedding_size,
            hidden_size=hidden_size,
            memory_size=memory_size,
        )
        self.memory_size = memory_size
        self.embedding = nn.Embedding(vocabulary_size, embedding_size)
        self.cell = GRUCell(input_size, hidden_size)

    def first_state(self, encoded: Encoded) -> Tensor:
        """Return the state before the first step, (batch, hidden_size)."""
        raise NotImplementedError

    def step(self, token: Int[Tensor, " batch"], state: Tensor, encoded: Encoded) -> Step:
        """Read the token written last, and give logits for the next one."""
        raise NotImplementedError

    def forward(self, target: Int[Tensor, "batch target"], encoded: Encoded) -> Decoded:
        """Teacher forcing: step through given tokens, whatever the decoder would have written itself.

        Raises:
            ValueError: for a target that is not whole numbers of shape (batch, target), is outside the
                vocabulary, or has not as many sequences as were encoded, and for a memory of another
                size than the decoder was made for.
        """
        require_tokens(self.embedding.num_embeddings, target=target)
        if len(target) != len(encoded.memory):
            raise ValueError(
                f"target has {len(target)} sequences, but {len(encoded.memory)} sources were encoded; "
                f"they belong together pair by pair"
            )
        made = f"the decoder was made with memory_size={self.memory_size}"
        require_size(self.memory_size, made, memory=encoded.memory)
        state, steps = self.first_state(encoded), []
        for token in target.unbind(dim=1):  # (batch,)
            steps.append(self.step(token, state, encoded))
            state = steps[-1].state
        weights = None
        if steps[0].weights is not None:
            weights = torch.stack([step.weights for step in steps], dim=1)
        return Decoded(torch.stack([step.logits for step in steps], dim=1), weights)
