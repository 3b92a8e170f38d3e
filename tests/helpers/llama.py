"""Hugging Face's LLaMA with the weights of a `DecoderOnly`."""

import torch

from course_lib.transformer import DecoderOnly

NAMES = {
    "attention.q_proj": "self_attn.q_proj",
    "attention.k_proj": "self_attn.k_proj",
    "attention.v_proj": "self_attn.v_proj",
    "attention.out_proj": "self_attn.o_proj",
    "feed_forward.gate_proj": "mlp.gate_proj",
    "feed_forward.up_proj": "mlp.up_proj",
    "feed_forward.down_proj": "mlp.down_proj",
    "norm1": "input_layernorm",
    "norm2": "post_attention_layernorm",
}


def llama(model: DecoderOnly, **choices):
    """Return a `LlamaForCausalLM` that shares the weights of `model`, but for permuted queries and keys."""
    from transformers import LlamaConfig, LlamaForCausalLM
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

    ours = model.config
    config = LlamaConfig(
        vocab_size=ours.target_vocabulary,
        hidden_size=ours.d_model,
        intermediate_size=ours.d_ff,
        num_hidden_layers=ours.decoder_layers,
        num_attention_heads=ours.num_heads,
        num_key_value_heads=ours.num_kv_heads,
        max_position_embeddings=ours.max_length,
        rms_norm_eps=ours.norm_eps,
        rope_parameters={"rope_type": "default", "rope_theta": ours.rope_theta},
        tie_word_embeddings=ours.tie_embeddings,
        pad_token_id=ours.pad_id,
        bos_token_id=1,
        eos_token_id=2,
        **choices,
    )
    with torch.device("meta"):  # no random weights, which take half a gigabyte
        theirs = LlamaForCausalLM(config).eval()
    theirs.model.rotary_emb = LlamaRotaryEmbedding(config)
    weights = {
        "model.embed_tokens.weight": model.embedding.token_embedding.weight,
        "model.norm.weight": model.norm.weight,
        "lm_head.weight": model.lm_head.weight,
    }
    heads = {"q_proj": ours.num_heads, "k_proj": ours.num_kv_heads}
    for layer, block in enumerate(model.blocks):
        for name, other in NAMES.items():
            weight = block.get_submodule(name).weight
            last = name.rpartition(".")[2]
            if ours.rope_layout == "interleaved" and last in heads:
                weight = in_halves(weight, heads[last])
            weights[f"model.layers.{layer}.{other}.weight"] = weight
    theirs.load_state_dict({k: w.detach() for k, w in weights.items()}, assign=True)
    theirs.tie_weights()
    return theirs


def in_halves(weight: torch.Tensor, heads: int) -> torch.Tensor:
    """Reorder the rows of each head from pairs (2i, 2i + 1) to pairs (i, i + d/2), row by row."""
    d = len(weight) // heads
    order = [h * d + 2 * i + odd for h in range(heads) for odd in (0, 1) for i in range(d // 2)]
    return weight[order]
