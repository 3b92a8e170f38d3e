"""Bahdanau's decoder: attention with the previous hidden state."""

import torch
from jaxtyping import Int
from torch import Tensor, nn

from course_lib.attention import Attention
from course_lib.checks import recurrent as checks
from course_lib.outputs import EncoderOutput
from course_lib.recurrent.decoder import DecoderStep, RecurrentDecoder
from course_lib.recurrent.readout import MaxoutReadout
from course_lib.scoring import AdditiveScore
from course_lib.validation import validated


class BahdanauDecoder(RecurrentDecoder):
    r"""The query is the *previous* hidden state; the context vector is an input of the next one.

    $$\begin{aligned}
    e_{ij} &= v^\top \tanh(W s_{i-1} + U h_j), &\qquad \alpha_{ij} &= \mathrm{softmax}_j(e_{ij}), \\
    c_i &= \textstyle\sum_j \alpha_{ij} h_j, &\qquad s_i &= \mathrm{GRU}(s_{i-1}, [y_{i-1}; c_i]), \\
    p(y_i) &= g(y_{i-1}, s_i, c_i), &\qquad s_0 &= \tanh(W_s \overleftarrow{h}_1)
    \end{aligned}$$

    $h_j$ is the memory, $y_{i-1}$ the embedding of the previous token, $c_i$ the context vector, and $g$ a
    `MaxoutReadout`. The keys are projected by $U$; the values are the hidden states $h_j$ themselves.

    Args:
        vocabulary_size: of the target.
        embedding_size: the dimension of a target token's embedding.
        hidden_size: the dimension of the hidden state $s$.
        memory_size: the dimension of the encoder's hidden states $h$.
        score_size: the number of hidden units of the score; `hidden_size` where left out.
        readout_size: of the maxout layer.

    Source: Bahdanau, Cho and Bengio, "Neural machine translation by jointly learning to align and
    translate" (2015), equations 4 to 6 and appendix A.
    """

    @validated(checks.bahdanau_init)
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
        score_size = hidden_size if score_size is None else score_size
        self.start = nn.Linear(memory_size // 2, hidden_size)
        self.attention = Attention(AdditiveScore(hidden_size, memory_size, score_size))
        self.readout = MaxoutReadout(
            hidden_size, embedding_size, memory_size, readout_size, vocabulary_size
        )

    def initial_state(self, encoded: EncoderOutput) -> Tensor:
        """Return $s_0$, (batch, hidden_size), from the final state of the encoder's backward direction."""
        _, backward = encoded.final_state.chunk(2, dim=-1)  # (batch, memory_size / 2)
        return torch.tanh(self.start(backward))

    def step(
        self, token: Int[Tensor, " batch"], state: Tensor, encoded: EncoderOutput
    ) -> DecoderStep:
        """Attend to the source with the previous hidden state, then compute the next one."""
        memory, query = encoded.memory, state[:, None]  # (batch, source, …), (batch, 1, …)
        output, weights = self.attention(query, memory, memory, encoded.mask)
        word, context = self.embedding(token), output[:, 0]  # (batch, memory_size)
        state = self.cell(torch.cat([word, context], dim=-1), state)  # (batch, hidden_size)
        return DecoderStep(self.readout(state, word, context), state, weights[:, 0])
