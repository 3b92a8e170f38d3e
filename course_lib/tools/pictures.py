"""Draw every picture in `img/`: ``python -m course_lib.tools.pictures``."""

import inspect
from collections.abc import Callable
from pathlib import Path

from matplotlib.figure import Figure

from course_lib.checkpoints import phrase_translator
from course_lib.data import nile_series
from course_lib.plots import (
    attention_diagram,
    blocks_diagram,
    cache_diagram,
    full_transformer_diagram,
    heads_diagram,
    kv_heads_diagram,
    residual_diagram,
    self_and_cross_diagram,
)
from course_lib.tools.animation import attention_animation
from course_lib.widgets import (
    kernel_regression_explorer,
    score_explorer,
    translation_explorer,
)
from course_lib.widgets.explorer import Explorer
from course_lib.widgets.live_figure import LiveFigure

ENGLISH = "the black cat does not see him ."
IMAGES = Path(__file__).parents[2] / "img"


def _explorer(make: Callable[[], Explorer]) -> Callable[[], bytes]:
    def svg() -> bytes:
        explorer = make()
        return explorer.picture.figure.svg(explorer.summary)

    return svg


def _diagram(make: Callable[[], Figure]) -> Callable[[], bytes]:
    return lambda: LiveFigure(make(), panels=[]).svg(" ".join(inspect.getdoc(make).split()))


def _animation() -> bytes:
    translator, english, layer, head = phrase_translator(), ENGLISH, "decoder 1: cross", 1
    title = f"{english} → {translator(english)} Attention weights of {layer}, head {head}."
    return attention_animation(translator.maps(english)[layer], head, title)


#: File name in `img/` → function that draws it.
PICTURES: dict[str, Callable[[], bytes]] = {
    "attention_animation.svg": _animation,
    "kernel_regression_explorer.svg": _explorer(
        lambda: kernel_regression_explorer(nile_series(), bandwidth=5.0, query=1899.0)
    ),
    "score_explorer.svg": _explorer(lambda: score_explorer(d=64)),
    "translation_explorer.svg": _explorer(
        lambda: translation_explorer(phrase_translator(), ENGLISH, word=2)
    ),
    "attention.svg": _diagram(attention_diagram),
    "self_and_cross.svg": _diagram(self_and_cross_diagram),
    "heads.svg": _diagram(heads_diagram),
    "kv_heads.svg": _diagram(kv_heads_diagram),
    "residual.svg": _diagram(residual_diagram),
    "blocks.svg": _diagram(blocks_diagram),
    "transformer.svg": _diagram(full_transformer_diagram),
    "cache.svg": _diagram(cache_diagram),
}


def main() -> None:
    """Draw all pictures."""
    IMAGES.mkdir(exist_ok=True)
    for name, draw in PICTURES.items():
        (IMAGES / name).write_bytes(draw())
        print(f"img/{name}")


if __name__ == "__main__":
    main()
