"""The translation explorer: type a sentence, turn a knob, see what is written and where it looks."""

from functools import lru_cache

import ipywidgets
import matplotlib

from course_lib.attention import AttentionMap
from course_lib.inputs import require_one_of, require_whole
from course_lib.plots import TokenMapPanel, figure
from course_lib.plots.style import STYLE
from course_lib.translator import PhraseTranslator
from course_lib.widgets.explorer import Explorer, learned
from course_lib.widgets.live_figure import LiveFigure

_TEMPERATURES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0)  # 0: the most probable word, always
_DRAWS = 20


def translation_explorer(
    translator: PhraseTranslator,
    text: str,
    *,
    temperature: float = 0.0,
    draw: int = 0,
    layer: str = "decoder 2: cross",
    head: int = 1,
) -> Explorer:
    """Translate what is typed; rows are the French words written, columns the English words looked at.

    With a temperature of 0 each word is the most probable one. Above it, words are drawn at random, the
    improbable ones more often the higher it is; another `draw` is another roll of the dice.

    Args:
        translator: of the phrasebook.
        text: what stands in the box at first.
        temperature: 0, 0.5, 1, 1.5, 2 or 3.
        draw: number of the draw.
        layer, head: which map of the translator is shown: one of French words over English ones.

    Raises:
        ValueError: for a temperature or a draw that the slider has not, a map that there is not, and a text
            that the translator refuses.
    """
    require_whole(0, draw=draw, head=head)
    if draw > _DRAWS:
        raise ValueError(f"draw={draw} must be at most {_DRAWS}")
    if isinstance(temperature, bool) or temperature not in _TEMPERATURES:
        raise ValueError(
            f"temperature={temperature!r} must be one of {', '.join(f'{t:g}' for t in _TEMPERATURES)}"
        )

    @lru_cache(maxsize=64)
    def maps(text: str, temperature: float, draw: int, version: int) -> dict[str, AttentionMap]:
        french = translator.drawn(text, temperature, seed=draw) if temperature > 0 else None
        every = translator.maps(text, french)
        return {name: one for name, one in every.items() if name.endswith("cross")}

    def translated(text: str, temperature: float, draw: int) -> dict[str, AttentionMap]:
        draw = draw if temperature > 0 else 0  # the same for every draw
        return maps(text, temperature, draw, learned(translator.model))

    shown = translated(text, temperature, draw)
    require_one_of(shown, layer=layer)
    if head >= len(shown[layer].weights):
        raise ValueError(f"head={head} must be below {len(shown[layer].weights)}")
    with matplotlib.rc_context(STYLE):
        drawn, axes = figure(7.2, 4.2)
        panel = TokenMapPanel(axes, title="French words (rows) look at English words (columns)")
        live = LiveFigure(drawn, [panel])

    def update(text: str = text, temperature: float = temperature, draw: int = draw) -> dict:
        weights, queries, keys = translated(text, temperature, draw)[layer]
        panel.update(weights[head], queries, keys, row=None, brightest=1.0)
        return {
            "English": repr(text),
            "French": repr(translator.written(queries)),
            "temperature": f"{temperature:g}",
        } | ({"draw": str(draw)} if temperature > 0 else {})

    controls = {
        "text": ipywidgets.Text(value=text, description="English"),
        "temperature": ipywidgets.SelectionSlider(
            value=temperature,
            options=[(f"{t:g}", t) for t in _TEMPERATURES],
            description="temperature",
        ),
        "draw": ipywidgets.IntSlider(draw, min=0, max=_DRAWS, description="draw"),
    }
    return Explorer("Translation", controls, live, update, name="translation")
