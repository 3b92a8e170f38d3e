"""True word alignments, and how well predicted ones agree with them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from course_lib.data.phrasebook.grammar import Clause, to_english, to_french

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


def strongest_links(weights: Float[Tensor, "target source"]) -> set[tuple[int, int]]:
    """Link each target word with the source word of its largest attention weight.

    Each link is (source position, target position).
    """
    return {(source, target) for target, source in enumerate(weights.argmax(dim=-1).tolist())}


def alignment_error_rate(found: Sequence[Links], phrases: Sequence[Phrase]) -> float:
    r"""Return the alignment error rate (AER) of predicted links: 0 is best, 1 is worst.

    $$\mathrm{AER} = 1 - \frac{|A \cap S| + |A \cap P|}{|A| + |S|}$$

    with the predicted links $A$, the sure links $S$ and the possible links $P \supseteq S$, counted over
    all sentences together. Both a missed sure link and a predicted link outside $P$ raise it.

    Args:
        found: for each sentence its predicted links, (position in `english`, position in `french`).
        phrases: the sentences.

    Source: Och and Ney (2003), "A systematic comparison of various statistical alignment models", section 6.
    """
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
