r"""BLEU: how many n-grams of a translation also occur in a reference.

$$\mathrm{BLEU} = \mathrm{BP} \cdot \exp\Big(\sum_{n=1}^{N} w_n \log p_n\Big)$$

with the modified precisions $p_n$ and the brevity penalty $\mathrm{BP}$, both over a whole corpus. Texts are
lists of tokens. The tokenisation is the caller's, and the score depends on it (Post 2018). Scores are from
0 to 1; papers and sacreBLEU report them from 0 to 100.

Source: Papineni and others (2002), "BLEU: a method for automatic evaluation of machine translation".
"""

import math
from collections import Counter
from collections.abc import Sequence

from course_lib.validation import require_whole

__all__ = ["bleu", "brevity_penalty", "modified_precision"]

Text = Sequence[str]


def modified_precision(
    candidates: Sequence[Text], references: Sequence[Sequence[Text]], n: int
) -> float:
    r"""Return the share of the candidates' n-grams that occur in a reference, with clipped counts.

    $$p_n = \frac{\sum_{\text{candidates}} \sum_g \min\big(\#_g,\ \max_{\text{references}} \#_g\big)}
                 {\sum_{\text{candidates}} \sum_g \#_g}$$

    over n-grams $g$ and their counts $\#_g$. Clipping keeps a candidate from scoring by repetition: "the the
    the" matches a single "the" once. 0 where the candidates are too short to have an n-gram.

    Args:
        candidates: one text per sentence.
        references: for each sentence its references, one or more.
        n: the order of the n-grams, in tokens.
    """
    require_whole(n=n)
    _require_corpus(candidates, references)
    matched = total = 0
    for candidate, several in zip(candidates, references, strict=True):
        counts, allowed = _ngrams(candidate, n), Counter()
        for reference in several:
            allowed |= _ngrams(reference, n)  # the larger count of each
        matched += (counts & allowed).total()  # the smaller count of each
        total += counts.total()
    return matched / total if total else 0.0


def brevity_penalty(candidate_length: int, reference_length: int) -> float:
    r"""Return the factor that lowers the score of a corpus shorter than its references.

    $$\mathrm{BP} = \begin{cases} 1 & c > r \\ e^{1 - r/c} & c \le r \end{cases}$$

    Precision alone would favour short candidates, such as a single correct word.

    Args:
        candidate_length: $c$, tokens of all candidates together.
        reference_length: $r$, tokens of all references together; of several, the one nearest in length.
    """
    if candidate_length >= reference_length:
        return 1.0
    return math.exp(1 - reference_length / candidate_length) if candidate_length else 0.0


def bleu(
    candidates: Sequence[Text],
    references: Sequence[Sequence[Text]],
    max_n: int = 4,
    weights: Sequence[float] | None = None,
) -> float:
    r"""Return the BLEU of a corpus, from 0 to 1. It is not the mean of its sentences' scores.

    0 where a precision with a weight is 0, because the precisions enter as a geometric mean.

    Args:
        candidates: one text per sentence.
        references: for each sentence its references, one or more.
        max_n: $N$.
        weights: $w_1, \dots, w_N$, which sum to 1; $1/N$ each where left out.
    """
    weights = [1 / max_n] * max_n if weights is None else weights
    if len(weights) != max_n or min(weights) < 0 or not math.isclose(sum(weights), 1, abs_tol=1e-6):
        raise ValueError(
            f"weights={weights!r} must be max_n={max_n} numbers, 0 or more, that sum to 1"
        )
    precisions = [modified_precision(candidates, references, n) for n in range(1, max_n + 1)]
    if any(p == 0 and weight > 0 for p, weight in zip(precisions, weights, strict=True)):
        return 0.0
    log_mean = sum(w * math.log(p) for p, w in zip(precisions, weights, strict=True) if w > 0)
    candidate_length = sum(map(len, candidates))
    pairs = zip(candidates, references, strict=True)
    reference_length = sum(_nearest_length(candidate, several) for candidate, several in pairs)
    return brevity_penalty(candidate_length, reference_length) * math.exp(log_mean)


def _ngrams(text: Text, n: int) -> Counter:
    return Counter(tuple(text[i : i + n]) for i in range(len(text) - n + 1))


def _nearest_length(candidate: Text, references: Sequence[Text]) -> int:
    """Return the length of the reference nearest in length; of two, the shorter."""
    lengths = map(len, references)
    return min(lengths, key=lambda length: (abs(length - len(candidate)), length))


def _require_corpus(candidates: Sequence[Text], references: Sequence[Sequence[Text]]) -> None:
    """Refuse what would be counted wrong in silence: letters in place of words, tensors, nothing to count."""
    if len(candidates) != len(references) or not candidates:
        raise ValueError(
            f"there are {len(candidates)} candidates and {len(references)} lists of references; "
            f"there must be one list per candidate, at least one"
        )
    for number, (candidate, several) in enumerate(zip(candidates, references, strict=True)):
        if isinstance(several, str) or len(several) == 0:
            raise ValueError(f"references[{number}] is {several!r}; it must be a list of texts")
        for text in (candidate, *several):
            if isinstance(text, str) or not isinstance(text, Sequence):
                raise ValueError(
                    f"sentence {number} has the text {text!r}; a text must be a list of tokens, e.g. "
                    f"sentence.split(). If references[{number}] is one text, put it in a list"
                )
