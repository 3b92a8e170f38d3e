"""An encoder and a decoder as one model."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.checks import recurrent as checks
from course_lib.outputs import DecoderOutput
from course_lib.recurrent.decoder import RecurrentDecoder
from course_lib.recurrent.encoder import GRUEncoder
from course_lib.recurrent.state import RecurrentState
from course_lib.validation import validated


class GenerationOutput(NamedTuple):
    """What a model generated.

    Attributes:
        tokens: (batch, target), padded after the end token.
        weights: attention weights, (batch, target, source); None for a decoder without attention.
    """

    tokens: Tensor
    weights: Tensor | None


class Seq2Seq(nn.Module):
    """A model from sequences to sequences: it encodes the source, then decodes the target.

    Args:
        encoder: from source tokens to the memory.
        decoder: from the memory and the tokens generated so far to the next one.
        bos_id, eos_id, pad_id: the special tokens of the target.

    Raises:
        ValueError: for an encoder and a decoder of unequal `memory_size`, and for special tokens that are
            not in the decoder's vocabulary.
    """

    @validated(checks.seq2seq_init)
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
        self.encoder, self.decoder = encoder, decoder
        self.bos_id, self.eos_id, self.pad_id = bos_id, eos_id, pad_id

    def forward(
        self, source: Int[Tensor, "batch source"], target: Int[Tensor, "batch target"]
    ) -> DecoderOutput:
        """Teacher forcing: the logits at position i predict the token that follows `target[:, i]`.

        Raises:
            ValueError: where the encoder or the decoder would.
        """
        return self.decoder(target, self.encoder(source))

    @torch.no_grad()
    @validated(checks.generate, calls_back=True)
    def generate(
        self, source: Int[Tensor, "batch source"], max_length: int = 50
    ) -> GenerationOutput:
        """Autoregressive (free-running) decoding: each step reads the most probable token of the step before.

        Stops when every sequence has ended, or after `max_length` tokens. The end token is kept.

        Args:
            source: token ids, (batch, source).
            max_length: the largest number of tokens to generate.

        Raises:
            ValueError: where the encoder would, and for a `max_length` below 1.
        """
        encoded = self.encoder(source)
        state, steps = self.decoder.initial_state(encoded), []
        token = source.new_full((len(source),), self.bos_id)  # (batch,)
        ended = torch.zeros_like(token, dtype=torch.bool)
        while len(steps) < max_length and not ended.all():
            logits, state, weights = self.decoder.step(token, state, encoded)
            token = logits.argmax(dim=-1).masked_fill(ended, self.pad_id)
            ended = ended | (token == self.eos_id)
            steps.append((token, weights))
        tokens, weights = zip(*steps, strict=True)
        weights = None if weights[0] is None else torch.stack(weights, dim=1)
        return GenerationOutput(torch.stack(tokens, dim=1), weights)

    # --- what `course_lib.decoding` asks of a model: an `IncrementalDecoder` ---

    @property
    def vocabulary_size(self) -> int:
        """How many tokens the target has."""
        return self.decoder.embedding.num_embeddings

    def prefill(
        self, source: Int[Tensor, "batch source"], *, bos_id: int
    ) -> tuple[Float[Tensor, "batch vocabulary"], RecurrentState]:
        """Encode the source and decode the start token; return logits for the first token, and the state.

        Raises:
            ValueError: where the encoder would.
        """
        encoded = self.encoder(source)
        state = RecurrentState(self.decoder.initial_state(encoded), encoded)
        return self.decode_step(source.new_full((len(source),), bos_id), state), state

    @validated(checks.decode_step)
    def decode_step(
        self, token: Int[Tensor, " batch"], state: RecurrentState
    ) -> Float[Tensor, "batch vocabulary"]:
        """Decode one more token; return logits for the next one, and update the state.

        Raises:
            ValueError: unless there is one token of the vocabulary per sequence.
        """
        logits, state.hidden, _ = self.decoder.step(token, state.hidden, state.encoded)
        return logits
