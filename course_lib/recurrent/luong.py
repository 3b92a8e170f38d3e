"""Luong's decoder: attention with the current hidden state."""

import torch
from jaxtyping import Int
from torch import Tensor, nn

from course_lib.attention import Attention
from course_lib.checks import recurrent as checks
from course_lib.outputs import EncoderOutput
from course_lib.recurrent.decoder import DecoderStep, RecurrentDecoder
from course_lib.scoring import ConcatScore, DotScore, GeneralScore
from course_lib.validation import validated


class LuongDecoder(RecurrentDecoder):
    r"""The query is the *current* hidden state; the context vector is an input of the prediction.

    $$\begin{aligned}
    s_i &= \mathrm{GRU}(s_{i-1}, y_{i-1}), &\qquad \alpha_{ij} &= \mathrm{softmax}_j\, a(s_i, h_j), \\
    c_i &= \textstyle\sum_j \alpha_{ij} h_j, &\qquad
    \tilde s_i &= \tanh(W_c [c_i; s_i]), \qquad p(y_i) = W_s \tilde s_i
    \end{aligned}$$

    $c_i$ is the context vector, $\tilde s_i$ the attentional hidden state. The paper writes $h_t$ for $s_i$
    and $\bar h_s$ for $h_j$. $s_0 = \tanh(V h)$, with $h$ the encoder's final state, whose dimension may
    differ from that of $s_0$.

    With input feeding (section 3.3) the attentional hidden state is an input of the next step,
    $s_i = \mathrm{GRU}(s_{i-1}, [y_{i-1}; \tilde s_{i-1}])$ with $\tilde s_0 = 0$, so that the decoder knows
    which positions it has attended to. What is passed from step to step is then $[s_i; \tilde s_i]$.

    Args:
        vocabulary_size: of the target.
        embedding_size: the dimension of a target token's embedding.
        hidden_size: the dimension of the hidden state $s$; for "dot" it must equal `memory_size`.
        memory_size: the dimension of the encoder's hidden states $h$.
        score: "dot", "general" or "concat".
        input_feeding: whether the attentional hidden state is an input of the next step.

    Raises:
        ValueError: for an unknown score, and for "dot" with unequal sizes.

    Source: Luong, Pham and Manning, "Effective approaches to attention-based neural machine
    translation" (2015), sections 3.1 and 3.3.
    """

    @validated(checks.luong_init)
    def __init__(
        self,
        vocabulary_size: int,
        embedding_size: int,
        hidden_size: int,
        memory_size: int,
        score: str = "general",
        *,
        input_feeding: bool = False,
    ) -> None:
        input_size = embedding_size + hidden_size if input_feeding else embedding_size
        super().__init__(vocabulary_size, embedding_size, hidden_size, memory_size, input_size)
        self.input_feeding = input_feeding
        self.start = nn.Linear(memory_size, hidden_size)  # V
        if score == "dot":
            compare = DotScore()
        elif score == "general":
            compare = GeneralScore(hidden_size, memory_size)
        else:
            compare = ConcatScore(hidden_size, memory_size, hidden_size)
        self.attention = Attention(compare)
        self.combine = nn.Linear(memory_size + hidden_size, hidden_size, bias=False)  # W_c
        self.readout = nn.Linear(hidden_size, vocabulary_size, bias=False)  # W_s

    def initial_state(self, encoded: EncoderOutput) -> Tensor:
        """Return $s_0$, (batch, hidden_size); with input feeding $[s_0; 0]$, (batch, 2 × hidden_size)."""
        state = torch.tanh(self.start(encoded.final_state))
        return torch.cat([state, torch.zeros_like(state)], dim=-1) if self.input_feeding else state

    def step(
        self, token: Int[Tensor, " batch"], state: Tensor, encoded: EncoderOutput
    ) -> DecoderStep:
        """Compute the next hidden state, then attend to the source with it."""
        inputs = self.embedding(token)  # (batch, embedding_size)
        if self.input_feeding:
            state, attentional = state.chunk(2, dim=-1)  # each (batch, hidden_size)
            inputs = torch.cat([inputs, attentional], dim=-1)
        state = self.cell(inputs, state)  # (batch, hidden_size)
        memory, query = encoded.memory, state[:, None]  # (batch, source, …), (batch, 1, …)
        output, weights = self.attention(query, memory, memory, encoded.mask)
        context = output[:, 0]  # (batch, memory_size)
        attentional = torch.tanh(self.combine(torch.cat([context, state], dim=-1)))
        carried = torch.cat([state, attentional], dim=-1) if self.input_feeding else state
        return DecoderStep(self.readout(attentional), carried, weights[:, 0])
