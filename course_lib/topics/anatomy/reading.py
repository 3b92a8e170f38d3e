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
)


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
    """What a configuration makes: the layers, and the parameters of embeddings, output layer and all else."""

    layers: list[Layer]
    embedding: int
    lm_head: int
    rest: int


Config = Mapping


def _sizes(c: Config) -> tuple[int, int, int, int]:
    d, heads = c["hidden_size"], c["num_attention_heads"]
    return d, heads, c.get("num_key_value_heads") or heads, c.get("head_dim") or d // heads


def _parts(c: Config, layers: list[Layer], rest: int | None = None) -> Parts:
    d, vocabulary = c["hidden_size"], c["vocab_size"]
    head = 0 if c.get("tie_word_embeddings") else d * vocabulary
    return Parts(layers, d * vocabulary, head, d if rest is None else rest)


def _each(c: Config, one: Callable[[int], Layer]) -> list[Layer]:
    return [one(i) for i in range(c["num_hidden_layers"])]


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
    positions = d * c["n_positions"]
    return Parts(layers, d * c["vocab_size"], 0, positions + 2 * d)


def _gpt_neox(c: Config) -> Parts:
    d, heads, kv, width = _sizes(c)
    mixer = attention(d, heads, kv, width, qkv_bias=True, out_bias=True)
    network = dense(d, c["intermediate_size"], gated=False, bias=True)
    return _parts(c, _each(c, lambda _: Layer(mixer, network, 4 * d)), 2 * d)


def _llama(c: Config, **options) -> Parts:
    """LLaMA and what keeps its block: windows, norms of queries and keys, and norms after sublayers are options."""
    d, heads, kv, width = _sizes(c)
    norms, qk = options.pop("norms", 2), options.pop("qk", 0)
    network = options.pop("network", lambda _: dense(d, c["intermediate_size"]))
    bias = c.get("attention_bias", False)
    out_bias = options.pop("out_bias", bias)
    return _parts(
        c,
        _each(
            c,
            lambda i: Layer(
                attention(
                    d, heads, kv, width, window=_window(c, i), qkv_bias=bias, out_bias=out_bias,
                    norms=qk and (2 * width if qk == "head" else (heads + kv) * width), **options,
                ),
                network(i),
                norms * d,
            ),
        ),
    )  # fmt: skip


def _mixture(c: Config, first_dense: int = 0) -> Callable[[int], Network]:
    """The experts of a configuration, by any of the names that these have; dense layers where it says so."""
    d, kinds = c["hidden_size"], c.get("mlp_layer_types")
    number = next(c[k] for k in ("num_experts", "n_routed_experts", "num_local_experts") if k in c)
    k = c.get("num_experts_per_tok") or c["num_experts_per_token"]
    width = c.get("moe_intermediate_size") or c["intermediate_size"]
    shared = (c.get("n_shared_experts") or c.get("num_shared_experts") or 0) * width
    shared = (
        shared or c.get("shared_expert_intermediate_size") or c.get("shared_intermediate_size") or 0
    )
    qwen = "shared_expert_intermediate_size" in c
    made = experts(d, width, number, k, d_shared=shared, shared_gate=qwen)
    wide = c.get("dense_intermediate_size") or c.get("intermediate_size")

    def network(layer: int) -> Network:
        is_dense = kinds[layer] == "dense" if kinds else layer < first_dense
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
    full, network = attention(d, heads, kv, width), _mixture(c)
    linear = lightning(d, heads, width)
    kinds = c["layer_types"]
    return _parts(
        c,
        _each(
            c,
            lambda i: Layer(linear if kinds[i] == "linear_attention" else full, network(i), 2 * d),
        ),
    )


def _minimax_m3(c: Config) -> Parts:
    d, heads, kv, width = _sizes(c)
    network, kinds = _mixture(c), c["layer_types"]
    options = {"norms": 2 * width}
    full = attention(d, heads, kv, width, **options)
    sparse = attention(
        d, heads, kv, width, indexer=(c["index_n_heads"], c["index_head_dim"]),
        k=c["index_topk_blocks"] * c["index_block_size"], **options,
    )  # fmt: skip
    return _parts(
        c,
        _each(
            c, lambda i: Layer(full if kinds[i] == "full_attention" else sparse, network(i), 2 * d)
        ),
    )


def _delta(c: Config) -> Mixer:
    if "linear_num_heads" in c:  # Kimi Delta Attention
        heads, width = c["linear_num_heads"], c["linear_head_dim"]
        sizes = {"key_heads": heads, "value_heads": heads, "d_key": width, "d_value": width}
        return delta(c["hidden_size"], **sizes, width=c["linear_conv_kernel_dim"], rank=width)
    return delta(
        c["hidden_size"], key_heads=c["linear_num_key_heads"], value_heads=c["linear_num_value_heads"],
        d_key=c["linear_key_head_dim"], d_value=c["linear_value_head_dim"], width=c["linear_conv_kernel_dim"],
    )  # fmt: skip


def _qwen_delta(c: Config) -> Parts:
    d, heads, kv, width = _sizes(c)
    full = attention(d, heads, kv, width, norms=2 * width, gate=True)
    linear, kinds = _delta(c), c["layer_types"]
    network = _mixture(c) if c.get("num_experts") else lambda _: dense(d, c["intermediate_size"])
    return _parts(
        c,
        _each(
            c,
            lambda i: Layer(linear if kinds[i] == "linear_attention" else full, network(i), 2 * d),
        ),
    )


def _olmo_hybrid(c: Config) -> Parts:
    d, heads, kv, width = _sizes(c)
    full = attention(d, heads, kv, width, norms=(heads + kv) * width)
    linear, kinds, network = _delta(c), c["layer_types"], dense(d, c["intermediate_size"])
    return _parts(
        c,
        _each(
            c, lambda i: Layer(linear if kinds[i] == "linear_attention" else full, network, 2 * d)
        ),
    )


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


def _deepseek(c: Config) -> Parts:
    """DeepSeek-V2, V3 and V3.2, GLM-5 and Mistral Small 4."""
    d, network = c["hidden_size"], _mixture(c, c.get("first_k_dense_replace") or 0)
    mixers = {True: _latent(c), False: _latent(c, **_indexer(c)) if "index_topk" in c else None}
    shared = c.get("indexer_types")  # "shared" takes the choice of the layer before

    def one(i: int) -> Layer:
        plain = "index_topk" not in c or (shared is not None and shared[i] == "shared")
        return Layer(mixers[plain], network(i), 2 * d)

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


def _streams(c: Config) -> int:
    """Parameters of the two hyper-connections of a layer."""
    n = c["hc_mult"]
    return 2 * ((2 + n) * n * (n * c["hidden_size"] + 1) + 3)


def _kimi(c: Config) -> Parts:
    d, network, kinds = c["hidden_size"], _mixture(c), c["layer_types"]
    linear, full = _delta(c), _latent(c)
    return _parts(
        c,
        _each(
            c,
            lambda i: Layer(linear if kinds[i] == "linear_attention" else full, network(i), 2 * d),
        ),
    )


def _glm5_next(c: Config) -> Parts:
    d, network, kinds = c["hidden_size"], _mixture(c), c["layer_types"]
    d_index, rate = c["index_head_dim"], c["index_kpool"]
    sparse = _latent(
        c, **_indexer(c), index_matrices=d * d_index, index_extra=rate * d_index, index_rate=rate
    )
    # the keys, a gate for each, and whether it is padding
    sparse = sparse._replace(
        kept=(sparse.kept[0], sparse.kept[1]._replace(numbers=2 * d_index + 1))
    )
    linear, rest = _delta(c), 2 * d + _streams(c)
    return _parts(
        c,
        _each(
            c,
            lambda i: Layer(linear if kinds[i] == "linear_attention" else sparse, network(i), rest),
        ),
    )


def _deepseek_v4(c: Config) -> Parts:
    d, network, n = c["hidden_size"], _mixture(c | {"mlp_layer_types": None}), c["hc_mult"]
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
    rest, kinds = 2 * d + _streams(c), c["layer_types"]
    layers = _each(c, lambda i: Layer(mixers[kinds[i]], network(i), rest))
    return _parts(c, layers, d + n * n * d + n + 1)


def _gemma4(c: Config) -> Parts:
    d, heads, kv, width = _sizes(c)
    kinds, ple = c["layer_types"], c.get("hidden_size_per_layer_input") or 0
    special = {int(key): value for key, value in (c.get("per_layer_config") or {}).items()}

    def one(i: int) -> Layer:
        d_head = special.get(i, {}).get("head_dim", width)
        groups = special.get(i, {}).get("num_key_value_heads", kv)
        mixer = attention(d, heads, groups, d_head, window=_window(c, i), norms=2 * d_head)
        per_layer = 2 * d * ple + d if ple else 0
        return Layer(mixer, dense(d, c["intermediate_size"]), 4 * d + per_layer)

    count = len(kinds)
    rest = d + (ple * count * (c["vocab_size_per_layer_input"] + d) + ple if ple else 0)
    return _parts(c, _each(c, one), rest)


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
        c, out_bias=False, network=_mixture(c, c["first_k_dense_replace"])
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
}  # fmt: skip
