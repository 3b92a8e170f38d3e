"""Beam search."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.transformer.decoding.generate import DecodingSession, IncrementalDecoder
from course_lib.transformer.decoding.logits_processors import require_distribution
from course_lib.validation import require_whole

#: Fills hypotheses after their end during the search. No token id: a model may generate padding.
_EMPTY = -1


class Beams(NamedTuple):
    """Hypotheses of each source, the best first."""

    tokens: Int[Tensor, "batch beam target"]  # padded after the end
    scores: Float[Tensor, "batch beam"]


class BeamStep(NamedTuple):
    """What a callback sees of one step: the candidates of each source, the most probable first.

    A candidate extends a partial hypothesis of the beam by one token. A row of the beam for which no candidate
    is left holds one that is not kept.
    """

    parent: Int[Tensor, "batch candidates"]  # the row of the beam that each candidate extends
    token: Int[Tensor, "batch candidates"]  # the token that it adds
    score: Float[Tensor, "batch candidates"]  # the sum of its log-probabilities
    complete: Bool[Tensor, "batch candidates"]  # whether it is set aside as a complete hypothesis
    kept: Bool[Tensor, "batch candidates"]  # whether the search goes on with it
    beam: Int[Tensor, "batch beam"]  # the candidate that each row of the beam holds after this step


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
    With `beam_size=1` it ends with the first complete hypothesis, which is that of `greedy`.

    Args:
        model, source, max_length, bos_id, eos_id: as for `greedy`.
        beam_size: from 1 up to the size of the vocabulary.
        length_penalty: the exponent $\alpha$ of the length normalisation. 0 compares log-probabilities, which
            favours short hypotheses, because every token lowers the sum; 1 compares the mean per token;
            larger values favour long hypotheses.
        callback: called with a `BeamStep` after each step.

    Returns:
        `beam_size` complete hypotheses of each source with their scores; where there are fewer, the rest is
        padding with a score of minus infinity.

    Source: Lowerre (1976), "The HARPY speech recognition system"; Graves (2012), "Sequence transduction
    with recurrent neural networks". The search ends as with Hugging Face's `early_stopping="never"`.
    """
    require_whole(beam_size=beam_size, max_length=max_length)
    if beam_size > model.vocabulary_size:
        raise ValueError(
            f"beam_size={beam_size} is larger than the vocabulary of {model.vocabulary_size} tokens"
        )
    session = DecodingSession(model, source, bos_id=bos_id)
    (batch, vocabulary), device = session.logits.shape, session.logits.device
    sources = torch.arange(batch, device=device)[:, None]  # (batch, 1)
    session.reorder(sources.expand(-1, beam_size).flatten())
    no_tokens = torch.empty(batch, beam_size, 0, dtype=torch.int64, device=device)
    complete = Beams(no_tokens, torch.full((batch, beam_size), -torch.inf, device=device))
    partial = Beams(no_tokens, complete.scores.clone())
    partial.scores[:, 0] = 0.0  # the rows of a beam are equal at first, so only one counts
    searching = torch.ones(batch, 1, dtype=torch.bool, device=device)
    for length in range(1, max_length + 1):
        # Extend every partial hypothesis by every token. Of each row only one candidate ends.
        require_distribution(session.logits)
        log_p = session.logits.float().log_softmax(dim=-1).unflatten(0, (batch, beam_size))
        sums = (partial.scores[..., None] + log_p).flatten(1)  # (batch, beam · vocabulary)
        score, index = sums.topk(2 * beam_size)  # (batch, candidates)
        parent, token = index // vocabulary, index % vocabulary
        tokens = torch.cat([partial.tokens[sources, parent], token[..., None]], dim=-1)
        # Set complete hypotheses aside if they are among the best `beam_size` candidates.
        ends = token == eos_id
        if length == max_length:
            ends.fill_(True)
        is_complete = ends & searching & ~score.isneginf()
        is_complete[:, beam_size:] = False
        normalised = score.masked_fill(~is_complete, -torch.inf) / length**length_penalty
        both = torch.cat([nn.functional.pad(complete.tokens, (0, 1), value=_EMPTY), tokens], dim=1)
        scores, best = torch.cat([complete.scores, normalised], dim=1).topk(beam_size)
        complete = Beams(both[sources, best], scores)
        # Keep the best `beam_size` candidates that do not end.
        running, beam = score.masked_fill(ends, -torch.inf).topk(beam_size)  # (batch, beam)
        if callback is not None:
            kept = torch.zeros_like(ends).scatter(1, beam, ~running.isneginf()) & searching
            callback(BeamStep(parent, token, score, is_complete, kept, beam))
        # A sum of log-probabilities can only fall: nothing that extends it scores above this bound.
        best_length = max_length if length_penalty > 0 else length
        bound, worst = running[:, :1] / best_length**length_penalty, complete.scores[:, -1:]
        searching &= worst.isneginf() if beam_size == 1 else bound > worst
        if length == max_length or not searching.any():
            break
        partial = Beams(tokens[sources, beam], running)
        rows = sources * beam_size + parent[sources, beam]
        session.reorder(rows.flatten(), same_sources=True)
        session.step(token[sources, beam].flatten())
    return _padded(complete, model.pad_id)


def _padded(complete: Beams, pad_id: int) -> Beams:
    """Cut the hypotheses to the longest one, and pad the others."""
    tokens = complete.tokens.masked_fill(complete.scores.isneginf()[..., None], _EMPTY)
    tokens = tokens[..., (tokens != _EMPTY).flatten(0, 1).any(dim=0)]
    return Beams(tokens.masked_fill(tokens == _EMPTY, pad_id), complete.scores)
