"""TeX formulas as MathML, which browsers draw by themselves."""

import re
import xml.etree.ElementTree as ElementTree

from latex2mathml.converter import convert

_SPACE = "http://www.w3.org/1998/Math/MathML"
ElementTree.register_namespace("", _SPACE)
#: What latex2mathml does not know, in words that it knows.
_REWRITTEN = {
    r"\\(begin|end)\{aligned\}": r"\\\1{align*}",
    r"\\\\\[[^\]]*\]": r"\\\\",
    r"\\arg\b": r"\\mathrm{arg}\\,",
}
_ENVIRONMENTS = {"align*", "matrix", "pmatrix", "bmatrix", "vmatrix", "cases"}


def mathml(tex: str, *, block: bool = False) -> str:
    """Convert a formula.

    Args:
        tex: without its dollar signs.
        block: whether it stands on a line of its own.

    Raises:
        ValueError: for a formula with a command or an environment that cannot be converted.
    """
    for old, new in _REWRITTEN.items():
        tex = re.sub(old, new, tex)
    environments = set(re.findall(r"\\(?:begin|end)\{(.*?)\}", tex)) - _ENVIRONMENTS
    braces = re.sub(r"\\.", "", tex)
    if environments or braces.count("{") != braces.count("}"):
        raise ValueError(f"{tex!r} cannot be converted: {min(environments, default='a brace')!r}")
    try:
        root = ElementTree.fromstring(convert(tex, display="block" if block else "inline"))
    except Exception as problem:
        raise ValueError(f"{tex!r} cannot be converted: {problem!r}") from problem
    unknown = re.findall(r"\\\w*|&", "".join(root.itertext()))
    if unknown or root.find(f".//{{{_SPACE}}}merror") is not None:
        raise ValueError(f"{tex!r} cannot be converted: {unknown} is not known")
    for row in root.iter(f"{{{_SPACE}}}mrow"):
        _join_letters(row)
    _say_forms(root)
    for row in list(root.iter()):
        if _tag(row) in ("mrow", "mtd"):
            _space_functions(row)
    return ElementTree.tostring(root, encoding="unicode")


def _tag(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def _join_letters(row: ElementTree.Element) -> None:
    """Make one word of the upright letters of a `mathrm`, so that it is read as a word."""
    letters = list(row)
    if len(letters) > 1 and all(one.get("mathvariant") == "normal" for one in letters):
        word = ElementTree.Element(f"{{{_SPACE}}}mi")
        word.text = "".join(one.text or "" for one in letters)
        row[:] = [word]


def _say_forms(root: ElementTree.Element) -> None:
    """Say what a browser cannot know: which bar opens, which closes, that max is a name, that / has no space."""
    opened = False
    for operator in root.iter(f"{{{_SPACE}}}mo"):
        if operator.text in ("|", "‖"):
            opened = not opened
            operator.set("form", "prefix" if opened else "postfix")
            operator.set("stretchy", operator.get("stretchy", "false"))
        elif operator.text == "/":
            operator.set("lspace", "0")
            operator.set("rspace", "0")
        elif (operator.text or "").isalpha() and len(operator.text) > 1:
            operator.tag = f"{{{_SPACE}}}mi"


def _space_functions(row: ElementTree.Element) -> None:
    """Put a thin space around the name of a function, as TeX does: 2 sin x, log p; none behind a sign: -1."""
    spaced: list[ElementTree.Element] = []
    for one in row:
        if one.text == "−" and (not spaced or _opens(spaced[-1])):
            one.set("form", "prefix")
        if spaced and (
            (_is_function(one) and _is_letter(spaced[-1]))
            or (_is_function(spaced[-1]) and (_is_letter(one) or _tag(one) == "mfrac"))
        ):
            spaced.append(ElementTree.Element(f"{{{_SPACE}}}mspace", width="0.167em"))
        spaced.append(one)
    row[:] = spaced


def _opens(element: ElementTree.Element) -> bool:
    """Whether a minus after it is a sign and not a difference."""
    return _tag(element) == "mo" and element.text in set("([=,;<>≤≥≈→∈")


def _is_function(element: ElementTree.Element) -> bool:
    base = _base(element)
    return _tag(base) == "mi" and len(base.text or "") > 1


def _is_letter(element: ElementTree.Element) -> bool:
    return _tag(_base(element)) in ("mi", "mn", "msqrt")


def _base(element: ElementTree.Element) -> ElementTree.Element:
    """Return what carries the indices and exponents."""
    while _tag(element) in ("msub", "msup", "msubsup", "mrow") and len(element):
        if _tag(element) == "mrow" and len(element) > 1:
            break
        element = element[0]
    return element
