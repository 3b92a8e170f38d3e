"""From a configuration to the layers it makes: one function per family of models.

Each takes a configuration with the names of `transformers` and returns the parts of an `Anatomy`. A layer is written as a
mixer, a feed-forward part, and how many parameters stand beside them: norms, mixing of streams, embeddings per layer.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from course_lib.topics.scaling.layers import (
    Mixer,
    Network,
    attention,
    compressed,
    delta,
    dense,
    experts,
    latent,
    lightning,
    short_convolution,
)
from course_lib.validation import require_one_of


class Layer(NamedTuple):
    """One layer of a model.

    Attributes:
        mixer: what lets tokens exchange something.
        network: the feed-forward part.
        rest: parameters of its norms and of what else stands beside the two.
    """

    mixer: Mixer
    network: Network
    rest: int

    @property
    def parameters(self) -> int:
        """All of them."""
        return self.mixer.parameters + self.network.parameters + self.rest

    @property
    def active(self) -> int:
        """Those that one token meets."""
        return self.parameters - self.network.parameters + self.network.active


class Parts(NamedTuple):
    """What a configuration makes: the layers, and the parameters of embeddings, output layer and all else.

    `looked_up` are those of `rest` from which a token reads a row: learned positions, embeddings per layer."""

    layers: list[Layer]
    embedding: int
    lm_head: int
    rest: int
    looked_up: int = 0


Config = Mapping


def _sizes(c: Config) -> tuple[int, int, int, int]:
    d, heads = c["hidden_size"], c["num_attention_heads"]
    return d, heads, c.get("num_key_value_heads") or heads, c.get("head_dim") or d // heads


def _biases(c: Config, default: bool = False) -> dict[str, bool]:
    """Whether the projections of attention have biases."""
    bias = c.get("attention_bias", default)
    return {"qkv_bias": bias, "out_bias": bias}


def _parts(c: Config, layers: list[Layer], rest: int | None = None) -> Parts:
    d, vocabulary = c["hidden_size"], c["vocab_size"]
    head = 0 if c.get("tie_word_embeddings") else d * vocabulary
    return Parts(layers, d * vocabulary, head, d if rest is None else rest)


def _each(c: Config, one: Callable[[int], Layer]) -> list[Layer]:
    return [one(i) for i in range(c["num_hidden_layers"])]


def _by_kind(
    c: Config,
    mixers: Mapping[str, Mixer],
    network: Callable[[int], Network],
    rest: int | None = None,
    outside: int | None = None,
) -> Parts:
    """Layers whose mixer is that of their kind in `layer_types`."""
    for kind in c["layer_types"]:
        require_one_of(mixers, layer_types=kind)
    rest = 2 * c["hidden_size"] if rest is None else rest
    layers = _each(c, lambda i: Layer(mixers[c["layer_types"][i]], network(i), rest))
    return _parts(c, layers, outside)


def _window(c: Config, layer: int) -> int | None:
    """The window of a layer: by its type where there are types, else of all."""
    kinds = c.get("layer_types")
    if kinds is None:
        return c.get("sliding_window")
    width = {"sliding_attention": "sliding_window", "chunked_attention": "attention_chunk_size"}
    return c[width[kinds[layer]]] if kinds[layer] in width else None


def _gpt2(c: Config) -> Parts:
    d, heads = c["n_embd"], c["n_head"]
    mixer = attention(d, heads, heads, d // heads, qkv_bias=True, out_bias=True)
    network = dense(d, c.get("n_inner") or 4 * d, gated=False, bias=True)
    layers = [Layer(mixer, network, 4 * d)] * c["n_layer"]
    positions, embedding = d * c["n_positions"], d * c["vocab_size"]
    head = 0 if c.get("tie_word_embeddings", True) else embedding
    return Parts(layers, embedding, head, positions + 2 * d, looked_up=positions)


def _gpt_neox(c: Config) -> Parts:
    d, heads = c["hidden_size"], c["num_attention_heads"]
    mixer = attention(d, heads, heads, d // heads, **_biases(c, default=True))
    network = dense(d, c["intermediate_size"], gated=False, bias=True)
    return _parts(c, _each(c, lambda _: Layer(mixer, network, 4 * d)), 2 * d)


def _llama(c: Config, **options) -> Parts:
    """LLaMA and what keeps its block: windows, norms of queries and keys, and norms after sublayers are options."""
    d, heads, kv, width = _sizes(c)
    norms, qk = options.pop("norms", 2), options.pop("qk", 0)
    plain = dense(d, c["intermediate_size"], bias=c.get("mlp_bias", False))
    network = options.pop("network", lambda _: plain)
    options = _biases(c) | options
    return _parts(
        c,
        _each(
            c,
            lambda i: Layer(
                attention(
                    d, heads, kv, width, window=_window(c, i),
                    norms=qk and (2 * width if qk == "head" else (heads + kv) * width), **options,
                ),
                network(i),
                norms * d,
            ),
        ),
    )  # fmt: skip


def _mixture(c: Config, first_dense: int = 0, **options) -> Callable[[int], Network]:
    """The experts of a configuration, by any of the names that these have; dense layers where it says so."""
    d, kinds = c["hidden_size"], c.get("mlp_layer_types")
    dense_layers, every = c.get("mlp_only_layers") or (), c.get("decoder_sparse_step") or 1
    number = next(c[k] for k in ("num_experts", "n_routed_experts", "num_local_experts") if k in c)
    k = c.get("num_experts_per_tok") or c["num_experts_per_token"]
    width = c.get("moe_intermediate_size") or c["intermediate_size"]
    shared_width = c.get("shared_experts_intermediate_size") or width
    shared = (c.get("n_shared_experts") or c.get("num_shared_experts") or 0) * shared_width
    shared = (
        shared or c.get("shared_expert_intermediate_size") or c.get("shared_intermediate_size") or 0
    )
    options = {"shared_gate": "shared_expert_intermediate_size" in c} | options  # as in Qwen
    made = experts(d, width, number, k, d_shared=shared, **options)
    wide = c.get("dense_intermediate_size") or c.get("intermediate_size")

    def network(layer: int) -> Network:
        if kinds:
            is_dense = kinds[layer] == "dense"
        else:
            is_dense = layer < first_dense or layer in dense_layers or (layer + 1) % every > 0
        return dense(d, wide) if is_dense else made

    return network


def _gpt_oss(c: Config) -> Parts:
    d, width = c["hidden_size"], c["intermediate_size"]
    made = experts(d, width, c["num_local_experts"], c["num_experts_per_tok"], bias=True)
    return _llama(c, sinks=True, network=lambda _: made)


def _llama4(c: Config) -> Parts:
    d, sparse = c["hidden_size"], set(c["moe_layers"])
    made = experts(
        d, c["intermediate_size"], c["num_local_experts"], c["num_experts_per_tok"],
        d_shared=c["intermediate_size"],
    )  # fmt: skip
    plain = dense(d, c["intermediate_size_mlp"])
    return _llama(c, network=lambda i: made if i in sparse else plain)


def _minimax(c: Config) -> Parts:
    d, heads, kv, width = _sizes(c)
    mixers = {
        "linear_attention": lightning(d, heads, width),
        "full_attention": attention(d, heads, kv, width),
    }
    return _by_kind(c, mixers, _mixture(c))


def _minimax_m3(c: Config) -> Parts:
    d, heads, kv, width = _sizes(c)
    options = {"norms": 2 * width}
    sparse = attention(
        d, heads, kv, width, indexer=(c["index_n_heads"], c["index_head_dim"]),
        k=c["index_topk_blocks"] * c["index_block_size"], **options,
    )  # fmt: skip
    full = attention(d, heads, kv, width, **options)
    return _by_kind(c, {"full_attention": full, "minimax_m3_sparse": sparse}, _mixture(c))


def _delta(c: Config, **options) -> Mixer:
    if "linear_num_heads" in c:  # Kimi Delta Attention
        heads, width = c["linear_num_heads"], c["linear_head_dim"]
        sizes = {"key_heads": heads, "value_heads": heads, "d_key": width, "d_value": width}
        return delta(
            c["hidden_size"],
            **sizes,
            width=c["linear_conv_kernel_dim"],
            per_component=True,
            **options,
        )
    return delta(
        c["hidden_size"], key_heads=c["linear_num_key_heads"], value_heads=c["linear_num_value_heads"],
        d_key=c["linear_key_head_dim"], d_value=c["linear_value_head_dim"], width=c["linear_conv_kernel_dim"],
    )  # fmt: skip


def _qwen_delta(c: Config) -> Parts:
    d, heads, kv, width = _sizes(c)
    full = attention(d, heads, kv, width, norms=2 * width, gate=width, **_biases(c))
    network = _mixture(c) if c.get("num_experts") else lambda _: dense(d, c["intermediate_size"])
    return _by_kind(c, {"linear_attention": _delta(c), "full_attention": full}, network)


def _olmo_hybrid(c: Config) -> Parts:
    d, heads, kv, width = _sizes(c)
    full = attention(d, heads, kv, width, norms=(heads + kv) * width, **_biases(c))
    network = dense(d, c["intermediate_size"])
    mixers = {"linear_attention": _delta(c), "full_attention": full}
    return _by_kind(c, mixers, lambda _: network)


def _latent(c: Config, **options) -> Mixer:
    sizes = {
        "d_latent": c["kv_lora_rank"], "d_nope": c["qk_nope_head_dim"], "d_rope": c["qk_rope_head_dim"],
        "d_value": c["v_head_dim"], "d_query": c.get("q_lora_rank"),
    }  # fmt: skip
    bias = c.get("attention_bias", False)
    return latent(c["hidden_size"], c["num_attention_heads"], **(sizes | {"bias": bias} | options))


def _indexer(c: Config) -> dict:
    heads = c["index_n_heads"], c["index_head_dim"]
    return {"indexer": heads, "index_input": c.get("q_lora_rank"), "k": c["index_topk"]}


def _deepseek(c: Config, rest: int | None = None, outside: int | None = None, **options) -> Parts:
    """DeepSeek-V2, V3 and V3.2, GLM-5 and Mistral Small 4; options of the mixer, and parameters beside it, for Hy4."""
    network = _mixture(c, c.get("first_k_dense_replace") or 0)
    own = _latent(c, **(_indexer(c) if "index_topk" in c else {}), **options)
    taken = _latent(c, k=c.get("index_topk"), **options)  # takes the choice of a layer before
    shared = c.get("indexer_types")
    rest = 2 * c["hidden_size"] if rest is None else rest

    def one(i: int) -> Layer:
        return Layer(taken if shared and shared[i] == "shared" else own, network(i), rest)

    return _parts(c, _each(c, one), outside)


def _hy4(c: Config) -> Parts:
    d, heads, n = c["hidden_size"], c["num_attention_heads"], c["hc_mult"]
    rest, outside = 2 * d + _streams(c, mixed=False), d + n * n * d + n + 1
    return _deepseek(c, rest, outside, gate=c["v_head_dim"], extra=heads)


def _dots3(c: Config) -> Parts:
    """Latent attention with a window in most layers, whose sizes may be others; a gate per head, a norm of the rotated key."""
    network, special = _mixture(c), {int(i): sizes for i, sizes in c["per_layer_config"].items()}
    options = {"gate": 1, "extra": c["qk_rope_head_dim"]}

    def one(i: int) -> Layer:
        sizes, window = c | special.get(i, {}), _window(c, i)
        if window:
            mixer = _latent(sizes, window=window, **options)
        else:  # its rotation leaves the keys of the indexer in float32
            mixer = _latent(sizes, **_indexer(c), **options)
            mixer = mixer._replace(kept=(mixer.kept[0], mixer.kept[1]._replace(size=4)))
        return Layer(mixer, network(i), 2 * c["hidden_size"])

    return _parts(c, _each(c, one))


def _mistral_large4(c: Config) -> Parts:
    d, heads, network = c["hidden_size"], c["num_attention_heads"], _mixture(c)
    index_heads = c["index_n_heads"]
    options = _indexer(c) | {
        "extra": 2 * heads,
        "index_input": d,
        "index_extra": 2 * d + 2 * index_heads,
    }
    both = c["qk_nope_head_dim"] + c["qk_rope_head_dim"]
    rotated = _latent(c, **options)
    plain = _latent(c, **options, d_nope=both, d_rope=0)
    rope = c["no_rope_layers"]
    layers = _each(c, lambda i: Layer(rotated if rope[i] else plain, network(i), 2 * d))
    return _parts(c, layers, d + c["qk_rope_head_dim"] // 2)


def _streams(c: Config, *, mixed: bool = True) -> int:
    """Parameters of the two hyper-connections of a layer, with a matrix that mixes the streams or without."""
    n = c["hc_mult"]
    return 2 * ((2 + n * mixed) * n * (n * c["hidden_size"] + 1) + 2 + mixed)


def _kimi(c: Config) -> Parts:
    linear = _delta(c, rank=c["linear_head_dim"])
    mixers = {"linear_attention": linear, "full_attention": _latent(c)}
    return _by_kind(_untied(c), mixers, _mixture(c))


def _untied(c: Config) -> Config:
    """The classes of transformers 5.24 make an output layer, even where `tie_word_embeddings` is set."""
    return c | {"tie_word_embeddings": False}


def _bailing(c: Config) -> Parts:
    """Ling 3.0: Kimi's layers, with matrices of full rank for decays and gates, and a gate per head of attention."""
    mixers = {"linear_attention": _delta(c), "full_attention": _latent(c, gate=1)}
    return _by_kind(_untied(c), mixers, _mixture(c))


def _lfm3(c: Config) -> Parts:
    d, heads, kv, width = _sizes(c)
    options = {"norms": 2 * width, "gate": int(c["use_attention_gate"])}
    mixers = {
        "conv": short_convolution(d, c["conv_L_cache"]),
        "full_attention": attention(d, heads, kv, width, **options),
        "sliding_attention": attention(d, heads, kv, width, window=c["sliding_window"], **options),
    }
    network, norms = dense(d, c["intermediate_size"]), 4 if c["use_sandwich_norm"] else 2
    return _by_kind(c, mixers, lambda _: network, norms * d)


def _laguna(c: Config) -> Parts:
    d, _, kv, width = _sizes(c)
    per_head = c["gating"] in (True, "per-head")
    network = _mixture(c, shared_gate=False, router_bias=True)

    def one(i: int) -> Layer:
        options = {"norms": 2 * width, "gate": 1 if per_head else width, "window": _window(c, i)}
        heads = c["num_attention_heads_per_layer"][i]
        return Layer(attention(d, heads, kv, width, **options), network(i), 2 * d)

    return _parts(c, _each(c, one))


def _muse_spark(c: Config) -> Parts:
    """Experts of a narrower space, with a projection into it and one back; a gate on each residual connection."""
    d, heads, kv, width = _sizes(c)
    inner, number, k = c["moe_hidden_size"], c["num_local_experts"], c["num_experts_per_tok"]
    sizes = inner, c["moe_intermediate_size"], number, k
    more, norms = (d - inner) * number + 2 * d * inner, 2 * inner  # the router reads d components
    kind, parameters, active, matrices = experts(*sizes)
    mixture = Network(kind, parameters + more + norms, active + more + norms, matrices + more)
    plain = dense(d, c["intermediate_size"])

    def one(i: int) -> Layer:
        mixer = attention(d, heads, kv, width, window=_window(c, i), gate=width)
        return Layer(mixer, mixture if c["mlp_layer_types"][i] == "sparse" else plain, 5 * d)

    return _parts(c, _each(c, one))


def _glm5_next(c: Config) -> Parts:
    d, d_index, rate = c["hidden_size"], c["index_head_dim"], c["index_kpool"]
    sparse = _latent(
        c, **_indexer(c), index_matrices=d * d_index, index_extra=rate * d_index, index_rate=rate
    )
    # the keys, a gate for each, and whether it is padding
    sparse = sparse._replace(
        kept=(sparse.kept[0], sparse.kept[1]._replace(numbers=2 * d_index + 1))
    )
    linear = _delta(c, rank=c["linear_head_dim"])
    mixers = {"linear_attention": linear, "indexed_attention": sparse}
    return _by_kind(c, mixers, _mixture(c), 2 * d + _streams(c))


def _deepseek_v4(c: Config) -> Parts:
    network = _mixture(c | {"mlp_layer_types": None, "n_shared_experts": 1})
    d, n = c["hidden_size"], c["hc_mult"]
    sizes = {
        "d_query": c["q_lora_rank"], "groups": c["o_groups"], "d_out": c["o_lora_rank"], "window": c["sliding_window"],
    }  # fmt: skip
    rates, shape = c["compress_rates"], (d, c["num_attention_heads"], c["head_dim"])
    mixers = {
        "sliding_attention": compressed(*shape, **sizes),
        "heavily_compressed_attention": compressed(
            *shape, **sizes, rate=rates["heavily_compressed_attention"]
        ),
        "compressed_sparse_attention": compressed(
            *shape, **sizes, rate=rates["compressed_sparse_attention"], overlap=True,
            indexer=(c["index_n_heads"], c["index_head_dim"]), k=c["index_topk"],
        ),
    }  # fmt: skip
    return _by_kind(c, mixers, network, 2 * d + _streams(c), d + n * n * d + n + 1)


def _gemma4(c: Config) -> Parts:
    """Global layers with wider heads, whose values may be their keys; the last layers may use the keys and values of
    earlier ones, with a wider network; a vector for each token and layer, from a table; experts beside the network."""
    d, heads, kv, width = _sizes(c)
    kinds, ple = c["layer_types"], c.get("hidden_size_per_layer_input") or 0
    special = c.get("per_layer_config")
    if special is None:  # as published; the class makes one of the other
        same, wide = c.get("attention_k_eq_v"), {"head_dim": c.get("global_head_dim", 512)}
        if same and (groups := c.get("num_global_key_value_heads")):
            wide["num_key_value_heads"] = groups
        special = {i: wide for i, kind in enumerate(kinds) if kind == "full_attention"}
    special = {int(key): value for key, value in special.items()}
    count = len(kinds)
    own = count - (c.get("num_kv_shared_layers") or 0)  # layers with keys and values of their own

    def one(i: int) -> Layer:
        sizes = {"head_dim": width, "num_key_value_heads": kv} | special.get(i, {})
        d_head, groups = sizes["head_dim"], sizes["num_key_value_heads"]
        same = c.get("attention_k_eq_v") and kinds[i] == "full_attention"
        projections = 0 if i >= own else 1 if same else 2
        mixer = attention(
            d, heads, groups, d_head, window=_window(c, i), kv_projections=projections,
            norms=d_head * (1 + (i < own)), **_biases(c),
        )  # fmt: skip
        d_ff = c["intermediate_size"] * (2 if i >= own and c.get("use_double_wide_mlp") else 1)
        network, rest = dense(d, d_ff), 4 * d + (2 * d * ple + d if ple else 0)
        if c.get("enable_moe_block"):
            number = c["num_experts"]
            k, inner = c["top_k_experts"], c["moe_intermediate_size"]
            network = experts(d, inner, number, k, d_shared=d_ff)
            # three norms, a scale of the router's input and one of each expert
            rest += 4 * d + number
        read = 3 * d * ple  # the layer's part of a projection of the embedding, a gate and one back
        return Layer(mixer, network._replace(matrices=network.matrices + read), rest)

    table = ple * count * c["vocab_size_per_layer_input"] if ple else 0
    rest = d + table + ple * (count * d + 1)
    return _parts(c, _each(c, one), rest)._replace(looked_up=table)


#: model_type → what reads it.
FAMILIES: dict[str, Callable[[Config], Parts]] = {
    "gpt2": _gpt2,
    "gpt_neox": _gpt_neox,
    "llama": _llama,
    "mistral": _llama,
    "gemma": _llama,
    "phi3": _llama,
    "smollm3": _llama,
    "mixtral": lambda c: _llama(c, network=_mixture(c)),
    "gemma2": lambda c: _llama(c, norms=4),
    "gemma3_text": lambda c: _llama(c, norms=4, qk="head"),
    "gemma4_text": _gemma4,
    "olmo2": lambda c: _llama(c, qk="all"),
    "olmo3": lambda c: _llama(c, qk="all"),
    "olmo_hybrid": _olmo_hybrid,
    "qwen3": lambda c: _llama(c, qk="head"),
    "qwen3_moe": lambda c: _llama(c, qk="head", network=_mixture(c)),
    "qwen3_next": _qwen_delta,
    "qwen3_5_text": _qwen_delta,
    "qwen3_5_moe_text": _qwen_delta,
    "glm4_moe": lambda c: _llama(
        c, out_bias=False, network=_mixture(c, c["first_k_dense_replace"]),
        qk="head" if c.get("use_qk_norm") else 0,
    ),
    "gpt_oss": _gpt_oss,
    "llama4_text": _llama4,
    "minimax": _minimax,
    "minimax_m2": lambda c: _llama(c, qk="all", network=_mixture(c)),
    "minimax_m3_vl_text": _minimax_m3,
    "deepseek_v2": _deepseek,
    "deepseek_v3": _deepseek,
    "deepseek_v32": _deepseek,
    "glm_moe_dsa": _deepseek,
    "mistral4": _deepseek,
    "mistral_large4_text": _mistral_large4,
    "kimi_linear": _kimi,
    "glm5_next_text": _glm5_next,
    "deepseek_v4": _deepseek_v4,
    "hy_v3": lambda c: _llama(c, qk="head", network=_mixture(c)),
    "hy_v4": _hy4,
    "laguna": _laguna,
    "bailing_hybrid": _bailing,
    "dots3_note_text": _dots3,
    "lfm3": _lfm3,
    "muse_spark_text": _muse_spark,
}  # fmt: skip

#: Family → what adds parameters to its modules that are not counted here.
UNCOUNTED = {
    "gpt2": ("add_cross_attention",),
    "deepseek_v2": ("mlp_bias",),
    "deepseek_v4": ("mlp_bias",),
    "hy_v3": ("mlp_bias",),
    "laguna": ("attention_bias",),
    "lfm3": ("attention_bias", "conv_bias"),
    "muse_spark_text": ("attention_bias",),
}
