"""Checks of `course_lib.bleu`."""

import math
from collections.abc import Sequence
from numbers import Real

from course_lib.validation import require_whole


def modified_precision(candidates, references, n):
    """A corpus, and an order above 0."""
    require_whole(n=n)
    _require_corpus(candidates, references)


def brevity_penalty(candidate_length, reference_length):
    """Two lengths."""
    require_whole(0, candidate_length=candidate_length, reference_length=reference_length)


def bleu(candidates, references, max_n=4, weights=None):
    """A corpus, an order above 0, and weights that sum to 1."""
    require_whole(max_n=max_n)
    if max_n > 100:
        raise ValueError(
            f"max_n={max_n} is above 100; BLEU counts n-grams of up to 4 tokens as a rule"
        )
    _require_corpus(candidates, references)
    if weights is None:
        return
    valid = hasattr(weights, "__len__") and len(weights) == max_n
    valid = valid and all(isinstance(w, Real) and w >= 0 for w in weights)
    if not valid or not math.isclose(sum(weights), 1, abs_tol=1e-6):
        raise ValueError(
            f"weights={weights!r} must be max_n={max_n} numbers, 0 or more, that sum to 1"
        )


def _require_corpus(candidates, references):
    """Lists of tokens, with a list of one or more references for each candidate."""
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
    for number, (candidate, several) in enumerate(zip(candidates, references, strict=True)):
        if isinstance(several, str) or not isinstance(several, Sequence) or len(several) == 0:
            raise ValueError(
                f"references[{number}] is {several!r}; it must be a list of one or more texts, "
                f"e.g. [['the', 'cat']]"
            )
        for text in (candidate, *several):
            if not isinstance(text, Sequence):
                raise ValueError(
                    f"sentence {number} has the text {text!r}; a text must be a list of tokens, "
                    f"e.g. tensor.tolist() or sentence.split()"
                )
            if isinstance(text, str):
                raise ValueError(
                    f"sentence {number} has the text {text!r}; a text must be a list of tokens, "
                    f"e.g. {text.split()!r}. If references[{number}] is one text, put it in a list"
                )
