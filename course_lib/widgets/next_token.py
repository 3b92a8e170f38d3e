"""The next-token explorer: the effect of temperature, top-k and top-p on one distribution."""

from collections.abc import Callable, Mapping

import torch
from matplotlib.axes import Axes
from torch import Tensor

from course_lib.plots import BarsPanel, figure
from course_lib.topics.attention_maps import entropy
from course_lib.train.translator import PhraseTranslator
from course_lib.transformer import decoding
from course_lib.widgets.controls import Numbers, Text
from course_lib.widgets.explorer import View, explorer, probability, remembered

_BARS = 12
_LONGEST = 64

#: What the arguments of the logits processors can be, and the labels of their sliders.
PROCESSORS = {
    "temperature": Numbers(0.05, 3.0, 0.05),
    "top_k": range(21),
    "top_p": Numbers(0.01, 1.0, 0.01),
}
PROCESSOR_LABELS = {"top_k": "top-k, 0: all", "top_p": "top-p"}


@explorer
def next_token_explorer(
    translator: PhraseTranslator,
    text: str,
    *,
    position: int = 0,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
) -> View:
    """See the probabilities of the next token before and after temperature, top-k and top-p, in this order.

    The 12 most probable tokens are shown: a pale bar for the probability of the model, in it a filled bar for
    the probability with which it is sampled. The pale bar of a token that is filtered out is hatched.

    Args:
        translator: whose model predicts the tokens.
        text: initial content of the text box.
        position: of the next token, after a greedy prefix of as many tokens; at most the last position.
        temperature: 0.05 to 3.
        top_k: at most 20; 0 for all.
        top_p: 0.01 to 1.

    Raises:
        ValueError: for a text that the translator refuses.
    """
    tokens = translator.target.tokens

    @remembered(translator.model)  # moving a slider does not translate again
    @torch.no_grad()
    def read(text: str) -> tuple[list[str], Tensor]:
        """Translate greedily; return the tokens before the end, and the logits of each step and of the end."""
        words = translator.words(text)
        (french,) = translator.all([words])
        start = torch.tensor([translator.target.bos_id])
        target = translator.target.encode(french, bos=True) if french else start
        source = translator.source.encode(words)
        return french, translator.model(source[None], target[None])[0]  # (step, token)

    fig, axes = figure(10.4, 4.5)
    bars = distribution_panel(axes, _BARS)

    def update(text: str, position: int, **processors: float) -> dict[str, str]:
        generated, logits = read(text)
        position = min(position, len(logits) - 1)
        prefix = generated[:position]
        so_far = f"{position} token{'s' * (position > 1)}, {' '.join(prefix)!r}"
        facts = {"text": repr(text), "generated": so_far if position else "nothing yet"}
        return facts | show_distribution(
            bars,
            lambda ids: [tokens[n] for n in ids],
            logits[position],
            processors,
            " ".join(["generated:", *prefix, "…"]),
        )

    def limits(text: str, **_) -> dict[str, int]:
        return {"position": len(read(text)[1]) - 1}

    rule = Text(translator.rule, tuple(translator.known))
    controls = {"text": rule, "position": range(_LONGEST), **PROCESSORS}
    title = "The next token"
    return View(title, [bars], update, controls, "next_token", PROCESSOR_LABELS, limits=limits)


def distribution_panel(axes: Axes, count: int, chooses: str | None = None) -> BarsPanel:
    """Return bars for the most probable tokens, before and after logits processors; see `BarsPanel.chooses`."""
    axes.set_title("pale: model, filled: after filtering, hatched: filtered out")
    axes.set_xlabel("probability (square-root scale)")
    names = "token", "probability after filtering", "before"
    return BarsPanel(axes, count, root=True, headed=True, names=names, chooses=chooses)


def filtered(logits: Tensor, *, temperature: float, top_k: int, top_p: float) -> Tensor:
    """Apply temperature, top-k and top-p in this order; a top-k of 0 keeps all."""
    z = decoding.temperature(logits, temperature)
    z = decoding.top_k(z, top_k) if top_k else z
    return decoding.top_p(z, top_p) if top_p < 1 else z


def show_distribution(
    bars: BarsPanel,
    names: Callable[[list[int]], list[str]],
    logits: Tensor,
    processors: Mapping[str, float],
    heading: str,
) -> dict[str, str]:
    """Draw the most probable tokens before and after the logits processors; return the facts.

    Args:
        bars: where.
        names: from ids of tokens to their names.
        logits: (vocabulary,).
        processors: arguments of `filtered`.
        heading: above the bars.
    """
    before = logits.softmax(dim=-1)
    z = filtered(logits, **processors)
    most = before.argsort(descending=True, stable=True)[: bars.most]
    called, removed = names(most.tolist()), z[most].isneginf().tolist()
    after = z.softmax(dim=-1)
    was, now = before[most].tolist(), after[most].tolist()
    notes = [
        probability(p)
        if not gone and probability(p) == probability(q)
        else f"{probability(p)} → {'removed' if gone else probability(q)}"
        for p, q, gone in zip(was, now, removed, strict=True)
    ]
    bars.update(called, now, before=was, removed=removed, heading=heading, notes=notes)
    temperature, top_k, top_p = (processors[name] for name in PROCESSORS)
    return {
        "logits processors": f"temperature {temperature:g}, top-k {top_k or 'off'}, "
        f"top-p {'off' if top_p == 1 else format(top_p, 'g')}",
        "most probable": f"{called[0]!r}, {probability(was[0])} before, {probability(now[0])} after",
        "entropy": f"{entropy(before):.3f} nats before, {entropy(after):.3f} after",
        "left": f"{int((~z.isneginf()).sum()):,} of {len(logits):,} tokens",
    }
