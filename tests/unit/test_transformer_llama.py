"""`DecoderOnly` with the choices of LLaMA against Hugging Face's `LlamaForCausalLM`, and the parts it adds."""

import pytest
import torch
from torch import nn

from course_lib.transformer import DecoderOnly, Transformer, TransformerConfig
from course_lib.transformer.decoding import greedy
from course_lib.transformer.layers import FeedForward
from course_lib.transformer.norms import NORM_TYPES, make_norm
from tests.helpers.llama import llama
from tests.helpers.transformer import LLAMA, randomized, sized

SMALL = LLAMA | {
    "target_vocabulary": 41, "d_model": 24, "num_heads": 6, "num_kv_heads": 2, "decoder_layers": 3,
    "d_ff": 31, "max_length": 64, "pad_id": 3,
}  # fmt: skip


def small(**choices):
    return randomized(DecoderOnly(TransformerConfig(**(SMALL | choices)))).eval()


@pytest.mark.verifies(
    "course_lib.transformer.decoder_only.DecoderOnly", against="Hugging Face `LlamaForCausalLM`"
)
@pytest.mark.verifies(
    "course_lib.transformer.decoding.greedy", against="Hugging Face `LlamaForCausalLM.generate`"
)
@pytest.mark.parametrize(
    "choices",
    [
        {"rope_layout": "interleaved", "rope_theta": 10000.0, "norm_eps": 1e-5},
        {"rope_layout": "half", "rope_theta": 500.0, "norm_eps": 1e-2},
        {"tie_embeddings": True, "num_kv_heads": 6},
    ],
)
def test_decoder_only_equals_llama(ledger, choices):
    model = small(**choices)
    theirs = llama(model, attn_implementation="sdpa")
    tokens = torch.randint(4, 41, (3, 13))
    # RoPE's angles and RMSNorm are computed in float32 there, whatever the dtype.
    ledger.compare(model(tokens), theirs(tokens).logits, within=2e-5)
    given = {"attention_mask": torch.ones_like(tokens), "max_new_tokens": 20, "do_sample": False}
    found = greedy(model, tokens, max_length=20, eos_id=2)
    assert torch.equal(found, theirs.generate(tokens, **given)[:, 13 : 13 + found.shape[1]])


@pytest.mark.parametrize(
    "change",
    [
        {"rope_theta": 10.0},
        {"rope_layout": "half"},
        {"partial_rotary_factor": 0.5},
        {"norm_eps": 0.5},
        {"scale_embeddings": True},
        {"norm_type": "layer"},
        {"activation": "relu"},
        {"bias": True},
    ],
)
def test_every_choice_changes_the_logits(change):
    model = small()
    other = DecoderOnly(TransformerConfig(**(SMALL | change))).double().eval()
    other.load_state_dict(model.state_dict(), strict=False)
    for name, parameter in other.named_parameters():
        if name.endswith("bias"):
            nn.init.ones_(parameter)
    tokens = torch.randint(4, 41, (2, 13))
    assert (model(tokens) - other(tokens)).abs().max() > 1e-3


@pytest.mark.parametrize("model", [DecoderOnly, Transformer])
def test_without_biases_only_layer_norms_have_them(model):
    names = [name for name, _ in model(sized(bias=False)).named_parameters()]
    assert not [name for name in names if name.endswith("bias") and "norm" not in name]


@pytest.mark.verifies(
    "course_lib.transformer.norms.make_norm",
    "course_lib.transformer.norms.NORM_TYPES",
    against="PyTorch `nn.LayerNorm`, `nn.RMSNorm`",
)
def test_make_norm_makes_pytorchs_layers(ledger):
    x = torch.randn(5, 6, dtype=torch.float64)
    wanted = {"layer": nn.LayerNorm(6, eps=0.2).double(), "rms": nn.RMSNorm(6, eps=0.2).double()}
    assert set(NORM_TYPES) == set(wanted)
    for name, theirs in wanted.items():
        ledger.compare(make_norm(name, 6, 0.2).double()(x), theirs(x), within=1e-15)


@pytest.mark.verifies(
    "course_lib.transformer.layers.FeedForward", against="Hugging Face `LlamaMLP`"
)
def test_swiglu_equals_llama(ledger):
    from transformers.models.llama.modeling_llama import LlamaConfig, LlamaMLP

    sizes = {"hidden_size": 6, "intermediate_size": 9, "num_attention_heads": 2}
    theirs = randomized(LlamaMLP(LlamaConfig(**sizes)))
    ours = FeedForward(6, 9, activation="swiglu", bias=False).double()
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(2, 5, 6, dtype=torch.float64)
    ledger.compare(ours(x), theirs(x), within=1e-14)
