"""Rotary positions on the first components of a head, against Hugging Face's GPT-NeoX, Phi, StableLM and GLM."""

from importlib import import_module
from typing import NamedTuple

import pytest
import torch

from course_lib.transformer.multihead import MultiHeadAttention
from course_lib.transformer.positions import RotaryPositions, rotary
from tests.helpers.tensors import DTYPES, ROUNDING, check, in_float64

BATCH, HEADS, LENGTH, D_HEAD = 2, 3, 5, 20
D_MODEL = HEADS * D_HEAD


class Model(NamedTuple):
    """A model of the package: its folder, the beginning of its class names, its layout, whether heads may share keys."""

    folder: str
    name: str
    layout: str
    shares: bool = True


MODELS = {
    model.name: model
    for model in (
        Model("gpt_neox", "GPTNeoX", "half", shares=False),
        Model("phi", "Phi", "half"),
        Model("stablelm", "StableLm", "half"),
        Model("glm", "Glm", "interleaved"),
    )
}


def made(model, factor, kv_heads=HEADS, theta=10000.0):
    """Its module, and a tiny configuration with this share."""
    package = "transformers.models." + model.folder
    module = import_module(f"{package}.modeling_{model.folder}")
    kind = getattr(import_module(f"{package}.configuration_{model.folder}"), model.name + "Config")
    rope = {"rope_type": "default", "rope_theta": theta, "partial_rotary_factor": factor}
    sizes = {"hidden_size": D_MODEL, "num_attention_heads": HEADS, "rope_parameters": rope}
    if model.shares:
        sizes |= {"num_key_value_heads": kv_heads}
    config = kind(**sizes, head_dim=D_HEAD, attention_dropout=0.0, attn_implementation="eager")
    assert config.rope_parameters["partial_rotary_factor"] == factor
    return module, config


def angles_of(module, model, config, x, first):
    """Cosines and sines of its own module, of the positions from `first` on."""
    embedding = getattr(module, model.name + "RotaryEmbedding")(config).double()
    return embedding(x, torch.arange(first, first + x.shape[-2])[None])


def rotated(module, cosine, sine, x):
    """A rotation as its attention does it: of what the cosines are there for."""
    size = cosine.shape[-1]
    first, _ = module.apply_rotary_pos_emb(x[..., :size], x[..., :size], cosine, sine)
    return torch.cat([first, x[..., size:]], dim=-1)


@pytest.mark.verifies(
    "course_lib.transformer.positions.rotary",
    "course_lib.transformer.positions.RotaryPositions",
    against="a part of a head in Hugging Face GPT-NeoX, Phi, StableLM and GLM",
)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("factor", "theta"), [(0.2, 10000.0), (0.4, 500.0), (1.0, 10000.0)])
@pytest.mark.parametrize("name", MODELS)
def test_the_first_components_are_rotated(ledger, name, factor, theta, dtype):
    model = MODELS[name]
    module, config = made(model, factor, theta=theta)
    options = {"layout": model.layout, "partial_rotary_factor": factor}
    positions = RotaryPositions(D_HEAD, theta, **options)
    for first in (0, 7):
        x = torch.randn(BATCH, HEADS, LENGTH, D_HEAD, dtype=dtype, requires_grad=True)
        (copied,) = in_float64(x)
        theirs = rotated(module, *angles_of(module, model, config, copied, first), copied)
        # their frequencies are in float32
        within = max(ROUNDING[dtype], 1e-5)
        places = torch.arange(first, first + LENGTH)
        check(ledger, rotary(x, places, theta, **options), [x], theirs, [copied], within)
        check(ledger, positions.rotate(x, x, first)[1], [x], theirs, [copied], within)
        kept = int(factor * D_HEAD)
        assert torch.equal(positions.rotate(x, x, first)[0][..., kept:], x[..., kept:])


@pytest.mark.verifies(
    "course_lib.transformer.multihead.MultiHeadAttention",
    against="whole layers of Hugging Face GPT-NeoX, Phi, StableLM and GLM",
)
@pytest.mark.parametrize("kv_heads", [HEADS, 1])
@pytest.mark.parametrize("name", MODELS)
def test_a_layer_is_that_of_hugging_face(ledger, name, kv_heads):
    model, factor = MODELS[name], 0.4
    if kv_heads != HEADS and not model.shares:
        pytest.skip("its heads share no keys")
    module, config = made(model, factor, kv_heads)
    theirs = getattr(module, model.name + "Attention")(config, layer_idx=0).double().eval()
    positions = RotaryPositions(D_HEAD, layout=model.layout, partial_rotary_factor=factor)
    ours = MultiHeadAttention(D_MODEL, HEADS, num_kv_heads=kv_heads, positions=positions).double()
    carried = {}
    for own, other in (("q_proj", 0), ("k_proj", 1), ("v_proj", 2)):
        layer = ours.get_submodule(own)
        if name == "GPTNeoX":  # of each head its query, its key and its value
            weight, bias = theirs.query_key_value.weight, theirs.query_key_value.bias
            parts = [
                x.unflatten(0, (HEADS, 3, D_HEAD))[:, other].flatten(0, 1) for x in (weight, bias)
            ]
        else:
            taken = theirs.get_submodule(own)
            bias = torch.zeros(len(taken.weight)) if taken.bias is None else taken.bias
            parts = [taken.weight, bias]
        with torch.no_grad():
            layer.weight.copy_(parts[0])
            layer.bias.copy_(parts[1])
        carried[own] = layer
    last = getattr(theirs, "dense", None) or theirs.o_proj
    with torch.no_grad():
        ours.out_proj.weight.copy_(last.weight)
        ours.out_proj.bias.copy_(0 if last.bias is None else last.bias)

    x = torch.randn(BATCH, LENGTH, D_MODEL, dtype=torch.float64, requires_grad=True)
    (copied,) = in_float64(x)
    causal = torch.full((LENGTH, LENGTH), -torch.inf, dtype=torch.float64).triu(1)[None, None]
    embeddings = angles_of(module, model, config, copied[:, None], 0)
    wanted = theirs(copied, attention_mask=causal, position_embeddings=embeddings)[0]
    found = ours(x, is_causal=True).output
    check(ledger, found, [x], wanted, [copied], 1e-5)
    mix = torch.randn(found.shape, dtype=torch.float64)
    one = torch.autograd.grad(found, ours.out_proj.weight, mix, retain_graph=True)[0]
    other = torch.autograd.grad(wanted, last.weight, mix)[0]
    ledger.compare(one, other, within=1e-5, backward=True)
    whole = MultiHeadAttention(
        D_MODEL,
        HEADS,
        num_kv_heads=kv_heads,
        positions=RotaryPositions(D_HEAD, layout=model.layout),
    ).double()
    whole.load_state_dict(ours.state_dict())
    assert (whole(x, is_causal=True).output - wanted).abs().max() > 1e-3, (
        "a part and all of it differ"
    )
