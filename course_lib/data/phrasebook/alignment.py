"""True word alignments, and how well predicted ones agree with them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from jaxtyping import Shaped
from torch import Tensor

from course_lib.data.phrasebook.grammar import Clause, to_english, to_french
from course_lib.validation import require_axes, require_floating

#: Links between words, each (position in the source, position in the target).
Links = Iterable[tuple[int, int]]

#: Tags of English and French words whose links are possible, but not sure: the "does" of a negation
#: with ne and pas, the "is" of a question with est-ce que.
_POSSIBLE = {("do", "not"), ("be", "ask")}


@dataclass(frozen=True)
class Phrase:
    """A sentence in English and in French, with its true word alignment.

    Attributes:
        english, french: the words, in lower case; the last one is "." or "?".
        sure: (position in `english`, position in `french`) of the links that every annotator would make.
        possible: these, and the links that some annotators would make (Och and Ney 2003).
        pairs: its English (adjective, noun) and (verb, object) pairs.
    """

    english: tuple[str, ...]
    french: tuple[str, ...]
    sure: frozenset[tuple[int, int]]
    possible: frozenset[tuple[int, int]]
    pairs: frozenset[tuple[str, str]]

    def __str__(self) -> str:
        return f"{' '.join(self.english)} → {' '.join(self.french)}"


def aligned_phrase(clause: Clause) -> Phrase:
    """Write a clause in both languages and link the words whose tags are the same."""
    source, target = to_english(clause), to_french(clause)
    sure, possible = set(), set()
    for i, (_, source_tag) in enumerate(source):
        for j, (_, target_tag) in enumerate(target):
            if source_tag == target_tag:
                sure.add((i, j))
            elif (source_tag, target_tag) in _POSSIBLE:
                possible.add((i, j))
    return Phrase(
        tuple([word for word, _ in source]),
        tuple([word for word, _ in target]),
        frozenset(sure),
        frozenset(sure | possible),
        frozenset(clause.pairs()),
    )


def strongest_links(weights: Shaped[Tensor, "..."]) -> set[tuple[int, int]]:
    """Link each target word with the source word of its largest attention weight.

    Args:
        weights: shape (target, source).

    Returns:
        (source position, target position) of each link.

    Raises:
        ValueError: for anything but a floating-point tensor of shape (target, source).
    """
    require_floating(weights=weights)
    require_axes(2, "(target, source)", weights=weights)
    if weights.dim() != 2:
        raise ValueError(f"weights has shape {tuple(weights.shape)}; it must be (target, source)")
    if weights.shape[1] == 0:
        raise ValueError(f"weights has shape {tuple(weights.shape)}; there must be a source word")
    return {(source, target) for target, source in enumerate(weights.argmax(dim=-1).tolist())}


def alignment_error_rate(found: Sequence[Links], phrases: Sequence[Phrase]) -> float:
    r"""Return the alignment error rate (AER) of predicted links: 0 is best, 1 is worst.

    $$\mathrm{AER} = 1 - \frac{|A \cap S| + |A \cap P|}{|A| + |S|}$$

    with the predicted links $A$, the sure links $S$ and the possible links $P \supseteq S$, counted over
    all sentences together. Both a missed sure link and a predicted link outside $P$ raise it.

    Args:
        found: for each sentence its predicted links, (position in `english`, position in `french`).
        phrases: the sentences.

    Raises:
        ValueError: for unequal numbers of both, no sentence at all, and a link outside its sentence.

    Source: Och and Ney (2003), "A systematic comparison of various statistical alignment models", section 6.
    """
    for name, several in (("found", found), ("phrases", phrases)):
        if isinstance(several, str) or not isinstance(several, Sequence):
            raise ValueError(
                f"{name} is a {type(several).__name__}; it must be a list, one element per sentence"
            )
    if len(found) != len(phrases) or not phrases:
        raise ValueError(
            f"found has {len(found)} sentences, phrases {len(phrases)}; they must be equally many, "
            f"at least one"
        )
    agreed = total = 0
    for number, (links, phrase) in enumerate(zip(found, phrases, strict=True)):
        links = set(links)
        for source, target in links:
            if not (0 <= source < len(phrase.english) and 0 <= target < len(phrase.french)):
                raise ValueError(
                    f"found[{number}] has the link ({source}, {target}), but the sentence has "
                    f"{len(phrase.english)} English and {len(phrase.french)} French words"
                )
        agreed += len(links & phrase.sure) + len(links & phrase.possible)
        total += len(links) + len(phrase.sure)
    return 1 - agreed / total
