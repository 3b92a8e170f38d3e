r"""BLEU: how many n-grams of a translation stand in a reference too.

$$\mathrm{BLEU} = \mathrm{BP} \cdot \exp\Big(\sum_{n=1}^{N} w_n \log p_n\Big)$$

with the modified precisions $p_n$ and the brevity penalty $\mathrm{BP}$, both over a whole corpus. Texts are
lists of tokens; what a token is, is up to you, and the score depends on it (Post 2018).

Source: Papineni and others (2002), "BLEU: a method for automatic evaluation of machine translation".
"""

import math
from collections import Counter
from collections.abc import Sequence
from numbers import Real

from course_lib.inputs import require_whole

__all__ = ["bleu", "brevity_penalty", "modified_precision"]

Text = Sequence[str]


def modified_precision(
    candidates: Sequence[Text], references: Sequence[Sequence[Text]], n: int
) -> float:
    r"""Return the share of the candidates' n-grams that stand in a reference, none counted too often.

    $$p_n = \frac{\sum_{\text{candidates}} \sum_g \min\big(\#_g,\ \max_{\text{references}} \#_g\big)}
                 {\sum_{\text{candidates}} \sum_g \#_g}$$

    over n-grams $g$ and their counts $\#_g$. Clipping to what a reference has keeps "the the the" from being
    right three times. 0 where the candidates are too short to have an n-gram.

    Args:
        candidates: one text per sentence.
        references: for each sentence its references, one or more.
        n: how many tokens in a row.

    Raises:
        ValueError: for unequal numbers of candidates and references, a sentence without references, a text
            that is one string, and an `n` below 1.
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
    r"""Return what a corpus shorter than its references is multiplied by.

    $$\mathrm{BP} = \begin{cases} 1 & c > r \\ e^{1 - r/c} & c \le r \end{cases}$$

    Precision alone would favour a single word that is right.

    Args:
        candidate_length: $c$, tokens of all candidates together.
        reference_length: $r$, tokens of the references that are nearest in length, together.

    Raises:
        ValueError: for what is not a whole number, 0 or more.
    """
    require_whole(0, candidate_length=candidate_length, reference_length=reference_length)
    if candidate_length >= reference_length:
        return 1.0
    return math.exp(1 - reference_length / candidate_length) if candidate_length else 0.0


def bleu(
    candidates: Sequence[Text],
    references: Sequence[Sequence[Text]],
    max_n: int = 4,
    weights: Sequence[float] | None = None,
) -> float:
    r"""Return the BLEU of a corpus, from 0 to 1. Not the mean of its sentences'.

    0 where any of the precisions with a weight is 0: a geometric mean has no mercy.

    Args:
        candidates: one text per sentence.
        references: for each sentence its references, one or more.
        max_n: $N$.
        weights: $w_1, \dots, w_N$, which add up to 1; $1/N$ each where left out.

    Raises:
        ValueError: as `modified_precision`, and for weights that are not `max_n` numbers from 0 up that add
            up to 1.
    """
    require_whole(max_n=max_n)
    _require_corpus(candidates, references)
    weights = [1 / max_n] * max_n if weights is None else _checked(weights, max_n)
    precisions = [modified_precision(candidates, references, n) for n in range(1, max_n + 1)]
    if any(p == 0 and weight > 0 for p, weight in zip(precisions, weights, strict=True)):
        return 0.0
    mean = sum(w * math.log(p) for p, w in zip(precisions, weights, strict=True) if w > 0)
    nearest = [
        min(map(len, several), key=lambda length: (abs(length - len(candidate)), length))
        for candidate, several in zip(candidates, references, strict=True)
    ]
    return brevity_penalty(sum(map(len, candidates)), sum(nearest)) * math.exp(mean)


def _ngrams(text: Text, n: int) -> Counter:
    return Counter(tuple(text[i : i + n]) for i in range(len(text) - n + 1))


def _checked(weights: Sequence[float], max_n: int) -> Sequence[float]:
    fine = hasattr(weights, "__len__") and len(weights) == max_n
    fine = fine and all(isinstance(w, Real) and w >= 0 for w in weights)
    if not fine or not math.isclose(sum(weights), 1, abs_tol=1e-6):
        raise ValueError(
            f"weights={weights!r} must be max_n={max_n} numbers, 0 or more, that add up to 1"
        )
    return weights


def _require_corpus(candidates: Sequence[Text], references: Sequence[Sequence[Text]]) -> None:
    for name, texts in (("candidates", candidates), ("references", references)):
        if isinstance(texts, str) or not isinstance(texts, Sequence):
            raise ValueError(
                f"{name} is a {type(texts).__name__}; candidates must be a list of texts, references a list "
                f"of lists of texts, and a text a list of tokens"
            )
    if len(candidates) != len(references) or len(candidates) == 0:
        raise ValueError(
            f"there are {len(candidates)} candidates and {len(references)} lists of references; "
            f"there must be one list per candidate, at least one"
        )
    for place, (candidate, several) in enumerate(zip(candidates, references, strict=True)):
        if isinstance(several, str) or not isinstance(several, Sequence) or len(several) == 0:
            raise ValueError(
                f"references[{place}] is {several!r}; it must be a list of one or more texts, "
                f"e.g. [['the', 'cat']]"
            )
        for text in (candidate, *several):
            if not isinstance(text, Sequence):
                raise ValueError(
                    f"sentence {place} has the text {text!r}; a text must be a list of tokens, "
                    f"e.g. tensor.tolist() or sentence.split()"
                )
            if isinstance(text, str):
                raise ValueError(
                    f"sentence {place} has the text {text!r}; a text must be a list of tokens, "
                    f"e.g. {text.split()!r}. If references[{place}] is one text, put it in a list"
                )
