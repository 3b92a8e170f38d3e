"""Checks of `course_lib.interpretability`."""

from collections.abc import Iterable
from numbers import Integral

from course_lib.checks.transformer import decoder_only_forward
from course_lib.transformer import DecoderOnly
from course_lib.validation import require_axes, require_floating, require_whole


def attention_weights(model, tokens):
    """A decoder-only model, and one sequence."""
    _require_input(model, tokens)
    if len(tokens) != 1:
        raise ValueError(f"tokens has {len(tokens)} sequences; give one, e.g. tokens[:1]")


def previous_token_score(weights):
    """Self-attention of at least two tokens."""
    _require_square(weights)
    if weights.shape[-1] < 2:
        raise ValueError("weights are of one token, before which there is none")


def first_token_score(weights, *, start=10):
    """Self-attention that reaches beyond `start`."""
    _require_square(weights)
    require_whole(start=start)
    if start >= weights.shape[-1]:
        raise ValueError(f"start={start} leaves no token: the weights are of {weights.shape[-1]}")


def induction_score(weights, period):
    """A period that fits."""
    _require_square(weights)
    require_whole(2, period=period)
    if period >= weights.shape[-1]:
        raise ValueError(f"period={period} must be below the number of tokens, {weights.shape[-1]}")


def repeated_tokens(period, *, vocabulary, batch=1, first=0, seed=0):
    """Sizes, and tokens to draw from."""
    require_whole(period=period, vocabulary=vocabulary, batch=batch)
    require_whole(0, first=first, seed=seed)
    if first >= vocabulary:
        raise ValueError(f"first={first} must be below vocabulary={vocabulary}")
    if period * batch * 16 >= 2**40:
        raise ValueError(f"period={period} with batch={batch} does not fit into memory")


def ablated_heads(model, heads):
    """Heads that the model has."""
    _require_model(model)
    if not isinstance(heads, Iterable) or isinstance(heads, (str, bytes)):
        raise ValueError(f"heads={heads!r} must be a list of pairs (layer, head)")
    if iter(heads) is heads:
        raise ValueError("heads is an iterator, which can be read once; give a list")
    sizes = (("layer", len(model.blocks)), ("head", model.config.num_heads))
    for pair in heads:
        try:
            numbers = tuple(pair)
        except TypeError:
            numbers = ()
        if len(numbers) != 2:
            raise ValueError(f"heads holds {pair!r}; it must hold pairs (layer, head)")
        for (name, size), number in zip(sizes, numbers, strict=True):
            if (
                isinstance(number, bool)
                or not isinstance(number, Integral)
                or not 0 <= number < size
            ):
                raise ValueError(
                    f"heads holds {name} {number!r}; the model has {name}s 0 to {size - 1}"
                )


def residual_streams(model, tokens):
    """A decoder-only model, and tokens."""
    _require_input(model, tokens)


def logit_lens(model, tokens, *, position=-1):
    """A position of the tokens."""
    _require_input(model, tokens)
    length = tokens.shape[1]
    if isinstance(position, bool) or not isinstance(position, Integral):
        raise ValueError(f"position={position!r} must be a whole number")
    if not -length <= position < length:
        raise ValueError(f"position={position} is outside the sequence of {length} tokens")


def surprisal(model, tokens):
    """At least two tokens."""
    _require_input(model, tokens)
    if tokens.shape[1] < 2:
        raise ValueError(
            "tokens has one token per sequence; the first one has none to be predicted from"
        )


def _require_model(model):
    if not isinstance(model, DecoderOnly):
        raise ValueError(f"model is a {type(model).__name__}; it must be a DecoderOnly")


def _require_input(model, tokens):
    _require_model(model)
    decoder_only_forward(model, tokens)


def _require_square(weights):
    require_floating(weights=weights)
    require_axes(2, "(…, query, key)", weights=weights)
    if weights.shape[-1] != weights.shape[-2]:
        raise ValueError(
            f"weights has shape {tuple(weights.shape)}; self-attention has as many queries as keys"
        )
