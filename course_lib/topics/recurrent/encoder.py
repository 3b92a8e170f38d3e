"""The GRU cell, and the encoder: a bidirectional GRU."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from course_lib.transformer.masks import padding_mask_from_tokens


class GRUCell(nn.Module):
    r"""Compute the next hidden state, a gated mixture of the previous one and a candidate.

    $$\begin{aligned}
    r &= \sigma(W_r x + U_r h), &\qquad n &= \tanh(W_n x + r \odot (U_n h)), \\
    z &= \sigma(W_z x + U_z h), &\qquad h' &= (1 - z) \odot n + z \odot h
    \end{aligned}$$

    Every product has a bias of its own. The reset gate $r$ controls how much the candidate $n$ sees of the
    previous hidden state $h$, the update gate $z$ how much of $h$ is kept. This is PyTorch's form. Cho
    et al. and Bahdanau et al. apply $r$ to $h$ before $U_n$ instead of after it; Bahdanau et al. also exchange
    $z$ and $1 - z$.

    The input $x$ has dimension `input_size`, the hidden state $h$ `hidden_size`. The three $W$ are the rows of
    one matrix, in the order r, z, n, and so are the three $U$.

    Source: Cho et al., "Learning phrase representations using RNN encoder-decoder for statistical
    machine translation" (2014); `torch.nn.GRUCell`.
    """

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.W = nn.Linear(input_size, 3 * hidden_size)
        self.U = nn.Linear(hidden_size, 3 * hidden_size)

    def forward(
        self, input: Float[Tensor, "*batch input_size"], state: Float[Tensor, "*batch hidden_size"]
    ) -> Float[Tensor, "*batch hidden_size"]:
        """Return the next hidden state."""
        r_input, z_input, n_input = self.W(input).chunk(3, dim=-1)
        r_state, z_state, n_state = self.U(state).chunk(3, dim=-1)
        r = torch.sigmoid(r_input + r_state)  # (…, hidden_size), as all that follows
        z = torch.sigmoid(z_input + z_state)
        n = torch.tanh(n_input + r * n_state)
        return (1 - z) * n + z * state


class EncoderOutput(NamedTuple):
    """What a recurrent encoder hands to its decoder."""

    memory: Float[Tensor, "batch source memory_size"]  # one hidden state per source token
    final_state: Float[Tensor, "batch memory_size"]  # the last hidden state of each direction
    mask: Bool[Tensor, "batch 1 source"]  # True at tokens that are not padding


class GRUEncoder(nn.Module):
    r"""A bidirectional GRU: one hidden state per token, computed from the tokens before and after it too.

    $$\overrightarrow{h}_j = \mathrm{GRU}(\overrightarrow{h}_{j-1}, x_j), \qquad
      \overleftarrow{h}_j = \mathrm{GRU}(\overleftarrow{h}_{j+1}, x_j), \qquad
      h_j = [\overrightarrow{h}_j; \overleftarrow{h}_j]$$

    The final state is $[\overrightarrow{h}_n; \overleftarrow{h}_1]$, the last hidden state of each
    direction. Padding, which must be at the end, is skipped.

    Args:
        vocabulary_size: of the source.
        embedding_size: the dimension of a token's embedding $x_j$.
        hidden_size: the dimension of each direction's state; that of $h_j$, `memory_size`, is twice it.
        pad_id: the padding token.

    Source: Schuster and Paliwal (1997); Bahdanau, Cho and Bengio (2015), section 3.2.
    """

    def __init__(
        self, vocabulary_size: int, embedding_size: int, hidden_size: int, *, pad_id: int = 0
    ) -> None:
        super().__init__()
        self.pad_id, self.memory_size = pad_id, 2 * hidden_size
        self.embedding = nn.Embedding(vocabulary_size, embedding_size)
        self.gru = nn.GRU(embedding_size, hidden_size, batch_first=True, bidirectional=True)

    def forward(self, source: Int[Tensor, "batch source"]) -> EncoderOutput:
        """Return the hidden states of the source, its final state, and its padding mask."""
        mask = padding_mask_from_tokens(source, self.pad_id)  # (batch, 1, source)
        lengths = mask.sum(dim=(1, 2))  # (batch,)
        empty = (lengths == 0).nonzero()
        if len(empty):
            raise ValueError(f"source[{empty[0].item()}] is all padding; a source needs a token")
        early = (~mask[:, 0, :-1] & mask[:, 0, 1:]).nonzero()  # (row, position)
        if len(early):
            row = early[0, 0].item()
            raise ValueError(
                f"source[{row}] has padding before a token; padding must be at the end"
            )
        packed = pack_padded_sequence(
            self.embedding(source), lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        states, last = self.gru(packed)  # last: (2, batch, hidden_size)
        memory, _ = pad_packed_sequence(states, batch_first=True, total_length=source.shape[1])
        return EncoderOutput(memory, torch.cat([last[0], last[1]], dim=-1), mask)
