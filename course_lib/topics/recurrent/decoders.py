"""Three decoders: one fixed context vector, Bahdanau's attention, Luong's attention."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.topics.recurrent.encoder import EncoderOutput, GRUCell
from course_lib.transformer.attention import Attention
from course_lib.transformer.scoring import AdditiveScore, ConcatScore, DotScore, GeneralScore
from course_lib.validation import require_one_of


class DecoderStep(NamedTuple):
    """The result of one decoding step."""

    logits: Float[Tensor, "batch vocabulary"]  # of the next token
    state: Float[Tensor, "batch state"]  # the new hidden state, as the next step takes it
    weights: Float[Tensor, "batch source"] | None  # None for a decoder without attention


class DecoderOutput(NamedTuple):
    """All steps of a recurrent decoder."""

    logits: Float[Tensor, "batch target vocabulary"]
    weights: Float[Tensor, "batch target source"] | None  # None for a decoder without attention


class RecurrentDecoder(nn.Module):
    """Base class. A decoder adds `initial_state(encoded)` and `step(token, state, encoded)`.

    Args:
        vocabulary_size: of the target.
        embedding_size: the dimension of a target token's embedding $y$.
        hidden_size: the dimension of the hidden state $s$.
        memory_size: the dimension of the encoder's hidden states $h$, and of the context vector $c$.
        input_size: the dimension of the cell's input.
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
        self.memory_size = memory_size
        self.embedding = nn.Embedding(vocabulary_size, embedding_size)
        self.cell = GRUCell(input_size, hidden_size)

    def forward(self, target: Int[Tensor, "batch target"], encoded: EncoderOutput) -> DecoderOutput:
        """Teacher forcing: each step reads a token of the target, not the one predicted before it."""
        state, steps = self.initial_state(encoded), []
        for token in target.t():  # (batch,)
            steps.append(self.step(token, state, encoded))
            state = steps[-1].state
        logits, _, weights = zip(*steps, strict=True)
        weights = None if weights[0] is None else torch.stack(weights, dim=1)
        return DecoderOutput(torch.stack(logits, dim=1), weights)


class MaxoutReadout(nn.Module):
    r"""$g(y, s, c) = W t$, where $t_k$ is the larger of $\tilde t_{2k}$ and $\tilde t_{2k+1}$.

    $$\tilde t = U s + V y + C c$$

    $y$ is the embedding of the previous token, $s$ the hidden state, $c$ the context vector. $\tilde t$ has
    dimension 2 × readout_size. Bahdanau et al. print $s_{i-1}$ for $s$ in their appendix and $s_i$ in
    equation 4; the course follows equation 4.

    Source: Goodfellow et al., "Maxout networks" (2013); Bahdanau, Cho and Bengio (2015), appendix A.2.2.
    """

    def __init__(
        self,
        hidden_size: int,
        embedding_size: int,
        context_size: int,
        readout_size: int,
        vocabulary_size: int,
    ) -> None:
        super().__init__()
        self.U = nn.Linear(hidden_size, 2 * readout_size)
        self.V = nn.Linear(embedding_size, 2 * readout_size, bias=False)
        self.C = nn.Linear(context_size, 2 * readout_size, bias=False)
        self.W = nn.Linear(readout_size, vocabulary_size)

    def forward(self, state: Tensor, word: Tensor, context: Tensor) -> Tensor:
        """Return the logits of the next token, (…, vocabulary)."""
        pieces = self.U(state) + self.V(word) + self.C(context)  # (…, 2 × readout_size)
        return self.W(pieces.unflatten(-1, (-1, 2)).amax(dim=-1))


class FixedContextDecoder(RecurrentDecoder):
    r"""Every step reads the same context vector $c$, the encoder's final state: the bottleneck.

    $$s_0 = \tanh(V c), \qquad s_i = \mathrm{GRU}(s_{i-1}, [y_{i-1}; c]), \qquad
      p(y_i) = g(y_{i-1}, s_i, c)$$

    $y_{i-1}$ is the embedding of the previous token, $g$ a `MaxoutReadout`.

    The arguments are the sizes of a `RecurrentDecoder` and of the maxout layer.

    Source: Cho et al. (2014), section 2.2 and appendix A.1.
    """

    def __init__(
        self,
        vocabulary_size: int,
        embedding_size: int,
        hidden_size: int,
        memory_size: int,
        readout_size: int = 32,
    ) -> None:
        input_size = embedding_size + memory_size
        super().__init__(vocabulary_size, embedding_size, hidden_size, memory_size, input_size)
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
        vocabulary_size, embedding_size, hidden_size, memory_size: as for `RecurrentDecoder`.
        score_size: the number of hidden units of the score; `hidden_size` where left out.
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
        input_size = embedding_size + memory_size
        super().__init__(vocabulary_size, embedding_size, hidden_size, memory_size, input_size)
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
        vocabulary_size, embedding_size, hidden_size, memory_size: as for `RecurrentDecoder`.
        score: "general", "concat", or "dot", which needs `hidden_size` equal to `memory_size`.
        input_feeding: whether the attentional hidden state is an input of the next step.

    Source: Luong, Pham and Manning, "Effective approaches to attention-based neural machine
    translation" (2015), sections 3.1 and 3.3.
    """

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
        scores = {
            "dot": DotScore,
            "general": lambda: GeneralScore(hidden_size, memory_size),
            "concat": lambda: ConcatScore(hidden_size, memory_size, hidden_size),
        }
        require_one_of(scores, score=score)
        self.attention = Attention(scores[score]())
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
