"""The BLEU explorer: which n-grams of a candidate are counted, and the resulting score."""

from collections import Counter

from course_lib import messages
from course_lib.plots import BarsPanel, NgramsPanel, figure
from course_lib.topics.bleu import bleu, brevity_penalty, modified_precision
from course_lib.widgets.controls import Text
from course_lib.widgets.explorer import View, explorer

_LONGEST_RUN, _MOST_TOKENS, _MOST_REFERENCES = 4, 24, 3


@explorer
def bleu_explorer(
    candidate: str = "the the the cat sat on the mat",
    reference: str = "the cat is sitting on the mat",
    *,
    n: int = 1,
) -> View:
    """Type a translation and its reference; see which n-grams are counted, and the BLEU score.

    Counted n-grams have a solid blue line and a link to their match in a reference. Clipped ones, which occur
    more often in the candidate than in any reference, have a dashed orange line, missing ones a dotted line.

    Args:
        candidate: at most 24 tokens.
        reference: likewise; up to three of them, with "|" between.
        n: the length of the n-grams shown, 1 to 4.

    Raises:
        ValueError: for a text without tokens or with too many, and too many references.
    """
    fig, (top, bottom) = figure(10.4, 5.4, rows=2, height_ratios=(1.9, 1))
    top.set_title("solid and linked: counted, dashed: clipped, dotted: not in a reference")
    rows = NgramsPanel(top)
    bars = BarsPanel(bottom, _LONGEST_RUN + 2, names=("value of", "value", "before"))

    def update(candidate: str, reference: str, n: int) -> dict[str, str]:
        words = _tokens("candidate", candidate)
        references = [_tokens("reference", text) for text in reference.split("|")]
        if len(references) > _MOST_REFERENCES:
            raise ValueError(
                f"there are {len(references)} references; at most {_MOST_REFERENCES} can be shown"
            )
        kinds, links, counts = _compared(words, references, n)
        names = [f"reference {number + 1}" for number in range(len(references))]
        names = ["candidate", *(names if len(names) > 1 else ["reference"])]
        rows.update(names, [words, *references], n, kinds, links, counts)

        lengths = range(1, _LONGEST_RUN + 1)
        precisions = [modified_precision([words], [references], k) for k in lengths]
        nearest = min(map(len, references), key=lambda length: (abs(length - len(words)), length))
        brevity, score = brevity_penalty(len(words), nearest), bleu([words], [references])
        runs = [max(len(words) - k + 1, 0) for k in lengths]
        shares = [f"{round(p * run)} of {run}" for p, run in zip(precisions, runs, strict=True)]
        colours = ["data"] * (_LONGEST_RUN + 1) + ["second"]
        colours[n - 1] = "main"
        notes = [f"{share} = {p:.3f}" for share, p in zip(shares, precisions, strict=True)]
        compared = f"{len(words)} {'<' if len(words) < nearest else '≥'} {nearest}"
        bars.update(
            [*(f"p{k}" for k in lengths), "brevity penalty", "BLEU"],
            [*precisions, brevity, score],
            notes=[*notes, f"{brevity:.3f} ({compared})", f"{score:.3f}"],
            colours=colours,
        )
        return {
            "candidate": repr(candidate),
            "reference": " | ".join(repr(" ".join(one)) for one in references),
            f"{n}-grams": f"{shares[n - 1]} counted, {kinds.count('clipped')} clipped, "
            f"{kinds.count('missing')} missing",
            "precisions": ", ".join(f"{p:.3f}" for p in precisions),
            "brevity penalty": f"{brevity:.3f}, {len(words)} tokens, reference {nearest}",
            "BLEU": f"{score:.3f}" + ("" if all(precisions) else ", because a precision is 0"),
        }

    words = Text(messages.RULE_OF_BLEU.format(most=_MOST_TOKENS, references=_MOST_REFERENCES))
    controls = {"candidate": words, "reference": words, "n": range(1, _LONGEST_RUN + 1)}
    return View("BLEU of one sentence", [rows, bars], update, controls, "bleu")


def _tokens(name: str, text: str) -> list[str]:
    words = text.split()
    if not 0 < len(words) <= _MOST_TOKENS:
        raise ValueError(
            f"{name} {text!r} has {len(words)} tokens; give 1 to {_MOST_TOKENS}"
            + (', with a text on both sides of each "|"' if name == "reference" else "")
        )
    return words


def _compared(candidate: list[str], references: list[list[str]], n: int) -> tuple[list, list, list]:
    """Return the kind of each n-gram of the candidate, links to the matches, and its count in each text."""
    runs = [
        [tuple(text[i : i + n]) for i in range(len(text) - n + 1)]
        for text in (candidate, *references)
    ]
    kinds, links, used = [], [], Counter()
    for start, run in enumerate(runs[0]):
        # The k-th counted occurrence is linked to the k-th in the first reference that has k of them.
        found = [[i for i, other in enumerate(text) if other == run] for text in runs[1:]]
        unused = [row for row, starts in enumerate(found, 1) if len(starts) > used[run]]
        kinds.append("counted" if unused else "clipped" if any(found) else "missing")
        if unused:
            links.append((start, unused[0], found[unused[0] - 1][used[run]]))
            used[run] += 1
    counts = [[text.count(run) for run in runs[0]] for text in runs]
    return kinds, links, counts
