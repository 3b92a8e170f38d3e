"""The decoder that looks before it moves."""

import torch
from jaxtyping import Int
from torch import Tensor, nn

from course_lib.inputs import require_whole
from course_lib.recurrent.decoder import RecurrentDecoder, Step
from course_lib.recurrent.encoder import Encoded
from course_lib.recurrent.readout import MaxoutReadout
from course_lib.scoring import AdditiveScore, Attention


class BahdanauDecoder(RecurrentDecoder):
    r"""The query is the *previous* state; the context goes into the next one.

    $$\begin{aligned}
    e_{ij} &= v^\top \tanh(W s_{i-1} + U h_j), &\qquad \alpha_{ij} &= \mathrm{softmax}_j(e_{ij}), \\
    c_i &= \textstyle\sum_j \alpha_{ij} h_j, &\qquad s_i &= \mathrm{GRU}(s_{i-1}, [y_{i-1}; c_i]), \\
    p(y_i) &= g(y_{i-1}, s_i, c_i), &\qquad s_0 &= \tanh(W_s \overleftarrow{h}_1)
    \end{aligned}$$

    $h_j$ is the memory, $y_{i-1}$ the embedded token written last, $g$ a `MaxoutReadout`. The keys
    are projected by $U$; the values are the states $h_j$ themselves.

    Args:
        vocabulary_size: of the target.
        embedding_size: of a target token.
        hidden_size: of the state $s$.
        memory_size: of the encoder's states $h$.
        score_size: of the hidden layer of the score; `hidden_size` where left out.
        readout_size: of the maxout layer.

    Source: Bahdanau, Cho and Bengio, "Neural machine translation by jointly learning to align and
    translate" (2015), equations 4 to 6 and appendix A.
    """

    def __init__(
        self,
        vocabulary_size: int,
        embedding_size: int,
        hidden_size: int,
        memory_size: int,
        score_size: int | None = None,
        readout_size: int = 32,
    ) -> None:
        super().__init__(
            vocabulary_size, embedding_size, hidden_size, memory_size, embedding_size + memory_size
        )
        require_whole(2, memory_size=memory_size)
        score_size = hidden_size if score_size is None else score_size
        require_whole(score_size=score_size)
        self.start = nn.Linear(memory_size // 2, hidden_size)
        self.attention = Attention(AdditiveScore(hidden_size, memory_size, score_size))
        self.readout = MaxoutReadout(
            hidden_size, embedding_size, memory_size, readout_size, vocabulary_size
        )

    def first_state(self, encoded: Encoded) -> Tensor:
        """Return $s_0$, from the backward half of the summary: it has read the source from the end."""
        return torch.tanh(self.start(encoded.summary.chunk(2, dim=-1)[1]))

    def step(self, token: Int[Tensor, " batch"], state: Tensor, encoded: Encoded) -> Step:
        """Look at the source with the previous state, then move on."""
        memory = encoded.memory
        output, weights = self.attention(state[:, None], memory, memory, encoded.mask)
        word, context = self.embedding(token), output[:, 0]  # one query: (batch, 1, size)
        state = self.cell(torch.cat([word, context], dim=-1), state)
        return Step(self.readout(state, word, context), state, weights[:, 0])
