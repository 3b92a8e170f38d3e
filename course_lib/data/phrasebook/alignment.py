"""How well links between words fit those of the phrasebook."""

from collections.abc import Iterable, Sequence

from jaxtyping import Shaped
from torch import Tensor

from course_lib.data.phrasebook.phrases import Phrase
from course_lib.inputs import require_axes, require_floating

Links = Iterable[tuple[int, int]]


def strongest_links(weights: Shaped[Tensor, "..."]) -> set[tuple[int, int]]:
    """Link every target word with the source word that it looks at most: (source, target) places.

    Raises:
        ValueError: for what is not floating-point of shape (target, source).
    """
    require_floating(weights=weights)
    require_axes(2, "(target, source)", weights=weights)
    if weights.dim() != 2:
        raise ValueError(f"weights has shape {tuple(weights.shape)}; it must be (target, source)")
    return {(source, target) for target, source in enumerate(weights.argmax(dim=-1).tolist())}


def alignment_error_rate(found: Sequence[Links], phrases: Sequence[Phrase]) -> float:
    r"""Hold links against those that annotators would draw; 0 is best, 1 is worst.

    $$\mathrm{AER} = 1 - \frac{|A \cap S| + |A \cap P|}{|A| + |S|}$$

    with the links found $A$, the sure ones $S$, and the possible ones $P \supseteq S$, counted over all
    sentences together. A missed sure link costs, and so does a link that is not even possible.

    Args:
        found: for each sentence its links, (place in `english`, place in `french`).
        phrases: the sentences.

    Raises:
        ValueError: for unequal numbers of both, none at all, and a link outside its sentence.

    Source: Och and Ney (2003), "A systematic comparison of various statistical alignment models", section 6.
    """
    if len(found) != len(phrases) or not phrases:
        raise ValueError(
            f"found has {len(found)} sentences, phrases {len(phrases)}; they must be equally many, "
            f"at least one"
        )
    agreed = total = 0
    for place, (links, phrase) in enumerate(zip(found, phrases, strict=True)):
        links = set(links)
        for source, target in links:
            if not (0 <= source < len(phrase.english) and 0 <= target < len(phrase.french)):
                raise ValueError(
                    f"found[{place}] has the link ({source}, {target}), but the sentence has "
                    f"{len(phrase.english)} English and {len(phrase.french)} French words"
                )
        agreed += len(links & phrase.sure) + len(links & phrase.possible)
        total += len(links) + len(phrase.sure)
    return 1 - agreed / total
