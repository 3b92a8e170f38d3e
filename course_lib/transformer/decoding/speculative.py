"""Speculative decoding: several tokens are proposed, and one pass of the model checks them all."""

from collections.abc import Iterable, Iterator, Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from course_lib.transformer.decoder_only import DecoderOnly
from course_lib.transformer.decoding.generate import DecodingSession, next_token
from course_lib.transformer.decoding.logits_processors import LogitsProcessor
from course_lib.validation import require_whole


def prompt_lookup(
    model: DecoderOnly,
    source: Int[Tensor, "batch source"],
    *,
    logits_processors: Iterable[LogitsProcessor] | None = None,
    max_ngram: int = 3,
    max_proposed: int = 10,
    max_length: int = 50,
    eos_id: int = 2,
    seed: int | None = None,
) -> Iterator[Int[Tensor, " 1"]]:
    r"""Yield the tokens of `stream`, in fewer passes where the text repeats itself.

    The tokens that followed the last earlier occurrence of the newest $n$ tokens are proposed. One pass gives the
    model's distribution at each of them, and a token is chosen there as in `stream`. While it is the proposed one,
    the next distribution counts too; what follows the first that is not is forgotten. So greedy tokens are those
    of `greedy`. Sampled ones have the distribution of `sample`: that a sample $y \sim p$ equals the proposed $x$ has
    probability $p(x)$, and where it does not, $y$ has the distribution $p$ without $x$, which is the rule of
    Leviathan et al. for a proposal without chance.

    A pass over ten tokens costs little more than one over two, so all of `max_proposed` are proposed at once. What
    followed one equal token is seldom what comes next, so a match has at least two.

    Args:
        model, logits_processors, max_length, eos_id, seed: as for `stream`.
        source: one prompt.
        max_ngram: the largest $n$; shorter ones, down to 2, are tried where it does not occur. With 1, one token
            is a match.
        max_proposed: the maximum number of proposed tokens.

    Source: Leviathan, Kalman and Matias (2023), "Fast inference from Transformers via speculative decoding",
    section 2.3; Saxena (2023), "Prompt lookup decoding", for the proposals.
    """
    require_whole(max_ngram=max_ngram, max_proposed=max_proposed, max_length=max_length)
    if len(source) != 1:
        raise ValueError(
            f"source has {len(source)} prompts; prompt lookup continues one, of shape (1, length)"
        )
    session, text = DecodingSession(model, source), source[0].tolist()
    session.reserve(max_length)
    cache = session.state.cache
    processors = None if logits_processors is None else list(logits_processors)
    generator = None if seed is None else torch.Generator(source.device).manual_seed(int(seed))
    rows, proposed, accepted = session.logits, [], 0
    for left in reversed(range(max_length)):  # how many tokens may follow this one
        token = next_token(rows[accepted : accepted + 1], processors, generator)  # (1,)
        yield token
        text.append(int(token))
        if text[-1] == eos_id or left == 0:
            return
        if accepted < len(proposed) and proposed[accepted] == text[-1]:
            accepted += 1
            continue
        cache.crop(len(text) - 1)  # what is read next replaces what was not accepted
        proposed, accepted = continuation(text, max_ngram)[: min(max_proposed, left - 1)], 0
        read = source.new_tensor([[text[-1], *proposed]])
        with torch.no_grad():
            rows = model(read, cache=cache)[0]  # (1 + proposed, vocabulary)


def continuation(text: Sequence[int], max_ngram: int) -> list[int]:
    """Return what followed the last earlier occurrence of the newest tokens; nothing where there is none."""
    for n in range(max_ngram, min(max_ngram, 2) - 1, -1):
        newest = text[-n:]
        for end in range(len(text) - 1, n - 1, -1):
            if text[end - 1] == newest[-1] and text[end - n : end] == newest:
                return text[end:]
    return []
