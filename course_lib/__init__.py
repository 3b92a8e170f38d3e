"""Verified reference code for the course on attention and the Transformer.

Four floors. A module imports from earlier rooms of its own floor and from the floors below::

    exercises/   checks, hints, solutions, mistakes       4th floor
    widgets/     explorers: controls and a live figure    3rd floor
    plots/       pure drawing: arrays in, Axes out        2nd floor
    experiments/ what a notebook runs in small and a command at length
    checkpoints  trained models
    translator   text in, text out
    bleu         how good a translation is, by its n-grams
    decoding/    from logits to a sequence
    training/    one loop for every model
    transformer/ the whole model
    blocks/      norm, network, residual; encoder block and decoder block
    multihead    many heads, built three ways
    positions/   where a token stands, told in six ways
    cache        keys and values, kept while a sequence is written
    recurrent/   encoder and decoders, without and with attention
    data/        series, vocabularies, dates, sentences, batches
    attention    scaled dot-product attention; self- and cross-attention
    scoring      from a query and a key to a number
    masks        who may attend to whom
    pooling      kernel regression, where attention starts

`measure` says what a computation costs. `notebook` prepares a notebook and shows its figures. `lab`
starts JupyterLab, `environment` says what is missing, and `workshop` holds what the maintainers run.

`import course_lib` loads none of them; `course_lib.pooling` loads when it is first used.
"""

from importlib import import_module

__version__ = "0.1.0"

_ROOMS = (
    "attention",
    "bleu",
    "blocks",
    "cache",
    "checkpoints",
    "data",
    "decoding",
    "environment",
    "exercises",
    "experiments",
    "masks",
    "measure",
    "multihead",
    "notebook",
    "plots",
    "pooling",
    "positions",
    "recurrent",
    "scoring",
    "training",
    "transformer",
    "translator",
    "widgets",
)


def __getattr__(name: str):
    if name in _ROOMS:
        return import_module(f"course_lib.{name}")
    raise AttributeError(
        f"module 'course_lib' has no attribute {name!r}; it has {', '.join(_ROOMS)}"
    )


def __dir__():
    return [*globals(), *_ROOMS]
