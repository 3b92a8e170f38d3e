"""Inside a language model: what its heads attend to, what they cause, and what each block would predict."""

import contextlib
import math
from collections.abc import Iterable, Iterator

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from course_lib.checks import interpretability as checks
from course_lib.inspection import record_attention
from course_lib.transformer import DecoderOnly
from course_lib.validation import validated

__all__ = [
    "ablated_heads",
    "attention_weights",
    "first_token_score",
    "induction_score",
    "logit_lens",
    "previous_token_score",
    "repeated_tokens",
    "residual_streams",
    "surprisal",
]


@validated(checks.attention_weights)
@torch.no_grad()
def attention_weights(
    model: DecoderOnly, tokens: Int[Tensor, "1 length"]
) -> Float[Tensor, "layer head query key"]:
    """Return the attention weights of every head of a model for one sequence.

    Raises:
        ValueError: for another kind of model, more than one sequence, and tokens that it refuses.
    """
    with record_attention(model) as maps:
        model(tokens)
    return torch.stack([weights[-1][0] for weights in maps.values()])


# --- what a head attends to: (…, query, key) → (…,) ------------------------------------------


@validated(checks.previous_token_score)
def previous_token_score(weights: Float[Tensor, "*heads query query"]) -> Float[Tensor, "*heads"]:
    r"""Return the mean weight on the token before: $\frac{1}{n-1} \sum_{i \ge 1} \alpha_{i,\,i-1}$.

    Raises:
        ValueError: for weights of fewer than two tokens, or of unequal numbers of queries and keys.

    Source: Olsson et al. (2022), "In-context learning and induction heads".
    """
    return weights.diagonal(-1, -2, -1).mean(-1)


@validated(checks.first_token_score)
def first_token_score(
    weights: Float[Tensor, "*heads query query"], *, start: int = 10
) -> Float[Tensor, "*heads"]:
    r"""Return the mean weight of the tokens from position `start` on, on the first token: an attention sink.

    Raises:
        ValueError: where `start` is below 1, or no token is left.

    Source: Xiao et al. (2024), "Efficient streaming language models with attention sinks".
    """
    return weights[..., start:, 0].mean(-1)


@validated(checks.induction_score)
def induction_score(
    weights: Float[Tensor, "*heads query query"], period: int
) -> Float[Tensor, "*heads"]:
    r"""Return the mean weight on the token after the previous occurrence, in a sequence that repeats itself.

    $$\frac{1}{n - p} \sum_{i \ge p} \alpha_{i,\, i - p + 1}$$

    A head that looks there can copy what came next the last time.

    Args:
        weights: for tokens with `tokens[i] == tokens[i - period]`, as `repeated_tokens` makes them.
        period: $p$, after how many tokens the sequence repeats.

    Raises:
        ValueError: for a period below 2, or of at least the length.

    Source: Olsson et al. (2022), "In-context learning and induction heads".
    """
    return weights.diagonal(1 - period, -2, -1)[..., 1:].mean(-1)


@validated(checks.repeated_tokens)
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

    Raises:
        ValueError: for numbers below 1, and for no token between `first` and `vocabulary`.
    """
    generator = torch.Generator().manual_seed(int(seed))
    half = torch.randint(first, vocabulary, (batch, period), generator=generator)
    return torch.cat([half, half], dim=1)


# --- what a head causes ----------------------------------------------------------------------


@validated(checks.ablated_heads, calls_back=True)
@contextlib.contextmanager
def ablated_heads(model: DecoderOnly, heads: Iterable[tuple[int, int]]) -> Iterator[None]:
    """Set the outputs of these heads to zero while the `with` block runs.

    Args:
        model: whose heads.
        heads: pairs (layer, head), counted from 0.

    Raises:
        ValueError: for another kind of model, and for heads that it does not have.
    """
    by_layer: dict[int, list[int]] = {}
    for layer, head in heads:
        by_layer.setdefault(layer, []).append(head)
    with contextlib.ExitStack() as hooks:
        for layer, listed in by_layer.items():
            attention = model.blocks[layer].attention
            hook = attention.out_proj.register_forward_pre_hook(_zeroing(attention, listed))
            hooks.callback(hook.remove)
        yield


def _zeroing(attention, heads: list[int]):
    def zero(_, args: tuple[Tensor]) -> tuple[Tensor]:
        merged = args[0].unflatten(-1, (attention.num_heads, -1))  # (batch, length, heads, d_head)
        keep = torch.ones(attention.num_heads, 1, dtype=merged.dtype, device=merged.device)
        keep[heads] = 0.0
        return ((merged * keep).flatten(-2),)

    return zero


# --- what each block would predict -----------------------------------------------------------


@validated(checks.residual_streams)
@torch.no_grad()
def residual_streams(
    model: DecoderOnly, tokens: Int[Tensor, "batch length"]
) -> Float[Tensor, "depth batch length d_model"]:
    """Return the vectors of all tokens before the first block and after each.

    Raises:
        ValueError: for another kind of model, and tokens that it refuses.
    """
    streams: list[Tensor] = []
    with contextlib.ExitStack() as hooks:
        for part in (model.embedding, *model.blocks):
            hook = part.register_forward_hook(lambda _, __, x: streams.append(x))
            hooks.callback(hook.remove)
        model(tokens)
    return torch.stack(streams)


@validated(checks.logit_lens)
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

    Raises:
        ValueError: for another kind of model, tokens that it refuses, and a position that they do not have.

    Source: nostalgebraist (2020), "Interpreting GPT: the logit lens".
    """
    return model.lm_head(model.norm(residual_streams(model, tokens)[:, :, position]))


@validated(checks.surprisal)
@torch.no_grad()
def surprisal(
    model: DecoderOnly, tokens: Int[Tensor, "batch length"]
) -> Float[Tensor, "batch predicted"]:
    r"""Return $-\log_2 p(y_t \mid y_1, \dots, y_{t-1})$ for each token but the first, in bits.

    Raises:
        ValueError: for another kind of model, fewer than two tokens, and tokens that it refuses.

    Source: Shannon (1948); Hale (2001) for the word.
    """
    logits = model(tokens).float()[:, :-1]  # (batch, length − 1, vocabulary)
    nats = F.cross_entropy(logits.mT, tokens[:, 1:].long(), reduction="none")
    return nats / math.log(2)  # (batch, length − 1)
