"""The decoder without attention: one context vector for the whole target."""

import torch
from jaxtyping import Int
from torch import Tensor, nn

from course_lib.checks import recurrent as checks
from course_lib.outputs import EncoderOutput
from course_lib.recurrent.decoder import DecoderStep, RecurrentDecoder
from course_lib.recurrent.readout import MaxoutReadout
from course_lib.validation import validated


class FixedContextDecoder(RecurrentDecoder):
    r"""Every step reads the same context vector $c$, the encoder's final state: the bottleneck.

    $$s_0 = \tanh(V c), \qquad s_i = \mathrm{GRU}(s_{i-1}, [y_{i-1}; c]), \qquad
      p(y_i) = g(y_{i-1}, s_i, c)$$

    $y_{i-1}$ is the embedding of the previous token, $g$ a `MaxoutReadout`.

    Args:
        vocabulary_size: of the target.
        embedding_size: the dimension of a target token's embedding.
        hidden_size: the dimension of the hidden state $s$.
        memory_size: the dimension of the context vector $c$.
        readout_size: of the maxout layer.

    Source: Cho et al. (2014), section 2.2 and appendix A.1.
    """

    @validated(checks.fixed_context_init)
    def __init__(
        self,
        vocabulary_size: int,
        embedding_size: int,
        hidden_size: int,
        memory_size: int,
        readout_size: int = 32,
    ) -> None:
        super().__init__(
            vocabulary_size, embedding_size, hidden_size, memory_size, embedding_size + memory_size
        )
        self.start = nn.Linear(memory_size, hidden_size)
        self.readout = MaxoutReadout(
            hidden_size, embedding_size, memory_size, readout_size, vocabulary_size
        )

    def initial_state(self, encoded: EncoderOutput) -> Tensor:
        """Return $s_0$, (batch, hidden_size)."""
        return torch.tanh(self.start(encoded.final_state))

    def step(
        self, token: Int[Tensor, " batch"], state: Tensor, encoded: EncoderOutput
    ) -> DecoderStep:
        """Read the previous token and the context vector."""
        word, context = self.embedding(token), encoded.final_state  # (batch, …_size)
        state = self.cell(torch.cat([word, context], dim=-1), state)  # (batch, hidden_size)
        return DecoderStep(self.readout(state, word, context), state, None)
