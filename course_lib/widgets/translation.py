"""The translation explorer: type a sentence, change the temperature, see the translation and its attention."""

from collections.abc import Sequence
from functools import partial

import torch

from course_lib.plots import HeadsPanel, SentencePairPanel, figure
from course_lib.plots.map import attention_map
from course_lib.plots.tokens import numbered
from course_lib.topics.attention_maps import AttentionMap
from course_lib.train.translator import PhraseTranslator
from course_lib.widgets.explorer import View, explorer, largest_weights, probability, remembered

# 0 is greedy decoding. The phrasebook's model is so sure that 0.5 would hardly ever sample another word.
_TEMPERATURES = (0.0, 1.0, 1.5, 2.0, 2.5, 3.0)
_SAMPLES = 20


@explorer
def translation_explorer(
    translator: PhraseTranslator,
    text: str,
    *,
    layer: str = "decoder 1: cross",
    head: int = 1,
    word: int = 0,
    temperature: float = 0.0,
    sample: int = 8,
) -> View:
    """Translate a typed sentence; click a French word or its row to see what it attends to; click a head.

    At temperature 0 each word is the most probable one (greedy decoding). Above 0, words are sampled, and a
    higher temperature samples improbable words more often; another `sample` uses another seed.

    Args:
        translator: of the phrasebook.
        text: initial content of the text box.
        layer, head: which cross-attention is shown.
        word: position of the framed French token; at most the last one is framed.
        temperature: 0, 1, 1.5, 2, 2.5 or 3.
        sample: number of the sample, which is its seed; 0 to 20.

    Raises:
        ValueError: for a text that the translator refuses.
    """

    @remembered(translator.model, 64)
    def maps(text: str, temperature: float, sample: int) -> dict[str, AttentionMap]:
        french = translator.sample(text, temperature, seed=sample) if temperature > 0 else None
        every = translator.maps(text, french)
        return {name: one for name, one in every.items() if name.endswith("cross")}

    def translated(text: str, temperature: float, sample: int) -> dict[str, AttentionMap]:
        return maps(text, temperature, sample if temperature > 0 else 0)  # greedy has no seed

    greedy_share = remembered(translator.model, 64)(partial(_probability_of_greedy, translator))
    shown = translated(text, temperature, sample)
    heads = len(next(iter(shown.values())).weights)
    fig, grid = figure(10.4, 5.2, 2, 2, height_ratios=(1.15, 3.6))
    (above, right), (below, unused) = grid
    unused.remove()
    right.set_subplotspec(right.get_gridspec()[:, 1])
    above.set_title("one French word, and the English words that it attends to")
    below.set_title("attention map: French (rows) attends to English (columns)")
    right.set_title("all heads of the layer")
    pair, map_ = SentencePairPanel(above, "word"), attention_map(below, "word")
    heads_ = HeadsPanel(right, heads, chooses="head")

    def update(
        text: str, layer: str, head: int, word: int, temperature: float, sample: int
    ) -> dict[str, str]:
        weights, queries, keys = translated(text, temperature, sample)[layer]
        word = min(word, len(queries) - 1)
        map_.update(weights[head], queries, keys, cell=(word, None))
        written = _written(translator, queries)
        special = [not one for one in written]
        written = [one or f" {token}" for one, token in zip(written, queries, strict=True)]
        pair.update(weights[head], queries, keys, row=word, written=written, faint=special)
        notes = [f"head {number}" for number in range(heads)]
        heads_.update(weights, notes, head=head, brightest=1.0)
        mine = weights[head, word]
        facts = {
            "English": repr(text),
            "French": repr(translator.detokenize(queries)),
            "layer": f"{layer}, head {head} of {heads}",
            "word": f"{word} {queries[word]}",
            "attends to": largest_weights(mine, numbered(keys)),
            "temperature": f"{temperature:g}",
        }
        if temperature > 0:
            share = greedy_share(text, temperature)
            facts["sample"] = str(sample)
            facts["probability of the greedy translation"] = probability(share)
        return facts

    def limits(text: str, layer: str, temperature: float, sample: int, **_) -> dict:
        words = len(translated(text, temperature, sample)[layer].queries)
        # greedy decoding has no seed
        return {"word": words - 1, "sample": _SAMPLES if temperature > 0 else None}

    controls = {
        "text": str,
        "layer": [*shown],
        "head": range(heads),
        "word": range(translator.max_length + 2),
        "temperature": _TEMPERATURES,
        "sample": range(_SAMPLES + 1),
    }
    panels, labels = [map_, pair, heads_], {"text": "English"}
    return View("Translation", panels, update, controls, "translation", labels, limits=limits)


def _written(translator: PhraseTranslator, tokens: Sequence[str]) -> list[str]:
    """Return what each token adds to the text; nothing for a special one."""
    texts = [translator.detokenize(tokens[:count]) for count in range(len(tokens) + 1)]
    return [long[len(short) :] for short, long in zip(texts, texts[1:], strict=False)]


@torch.no_grad()
def _probability_of_greedy(translator: PhraseTranslator, text: str, t: float) -> float:
    """Return the probability that sampling at temperature `t` gives the greedy translation."""
    words, target = translator.words(text), translator.target
    (french,) = translator.all([words])
    ids = torch.tensor([target.tokens.index(token) for token in [target.bos, *french, target.eos]])
    ids = ids[: translator.max_length + 1]  # there may be no room for the end token
    source = translator.source.encode(words)[None]
    log_p = (translator.model(source, ids[None, :-1])[0] / t).log_softmax(dim=-1)  # (step, token)
    return log_p.gather(-1, ids[1:, None]).sum().exp().item()
