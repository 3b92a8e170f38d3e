"""Streaming: each token as soon as it is generated."""

from collections.abc import Iterable, Iterator

from jaxtyping import Int
from torch import Tensor

from course_lib.checks import decoding as checks
from course_lib.decoding.greedy import most_probable
from course_lib.decoding.logits_processors import LogitsProcessor
from course_lib.decoding.protocol import IncrementalDecoder
from course_lib.decoding.sampling import sampler
from course_lib.decoding.session import DecodingSession, generated_tokens
from course_lib.validation import validated


@validated(checks.stream, calls_back=True)
def stream(
    model: IncrementalDecoder,
    source: Int[Tensor, "batch source"],
    *,
    logits_processors: Iterable[LogitsProcessor] | None = None,
    max_length: int = 50,
    bos_id: int = 1,
    eos_id: int = 2,
    seed: int | None = None,
) -> Iterator[Int[Tensor, " batch"]]:
    """Yield the tokens of `greedy` or `sample` one after the other, (batch,) each.

    Args:
        model, source, max_length, bos_id, eos_id: as for `greedy`.
        logits_processors: None for the most probable token each time; otherwise tokens are sampled, as by
            `sample`; an empty list samples from the model's own distribution.
        seed: as for `sample`.

    Raises:
        ValueError: as `sample`, for arguments at the call, for logits when they occur.
    """
    processors = None if logits_processors is None else list(logits_processors)
    session = DecodingSession(model, source, bos_id=bos_id)
    choose = most_probable
    if processors is not None:
        choose = sampler(processors, seed, session.logits.device)
    return generated_tokens(session, choose, max_length=max_length, eos_id=eos_id)
