"""How nbval compares a number in the output of a notebook: as a number, not digit by digit.

Another processor adds in another order, so a mean of 0.03125 may be printed as 0.0312 or 0.0313. A number that either
side writes with a decimal point or an exponent may differ by 1 % or by 0.0001. A number that both sides write
without (a count, an index, a token id, a length) is the same, and so is the text around the numbers.
"""

import re
from decimal import Decimal

RELATIVE, ABSOLUTE = Decimal("0.01"), Decimal("0.0001")
# With the spaces that align it and its thousands separators; the parts of a version such as 2.13.0 are text.
NUMBER = re.compile(
    r"( *(?<![\d.])[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[-+]?\d+)?(?!\.?\d))"
)


def agrees(now: str, stored: str) -> bool:
    """Whether a printed number is the stored one, within the tolerance."""
    if now == stored or not set(".e") & set(now + stored):
        return now == stored
    x, y = (Decimal(number.replace(",", "").strip()) for number in (now, stored))
    try:
        return abs(x - y) <= max(ABSOLUTE, RELATIVE * max(abs(x), abs(y)))
    except ArithmeticError:  # an exponent of seven digits
        return False


def as_stored(now: str, stored: str) -> str:
    """Write each number of a text as in the stored text where the two agree."""
    parts, others = NUMBER.split(now), NUMBER.split(stored)  # text, number, text, …
    if len(parts) == len(others):
        pairs = zip(parts[1::2], others[1::2], strict=True)
        parts[1::2] = [other if agrees(part, other) else part for part, other in pairs]
    return "".join(parts)


def outputs_as_stored(outputs: list, stored: list, sanitize=str) -> list:
    """Write the numbers of a cell's outputs as in the stored outputs where they agree.

    Args:
        outputs, stored: of one cell, in the same order; anything else is returned as it is.
        sanitize: removes from a text what is not compared.
    """
    if len(outputs) != len(stored):
        return outputs
    return [_one(*pair, sanitize) for pair in zip(outputs, stored, strict=True)]


def _one(value, stored, sanitize, key: str = "text"):
    if isinstance(value, dict) and isinstance(stored, dict):
        return type(value)(
            {name: _one(part, stored.get(name), sanitize, name) for name, part in value.items()}
        )
    texts = key.startswith("text") and isinstance(value, str) and isinstance(stored, str)
    return as_stored(sanitize(value), sanitize(stored)) if texts else value
