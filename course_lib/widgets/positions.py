"""The explorers of notebook 06: the sinusoidal table, rotary position embeddings, biases of the scores."""

from collections.abc import Mapping

import numpy as np
import torch
from matplotlib.patches import Circle
from torch import Tensor

from course_lib.plots import HeadsPanel, LinesPanel, MapPanel, VectorsPanel, figure
from course_lib.plots.map import SIGNED
from course_lib.plots.style import COLOURS, blank
from course_lib.transformer.positions import rotary, sinusoidal_table
from course_lib.validation import require_finite
from course_lib.widgets.explorer import View, explorer, short

_LENGTHS, _DIMENSIONS = (16, 32, 64, 128, 256, 512), (4, 8, 16, 32, 64, 128, 256)
BASES = (10, 100, 1000, 10_000, 100_000)
_POINTS = 256  # positions on the curves
_SINES = ("component 0", "component d/8", "component d/4")
_PAIRS = 4
_FARTHEST = 64
_SPACE = (0.14, 0.05, 0.24)  # around a map


@explorer
def sinusoid_explorer(
    *, length: int = 64, d_model: int = 64, base: int = 10_000, position: int | None = None
) -> View:
    """Change the sinusoidal table; see its waves, and the similarity of positions.

    Args:
        length: rows of the table: 16, 32, 64, 128, 256 or 512.
        d_model: columns: 4, 8, 16, 32, 64, 128 or 256.
        base: of the wavelengths: 10, 100, 1,000, 10,000 or 100,000.
        position: the marked row, which is compared with every other; 20, or the last one of a shorter table,
            where left out.
    """
    fig, (left, middle, right) = figure(10.4, 3.4, columns=3)
    left.set(title="the table", xlabel="component", ylabel="position")
    middle.set(title="three columns", xlabel="position")
    right.set(title="dot product with the marked row", xlabel="position")
    table_map = MapPanel(left, scale="signed", space=_SPACE, chooses=("position", None))
    at = np.linspace(0, length - 1, _POINTS)
    sines = {name: 0 * at for name in _SINES}
    waves = LinesPanel(middle, at, sines, y_limits=(-1.1, 1.75), whole=True)
    products = {"dot product": 0 * at}
    similarity = LinesPanel(right, at, products, y_limits=(-1.1, 1.1), whole=True)

    def update(length: int, d_model: int, base: int, position: int) -> dict[str, str]:
        row = min(position, length - 1)
        table = sinusoidal_table(length, d_model, base)  # (length, d_model)
        table_map.update(table, cell=(row, None))
        at, pairs = np.linspace(0, length - 1, _POINTS), d_model // 2
        sines = zip(_SINES, (0, max(1, pairs // 8), max(1, pairs // 4)), strict=True)
        waves.update(x=at, **{n: np.sin(at * base ** (-2 * i / d_model)) for n, i in sines})
        products = table @ table[row] / pairs  # (length,)
        between = np.interp(at, np.arange(length), products)
        similarity.update(x=at, marker=(row, 1.0), **{"dot product": between})
        longest = 2 * np.pi * base ** (1 - 2 / d_model)
        return {
            "table": f"{length} × {d_model}",
            "base": f"{base:,}",
            "wavelengths": f"{2 * np.pi:.2f} to {short(longest)} positions",
            "position": str(row),
            "dot product with its neighbour": f"{products[row - 1 if row else 1]:.3f}",
            "dot product with the farthest row": f"{products[0 if row >= length / 2 else -1]:.3f}",
            "smallest dot product": f"{products.min():.3f}",
        }

    def limits(length: int, **_) -> dict[str, int]:
        return {"position": length - 1}

    controls = {
        "length": _LENGTHS,
        "d_model": _DIMENSIONS,
        "base": BASES,
        "position": range(_LENGTHS[-1]),
    }
    title, panels = "The sinusoidal table", [table_map, waves, similarity]
    start = {"position": 20 if position is None else position}
    return View(
        title, panels, update, controls, "sinusoids", {"d_model": "d"}, start, limits=limits
    )


@explorer
def rotary_explorer(
    *, query_position: int = 3, key_position: int = 9, base: int = 100, seed: int = 0
) -> View:
    """Rotary position embedding (RoPE): move a query and a key along a sequence and see their pairs rotate.

    Both vectors have eight components, in four pairs of norm 1. The query is blue, the key orange. Their dot
    product is the sum of the cosines of the angles between them, so it depends only on the offset.

    Args:
        query_position, key_position: 0 to 64.
        base: of the wavelengths: 10, 100, 1,000, 10,000 or 100,000.
        seed: of the two vectors.
    """
    angles = 2 * torch.pi * torch.rand(2, _PAIRS, generator=torch.Generator().manual_seed(seed))
    pairs = torch.stack([angles.cos(), angles.sin()], dim=-1)  # (2, pair, 2)
    query, key = pairs.flatten(1)[:, None]  # (1, d_head) each
    offsets = np.arange(-_FARTHEST, _FARTHEST + 1)

    def at(x: Tensor, positions: Tensor | list, base: float) -> Tensor:
        positions = torch.as_tensor(positions)
        return rotary(x.expand(len(positions), -1), positions, base)  # (position, d_head)

    fig, (left, right) = figure(10.4, 2.9, columns=2, width_ratios=(1.6, 1))
    left.set_title("query (blue) and key (orange)")
    right.set(title="dot product q·k", xlabel="key position − query position")
    blank(left, (-1.2, 2.4 * _PAIRS - 1.2), (-1.75, 1.25))
    centres = [(2.4 * n, 0) for n in range(_PAIRS)]
    for centre in centres:
        left.add_patch(Circle(centre, 1, fill=False, edgecolor=COLOURS["data"]))
    for vectors, colour in zip(pairs.tolist(), ("main", "second"), strict=True):
        for (x, y), (u, v) in zip(centres, vectors, strict=True):
            left.plot([x, x + u], [y, y + v], color=COLOURS[colour], lw=1, alpha=0.4)
    pairs_panel = VectorsPanel(left, centres, ("blue", "orange"), widths=(4.5, 2.5))
    curve = LinesPanel(right, offsets, {"dot product": 0.0 * offsets}, y_limits=(-4.3, 4.3))

    def update(query_position: int, key_position: int, base: int) -> dict[str, str]:
        rotated = at(query, [query_position], base), at(key, [key_position], base)
        vectors = [x[0].view(_PAIRS, 2).numpy() for x in rotated]
        phases = [np.arctan2(pair[:, 1], pair[:, 0]) for pair in vectors]
        degrees = np.degrees(phases[1] - phases[0]) % 360
        degrees = np.minimum(degrees, 360 - degrees)
        pairs_panel.update(*vectors, notes=[f"angle {angle:.0f}°" for angle in degrees])
        # With the query at position 64, the offsets from -64 to 64 are key positions from 0 on.
        keys = at(key, torch.as_tensor(offsets + _FARTHEST), base)
        dot_products = keys @ at(query, [_FARTHEST], base)[0]
        offset, product = key_position - query_position, (rotated[0] @ rotated[1].T).item()
        curve.update(marker=(offset, product), **{"dot product": dot_products})
        return {
            "query at": str(query_position),
            "key at": str(key_position),
            "relative position": str(offset),
            "angles": ", ".join(f"{angle:.0f}°" for angle in degrees),
            "dot product": f"{product:.2f}",
        }

    position = range(_FARTHEST + 1)
    controls = {"query_position": position, "key_position": position, "base": BASES}
    labels = {"query_position": "query at", "key_position": "key at"}
    panels = [pairs_panel, curve]
    return View("Rotary position embedding", panels, update, controls, "rotary", labels)


@explorer
def bias_explorer(
    biases: Mapping[str, Tensor],
    *,
    encoding: str | None = None,
    head: int = 0,
    query: int | None = None,
    menu: str = "encoding",
    title: str = "Bias of the scores",
    approximate: bool = False,
) -> View:
    """See the biases that encodings add to the scores: a map per head, and one of its rows as a curve.

    Args:
        biases: name → bias, shape (heads, query, key); all with the same numbers of queries and keys.
        encoding: which of the biases to show; the first where left out.
        head: initial value of its slider.
        query: whose row is shown; the middle one where left out.
        menu: what the biases are, for example "layer".
        title: the first words of the summary.
        approximate: as for `Explorer`; true for biases that were trained in the notebook.

    Raises:
        ValueError: for biases of another shape.
    """
    biases = {name: bias.detach().float() for name, bias in biases.items()}
    require_finite(**biases)
    most = max(map(len, biases.values()))
    (queries, keys), *others = {bias.shape[-2:] for bias in biases.values()}
    if others or queries > keys:
        raise ValueError(
            "biases must have equally many keys, and queries that are the last of them"
        )
    fig, (left, middle, right) = figure(10.4, 3.6, columns=3, width_ratios=(1, 1.1, 1))
    left.set(title="bias", xlabel="key", ylabel="query")
    middle.set_title("each head")
    right.set(title="marked row / largest |bias|", xlabel="key")
    bias_map = MapPanel(left, scale="signed", space=_SPACE, chooses=("query", None))
    heads = HeadsPanel(middle, most, colours=SIGNED, chooses="head")
    row = LinesPanel(right, np.arange(keys), {"added": np.zeros(keys)}, y_limits=(-1.1, 1.1))

    def update(encoding: str, head: int, query: int) -> dict[str, str]:
        bias = biases[encoding]
        head = min(head, len(bias) - 1)
        largest = max(bias.abs().max().item(), 1e-9)
        bias_map.update(bias[head], largest=largest, cell=(query, None))
        shares = (bias / largest + 1) / 2  # from 0 to 1; the panel takes the square root
        heads.update(shares.square(), list(map(str, range(len(bias)))), head=head, brightest=1.0)
        itself = query + keys - queries  # the queries are the last of the keys
        row.update(
            marker=(itself, bias[head, query, itself] / largest), added=bias[head, query] / largest
        )
        return {
            menu: encoding,
            "head": f"{head} of {len(bias)}",
            "query": str(query),
            "largest": short(largest),
            "bias at offset 0": f"{bias[head, query, itself]:.3f}",
            "bias of the first key": f"{bias[head, query, 0]:.3f}",
            "bias of the last key": f"{bias[head, query, -1]:.3f}",
        }

    def limits(encoding: str, **_) -> dict[str, int]:
        return {"head": len(biases[encoding]) - 1}

    panels = [bias_map, heads, row]
    controls = {"encoding": list(biases), "head": range(most), "query": range(queries)}
    start = {
        "encoding": next(iter(biases)) if encoding is None else encoding,
        "query": queries // 2 if query is None else query,
    }
    return View(
        title, panels, update, controls, "biases", {"encoding": menu}, start, approximate, limits
    )
