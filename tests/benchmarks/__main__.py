"""What the README and the notebooks claim about speed, measured: ``make bench``."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
import torch

from course_lib.checkpoints import date_translator, phrase_translator
from course_lib.data import nile_series, phrases, written_dates
from course_lib.efficient import PATTERNS
from course_lib.pooling import KERNELS, attention_pooling, leave_one_out_error
from course_lib.positions import T5RelativeBias, alibi_bias
from course_lib.pretrained import load_smollm2
from course_lib.pretrained.weights_file import INSTALL, is_installed
from course_lib.tools import normal_form
from course_lib.widgets import (
    AttentionMap,
    attention_explorer,
    beam_explorer,
    bias_explorer,
    bleu_explorer,
    date_explorer,
    depth_explorer,
    heads_explorer,
    kernel_regression_explorer,
    logit_lens_explorer,
    mask_explorer,
    next_token_explorer,
    pattern_explorer,
    reshape_explorer,
    rotary_explorer,
    scaling_explorer,
    score_explorer,
    similarity_explorer,
    sinusoid_explorer,
    translation_explorer,
)
from course_lib.widgets.heads import SCORES
from course_lib.widgets.masks import KINDS
from course_lib.widgets.positions import BASES
from tests.helpers.lab import CHROMIUM, Explorer, running_lab, window
from tests.helpers.opening import open_and_move

STEPS = 200


def percentiles(seconds: list[float]) -> str:
    milliseconds = 1000 * np.asarray(seconds)
    return f"median {np.median(milliseconds):6.1f} ms, 95th percentile {np.quantile(milliseconds, 0.95):6.1f} ms"


def timed(step, positions) -> list[float]:
    seconds = []
    for position in positions:
        started = time.perf_counter()
        step(float(position))
        seconds.append(time.perf_counter() - started)
    return seconds


def explorer_in_the_kernel() -> None:
    explorer = kernel_regression_explorer(nile_series())

    def move(control):
        return lambda position: setattr(explorer.controls[control], "value", position)

    ours = timed(move("query"), np.linspace(1872, 1969, STEPS))
    print(f"kernel, query slider:      {percentiles(ours)}")
    widths = timed(move("bandwidth"), np.geomspace(0.6, 90, STEPS))
    print(f"kernel, bandwidth slider:  {percentiles(widths)}")
    naive = timed(redraw_with_seaborn(), np.linspace(1872, 1969, 20))
    print(f"seaborn, drawn anew:       {percentiles(naive)}")
    print(
        f"ratio of medians:          {median(naive) / median(ours):.1f} × faster than drawing anew"
    )


def later_explorers_in_the_kernel() -> None:
    scores = score_explorer()
    sizes = np.random.default_rng(0).choice(scores.controls["d"].options, STEPS).tolist()
    print(f"kernel, scores, d slider:  {percentiles(moved(scores, 'd', sizes))}")
    directions = [5 * (n % 72) for n in range(STEPS)]
    plane = moved(similarity_explorer(), "direction", directions)
    print(f"kernel, plane, direction:  {percentiles(plane)}")
    budgets = [10 ** (9 + 0.25 * (n % 25)) for n in range(STEPS)]
    print(f"kernel, scaling, budget:   {percentiles(moved(scaling_explorer(), 'flops', budgets))}")
    dates = date_explorer(date_translator())
    steps = [1 + n % 11 for n in range(STEPS)]
    print(f"kernel, dates, step:       {percentiles(moved(dates, 'step', steps))}")
    texts = [one.text for one in written_dates(STEPS, split="held-out days")]
    print(f"kernel, dates, text:       {percentiles(moved(dates, 'text', texts))}")


LAYERS, HEADS, WORDS = 2, 8, "the horse did not cross the river because it was too tired".split()


def attention_in_the_kernel() -> None:
    maps = random_maps(WORDS)
    explorer = attention_explorer(maps)
    for view in ("map", "lines"):
        explorer.controls["view"].value = view
        steps = {
            "head": [(1 + n) % HEADS for n in range(STEPS)],
            "query": [(1 + n) % len(WORDS) for n in range(STEPS)],
            "layer": [[*maps][(1 + n) % LAYERS] for n in range(STEPS)],
        }
        for control, positions in steps.items():
            ours = moved(explorer, control, positions)
            print(f"kernel, {view + ', ' + control + ':':18} {percentiles(ours)}")
            if (view, control) == ("map", "head"):
                for numbers in (True, False):
                    naive = timed(redraw_all_heads_with_seaborn(maps, numbers), range(5))
                    words = "with" if numbers else "without"
                    print(f"seaborn, 8 maps anew, {words} numbers: {percentiles(naive)}")
                    ratio = median(naive) / median(ours)
                    print(f"ratio of medians:          {ratio:.1f} × faster than drawing anew")
    explorer.controls["view"].value = "map"
    typed = attention_explorer(lambda text: random_maps(text.split()), text=" ".join(WORDS))
    sentences = [" ".join([*WORDS[: 4 + n % 9], f"word{n}"]) for n in range(STEPS // 2)]
    print(f"kernel, attention, text:   {percentiles(moved(typed, 'text', sentences))}")
    long = attention_explorer(random_maps([f"word{n}" for n in range(256)]))
    for control, positions in {
        "head": [(1 + n) % HEADS for n in range(40)],
        "query": [(7 * n + 1) % 256 for n in range(40)],
        "layer": [[*maps][(1 + n) % LAYERS] for n in range(40)],
    }.items():
        print(
            f"kernel, 256 tokens, {control + ':':6} {percentiles(moved(long, control, positions))}"
        )


def random_maps(words: list[str]) -> dict[str, AttentionMap]:
    draw = torch.Generator().manual_seed(len(words))
    weights = torch.randn(LAYERS, HEADS, len(words), len(words), generator=draw)
    return {
        f"layers.{n}": AttentionMap(layer, words)
        for n, layer in enumerate(torch.softmax(2 * weights, dim=-1))
    }


def redraw_all_heads_with_seaborn(maps, numbers: bool):
    """Eight heat maps, with or without the number in each cell, as `interact` users draw them: a new figure at every step."""
    import io

    import matplotlib.pyplot as plt
    import seaborn

    def step(_: float) -> None:
        _, axes = plt.subplots(2, 4, figsize=(20, 10))  # smaller, the numbers cannot be read
        for number, (one, weights) in enumerate(
            zip(axes.flat, maps["layers.0"].weights, strict=True)
        ):
            seaborn.heatmap(
                weights.numpy(),
                annot=numbers,
                fmt=".2f",
                xticklabels=WORDS,
                yticklabels=WORDS,
                ax=one,
            )
            one.set_title(f"head {number}")
        plt.savefig(io.BytesIO(), format="png")
        plt.close()

    return step


def small_explorers_in_the_kernel() -> None:
    masks = mask_explorer()
    for control, positions in {
        "kind": [KINDS[n % len(KINDS)] for n in range(STEPS)],
        "length": [n % 6 for n in range(STEPS)],
        "queries": [1 + n % 5 for n in range(STEPS)],
    }.items():
        print(f"kernel, masks, {control + ':':11} {percentiles(moved(masks, control, positions))}")
    patterns = pattern_explorer(torch.randn(64, 64).softmax(-1), kind="longformer")
    for control, positions in {
        "kind": [PATTERNS[n % len(PATTERNS)] for n in range(STEPS)],
        "window": [1 + 7 * n % 64 for n in range(STEPS)],
        "global_tokens": [n % 9 for n in range(STEPS)],
    }.items():
        if control != "kind":
            patterns.reset()
        took = percentiles(moved(patterns, control, positions))
        print(f"kernel, patterns, {control + ':':14} {took}")
    steps = [round(n % 41 / 10, 1) for n in range(1, STEPS + 1)]
    print(f"kernel, reshape, step:     {percentiles(moved(reshape_explorer(), 'step', steps))}")


def positions_in_the_kernel() -> None:
    with torch.no_grad():
        added = {"ALiBi": alibi_bias(8, 24), "T5": T5RelativeBias(8)(24, 24)}
    steps = {
        "sinusoids": (
            sinusoid_explorer(),
            {
                "position": [(7 * n + 1) % 64 for n in range(STEPS)],
                "base": [BASES[n % len(BASES)] for n in range(STEPS)],
                "d_model": [(4, 16, 64, 256)[n % 4] for n in range(STEPS)],
                "length": [(16, 64, 256, 512)[n % 4] for n in range(STEPS)],
            },
        ),
        "rotary": (
            rotary_explorer(),
            {
                "key_position": [(7 * n + 1) % 65 for n in range(STEPS)],
                "base": [BASES[n % len(BASES)] for n in range(STEPS)],
            },
        ),
        "biases": (
            bias_explorer(added),
            {
                "head": [(1 + n) % 8 for n in range(STEPS)],
                "query": [(7 * n + 1) % 24 for n in range(STEPS)],
                "encoding": [[*added][(1 + n) % 2] for n in range(STEPS)],
            },
        ),
    }
    for name, (explorer, controls) in steps.items():
        for control, positions in controls.items():
            ours = percentiles(moved(explorer, control, positions))
            print(f"kernel, {name + ', ' + control + ':':24} {ours}")


def depth_in_the_kernel() -> None:
    explorer = depth_explorer(depth=2, norm="pre")
    for control, widget in explorer.controls.items():
        choices = list(widget.options)
        positions = [choices[(1 + n) % len(choices)] for n in range(STEPS)]
        ours = percentiles(moved(explorer, control, positions))
        print(f"kernel, {'depth, ' + control + ':':18} {ours}")


def translator_in_the_kernel() -> None:
    translator = phrase_translator()
    layers = [*translator.maps("he sleeps .")]
    explorer = attention_explorer(
        translator.maps,
        text="the black cats do not see him .",
        layer="decoder 1: cross",
        answer=translator,
    )
    steps = {
        "layer": [layers[n % len(layers)] for n in range(STEPS)],
        "head": [n % 4 for n in range(STEPS)],
        "query": [n % 8 for n in range(STEPS)],
        "text": [" ".join(one.english) for one in phrases(40, split="held out")],
    }
    for view in ("map", "lines"):
        explorer.controls["view"].value = view
        for control, positions in steps.items():
            explorer.controls["text"].value = "the black cats do not see him ."
            ours = percentiles(moved(explorer, control, positions))
            print(f"kernel, {'translator, ' + view + ', ' + control + ':':26} {ours}")


def moved(explorer, control: str, positions: list) -> list[float]:
    seconds = []
    for position in positions:
        started = time.perf_counter()
        explorer.controls[control].value = position
        seconds.append(time.perf_counter() - started)
    return seconds


def redraw_with_seaborn():
    """The same three panels as `interact` users draw them: a new figure at every step."""
    import io

    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt
    import seaborn
    import torch

    nile = nile_series()
    grid = torch.linspace(1871, 1970, 200)
    widths = np.geomspace(0.5, 99, 60)
    errors = {
        name: [
            leave_one_out_error(nile.keys, nile.values, kernel=name, bandwidth=h).item()
            for h in widths
        ]
        for name in KERNELS
    }

    def step(query: float) -> None:
        _, (left, middle, right) = plt.subplots(1, 3, figsize=(10.4, 3.4), dpi=150)
        weights = attention_pooling(
            torch.tensor([query]), nile.keys, nile.values, bandwidth=5.0
        ).weights[0]
        fit = attention_pooling(grid, nile.keys, nile.values, bandwidth=5.0).output
        seaborn.scatterplot(x=nile.keys, y=nile.values, size=weights, ax=left, legend=False)
        seaborn.lineplot(x=grid, y=fit, ax=left, errorbar=None)
        seaborn.barplot(x=nile.keys.int(), y=weights, ax=middle, errorbar=None)
        for name, error in errors.items():
            seaborn.lineplot(x=widths, y=error, ax=right, label=name, errorbar=None)
        plt.savefig(io.BytesIO(), format="png")
        plt.close()

    return step


def explorer_in_the_browser() -> None:
    if CHROMIUM is None:
        print("browser:                   not measured, chromium is not installed")
        return
    with (
        tempfile.TemporaryDirectory() as folder,
        running_lab(Path(folder)) as address,
        window() as screen,
    ):
        for notebook, cells, title, slider, *steps in BROWSER:
            screen.open(address, notebook)
            for cell in cells:
                screen.run(cell)
            explorer = Explorer(screen.page, title)
            print(
                f"browser, {notebook[:2]}, {slider:9}     {percentiles(in_browser(explorer, slider, *steps))}"
            )


#: Notebook, the cells that must run, the explorer, the slider to move, its steps if there are fewer than seven.
BROWSER = (
    ("01_kernel_regression.ipynb", ("start(seed=1)", "explorer = "), "Kernel regression", "query"),
    ("02_scoring_functions.ipynb", ("start(seed=2)", "explorer = "), "One query", "direction"),
    ("03_seq2seq_with_attention.ipynb", ("start(seed=3)", "explorer = "), "From a written", "step"),
    (
        "04_self_and_cross_attention.ipynb",
        ("start(seed=4)", "reader = pronoun_reader()"),
        "One layer of self-attention",
        "query",
    ),
    (
        "05_multi_head_attention.ipynb",
        ("start(seed=5)", "first = attention_explorer("),
        "4 heads look up 4 letters",
        "query",
        3,
    ),
    (
        "06_positional_encodings.ipynb",
        ("start(seed=6)", "explorer = "),
        "The sinusoidal",
        "position",
    ),
    (
        "07_transformer_blocks.ipynb",
        ("start(seed=7)", "explorer = depth_explorer()"),
        "Depth",
        "depth",
        5,
    ),
    (
        "08_transformer.ipynb",
        ("start(seed=8)", "translator = phrase_translator()"),
        "Translator",
        "query",
    ),
    (
        "09_decoding_and_bleu.ipynb",
        ("start(seed=9)", "explorer = "),
        "The next token",
        "position",
    ),
    (
        "11_scaling_laws.ipynb",
        ("start(seed=11)", "explorer = "),
        "Scaling",
        "size",
    ),
    (
        "13_language_model.ipynb",
        ("start(seed=13)", "explorer = "),
        "The 10 most probable",
        "top-k, 0: all",
    ),
)


def in_browser(explorer: Explorer, slider: str, steps: int = 7) -> list[float]:
    page = explorer.page
    explorer.reset()
    explorer._handle(slider).focus()
    page.keyboard.press(
        "Home"
    )  # from there so many steps to the right are steps to another picture
    page.wait_for_timeout(500)
    page.evaluate(WATCH, explorer.image.element_handle())
    for press in range(60):
        page.keyboard.press("ArrowRight" if press // steps % 2 == 0 else "ArrowLeft")
        page.wait_for_function("() => window.arrived")
        page.wait_for_timeout(60)
    return [milliseconds / 1000 for milliseconds in page.evaluate("() => window.delays")]


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


def openings() -> None:
    """From opening a notebook to the first picture that has moved, reading left out; a fresh browser each time."""
    if CHROMIUM is None:
        return
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, running_lab(Path(folder)) as address:
        print(f"opening, served after      {time.perf_counter() - started:5.1f} s")
        for path in normal_form.paths():
            with window() as screen:
                cells, opened, shown, moved = open_and_move(screen, address, path.name)
            print(
                f"opening, {path.stem[:2]}, {cells} cells:     kernel ready after {opened:4.1f} s, "
                f"picture after {shown:4.1f} s, moved after {moved:4.1f} s"
            )


def importing() -> None:
    def seconds(code: str) -> float:
        program = (
            f"import torch, time; t = time.perf_counter(); {code}; print(time.perf_counter() - t)"
        )
        runs = [
            float(
                subprocess.run(
                    [sys.executable, "-c", program], capture_output=True, text=True, check=True
                ).stdout
            )
            for _ in range(5)
        ]
        return median(runs)

    print(
        f"import course_lib:         {1000 * seconds('import course_lib'):6.1f} ms beyond import torch"
    )
    print(
        f"import course_lib.pooling: {1000 * seconds('import course_lib.pooling'):6.1f} ms beyond import torch"
    )


def decoding_in_the_kernel() -> None:
    translator, text = phrase_translator(), "does the small dog see the red house?"
    steps = {
        "next token": (
            next_token_explorer(translator, text),
            {
                "position": [(1 + n) % 9 for n in range(STEPS)],
                "temperature": [round(0.1 + n % 29 / 10, 1) for n in range(STEPS)],
                "top_k": [(1 + n) % 21 for n in range(STEPS)],
                "top_p": [round(0.99 - n % 90 / 100, 2) for n in range(STEPS)],
            },
        ),
        "beams": (
            beam_explorer(translator, text),
            {
                "step": [1 + n % 12 for n in range(STEPS)],
                "beam_size": [1 + n % 5 for n in range(STEPS)],
                "length_penalty": [n % 21 / 10 for n in range(STEPS)],
            },
        ),
        "translation": (
            translation_explorer(translator, text, temperature=1.0),
            {
                "sample": [(1 + n) % 21 for n in range(20)],
                "temperature": [(1.0, 1.5, 2.0, 3.0, 0.0)[n % 5] for n in range(5)],
                "text": [" ".join(one.english) for one in phrases(40, split="held out")],
            },
        ),
        "BLEU": (
            bleu_explorer(),
            {
                "n": [1 + (1 + n) % 4 for n in range(STEPS)],
                "candidate": [" ".join(["the cat"] * (1 + n % 12)) for n in range(STEPS)],
            },
        ),
    }
    for name, (explorer, controls) in steps.items():
        for control, positions in controls.items():
            ours = percentiles(moved(explorer, control, positions))
            print(f"kernel, {name + ', ' + control + ':':24} {ours}")


def language_model_in_the_kernel() -> None:
    """Steps after the forward pass, on texts as long as the explorers take them."""
    if not is_installed():
        return print(f"the language model is not installed: {INSTALL}")
    model, tokenizer = load_smollm2()
    heads, lens = (
        make(model, tokenizer, "word " * (most - 1))
        for make, most in ((heads_explorer, 256), (logit_lens_explorer, 64))
    )
    steps = {
        ("heads", "layer"): (heads, [(1 + n) % 30 for n in range(STEPS)]),
        ("heads", "query"): (heads, [n % 256 for n in range(STEPS)]),
        ("heads", "score"): (heads, [[*SCORES][(1 + n) % len(SCORES)] for n in range(STEPS)]),
        ("lens", "position"): (lens, [7 * n % 64 for n in range(STEPS)]),
    }
    for (name, control), (explorer, positions) in steps.items():
        ours = percentiles(moved(explorer, control, positions))
        print(f"kernel, {name + ', ' + control + ':':18} {ours}")


if __name__ == "__main__":
    torch.set_num_threads(1)  # as in a notebook
    explorer_in_the_kernel()
    later_explorers_in_the_kernel()
    attention_in_the_kernel()
    small_explorers_in_the_kernel()
    positions_in_the_kernel()
    decoding_in_the_kernel()
    language_model_in_the_kernel()
    depth_in_the_kernel()
    translator_in_the_kernel()
    explorer_in_the_browser()
    openings()
    importing()
