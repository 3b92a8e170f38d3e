"""Generation token by token: greedy decoding, sampling, and both as a stream."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from course_lib.transformer.decoding.logits_processors import LogitsProcessor, require_distribution
from course_lib.validation import require_whole


@runtime_checkable
class IncrementalDecoder(Protocol):
    """What decoding asks of a model: four members, and no base class.

    `prefill` returns the logits of the first token and a state: what the model keeps between steps, such as
    a KV cache. An encoder–decoder encodes `source` and reads `bos_id`; a language model reads `source`, its
    prompt. `decode_step` appends one token to every sequence and updates the state.
    A model may have `reserve(state, steps)`, which makes room in the state for so many steps.
    `state.reorder(rows, same_sources=False)` keeps these sequences of the batch, in this order; with
    `same_sources` each has the source of the one whose row it takes, so what depends on it alone can stay.
    """

    vocabulary_size: int
    pad_id: int  # fills a sequence after its end
    prefill: Callable[..., tuple[Tensor, Any]]  # (source, *, bos_id) → logits, state
    decode_step: Callable[[Tensor, Any], Tensor]  # (token, state) → logits (batch, vocabulary)


class DecodingSession:
    """Incremental decoding of one batch, without gradients: a prefill, then one decode step per token.

    The model stays in the mode it is in: call `model.eval()` first, or dropout is active.

    Args:
        model: a `Transformer` encodes `source`; a `DecoderOnly` continues it after its last token, so
            shorter prompts are padded on the left.
        source: token ids.
        bos_id: the start token of an encoder–decoder's target.

    Attributes:
        logits: (batch, vocabulary), for the next token.
        state: what the model keeps of the tokens so far.
    """

    @torch.no_grad()
    def __init__(
        self, model: IncrementalDecoder, source: Int[Tensor, "batch length"], *, bos_id: int = 1
    ) -> None:
        shape = tuple(source.shape) if isinstance(source, Tensor) else None
        if shape is None or len(shape) != 2 or 0 in shape:
            came = f"is a {type(source).__name__}" if shape is None else f"has shape {shape}"
            raise ValueError(
                f"source {came}; it must be a tensor of token ids of shape (batch, length), with at least one token"
            )
        self.model = model
        self.logits, self.state = model.prefill(source, bos_id=bos_id)

    @torch.no_grad()
    def step(self, token: Int[Tensor, " batch"]) -> Float[Tensor, "batch vocabulary"]:
        """Append one token to every sequence; return logits for the next one."""
        self.logits = self.model.decode_step(token, self.state)
        return self.logits

    def reserve(self, steps: int) -> None:
        """Say how many steps there will be at most, to a model that can make room for them."""
        if steps > 0 and hasattr(self.model, "reserve"):
            self.model.reserve(self.state, steps)

    def reorder(self, rows: Int[Tensor, " new_batch"], *, same_sources: bool = False) -> None:
        """Keep these sequences of the batch, in this order; see `IncrementalDecoder`."""
        self.state.reorder(rows, same_sources=same_sources)
        self.logits = self.logits.index_select(0, rows)


def greedy(
    model: IncrementalDecoder,
    source: Int[Tensor, "batch source"],
    *,
    max_length: int = 50,
    bos_id: int = 1,
    eos_id: int = 2,
) -> Int[Tensor, "batch target"]:
    r"""Generate the most probable token at each step: $y_t = \arg\max_v\, p(v \mid y_1, \dots, y_{t-1}, x)$.

    Args:
        model, source, bos_id: as for `DecodingSession`.
        max_length: the maximum number of tokens, end token included.
        eos_id: the end token. Generation stops when every sequence has ended.

    Returns:
        The generated tokens: without the start token, with the end token, padded after it.
    """
    tokens = stream(model, source, max_length=max_length, bos_id=bos_id, eos_id=eos_id)
    return torch.stack(list(tokens), dim=1)


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

    Args:
        model, source, max_length, bos_id, eos_id: as for `greedy`.
        logits_processors: functions from logits to logits, applied in this order, such as
            `lambda z: top_p(temperature(z, 0.8), 0.9)`.
        num_samples: how many sequences to sample per source.
        seed: makes the samples reproducible; None uses PyTorch's global generator.

    Returns:
        As `greedy`, one row per sample: those of the first source, then those of the second, and so on.
    """
    session = DecodingSession(model, source, bos_id=bos_id)
    rows = torch.arange(len(session.logits), device=session.logits.device)
    session.reorder(rows.repeat_interleave(num_samples))
    tokens = _generate(session, logits_processors, max_length, eos_id, seed)
    return torch.stack(list(tokens), dim=1)


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
    """Yield the tokens of `greedy`, or of `sample` where there are logits processors, even an empty list."""
    session = DecodingSession(model, source, bos_id=bos_id)
    return _generate(session, logits_processors, max_length, eos_id, seed)


def _generate(
    session: DecodingSession,
    logits_processors: Iterable[LogitsProcessor] | None,
    max_length: int,
    eos_id: int,
    seed: int | None,
) -> Iterator[Int[Tensor, " batch"]]:
    """Yield one token per sequence at a time, until every sequence has ended."""
    require_whole(max_length=max_length)
    session.reserve(max_length - 1)
    processors = None if logits_processors is None else list(logits_processors)
    device = session.logits.device
    generator = None if seed is None else torch.Generator(device).manual_seed(int(seed))
    ended = torch.zeros(len(session.logits), dtype=torch.bool, device=device)
    for length in range(1, max_length + 1):
        token = next_token(session.logits, processors, generator)
        token = token.masked_fill(ended, session.model.pad_id)  # (batch,)
        yield token
        ended |= token == eos_id
        if length == max_length or ended.all():
            return
        session.step(token)


def next_token(
    logits: Float[Tensor, "batch vocabulary"],
    logits_processors: Iterable[LogitsProcessor] | None = None,
    generator: torch.Generator | None = None,
) -> Int[Tensor, " batch"]:
    """Return the most probable token of each row; a sampled one where there are logits processors."""
    for processor in logits_processors or ():
        logits = processor(logits)
    require_distribution(logits)
    if logits_processors is None:
        return logits.argmax(dim=-1)
    return torch.multinomial(logits.softmax(dim=-1), 1, generator=generator)[:, 0]
