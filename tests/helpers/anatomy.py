"""The modules of `transformers` whose parameters and caches an anatomy is held against."""

from importlib import import_module

import torch

#: Sizes of tiny models; what a configuration does not have is left out.
TINY = {
    "hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "vocab_size": 48,
    "intermediate_size": 24, "moe_intermediate_size": 16, "intermediate_size_mlp": 40, "dense_intermediate_size": 56,
    "shared_intermediate_size": 48, "shared_expert_intermediate_size": 48, "shared_experts_intermediate_size": 20, "num_experts": 8, "n_routed_experts": 8,
    "num_local_experts": 8, "num_experts_per_tok": 2, "num_experts_per_token": 2, "n_group": 1, "topk_group": 1,
    "q_lora_rank": 10, "kv_lora_rank": 6, "qk_nope_head_dim": 4, "qk_rope_head_dim": 4, "v_head_dim": 6,
    "index_n_heads": 2, "index_head_dim": 8, "index_topk": 4, "index_block_size": 3, "index_topk_blocks": 2,
    "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 6, "linear_value_head_dim": 5,
    "linear_num_heads": 3, "linear_head_dim": 6, "sliding_window": 5, "attention_chunk_size": 5, "o_groups": 2,
    "o_lora_rank": 6, "hc_mult": 2, "vocab_size_per_layer_input": 48, "hidden_size_per_layer_input": 4,
    "n_embd": 32, "n_head": 4, "n_positions": 64, "max_position_embeddings": 64, "index_kpool": 2,
    "moe_hidden_size": 24, "conv_L_cache": 3,
}  # fmt: skip
#: Families whose heads all have keys of their own, or whose sizes depend on each other.
SPECIAL = {
    "gpt_neox": {"num_key_value_heads": None},
    "olmo_hybrid": {"linear_num_key_heads": 4},
    "glm5_next_text": {"qk_rope_head_dim": 0, "num_key_value_heads": 4},
    "laguna": {"num_attention_heads_per_layer": [4, 6, 6, 6] * 2},
    "bailing_hybrid": {"num_expert_group": 1},
    "dots3_note_text": {
        "head_dim": 8,
        "per_layer_config": {i: {"num_attention_heads": 2, "num_key_value_heads": 2, "kv_lora_rank": 10} for i in (2, 3, 4, 6, 7)},
    },
    "minimax_m3_vl_text": {"rotary_dim": 4, "layer_types": ["full_attention", "minimax_m3_sparse"] * 2},
    "deepseek_v4": {
        "num_key_value_heads": 1, "partial_rotary_factor": 0.5,
        "compress_rates": {"compressed_sparse_attention": 2, "heavily_compressed_attention": 4},
    },
}  # fmt: skip
LATENT = {
    "bailing_hybrid",
    "deepseek_v2",
    "deepseek_v3",
    "deepseek_v32",
    "glm_moe_dsa",
    "mistral4",
    "kimi_linear",
    "mistral_large4_text",
    "dots3_note_text",
    "hy_v4",
}
LISTS = (
    "layer_types",
    "mlp_layer_types",
    "no_rope_layers",
    "indexer_types",
    "kv_source_layers",
    "moe_layers",
    "layer_rope_theta",
)
LAYERS = 8  # of a tiny model, among which every kind occurs


def tiny(config):
    """Return a configuration of the same class, with tiny sizes and the first layers only."""
    whole = config.to_dict()
    kind = config.model_type
    changes = {name: size for name, size in TINY.items() if whole.get(name) is not None}
    changes |= {name: whole[name][:LAYERS] for name in LISTS if whole.get(name)}
    if kind in LATENT:
        changes |= {"num_key_value_heads": 4}
        changes.pop("head_dim", None)
    changes |= SPECIAL.get(kind, {}) | {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    layers = len(changes["layer_types"]) if "layer_types" in changes else LAYERS
    changes["n_layer" if "n_layer" in whole else "num_hidden_layers"] = layers
    if "mlp_layer_types" in changes:
        changes["mlp_layer_types"] = changes["mlp_layer_types"][:layers]
    if kind == "gemma4_text":
        changes |= {
            "per_layer_config": {5: {"head_dim": 16}, 7: {"head_dim": 16}}
        }  # the last is global too
    return type(config)(**changes)


def causal_lm(config):
    """Return the module of a configuration, on the default device, and the size of an output layer that it lacks."""
    from transformers import AutoModelForCausalLM

    config._attn_implementation = "eager"
    module = import_module(type(config).__module__.replace("configuration", "modeling"))
    name = type(config).__name__.removesuffix("Config")
    if type(config) in AutoModelForCausalLM._model_mapping:
        return AutoModelForCausalLM.from_config(config), 0
    if hasattr(module, f"{name}ForCausalLM"):
        return getattr(module, f"{name}ForCausalLM")(config), 0
    head = 0 if config.tie_word_embeddings else config.vocab_size * config.hidden_size
    return getattr(module, f"{name}Model")(config), head


def parameters(config):
    """Count the parameters of the module on the meta device."""
    with torch.device("meta"):
        module, head = causal_lm(config)
    return sum(parameter.numel() for parameter in module.parameters()) + head


def tensors(thing, seen=None):
    """Yield every tensor of numbers that a cache holds, each once."""
    seen = set() if seen is None else seen
    if isinstance(thing, torch.Tensor):
        if thing.is_floating_point() and thing.data_ptr() not in seen:  # not the count of tokens
            seen.add(thing.data_ptr())
            yield thing
    elif isinstance(thing, dict):
        for one in thing.values():
            yield from tensors(one, seen)
    elif isinstance(thing, list | tuple):
        for one in thing:
            yield from tensors(one, seen)
    elif type(thing).__module__.startswith("transformers") and hasattr(thing, "__dict__"):
        yield from tensors({k: v for k, v in vars(thing).items() if k != "config"}, seen)
