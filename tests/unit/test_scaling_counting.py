"""Parameters, FLOPs and bytes by formula against models: their parameters, PyTorch's counters and hooks."""

import dataclasses

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from course_lib.topics.scaling import (
    ARCHITECTURES,
    ActivationBytes,
    FlopCount,
    ParameterCount,
    activation_bytes,
    flops_per_token,
    kv_cache_bytes,
    parameter_count,
)
from course_lib.transformer import DecoderOnly, Transformer, TransformerConfig
from course_lib.transformer.positions import ENCODINGS

MODELS = {"decoder_only": DecoderOnly, "encoder_decoder": Transformer}
BASE = TransformerConfig(
    target_vocabulary=50, d_model=24, num_heads=6, encoder_layers=3, decoder_layers=2, d_ff=40,
    dropout=0.0, max_length=30,
)  # fmt: skip
CONFIGS = [
    BASE,
    dataclasses.replace(BASE, norm="pre", activation="gelu", num_kv_heads=2),
    dataclasses.replace(BASE, tie_embeddings=True, num_kv_heads=1, positions="learned"),
    dataclasses.replace(BASE, tie_embeddings=True, source_vocabulary=70, final_norm=True),
    dataclasses.replace(BASE, source_vocabulary=70, norm="pre", final_norm=False),
    dataclasses.replace(BASE, activation="swiglu", bias=False, num_kv_heads=2),
    dataclasses.replace(BASE, activation="swiglu", norm_type="rms", norm="pre"),
]
BATCH, LENGTH = 3, 7


def tokens(length=LENGTH, batch=BATCH):
    return torch.randint(1, 50, (batch, length))


def inputs(architecture):
    return (tokens(),) if architecture == "decoder_only" else (tokens(), tokens())


def part_of(name):
    """The part of a `ParameterCount` that a parameter belongs to, by its name."""
    parts = {
        "token_embedding": "embedding", "lm_head": "lm_head", "positions": "positions",
        "norm": "norm",
        "feed_forward": "feed_forward", "attention": "attention",
    }  # fmt: skip
    return next(part for word, part in parts.items() if word in name)


@pytest.mark.verifies("course_lib.topics.scaling.parameter_count", against="the model's parameters")
@pytest.mark.verifies("course_lib.topics.scaling.ParameterCount", against="the model's parameters")
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("config", CONFIGS)
def test_parameters_are_those_of_the_model_part_by_part(ledger, config, architecture):
    model = MODELS[architecture](config)
    parts = dict.fromkeys(ParameterCount._fields, 0)
    for name, parameter in model.named_parameters():
        parts[part_of(name)] += parameter.numel()
    count = parameter_count(config, architecture=architecture)
    assert count._asdict() == parts
    assert count.total == sum(p.numel() for p in model.parameters())
    without = parameter_count(config, embeddings=False, architecture=architecture)
    kept = ("attention", "feed_forward", "norm")
    assert without._asdict() == {n: parts[n] if n in kept else 0 for n in parts}
    ledger.holds()


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("positions", ENCODINGS)
def test_parameters_of_every_encoding(positions, architecture):
    config = dataclasses.replace(BASE, positions=positions)
    model = MODELS[architecture](config)
    counted = parameter_count(config, architecture=architecture).total
    assert counted == sum(p.numel() for p in model.parameters())


@pytest.mark.verifies("course_lib.topics.scaling.parameter_count", against="published sizes")
def test_published_sizes(ledger):
    """GPT-2 small has 124,439,808 parameters, the base Transformer 65 million with its shared vocabulary."""
    gpt2 = TransformerConfig(
        target_vocabulary=50257, d_model=768, num_heads=12, decoder_layers=12, d_ff=3072, norm="pre",
        positions="learned", max_length=1024, tie_embeddings=True, activation="gelu",
    )  # fmt: skip
    assert parameter_count(gpt2).total == 124_439_808
    assert parameter_count(gpt2, embeddings=False).total == 12 * (12 * 768**2 + 13 * 768) + 2 * 768
    base = TransformerConfig(target_vocabulary=37_000, tie_embeddings=True)
    total = parameter_count(base, architecture="encoder_decoder").total
    assert 62e6 < total < 65.5e6
    ledger.holds()


@pytest.mark.verifies(
    "course_lib.topics.scaling.flops_per_token", against="`FlopCounterMode` of PyTorch"
)
@pytest.mark.verifies("course_lib.topics.scaling.FlopCount", against="`FlopCounterMode` of PyTorch")
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("config", [CONFIGS[0], CONFIGS[1], CONFIGS[3], CONFIGS[5]])
def test_flops_are_those_that_pytorch_counts(ledger, config, architecture, training):
    model = MODELS[architecture](config)
    given = inputs(architecture)
    # The counter knows no rule for the fused kernel of the CPU; the plain one is made of matrix products.
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        logits = model(*given)
        if training:
            logits.sum().backward()
    count = flops_per_token(config, LENGTH, training=training, architecture=architecture)
    assert BATCH * LENGTH * count.total == counter.get_total_flops()
    by_operation = counter.get_flop_counts()["Global"]
    scores = sum(n for op, n in by_operation.items() if "bmm" in str(op))
    assert BATCH * LENGTH * count.scores == scores
    ledger.holds()


@pytest.mark.parametrize("part", ["projections", "feed_forward", "lm_head"])
def test_the_parts_of_the_flops_have_two_per_weight(part):
    count, parts = flops_per_token(CONFIGS[1], LENGTH), parameter_count(CONFIGS[1])
    weights = {
        "projections": parts.attention - 2 * (24 + 24 + 8 + 8),  # without the biases
        "feed_forward": parts.feed_forward - 2 * (40 + 24),
        "lm_head": parts.lm_head,
    }
    assert isinstance(count, FlopCount) and getattr(count, part) == 2 * weights[part]


def kept_by_autograd(model, *given):
    """Bytes of all floating-point tensors that autograd saves, except parameters; each memory once."""
    parameters = {p.untyped_storage().data_ptr() for p in model.parameters()}
    kept = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if tensor.is_floating_point() and storage.data_ptr() not in parameters:
            kept[storage.data_ptr()] = tensor, storage.nbytes()  # a tensor keeps its address taken
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        logits = model(*given)
    del logits
    return sum(size for _, size in kept.values())


@pytest.mark.verifies(
    "course_lib.topics.scaling.activation_bytes", against="`saved_tensors_hooks` of PyTorch"
)
@pytest.mark.verifies(
    "course_lib.topics.scaling.ActivationBytes", against="`saved_tensors_hooks` of PyTorch"
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("config", CONFIGS)
def test_activations_are_what_autograd_saves(ledger, config, dtype):
    model = DecoderOnly(config).to(dtype)
    for batch, length in ((3, 7), (2, 19)):
        count = activation_bytes(config, batch, length, dtype)
        assert isinstance(count, ActivationBytes)
        assert count.total == kept_by_autograd(model, tokens(length, batch))
    ledger.holds()


@pytest.mark.verifies("course_lib.topics.scaling.kv_cache_bytes", against="the filled `ModelCache`")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("config", CONFIGS)
def test_the_cache_is_that_of_generation(ledger, config, dtype):
    for batch, length in ((3, 7), (2, 5)):
        model = DecoderOnly(config).to(dtype).eval()
        cache = model.new_cache()
        model(tokens(length - 1, batch), cache=cache)
        model(tokens(1, batch), cache=cache)
        assert kv_cache_bytes(config, length, batch, dtype) == cache.nbytes
        model = Transformer(config).to(dtype).eval()
        cache = model.new_cache()
        model.decode(tokens(length, batch), model.encode(tokens(length, batch)), cache=cache)
        counted = kv_cache_bytes(config, length, batch, dtype, architecture="encoder_decoder")
        assert counted == cache.nbytes
    ledger.holds()


@pytest.mark.verifies(
    "course_lib.topics.scaling.ARCHITECTURES", against="the models of the library"
)
def test_the_architectures_are_the_two_models(ledger):
    assert set(ARCHITECTURES) == set(MODELS)
    with pytest.raises(ValueError, match="Did you mean 'decoder_only'"):
        parameter_count(BASE, architecture="decoder-only")
    ledger.holds()
