"""Verified reference code for the course on attention and the Transformer.

`import course_lib` loads no submodule; each loads when it is first used. These are its modules, from the
bottom up: a module imports only from modules above it in this list.
"""

from importlib import import_module
from typing import NamedTuple

__version__ = "0.2.0"


class Module(NamedTuple):
    """One module of the library.

    Attributes:
        summary: what it is for, in one line.
        notebook: the number of the notebook that introduces it; earlier notebooks do not import it.
    """

    summary: str
    notebook: int = 0


#: The layers from the bottom up. A test holds every public name of the group "library" against an independent
#: oracle. This is the only list of modules: lazy loading, the docstring and the contract that a test gives to
#: import-linter are derived from it.
LAYERS = {
    "foundations": {
        "messages": Module("texts that code shows to learners, in one place"),
        "environment": Module("what is missing on this machine"),
        "validation": Module("checks of arguments, with errors that name them"),
        "working_copy": Module("the learner's copy of the notebooks: updates and resets"),
    },
    "library": {
        "profiling": Module("time and memory of a computation"),
        "masks": Module("padding masks, causal masks, masked softmax", 2),
        "scoring": Module(
            "scoring functions: dot, scaled dot, general, concat, additive, Gaussian", 2
        ),
        "attention": Module("scaled dot-product attention; self- and cross-attention", 2),
        "pooling": Module("kernel regression: the origin of attention", 1),
        "inspection": Module("attention weights of a whole model, entropy, mean distance", 4),
        "data": Module("series, vocabularies, dates, a phrasebook, docstrings, batches"),
        "recurrent": Module("GRU encoder; Bahdanau and Luong decoders", 3),
        "cache": Module("key/value caches for incremental decoding", 5),
        "positions": Module(
            "positional encodings, from sinusoidal to RoPE and ALiBi; their contract", 6
        ),
        "multihead": Module("multi-head attention; MQA and GQA", 5),
        "efficient": Module(
            "FlashAttention by hand; sliding window, Longformer, Linformer, linear, Performer", 10
        ),
        "blocks": Module("layer norm, feed-forward network, encoder and decoder block", 7),
        "transformer": Module("the encoder-decoder Transformer and a decoder-only model", 8),
        "interpretability": Module(
            "attention heads of a language model: scores and ablation; logit lens, surprisal", 13
        ),
        "convert": Module("weights from and to PyTorch", 5),
        "training": Module("losses, a learning-rate schedule, training loop, exact resume", 3),
        "decoding": Module(
            "greedy decoding, sampling, beam search, for any model with its protocol", 8
        ),
        "bleu": Module("corpus BLEU, as sacreBLEU computes it", 9),
        "scaling": Module("parameters, FLOPs and bytes of a model; scaling laws of its loss", 11),
        "translator": Module("text in, text out: a model with its vocabularies", 3),
        "pretrained": Module(
            "SmolLM2-135M, a pre-trained language model, from an installed package", 13
        ),
        "checkpoints": Module("trained models that ship with the course", 3),
    },
    "course": {
        "train": Module("trains a translator on real sentences, on one machine or many", 12),
        "experiments": Module("experiments: small in a notebook, at length on the command line", 2),
        "plots": Module("drawing: arrays in, matplotlib artists out"),
        "widgets": Module("explorers: controls and a live figure"),
        "notebook": Module("what notebooks show: figures, sources, comparisons"),
        "exercises": Module("tasks and bug hunts: checks, hints, solutions, typical mistakes"),
        "lab": Module("starts JupyterLab with the settings of the course"),
        "tools": Module(
            "commands for maintainers: normal form, site, animation, run times, ledger"
        ),
    },
}
MODULES = {name: module for group in LAYERS.values() for name, module in group.items()}

__doc__ = (__doc__ or "") + "".join(
    f"\n{group}\n"
    + "".join(f"    {name:12} {module.summary}\n" for name, module in modules.items())
    for group, modules in LAYERS.items()
)


def __getattr__(name: str):
    if name in MODULES:
        return import_module(f"course_lib.{name}")
    raise AttributeError(
        f"module 'course_lib' has no attribute {name!r}; it has {', '.join(sorted(MODULES))}"
    )


def __dir__():
    return [*globals(), *MODULES]
