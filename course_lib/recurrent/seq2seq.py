"""An encoder and a decoder, joined."""

from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor, nn

from course_lib.inputs import require_whole
from course_lib.recurrent.decoder import Decoded, RecurrentDecoder
from course_lib.recurrent.encoder import GRUEncoder


class Translated(NamedTuple):
    """`tokens` (batch, target), padded behind the end, and `weights` (batch, target, source) or None."""

    tokens: Tensor
    weights: Tensor | None


class Seq2Seq(nn.Module):
    """Translate sequences to sequences.

    Args:
        encoder: from source tokens to memory.
        decoder: from memory and the tokens written so far to the next one.
        bos_id, eos_id, pad_id: the special tokens of the target.

    Raises:
        ValueError: for an encoder and a decoder of unequal `memory_size`, and for special tokens that are
            not in the decoder's vocabulary.
    """

    def __init__(
        self,
        encoder: GRUEncoder,
        decoder: RecurrentDecoder,
        *,
        bos_id: int = 1,
        eos_id: int = 2,
        pad_id: int = 0,
    ) -> None:
        super().__init__()
        if encoder.memory_size != decoder.memory_size:
            raise ValueError(
                f"encoder has memory_size={encoder.memory_size}, but decoder was made with "
                f"memory_size={decoder.memory_size}; they must be equal"
            )
        require_whole(0, bos_id=bos_id, eos_id=eos_id, pad_id=pad_id)
        size = decoder.embedding.num_embeddings
        for name, number in (("bos_id", bos_id), ("eos_id", eos_id), ("pad_id", pad_id)):
            if number >= size:
                raise ValueError(
                    f"{name}={number}, but the decoder's vocabulary has {size} tokens, 0 to {size - 1}"
                )
        self.encoder, self.decoder = encoder, decoder
        self.bos_id, self.eos_id, self.pad_id = bos_id, eos_id, pad_id

    def forward(
        self, source: Int[Tensor, "batch source"], target: Int[Tensor, "batch target"]
    ) -> Decoded:
        """Teacher forcing: logits at place i are for the token that follows `target[:, i]`.

        Raises:
            ValueError: where the encoder or the decoder would.
        """
        return self.decoder(target, self.encoder(source))

    @torch.no_grad()
    def translate(self, source: Int[Tensor, "batch source"], max_length: int = 50) -> Translated:
        """Free running: each step reads what the step before wrote, the most probable token.

        Stops when every sequence has ended, or after `max_length` tokens. The end token is kept.

        Raises:
            ValueError: where the encoder would, and for a `max_length` below 1.
        """
        require_whole(max_length=max_length)
        encoded = self.encoder(source)
        state, tokens, weights = self.decoder.first_state(encoded), [], []
        token = source.new_full((len(source),), self.bos_id)
        ended = torch.zeros_like(token, dtype=torch.bool)
        while len(tokens) < max_length and not ended.all():
            logits, state, looked = self.decoder.step(token, state, encoded)
            token = logits.argmax(dim=-1).masked_fill(ended, self.pad_id)  # (batch,)
            ended = ended | (token == self.eos_id)
            tokens.append(token)
            weights.append(looked)
        maps = None if weights[0] is None else torch.stack(weights, dim=1)
        return Translated(torch.stack(tokens, dim=1), maps)
