"""Verified reference code for the course on attention and the Transformer.

`import course_lib` loads no submodule; each loads when it is first used. These are its modules, from the
bottom up: a module imports only from modules above it in this list.
"""

import sys
from importlib import import_module
from importlib.util import spec_from_loader
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
        "validation": Module("checks of arguments, with errors that name them"),
        "lab": Module(
            "JupyterLab, a hub, the learner's copy of the notebooks, what is missing here"
        ),
    },
    "library": {
        "data": Module("series, vocabularies, dates, a phrasebook, docstrings, batches"),
        "transformer.masks": Module("padding masks, causal masks, masked softmax", 2),
        "transformer.scoring": Module(
            "scoring functions: dot, scaled dot, general, concat, additive, Gaussian", 2
        ),
        "transformer.attention": Module(
            "scaled dot-product attention; self- and cross-attention", 2
        ),
        "transformer.cache": Module("key/value caches for incremental decoding", 5),
        "transformer.positions": Module(
            "positional encodings, from sinusoidal to RoPE and ALiBi; their contract", 6
        ),
        "transformer.multihead": Module("multi-head attention; MQA and GQA", 5),
        "transformer.norms": Module("layer normalisation and RMSNorm", 7),
        "transformer.layers": Module("feed-forward network, encoder layer, decoder layer", 7),
        "transformer.config": Module("the sizes and choices of a model", 8),
        "transformer.embeddings": Module("token embeddings, with positions that are added", 8),
        "transformer.stacks": Module("stacks of layers, and how a model is initialised", 8),
        "transformer.model": Module("the encoder-decoder Transformer", 8),
        "transformer.decoder_only": Module("a decoder-only language model", 8),
        "transformer.convert": Module("weights from PyTorch", 5),
        "transformer.decoding": Module(
            "greedy decoding, sampling, beam search, for any model with its protocol", 8
        ),
        "topics.profiling": Module("time and memory of a computation"),
        "topics.pooling": Module("kernel regression: the origin of attention", 1),
        "topics.recurrent": Module("GRU encoder; Bahdanau and Luong decoders", 3),
        "topics.attention_maps": Module(
            "attention weights of a whole model, entropy, mean distance", 4
        ),
        "topics.bleu": Module("corpus BLEU, as sacreBLEU computes it", 9),
        "topics.efficient": Module(
            "FlashAttention by hand; sliding window, Longformer, Linformer, linear, Performer", 10
        ),
        "topics.scaling": Module("parameters, FLOPs and bytes of a model; laws of its loss", 11),
        "topics.anatomy": Module(
            "the layers, memory and FLOPs of a model, from its configuration", 5
        ),
        "topics.today": Module(
            "what the models of today do: latent attention, indexer, summaries, delta rule, experts, streams",
            15,
        ),
        "topics.pretrained": Module(
            "SmolLM2-135M, a pre-trained language model, from an installed package", 13
        ),
        "topics.interpretability": Module(
            "attention heads of a language model: scores and ablation; logit lens, surprisal", 13
        ),
        "train.losses": Module("the loss of the next token, a learning-rate schedule", 3),
        "train.fused_loss": Module("cross-entropy from hidden states, without all the logits", 12),
        "train.fit": Module("a training step, and one training loop for every model", 3),
        "train.translator": Module("text in, text out: a model with its vocabularies", 3),
        "checkpoints": Module("trained models that ship with the course", 3),
    },
    "course": {
        "train.settings": Module("`python -m course_lib.train`: the settings of a run", 12),
        "train.processes": Module("one process, or many that share a batch", 12),
        "train.folder": Module("what a run keeps on disk", 12),
        "train.scores": Module("BLEU and chrF of translations, as sacreBLEU computes them", 12),
        "train.run": Module("trains a translator on real sentences", 12),
        "train.translate": Module("translates with what a run has left", 12),
        "experiments": Module("experiments: small in a notebook, at length on the command line", 2),
        "plots": Module("drawing: arrays in, matplotlib artists out"),
        "widgets": Module("explorers: controls and a live figure"),
        "notebook": Module("what notebooks show: figures, sources, comparisons"),
        "exercises": Module("tasks and bug hunts: checks, hints, solutions, typical mistakes"),
        "tools": Module(
            "commands for maintainers: normal form, site, animation, run times, ledger"
        ),
    },
}
MODULES = {name: module for group in LAYERS.values() for name, module in group.items()}

__doc__ = (__doc__ or "") + "".join(
    f"\n{group}\n"
    + "".join(f"    {name:25} {module.summary}\n" for name, module in modules.items())
    for group, modules in LAYERS.items()
)

#: What stands directly in `course_lib`.
TOP = sorted({name.split(".")[0] for name in MODULES})

#: Name that a module had when all stood side by side in `course_lib` → its name now.
RENAMED = {
    name: f"{place}.{name}"
    for place, names in {
        "transformer": "masks scoring attention cache positions multihead convert decoding",
        "topics": "profiling pooling recurrent bleu efficient scaling pretrained interpretability",
        "train": "translator",
    }.items()
    for name in names.split()
} | {
    "blocks": "transformer",
    "inspection": "topics.attention_maps",
    "training": "train",
    "decoding.table_model": "data.table_model",
}


class _Renamed:
    """Imports a module by the name that it had before it moved: learners' own copies of notebooks keep running."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None):
        package, _, old = name.partition(".")
        if package == __name__ and (old in RENAMED or old.split(".")[0] in RENAMED):
            return spec_from_loader(name, _Renamed)

    @staticmethod
    def create_module(spec):
        _, _, old = spec.name.partition(".")
        first, dot, rest = old.partition(".")
        module = import_module(f"{__name__}.{RENAMED.get(old) or RENAMED[first] + dot + rest}")
        spec.loader_state = module.__spec__  # overwritten by the import system, put back below
        return module

    @staticmethod
    def exec_module(module):  # it has run already, under its own name
        module.__spec__ = module.__spec__.loader_state


sys.meta_path.insert(0, _Renamed)


def __getattr__(name: str):
    if name in TOP or name in RENAMED:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(TOP)}")


def __dir__():
    return [*globals(), *TOP]
