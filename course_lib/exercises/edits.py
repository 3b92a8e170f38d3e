"""Mistakes as edits of a solution's source: `right -> wrong`, and below it what to say to who wrote that.

A table of mistakes is text. Each entry is one or more edits, then an indented message:

    softmax(scores, dim=-1) -> softmax(scores, dim=0)
        Your softmax runs over the queries. The weights of each query must sum to 1: dim=-1.
    / bandwidth -> / bandwidth.sum()
    / bandwidth -> / bandwidth[0]
        All components are divided by the same number. Divide each by its own bandwidth.
    x + attend(x, mask) -> attend(x)
    + x + network(x) -> network(x)
        Neither residual connection is there.

`right` stands exactly once in the solution (`=>` instead of `->`: replace it wherever it stands). Edits with the same
message are different ways to be wrong in the same way; a line that begins with `+` is a further edit of the same
mistake. `|| A ; B + C` is two more ways: the mistake above, also with the edit A, and also with the edits B and C. The
two characters `\\n` stand for a new line: in `wrong` at the indentation of the line that is edited.
"""

import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from functools import cache
from itertools import combinations, product

from course_lib import messages
from course_lib.exercises.exercise import Exercise, Mistake

Edits = tuple[tuple[str, str, bool], ...]  #: of one mistake: right, wrong, whether everywhere


def mistakes(solution: Callable, table: str) -> tuple[Mistake, ...]:
    """Read a table of mistakes."""
    return tuple(
        Mistake(_name(edits), edited(solution, edits), message, edits)
        for alternatives, message in _entries(table)
        for edits in alternatives
    )


def bugs(solution: Callable, table: str) -> tuple[Callable, tuple[Mistake, ...], str]:
    """Read a table of the bugs of a hunt, as for `mistakes`, each with its symptom as the message.

    The first edits of an entry are the bug as it is given; the others are repairs of it that are not enough.

    Returns:
        The code as given, the partial repairs, and the message for the code as given, which says how many bugs
        there are and not which.
    """
    entries = _entries(table)
    given = tuple(alternatives[0] for alternatives, _ in entries)
    count, partial_repairs = len(entries), []
    for left in product(*([(), *alternatives] for alternatives, _ in entries)):
        if any(left) and left != given:
            symptoms = [message for edits, (_, message) in zip(left, entries, strict=True) if edits]
            message = messages.BUGS_LEFT.format(
                repaired=count - len(symptoms), count=count, symptoms="; ".join(symptoms)
            )
            edits = sum(left, ())
            implementation = edited(solution, edits)
            partial_repairs.append(Mistake(_name(edits), implementation, message, edits, left=True))
    said = messages.ALL_BUGS_LEFT.format(count=count) if count > 1 else messages.STILL_AS_GIVEN
    return edited(solution, sum(given, ())), tuple(partial_repairs), said


def pairs(exercise: Exercise) -> Iterator[Mistake]:
    """Yield every two of the mistakes that are edits of different places, as one mistake."""
    solution, given = exercise.solution, getattr(exercise.given, "edits", None)
    known = [mistake for mistake in exercise.mistakes if mistake.edits]
    if given:
        known.append(Mistake("given", exercise.given, exercise.given_message, given, left=True))
    spans = [(mistake, _spans(_source(solution), mistake.edits)) for mistake in known]
    for (one, places), (other, others) in combinations(spans, 2):
        if one.message == other.message or (one.left and other.left):
            continue
        if all(a[1] <= b[0] or b[1] <= a[0] for a in places for b in others):
            edits = one.edits + other.edits
            one, other = (other, one) if other.left else (one, other)  # what is left comes first
            said = messages.BUG_AND_MISTAKE if one.left else messages.TWO_MISTAKES
            message = said.format(one=one.message, other=other.message)
            yield Mistake(_name(edits), edited(solution, edits), message, edits)


def edited(solution: Callable, edits: Edits) -> Callable:
    """Return the solution with these edits of its source; they are its attribute `edits` as well."""
    source = text = _source(solution)
    places = [(span, wrong) for edit in edits for span, wrong in _replacements(source, edit)]
    for (start, end), wrong in sorted(
        places, reverse=True
    ):  # the last first: places before it stay
        text = text[:start] + wrong + text[end:]
    namespace = dict(solution.__globals__)
    exec(compile(text, f"<{solution.__name__}: {_name(edits)}>", "exec"), namespace)
    function = namespace[solution.__name__]
    function.edits = edits
    return function


def edits_of(text: str) -> Edits:
    """Read the edits of one mistake, a line each."""
    return tuple(_edit(line.removeprefix("+ ")) for line in text.strip().splitlines())


def _entries(table: str) -> list[tuple[list[Edits], str]]:
    entries: list[tuple[list[Edits], str]] = []
    alternatives: list[Edits] = []
    above: Edits = ()  # what `||` begins with
    message = ""
    for line in [*textwrap.dedent(table).strip("\n").splitlines(), ""]:
        if line.startswith(" "):
            message = f"{message} {line.strip()}".strip()
            continue
        if message:
            entries.append((alternatives, message))
            alternatives, message = [], ""
        if line.startswith(("+ ", "|| ")) and not alternatives:
            raise ValueError(f"a further edit without a first one: {line!r}")
        if line.startswith("+ "):
            alternatives[-1] += (_edit(line[2:]),)
        elif line.startswith("|| "):
            several = [also.split(" + ") for also in line[3:].split(" ; ")]
            alternatives += [(*above, *map(_edit, also)) for also in several]
        elif line:
            alternatives.append((_edit(line),))
        if alternatives and not line.startswith("|| "):
            above = alternatives[-1]
    return entries


def _edit(line: str) -> tuple[str, str, bool]:
    match = re.fullmatch(r"(.+?) ([-=])>(?: (.*))?", line)
    if match is None:
        raise ValueError(f"an edit is `right -> wrong`, not {line!r}")
    return match[1].strip(), (match[3] or "").strip(), match[2] == "="


def _name(edits: Edits) -> str:
    return " + ".join(f"{right} -> {wrong}" for right, wrong, _ in edits)


@cache
def _source(solution: Callable) -> str:
    return textwrap.dedent(inspect.getsource(solution))


def _spans(source: str, edits: Edits) -> list[tuple[int, int]]:
    return [span for edit in edits for span, _ in _replacements(source, edit)]


def _replacements(source: str, edit: tuple[str, str, bool]) -> list[tuple[tuple[int, int], str]]:
    """Return ((start, end), what to write there) for each place of an edit."""
    right, wrong, everywhere = edit
    pattern = r"\n *".join(map(re.escape, right.split(r"\n")))
    spans = [match.span() for match in re.finditer(pattern, source)]
    if not spans or (len(spans) > 1 and not everywhere):
        raise ValueError(f"{right!r} stands {len(spans)} times in the solution")
    replacements = []
    for start, end in spans:
        line = source[source.rfind("\n", 0, start) + 1 :]
        margin = line[: len(line) - len(line.lstrip(" "))]
        replacements.append(((start, end), wrong.replace(r"\n", "\n" + margin)))
    return replacements
