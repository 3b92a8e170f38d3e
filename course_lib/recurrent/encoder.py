"""The encoder: a bidirectional GRU."""

import torch
from jaxtyping import Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from course_lib.checks import recurrent as checks
from course_lib.masks import padding_mask_from_tokens
from course_lib.outputs import EncoderOutput
from course_lib.validation import validated


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
        hidden_size: the dimension of the hidden state of each direction.
        pad_id: the padding token.

    Attributes:
        memory_size: the dimension of $h_j$, 2 × hidden_size.

    Source: Schuster and Paliwal (1997); Bahdanau, Cho and Bengio (2015), section 3.2.
    """

    @validated(checks.encoder_init)
    def __init__(
        self, vocabulary_size: int, embedding_size: int, hidden_size: int, *, pad_id: int = 0
    ) -> None:
        super().__init__()
        self.pad_id, self.memory_size = pad_id, 2 * hidden_size
        self.embedding = nn.Embedding(vocabulary_size, embedding_size)
        self.gru = nn.GRU(
            int(embedding_size), int(hidden_size), batch_first=True, bidirectional=True
        )

    @validated(checks.encoder_forward)
    def forward(self, source: Int[Tensor, "batch source"]) -> EncoderOutput:
        """Return the hidden states of the source, its final state, and its padding mask.

        Raises:
            ValueError: for tokens that are not whole numbers of shape (batch, source), are outside the
                vocabulary, for a source that is all padding, and for padding before a token.
        """
        mask = padding_mask_from_tokens(source, self.pad_id)  # (batch, 1, source)
        lengths = mask.sum(dim=(1, 2)).cpu()  # (batch,)
        packed = pack_padded_sequence(
            self.embedding(source), lengths, batch_first=True, enforce_sorted=False
        )
        states, last = self.gru(packed)  # last: (2, batch, hidden_size)
        memory, _ = pad_packed_sequence(states, batch_first=True, total_length=source.shape[1])
        return EncoderOutput(memory, torch.cat([last[0], last[1]], dim=-1), mask)
