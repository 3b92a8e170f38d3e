"""From typed English to tokens, and from French tokens to text."""

import re
from collections.abc import Iterable

#: Pattern of an English contraction → its full form.
_CONTRACTIONS = (
    (r"\b(do|does|is|are)n't\b", r"\1 not"),
    (r"\b(he|she)'s\b", r"\1 is"),
    (r"\bthey're\b", "they are"),
)


def english_words(text: str) -> list[str]:
    """Tokenize a typed English sentence; a "." is added where it has no end mark.

    "He doesn't sleep" gives he, does, not, sleep and ".".

    Raises:
        ValueError: for anything but a string, a text without words, and more than one sentence.
    """
    if not isinstance(text, str):
        raise ValueError(f"text is a {type(text).__name__}; it must be a string")
    plain = text.lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    for contraction, full in _CONTRACTIONS:
        plain = re.sub(contraction, full, plain)
    words = re.findall(r"\w+(?:['-]\w+)*|[^\w\s]", plain)
    if not any(word[0].isalnum() for word in words):
        raise ValueError(f"text={text!r} has no words; type a sentence, e.g. 'the cat sleeps.'")
    ends = [position for position, word in enumerate(words) if word in (".", "?")]
    if ends and ends[0] < len(words) - 1:
        raise ValueError(
            f"text={text!r} continues after its first {words[ends[0]]!r}; type one sentence at a time"
        )
    return words if ends else [*words, "."]


def detokenize(tokens: Iterable[str]) -> str:
    """Join French tokens to text: "L'homme n'aime pas le chat.", with a space before "?".

    Raises:
        ValueError: for a string, and for tokens that are not strings.
    """
    if isinstance(tokens, str):
        raise ValueError(f"tokens={tokens!r} is a string; it must be a list of tokens")
    try:
        tokens = list(tokens)
    except TypeError:
        raise ValueError(f"tokens={tokens!r} must be a list of tokens") from None
    for token in tokens:
        if not isinstance(token, str):
            raise ValueError(f"tokens holds {token!r}, a {type(token).__name__}; use strings")
    text = " ".join(tokens).replace("' ", "'").replace(" .", ".")
    return text[:1].upper() + text[1:]
