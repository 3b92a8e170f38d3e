"""The translation explorer: type a sentence, change the temperature, see the translation and its attention."""

from functools import lru_cache

import ipywidgets
import matplotlib

from course_lib.inspection import AttentionMap, weights_version
from course_lib.plots import TokenMapPanel, figure
from course_lib.plots.style import STYLE
from course_lib.translator import PhraseTranslator
from course_lib.validation import require_one_of, require_whole
from course_lib.widgets.code import recreatable
from course_lib.widgets.explorer import Explorer
from course_lib.widgets.live_figure import LiveFigure

_TEMPERATURES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0)  # 0: greedy decoding
_SAMPLES = 20


@recreatable
def translation_explorer(
    translator: PhraseTranslator,
    text: str,
    *,
    temperature: float = 0.0,
    sample: int = 0,
    layer: str = "decoder 2: cross",
    head: int = 1,
) -> Explorer:
    """Translate a typed sentence; rows are the generated French words, columns the English words they attend to.

    At temperature 0 each word is the most probable one (greedy decoding). Above 0, words are sampled, and a
    higher temperature samples improbable words more often; another `sample` uses another seed.

    Args:
        translator: of the phrasebook.
        text: initial content of the text box.
        temperature: 0, 0.5, 1, 1.5, 2 or 3.
        sample: number of the sample, which is its seed; 0 to 20.
        layer, head: which cross-attention is shown.

    Raises:
        ValueError: for a temperature or a sample that its slider does not have, an unknown layer or head, and
            a text that the translator refuses.
    """
    require_whole(0, sample=sample, head=head)
    if sample > _SAMPLES:
        raise ValueError(f"sample={sample} must be at most {_SAMPLES}")
    if isinstance(temperature, bool) or temperature not in _TEMPERATURES:
        raise ValueError(
            f"temperature={temperature!r} must be one of {', '.join(f'{t:g}' for t in _TEMPERATURES)}"
        )

    @lru_cache(maxsize=64)
    def maps(text: str, temperature: float, sample: int, version: int) -> dict[str, AttentionMap]:
        french = translator.sample(text, temperature, seed=sample) if temperature > 0 else None
        every = translator.maps(text, french)
        return {name: one for name, one in every.items() if name.endswith("cross")}

    def translated(text: str, temperature: float, sample: int) -> dict[str, AttentionMap]:
        sample = sample if temperature > 0 else 0  # greedy decoding has no seed
        return maps(text, temperature, sample, weights_version(translator.model))

    shown = translated(text, temperature, sample)
    require_one_of(shown, layer=layer)
    if head >= len(shown[layer].weights):
        raise ValueError(f"head={head} must be below {len(shown[layer].weights)}")
    with matplotlib.rc_context(STYLE):
        fig, axes = figure(7.2, 4.2)
        of, _, kind = layer.replace("decoder", "Decoder layer").partition(": ")
        title = f"{of}, {kind}-attention, head {head}: French (rows) attends to English (columns)"
        panel = TokenMapPanel(axes, title=title)
        live = LiveFigure(fig, [panel])

    def update(text: str = text, temperature: float = temperature, sample: int = sample) -> dict:
        weights, queries, keys = translated(text, temperature, sample)[layer]
        panel.update(weights[head], queries, keys, row=None, brightest=1.0)
        return {
            "English": repr(text),
            "French": repr(translator.detokenize(queries)),
            "temperature": f"{temperature:g}",
        } | ({"sample": str(sample)} if temperature > 0 else {})

    def limits(temperature: float, **_) -> dict[str, int | None]:
        return {"sample": _SAMPLES if temperature > 0 else None}  # greedy decoding has no seed

    controls = {
        "text": ipywidgets.Text(value=text, description="English"),
        "temperature": ipywidgets.SelectionSlider(
            value=temperature,
            options=[(f"{t:g}", t) for t in _TEMPERATURES],
            description="temperature",
        ),
        "sample": ipywidgets.IntSlider(sample, min=0, max=_SAMPLES, description="sample"),
    }
    return Explorer("Translation", controls, live, update, name="translation", limits=limits)
