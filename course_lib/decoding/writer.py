"""A model that writes one token after the other, on a cache."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.cache.layer import require_rows
from course_lib.inputs import require_tokens, require_whole, short_name
from course_lib.transformer import DecoderOnly, Transformer


class Writer:
    """Give a model the tokens that were written last, and get logits for the next one.

    Args:
        model: a `Transformer`, which reads `source` and writes from the start token on, or a `DecoderOnly`,
            which continues `source`: behind its last token, so shorter ones are padded in front.
        source: (batch, length).
        bos_id: the start token of a `Transformer`'s target.

    Attributes:
        logits: (batch, vocabulary), for the next token.
        cache: what is kept of the tokens so far.

    Raises:
        ValueError: for another model, a source that it refuses, a start token outside the vocabulary, and
            padding that a `DecoderOnly` would have to continue, or that would move its positions.
    """

    def __init__(self, model: nn.Module, source: Int[Tensor, "batch length"], *, bos_id: int = 1):
        if not isinstance(model, Transformer | DecoderOnly):
            raise ValueError(
                f"model is a {type(model).__name__}; it must be a Transformer or a DecoderOnly"
            )
        require_whole(0, bos_id=bos_id)
        size = model.config.target_vocabulary
        if bos_id >= size:
            raise ValueError(
                f"bos_id={bos_id}, but the vocabulary has {size} tokens, 0 to {size - 1}"
            )
        self._model, self.cache = model, model.new_cache()
        self._memory = None
        if isinstance(model, DecoderOnly):
            _require_prompts(model, source)
        else:
            with torch.no_grad():
                self._memory = model.encode(source)
            source = source.new_full((len(source), 1), bos_id)
        self.logits = self._read(source)

    def write(self, token: Int[Tensor, " batch"]) -> Float[Tensor, "batch vocabulary"]:
        """Write one more token in every sequence; return logits for the one behind it.

        Raises:
            ValueError: for what is not one token of the vocabulary per sequence.
        """
        _require_one_each(token, len(self.logits))
        require_tokens(self._model.config.target_vocabulary, token=token[:, None])
        self.logits = self._read(token[:, None])
        return self.logits

    def select(self, rows: Int[Tensor, " new_batch"], *, same_sources: bool = False) -> None:
        """Go on with these sequences of the batch, in this order; one may be taken several times.

        Args:
            rows: which.
            same_sources: whether each new sequence has the source of the one whose place it takes, so that
                what is kept of the sources can stay where it is.

        Raises:
            ValueError: for rows that are not whole numbers of one axis, and that the batch does not have.
        """
        require_rows(rows, len(self.logits))
        self.cache.select(rows, same_sources=same_sources)
        self.logits = self.logits.index_select(0, rows)
        if self._memory is not None and not same_sources:
            self._memory = type(self._memory)(*(part[rows] for part in self._memory))

    @torch.no_grad()
    def _read(self, tokens: Int[Tensor, "batch new"]) -> Float[Tensor, "batch vocabulary"]:
        if self._memory is None:
            return self._model(tokens, cache=self.cache)[:, -1]
        return self._model.decode(tokens, self._memory, cache=self.cache)[:, -1]


def write_until_the_end(
    writer: Writer,
    choose: Callable[[Tensor], Tensor],
    *,
    pad_id: int,
    eos_id: int,
    max_length: int,
) -> Int[Tensor, "batch target"]:
    """Write what `choose` makes of the logits, until every sequence has ended.

    Args:
        writer: at the start.
        choose: from logits (batch, vocabulary) to a token for each sequence, (batch,).
        pad_id: what stands behind the end of a sequence.
        eos_id: what ends it.
        max_length: how many tokens at most, the end included.

    Raises:
        ValueError: for a `max_length` below 1, and an `eos_id` that is no token.
    """
    require_whole(max_length=max_length)
    require_whole(0, eos_id=eos_id)
    tokens = []
    ended = torch.zeros(len(writer.logits), dtype=torch.bool, device=writer.logits.device)
    while True:
        token = choose(writer.logits).masked_fill(ended, pad_id)  # (batch,)
        tokens.append(token)
        ended = ended | (token == eos_id)
        if len(tokens) == max_length or ended.all():
            return torch.stack(tokens, dim=1)
        writer.write(token)


def _require_one_each(token: object, batch: int) -> None:
    if isinstance(token, Tensor):
        if token.shape == (batch,) and token.dtype in (torch.int64, torch.int32):
            return
        came = f"has shape {tuple(token.shape)} and dtype {short_name(token.dtype)}"
    else:
        came = f"is a {type(token).__name__}"
    raise ValueError(
        f"token {came}; it must be whole numbers (int64 or int32) of shape ({batch},), one per sequence"
    )


def _require_prompts(model: DecoderOnly, source: Tensor) -> None:
    """Refuse tokens that are not in the vocabulary, and padding where it would change what is written."""
    require_tokens(model.config.target_vocabulary, source=source)
    padding = source == model.config.pad_id
    if padding[:, -1].any():
        row = padding[:, -1].nonzero()[0].item()
        raise ValueError(
            f"source[{row}] ends in padding (pad_id={model.config.pad_id}), and a DecoderOnly continues "
            f"behind the last token; pad in front, or give sequences of equal length"
        )
    if model.input.positions is not None and padding.any():
        row = padding.any(1).nonzero()[0].item()
        raise ValueError(
            f"source[{row}] holds padding (pad_id={model.config.pad_id}), which moves its tokens to later "
            f"positions, and positions={model.config.positions!r} counts them from the start; give "
            f"sequences of equal length"
        )
