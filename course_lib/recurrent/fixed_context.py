"""The decoder before attention: one context for the whole sentence."""

import torch
from jaxtyping import Int
from torch import Tensor, nn

from course_lib.recurrent.decoder import RecurrentDecoder, Step
from course_lib.recurrent.encoder import Encoded
from course_lib.recurrent.readout import MaxoutReadout


class FixedContextDecoder(RecurrentDecoder):
    r"""Every step reads the same summary $c$ of the source: the bottleneck.

    $$s_0 = \tanh(V c), \qquad s_i = \mathrm{GRU}(s_{i-1}, [y_{i-1}; c]), \qquad
      p(y_i) = g(y_{i-1}, s_i, c)$$

    $y_{i-1}$ is the embedded token written last, $g$ a `MaxoutReadout`.

    Source: Cho and others (2014), section 2.2 and appendix A.1.
    """

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

    def first_state(self, encoded: Encoded) -> Tensor:
        """Return $s_0$."""
        return torch.tanh(self.start(encoded.summary))

    def step(self, token: Int[Tensor, " batch"], state: Tensor, encoded: Encoded) -> Step:
        """Read the token written last and the summary."""
        word, context = self.embedding(token), encoded.summary
        state = self.cell(torch.cat([word, context], dim=-1), state)
        return Step(self.readout(state, word, context), state, None)
