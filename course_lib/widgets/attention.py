"""The attention explorer: any layer, any head, any query, of any model or any tensor of weights."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from torch import Tensor

from course_lib import messages
from course_lib.plots import HeadlinePanel, HeadsPanel, LinksPanel, figure
from course_lib.plots.map import attention_map
from course_lib.plots.panel import Panel
from course_lib.plots.style import figure_of_three
from course_lib.plots.tokens import numbered
from course_lib.topics.attention_maps import AttentionMap, entropy, mean_distance
from course_lib.validation import require_finite, require_one_of
from course_lib.widgets.controls import Text
from course_lib.widgets.explorer import View, explorer, largest_weights

_MOST_TOKENS, _MOST_HEADS = 1024, 64
VIEWS = ("map", "lines")


#: What can be explored: one tensor, one per layer, or what `record_attention` recorded.
Weights = Tensor | Sequence[Tensor] | Mapping[str, Tensor | Sequence[Tensor] | AttentionMap]


@explorer
def attention_explorer(
    weights: Weights | Callable[[str], Mapping[str, AttentionMap]],
    queries: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    *,
    text: str | None = None,
    layer: str | None = None,
    head: int = 0,
    query: int = 0,
    view: str = "map",
    example: int = 0,
    title: str = "Attention",
    answer: Callable[[str], str] | None = None,
    rows: str = "query",
    approximate: bool = False,
) -> View:
    """Step through layers, heads and queries; see the weights as a map or as lines, and all heads as thumbnails.

    A click on a row of the map or its name, or on a token on the left of the lines, chooses the query; a click on a
    thumbnail chooses the head.

    Below each head is its entropy in nats, averaged over the queries. The brightest colour is the largest weight of the layer; colours have a
    square-root scale. With a single head, map and lines are side by side.

    Args:
        weights: of one layer, (query, key), (heads, query, key) or (batch, heads, query, key); or one such
            tensor per layer; or layer name → tensor, list of tensors (the last counts) or `AttentionMap`;
            or a function from a text to layer name → `AttentionMap`, and then there is a box to type in. If it is
            a method, the `rule` of its object says what can be typed, and `known` which words.
        queries, keys: the tokens; their positions where left out. The keys are the queries where left out.
        text: initial content of the text box.
        layer, head, query, view: initial values of the controls; view is "map" or "lines".
        example: which sequence of a batch.
        title: the first words of the summary.
        answer: from the typed text to an answer above the map, such as a translation.
        rows: what a row of the map is called, for example "head" where each head has a single query.
        approximate: as for `Explorer`; true for weights that were trained in the notebook.

    Raises:
        ValueError: for weights that are not floating-point, finite, 0 or more, and of two to four axes; for
            tokens that are not as many as the weights say; for more than 1,024 tokens or 64 heads.
    """
    if answer is not None and text is None:
        raise ValueError("answer needs a text to answer; give a text to start with")
    typed = callable(weights) and not isinstance(weights, Tensor)
    if typed and text is None:
        raise ValueError("weights is a function from a text; give a text to start with")
    if not typed and text is not None:
        raise ValueError("text needs weights to be a function from a text to attention maps")

    @lru_cache(maxsize=1)  # moving a slider does not recompute
    def read(text: str | None) -> dict[str, AttentionMap]:
        return _layers(weights(text) if typed else weights, queries, keys, example)

    measured = lru_cache(maxsize=1)(lambda text, layer: _measures(read(text)[layer]))
    answered = answer and lru_cache(maxsize=1)(answer)
    layers = read(text)
    most = max(len(one.weights) for one in layers.values())
    longest = max(len(one.queries) for one in layers.values())
    if answer is None:
        _, (left, right) = figure(10.4, 4.3, columns=2, width_ratios=(1.05, 1))
    else:
        size = {"width_ratios": (1.05, 1), "height_ratios": (1, 7)}
        above, left, right = figure_of_three(10.4, 5.0, **size)
        above.set_title("answer")
    beside = right if most == 1 else left.figure.add_subplot(left.get_subplotspec())
    left.set_title("rows attend to columns")
    beside.set_title("the same as lines" if most == 1 else "rows attend to columns")
    map_ = attention_map(left, "query", row_name=rows)
    lines = LinksPanel(beside, "query", row_name=rows)
    panels: list[Panel] = [map_, lines]
    if most > 1:
        right.set_title("all heads of the layer, each with its mean entropy")
        thumbnails = HeadsPanel(right, most, chooses="head")
        panels.append(thumbnails)
    if answer is not None:
        headline = HeadlinePanel(above)
        panels.append(headline)

    def update(query: int, view: str, layer: str, head: int, text: str | None) -> dict[str, str]:
        shown = read(text)[layer]
        head, row = min(head, len(shown.weights) - 1), min(query, len(shown.queries) - 1)
        brightest = max(shown.weights.max().item(), 1e-6)
        measures = measured(text, layer)
        map_.axes.set_visible(most == 1 or view == "map")
        lines.axes.set_visible(most == 1 or view == "lines")
        sides = shown.weights[head], shown.queries, shown.keys
        if map_.axes.get_visible():
            map_.update(*sides, cell=(row, None), largest=brightest)
        if lines.axes.get_visible():
            lines.update(*sides, row=row, brightest=brightest)
        if most > 1:
            notes = [f"{n}:  {one['entropy']}" for n, one in enumerate(measures)]
            thumbnails.update(shown.weights, notes, head=head, brightest=brightest)
        facts = {"text": repr(text)} if text is not None else {}
        if answered:
            headline.update(answered(text))
            facts["answer"] = repr(answered(text))
        facts["layer"] = layer
        if rows != "head":  # otherwise the map has one row for each
            facts["head"] = f"{head} of {len(shown.weights)}"
        largest = largest_weights(shown.weights[head, row], numbered(shown.keys))
        facts |= measures[head] | {rows: numbered(shown.queries, rows)[row]}
        return facts | {"attends to": largest, "brightest colour": f"{brightest:.2f}"}

    def limits(text: str | None, layer: str, **_) -> dict[str, int]:
        layers = read(text)
        require_one_of(layers, layer=layer)  # another text may have others
        heads, queries, _ = layers[layer].weights.shape
        return {"head": heads - 1, "query": queries - 1}

    owner = getattr(weights, "__self__", None)  # of a method
    known = tuple(getattr(owner, "known", ()))
    controls = {
        "text": Text(getattr(owner, "rule", messages.RULE_OF_ANYTHING), known),
        "layer": [*layers],
        "head": range(most),
        "query": range(longest if text is None else _MOST_TOKENS),
        "view": VIEWS if most > 1 else [view],
    }
    start = {"layer": next(iter(layers)) if layer is None else layer}
    return View(
        title, panels, update, controls, "attention", {"query": rows}, start, approximate, limits
    )


def _measures(shown: AttentionMap) -> list[dict[str, str]]:
    """Per head: its entropy and, for self-attention, its mean distance."""
    measures = [
        {"entropy": f"{nats:.2f} nats"} for nats in entropy(shown.weights).mean(-1).tolist()
    ]
    if list(shown.queries) == list(shown.keys):
        for measure, far in zip(measures, mean_distance(shown.weights).tolist(), strict=True):
            measure["distance"] = f"{far:.1f} positions"
    return measures


def _layers(weights, queries, keys, example) -> dict[str, AttentionMap]:
    if isinstance(weights, Tensor | AttentionMap):
        weights = [weights]
    if isinstance(weights, Sequence) and not isinstance(weights, str):
        weights = {str(number): layer for number, layer in enumerate(weights)}
    if not isinstance(weights, Mapping):
        raise ValueError(
            f"weights is a {type(weights).__name__}; it must be a tensor of attention weights, one per "
            f"layer, or what record_attention recorded"
        )
    if not weights:
        raise ValueError(
            "weights is empty; was the model called inside `with record_attention(model) as maps:`?"
        )
    named = {str(name) or "model": layer for name, layer in weights.items()}
    return {name: _layer(name, one, queries, keys, example) for name, one in named.items()}


def _layer(name: str, layer: object, queries, keys, example: int) -> AttentionMap:
    """Return the map of one layer, with a head axis, without a batch axis, and with tokens."""
    if isinstance(layer, AttentionMap):
        layer, queries, keys = layer
    if isinstance(layer, list | tuple):
        if not layer:
            raise ValueError(f"layer {name!r} has no weights; was it called while recording?")
        layer = layer[-1]
    require_finite(**{f"weights of layer {name!r}": layer})
    if not 2 <= layer.dim() <= 4:
        raise ValueError(
            f"weights of layer {name!r} has shape {tuple(layer.shape)}; it must be (query, key), "
            f"(heads, query, key) or (batch, heads, query, key)"
        )
    if layer.dim() == 4:
        if example not in range(len(layer)):
            raise ValueError(f"example={example!r} must be from 0 to {len(layer) - 1}")
        layer = layer[example]
    layer = layer.detach().float().cpu()
    layer = layer[None] if layer.dim() == 2 else layer  # (heads, query, key)
    if (layer < 0).any():
        raise ValueError(f"weights of layer {name!r} holds negative numbers; are these scores?")
    heads, rows, columns = layer.shape
    if (longest := max(rows, columns)) > _MOST_TOKENS:
        words = {"layer": name, "length": longest, "most": _MOST_TOKENS}
        raise ValueError(messages.TOO_MANY_TOKENS.format(**words))
    if heads > _MOST_HEADS:
        raise ValueError(f"layer {name!r} has {heads} heads; at most {_MOST_HEADS} can be shown")
    keys = queries if keys is None and rows == columns else keys
    named = []
    for side, tokens, length in (("queries", queries, rows), ("keys", keys, columns)):
        named.append([""] * length if tokens is None else list(map(str, tokens)))
        if (count := len(named[-1])) != length:
            raise ValueError(
                f"{side} holds {count} tokens, but the weights of layer {name!r} have {length}"
            )
    return AttentionMap(layer, *named)
