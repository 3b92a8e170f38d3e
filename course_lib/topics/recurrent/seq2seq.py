"""An encoder and a decoder as one model."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.topics.recurrent.decoders import DecoderOutput, RecurrentDecoder
from course_lib.topics.recurrent.encoder import EncoderOutput, GRUEncoder
from course_lib.validation import require_whole


class GenerationOutput(NamedTuple):
    """What a model generated."""

    tokens: Int[Tensor, "batch target"]  # padded after the end token
    weights: Float[Tensor, "batch target source"] | None  # None for a decoder without attention


@dataclass
class RecurrentState:
    """What the model keeps between two decode steps: the decoder's hidden state, the encoder's output."""

    hidden: Float[Tensor, "batch hidden_size"]
    encoded: EncoderOutput

    def reorder(self, rows: Int[Tensor, " new_batch"], *, same_sources: bool = False) -> None:
        """Keep these sequences of the batch, in this order; see `course_lib.transformer.decoding.IncrementalDecoder`."""
        self.hidden = self.hidden.index_select(0, rows)
        if not same_sources:
            self.encoded = EncoderOutput(*(part.index_select(0, rows) for part in self.encoded))


class Seq2Seq(nn.Module):
    """A model from sequences to sequences: it encodes the source, then decodes the target.

    Args:
        encoder: from source tokens to the memory.
        decoder: from the memory and the tokens generated so far to the next one.
        bos_id, eos_id, pad_id: the special tokens of the target.
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
        self.encoder, self.decoder = encoder, decoder
        self.bos_id, self.eos_id, self.pad_id = bos_id, eos_id, pad_id

    def forward(
        self, source: Int[Tensor, "batch source"], target: Int[Tensor, "batch target"]
    ) -> DecoderOutput:
        """Teacher forcing: the logits at position i predict the token that follows `target[:, i]`."""
        return self.decoder(target, self.encoder(source))

    @torch.no_grad()
    def generate(
        self, source: Int[Tensor, "batch source"], max_length: int = 50
    ) -> GenerationOutput:
        """Autoregressive (free-running) decoding: each step reads the most probable token of the step before.

        Stops when every sequence has ended, or after `max_length` tokens. The end token is kept.
        """
        require_whole(max_length=max_length)
        encoded = self.encoder(source)
        state, steps = self.decoder.initial_state(encoded), []
        token = source.new_full((len(source),), self.bos_id)  # (batch,)
        ended = torch.zeros_like(token, dtype=torch.bool)
        while len(steps) < max_length and not ended.all():
            logits, state, weights = self.decoder.step(token, state, encoded)
            token = logits.argmax(dim=-1).masked_fill(ended, self.pad_id)
            ended |= token == self.eos_id
            steps.append((token, weights))
        tokens, weights = zip(*steps, strict=True)
        weights = None if weights[0] is None else torch.stack(weights, dim=1)
        return GenerationOutput(torch.stack(tokens, dim=1), weights)

    # --- what `course_lib.transformer.decoding` asks of a model: an `IncrementalDecoder` ---

    @property
    def vocabulary_size(self) -> int:
        """How many tokens the target has."""
        return self.decoder.embedding.num_embeddings

    def prefill(
        self, source: Int[Tensor, "batch source"], *, bos_id: int
    ) -> tuple[Float[Tensor, "batch vocabulary"], RecurrentState]:
        """Encode the source and decode the start token; return logits for the first token, and the state."""
        encoded = self.encoder(source)
        state = RecurrentState(self.decoder.initial_state(encoded), encoded)
        return self.decode_step(source.new_full((len(source),), bos_id), state), state

    def decode_step(
        self, token: Int[Tensor, " batch"], state: RecurrentState
    ) -> Float[Tensor, "batch vocabulary"]:
        """Decode one more token; return logits for the next one, and update the state."""
        logits, state.hidden, _ = self.decoder.step(token, state.hidden, state.encoded)
        return logits
