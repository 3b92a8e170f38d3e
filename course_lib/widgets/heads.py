"""The heads explorer: every head of a language model with a score, and the attention of the one chosen."""

import torch
from torch import Tensor

from course_lib import messages
from course_lib.plots import MapPanel, figure
from course_lib.plots.map import attention_map
from course_lib.plots.tokens import numbered
from course_lib.topics.attention_maps import entropy, mean_distance
from course_lib.topics.interpretability import (
    attention_weights,
    first_token_score,
    previous_token_score,
)
from course_lib.topics.pretrained import Tokenizer
from course_lib.transformer import DecoderOnly
from course_lib.widgets.controls import Text
from course_lib.widgets.explorer import View, explorer, largest_weights, remembered
from course_lib.widgets.token_names import quoted, read_tokens, token_names

_MOST_TOKENS = 256
_FROM = 10  # position from which attention to the first token counts, in a text that is long enough


def induction(weights: Tensor, tokens: Tensor) -> Tensor:
    """Return the mean weight on tokens that followed an earlier occurrence of the query's token.

    `weights` (…, query, key), `tokens` (query,); the mean is over the queries whose token occurred before, and
    NaN where there is none. For tokens that repeat once it is `course_lib.topics.interpretability.induction_score`.
    """
    followed = torch.zeros(len(tokens), len(tokens), dtype=torch.bool)  # (query, key)
    # key j for the token at j − 1 < i − 1
    followed[:, 1:] = (tokens[:, None] == tokens[:-1]).tril(-2)
    again = followed.any(dim=-1)  # (query,)
    return (weights * followed).sum(dim=-1)[..., again].mean(dim=-1)


SCORES = {
    "previous token": lambda weights, _: previous_token_score(weights),
    "first token": lambda weights, tokens: first_token_score(
        weights, start=min(_FROM, len(tokens) - 1)
    ),
    "induction": induction,
    "entropy": lambda weights, _: entropy(weights).mean(-1),
    "distance": lambda weights, _: mean_distance(weights),
}
_UNITS = {"entropy": " nats", "distance": " positions"}


@explorer
def heads_explorer(
    model: DecoderOnly,
    tokenizer: Tokenizer,
    text: str = "Zora Quill plays the cello. Her brother sings. Zora Quill plays the",
    *,
    score: str = "previous token",
    layer: int = 0,
    head: int = 0,
    query: int = 17,
    title: str = "Heads of a language model",
    approximate: bool = False,
) -> View:
    """Score every head of a model on a text; click a cell, or move to it, to see what that head attends to.

    The scores, each a mean over the queries of the text: the weight on the token before; on the first token, from
    position 10 on; on the token that followed the previous occurrence of the query's token (induction); the
    entropy in nats; the distance in positions. The text is read again only when it changes.

    Args:
        model, tokenizer: from `load_smollm2`.
        text: initial content of the text box, of 2 to 256 tokens.
        score: "previous token", "first token", "induction", "entropy" or "distance".
        layer, head, query: initial values of the controls; at most the last token is shown.
        title: the first words of the summary.
        approximate: as for `Explorer`.

    Raises:
        ValueError: for another kind of model, and a text of too few or too many tokens.
    """

    @remembered(model)  # moving to another head does not read the text again
    def read(text: str) -> tuple[list[str], Tensor, dict[str, Tensor]]:
        """Return the tokens, the weights (layer, head, query, key), and score → (layer, head)."""
        tokens = read_tokens(model, tokenizer, text, most=_MOST_TOKENS)
        weights = attention_weights(model, tokens).float().cpu()
        scores = {name: measure(weights, tokens[0].cpu()) for name, measure in SCORES.items()}
        return token_names(tokenizer, tokens[0].tolist()), weights, scores

    layers, heads, *_ = read(text)[1].shape

    fig, (left, right) = figure(10.4, 5.6, columns=2, width_ratios=(1, 1.7))
    left.set(title="score of each head", xlabel="head", ylabel="layer")
    right.set_title("the head's weights: rows attend to columns")
    cells = MapPanel(left, name="score", chooses=("layer", "head"))
    map_ = attention_map(right, "query")

    def update(text: str, score: str, layer: int, head: int, query: int) -> dict[str, str]:
        names, weights, scores = read(text)
        mine, row, values = weights[layer, head], min(query, len(names) - 1), scores[score]
        none = values.isnan().any().item()
        best = divmod(values.argmax().item(), heads)
        cells.update(
            values,
            [str(n) for n in range(layers)],
            [str(n) for n in range(heads)],
            cell=(layer, head),
            largest=1.0 if none else max(values.max().item(), 1e-6),
            texts=[["–"] * heads] * layers if none else None,
        )
        brightest, called = max(weights[layer].max().item(), 1e-6), numbered(names)
        map_.update(mine, names, names, cell=(row, None), largest=brightest)
        of_all = (
            f"{score}, mean {values.mean():.2f}, largest {values[best]:.2f} "
            f"(layer {best[0]}, head {best[1]})"
        )
        if none:
            of_all = messages.NOTHING_OCCURS_TWICE
        own = ", ".join(
            f"{name} {scores[name][layer, head]:.2f}{_UNITS.get(name, '')}"
            for name in SCORES
            if not scores[name].isnan().any()
        )
        return {
            "text": f"{quoted(text)}, {len(names)} tokens",
            "score": of_all,
            "layer": f"{layer}, head {head}: {own}",
            "query": called[row],
            "attends to": largest_weights(mine[row], called),
        }

    def limits(text: str, **_) -> dict[str, int]:
        return {"query": len(read(text)[0]) - 1}

    controls = {
        "text": Text(messages.RULE_OF_TEXTS.format(most=_MOST_TOKENS)),
        "score": [*SCORES],
        "layer": range(layers),
        "head": range(heads),
        "query": range(_MOST_TOKENS),
    }
    panels = [cells, map_]
    return View(title, panels, update, controls, "heads", approximate=approximate, limits=limits)
