"""Facts of models in tables against the modules of `transformers`, with random weights or on the meta device."""

from importlib import import_module

import pytest
import torch
from torch import nn

from course_lib.tools import model_facts
from course_lib.topics.anatomy import model_names, side_by_side
from course_lib.topics.anatomy.models import CATALOGUE
from tests.helpers.anatomy import causal_lm, tiny

FAMILIES = {entry.model_type: name for name, entry in CATALOGUE.items()}


@pytest.fixture(autouse=True)
def _of_today():
    """`make lowest` installs a `transformers` without these models."""
    pytest.importorskip("transformers.models.mistral_large4")


def facts(name, *columns):
    _, [row] = side_by_side([name], columns)
    return row[1:]


def module_and_config(name):
    config = tiny(model_facts.configuration(CATALOGUE[name]))
    return causal_lm(config)[0].eval(), config


def attentions(module):
    """The layers of softmax attention, by name."""
    return {
        name: part
        for name, part in module.named_modules()
        if name.endswith(("self_attn", ".attn", ".attention"))
    }


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.verifies(
    "course_lib.topics.anatomy.side_by_side",
    against="what the norms of queries and keys are given in Hugging Face's module",
)
def test_queries_and_keys_are_normalised_where_the_module_does_it(ledger, family):
    name = FAMILIES[family]
    module, _ = module_and_config(name)
    seen = set()
    for part in attentions(module).values():
        for kind, norm in part.named_children():
            if kind in ("q_norm", "k_norm", "qk_norm", "q_b_norm"):
                norm.register_forward_pre_hook(lambda _, args: seen.add(args[0].shape[-1]))
    with torch.no_grad():
        module(torch.randint(3, 48, (1, 7)))
    # tiny: 4 heads and 2 KV heads of 8, or of 16 in global layers of Gemma 4
    allowed = {"no": [set()], "per head": [{8}, {8, 16}], "over all heads": [{16, 32}]}
    assert seen in allowed[facts(name, "QK-norm")[0]]
    ledger.holds()


@pytest.mark.parametrize("name", CATALOGUE)
@pytest.mark.verifies(
    "course_lib.topics.anatomy.side_by_side",
    against="projections, norms and feed-forward layers of Hugging Face's module on the meta device",
)
def test_the_layers_are_those_of_the_module(ledger, name):
    config = model_facts.configuration(CATALOGUE[name])
    with torch.device("meta"):
        module, _ = causal_lm(config)
    heads, kv_heads, d_head, norm, biases = facts(
        name, "heads", "KV heads", "d_head", "norm", "biases"
    )
    parts = dict(module.named_modules())
    norms = {type(part).__name__ for part in parts.values() if "Norm" in type(part).__name__}
    assert (norm == "LayerNorm") == (norms == {"LayerNorm"})
    keys = [part for path, part in parts.items() if path.endswith("self_attn.k_proj")]
    queries = [part for path, part in parts.items() if path.endswith("self_attn.q_proj")]
    if keys and isinstance(kv_heads, int):
        widths = {int(width) for width in str(d_head).split(" or ")}
        assert {part.out_features for part in keys} == {kv_heads * width for width in widths}
        gates = 2 if "linear_num_value_heads" in config.to_dict() and "Qwen" in name else 1
        each = [int(n) for n in str(heads).split(" or ")]
        assert {part.out_features for part in queries} == {
            gates * n * width for width in widths for n in each
        }
        assert {part.bias is not None for part in keys} == {biases == "yes"}
    latents = [part for path, part in parts.items() if path.endswith("kv_a_proj_with_mqa")]
    if latents:
        widths = sorted({part.out_features for part in latents})
        assert "latent of " + " or ".join(map(str, widths)) == kv_heads
    ledger.holds()


@pytest.mark.parametrize("name", ["GPT-NeoX-20B", "LLaMA 7B", "Gemma 3 4B", "Qwen3-8B", "SmolLM3-3B", "Qwen3-Next-80B-A3B", "GLM-4.5-Air", "Gemma 4", "OLMo 3 7B"])  # fmt: skip
@pytest.mark.verifies(
    "course_lib.topics.anatomy.side_by_side",
    against="the frequencies that Hugging Face's module rotates with",
)
def test_the_base_and_the_rotated_share_are_those_of_the_frequencies(ledger, name):
    """The first frequency is 1 and the others are its powers: their ratio gives θ, their number the share."""
    config = model_facts.configuration(CATALOGUE[name])
    module = import_module(type(config).__module__.replace("configuration", "modeling"))
    prefix = type(config).__name__.removesuffix("Config")
    made = next(
        getattr(module, f"{p}RotaryEmbedding")
        for p in (prefix, prefix.removesuffix("Text"))
        if hasattr(module, f"{p}RotaryEmbedding")
    )(config)
    theta, rotated, scaling = facts(name, "θ", "rotated", "scaling")
    found = {}
    for kind, words in (
        ("", ""),
        ("sliding_attention_", " (window)"),
        ("full_attention_", " (global)"),
    ):
        if not hasattr(made, f"{kind}inv_freq"):
            continue
        omega = getattr(made, f"{kind}inv_freq").double()
        _, _, width = facts(name, "heads", "KV heads", "d_head")
        width = int(str(width).split(" or ")[-1 if kind == "full_attention_" else 0])
        turning = int((omega > 0).sum())
        share = 2 * turning / width
        # ω_t = θ^(-2t / d), with d all or the rotated part of a head
        over = width if len(omega) == width // 2 else 2 * turning
        base = (omega[0] / omega[1]) ** (over / 2)
        found[words] = float(base), share
    assert found
    for words, (base, share) in found.items():
        for text, value in ((theta, f"{round(base, -2):,.0f}"), (rotated, share)):
            chosen = [one for one in text.split("), ") if words.strip(" ()") in one] or [text]
            shown = chosen[0].split(" (")[0]
            if isinstance(value, str):
                assert "YaRN" in scaling or float(shown.replace(",", "")) == pytest.approx(
                    base, rel=1e-3
                )
            else:
                assert {"all": 1.0, "1/4": 0.25, "1/2": 0.5}[shown] == value
    ledger.holds()


@pytest.mark.parametrize("name", ["SmolLM3-3B", "Llama 4 Scout", "Mistral Large 4", "Qwen3-8B"])
@pytest.mark.verifies(
    "course_lib.topics.anatomy.side_by_side",
    against="which layers of Hugging Face's module apply a rotation",
)
def test_layers_without_positions_are_those_that_do_not_rotate(ledger, name):
    with torch.device("meta"):
        module, _ = causal_lm(model_facts.configuration(CATALOGUE[name]))
    layers = [part for path, part in module.named_modules() if path.endswith("self_attn")]
    flat = sum(not getattr(layer, "use_rope", True) for layer in layers)
    (shown,) = facts(name, "no positions")
    assert shown == (f"{flat} of {len(layers)}" if flat else "–")
    ledger.holds()


@pytest.mark.verifies(
    "course_lib.topics.anatomy.side_by_side",
    against="which layers of Hugging Face's module are given a rotation",
)
def test_layers_of_muse_spark_without_positions_are_those_that_are_given_none(ledger):
    module, config = module_and_config("Muse Spark")
    given = []
    for part in attentions(module).values():
        part.register_forward_pre_hook(
            lambda _, args, more: given.append(more["position_embeddings"] is not None),
            with_kwargs=True,
        )
    with torch.no_grad():
        module(torch.randint(3, 48, (1, 7)))
    assert given == [bool(theta) for theta in config.layer_rope_theta] and not all(given)
    whole = model_facts.configuration(CATALOGUE["Muse Spark"]).layer_rope_theta
    assert facts("Muse Spark", "no positions") == (f"{whole.count(0)} of {len(whole)}",)
    ledger.holds()


def test_a_wrong_model_or_column_is_named():
    with pytest.raises(ValueError, match="model="):
        side_by_side(["GPT-5"], ["year"])
    with pytest.raises(ValueError, match="column="):
        side_by_side(["GPT-2"], ["weight"])
    assert {len(row) for row in side_by_side(model_names(), ["year", "FFN"])[1]} == {3}


def test_the_gate_is_the_third_matrix():
    """A gated FFN has three matrices, another one two."""
    for name, gated in (
        ("GPT-2", False),
        ("GPT-NeoX-20B", False),
        ("Qwen3-8B", True),
        ("Gemma 3 4B", True),
    ):
        module, _ = module_and_config(name)
        mlp = next(part for path, part in module.named_modules() if path.endswith("mlp"))
        matrices = [p for p in mlp.parameters() if p.dim() == 2]
        assert (
            len(matrices) == 2 + gated and (facts(name, "FFN")[0] in ("SwiGLU", "GeGLU")) == gated
        )
        assert isinstance(mlp, nn.Module)


def test_a_clamped_gate_has_a_limit_in_its_module():
    for name, clamped in (("gpt-oss-120b", True), ("Hy4", True), ("Qwen3-30B-A3B", False)):
        module, _ = module_and_config(name)
        limits = {
            getattr(part, "limit", getattr(part, "swiglu_limit", None)) for part in module.modules()
        }
        assert bool(limits - {None}) == clamped == facts(name, "FFN")[0].startswith("clamped"), name
