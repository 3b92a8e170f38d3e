"""Read the source from both ends."""

from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from course_lib.inputs import require_tokens, require_whole
from course_lib.masks import token_mask


class Encoded(NamedTuple):
    """What an encoder hands to a decoder.

    `memory` (batch, source, memory_size) has one state per source token, `summary`
    (batch, memory_size) one per sequence, and `mask` (batch, 1, source) is True at real tokens.
    """

    memory: Tensor
    summary: Tensor
    mask: Tensor


class GRUEncoder(nn.Module):
    r"""A bidirectional GRU: one state per token that knows what stands before it and behind it.

    $$\overrightarrow{h}_j = \mathrm{GRU}(\overrightarrow{h}_{j-1}, x_j), \qquad
      \overleftarrow{h}_j = \mathrm{GRU}(\overleftarrow{h}_{j+1}, x_j), \qquad
      h_j = [\overrightarrow{h}_j; \overleftarrow{h}_j]$$

    The summary is $[\overrightarrow{h}_n; \overleftarrow{h}_1]$: what each direction knows when it has
    read everything. Padding is not read. It must stand at the end.

    Attributes:
        memory_size: 2 × hidden_size.

    Source: Schuster and Paliwal (1997); Bahdanau, Cho and Bengio (2015), section 3.2.
    """

    def __init__(
        self, vocabulary_size: int, embedding_size: int, hidden_size: int, *, pad_id: int = 0
    ) -> None:
        super().__init__()
        require_whole(
            vocabulary_size=vocabulary_size, embedding_size=embedding_size, hidden_size=hidden_size
        )
        require_whole(0, pad_id=pad_id)
        self.pad_id, self.memory_size = pad_id, 2 * hidden_size
        self.embedding = nn.Embedding(vocabulary_size, embedding_size)
        self.gru = nn.GRU(embedding_size, hidden_size, batch_first=True, bidirectional=True)

    def forward(self, source: Int[Tensor, "batch source"]) -> Encoded:
        """Read the source tokens.

        Raises:
            ValueError: for tokens that are not whole numbers of shape (batch, source), are outside the
                vocabulary, for a source that is all padding, and for padding before a token.
        """
        require_tokens(self.embedding.num_embeddings, source=source)
        mask = token_mask(source, self.pad_id)  # (batch, 1, source)
        lengths = mask.sum(dim=(1, 2))
        _require_padding_at_the_end(source, mask[:, 0], lengths)
        packed = pack_padded_sequence(
            self.embedding(source), lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        states, last = self.gru(packed)  # last: (2, batch, hidden_size)
        memory, _ = pad_packed_sequence(states, batch_first=True, total_length=source.shape[1])
        return Encoded(memory, torch.cat([last[0], last[1]], dim=-1), mask)


def _require_padding_at_the_end(source: Tensor, mask: Tensor, lengths: Tensor) -> None:
    if (lengths == 0).any():
        raise ValueError(
            f"source[{(lengths == 0).nonzero()[0].item()}] is all padding; a source needs a token"
        )
    wrong = (mask[:, 1:] & ~mask[:, :-1]).any(dim=1)
    if wrong.any():
        row = wrong.nonzero()[0].item()
        raise ValueError(
            f"source[{row}] = {source[row].tolist()} has padding before a token; "
            f"padding must stand at the end"
        )
