"""What a token leaves in each layer of Hy4."""

import torch


def kept_per_token(config):
    latent = config["kv_lora_rank"] + config["qk_rope_head_dim"]  # in every layer
    full = torch.tensor([kind == "full" for kind in config["indexer_types"]])
    return latent + full * config["index_head_dim"]  # (layer,)


def reference(config):
    """From tensors of the shapes that each layer hands to the cache."""
    layers = []
    for kind in config["indexer_types"]:
        handed = [
            torch.empty(1, 1, 1, config["kv_lora_rank"]),
            torch.empty(1, 1, 1, config["qk_rope_head_dim"]),
        ]
        handed += [torch.empty(1, 1, config["index_head_dim"])] if kind == "full" else []
        layers.append(sum(one.numel() for one in handed))
    return torch.tensor(layers)


def _case(kinds, heads, d_latent, d_rope, d_nope, d_value, index_heads, d_index):
    config = {
        "indexer_types": kinds,
        "num_attention_heads": heads,
        "kv_lora_rank": d_latent,
        "qk_rope_head_dim": d_rope,
        "qk_nope_head_dim": d_nope,
        "v_head_dim": d_value,
        "index_n_heads": index_heads,
        "index_head_dim": d_index,
    }
    return dict(config=config)


LATENT = 'config["kv_lora_rank"] + config["qk_rope_head_dim"]'
INDEX = 'config["index_head_dim"]'
MISTAKES = rf"""
{LATENT} -> config["kv_lora_rank"]
    The rotated key is missing: each layer hands qk_rope_head_dim numbers of it to the cache, too.
{LATENT} -> config["num_attention_heads"] * (config["kv_lora_rank"] + config["qk_rope_head_dim"])
    You count a latent vector per head. There is one per token, with one rotated key, for all heads.
{LATENT} -> config["kv_lora_rank"] + config["num_attention_heads"] * config["qk_rope_head_dim"]
    You count a rotated key per head. All heads share one.
{LATENT} -> 2 * (config["kv_lora_rank"] + config["qk_rope_head_dim"])
    You count keys and values. The latent vector serves as both: it is kept once.
{LATENT} -> config["num_attention_heads"] * (config["qk_nope_head_dim"] + config["qk_rope_head_dim"] + config["v_head_dim"])
    These are keys and values after they are expanded. The cache is filled before: one latent vector and a rotated key.
kind == "full" -> True
    You count keys of an indexer in every layer. Layers whose type is "shared" have none.
kind == "full" -> kind == "shared"
    You count keys of an indexer where there is none. Layers of type "full" keep them.
full * {INDEX} -> full * config["index_n_heads"] * {INDEX}
    You count a key per head of the indexer. Its heads share one.
latent + full * {INDEX} -> latent + 0 * full
    The second cache is missing: layers of type "full" hand index_head_dim numbers to cache.update_indexer.
"""

CASES = (
    _case(["full"], 2, 3, 1, 4, 5, 6, 7),
    _case(["full", "shared", "shared"], 3, 8, 2, 5, 6, 4, 9),
    _case((["full"] + ["shared"] * 3) * 8 + ["full"] * 2, 32, 512, 64, 192, 256, 16, 128),
)
HINTS = """
Add up the last sizes of what each layer hands to cache.update and to cache.update_indexer.
A latent vector and a rotated key in each layer; keys of the indexer only where it is "full".
"""
DIFFERENTIABLE = False
