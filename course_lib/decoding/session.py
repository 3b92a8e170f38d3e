"""A model, its decoding state and the logits of the next token: what every decoding loop holds."""

from collections.abc import Callable, Iterator

import torch
from jaxtyping import Float, Int
from torch import Tensor

from course_lib.checks import decoding as checks
from course_lib.decoding.protocol import IncrementalDecoder
from course_lib.validation import validated


class DecodingSession:
    """Incremental decoding of one batch: a prefill, and then one decode step per token.

    Args:
        model: any `IncrementalDecoder`. A `Transformer` encodes `source` and starts with `bos_id`; a
            `DecoderOnly` continues `source` after its last token, so shorter prompts are padded on the left.
        source: (batch, length).
        bos_id: the start token of an encoder–decoder's target.

    Attributes:
        model: as given.
        logits: (batch, vocabulary), for the next token.
        state: what the model keeps of the tokens so far, a `DecodingState`.

    Raises:
        ValueError: for a model that does not follow the protocol, a start token outside the vocabulary, and
            a source that the model refuses.
    """

    @validated(checks.session_init, calls_back=True)
    @torch.no_grad()
    def __init__(
        self, model: IncrementalDecoder, source: Int[Tensor, "batch length"], *, bos_id: int = 1
    ) -> None:
        self.model = model
        self.logits, self.state = model.prefill(source, bos_id=bos_id)

    @validated(checks.session_step, calls_back=True)
    @torch.no_grad()
    def step(self, token: Int[Tensor, " batch"]) -> Float[Tensor, "batch vocabulary"]:
        """Append one token to every sequence; return logits for the next one.

        Raises:
            ValueError: unless there is one token of the vocabulary per sequence.
        """
        self.logits = self.model.decode_step(token, self.state)
        return self.logits

    @validated(checks.session_reorder)
    def reorder(self, rows: Int[Tensor, " new_batch"], *, same_sources: bool = False) -> None:
        """Keep these sequences of the batch, in this order; see `DecodingState.reorder`.

        Raises:
            ValueError: for rows that are not integers with one axis, or not rows of the batch.
        """
        self.state.reorder(rows, same_sources=same_sources)
        self.logits = self.logits.index_select(0, rows)

    def log_probabilities(self) -> Float[Tensor, "batch vocabulary"]:
        """Return the log-probabilities of the next token, in float32.

        Raises:
            ValueError: for logits that are no distribution: NaN, infinite, or minus infinity for all tokens.
        """
        checks.distribution(self.logits)
        return self.logits.float().log_softmax(dim=-1)


def generated_tokens(
    session: DecodingSession,
    choose: Callable[[Tensor], Tensor],
    *,
    max_length: int,
    eos_id: int,
) -> Iterator[Int[Tensor, " batch"]]:
    """Yield one token per sequence after another until every sequence has ended.

    Args:
        session: after its prefill.
        choose: from logits (batch, vocabulary) to one token per sequence, (batch,).
        max_length: the maximum number of tokens, end token included.
        eos_id: the token that ends a sequence; padding follows it.
    """
    ended = torch.zeros(len(session.logits), dtype=torch.bool, device=session.logits.device)
    for count in range(1, max_length + 1):
        token = choose(session.logits).masked_fill(ended, session.model.pad_id)  # (batch,)
        yield token
        ended = ended | (token == eos_id)
        if count == max_length or ended.all():
            return
        session.step(token)


def generate(
    session: DecodingSession,
    choose: Callable[[Tensor], Tensor],
    *,
    max_length: int,
    eos_id: int,
) -> Int[Tensor, "batch target"]:
    """Return all `generated_tokens`."""
    tokens = generated_tokens(session, choose, max_length=max_length, eos_id=eos_id)
    return torch.stack(list(tokens), dim=1)
