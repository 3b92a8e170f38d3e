"""The block of study 7c against decoder layers of `transformers`, and where their norms stand."""

import json
from pathlib import Path

import pytest
import torch
from torch import nn

from course_lib.tools import model_facts
from course_lib.topics.anatomy import anatomy
from course_lib.topics.anatomy.models import CATALOGUE
from tests.helpers.anatomy import causal_lm, tiny

STUDY = Path(__file__).parents[2] / "notebooks" / "studies" / "07c_block_of_today.ipynb"


@pytest.fixture(autouse=True)
def _of_today():
    """`make lowest` installs a `transformers` without these models."""
    pytest.importorskip("transformers.models.mistral_large4")


@pytest.fixture(scope="module")
def page():
    """The classes of the page, from its own cells."""
    names = {}
    for cell in json.loads(STUDY.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code" and source.startswith("# Part "):
            exec(source, names)
    return names


@pytest.mark.parametrize("theta, eps", [(1e6, 1e-6), (1e4, 1e-6)])
def test_the_block_equals_qwen3s_decoder_layer(page, theta, eps):
    """Values, and gradients of the input and of every weight, with weights as after training."""
    from transformers.models.qwen3 import Qwen3Config, modeling_qwen3

    torch.manual_seed(0)
    config = Qwen3Config(
        hidden_size=24, intermediate_size=40, num_attention_heads=6, num_key_value_heads=3, head_dim=10,
        rope_parameters={"rope_type": "default", "rope_theta": theta}, rms_norm_eps=eps,
    )  # fmt: skip
    config._attn_implementation = "eager"
    theirs = modeling_qwen3.Qwen3DecoderLayer(config, layer_idx=0)
    for p in theirs.parameters():
        nn.init.normal_(p, mean=float(p.dim() == 1), std=0.3)
    ours = page["Block"](24, 6, 3, d_head=10, d_ff=40, theta=theta)
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(2, 7, 24, requires_grad=True)
    mask = torch.ones(7, 7, dtype=torch.bool).tril()
    added = torch.zeros(1, 1, 7, 7).masked_fill(~mask, -torch.inf)
    at = modeling_qwen3.Qwen3RotaryEmbedding(config)(x, torch.arange(7)[None])
    outputs = ours(x, mask), theirs(x, added, position_embeddings=at)
    torch.testing.assert_close(*outputs, rtol=0, atol=1e-5)
    weights = torch.randn_like(outputs[0])
    gradients = [
        torch.autograd.grad((y * weights).mean(), [x, *dict(m.named_parameters()).values()])
        for y, m in zip(outputs, (ours, theirs), strict=True)
    ]
    names = [["x", *dict(m.named_parameters())] for m in (ours, theirs)]
    first, second = (dict(zip(*pair, strict=True)) for pair in zip(names, gradients, strict=True))
    assert first.keys() == second.keys()
    for name in first:
        torch.testing.assert_close(first[name], second[name], rtol=0, atol=1e-5, msg=name)


#: Where the study's table says that the norm stands.
NORMS = {
    "LLaMA 7B": "before", "Mistral 7B": "before", "Qwen3-8B": "before", "gpt-oss-120b": "before", "DeepSeek-V3": "before",
    "OLMo 2 7B": "after", "OLMo 3 7B": "after",
    "Gemma 2 2B": "both", "Gemma 3 4B": "both", "Gemma 4": "both",
}  # fmt: skip


@pytest.mark.parametrize("name", NORMS)
def test_norms_stand_where_the_study_says(name):
    """The input of the first sublayer is the stream or not; what is added to the stream is its output or not."""
    torch.manual_seed(0)
    module = causal_lm(tiny(model_facts.configuration(CATALOGUE[name])))[0].eval()
    for p in module.parameters():
        p.data.normal_(std=0.3)
    seen = {}
    layer = next(m for n, m in module.named_modules() if n.endswith("layers.0"))
    mixer = layer.self_attn

    def first(value):
        return value[0] if isinstance(value, tuple) else value

    layer.register_forward_pre_hook(
        lambda _, args, kw: seen.update(stream=args[0] if args else kw["hidden_states"]),
        with_kwargs=True,
    )
    mixer.register_forward_pre_hook(
        lambda _, args, kw: seen.update(read=args[0] if args else kw["hidden_states"]),
        with_kwargs=True,
    )
    mixer.register_forward_hook(lambda _, args, out: seen.update(wrote=first(out)))
    reads = []
    for norm in [m for n, m in layer.named_children() if "norm" in n]:
        norm.register_forward_pre_hook(lambda _, args: reads.append(args[0]))
    with torch.no_grad():
        module(torch.randint(3, 48, (1, 6)))
    before = not torch.equal(seen["read"], seen["stream"])
    after = any(r.shape == seen["wrote"].shape and torch.equal(r, seen["wrote"]) for r in reads)
    assert {(True, False): "before", (False, True): "after", (True, True): "both"}[
        before, after
    ] == NORMS[name]


def test_the_number_in_the_answer_is_that_of_the_anatomy():
    layer = anatomy("Qwen3-8B").layers[0]
    text = STUDY.read_text(encoding="utf-8")
    assert f"Together {layer.parameters:,}, of which the FFN has 78 %" in text
    assert round(100 * layer.network.parameters / layer.parameters) == 78
