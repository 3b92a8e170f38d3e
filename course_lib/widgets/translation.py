"""The translation explorer: type a sentence, see its translation, and which word attends to which."""

from collections.abc import Sequence

from course_lib import messages
from course_lib.plots import HeadsPanel, SentencePairPanel
from course_lib.plots.map import attention_map
from course_lib.plots.style import figure_of_three
from course_lib.plots.tokens import numbered
from course_lib.topics.attention_maps import AttentionMap
from course_lib.train.translator import PhraseTranslator
from course_lib.widgets.controls import Text
from course_lib.widgets.explorer import View, explorer, largest_weights, remembered

_MOST_TOKENS = 24
SIDES = ("French", "English")


@explorer
def translation_explorer(
    translator: PhraseTranslator,
    text: str,
    *,
    layer: str = "decoder 1: cross",
    head: int = 1,
    word: int = 0,
    side: str = "French",
) -> View:
    """Translate a typed sentence; click a French word to see what it attends to, or an English one to see what attends to it.

    The names of the rows and the columns of the map are words, too. A click on a small map chooses its head.

    Args:
        translator: of the phrasebook.
        text: initial content of the text box, at most 24 tokens.
        layer, head: which cross-attention is shown.
        word: position of the framed token; at most the last one is framed.
        side: whether it is a word of the "French" or of the "English" sentence.

    Raises:
        ValueError: for a text that the translator refuses, and one of more than 24 tokens.
    """

    @remembered(translator.model)
    def maps(text: str) -> dict[str, AttentionMap]:
        if (length := len(translator.words(text))) > _MOST_TOKENS:
            raise ValueError(
                messages.TEXT_OF_TOO_MANY_TOKENS.format(length=length, most=_MOST_TOKENS)
            )
        every = translator.maps(text)
        return {name: one for name, one in every.items() if name.endswith("cross")}

    shown = maps(text)
    heads = len(next(iter(shown.values())).weights)
    above, below, right = figure_of_three(10.4, 5.2, height_ratios=(1.3, 3.6))
    above.set_title("click a word: what it attends to, or what attends to it")
    below.set_title("attention map: French (rows) attends to English (columns)")
    right.set_title("all heads of the layer")
    french, english = ({"side": one} for one in SIDES)
    pair = SentencePairPanel(above, ("word", french), ("word", english))
    map_ = attention_map(below, "word", sets=french, column_sets=("word", english))
    heads_ = HeadsPanel(right, heads, chooses="head")

    def update(text: str, layer: str, head: int, word: int, side: str) -> dict[str, str]:
        weights, queries, keys = maps(text)[layer]
        is_query = side == "French"
        tokens, others = (queries, keys) if is_query else (keys, queries)
        word = min(word, len(tokens) - 1)
        row, column = (word, None) if is_query else (None, word)
        map_.update(weights[head], queries, keys, cell=(row, column))
        written = _written(translator, queries)
        special = [not one for one in written]
        written = [one or f" {token}" for one, token in zip(written, queries, strict=True)]
        pair.update(
            weights[head], queries, keys, row=row, column=column, written=written, faint=special
        )
        notes = [f"head {number}" for number in range(heads)]
        heads_.update(weights, notes, head=head, brightest=1.0)
        mine = weights[head, word] if is_query else weights[head, :, word]
        return {
            "English": repr(text),
            "French": repr(translator.detokenize(queries)),
            "layer": f"{layer}, head {head} of {heads}",
            "word": f"{word} {tokens[word]}",
            "attends to" if is_query else "attended to by": largest_weights(mine, numbered(others)),
        }

    def limits(text: str, layer: str, side: str, **_) -> dict[str, int]:
        _, queries, keys = maps(text)[layer]
        return {"word": len(queries if side == "French" else keys) - 1}

    controls = {
        "text": Text(translator.rule, tuple(translator.known)),
        "layer": [*shown],
        "head": range(heads),
        "word": range(_MOST_TOKENS + 2),
        "side": SIDES,
    }
    panels, labels = [map_, pair, heads_], {"text": "English", "side": "word of"}
    return View("Translation", panels, update, controls, "translation", labels, limits=limits)


def _written(translator: PhraseTranslator, tokens: Sequence[str]) -> list[str]:
    """Return what each token adds to the text; nothing for a special one."""
    texts = [translator.detokenize(tokens[:count]) for count in range(len(tokens) + 1)]
    return [long[len(short) :] for short, long in zip(texts, texts[1:], strict=False)]
