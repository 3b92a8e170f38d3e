"""Facts of several models as the rows of a table: from their configurations and anatomies; QK-norm by family."""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from course_lib.topics.anatomy.anatomy import Anatomy, anatomy
from course_lib.topics.anatomy.models import CATALOGUE
from course_lib.validation import require_one_of

#: Families that normalise queries and keys before their product, and what shares a mean square.
_QK_NORM = dict.fromkeys(
    ("deepseek_v4", "gemma3_text", "gemma4_text", "hy_v3", "laguna", "lfm3", "llama4_text", "minimax_m3_vl_text",
     "muse_spark_text", "qwen3", "qwen3_moe", "qwen3_next", "qwen3_5_text", "qwen3_5_moe_text"), "per head",
) | dict.fromkeys(("minimax_m2", "olmo2", "olmo3", "olmo_hybrid"), "over all heads")  # fmt: skip
_ACTIVATIONS = {"silu": "SwiGLU", "gelu_pytorch_tanh": "GeGLU"}  # with a gate


def side_by_side(
    names: Sequence[str], columns: Sequence[str]
) -> tuple[list[str], list[tuple[str | int, ...]]]:
    """Return the header and the rows of a table: the name of each model, then its facts.

    Args:
        names: of `model_names()`.
        columns: among "year", "layers", "heads", "KV heads", "d_head", "QK-norm", "KV cache, GiB" (after 32,768 tokens, in
            16 bits), "positions", "θ", "scaling" (of the frequencies, beyond the first training length), "rotated" (the
            share of a head), "no positions" (in how many layers), "window", "norm", "FFN", "biases" (in attention).
    """
    for name in names:
        require_one_of(CATALOGUE, model=name)
    for column in columns:
        require_one_of(_COLUMNS, column=column)
    made = {name: anatomy(name) for name in names}
    rows = [(name, *(_COLUMNS[column](made[name]) for column in columns)) for name in names]
    return ["model", *columns], rows


def _first(c: Mapping, *keys: str) -> object:
    return next((c[key] for key in keys if c.get(key) is not None), None)


def _per_layer(c: Mapping, key: str) -> list:
    """A value, and others that some layers have, in ascending order."""
    others = [one[key] for one in (c.get("per_layer_config") or {}).values() if key in one]
    return sorted({c[key], *others, *c.get(f"{key}_per_layer", [])})


def _heads(a: Anatomy) -> int | str:
    c = a.config
    found = [c["n_head"]] if "n_head" in c else _per_layer(c, "num_attention_heads")
    return " or ".join(map(str, found)) if found[1:] else found[0]


def _kv_heads(a: Anatomy) -> int | str:
    c = a.config
    if "kv_lora_rank" in c:
        rotated = {c["qk_rope_head_dim"] * turns for turns in c.get("no_rope_layers", [1])}
        widths = [
            rank + width for rank in _per_layer(c, "kv_lora_rank") for width in sorted(rotated)
        ]
        return "latent of " + " or ".join(map(str, widths))
    return c.get("num_key_value_heads") or _heads(a)


def _d_head(a: Anatomy) -> int | str:
    c = a.config
    if "qk_head_dim" in c:
        return c["qk_head_dim"]
    if "head_dim" not in c:
        return _first(c, "hidden_size", "n_embd") // _first(c, "num_attention_heads", "n_head")
    found = _per_layer(c, "head_dim")
    return " or ".join(map(str, found)) if found[1:] else found[0]


def _qk_norm(a: Anatomy) -> str:
    c = a.config
    return "no" if c.get("use_qk_norm") is False else _QK_NORM.get(c["model_type"], "no")


def _rope(a: Anatomy) -> dict[str, Mapping]:
    """The parameters of each rotation; the key says of which layers, where there are several."""
    found = a.config.get("rope_parameters") or {}
    return found if all(isinstance(one, Mapping) for one in found.values()) else {"": found}


def _positions(a: Anatomy) -> str:
    if "n_positions" in a.config:
        return "learned table"
    return "RoPE" if _rope(a) else "none"


_OF = {
    "sliding_attention": "window",
    "full_attention": "global",
    "main": "window",
    "compress": "summaries",
}


def _per_kind(values: dict[str, str]) -> str:
    """One value, or one for each kind of layer where they differ."""
    if len(set(values.values())) < 2:
        return next(iter(values.values()), "–")
    return ", ".join(f"{value} ({_OF[kind]})" for kind, value in values.items())


def _theta(a: Anatomy) -> str:
    return _per_kind({kind: f"{one['rope_theta']:,.0f}" for kind, one in _rope(a).items()})


def _scaling(a: Anatomy) -> str:
    names = {"yarn": "YaRN", "linear": "linear"}
    return _per_kind(
        {
            kind: f"{names[one['rope_type']]} × {one['factor']:g}" if one.get("factor") else "–"
            for kind, one in _rope(a).items()
        }
    )


def _rotated(a: Anatomy) -> str:
    c = a.config
    whole = Fraction(1)
    if "kv_lora_rank" in c:
        whole = Fraction(c["qk_rope_head_dim"], c["qk_head_dim"])
    elif "rotary_dim" in c:
        whole = Fraction(c["rotary_dim"], c["head_dim"])
    latent = "kv_lora_rank" in c  # its partial factor says the same of the whole head
    shares = {
        kind: whole if latent else whole * Fraction(one.get("partial_rotary_factor", 1))
        for kind, one in _rope(a).items()
    }
    return _per_kind({k: "all" if share == 1 else str(share) for k, share in shares.items()})


def _without(a: Anatomy) -> str:
    """In which share of the layers with attention nothing says where a token stands."""
    kept = _first(a.config, "no_rope_layers", "layer_rope_theta")  # 0 where nothing is rotated
    if not kept or all(kept):
        return "–" if _positions(a) != "none" else "all"
    return f"{kept.count(0)} of {len(kept)}"


def _window(a: Anatomy) -> str:
    kinds = a.kinds
    if not kinds.get("window"):
        return "–"
    width = _first(a.config, "sliding_window", "attention_chunk_size")
    return f"{width:,} in {kinds['window']} of {len(a.layers)}"


def _ffn(a: Anatomy) -> str:
    gated = _ACTIVATIONS.get(_first(a.config, "hidden_act", "hidden_activation"))
    clamped = "clamped " if gated and a.config.get("swiglu_limit") else ""
    return clamped + (gated or "GELU")


def _biases(a: Anatomy) -> str:
    c = a.config
    return "yes" if "n_embd" in c or c.get("attention_bias") else "no"


_COLUMNS: dict[str, Callable[[Anatomy], str | int]] = {
    "year": lambda a: str(CATALOGUE[a.name].year),
    "layers": lambda a: len(a.layers),
    "heads": _heads,
    "KV heads": _kv_heads,
    "d_head": _d_head,
    "QK-norm": _qk_norm,
    "KV cache, GiB": lambda a: f"{a.cache_bytes(32_768) / 2**30:.2f}",
    "positions": _positions,
    "θ": _theta,
    "scaling": _scaling,
    "rotated": _rotated,
    "no positions": _without,
    "window": _window,
    "norm": lambda a: (
        "LayerNorm" if {"layer_norm_eps", "layer_norm_epsilon"} & {*a.config} else "RMSNorm"
    ),
    "FFN": _ffn,
    "biases": _biases,
}
