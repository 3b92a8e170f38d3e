"""What the README and the notebooks claim about speed, measured: ``make bench``."""

import io
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from statistics import median

import numpy as np
import torch

from course_lib import widgets
from course_lib.checkpoints import date_translator, phrase_translator
from course_lib.data import nile_series, phrases, written_dates
from course_lib.plots import figure
from course_lib.topics.efficient import PATTERNS
from course_lib.topics.pretrained import load_smollm2
from course_lib.topics.pretrained.weights_file import INSTALL, is_installed
from course_lib.transformer.positions import T5RelativeBias, alibi_bias
from course_lib.widgets.heads import SCORES
from course_lib.widgets.masks import KINDS
from course_lib.widgets.positions import BASES
from tests.helpers.lab import CHROMIUM, Explorer, running_lab, window
from tests.helpers.opening import open_and_move

STEPS = 200
LAYERS, HEADS, WORDS = 2, 8, "the horse did not cross the river because it was too tired".split()
#: Name, explorer, control → the values that it takes in turn; each control starts from a reset explorer.
Measured = tuple[str, object, dict[str, list]]


def turns(values: Iterable, count: int = STEPS) -> list:
    """The values one after the other, over and over; the first one, which is shown, comes last."""
    values = list(values)
    return [values[(1 + n) % len(values)] for n in range(count)]


def seconds_of(step: Callable, positions: Iterable) -> list[float]:
    seconds = []
    for position in positions:
        started = time.perf_counter()
        step(position)
        seconds.append(time.perf_counter() - started)
    return seconds


def say(name: str, seconds: list[float]) -> None:
    """Print the median and the 95th percentile."""
    middle, high = 1000 * np.quantile(seconds, [0.5, 0.95])
    print(f"{name + ':':42} median {middle:7.1f} ms, 95th percentile {high:7.1f} ms", flush=True)


def moved(explorer, control: str, positions: Iterable) -> list[float]:
    return seconds_of(lambda at: setattr(explorer.controls[control], "value", at), positions)


def options(menu) -> list:
    """The values of a menu; a slider of a few values has pairs of name and value."""
    return [one[1] if isinstance(one, tuple) else one for one in menu.options]


def random_maps(words: list[str]) -> dict[str, widgets.AttentionMap]:
    draw = torch.Generator().manual_seed(len(words))
    weights = torch.randn(LAYERS, HEADS, len(words), len(words), generator=draw)
    weights = torch.softmax(2 * weights, dim=-1)
    return {f"layers.{n}": widgets.AttentionMap(layer, words) for n, layer in enumerate(weights)}


def attention(name: str, words: list[str], count: int = STEPS, view: str = "map") -> Measured:
    explorer = widgets.attention_explorer(random_maps(words))
    explorer.controls["view"].value = view
    layers = [f"layers.{n}" for n in range(LAYERS)]
    steps = {"head": range(HEADS), "query": range(0, 7 * len(words), 7), "layer": layers}
    steps["query"] = [n % len(words) for n in steps["query"]]
    return name, explorer, {control: turns(each, count) for control, each in steps.items()}


def explorers() -> Iterator[Measured]:
    """Every explorer, with the controls that redraw it."""
    nile = widgets.kernel_regression_explorer(nile_series())
    yield "kernel regression", nile, {"query": np.linspace(1872, 1969, STEPS).tolist(),
                                      "bandwidth": np.geomspace(0.6, 90, STEPS).tolist()}  # fmt: skip
    scores = widgets.score_explorer()
    sizes = np.random.default_rng(0).choice(options(scores.controls["d"]), STEPS).tolist()
    yield "scores", scores, {"d": sizes}
    yield "plane", widgets.similarity_explorer(), {"direction": turns(range(0, 360, 5))}
    yield (
        "anatomy",
        widgets.anatomy_explorer(),
        {"context": turns(10 ** (2 + 0.05 * n) for n in range(80))},
    )
    yield (
        "scaling",
        widgets.scaling_explorer(),
        {"flops": turns(10 ** (9 + 0.25 * n) for n in range(25))},
    )
    texts = [one.text for one in written_dates(STEPS, split="held-out days")]
    yield (
        "dates",
        widgets.date_explorer(date_translator()),
        {"step": turns(range(1, 12)), "text": texts},
    )
    for view in ("map", "lines"):
        yield attention(f"attention, {view}", WORDS, view=view)
    typed = widgets.attention_explorer(lambda text: random_maps(text.split()), text=" ".join(WORDS))
    sentences = [" ".join([*WORDS[: 4 + n % 9], f"word{n}"]) for n in range(STEPS // 2)]
    yield "attention", typed, {"text": sentences}
    yield attention("attention, 256 tokens", [f"word{n}" for n in range(256)], 40)
    yield "masks", widgets.mask_explorer(), {"kind": turns(KINDS), "length": turns(range(6)),
                                     "queries": turns(range(1, 6))}  # fmt: skip
    patterns = widgets.pattern_explorer(torch.randn(64, 64).softmax(-1), kind="longformer")
    yield "patterns", patterns, {"kind": turns(PATTERNS), "global_tokens": turns(range(9)),
                                 "window": [1 + 7 * n % 64 for n in range(STEPS)]}  # fmt: skip
    yield (
        "reshape",
        widgets.reshape_explorer(),
        {"step": turns(round(n / 10, 1) for n in range(41))},
    )
    places = [(7 * n + 1) % 64 for n in range(STEPS)]
    yield "sinusoids", widgets.sinusoid_explorer(), {"position": places, "base": turns(BASES),
        "d_model": turns((4, 16, 64, 256)), "length": turns((16, 64, 256, 512))}  # fmt: skip
    yield "rotary", widgets.rotary_explorer(), {"key_position": places, "base": turns(BASES)}
    with torch.no_grad():
        added = {"ALiBi": alibi_bias(8, 24), "T5": T5RelativeBias(8)(24, 24)}
    yield "biases", widgets.bias_explorer(added), {"head": turns(range(8)), "encoding": turns(added),
                                           "query": [n % 24 for n in places]}  # fmt: skip
    depth = widgets.depth_explorer(depth=2, norm="pre")
    yield "depth", depth, {name: turns(options(one)) for name, one in depth.controls.items()}
    yield from translator_explorers()
    if is_installed():
        yield from language_model_explorers()
    else:
        print(f"the language model is not installed: {INSTALL}")


def translator_explorers() -> Iterator[Measured]:
    translator, text = phrase_translator(), "the black cats do not see him ."
    shown = {"text": text, "layer": "decoder 1: cross", "answer": translator}
    held_out = [" ".join(one.english) for one in phrases(40, split="held out")]
    for view in ("map", "lines"):
        explorer = widgets.attention_explorer(translator.maps, **shown)
        explorer.controls["view"].value = view
        yield f"translator, {view}", explorer, {"layer": turns(translator.maps(text)),
            "head": turns(range(4)), "query": turns(range(8)), "text": held_out}  # fmt: skip
    text = "does the small dog see the red house?"
    yield "next token", widgets.next_token_explorer(translator, text), {
        "position": turns(range(9)), "temperature": turns(round(0.1 + n / 10, 1) for n in range(29)),
        "top_k": turns(range(21)), "top_p": turns(round(0.99 - n / 100, 2) for n in range(90))}  # fmt: skip
    yield "beams", widgets.beam_explorer(translator, text), {"step": turns(range(1, 13)),
        "beam_size": turns(range(1, 6)), "length_penalty": turns(n / 10 for n in range(21))}  # fmt: skip
    yield "translation", widgets.translation_explorer(translator, text), {
        "word": turns(range(8)), "side": turns(("French", "English")), "text": held_out}  # fmt: skip
    yield "BLEU", widgets.bleu_explorer(), {"n": turns(range(1, 5)),
        "candidate": turns(" ".join(["the cat"] * n) for n in range(1, 13))}  # fmt: skip


def language_model_explorers() -> Iterator[Measured]:
    """Steps after the forward pass, on texts as long as the explorers take them."""
    model, tokenizer = load_smollm2()
    yield "heads", widgets.heads_explorer(model, tokenizer, "word " * 255), {
        "layer": turns(range(30)), "query": turns(range(256)), "score": turns(SCORES)}  # fmt: skip
    lens = widgets.logit_lens_explorer(model, tokenizer, "word " * 63)
    yield "lens", lens, {"position": [7 * n % 64 for n in range(STEPS)]}


def in_the_kernel() -> None:
    """One step of every control of every explorer; beside one, what others draw in its place."""
    others = {
        ("attention, map", "head"): {
            "matplotlib, the same picture, only its data changed": (kept_figure(), 50),
            "seaborn, 8 maps drawn anew": (lambda _: redraw_heads(), 5),
        },
    }
    for name, explorer, steps in explorers():
        view = explorer.controls["view"].value if "view" in explorer.controls else None
        for control, positions in steps.items():
            explorer.reset()
            if view:
                explorer.controls["view"].value = view
            ours = moved(explorer, control, positions)
            say(f"kernel, {name}, {control}", ours)
            for what, (redraw, count) in others.get((name, control), {}).items():
                theirs = seconds_of(redraw, positions[:count])
                say(what, theirs)
                print(f"ratio of medians: {median(theirs) / median(ours):.1f}")


def kept_figure() -> Callable[[int], None]:
    """The picture of the attention explorer in plain matplotlib: one figure, whose data change, saved at every step."""
    maps = random_maps(WORDS)["layers.0"].weights.numpy()
    drawn, (left, right) = figure(10.4, 4.3, columns=2, width_ratios=(1.05, 1))
    large = left.imshow(maps[0], vmin=0, vmax=1, aspect="auto")
    left.set_xticks(range(len(WORDS)), WORDS, rotation=90)
    left.set_yticks(range(len(WORDS)), WORDS)
    drawn.colorbar(large, ax=left)
    tiles = right.get_subplotspec().subgridspec(2, 4).subplots()
    right.remove()
    for number, (tile, weights) in enumerate(zip(tiles.flat, maps, strict=True)):
        tile.imshow(weights, vmin=0, vmax=1, aspect="auto")
        tile.set(xticks=[], yticks=[], xlabel=f"{number}: 1.2, 3.4")

    def step(head: int) -> None:
        large.set_data(maps[head])
        drawn.savefig(io.BytesIO(), format="png", dpi=130)

    return step


def redraw_heads() -> None:
    """Eight heat maps with the number in each cell, as `interact` users draw them: a new figure at every step."""
    import matplotlib.pyplot as plt
    import seaborn

    _, axes = plt.subplots(2, 4, figsize=(20, 10))  # smaller, the numbers cannot be read
    names = {"xticklabels": WORDS, "yticklabels": WORDS}
    for number, weights in enumerate(random_maps(WORDS)["layers.0"].weights.numpy()):
        seaborn.heatmap(weights, annot=True, fmt=".2f", ax=axes.flat[number], **names)
        axes.flat[number].set_title(f"head {number}")
    plt.savefig(io.BytesIO(), format="png")
    plt.close()


#: Notebook, the cell that shows an explorer, its title, the slider to move, its steps if there are fewer than seven.
BROWSER = (
    ("00_start_here", "explorer = translation_explorer(", "Translation", "word"),
    ("01_kernel_regression", "explorer = ", "Kernel regression", "query"),
    ("02_scoring_functions", "explorer = ", "One query", "direction"),
    ("03_seq2seq_with_attention", "date_explorer(date_translator()", "From a written", "step"),
    ("04_self_and_cross_attention", "reader = pronoun_reader()", "One layer of self-attention", "query"),
    ("05_multi_head_attention", "look_up = letter_lookup()", "4 heads look up 4 letters", "head", 3),
    ("06_positional_encodings", "explorer = ", "The sinusoidal", "position"),
    ("07_transformer_blocks", "depth_explorer()", "Depth", "depth", 5),
    ("08_transformer", "translator = phrase_translator()", "Translator", "query"),
    ("09_decoding_and_bleu", "explorer = ", "The next token", "position"),
    ("11_scaling_laws", "explorer = ", "Scaling", "size"),
    ("13_language_model", "explorer = ", "The 10 most probable", "top-k, 0: all", 1),
)  # fmt: skip
# From the key event to the first animation frame with another picture loaded.
WATCH = """(image) => {
    window.delays = [];
    document.addEventListener('keydown', () => {
        const [started, before] = [performance.now(), image.src];
        window.arrived = false;
        const look = () => {
            if (image.src === before || !image.complete) return requestAnimationFrame(look);
            window.delays.push(performance.now() - started);
            window.arrived = true;
        };
        requestAnimationFrame(look);
    }, true);
}"""


def in_the_browser(address: str) -> None:
    with window() as screen:
        for stem, cell, title, slider, *steps in BROWSER:
            screen.open(address, f"{stem}.ipynb")
            for each in (f"start(seed={int(stem[:2])})", cell):
                screen.run(each)
            explorer = Explorer(screen.page, title)
            say(f"browser, {stem[:2]}, {slider}", pressed(explorer, slider, *steps))
            print(f"    dragged: {while_dragged(explorer, slider):.0f} pictures/s")


def pressed(explorer: Explorer, slider: str, steps: int = 7) -> list[float]:
    page = explorer.page
    explorer.reset()
    explorer._handle(slider).focus()
    page.keyboard.press("Home")  # from there so many steps to the right are other pictures
    page.wait_for_timeout(500)
    page.evaluate(WATCH, explorer.image.element_handle())
    for press in range(60):
        page.keyboard.press("ArrowRight" if press // steps % 2 == 0 else "ArrowLeft")
        page.wait_for_function("() => window.arrived")
        page.wait_for_timeout(60)
    return [milliseconds / 1000 for milliseconds in page.evaluate("() => window.delays")]


COUNT = """(image) => {
    window.pictures = 0;
    new MutationObserver(() => window.pictures++).observe(image, { attributeFilter: ['src'] });
}"""


def while_dragged(explorer: Explorer, slider: str, seconds: float = 4.0) -> float:
    """Pictures a second, while a hand drags a slider from end to end and back, twice a second."""
    handle, page = explorer._handle(slider), explorer.page
    track = handle.locator("xpath=ancestor::*[contains(@class, 'noUi-base')]").bounding_box()
    x, y = track["x"] + track["width"] / 2, track["y"] + track["height"] / 2
    page.evaluate(COUNT, explorer.image.element_handle())
    handle.hover()
    page.mouse.down()
    started = time.perf_counter()
    while (past := time.perf_counter() - started) < seconds:
        page.mouse.move(x - 0.48 * track["width"] * np.cos(4 * np.pi * past), y)
        page.wait_for_timeout(10)
    page.mouse.up()
    return page.evaluate("() => window.pictures") / seconds


def openings(address: str) -> None:
    """From opening a notebook to the first picture that has moved, reading left out; a fresh browser each time."""
    for stem, *_ in BROWSER:
        with window() as screen:
            cells, opened, shown, changed = open_and_move(screen, address, f"{stem}.ipynb")
        print(f"opening, {stem[:2]}, {cells} cells: kernel ready after {opened:4.1f} s, "
              f"picture after {shown:4.1f} s, moved after {changed:4.1f} s")  # fmt: skip


def importing(module: str) -> None:
    timed = f"t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
    command = [sys.executable, "-c", f"import torch, time; {timed}"]
    runs = [float(subprocess.check_output(command, text=True)) for _ in range(5)]
    print(f"import {module}: {1000 * median(runs):.1f} ms beyond import torch")


if __name__ == "__main__":
    torch.set_num_threads(1)  # as in a notebook
    in_the_kernel()
    if CHROMIUM is None:
        print("browser: not measured, chromium is not installed")
    else:
        started = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder, running_lab(Path(folder)) as address:
            print(f"served after {time.perf_counter() - started:.1f} s")
            in_the_browser(address)
            openings(address)
    for module in ("course_lib", "course_lib.topics.pooling"):
        importing(module)
    for other in ("layers", "decoding") if is_installed() else ("layers",):
        subprocess.run([sys.executable, "-m", f"tests.benchmarks.{other}", "--threads", "1"], check=True)  # fmt: skip
