"""Beam search."""

from collections.abc import Callable
from numbers import Real
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.decoding.filters import require_logits
from course_lib.decoding.writer import Writer
from course_lib.inputs import require_whole

#: Stands behind the end while the search goes on: padding is a token, and a model may write it.
_NOTHING = -1


class Beams(NamedTuple):
    """`tokens` (batch, beam, target), the best first, padded behind the end; `scores` (batch, beam)."""

    tokens: Tensor
    scores: Tensor


class BeamStep(NamedTuple):
    """What a watcher sees of one step: the candidates of each source, the most probable first.

    `parent` (batch, candidates) is the row of the beam that each continues, `token` what it adds, `score`
    the sum of its log-probabilities; `ends` says whether it is finished, `kept` whether the beam goes on
    with it. `beam` (batch, beam) says which candidate each row of the beam holds from now on; a row that
    none is left for holds one that is not kept.
    """

    parent: Tensor
    token: Tensor
    score: Tensor
    ends: Tensor
    kept: Tensor
    beam: Tensor


@torch.no_grad()
def beam_search(
    model: nn.Module,
    source: Int[Tensor, "batch source"],
    beam_size: int = 4,
    length_penalty: float = 1.0,
    *,
    max_length: int = 50,
    bos_id: int = 1,
    eos_id: int = 2,
    watch: Callable[[BeamStep], None] | None = None,
) -> Beams:
    r"""Keep the `beam_size` most probable beginnings at each step, and put aside those that end.

    $$\text{score}(y) = \frac{\log p(y \mid x)}{\lvert y \rvert^{\alpha}}, \qquad
      \log p(y \mid x) = \sum_t \log p(y_t \mid y_1, \dots, y_{t-1}, x)$$

    A finished sequence is not extended; it waits, with its score, for a better one. A source is done when
    no beginning in its beam can reach a better score than the worst of `beam_size` finished ones, or after
    `max_length` tokens, where every beginning counts as finished. A beam of one is `greedy`: its first end
    is its end. The model is used as it is: call
    `model.eval()` first, or dropout takes part.

    Args:
        model: a `Transformer`, or a `DecoderOnly` that continues `source`.
        source: (batch, source).
        beam_size: from 1 up to the size of the vocabulary.
        length_penalty: $\alpha$. 0 compares plain log-probabilities, which favours the short, because each
            token makes them smaller; 1 compares their mean.
        max_length: how many tokens at most, the end token included.
        bos_id, eos_id: the start of a `Transformer`'s target, and the end.
        watch: called with a `BeamStep` after each step.

    Returns:
        `beam_size` sequences of each source with their scores; minus infinity where there were fewer.

    Raises:
        ValueError: for a model of another kind or one whose logits are NaN, a source that it refuses, and
            numbers out of range.

    Source: Lowerre (1976), "The HARPY speech recognition system"; Graves (2012), "Sequence transduction
    with recurrent neural networks". The end of a search is that of Hugging Face's `early_stopping="never"`.
    """
    require_whole(beam_size=beam_size, max_length=max_length)
    require_whole(0, eos_id=eos_id)
    _require_penalty(length_penalty)
    writer = Writer(model, source, bos_id=bos_id)
    batch, vocabulary = writer.logits.shape
    _require_width(beam_size, vocabulary)
    device, pad_id = source.device, model.config.pad_id
    first_rows = torch.arange(batch, device=device)[:, None] * beam_size  # of each source
    writer.select(torch.arange(batch, device=device).repeat_interleave(beam_size))
    running = torch.full((batch, beam_size), -torch.inf, device=device)
    running[:, 0] = 0.0  # at first all rows are alike: one of them counts
    written = torch.empty(batch, beam_size, 0, dtype=torch.int64, device=device)
    finished = Beams(
        torch.full((batch, beam_size, max_length), _NOTHING, device=device),
        torch.full((batch, beam_size), -torch.inf, device=device),
    )
    searching = torch.ones(batch, 1, dtype=torch.bool, device=device)  # False: the source is done
    for length in range(1, max_length + 1):
        require_logits(writer.logits)
        log_p = writer.logits.float().log_softmax(dim=-1).unflatten(0, (batch, beam_size))
        # Continue every beginning with every token. Each can end in one way, so among twice as many
        # candidates as the beam has rows, enough go on.
        candidates = min(2 * beam_size, beam_size * vocabulary)
        sums = (running[..., None] + log_p).flatten(1)  # (batch, beam · vocabulary)
        scores, place = sums.topk(candidates)  # (batch, candidates)
        parent, token = place // vocabulary, place % vocabulary
        # Put aside what ends, if it is among the best.
        ends = (token == eos_id) | (length == max_length)
        texts = torch.cat([_take(written, parent), token[..., None]], dim=-1)
        in_beam = torch.arange(candidates, device=device) < beam_size
        ended = ends & in_beam & searching & ~scores.isneginf()
        done = scores.masked_fill(~ended, -torch.inf) / length**length_penalty
        finished = _best(finished, texts, done)
        # Go on with the best that does not end.
        running, kept = scores.masked_fill(ends, -torch.inf).topk(beam_size)  # (batch, beam)
        if watch is not None:
            goes_on = torch.zeros_like(ends).scatter(1, kept, ~running.isneginf()) & searching
            watch(BeamStep(parent, token, scores, ended, goes_on, kept))
        # A source is done when no beginning can become better than what is finished.
        searching &= _can_improve(running, finished, length, max_length, length_penalty)
        if length == max_length or not searching.any():
            break
        written, rows = _take(texts, kept), first_rows + parent.gather(1, kept)
        writer.select(rows.flatten(), same_sources=True)
        writer.write(token.gather(1, kept).flatten())
    tokens = finished.tokens.masked_fill(finished.scores.isneginf()[..., None], _NOTHING)
    tokens = tokens[..., (tokens != _NOTHING).flatten(0, 1).any(dim=0)]
    return Beams(tokens.masked_fill(tokens == _NOTHING, pad_id), finished.scores)


def _take(texts: Int[Tensor, "batch beam length"], rows: Int[Tensor, "batch new"]) -> Tensor:
    """Return these rows of each source."""
    return texts.gather(1, rows[..., None].expand(-1, -1, texts.shape[-1]))


def _best(
    finished: Beams,
    texts: Int[Tensor, "batch new length"],
    scores: Float[Tensor, "batch new"],
) -> Beams:
    """Return the best of those finished before and those that end now."""
    beam_size, room = finished.tokens.shape[1:]
    padded = nn.functional.pad(texts, (0, room - texts.shape[-1]), value=_NOTHING)
    best, rows = torch.cat([finished.scores, scores], dim=1).topk(beam_size)
    return Beams(_take(torch.cat([finished.tokens, padded], dim=1), rows), best)


def _can_improve(
    running: Float[Tensor, "batch beam"],
    finished: Beams,
    length: int,
    max_length: int,
    penalty: float,
) -> Bool[Tensor, "batch 1"]:
    """Say for each source whether a beginning may still reach a better score than a finished one.

    A log-probability can only fall. Dividing by the largest length makes it as large as it can get; with a
    negative penalty that is the length of now. A beam of one takes the first end it comes to.
    """
    worst = finished.scores[:, -1:]  # (batch, 1)
    if finished.scores.shape[1] == 1:
        return worst.isneginf()
    hope = running[:, :1] / (max_length if penalty > 0 else length) ** penalty
    return hope > worst


def _require_width(beam_size: int, vocabulary: int) -> None:
    if beam_size > vocabulary:
        raise ValueError(
            f"beam_size={beam_size} is wider than the vocabulary of {vocabulary} tokens, which is as many as "
            f"can follow the start"
        )


def _require_penalty(length_penalty: float) -> None:
    number = isinstance(length_penalty, Real) and not isinstance(length_penalty, bool)
    if not number or not -10 <= length_penalty <= 10:
        raise ValueError(
            f"length_penalty={length_penalty!r} must be a number from -10 to 10; 0 for none, 1 for the mean"
        )
