"""The next-token explorer: the effect of temperature, top-k and top-p on one distribution."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import torch
from matplotlib.axes import Axes
from torch import Tensor

from course_lib import decoding
from course_lib.decoding.logits_processors import require_distribution
from course_lib.inspection import entropy, weights_version
from course_lib.plots import BarsPanel, figure
from course_lib.translator import PhraseTranslator
from course_lib.widgets.controls import Numbers
from course_lib.widgets.explorer import View, explorer, probability

_BARS = 12
_MOST_KEPT, _LONGEST = 20, 64

#: What the arguments of the logits processors can be, and the labels of their sliders.
PROCESSORS = {
    "temperature": Numbers(0.05, 3.0, 0.05),
    "top_k": range(_MOST_KEPT + 1),
    "top_p": Numbers(0.01, 1.0, 0.01),
}
PROCESSOR_LABELS = {"top_k": "top-k, 0: all", "top_p": "top-p"}


class NextTokens(NamedTuple):
    """Distributions of the next token.

    `tokens` is the vocabulary; `logits` (steps, vocabulary) are those after 0, 1, … tokens of `generated`,
    which has at least steps - 1.
    """

    tokens: Sequence[str]
    logits: Tensor
    generated: Sequence[str] = ()


@torch.no_grad()
def next_tokens(translator: PhraseTranslator, text: str) -> NextTokens:
    """Translate greedily; return the logits at each step, including the end token.

    Raises:
        ValueError: as a call of the translator.
    """
    words = translator.words(text)
    (french,) = translator.all([words])
    start = torch.tensor([translator.target.bos_id])
    target = translator.target.encode(french, bos=True) if french else start
    logits = translator.model(translator.source.encode(words)[None], target[None])[0]
    return NextTokens(translator.target.tokens, logits, french)


@explorer
def next_token_explorer(
    source: PhraseTranslator | NextTokens | Callable[[str], NextTokens],
    text: str | None = None,
    *,
    position: int = 0,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    title: str = "The next token",
    approximate: bool = False,
) -> View:
    """See the probabilities of the next token before and after temperature, top-k and top-p, in this order.

    The 12 most probable tokens are shown: a pale bar for the probability of the model, in it a filled bar for
    the probability with which it is sampled. The pale bar of a token that is filtered out is hatched.

    Args:
        source: a translator, or a function from a text to `NextTokens`, and then there is a box to type in;
            or `NextTokens` themselves.
        text: initial content of the text box.
        position: of the next token, after a greedy prefix of as many tokens; at most the last position.
        temperature: 0.05 to 3.
        top_k: at most 20; 0 for all.
        top_p: 0.01 to 1.
        title: the first words of the summary.
        approximate: as for `Explorer`; true for a model that was trained in the notebook.

    Raises:
        ValueError: for a source of another kind, a missing or needless text, logits that are not one row
            per position and one column per token, or exclude every token.
    """
    read = _reader(source, text)
    last = len(read(text).logits) - 1

    fig, axes = figure(10.4, 4.5)
    bars = distribution_panel(axes, _BARS)

    def update(
        temperature: float, top_k: int, top_p: float, position: int, text: str | None
    ) -> dict[str, str]:
        tokens, logits, generated = read(text)
        position = min(position, len(logits) - 1)
        prefix = " ".join(generated[:position])
        facts = {"text": repr(text)} if text is not None else {}
        facts["generated"] = f"{position} token{'s' * (position > 1)}, {prefix!r}"
        if not position:
            facts["generated"] = "nothing yet"
        return facts | show_distribution(
            bars,
            lambda ids: [tokens[n] for n in ids],
            logits[position],
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            heading=" ".join(["generated:", *generated[:position], "…"]),
            count=_BARS,
        )

    def limits(text: str | None, **_) -> dict[str, int]:
        tokens, logits, _ = read(text)
        return {"position": len(logits) - 1, "top_k": min(_MOST_KEPT, len(tokens))}

    positions = last + 1 if text is None else max(last + 1, position + 1, _LONGEST)
    controls = {"text": str, "position": range(positions), **PROCESSORS}
    return View(
        title, [bars], update, controls, "next_token", PROCESSOR_LABELS,
        approximate=approximate, limits=limits,
    )  # fmt: skip


def distribution_panel(axes: Axes, count: int) -> BarsPanel:
    """Return bars for the most probable tokens, before and after logits processors."""
    return BarsPanel(
        axes,
        count,
        root=True,
        headed=True,
        x_label="probability (square-root scale)",
        title="pale: model, filled: after filtering, hatched: filtered out",
        names=("token", "probability after filtering", "before"),
    )


def filtered(logits: Tensor, *, temperature: float, top_k: int, top_p: float) -> Tensor:
    """Apply temperature, top-k and top-p in this order; a top-k of 0 keeps all."""
    z = decoding.temperature(logits, temperature)
    z = decoding.top_k(z, top_k) if top_k else z
    return decoding.top_p(z, top_p) if top_p < 1 else z


def show_distribution(
    bars: BarsPanel,
    names: Callable[[list[int]], list[str]],
    logits: Tensor,
    *,
    temperature: float,
    top_k: int,
    top_p: float,
    heading: str,
    count: int,
) -> dict[str, str]:
    """Draw the most probable tokens before and after the logits processors; return the facts.

    Args:
        bars: where.
        names: from ids of tokens to their names.
        logits: (vocabulary,).
        temperature, top_k, top_p: as for `filtered`.
        heading: above the bars.
        count: how many tokens.
    """
    before = logits.softmax(dim=-1)
    z = filtered(logits, temperature=temperature, top_k=top_k, top_p=top_p)
    after = z.softmax(dim=-1)
    most = before.argsort(descending=True, stable=True)[:count]
    called, removed = names(most.tolist()), z[most].isneginf()
    bars.update(
        called,
        after[most].numpy(),
        before=before[most].numpy(),
        removed=removed.numpy(),
        heading=heading,
        notes=[
            f"{probability(b)} → {'removed' if gone else probability(a)}"
            for b, a, gone in zip(
                *(x.tolist() for x in (before[most], after[most], removed)), strict=True
            )
        ],
    )
    was, now = before[most[0]].item(), after[most[0]].item()
    return {
        "logits processors": f"temperature {temperature:g}, top-k {top_k or 'off'}, "
        f"top-p {'off' if top_p == 1 else format(top_p, 'g')}",
        "most probable": f"{called[0]!r}, {probability(was)} before, {probability(now)} after",
        "entropy": f"{entropy(before):.3f} nats before, {entropy(after):.3f} after",
        "left": f"{int((~z.isneginf()).sum()):,} of {len(logits):,} tokens",
    }


def _reader(source: object, text: str | None) -> Callable[[str | None], NextTokens]:
    """Return a function from the text, or None, to the next tokens."""
    if isinstance(source, NextTokens):
        if text is not None:
            raise ValueError("text needs source to be a translator or a function of a text")
        checked = _checked(source)
        return lambda _: checked
    if not callable(source):
        raise ValueError(
            f"source is a {type(source).__name__}; it must be a PhraseTranslator, NextTokens, or a function "
            f"from a text to NextTokens"
        )
    if text is None:
        raise ValueError("source reads a text; give a text to start with")
    if not isinstance(source, PhraseTranslator):
        return lru_cache(maxsize=1)(lambda text: _checked(source(text)))

    @lru_cache(maxsize=1)  # moving a slider does not translate again; training does
    def translated(text: str, version: int) -> NextTokens:
        return next_tokens(source, text)

    return lambda text: translated(text, weights_version(source.model))


def _checked(given: NextTokens) -> NextTokens:
    """Return the same with detached logits; raise if its parts do not fit together."""
    if not isinstance(given, NextTokens):
        raise ValueError(f"source returned a {type(given).__name__}; it must return NextTokens")
    tokens, logits, generated = list(given.tokens), given.logits, list(given.generated)
    if logits.dim() != 2 or len(logits) == 0 or logits.shape[1] != len(tokens) or not tokens:
        raise ValueError(
            f"logits has shape {tuple(logits.shape)} for {len(tokens)} tokens; it must be (steps, vocabulary)"
        )
    if len(generated) < len(logits) - 1:
        raise ValueError(
            f"generated holds {len(generated)} tokens, but logits has {len(logits)} steps; every step but the "
            f"first follows a generated token"
        )
    logits = logits.detach().float().cpu()
    require_distribution(logits)
    return NextTokens(tokens, logits, generated)
