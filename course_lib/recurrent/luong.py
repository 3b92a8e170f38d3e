"""The decoder that moves before it looks."""

import torch
from jaxtyping import Int
from torch import Tensor, nn

from course_lib.inputs import require_one_of
from course_lib.recurrent.decoder import RecurrentDecoder, Step
from course_lib.recurrent.encoder import Encoded
from course_lib.scoring import Attention, ConcatScore, DotScore, GeneralScore


class LuongDecoder(RecurrentDecoder):
    r"""The query is the *current* state; the context goes into the prediction.

    $$\begin{aligned}
    s_i &= \mathrm{GRU}(s_{i-1}, y_{i-1}), &\qquad \alpha_{ij} &= \mathrm{softmax}_j\, a(s_i, h_j), \\
    c_i &= \textstyle\sum_j \alpha_{ij} h_j, &\qquad
    \tilde s_i &= \tanh(W_c [c_i; s_i]), \qquad p(y_i) = W_s \tilde s_i
    \end{aligned}$$

    The paper writes $h_t$ for $s_i$ and $\bar h_s$ for $h_j$; its input feeding (section 3.3) is left
    out, and $s_0 = \tanh(V\, \text{summary})$ joins sizes that may differ.

    Args:
        vocabulary_size: of the target.
        embedding_size: of a target token.
        hidden_size: of the state $s$; for "dot" it must equal `memory_size`.
        memory_size: of the encoder's states $h$.
        score: "dot", "general" or "concat".

    Raises:
        ValueError: for an unknown score, and for "dot" with unequal sizes.

    Source: Luong, Pham and Manning, "Effective approaches to attention-based neural machine
    translation" (2015), section 3.1.
    """

    def __init__(
        self,
        vocabulary_size: int,
        embedding_size: int,
        hidden_size: int,
        memory_size: int,
        score: str = "general",
    ) -> None:
        super().__init__(vocabulary_size, embedding_size, hidden_size, memory_size, embedding_size)
        require_one_of(("dot", "general", "concat"), score=score)
        if score == "dot" and hidden_size != memory_size:
            raise ValueError(
                f'score="dot" compares states as they are, so hidden_size={hidden_size} must equal '
                f'memory_size={memory_size}; score="general" takes any sizes'
            )
        self.start = nn.Linear(memory_size, hidden_size)
        scores = {
            "dot": lambda: DotScore(),
            "general": lambda: GeneralScore(hidden_size, memory_size),
            "concat": lambda: ConcatScore(hidden_size, memory_size, hidden_size),
        }
        self.attention = Attention(scores[score]())
        self.combine = nn.Linear(memory_size + hidden_size, hidden_size, bias=False)  # W_c
        self.readout = nn.Linear(hidden_size, vocabulary_size, bias=False)  # W_s

    def first_state(self, encoded: Encoded) -> Tensor:
        """Return $s_0$."""
        return torch.tanh(self.start(encoded.summary))

    def step(self, token: Int[Tensor, " batch"], state: Tensor, encoded: Encoded) -> Step:
        """Move on, then look at the source with the new state."""
        state = self.cell(self.embedding(token), state)
        memory = encoded.memory
        output, weights = self.attention(state[:, None], memory, memory, encoded.mask)
        attentional = torch.tanh(self.combine(torch.cat([output[:, 0], state], dim=-1)))
        return Step(self.readout(attentional), state, weights[:, 0])
