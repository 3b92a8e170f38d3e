"""Sampling: the next token is drawn from the model's distribution."""

from collections.abc import Callable, Iterable

import torch
from jaxtyping import Int
from torch import Tensor

from course_lib.checks import decoding as checks
from course_lib.decoding.logits_processors import LogitsProcessor, apply_processors
from course_lib.decoding.protocol import IncrementalDecoder
from course_lib.decoding.session import DecodingSession, generate
from course_lib.validation import validated


@validated(checks.sample, calls_back=True)
@torch.no_grad()
def sample(
    model: IncrementalDecoder,
    source: Int[Tensor, "batch source"],
    *,
    logits_processors: Iterable[LogitsProcessor] = (),
    num_samples: int = 1,
    max_length: int = 50,
    bos_id: int = 1,
    eos_id: int = 2,
    seed: int | None = None,
) -> Int[Tensor, "rows target"]:
    r"""Sample each token from the model's distribution: $y_t \sim p(\cdot \mid y_1, \dots, y_{t-1}, x)$.

    The model stays in the mode it is in: call `model.eval()` first, or dropout is active.

    Args:
        model: any `IncrementalDecoder`, such as a `Transformer`, or a `DecoderOnly` that continues `source`.
        source: (batch, source).
        logits_processors: functions from logits to logits, applied in this order, such as
            `lambda z: top_p(temperature(z, 0.8), 0.9)`.
        num_samples: how many sequences to sample per source.
        max_length: the maximum number of tokens, end token included.
        bos_id, eos_id: the start token of an encoder–decoder's target, and the end token.
        seed: makes the samples reproducible; None uses PyTorch's global generator.

    Returns:
        The tokens, one row per sample: those of the first source, then those of the second, and so on.
        Without the start token, with the end token, padded after it.

    Raises:
        ValueError: for a model that does not follow the protocol, a source that it refuses, numbers out of
            range, and logits processors that rule out every token or do not return logits.
    """
    processors = list(logits_processors)
    session = DecodingSession(model, source, bos_id=bos_id)
    batch, device = len(session.logits), session.logits.device
    session.reorder(torch.arange(batch, device=device).repeat_interleave(num_samples))
    choose = sampler(processors, seed, device)
    return generate(session, choose, max_length=max_length, eos_id=eos_id)


def sampler(
    processors: list[LogitsProcessor], seed: int | None, device: torch.device
) -> Callable[[Tensor], Tensor]:
    """Return a function from logits to one sampled token per row."""
    generator = None if seed is None else torch.Generator(device).manual_seed(int(seed))

    def sample_token(logits: Tensor) -> Tensor:
        p = apply_processors(processors, logits).softmax(dim=-1)  # (rows, vocabulary)
        return torch.multinomial(p, 1, generator=generator)[:, 0]  # (rows,)

    return sample_token
