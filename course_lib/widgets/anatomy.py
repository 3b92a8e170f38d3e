"""The anatomy explorer: the layers of a model, and what a context costs it."""

from collections.abc import Mapping
from functools import cache
from itertools import groupby

import numpy as np

from course_lib.plots import LayersPanel, LinesPanel, figure
from course_lib.topics.anatomy import Anatomy, anatomy, model_names
from course_lib.topics.anatomy.models import CATALOGUE
from course_lib.widgets.controls import Powers
from course_lib.widgets.explorer import View, explorer, short

#: The kinds of mixers and their colours.
KINDS = {
    "global": "main",
    "window": "second",
    "linear": "third",
    "sparse": "fourth",
    "compressed": "data",
}
_LENGTHS = np.unique(np.geomspace(100, 1_000_000, 41).round().astype(int))
_UNITS = ("B", "kB", "MB", "GB", "TB")


def amount(number: float, units: tuple[str, ...] = _UNITS) -> str:
    """Write a number of bytes, or of what the units name, with three digits: 4.83 GB."""
    power = min(int(np.log10(max(number, 1)) // 3), len(units) - 1)
    return f"{short(number / 1000**power)} {units[power]}"


@explorer
def anatomy_explorer(
    models: Mapping[str, Anatomy] | None = None,
    *,
    model: str = "Qwen3-Next-80B-A3B",
    context: float = 100_000.0,
) -> View:
    """Choose a model and the length of the context; see its layers, what it keeps and what a token costs.

    Bytes are those of numbers in bfloat16, but for the states of delta layers, which are in float32.

    Args:
        models: name → `anatomy(…)` of your own models; the stored ones where left out.
        model: its name.
        context: how many tokens, from 100 to a million.
    """
    made = models or {name: anatomy(name) for name in model_names()}
    everything = [one.cache_bytes(int(n)) for one in made.values() for n in _LENGTHS[[0, -1]]]
    work = [one.flops_per_token(int(n)) for one in made.values() for n in _LENGTHS[[0, -1]]]
    fig, (left, middle, right) = figure(10.4, 4.1, columns=3, width_ratios=(1.15, 1, 1))
    left.set(title="layers, the first at the top left")
    middle.set(title="memory of one text", xlabel="tokens", ylabel="GB")
    right.set(title="compute of the next token", xlabel="tokens", ylabel="GFLOPs")
    columns = 10 if max(len(one.layers) for one in made.values()) > 48 else 8
    rows = -(-max(len(one.layers) for one in made.values()) // columns)
    strip = LayersPanel(left, KINDS, "experts", columns=columns, rows=max(rows, 4))
    style = {"log_x": True, "log_y": True, "legend": "upper left"}
    nothing = {"kept": 1.0 + 0 * _LENGTHS}
    limits = (min(everything) / 2e9 + 1e-6, 2 * max(everything) / 1e9)
    memory = LinesPanel(middle, _LENGTHS, nothing, y_limits=limits, **style)
    limits = (min(work) / 2e9, 2 * max(work) / 1e9)
    compute = LinesPanel(right, _LENGTHS, {"FLOPs": nothing["kept"]}, y_limits=limits, **style)

    for axes in (middle, right):
        axes.set_xticks(10.0 ** np.arange(2, 7), ["100", "1k", "10k", "100k", "1M"])

    @cache
    def curves(model: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the memory and the compute of a model at all lengths, in billions."""
        one = made[model]
        points = [(one.cache_bytes(int(n)), one.flops_per_token(int(n))) for n in _LENGTHS]
        return tuple(np.array(points).T / 1e9)

    def update(model: str, context: float) -> dict[str, str]:
        one, length = made[model], round(context)
        mixers = [layer.mixer for layer in one.layers]
        networks = [layer.network.kind == "experts" for layer in one.layers]
        strip.update([mixer.kind for mixer in mixers], networks)
        kept, flops = one.cache_bytes(length), one.flops_per_token(length)
        bytes_kept, work_done = curves(model)
        memory.update(marker=(length, kept / 1e9), kept=bytes_kept)
        compute.update(marker=(length, flops / 1e9), FLOPs=work_done)
        runs = [(kind, len(list(group))) for kind, group in groupby(mixer.kind for mixer in mixers)]
        shown = " ".join(f"{count} {kind}" for kind, count in runs[:6]) + " …" * (len(runs) > 6)
        facts = {"model": f"{model}, {CATALOGUE[model].year}" if model in CATALOGUE else model}
        if model in CATALOGUE:
            facts |= {"new": CATALOGUE[model].new, "configuration": CATALOGUE[model].source}
        share = one.active / one.parameters
        return facts | {
            "layers": f"{len(mixers)}: {shown}",
            "parameters": f"{one.parameters / 1e9:,.2f} billion, {one.active / 1e9:,.2f} active ({share:.0%})",
            "context": f"{length:,} tokens",
            "kept": f"{amount(kept)}, {amount(kept / length)} per token",
            "per layer and token": _per_token(one, length),
            "next token": amount(flops, ("FLOPs", "kFLOPs", "MFLOPs", "GFLOPs", "TFLOPs")),
        }

    controls = {"model": list(made), "context": Powers(100, 1_000_000, 0.05, ",.0f")}
    start = {"model": model if model in made else next(iter(made)), "context": context}
    return View("Anatomy", [strip, memory, compute], update, controls, "anatomy", start=start)


def _per_token(one: Anatomy, length: int) -> str:
    """Bytes per token in a layer of each kind, on average, at this length."""
    kept = {kind: 0 for kind in one.kinds}
    for layer in one.layers:
        kept[layer.mixer.kind] += layer.mixer.cache_bytes(length)
    return ", ".join(
        f"{kind} {amount(total / one.kinds[kind] / length)}" for kind, total in kept.items()
    )
