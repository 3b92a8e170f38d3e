"""Greedy decoding."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from course_lib.checks import decoding as checks
from course_lib.decoding.protocol import IncrementalDecoder
from course_lib.decoding.session import DecodingSession, generate
from course_lib.validation import validated


def most_probable(logits: Float[Tensor, "batch vocabulary"]) -> Int[Tensor, " batch"]:
    """Return the most probable token of each distribution.

    Raises:
        ValueError: for logits that are no distribution.
    """
    checks.distribution(logits)
    return logits.argmax(dim=-1)  # (batch,)


@validated(checks.greedy, calls_back=True)
@torch.no_grad()
def greedy(
    model: IncrementalDecoder,
    source: Int[Tensor, "batch source"],
    *,
    max_length: int = 50,
    bos_id: int = 1,
    eos_id: int = 2,
) -> Int[Tensor, "batch target"]:
    r"""Generate the most probable token at each step: $y_t = \arg\max_v\, p(v \mid y_1, \dots, y_{t-1}, x)$.

    Stops when every sequence has ended, or after `max_length` tokens. The model stays in the mode it is in:
    call `model.eval()` first, or dropout is active.

    Args:
        model: any `IncrementalDecoder`, such as a `Transformer`, or a `DecoderOnly` that continues `source`.
        source: (batch, source).
        max_length: the maximum number of tokens, end token included.
        bos_id, eos_id: the start token of an encoder–decoder's target, and the end token.

    Returns:
        The generated tokens: without the start token, with the end token, padded after it.

    Raises:
        ValueError: for a model that does not follow the protocol, a source that it refuses, numbers out
            of range, and logits that are no distribution.
    """

    session = DecodingSession(model, source, bos_id=bos_id)
    return generate(session, most_probable, max_length=max_length, eos_id=eos_id)
