"""The models whose anatomy is stored: which configuration class, and where it is not what was published."""

from typing import NamedTuple


class Entry(NamedTuple):
    """One model.

    Attributes:
        model_type: of its configuration class in `transformers`.
        year: of its publication.
        new: what is new against models before it.
        published: values of the published configuration where the defaults of the class are others.
        source: of these values.
    """

    model_type: str
    year: int
    new: str
    published: dict = {}
    source: str = "defaults of the class"


def _config(repository: str) -> str:
    return f"config.json of {repository}"


def _rope(theta: float, **more: float) -> dict:
    return {"rope_type": "default", "rope_theta": theta} | more


#: From the oldest to the newest.
CATALOGUE = {
    "GPT-2": Entry("gpt2", 2019, "decoder only, layer norm before each sublayer, learned positions"),
    "GPT-NeoX-20B": Entry("gpt_neox", 2022, "attention and feed-forward in parallel, RoPE on a quarter of a head"),
    "LLaMA 7B": Entry("llama", 2023, "RMSNorm, SwiGLU, RoPE, no biases"),
    "Mistral 7B": Entry("mistral", 2023, "grouped queries, a window in every layer"),
    "Mixtral 8x7B": Entry("mixtral", 2023, "8 experts per layer, of which a token meets 2"),
    "Gemma 7B": Entry("gemma", 2024, "heads wider than the model, a vocabulary of 256,000"),
    "Phi-3 mini": Entry(
        "phi3", 2024, "LLaMA's block on filtered and synthetic text", {"sliding_window": 2047},
        _config("microsoft/Phi-3-mini-4k-instruct"),
    ),
    "DeepSeek-V2-Lite": Entry(
        "deepseek_v2", 2024, "a latent vector per token, 64 small experts and 2 shared ones",
        {
            "hidden_size": 2048, "num_hidden_layers": 27, "num_attention_heads": 16, "num_key_value_heads": 16,
            "q_lora_rank": None, "intermediate_size": 10944, "moe_intermediate_size": 1408, "num_experts_per_tok": 6,
            "first_k_dense_replace": 1, "n_group": 1, "topk_group": 1, "max_position_embeddings": 163840,
            "rope_parameters": {
                "rope_type": "yarn", "rope_theta": 10_000.0, "factor": 40, "beta_fast": 32, "beta_slow": 1,
                "mscale": 0.707, "mscale_all_dim": 0.707, "original_max_position_embeddings": 4096,
            },
        },
        _config("deepseek-ai/DeepSeek-V2-Lite"),
    ),
    "Gemma 2 2B": Entry("gemma2", 2024, "window and global layers in turn, soft caps, norms around each sublayer"),
    "SmolLM2-135M": Entry(
        "llama", 2024, "LLaMA's block, small; the model of lesson 13",
        {
            "hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30, "num_attention_heads": 9,
            "num_key_value_heads": 3, "head_dim": 64, "vocab_size": 49152, "tie_word_embeddings": True,
            "max_position_embeddings": 8192, "rms_norm_eps": 1e-5, "rope_parameters": _rope(100_000.0),
        },
        _config("HuggingFaceTB/SmolLM2-135M"),
    ),
    "OLMo 2 7B": Entry(
        "olmo2", 2024, "norms after the sublayers, norms of queries and keys",
        {
            "vocab_size": 100352, "max_position_embeddings": 4096, "rms_norm_eps": 1e-6,
            "rope_parameters": _rope(500_000.0),
        },
        _config("allenai/OLMo-2-1124-7B"),
    ),
    "DeepSeek-V3": Entry("deepseek_v3", 2024, "256 experts, balanced by a bias"),
    "MiniMax-Text-01": Entry(
        "minimax", 2025, "linear attention in 7 of 8 layers",
        {
            "hidden_size": 6144, "intermediate_size": 9216, "num_hidden_layers": 80, "num_attention_heads": 64,
            "num_key_value_heads": 8, "head_dim": 128, "num_local_experts": 32, "vocab_size": 200064,
            "layer_types": (["linear_attention"] * 7 + ["full_attention"]) * 10,
            "max_position_embeddings": 10_240_000, "rope_parameters": _rope(10_000_000.0),
            "full_attn_alpha_factor": 3.5565588200778455, "linear_attn_alpha_factor": 3.5565588200778455,
            "mlp_alpha_factor": 3.5565588200778455,
        },
        _config("MiniMaxAI/MiniMax-Text-01"),
    ),
    "Gemma 3 4B": Entry(
        "gemma3_text", 2025, "5 windows to 1 global layer, two θ, norms of queries and keys instead of caps",
        {
            "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34, "sliding_window": 1024,
            "rope_parameters": {
                "sliding_attention": _rope(10_000.0),
                "full_attention": {"rope_type": "linear", "rope_theta": 1_000_000.0, "factor": 8.0},
            },
        },
        _config("google/gemma-3-4b-it"),
    ),
    "Llama 4 Scout": Entry("llama4_text", 2025, "no positions in every fourth layer, chunks in the others"),
    "Qwen3-8B": Entry(
        "qwen3", 2025, "norms of queries and keys, no biases",
        {
            "intermediate_size": 12288, "num_hidden_layers": 36, "num_key_value_heads": 8,
            "max_position_embeddings": 40960, "max_window_layers": 36, "rope_parameters": _rope(1_000_000.0),
        },
        _config("Qwen/Qwen3-8B"),
    ),
    "Qwen3-30B-A3B": Entry(
        "qwen3_moe", 2025, "128 experts, none shared",
        {
            "num_hidden_layers": 48, "num_key_value_heads": 4, "head_dim": 128, "max_position_embeddings": 40960,
            "norm_topk_prob": True, "rope_parameters": _rope(1_000_000.0),
        },
        _config("Qwen/Qwen3-30B-A3B"),
    ),
    "SmolLM3-3B": Entry(
        "smollm3", 2025, "no positions in every fourth layer",
        {"max_position_embeddings": 65536, "rope_parameters": _rope(5_000_000.0)},
        _config("HuggingFaceTB/SmolLM3-3B"),
    ),
    "GLM-4.5-Air": Entry(
        "glm4_moe", 2025, "96 heads on a narrow model",
        {
            "head_dim": 128, "attention_bias": True, "max_position_embeddings": 131072,
            "rope_parameters": _rope(1_000_000.0, partial_rotary_factor=0.5),
        },
        _config("zai-org/GLM-4.5-Air"),
    ),
    "gpt-oss-120b": Entry("gpt_oss", 2025, "sinks, biases, windows of 128 in every second layer"),
    "Qwen3-Next-80B-A3B": Entry(
        "qwen3_next", 2025, "the gated delta rule in 3 of 4 layers, gates on the output",
        {
            "intermediate_size": 5120, "max_position_embeddings": 262144,
            "rope_parameters": _rope(10_000_000.0, partial_rotary_factor=0.25),
        },
        _config("Qwen/Qwen3-Next-80B-A3B-Instruct"),
    ),
    "DeepSeek-V3.2": Entry("deepseek_v32", 2025, "an indexer that chooses 2,048 tokens"),
    "MiniMax-M2": Entry("minimax_m2", 2025, "back to full attention in every layer"),
    "Kimi Linear 48B": Entry(
        "kimi_linear", 2025, "a decay per component of the key; latent attention without positions",
        {"layer_types": (["linear_attention"] * 3 + ["full_attention"]) * 6 + ["linear_attention"] * 2 + ["full_attention"]},
        _config("moonshotai/Kimi-Linear-48B-A3B-Instruct"),
    ),
    "OLMo 3 7B": Entry(
        "olmo3", 2025, "three windows to one global layer",
        {
            "vocab_size": 100278, "max_position_embeddings": 65536, "rms_norm_eps": 1e-6,
            "rope_parameters": {
                "sliding_attention": _rope(500_000.0),
                "full_attention": {
                    "rope_type": "yarn", "rope_theta": 500_000.0, "factor": 8.0, "beta_fast": 32, "beta_slow": 1,
                    "attention_factor": 1.2079441541679836, "original_max_position_embeddings": 8192,
                },
            },
        },
        _config("allenai/Olmo-3-7B-Instruct"),
    ),
    "GLM-5": Entry("glm_moe_dsa", 2026, "DeepSeek's latent attention and indexer"),
    "Qwen3.5-9B": Entry("qwen3_5_text", 2026, "Qwen3-Next's layers in a dense model"),
    "Qwen3.5-35B-A3B": Entry("qwen3_5_moe_text", 2026, "Qwen3-Next's layers with 256 experts"),
    "OLMo Hybrid 7B": Entry("olmo_hybrid", 2026, "the gated delta rule in 3 of 4 layers of an OLMo"),
    "Mistral Small 4": Entry("mistral4", 2026, "latent attention that keeps 320 numbers per token"),
    "Gemma 4": Entry(
        "gemma4_text", 2026, "an embedding per layer, wider heads in global layers",
        source="defaults of the class, which may be no published size",
    ),
    "DeepSeek-V4-Flash": Entry(
        "deepseek_v4", 2026, "summaries of 4 or 128 tokens beside a window, 4 residual streams",
        {
            "layer_types": [
                *["sliding_attention"] * 2,
                *["compressed_sparse_attention", "heavily_compressed_attention"] * 20,
                "compressed_sparse_attention",
            ],
            "rope_parameters": {
                "main": _rope(10_000.0, partial_rotary_factor=0.125),
                "compress": {
                    "rope_type": "yarn", "rope_theta": 160_000.0, "factor": 16, "beta_fast": 32, "beta_slow": 1,
                    "original_max_position_embeddings": 65536, "partial_rotary_factor": 0.125, "attention_factor": 1.0,
                },
            },
        },
        _config("deepseek-ai/DeepSeek-V4-Flash"),
    ),
    "MiniMax-M3": Entry(
        "minimax_m3_vl_text", 2026, "blocks of 128 keys, chosen per group of heads",
        {
            "layer_types": ["full_attention"] * 3 + ["minimax_m3_sparse"] * 57,
            "mlp_layer_types": ["dense"] * 3 + ["sparse"] * 57,
        },
        "defaults of the class, and the kinds of layers in NVIDIA's TensorRT-LLM and Megatron Bridge",
    ),
    "GLM-5.3-Flash": Entry("glm5_next_text", 2026, "delta layers beside an indexer on pooled keys, 4 residual streams"),
    "Mistral Large 4": Entry("mistral_large4_text", 2026, "an indexer beside latent attention, no positions in every fourth"),
    "Hy3": Entry("hy_v3", 2026, "192 experts and a shared one, norms of queries and keys"),
    "Laguna XS.2": Entry(
        "laguna", 2026, "more heads in layers with a window, a gate per head",
        {
            "layer_types": (["full_attention"] + ["sliding_attention"] * 3) * 10,
            "num_attention_heads_per_layer": [48, 64, 64, 64] * 10,
        },
        "defaults of the class, and the kinds of layers and their heads in the config.json of poolside/laguna-XS.2.1",
    ),
    "Ling 3.0 Flash": Entry("bailing_hybrid", 2026, "delta layers in 5 of 6, a gate per head in the sixth, 512 experts"),
    "LFM3-1.7B": Entry("lfm3", 2026, "short convolutions in every second layer, a gate per head"),
    "dots3-note": Entry("dots3_note_text", 2026, "latent attention with a window of 512, an indexer in every fourth layer"),
    "Muse Spark": Entry("muse_spark_text", 2026, "experts of half the width, a gate on each residual connection"),
    "Hy4": Entry("hy_v4", 2026, "a choice that 4 layers share, gates and sinks, 4 residual streams that are not mixed"),
}  # fmt: skip
