"""Checks of `course_lib.decoding`."""

import math
from collections.abc import Iterable, Iterator
from numbers import Real

from torch import Tensor

from course_lib.checks.cache import require_rows
from course_lib.validation import (
    require_floating,
    require_next_token,
    require_positive,
    require_tokens,
    require_whole,
)


def session_init(self, model, source, *, bos_id=1):
    """A model that follows the protocol, and a start token of its vocabulary. The model checks the source."""
    _require_model(model, bos_id)


def session_step(self, token):
    """One token of the vocabulary per sequence."""
    require_next_token(token, len(self.logits), self.model.vocabulary_size)


def session_reorder(self, rows, *, same_sources=False):
    """Rows of the batch."""
    require_rows(rows, len(self.logits))


def greedy(model, source, *, max_length=50, bos_id=1, eos_id=2):
    """As `session_init`, and lengths and tokens in range."""
    require_whole(max_length=max_length)
    require_whole(0, eos_id=eos_id)
    _require_model(model, bos_id)


def sample(
    model, source, *, logits_processors=(), num_samples=1, max_length=50, bos_id=1, eos_id=2, seed=None
):  # fmt: skip
    """As `greedy`, a number of samples, a seed, and logits processors that can be called."""
    require_whole(num_samples=num_samples)
    if seed is not None:
        require_whole(0, seed=seed)
    several = isinstance(logits_processors, Iterable) and not isinstance(logits_processors, Tensor)
    once = isinstance(logits_processors, Iterator)  # which can be read only once
    if not several or not (once or all(map(callable, logits_processors))):
        raise ValueError(
            f"logits_processors={logits_processors!r} must be a list of functions from logits to logits, "
            f"e.g. [lambda z: top_k(z, 10)]"
        )
    greedy(model, source, max_length=max_length, bos_id=bos_id, eos_id=eos_id)


def stream(model, source, *, logits_processors=None, max_length=50, bos_id=1, eos_id=2, seed=None):
    """As `sample`; no logits processors for greedy decoding."""
    processors = () if logits_processors is None else logits_processors
    lengths = {"max_length": max_length, "bos_id": bos_id, "eos_id": eos_id}
    sample(model, source, logits_processors=processors, seed=seed, **lengths)


def beam_search(
    model, source, beam_size=4, length_penalty=1.0, *, max_length=50, bos_id=1, eos_id=2, callback=None
):  # fmt: skip
    """As `greedy`, a beam that the vocabulary can fill, and a finite exponent."""
    require_whole(beam_size=beam_size)
    number = isinstance(length_penalty, Real) and not isinstance(length_penalty, bool)
    if not number or not -10 <= length_penalty <= 10:
        raise ValueError(
            f"length_penalty={length_penalty!r} must be a number from -10 to 10; "
            f"0 compares sums of log-probabilities, 1 their means"
        )
    if callback is not None and not callable(callback):
        raise ValueError(f"callback={callback!r} must be a function of a BeamStep, or None")
    greedy(model, source, max_length=max_length, bos_id=bos_id, eos_id=eos_id)
    if beam_size > model.vocabulary_size:
        raise ValueError(
            f"beam_size={beam_size} is larger than the vocabulary of {model.vocabulary_size} tokens, so the "
            f"first step cannot fill the beam"
        )


def temperature(logits, t):
    """A distribution, and a number above 0."""
    distribution(logits)
    if isinstance(t, Real) and t == 0:
        raise ValueError(
            "t=0 would divide by 0; for the largest alone use top_k(logits, 1) or greedy"
        )
    require_positive(t=t)
    largest = logits.detach().masked_fill(logits.isinf(), 0).abs().max() if logits.numel() else 0
    if not math.isfinite(largest / t):
        raise ValueError(
            f"t={t!r} is too small: logits / t overflows; use top_k(logits, 1) or greedy"
        )


def top_k(logits, k):
    """A distribution, and a whole number above 0."""
    distribution(logits)
    require_whole(k=k)


def top_p(logits, p):
    """A distribution, and a probability above 0."""
    distribution(logits)
    require_positive(p=p)
    if p > 1:
        raise ValueError(f"p={p} is above 1; it is a probability, above 0 and at most 1")


def distribution(logits):
    """Logits of which softmax makes a distribution. One reduction where all is well."""
    require_floating(logits=logits)
    if logits.is_meta:  # shapes without values
        return
    if logits.dim() == 0 or logits.shape[-1] == 0:
        raise ValueError(
            f"logits has shape {tuple(logits.shape)}; it must be (…, vocabulary), one score per token"
        )
    if logits.detach().amax(dim=-1).isfinite().all():  # the maximum of a row with NaN is NaN
        return
    if logits.isnan().any():
        raise ValueError("logits holds NaN; every score must be a number or minus infinity")
    if logits.isposinf().any():
        raise ValueError(
            "logits holds plus infinity; every score must be a number or minus infinity"
        )
    raise ValueError(
        "logits are minus infinity for every token, so there is nothing to choose from; "
        "what came before has ruled out all"
    )


def processed(logits, before):
    """Logits of the shape that a processor was given."""
    if not isinstance(logits, Tensor) or logits.shape != before.shape:
        came = f"shape {tuple(logits.shape)}" if isinstance(logits, Tensor) else repr(logits)
        raise ValueError(
            f"a logits processor returned {came}; it must return logits of the shape it was given, "
            f"{tuple(before.shape)}"
        )


def prefix_model_prefill(self, source, *, bos_id=None):
    """Tokens of the vocabulary."""
    require_tokens(self.vocabulary_size, source=source)


def table_model(table):
    """Prefixes with probabilities that sum to 1, the empty prefix among them."""
    if () not in table:
        raise ValueError(
            "the table has no entry for (), the empty prefix: say what the first token can be"
        )
    for prefix, row in table.items():
        if not isinstance(prefix, tuple) or not all(isinstance(one, str) for one in prefix):
            raise ValueError(
                f"the table has the prefix {prefix!r}; it must be a tuple of words, e.g. ('the',)"
            )
        probabilities = list(row.values())
        if not all(isinstance(one, Real) and one >= 0 for one in probabilities):
            raise ValueError(
                f"the table has {dict(row)!r} after {prefix!r}; probabilities must be 0 or more"
            )
        if not math.isclose(sum(probabilities), 1, abs_tol=1e-6):
            raise ValueError(
                f"the probabilities after {prefix!r} sum to {sum(probabilities):.4g}; they must sum to 1"
            )


def _require_model(model, bos_id):
    """All members of an `IncrementalDecoder`, and a start token of its vocabulary."""
    if isinstance(model, type):
        raise ValueError(
            f"model is the class {model.__name__}; give an instance, such as Transformer(config)"
        )
    needed = ("prefill", "decode_step", "vocabulary_size", "pad_id")
    missing = [name for name in needed if not hasattr(model, name)]
    if missing:
        raise ValueError(
            f"model is a {type(model).__name__} without {', '.join(missing)}; it must be an "
            f"IncrementalDecoder, such as a Transformer, a DecoderOnly or a Seq2Seq"
        )
    require_whole(0, bos_id=bos_id)
    size = model.vocabulary_size
    if bos_id >= size:
        raise ValueError(f"bos_id={bos_id}, but the vocabulary has {size} tokens, 0 to {size - 1}")
