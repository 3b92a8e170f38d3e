"""Beam search."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.checks import decoding as checks
from course_lib.decoding.protocol import IncrementalDecoder
from course_lib.decoding.session import DecodingSession
from course_lib.validation import validated

#: Fills hypotheses after their end during the search. No token id: a model may generate padding.
_EMPTY = -1


class Beams(NamedTuple):
    """Hypotheses of each source, the best first.

    Attributes:
        tokens: (batch, beam, target), padded after the end.
        scores: (batch, beam).
    """

    tokens: Tensor
    scores: Tensor


class BeamStep(NamedTuple):
    """What a callback sees of one step: the candidates of each source, the most probable first.

    A candidate extends a partial hypothesis of the beam by one token.

    Attributes:
        parent: (batch, candidates), the row of the beam that each candidate extends.
        token: (batch, candidates), the token that it adds.
        score: (batch, candidates), the sum of its log-probabilities.
        complete: (batch, candidates), whether it is set aside as a complete hypothesis.
        kept: (batch, candidates), whether the search goes on with it.
        beam: (batch, beam), which candidate each row of the beam holds after this step. A row for which no
            candidate is left holds one that is not kept.
    """

    parent: Tensor
    token: Tensor
    score: Tensor
    complete: Tensor
    kept: Tensor
    beam: Tensor


@validated(checks.beam_search, calls_back=True)
@torch.no_grad()
def beam_search(
    model: IncrementalDecoder,
    source: Int[Tensor, "batch source"],
    beam_size: int = 4,
    length_penalty: float = 1.0,
    *,
    max_length: int = 50,
    bos_id: int = 1,
    eos_id: int = 2,
    callback: Callable[[BeamStep], None] | None = None,
) -> Beams:
    r"""Keep the `beam_size` most probable partial hypotheses at each step; set complete ones aside.

    $$\text{score}(y) = \frac{\log p(y \mid x)}{\lvert y \rvert^{\alpha}}, \qquad
      \log p(y \mid x) = \sum_t \log p(y_t \mid y_1, \dots, y_{t-1}, x)$$

    The search of a source ends when no partial hypothesis in its beam can reach a better score than the worst
    of `beam_size` complete ones, or after `max_length` tokens, where every hypothesis counts as complete.
    With `beam_size=1` it ends with the first complete hypothesis, which is that of `greedy`. The model stays
    in the mode it is in: call `model.eval()` first, or dropout is active.

    Args:
        model: any `IncrementalDecoder`, such as a `Transformer`, or a `DecoderOnly` that continues `source`.
        source: (batch, source).
        beam_size: from 1 up to the size of the vocabulary.
        length_penalty: the exponent $\alpha$ of the length normalisation. 0 compares log-probabilities, which
            favours short hypotheses, because every token lowers the sum; 1 compares the mean per token;
            larger values favour long hypotheses.
        max_length: the maximum number of tokens, end token included.
        bos_id, eos_id: the start token of an encoder–decoder's target, and the end token.
        callback: called with a `BeamStep` after each step.

    Returns:
        `beam_size` complete hypotheses of each source with their scores; where there are fewer, the rest is
        padding with a score of minus infinity.

    Raises:
        ValueError: for a model that does not follow the protocol or whose logits are NaN, a source that it
            refuses, and numbers out of range.

    Source: Lowerre (1976), "The HARPY speech recognition system"; Graves (2012), "Sequence transduction
    with recurrent neural networks". The search ends as with Hugging Face's `early_stopping="never"`.
    """
    session = DecodingSession(model, source, bos_id=bos_id)
    batch, device = len(session.logits), session.logits.device
    max_length = int(max_length)
    partial, complete = _initial_beams(batch, beam_size, max_length, device)
    first_row = torch.arange(batch, device=device)[:, None] * beam_size  # of each source
    session.reorder(torch.arange(batch, device=device).repeat_interleave(beam_size))
    searching = torch.ones(batch, 1, dtype=torch.bool, device=device)
    for length in range(1, max_length + 1):
        # Extend every partial hypothesis by every token.
        log_p = session.log_probabilities().unflatten(0, (batch, beam_size))
        parent, token, score = _best_candidates(partial.scores, log_p)  # (batch, candidates) each
        tokens = torch.cat([_gather(partial.tokens, parent), token[..., None]], dim=-1)
        # Set complete hypotheses aside if they are among the best `beam_size` candidates.
        ends = (token == eos_id) | (length == max_length)
        is_complete = ends & searching & ~score.isneginf()
        is_complete[:, beam_size:] = False
        normalised = score.masked_fill(~is_complete, -torch.inf) / length**length_penalty
        complete = _best_of_both(complete, Beams(tokens, normalised))
        # Keep the best `beam_size` candidates that do not end.
        running, beam = score.masked_fill(ends, -torch.inf).topk(beam_size)  # (batch, beam)
        if callback is not None:
            kept = torch.zeros_like(ends).scatter(1, beam, ~running.isneginf()) & searching
            callback(BeamStep(parent, token, score, is_complete, kept, beam))
        searching &= _can_improve(running, complete, length, max_length, length_penalty)
        if length == max_length or not searching.any():
            break
        partial = Beams(_gather(tokens, beam), running)
        rows = first_row + parent.gather(1, beam)
        session.reorder(rows.flatten(), same_sources=True)
        session.step(token.gather(1, beam).flatten())
    return _padded(complete, model.pad_id)


def _initial_beams(
    batch: int, beam_size: int, max_length: int, device: torch.device
) -> tuple[Beams, Beams]:
    """Return one empty partial hypothesis per source, and no complete ones.

    All rows of a beam are equal at first, so only the first counts: the others have probability 0.
    """
    impossible = torch.full((batch, beam_size), -torch.inf, device=device)
    no_tokens = torch.empty(batch, beam_size, 0, dtype=torch.int64, device=device)
    first = impossible.clone()
    first[:, 0] = 0.0
    unused = torch.full((batch, beam_size, max_length), _EMPTY, device=device)
    return Beams(no_tokens, first), Beams(unused, impossible)


def _best_candidates(
    running: Float[Tensor, "batch beam"], log_p: Float[Tensor, "batch beam vocabulary"]
) -> tuple[Tensor, Tensor, Tensor]:
    """Return row, token and summed log-probability of the 2 · beam best candidates, (batch, candidates) each.

    Only one candidate per row ends, so at least `beam` of them do not.
    """
    _, beam_size, vocabulary = log_p.shape
    sums = (running[..., None] + log_p).flatten(1)  # (batch, beam · vocabulary)
    score, index = sums.topk(min(2 * beam_size, sums.shape[1]))
    return index // vocabulary, index % vocabulary, score


def _gather(
    tokens: Int[Tensor, "batch beam length"], rows: Int[Tensor, "batch new"]
) -> Int[Tensor, "batch new length"]:
    """Return these rows of each source."""
    return tokens.gather(1, rows[..., None].expand(-1, -1, tokens.shape[-1]))


def _best_of_both(complete: Beams, new: Beams) -> Beams:
    """Return the best of the hypotheses that were complete before and those that are new."""
    beam_size, max_length = complete.tokens.shape[1:]
    padded = nn.functional.pad(new.tokens, (0, max_length - new.tokens.shape[-1]), value=_EMPTY)
    scores, rows = torch.cat([complete.scores, new.scores], dim=1).topk(beam_size)
    return Beams(_gather(torch.cat([complete.tokens, padded], dim=1), rows), scores)


def _can_improve(
    running: Float[Tensor, "batch beam"],
    complete: Beams,
    length: int,
    max_length: int,
    length_penalty: float,
) -> Bool[Tensor, "batch 1"]:
    """Say for each source whether a partial hypothesis may still get a better score than a complete one.

    A sum of log-probabilities can only fall. Its best possible score is therefore that of now, normalised
    with the length that is best for it: the maximum, or with a negative exponent the length of now.
    """
    worst = complete.scores[:, -1:]  # (batch, 1)
    if complete.scores.shape[1] == 1:
        return worst.isneginf()
    bound = running[:, :1] / (max_length if length_penalty > 0 else length) ** length_penalty
    return bound > worst


def _padded(complete: Beams, pad_id: int) -> Beams:
    """Cut the hypotheses to the longest one, and pad the others."""
    tokens = complete.tokens.masked_fill(complete.scores.isneginf()[..., None], _EMPTY)
    tokens = tokens[..., (tokens != _EMPTY).flatten(0, 1).any(dim=0)]
    return Beams(tokens.masked_fill(tokens == _EMPTY, pad_id), complete.scores)
