"""Drawing tokens at random."""

from collections.abc import Callable, Iterable

import torch
from jaxtyping import Int
from torch import Tensor, nn

from course_lib.decoding.filters import require_logits
from course_lib.decoding.writer import Writer, write_until_the_end
from course_lib.inputs import require_whole

Filter = Callable[[Tensor], Tensor]


@torch.no_grad()
def sample(
    model: nn.Module,
    source: Int[Tensor, "batch source"],
    *,
    filters: Iterable[Filter] = (),
    num_samples: int = 1,
    max_length: int = 50,
    bos_id: int = 1,
    eos_id: int = 2,
    seed: int | None = None,
) -> Int[Tensor, "rows target"]:
    r"""Draw each token from the model's distribution: $y_t \sim p(\cdot \mid y_1, \dots, y_{t-1}, x)$.

    The model is used as it is: call `model.eval()` first, or dropout takes part.

    Args:
        model: a `Transformer`, or a `DecoderOnly` that continues `source`.
        source: (batch, source).
        filters: functions from logits to logits, applied in this order, such as
            `lambda z: top_p(temperature(z, 0.8), 0.9)`.
        num_samples: how many to draw of each source.
        max_length: how many tokens at most, the end token included.
        bos_id, eos_id: the start of a `Transformer`'s target, and the end.
        seed: of the draws; PyTorch's global generator where left out.

    Returns:
        The tokens, one row per sample: those of the first source, then those of the second, and so on.
        Without the start, with the end, padded behind it.

    Raises:
        ValueError: for a model of another kind, a source that it refuses, numbers below 1, and filters that
            rule out every token or return something else than logits.
    """
    require_whole(max_length=max_length, num_samples=num_samples)
    filters = _listed(filters)
    generator = None
    if seed is not None:
        require_whole(0, seed=seed)
        generator = torch.Generator(source.device).manual_seed(seed)
    writer = Writer(model, source, bos_id=bos_id)
    writer.select(torch.arange(len(source), device=source.device).repeat_interleave(num_samples))

    def draw(logits: Tensor) -> Tensor:
        shape = logits.shape
        for one in filters:
            logits = one(logits)
            _require_same_shape(logits, shape)
        require_logits(logits)
        return torch.multinomial(logits.softmax(dim=-1), 1, generator=generator)[:, 0]  # (rows,)

    return write_until_the_end(
        writer, draw, pad_id=model.config.pad_id, eos_id=eos_id, max_length=max_length
    )


def _listed(filters: object) -> list[Filter]:
    filters = list(filters) if isinstance(filters, Iterable) else filters
    if not isinstance(filters, list) or not all(map(callable, filters)):
        raise ValueError(
            f"filters={filters!r} must be a list of functions from logits to logits, "
            f"e.g. [lambda z: top_k(z, 10)]"
        )
    return filters


def _require_same_shape(logits: object, shape: torch.Size) -> None:
    if not isinstance(logits, Tensor) or logits.shape != shape:
        came = f"shape {tuple(logits.shape)}" if isinstance(logits, Tensor) else f"{logits!r}"
        raise ValueError(
            f"a filter returned {came}; it must return logits of the shape it was given, {tuple(shape)}"
        )
