"""Greedy decoding."""

import torch
from jaxtyping import Int
from torch import Tensor, nn

from course_lib.decoding.writer import Writer, write_until_the_end


@torch.no_grad()
def greedy(
    model: nn.Module,
    source: Int[Tensor, "batch source"],
    *,
    max_length: int = 50,
    bos_id: int = 1,
    eos_id: int = 2,
) -> Int[Tensor, "batch target"]:
    r"""Write the most probable token at each step: $y_t = \arg\max_v\, p(v \mid y_1, \dots, y_{t-1}, x)$.

    Stops when every sequence has ended, or after `max_length` tokens. The model is used as it is: call
    `model.eval()` first, or dropout takes part.

    Args:
        model: a `Transformer`, or a `DecoderOnly` that continues `source`.
        source: (batch, source).
        max_length: how many tokens at most, the end token included.
        bos_id, eos_id: the start of a `Transformer`'s target, and the end.

    Returns:
        The tokens written: without the start, with the end, padded behind it.

    Raises:
        ValueError: for a model of another kind, a source that it refuses, and a `max_length` below 1.
    """
    writer = Writer(model, source, bos_id=bos_id)
    return write_until_the_end(
        writer,
        lambda logits: logits.argmax(dim=-1),
        pad_id=model.config.pad_id,
        eos_id=eos_id,
        max_length=max_length,
    )
