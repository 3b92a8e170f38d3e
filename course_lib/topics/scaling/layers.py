"""Parameters, FLOPs and numbers kept of the layers of today's models, each from its sizes alone.

A layer has a mixer, which lets tokens exchange something, and a feed-forward part. What a mixer keeps and what it looks
at are lists of small terms, so that windows, summaries and top-k are the same formula with other limits.
"""

from typing import NamedTuple


class Kept(NamedTuple):
    """Numbers that stay from token to token.

    Attributes:
        numbers: per entry.
        rate: one entry per so many tokens.
        most: entries at most; None for no limit.
        waiting: numbers per token that has no entry yet.
        carried: numbers of the last entry that the next one needs.
        size: bytes of each number; None for those of the model.
    """

    numbers: int
    rate: int = 1
    most: int | None = None
    waiting: int = 0
    carried: int = 0
    size: int | None = None

    def at(self, length: int) -> int:
        """Return how many numbers after `length` tokens."""
        entries, waiting = divmod(length, self.rate)
        extra = self.waiting * waiting + self.carried * (entries > 0)
        return self.numbers * (entries if self.most is None else min(entries, self.most)) + extra


class Mixer(NamedTuple):
    """What lets tokens exchange something.

    Attributes:
        kind: "global", "window", "linear", "sparse" or "compressed".
        parameters: all of them.
        matrices: those in matrix products, two FLOPs each per token.
        kept: numbers in the dtype of the model.
        looks: FLOPs per entry that a query looks at, with how many there are.
        state: numbers whose count never changes, in the dtype of the model.
        memory: such numbers that every token reads and changes, six FLOPs each.
        memory_size: bytes of each of them; None for those of the model.
    """

    kind: str
    parameters: int
    matrices: int
    kept: tuple[Kept, ...] = ()
    looks: tuple[Kept, ...] = ()
    state: int = 0
    memory: int = 0
    memory_size: int | None = 4

    def cache_bytes(self, length: int, size: int = 2) -> int:
        """Return the bytes kept after `length` tokens, with `size` bytes per number of the model."""
        memory = self.memory * (self.memory_size or size)
        kept = sum(kept.at(length) * (kept.size or size) for kept in self.kept)
        return size * self.state + kept + memory

    def flops(self, length: int) -> int:
        """Return the FLOPs of one token that may look at `length` tokens."""
        return 2 * self.matrices + 6 * self.memory + sum(look.at(length) for look in self.looks)


class Network(NamedTuple):
    """The feed-forward part of a layer.

    Attributes:
        kind: "dense" or "experts".
        parameters: all of them.
        active: those that one token meets.
        matrices: of these, those in matrix products, two FLOPs each.
    """

    kind: str
    parameters: int
    active: int
    matrices: int


def attention(
    d: int,
    heads: int,
    kv_heads: int,
    d_head: int,
    *,
    window: int | None = None,
    qkv_bias: bool = False,
    out_bias: bool = False,
    norms: int = 0,
    gate: int = 0,
    sinks: bool = False,
    kv_projections: int = 2,
    indexer: tuple[int, int] | None = None,
    k: int | None = None,
) -> Mixer:
    """Count attention with query groups.

    Args:
        d, heads, kv_heads, d_head: the sizes.
        window: how many tokens a query sees, itself included; between two tokens one fewer stays.
        qkv_bias, out_bias: which matrices have one.
        norms: parameters of the normalisations of queries and keys.
        gate: how many numbers of a gate each head's output has: none, 1 or `d_head`.
        sinks: whether each head has one.
        kv_projections: 2; 1 where the values are the keys; 0 where both are those of a layer before, which keeps them.
        indexer: heads and dimension of an indexer with its own projections from `d` and two norms.
        k: how many tokens it keeps.
    """
    q, kv = heads * d_head, kv_heads * d_head
    projected = q + heads * gate + kv_projections * kv
    matrices = d * projected + q * d
    rest = qkv_bias * projected + out_bias * d + norms + sinks * heads
    kept = [Kept(2 * kv, most=None if window is None else window - 1)] if kv_projections else []
    looks = [Kept(4 * q, most=k if k is not None else window)]
    if indexer is not None:
        heads, d_index = indexer
        matrices += d * (heads + 1) * d_index
        rest += 2 * d_index
        kept.append(Kept(d_index))
        looks.append(Kept(2 * heads * d_index))
    kind = "sparse" if indexer else "window" if window else "global"
    return Mixer(kind, matrices + rest, matrices, tuple(kept), tuple(looks))


def latent(
    d: int,
    heads: int,
    *,
    d_latent: int,
    d_nope: int,
    d_rope: int,
    d_value: int,
    d_query: int | None,
    bias: bool = False,
    gate: int = 0,
    extra: int = 0,
    window: int | None = None,
    indexer: tuple[int, int] | None = None,
    index_input: int = 0,
    index_extra: int = 0,
    index_matrices: int = 0,
    index_rate: int = 1,
    k: int | None = None,
) -> Mixer:
    """Count multi-head latent attention, with or without an indexer.

    FLOPs are those of a pass over a text, in which each token makes its keys and values once.

    Args:
        d, heads: of the layer.
        d_latent, d_nope, d_rope, d_value, d_query: as in `LatentAttention`.
        bias: of the projections to the latent vectors and of the output.
        gate: how many numbers of a gate each head's output has: none, 1 or `d_value`.
        extra: parameters outside matrices, such as scales of the scores and sinks.
        window: as in `attention`.
        indexer: heads and dimension of the indexer; None for dense attention.
        index_input: the dimension from which the indexer projects its queries.
        index_extra, index_matrices: further parameters of the indexer, outside of and in matrices.
        index_rate: how many tokens the indexer pools to one entry.
        k: how many tokens are kept; without an indexer the choice is that of a layer before.
    """
    width = heads * (d_nope + d_rope)
    matrices = (d * d_query + d_query * width) if d_query else d * width
    matrices += (
        d * (d_latent + d_rope) + d_latent * heads * (d_nope + d_value) + heads * d_value * d
    )
    matrices += d * heads * gate
    rest = d_latent + (d_query or 0) + bias * ((d_query or 0) + d_latent + d_rope + d) + extra
    kept = [Kept(d_latent + d_rope, most=None if window is None else window - 1)]
    looks = [Kept(2 * heads * (d_nope + d_rope + d_value), most=k if k is not None else window)]
    if indexer is not None:
        heads, d_index = indexer
        matrices += index_input * heads * d_index + d * d_index + d * heads + index_matrices
        rest += 2 * d_index + index_extra
        kept.append(Kept(d_index))
        looks.append(Kept(2 * heads * d_index, index_rate))
    kind = "sparse" if k is not None else "window" if window is not None else "global"
    return Mixer(kind, matrices + rest, matrices, tuple(kept), tuple(looks))


def delta(
    d: int,
    *,
    key_heads: int,
    value_heads: int,
    d_key: int,
    d_value: int,
    width: int,
    per_component: bool = False,
    rank: int | None = None,
) -> Mixer:
    """Count a gated delta layer.

    Args:
        d, key_heads, value_heads, d_key, d_value, width: as in `GatedDeltaLayer`.
        per_component: whether each component of a key has a decay of its own, as in Kimi Delta Attention, or each head one.
        rank: of the matrices of these decays and of the output gate; None for full rank.
    """
    keys, values = key_heads * d_key, value_heads * d_value
    channels = 2 * keys + values
    matrices = d * channels + d * value_heads + values * d
    decays = keys if per_component else value_heads
    for outputs in (decays, values):
        matrices += d * outputs if rank is None else (d + outputs) * rank
    rest = decays + value_heads
    convolution = channels * width
    memory = value_heads * d_key * d_value
    parameters = matrices + convolution + rest + d_value
    return Mixer("linear", parameters, matrices + convolution, state=convolution, memory=memory)


def lightning(d: int, heads: int, d_head: int) -> Mixer:
    """Count lightning attention: a state with a fixed decay per head, a norm and a gate of the output."""
    width = heads * d_head
    matrices = d * 3 * width + 2 * width * d
    memory = heads * d_head * d_head
    return Mixer("linear", matrices + width, matrices, memory=memory, memory_size=None)


def short_convolution(d: int, width: int) -> Mixer:
    """Count a gated convolution over `width` tokens, channel by channel: projections to it and to two gates, and back."""
    matrices = 4 * d * d + d * width
    return Mixer("window", matrices, matrices, state=d * width)


def compressed(
    d: int,
    heads: int,
    d_head: int,
    *,
    d_query: int,
    groups: int,
    d_out: int,
    window: int,
    rate: int | None = None,
    overlap: bool = False,
    indexer: tuple[int, int] | None = None,
    k: int | None = None,
) -> Mixer:
    """Count DeepSeek-V4's attention: one head that is key and value, a window, and summaries of `rate` tokens.

    Args:
        d, heads, d_head: of the layer.
        d_query: the dimension of the latent vector of the queries.
        groups, d_out: of the output projection, by groups of heads.
        window: tokens at full detail.
        rate: how many tokens a summary stands for; None for no summaries.
        overlap: whether each summary also covers the tokens of the one before, with projections of their own.
        indexer: heads and dimension of what chooses among the summaries.
        k: how many are kept.
    """
    q, series = heads * d_head, 1 + overlap
    matrices = d * d_query + d_query * q + d * d_head + q * d_out + groups * d_out * d
    rest = d_query + d_head + heads
    # without summaries, transformers keeps the vectors as keys and once more as values
    twice = 1 + (rate is None)
    kept, looks = [Kept(d_head * twice, most=window - 1)], [Kept(4 * q, most=window)]
    if rate is not None:
        matrices += 2 * d * d_head * series
        rest += rate * d_head * series + d_head
        kept.append(_summaries(d_head, rate, overlap))
        looks.append(Kept(4 * q, rate, k))
    if indexer is not None:
        heads, d_index = indexer
        matrices += 2 * d * d_index * series + d_query * heads * d_index + d * heads
        rest += rate * d_index * series + d_index
        kept.append(_summaries(d_index, rate, overlap))
        looks.append(Kept(2 * heads * d_index, rate))
    kind = "window" if rate is None else "compressed"
    return Mixer(kind, matrices + rest, matrices, tuple(kept), tuple(looks))


def _summaries(d: int, rate: int, overlap: bool) -> Kept:
    """The summaries, vectors and gates of tokens that wait for theirs, and those of the last `rate` tokens."""
    return Kept(d, rate, waiting=2 * d * (1 + overlap), carried=2 * d * rate * overlap)


def dense(d: int, d_ff: int, *, gated: bool = True, bias: bool = False) -> Network:
    """Count a feed-forward network of two matrices, or of three with a gate."""
    matrices = d * d_ff * (2 + gated)
    count = matrices + bias * (d_ff * (1 + gated) + d)
    return Network("dense", count, count, matrices)


def experts(
    d: int,
    d_ff: int,
    num_experts: int,
    k: int,
    *,
    d_shared: int = 0,
    shared_gate: bool = False,
    bias: bool = False,
    router_bias: bool = False,
) -> Network:
    """Count a mixture of experts with SwiGLU networks, of which a token meets `k`.

    Args:
        d, d_ff, num_experts, k: the sizes.
        d_shared: of the network that every token passes.
        shared_gate: whether its output has a gate of one number.
        bias: whether experts and router have one.
        router_bias: whether the router has one, as parameters.
    """
    one = 3 * d * d_ff
    always = num_experts * d + 3 * d * d_shared + shared_gate * d
    biases, added = bias * (2 * d_ff + d), (bias or router_bias) * num_experts
    return Network(
        "experts",
        num_experts * (one + biases) + always + added,
        k * (one + biases) + always + added,
        k * one + always,
    )
