"""Calls of the library as tables: each on a device and in a dtype, against float64 on the CPU.

`tests/device` runs them on a GPU with the sizes at which its kernels differ, `tests/unit/test_device_tables.py` with
small ones on the CPU. A row of a table makes a `Call` from a length and the dimension of a head.
"""

import copy
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from course_lib.topics import efficient, today
from course_lib.transformer import (
    AdditiveScore,
    Attention,
    ConcatScore,
    CrossAttention,
    DecoderLayer,
    DecoderOnly,
    DecodingSession,
    DotScore,
    Dropout,
    EncoderLayer,
    FeedForward,
    GaussianScore,
    GeneralScore,
    InputEmbedding,
    KeyValueCache,
    MultiHeadAttention,
    ScaledDotScore,
    SelfAttention,
    SingleHeadAttention,
    StaticCache,
    TokenEmbedding,
    Transformer,
    TransformerConfig,
    alibi_bias,
    alibi_slopes,
    attend,
    beam_search,
    causal_mask,
    combine_masks,
    from_additive,
    from_torch,
    greedy,
    make_norm,
    make_positions,
    masked_softmax,
    merge_heads,
    padding_mask,
    padding_mask_from_tokens,
    prompt_lookup,
    relative_positions,
    rotary,
    sample,
    scaled_dot_product_attention,
    sinusoidal_table,
    split_heads,
    stream,
    t5_bucket,
    temperature,
    to_additive,
    top_k,
    top_p,
)
from course_lib.transformer.layers import ACTIVATIONS
from course_lib.transformer.model import TransformerState
from course_lib.transformer.norms import NORM_TYPES
from course_lib.transformer.positions import ENCODINGS
from tests.helpers.encodings import SHIFT_INVARIANT
from tests.helpers.ids import encoding_id

BATCH, HEADS, KV_HEADS, VOCABULARY, PAD, BOS, EOS = 3, 4, 2, 37, 0, 1, 2
#: The largest difference, as a share of the largest number of the result: some twenty roundings.
WITHIN = {torch.float32: 3e-5, torch.float16: 2e-2, torch.bfloat16: 1e-1}
DTYPES = [pytest.param(dtype, id=str(dtype).removeprefix("torch.")) for dtype in WITHIN]


class Call(NamedTuple):
    """A function and what it is given, in float64 on the CPU.

    Attributes:
        function: of the module, if there is one, and the inputs; returns tensors.
        inputs: tensors, those of floating point with gradients.
        module: with weights that get gradients.
        oracle: what is compared with, in float64; the same function where left out.
        gradients: whether there are any.
    """

    function: Callable[..., Any]
    inputs: tuple[Tensor, ...]
    module: nn.Module | None = None
    oracle: Callable[..., Any] | None = None
    gradients: bool = True


class Sizes(NamedTuple):
    """What the tables are made with.

    Attributes:
        lengths: of attention with heads of dimension `d_head`.
        d_heads, beside: dimensions of heads, each with the lengths `beside`.
        others: the lengths for all but attention, where float64 takes its time.
    """

    lengths: tuple[int, ...]
    d_heads: tuple[int, ...]
    d_head: int
    beside: tuple[int, ...]
    others: tuple[int, ...]


SMALL = Sizes(lengths=(7, 64), d_heads=(8, 20), d_head=8, beside=(5,), others=(7, 64))
#: PyTorch chooses kernels by the dimension of a head and by multiples of 64; cuDNN erred at odd ones.
FULL = Sizes(
    lengths=(63, 64, 65, 127, 128, 129, 192, 320),
    d_heads=(8, 16, 40, 96, 128, 192, 256, 320),
    d_head=64,
    beside=(64, 65),
    others=(64, 65, 192, 320),
)


def need_cuda() -> None:
    """Skip the module that calls it where there is no GPU; raised here, all of them are one line of the report."""
    if not torch.cuda.is_available():
        pytest.skip("PyTorch finds no CUDA device here", allow_module_level=True)


def outcome(call: Call, function: Callable, device: str, dtype: torch.dtype, rounded: torch.dtype):
    """Return the results of a call and, where it has gradients, those of a random mixture of the results."""

    def placed(x: Tensor) -> Tensor:
        return x.to(rounded).to(device, dtype) if x.is_floating_point() else x.to(device)

    given = []
    if call.module is not None:
        given = [copy.deepcopy(call.module).to(rounded).to(device, dtype)]
    inputs = [placed(x) for x in call.inputs]
    leaves = [x.requires_grad_() for x in inputs if x.is_floating_point() and call.gradients]
    leaves += given[0].parameters() if given and call.gradients else []
    torch.manual_seed(1)
    with torch.set_grad_enabled(call.gradients):
        results = [x for x in tree_leaves(function(*given, *inputs)) if isinstance(x, Tensor)]
    if not call.gradients:
        return results, []
    mixed = [x for x in results if x.requires_grad]
    torch.manual_seed(2)
    mixes = [placed(torch.randn(x.shape, dtype=torch.float64)) for x in mixed]
    slopes = torch.autograd.grad(mixed, leaves, mixes, allow_unused=True, materialize_grads=True)
    return results, list(slopes)


def largest(x: Tensor) -> float:
    return x.abs().max().item()


def compare(call: Call, device: str, dtype: torch.dtype, wrap: Callable = lambda call: call):
    """Assert that a call gives the same on a device in a dtype as in float64 on the CPU.

    Both are given the same numbers, those of the dtype. What functions (no module) return is exactly 0 where it should be.
    Every element is compared, against the largest of its tensor: a sum over many tokens that nearly cancel has the
    rounding error of its summands. (On the CPU, layers and models at the small sizes use at most 0.87 of the bound:
    the delta rule in bfloat16; all others 0.36.)
    """
    wanted = outcome(call, call.oracle or call.function, "cpu", torch.float64, dtype)
    ours = outcome(call, wrap(call.function), device, dtype, dtype)
    for kind, mine, theirs in zip(("results", "gradients"), ours, wanted, strict=True):
        # The gradient of a bias of keys is 0, but for rounding of what the other gradients are made of.
        floor = 0.1 * max(map(largest, theirs)) if kind == "gradients" and theirs else 0.0
        for place, (one, other) in enumerate(zip(mine, theirs, strict=True)):
            where = f"{kind}[{place}] of shape {tuple(one.shape)}"
            one = one.detach().cpu()
            if not other.is_floating_point():
                assert torch.equal(one, other), where
                continue
            assert one.dtype == dtype, where
            assert torch.equal(one.isinf(), other.isinf()), where
            one, other = (x.double().masked_fill(x.isinf(), 0.0) for x in (one, other.detach()))
            assert other.isfinite().all(), f"{where}: the oracle holds NaN"
            difference, scale = largest(one - other), max(largest(other), floor)
            assert difference <= WITHIN[dtype] * scale, f"{where}: {difference:.2g} of {scale:.2g}"
            if call.module is None and kind == "results":
                assert not one[other == 0].any(), f"{where}: not 0 where it should be"


# --- attention: (length, d_head) → what is given to scaled_dot_product_attention ---


def normal(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64)


def triple(length: int, d_head: int, queries: int | None = None, kv_heads: int = HEADS):
    queries = length if queries is None else queries
    sizes = ((HEADS, queries), (kv_heads, length), (kv_heads, length))
    return tuple(normal(BATCH, *size, d_head) for size in sizes)


def rows_without_keys(queries: int, keys: int) -> Tensor:
    """Some queries without keys, and a sequence without any."""
    mask = torch.rand(BATCH, 1, queries, keys) < 0.6
    mask[..., : queries // 3, :] = mask[1] = False
    return mask


def padded_left(length: int) -> Tensor:
    """(batch, 1, 1, key): with `causal_mask`, the first queries have no keys."""
    mask = torch.ones(BATCH, 1, 1, length, dtype=torch.bool)
    mask[0, ..., : length // 3] = mask[1, ..., :-1] = False
    return mask


def empty_source(length: int) -> Tensor:
    return padding_mask(torch.tensor([length, 0, length // 2]), length)[:, None]


def fewer(length: int) -> int:
    return length // 2 + 1


def one_head(length: int, d_head: int):
    q, k, v = (x[:, 0] for x in triple(length, d_head))
    return (q, k, v, rows_without_keys(length, length)[:, 0]), {}


#: Name → (length, d_head) → the arguments of attention, and its options.
ATTENTION = {
    "no mask": lambda n, d: (triple(n, d), {}),
    "rows without keys": lambda n, d: ((*triple(n, d), rows_without_keys(n, n)), {}),
    "rows without keys, three axes": one_head,
    "rows without keys, GQA": lambda n, d: (
        (*triple(n, d, kv_heads=KV_HEADS), rows_without_keys(n, n)), {"enable_gqa": True},
    ),
    "left padding, causal": lambda n, d: ((*triple(n, d), padded_left(n)), {"is_causal": True}),
    "left padding, causal, MQA": lambda n, d: (
        (*triple(n, d, kv_heads=1), padded_left(n)), {"is_causal": True, "enable_gqa": True},
    ),
    "an empty source": lambda n, d: ((*triple(n, d, fewer(n)), empty_source(n)), {}),
    "causal": lambda n, d: (triple(n, d), {"is_causal": True}),
    "causal, GQA": lambda n, d: (
        triple(n, d, kv_heads=KV_HEADS), {"is_causal": True, "enable_gqa": True},
    ),
    "causal, fewer queries": lambda n, d: (triple(n, d, fewer(n)), {"is_causal": True}),
    "causal, one query": lambda n, d: (triple(n, d, 1), {"is_causal": True}),
    "causal, a negative scale": lambda n, d: (triple(n, d), {"is_causal": True, "scale": -0.1}),
    "causal, scale 0": lambda n, d: (triple(n, d), {"is_causal": True, "scale": 0.0}),
    "a bias and rows without keys": lambda n, d: (
        (*triple(n, d, fewer(n)), rows_without_keys(fewer(n), n), normal(HEADS, fewer(n), n)), {},
    ),
}  # fmt: skip


def attended(query, key, value, mask=None, bias=None, **options):
    return scaled_dot_product_attention(query, key, value, mask, bias=bias, **options)


def attention_call(made: Callable, need_weights: bool, length: int, d_head: int) -> Call:
    inputs, options = made(length, d_head)
    both = (
        functools.partial(attended, need_weights=need, **options) for need in (need_weights, True)
    )
    ours, oracle = both
    return Call(ours, inputs, oracle=oracle if need_weights else lambda *given: oracle(*given)[:1])


# --- the other functions ---


def function(call: Callable, *inputs: Tensor, gradients: bool = True) -> Call:
    return Call(call, inputs, gradients=gradients)


def both_masks(mask: Tensor, scores: Tensor) -> tuple[Tensor, ...]:
    additive = to_additive(mask, scores.dtype)
    every = combine_masks(mask, causal_mask(*scores.shape[-2:], device=scores.device), None)
    return additive, from_additive(additive), every, masked_softmax(scores, every)


def counted(tokens: Tensor) -> tuple[Tensor, ...]:
    """All that is made of token ids, in whole numbers."""
    offsets = relative_positions(tokens.shape[1], tokens.shape[1] + 3, tokens.device)
    lengths = (tokens != PAD).sum(1)
    return padding_mask_from_tokens(tokens, PAD), padding_mask(lengths), offsets, t5_bucket(offsets)


def tables(x: Tensor) -> tuple[Tensor, ...]:
    """Made without arguments that are tensors, then moved."""
    made = alibi_slopes(HEADS), alibi_bias(HEADS, 5, 7), sinusoidal_table(5, 6)
    return tuple(table.to(x) for table in made)


def distinct(*shape: int) -> Tensor:
    """Numbers that differ in every dtype, so that none changes places with another by rounding."""
    return torch.stack([torch.randperm(shape[-1]) for _ in range(shape[0])]).double() / 8


def filtered(logits: Tensor) -> tuple[Tensor, ...]:
    return top_k(logits, 5), top_p(logits, 0.8), temperature(logits, 0.5)


def padding_of(length: int) -> Tensor:
    return empty_source(length)[:, 0]


def unit(x: Tensor) -> Tensor:
    return x / x.norm(dim=-1, keepdim=True)


def delta(n: int) -> tuple[Tensor, ...]:
    return unit(normal(BATCH, n, 8)), unit(normal(BATCH, n, 8)), normal(BATCH, n, 6), -torch.rand(BATCH, n).double(), torch.rand(BATCH, n).double()  # fmt: skip


def sequences(n: int, d: int) -> tuple[Tensor, ...]:
    return tuple(normal(BATCH, n, d) for _ in range(3))


#: Name → (length, d_head) → a call.
FUNCTIONS = {
    "masks": lambda n, d: function(both_masks, padded_left(n)[:, 0], normal(BATCH, n, n)),
    "masks and buckets of tokens": lambda n, d: function(counted, tokens(n), gradients=False),
    "tables of positions": lambda n, d: function(tables, normal(1), gradients=False),
    "rotary": lambda n, d: function(
        lambda x, at: (rotary(x, at), rotary(x, at, layout="half", partial_rotary_factor=0.5)),
        normal(BATCH, n, d), torch.arange(n),
    ),
    "heads": lambda n, d: function(
        lambda x: merge_heads(2 * split_heads(x, HEADS)), normal(BATCH, n, HEADS * d)
    ),
    "attend": lambda n, d: function(
        attend, normal(BATCH, n, n), normal(BATCH, n, d), rows_without_keys(n, n)[:, 0]
    ),
    "logits processors": lambda n, d: function(filtered, distinct(BATCH, 40), gradients=False),
    "flash": lambda n, d: function(
        functools.partial(efficient.flash_attention, block_size=16),
        *triple(n, d), rows_without_keys(n, n),
    ),
    "flash, causal": lambda n, d: function(
        functools.partial(efficient.flash_attention, causal=True, block_size=16), *triple(n, d)
    ),
    "window": lambda n, d: function(
        lambda *given: efficient.sliding_window_attention(*given[:3], 3, padding_mask=given[3]),
        *sequences(n, d), padding_of(n),
    ),
    "blocks": lambda n, d: function(
        lambda *given: efficient.block_attention(*given[:3], 4, causal=True, padding_mask=given[3]),
        *sequences(n, d), padding_of(n),
    ),
    "longformer": lambda n, d: function(
        lambda *given: efficient.longformer_attention(*given[:3], 2, [0, 3], padding_mask=given[3]),
        *sequences(n, d), padding_of(n),
    ),
    "linear": lambda n, d: function(
        lambda *given: efficient.linear_attention(*given[:3], padding_mask=given[3]),
        *sequences(n, d), padding_of(n),
    ),
    "linear, causal": lambda n, d: function(
        functools.partial(efficient.linear_attention, causal=True), *sequences(n, d)
    ),
    "performer": lambda n, d: function(
        functools.partial(efficient.performer_attention, causal=True),
        *(x / 4 for x in sequences(n, d)), efficient.orthogonal_projection(16, d).double(),
    ),
    "delta rule": lambda n, d: Call(
        functools.partial(today.delta_rule_in_chunks, chunk=16), delta(n), oracle=today.delta_rule
    ),
}  # fmt: skip


# --- layers and models ---


def tokens(length: int, *, rows: int = BATCH) -> Tensor:
    return torch.randint(3, VOCABULARY, (rows, length))


def config(positions: str, d_head: int) -> TransformerConfig:
    """A small model. Its activation is smooth: a rounding that moves a ReLU across 0 turns a gradient on or off."""
    sizes = {
        "target_vocabulary": VOCABULARY, "d_model": HEADS * d_head, "num_heads": HEADS, "num_kv_heads": KV_HEADS,
        "encoder_layers": 1, "decoder_layers": 2, "d_ff": 5 * d_head, "dropout": 0.0, "max_length": 512, "norm": "pre", "activation": "gelu",
    }  # fmt: skip
    return TransformerConfig(positions=positions, **sizes)


def inside(positions: str, d_head: int) -> nn.Module | None:
    return make_positions(positions, HEADS * d_head, HEADS, max_length=512).attention


def self_attention(positions: str, n: int, d: int) -> Call:
    layer = MultiHeadAttention(
        HEADS * d, HEADS, num_kv_heads=KV_HEADS, positions=inside(positions, d)
    )
    return Call(
        lambda layer, x, mask: layer(x, mask=mask, is_causal=True).output,
        (normal(BATCH, n, HEADS * d), padded_left(n)[:, 0]),
        layer,
        oracle=lambda layer, x, mask: layer(x, mask=mask, is_causal=True, need_weights=True).output,
    )  # fmt: skip


def encoder_layer(activation: str, norm: str, n: int, d: int) -> Call:
    block = EncoderLayer(HEADS * d, HEADS, 3 * d, activation=activation, norm_type=norm)
    inputs = (normal(BATCH, n, HEADS * d), padding_of(n))
    return Call(EncoderLayer.__call__, inputs, block, gradients=activation != "relu")


def decoder_layer(n: int, d: int) -> Call:
    memory = normal(BATCH, n, HEADS * d)
    inputs = (
        normal(BATCH, fewer(n), HEADS * d),
        memory,
        padded_left(fewer(n))[:, 0],
        padding_of(n),
    )
    block = DecoderLayer(HEADS * d, HEADS, 3 * d, num_kv_heads=KV_HEADS, activation="gelu")
    return Call(lambda block, *given: block(*given, is_causal=True), inputs, block)


def converted(n: int, d: int) -> Call:
    """Against PyTorch's layer, whose mask is the other way round."""
    layer = nn.MultiheadAttention(HEADS * d, HEADS, batch_first=True)
    return Call(
        lambda layer, x, mask: from_torch(layer)(x, mask=mask).output,
        (normal(BATCH, n, HEADS * d), torch.rand(n, n).fill_diagonal_(1) > 0.5),
        layer,
        oracle=lambda layer, x, mask: layer(x, x, x, attn_mask=~mask, need_weights=False)[0],
        gradients=False,
    )


def scored(score: nn.Module, n: int) -> Call:
    inputs = (normal(BATCH, fewer(n), 6), normal(BATCH, n, 6), normal(BATCH, n, 5))
    return Call(
        Attention.__call__, (*inputs, rows_without_keys(fewer(n), n)[:, 0]), Attention(score)
    )


def one_layer(kind: type[nn.Module], inputs: int, n: int) -> Call:
    given = tuple(normal(BATCH, n, 10) for _ in range(inputs))
    return Call(kind.__call__, (*given, rows_without_keys(n, n)[:, 0]), kind(10, 6))


def of_vectors(module: nn.Module, n: int) -> Call:
    return Call(type(module).__call__, (normal(BATCH, n, 8),), module)


LAYERS = {
    **{
        f"MultiHeadAttention, GQA, {name}": functools.partial(self_attention, name)
        for name in ENCODINGS
    },
    **{
        f"EncoderLayer, {activation}, {norm}": functools.partial(encoder_layer, activation, norm)
        for activation, norm in zip(ACTIVATIONS, [*NORM_TYPES] * 2, strict=False)
    },
    "DecoderLayer, GQA": decoder_layer,
    "from_torch": converted,
    "SingleHeadAttention": lambda n, d: one_layer(SingleHeadAttention, 3, n),
    "SelfAttention": lambda n, d: one_layer(SelfAttention, 1, n),
    "CrossAttention": lambda n, d: one_layer(CrossAttention, 2, n),
    "DotScore": lambda n, d: scored(DotScore(), n),
    "ScaledDotScore": lambda n, d: scored(ScaledDotScore(), n),
    "GeneralScore": lambda n, d: scored(GeneralScore(6, 6), n),
    "ConcatScore": lambda n, d: scored(ConcatScore(6, 6, 4), n),
    "AdditiveScore": lambda n, d: scored(AdditiveScore(6, 6, 4), n),
    "GaussianScore": lambda n, d: scored(GaussianScore(2.0), n),
    "FeedForward": lambda n, d: of_vectors(FeedForward(8, 12, activation="swiglu"), n),
    "LayerNorm": lambda n, d: of_vectors(make_norm("layer", 8), n),
    "RMSNorm": lambda n, d: of_vectors(make_norm("rms", 8), n),
    "Dropout, off": lambda n, d: of_vectors(Dropout(0.3).eval(), n),
    "TokenEmbedding": lambda n, d: Call(
        TokenEmbedding.__call__, (tokens(n),), TokenEmbedding(VOCABULARY, 8)
    ),
    "InputEmbedding": lambda n, d: Call(
        InputEmbedding.__call__, (tokens(n),),
        InputEmbedding(VOCABULARY, config("none", d), make_positions("sinusoidal", HEADS * d, HEADS, max_length=512).embedding),
    ),
    "LinformerAttention": lambda n, d: Call(
        lambda layer, x, mask: layer(x, mask).output,
        (normal(BATCH, n, 12), padding_of(n)), efficient.LinformerAttention(12, 3, n, 4),
    ),
    "LatentAttention": lambda n, d: of_vectors(
        today.LatentAttention(8, 2, d_latent=6, d_nope=4, d_rope=2, d_value=5), n
    ),
    "GatedDeltaLayer": lambda n, d: Call(
        lambda layer, x: layer(x, chunk=16)[0], (normal(BATCH, n, 8),),
        today.GatedDeltaLayer(8, key_heads=2, value_heads=2, d_key=4, d_value=4),
    ),
}  # fmt: skip


def with_padding(positions: str, n: int) -> Tensor:
    """A row padded on the left, where the encoding allows it, and one of padding alone."""
    made = tokens(n)
    if positions in SHIFT_INVARIANT:
        made[0, : n // 3] = PAD
    made[1] = PAD
    return made


def model_call(kind: type, positions: str, n: int, d: int) -> Call:
    model = kind(config(positions, d))
    read = (with_padding(positions, n),)
    return Call(
        kind.__call__, read if kind is DecoderOnly else (*read, tokens(fewer(n))), model.eval()
    )


MODELS = {
    f"{kind.__name__}, GQA, {name}": functools.partial(model_call, kind, name)
    for kind in (Transformer, DecoderOnly)
    for name in ENCODINGS
}


def continued(model: DecoderOnly, text: Tensor, *, room: bool) -> Tensor:
    """Logits of a text that is read in pieces, with a cache that grows, or one with room for a little more."""
    prompt = text.shape[1] - 5
    state = TransformerState(model.new_cache())
    logits = [model(text[:, :prompt], cache=state.cache)]
    if room:
        model.reserve(state, 7)
        assert isinstance(state.cache, StaticCache)
    else:
        assert isinstance(state.cache.blocks[0].self_attention, KeyValueCache)
    for piece in text[:, prompt:].split([1, 1, 3], dim=1):
        logits.append(model(piece, cache=state.cache))
    return torch.cat(logits, dim=1)


def in_session(model: Transformer, source: Tensor, target: Tensor) -> Tensor:
    """Logits of a target that is read token by token; rows change places on the way."""
    session = DecodingSession(model, source, bos_id=BOS)
    logits = [session.logits]
    for place, token in enumerate(target.T):
        logits.append(session.step(token))
        if place == 1:
            session.reorder(torch.arange(len(source), device=source.device).flip(0))
            logits = [one.flip(0) for one in logits]
    return torch.stack(logits, dim=1)


def at_once(model: Transformer, source: Tensor, target: Tensor) -> Tensor:
    start = target.new_full((len(target), 1), BOS)
    read = torch.cat([start, target[:, :2].flip(0), target[:, 2:]], dim=1)
    return model(source.flip(0), read)


def cached_call(positions: str, room: bool, n: int, d: int) -> Call:
    text = with_padding(positions, n)
    text[1] = text[2]
    model = DecoderOnly(config(positions, d)).eval()
    read = functools.partial(continued, room=room)
    return Call(read, (text,), model, oracle=DecoderOnly.__call__, gradients=False)


def session_call(positions: str, n: int, d: int) -> Call:
    model = Transformer(config(positions, d)).eval()
    source = tokens(n)
    source[0, n // 2 :] = source[1] = PAD  # padded on the right, and empty
    return Call(in_session, (source, tokens(6)), model, oracle=at_once, gradients=False)


#: Against the whole sequence at once.
CACHES = {
    **{
        f"{kind} cache, {name}": functools.partial(cached_call, name, kind == "static")
        for kind in ("growing", "static")
        for name in ENCODINGS
    },
    **{f"session, {name}": functools.partial(session_call, name) for name in ENCODINGS},
}


# --- decoding: what is generated is judged by float64, since a rounding may turn near ties ---


def log_probabilities(model: nn.Module, source: Tensor, generated: Tensor) -> Tensor:
    """(batch, target, vocabulary), of the whole text at once."""
    if isinstance(model, Transformer):
        start = generated.new_full((len(generated), 1), BOS)
        return model(source, torch.cat([start, generated[:, :-1]], 1)).log_softmax(-1)
    text = torch.cat([source, generated[:, :-1]], 1)
    return model(text)[:, source.shape[1] - 1 :].log_softmax(-1)


def lines(model: nn.Module, source: Tensor, **options: Any) -> Tensor:
    return torch.stack(list(stream(model, source, **options)), 1)


def looked_up(model: nn.Module, source: Tensor, **options: Any) -> Tensor:
    return torch.cat(
        [torch.stack(list(prompt_lookup(model, one[None], **options)), 1) for one in source]
    )


def almost_greedy(model: nn.Module, source: Tensor, *processors: Callable, **options: Any):
    return sample(model, source, logits_processors=processors, seed=0, **options)


#: Name → what generates the most probable tokens.
GREEDY = {
    "greedy": greedy,
    "stream": lines,
    "prompt_lookup": looked_up,
    "sample, top_k": lambda *given, **options: almost_greedy(
        *given, functools.partial(top_k, k=1), **options
    ),
    "sample, top_p and temperature": lambda *given, **options: almost_greedy(
        *given,
        functools.partial(temperature, t=0.5),
        functools.partial(top_p, p=1e-6),
        **options,
    ),
}


def decided(kind: type, positions: str, d: int) -> nn.Module:
    """A model with a clear preference at each step."""
    model = kind(config(positions, d)).eval()
    nn.init.normal_(model.lm_head.weight, std=6 / (HEADS * d) ** 0.5)
    return model


@torch.no_grad()
def check_decoding(name: str, kind: type, positions: str, size, device: str, dtype: torch.dtype):
    """Each token is the most probable one, up to rounding; the score of a beam is its log-probability."""
    n, d = size
    model, source = decided(kind, positions, d).to(dtype), tokens(n)
    if kind is DecoderOnly and positions in SHIFT_INVARIANT and name != "prompt_lookup":
        source[0, : n // 3] = PAD
    exact, there = copy.deepcopy(model).double(), copy.deepcopy(model).to(device)
    if name == "beam_search":
        beams = beam_search(
            there, source.to(device), 3, 0.0, max_length=9, bos_id=BOS, eos_id=VOCABULARY - 1
        )
        best = beam_search(exact, source, 3, 0.0, max_length=9, bos_id=BOS, eos_id=VOCABULARY - 1)
        generated, scores = beams.tokens[:, 0].cpu(), beams.scores[:, 0].double().cpu()
    else:
        generated = GREEDY[name](there, source.to(device), max_length=9, eos_id=-1).cpu()
    logs = log_probabilities(exact, source, generated)
    spread = (logs.amax() - logs.amin()).item()
    chosen = logs.gather(-1, generated[..., None])[..., 0]  # (batch, target)
    if name == "beam_search":
        ends = (generated == VOCABULARY - 1).int()
        total = chosen.masked_fill((ends.cumsum(1) - ends).bool(), 0.0).sum(1)
        assert (scores - total).abs().max() <= WITHIN[dtype] * spread
        assert (best.scores[:, 0] - total).max() <= WITHIN[dtype] * spread
    else:
        assert generated.shape == (BATCH, 9)
        assert (logs.amax(-1) - chosen).max() <= WITHIN[dtype] * spread


DECODING = [
    pytest.param(name, kind, positions, id=f"{name}-{kind.__name__}-{encoding_id(positions)}")
    for name in (*GREEDY, "beam_search")
    for kind in (DecoderOnly, Transformer)
    for positions in ENCODINGS
    if not (kind is Transformer and (name == "prompt_lookup" or positions != "sinusoidal"))
]


# --- all rows ---


def sized(name: str, made: Callable, lengths, d_heads) -> Iterator:
    for n in lengths:
        for d in d_heads:
            make = functools.partial(made, n, d)
            yield pytest.param(make, id=f"{encoding_id(name)}, length {n}, head {d}")


def rows(sizes: Sizes) -> list:
    """What `compare` takes, in all sizes."""
    found = []
    for name, made in ATTENTION.items():
        for need_weights in (False, True):
            call = functools.partial(attention_call, made, need_weights)
            called = f"attention, {name}, {'with weights' if need_weights else 'fused'}"
            found += sized(called, call, sizes.lengths, [sizes.d_head])
            found += sized(called, call, sizes.beside, sizes.d_heads)
    for table in (FUNCTIONS, LAYERS, MODELS, CACHES):
        for name, made in table.items():
            found += sized(name, made, sizes.others, [sizes.d_head])
    return found


def compiled_rows(sizes: Sizes, encodings: Iterable[str] = ENCODINGS) -> list:
    """Fewer, because a compiler takes seconds for each."""
    n, found = 64, []
    for name, made in ATTENTION.items():
        call = functools.partial(attention_call, made, False)
        found += sized(f"attention, {name}", call, [n], [sizes.d_head])
    for name in (*(f"DecoderOnly, GQA, {one}" for one in encodings), "Transformer, GQA, rotary"):
        found += sized(name, MODELS[name], [n], [sizes.d_head])
    return found
