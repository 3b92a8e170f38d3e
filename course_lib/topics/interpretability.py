"""Inside a language model: what its heads attend to, what they cause, and what each block would predict."""

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.topics.attention_maps import record_attention
from course_lib.transformer import DecoderOnly

__all__ = [
    "attention_weights",
    "edited",
    "first_token_score",
    "induction_score",
    "logit_lens",
    "previous_token_score",
    "repeated_tokens",
    "residual_streams",
    "surprisal",
]


#: A function of a module's first argument and its output; what it returns, unless None, replaces the output.
Edit = Callable[[Tensor, Tensor], Tensor | None]


@contextlib.contextmanager
def edited(edits: Iterable[tuple[nn.Module, Edit]]) -> Iterator[None]:
    """Read or replace what modules of a model write, while the `with` block runs::

        with edited([(model.blocks[3].feed_forward, lambda x, output: 0 * output)]):
            logits = model(tokens)

    Several edits of one module act in the order in which they are given.
    """

    def hook(edit: Edit) -> Callable:  # in the form that PyTorch calls
        return lambda module, args, output: edit(args[0], output)

    with contextlib.ExitStack() as stack:  # removes the hooks when it ends
        for module, edit in edits:
            stack.enter_context(module.register_forward_hook(hook(edit)))
        yield


@torch.no_grad()
def attention_weights(
    model: DecoderOnly, tokens: Int[Tensor, "1 length"]
) -> Float[Tensor, "layer head query key"]:
    """Return the attention weights of every head of a model for one sequence."""
    if len(tokens) != 1:
        raise ValueError(f"tokens has {len(tokens)} sequences; give one, e.g. tokens[:1]")
    with record_attention(model) as maps:
        model(tokens)
    return torch.stack([weights[-1][0] for weights in maps.values()])


# --- what a head attends to: (…, query, key) → (…,) ------------------------------------------


def _length(weights: Tensor) -> int:
    """Return how many tokens these weights are of; they must be those of a full pass of self-attention."""
    queries, keys = weights.shape[-2:]
    if queries != keys:
        raise ValueError(
            f"weights are of {queries} queries and {keys} keys; a score needs as many of both, so the weights "
            f"of self-attention without a cache"
        )
    return keys


def previous_token_score(weights: Float[Tensor, "*heads query query"]) -> Float[Tensor, "*heads"]:
    r"""Return the mean weight on the token before: $\frac{1}{n-1} \sum_{i \ge 1} \alpha_{i,\,i-1}$.

    Source: Olsson et al. (2022), "In-context learning and induction heads".
    """
    return weights.diagonal(-1, -2, -1).sum(-1) / (_length(weights) - 1)


def first_token_score(
    weights: Float[Tensor, "*heads query query"], *, start: int = 10
) -> Float[Tensor, "*heads"]:
    r"""Return the mean weight of the tokens from position `start` on, on the first token: an attention sink.

    Source: Xiao et al. (2024), "Efficient streaming language models with attention sinks".
    """
    if start >= _length(weights):
        raise ValueError(f"start={start} leaves no token: the weights are of {weights.shape[-1]}")
    return weights[..., start:, 0].mean(-1)


def induction_score(
    weights: Float[Tensor, "*heads query query"], period: int
) -> Float[Tensor, "*heads"]:
    r"""Return the mean weight on the token after the previous occurrence, in a sequence that repeats itself.

    $$\frac{1}{n - p} \sum_{i \ge p} \alpha_{i,\, i - p + 1}$$

    A head that looks there can copy what came next the last time.

    Args:
        weights: for tokens with `tokens[i] == tokens[i - period]`, as `repeated_tokens` makes them.
        period: $p$, after how many tokens the sequence repeats.

    Source: Olsson et al. (2022), "In-context learning and induction heads".
    """
    if not 2 <= period < _length(weights):
        raise ValueError(
            f"period={period} must be from 2 to below the number of tokens, {weights.shape[-1]}"
        )
    return weights.diagonal(1 - period, -2, -1)[..., 1:].mean(-1)


def repeated_tokens(
    period: int, *, vocabulary: int, batch: int = 1, first: int = 0, seed: int = 0
) -> Int[Tensor, "batch twice_period"]:
    """Return random tokens, followed by the same tokens again.

    Nothing but the first half predicts the second, so the loss there measures copying from the context.

    Args:
        period: the length of one half.
        vocabulary: tokens are below it.
        batch: the number of sequences.
        first: tokens are this or above, to leave out special ones.
        seed: of the random numbers.
    """
    generator = torch.Generator().manual_seed(int(seed))
    half = torch.randint(first, vocabulary, (batch, period), generator=generator)
    return torch.cat([half, half], dim=1)


# --- what each block would predict -----------------------------------------------------------


@torch.no_grad()
def residual_streams(
    model: DecoderOnly, tokens: Int[Tensor, "batch length"]
) -> Float[Tensor, "depth batch length d_model"]:
    """Return the vectors of all tokens before the first block and after each."""
    streams: list[Tensor] = []
    parts = (model.embedding, *model.blocks)
    with edited((part, lambda _, output: streams.append(output)) for part in parts):
        model(tokens)
    return torch.stack(streams)


@torch.no_grad()
def logit_lens(
    model: DecoderOnly, tokens: Int[Tensor, "batch length"], *, position: int = -1
) -> Float[Tensor, "depth batch vocabulary"]:
    """Return the logits that the model would give after each block, if no block followed.

    The residual stream after a block goes through the final normalisation and the output layer at once. The
    first entry is of the embeddings alone, the last one is what the model says.

    Args:
        model: a decoder-only model with pre-norm blocks.
        tokens: (batch, length).
        position: of the token whose successor is predicted.

    Source: nostalgebraist (2020), "Interpreting GPT: the logit lens".
    """
    return model.lm_head(model.norm(residual_streams(model, tokens).select(2, position)))


@torch.no_grad()
def surprisal(
    model: DecoderOnly, tokens: Int[Tensor, "batch length"]
) -> Float[Tensor, "batch predicted"]:
    r"""Return $-\log_2 p(y_t \mid y_1, \dots, y_{t-1})$ for each token but the first, in bits.

    Source: Shannon (1948); Hale (2001) for the word.
    """
    logits = model(tokens).float()[:, :-1]  # (batch, length − 1, vocabulary)
    nats = F.cross_entropy(logits.mT, tokens[:, 1:].long(), reduction="none")
    return nats / math.log(2)  # (batch, length − 1)
