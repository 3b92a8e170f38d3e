"""The moving picture of the README: a translation grows token by token, and each token shows where it attends.

``python -m course_lib.tools.animation`` draws it anew.
"""

from html import escape
from pathlib import Path

from matplotlib import colormaps
from matplotlib.colors import to_hex

from course_lib.checkpoints import phrase_translator
from course_lib.plots.style import COLOURS
from course_lib.topics.attention_maps import AttentionMap

FILE = Path(__file__).parents[2] / "img" / "attention_animation.svg"
STEP, HOLD = 1.5, 4.0  # seconds: each token, and the complete translation
WIDTH, HEIGHT = 900, 330
_TOP, _BOTTOM = 96, 268  # baselines of the two sentences
_LEFT, _RIGHT = 16, 520  # between them stand the sentences, to the right of them the map
_CELL = 30
_WRITTEN = 0.05  # smaller weights have no number in their cell
_CORNER = (640, 116)  # of the map


def attention_animation(attention: AttentionMap, head: int, title: str, description: str) -> str:
    """Draw the weights of one head as an SVG that moves, without scripts: one generated token after the other.

    A program that does not animate, and a browser that asks for reduced motion, shows the complete translation
    with the lines of all tokens, as the end of each round does.

    Args:
        attention: of one translation; the queries are the generated tokens.
        head: whose weights are drawn.
        title, description: the text alternative.
    """
    queries, keys = attention.queries, attention.keys
    weights = attention.weights[head].tolist()
    seconds = STEP * len(queries) + HOLD
    body = [
        _text(_LEFT, 34, "Each generated token attends to the input", size=17, anchor="start"),
        _text(_CORNER[0] - 96, 34, "Attention weights", size=17, anchor="start"),
        *(_text(_across(n, keys), _TOP, key, size=15) for n, key in enumerate(keys)),
        *(
            _text(
                _CORNER[0] + (n + 0.6) * _CELL,
                _CORNER[1] - 8,
                key,
                size=13,
                anchor="start",
                angle=-50,
            )
            for n, key in enumerate(keys)
        ),
    ]
    rules = []
    for step, (token, row) in enumerate(zip(queries, weights, strict=True)):
        start, end = (100 * STEP * n / seconds for n in (step, step + 1))
        rules += [
            _animated(f"t{step}", start, 100 - 100 * HOLD / seconds, seconds),
            _animated(f"l{step}", start, end, seconds),
        ]
        body.append(f'<g class="l{step}">{_lines(step, row, queries, keys)}</g>')
        body.append(f'<g class="t{step}">{_row(step, token, row, queries)}</g>')
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img">
<title>{escape(title)}</title>
<desc>{escape(description)}</desc>
<style>
text {{ font-family: system-ui, "Segoe UI", Helvetica, Arial, sans-serif; }}
@media (prefers-reduced-motion: no-preference) {{
{chr(10).join(rules)}
}}
</style>
<rect width="{WIDTH}" height="{HEIGHT}" rx="10" fill="#ffffff"/>
{chr(10).join(body)}
</svg>
"""


def drawn() -> str:
    """Draw a head of the translator that ships with the course."""
    translator, english = phrase_translator(), "the black cat does not see him ."
    layer, head = "decoder 1: cross", 1
    title = f"{english} → {translator(english)}"
    description = f"Attention weights of {layer}, head {head}, as lines and as a map."
    return attention_animation(translator.maps(english)[layer], head, title, description)


def _animated(name: str, start: float, end: float, seconds: float) -> str:
    """Return the rules that show a group from `start` to `end`, in per cent of a round, and while it holds."""
    hold = 100 - 100 * HOLD / seconds
    stops = (
        f"0.000%, {start:.3f}% {{ opacity: 0; }} {start + 0.01:.3f}%, {end:.3f}% {{ opacity: 1; }}"
    )
    stops += f" {end + 0.01:.3f}%, {hold:.3f}% {{ opacity: 0; }}" if end < hold - 0.01 else ""
    stops += f" {hold + 0.02:.3f}%, 100.000% {{ opacity: 1; }}"
    return (
        f"@keyframes {name} {{ {stops} }} .{name} {{ animation: {name} {seconds:.1f}s infinite; }}"
    )


def _text(
    x: float, y: float, words: str, *, size: int, anchor="middle", angle=0.0, colour=COLOURS["ink"]
) -> str:
    turned = f' transform="rotate({angle:.1f} {x:.1f} {y:.1f})"' if angle else ""
    style = f'font-size="{size}" text-anchor="{anchor}" fill="{colour}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}{turned}>{escape(words)}</text>'


def _ink(weight: float) -> str:
    """Return the colour of a number that can be read on the cell."""
    return COLOURS["ink"] if weight > 0.6 else "#ffffff"


def _across(number: int, tokens: list[str]) -> float:
    """Return the middle of a token in its sentence."""
    return _LEFT + (number + 0.5) * (_RIGHT - _LEFT) / len(tokens)


def _lines(step: int, row: list[float], queries: list[str], keys: list[str]) -> str:
    """Draw a line to each input token, as wide and dark as its weight."""
    x = _across(step, queries)
    return "".join(
        f'<line x1="{x:.1f}" y1="{_BOTTOM - 20}" x2="{_across(n, keys):.1f}" y2="{_TOP + 10}" '
        f'stroke="{COLOURS["main"]}" stroke-width="{1 + 9 * weight:.2f}" stroke-opacity="{weight:.2f}"/>'
        for n, weight in enumerate(row)
    )


def _row(step: int, token: str, row: list[float], queries: list[str]) -> str:
    """Write the generated token, and draw its row of the map."""
    left, top = _CORNER[0], _CORNER[1] + step * 200 / len(queries)
    height = 200 / len(queries)
    cells = "".join(
        f'<rect x="{left + n * _CELL:.1f}" y="{top:.1f}" width="{_CELL}" height="{height:.2f}" '
        f'fill="{to_hex(colormaps["viridis"](weight))}"/>'
        for n, weight in enumerate(row)
    )
    numbers = "".join(
        _text(
            left + (n + 0.5) * _CELL,
            top + height / 2 + 4,
            f"{weight:.2f}",
            size=12,
            colour=_ink(weight),
        )
        for n, weight in enumerate(row)
        if weight >= _WRITTEN
    )
    label = _text(left - 8, top + height / 2 + 5, token, size=13, anchor="end")
    return _text(_across(step, queries), _BOTTOM, token, size=15) + label + cells + numbers


if __name__ == "__main__":
    FILE.write_text(drawn(), encoding="utf-8")
