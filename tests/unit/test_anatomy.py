"""The anatomy of a model against its module in `transformers`: parameters, caches and FLOPs."""

import json
from functools import cache

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from course_lib.tools import model_facts
from course_lib.topics.anatomy import Anatomy, anatomy, model_names
from course_lib.topics.anatomy.models import CATALOGUE
from course_lib.topics.anatomy.reading import FAMILIES as FAMILY_READERS
from course_lib.topics.anatomy.reading import UNCOUNTED
from course_lib.topics.anatomy.stored import LEFT_OUT, stored
from tests.helpers.anatomy import causal_lm, parameters, tensors, tiny

#: A model of each family.
FAMILIES = {entry.model_type: name for name, entry in CATALOGUE.items()}


@pytest.fixture(autouse=True)
def _of_today():
    """`make lowest` installs a `transformers` without these models."""
    pytest.importorskip("transformers.models.mistral_large4")


@cache
def configuration(name):
    return model_facts.configuration(CATALOGUE[name])


def small(name):
    """A tiny model of the same family, with random weights, and its anatomy."""
    config = tiny(configuration(name))
    module, _ = causal_lm(config)
    for parameter in module.parameters():
        parameter.data.normal_(std=0.05)
    return module.eval(), anatomy(config)


def test_the_stored_facts_are_those_of_the_installed_package():
    found, kept = model_facts.facts(), stored()
    command = "run: python -m course_lib.tools.model_facts"
    for name, model in found["models"].items():
        assert kept["models"].get(name) == model, f"{name} has changed; {command}"
    assert kept == found, command


@pytest.mark.verifies(
    "course_lib.topics.anatomy.model_names", against="its definition: from the oldest to the newest"
)
def test_at_least_25_models_are_stored_in_the_order_of_their_years(ledger):
    years = [CATALOGUE[name].year for name in model_names()]
    assert len(years) >= 25 and years == sorted(years) and (years[0], years[-1]) == (2019, 2026)
    ledger.holds()


@pytest.mark.verifies(
    "course_lib.topics.anatomy.anatomy",
    "course_lib.topics.anatomy.Anatomy",
    against="the parameters of Hugging Face's module, on the meta device",
)
@pytest.mark.parametrize("name", CATALOGUE)
def test_the_parameters_are_those_of_the_module(ledger, name):
    assert anatomy(name).parameters == parameters(configuration(name))
    ledger.holds()


def changed(config, **changes):
    """The same configuration with other values."""
    kept = {name: value for name, value in config.to_dict().items() if name not in NO_ARGUMENTS}
    return type(config)(**kept | changes)


NO_ARGUMENTS = ("model_type", "transformers_version", "architectures", "dtype")
#: Numbers of a configuration that switch something on.
SWITCHES = {"decoder_sparse_step": 2, "mlp_only_layers": [0], "n_shared_experts": 2, "shared_experts_intermediate_size": 28}  # fmt: skip


@pytest.mark.parametrize("family", FAMILIES)
def test_a_turned_switch_is_counted_or_refused(family):
    config = tiny(configuration(FAMILIES[family]))
    turned, tried = {k: not v for k, v in config.to_dict().items() if isinstance(v, bool)}, 0
    for name, value in (turned | SWITCHES).items():
        if not hasattr(config, name) or name in LEFT_OUT:
            continue
        try:
            other = changed(config, **{name: value})
            wanted = parameters(other)
        except (ValueError, TypeError, RuntimeError):
            continue  # of a value that it lacks, e.g. how many experts
        tried += 1
        if name in UNCOUNTED.get(family, ()):
            with pytest.raises(ValueError, match=f"{name}=True adds parameters that are not"):
                anatomy(other)
        else:
            assert (name, anatomy(other).parameters) == (name, wanted)
    assert tried


#: What published models of Gemma 4 switch on: shared keys and values with wide networks, keys as values, experts.
GEMMA4 = {
    "shared": {"num_kv_shared_layers": 2, "use_double_wide_mlp": True},
    "keys as values": {
        "attention_k_eq_v": True, "hidden_size_per_layer_input": 0, "global_head_dim": 16, "num_global_key_value_heads": 1,
    },
    "experts": {"enable_moe_block": True, "num_experts": 8, "top_k_experts": 2, "moe_intermediate_size": 20},
}  # fmt: skip


@pytest.mark.parametrize("switched", GEMMA4)
def test_gemma_4_is_read_as_it_is_published(switched):
    small = tiny(configuration("Gemma 4")).to_dict() | GEMMA4[switched]
    kinds = ["sliding_attention"] * 2 + ["full_attention"]
    small |= {"layer_types": kinds * 3, "num_hidden_layers": 9, "global_head_dim": 16}
    small = {k: v for k, v in small.items() if k not in (*NO_ARGUMENTS, "per_layer_config")}
    config = type(configuration("Gemma 4"))(**small)
    whole, published = anatomy(config), FAMILY_READERS["gemma4_text"](small)
    assert whole.parameters == parameters(config)
    # without `per_layer_config`, which the class makes
    assert list(whole.layers) == published.layers
    module, _ = causal_lm(config)
    with torch.no_grad():
        kept = module.eval()(torch.randint(3, 48, (1, 18)), use_cache=True).past_key_values
    assert whole.cache_bytes(18, 4) == sum(tensor.nbytes for tensor in tensors(kept))


#: The sizes in the names of models, of all parameters and of the active ones, in billions: a second check of the facts.
NAMED = {
    "GPT-NeoX-20B": (20.6, None),
    "Phi-3 mini": (3.8, None),
    "DeepSeek-V2-Lite": (15.7, 2.4),
    "DeepSeek-V3": (671, 37),
    "MiniMax-Text-01": (456, 45.9),
    "Qwen3-30B-A3B": (30.5, 3.3),
    "GLM-4.5-Air": (106, 12),
    "gpt-oss-120b": (117, 5.1),
    "Qwen3-Next-80B-A3B": (80, 3),
    "Kimi Linear 48B": (48, 3),
    "MiniMax-M2": (230, 10),
    "Qwen3.5-35B-A3B": (35, 3),
    "GLM-5": (744, 40),
    "Mistral Small 4": (119, 6.5),
    "DeepSeek-V4-Flash": (284, 13),
    "MiniMax-M3": (428, None),
    "Mistral Large 4": (None, 52),
    "Muse Spark": (816, None),
}


@pytest.mark.parametrize("name", NAMED)
def test_the_counts_are_near_those_that_the_makers_publish(name):
    """Makers round to the digits that they write, and count embeddings and output layer among the active ones, or do not."""
    total, active = NAMED[name]
    made = anatomy(name)
    if total:
        assert made.parameters / 1e9 == pytest.approx(total, rel=0.05)
    if active:
        head, table = made.lm_head or made.embedding, made.embedding if made.lm_head else 0
        half = 0.5 if isinstance(active, int) else 0.05
        assert (made.active - head) / 1e9 - half <= active <= (made.active + table) / 1e9 + half


def test_tables_from_which_a_token_reads_a_row_are_not_active():
    """The card of gpt-oss-120b counts so: 5.13 of 116.83 billion. Gemma 4 keeps its embeddings per layer in such a table."""
    assert anatomy("gpt-oss-120b").active / 1e9 == pytest.approx(5.13, abs=0.005)
    gpt2, gemma = anatomy("GPT-2"), anatomy("Gemma 4")
    assert gpt2.parameters - gpt2.active == 1024 * 768  # its embeddings are the output layer, too
    config = gemma.config
    table = config["vocab_size_per_layer_input"] * config["hidden_size_per_layer_input"]
    assert gemma.parameters - gemma.active == table * config["num_hidden_layers"]


@pytest.mark.verifies(
    "course_lib.topics.anatomy.Anatomy",
    against="the cache of a tiny module of Hugging Face, tensor by tensor",
)
@pytest.mark.parametrize("family", FAMILIES)
def test_the_bytes_of_the_cache_are_those_of_a_real_one(ledger, family):
    module, made = small(FAMILIES[family])
    module = module.to(torch.bfloat16)
    for length in (3, 18):
        with torch.no_grad():
            output = module(torch.randint(3, 48, (1, length)), use_cache=True)
        kept = output.past_key_values if "past_key_values" in output else output.cache
        assert made.cache_bytes(length) == sum(tensor.nbytes for tensor in tensors(kept))
    ledger.holds()


@pytest.mark.verifies(
    "course_lib.topics.anatomy.Anatomy",
    against="PyTorch's counter of FLOPs in a tiny module of Hugging Face",
)
@pytest.mark.parametrize(
    "family",
    [
        "gpt2", "gpt_neox", "llama", "mixtral", "qwen3_moe", "deepseek_v2", "deepseek_v3", "qwen3", "gemma4_text", "glm4_moe",
        "gpt_oss", "mistral4", "hy_v3", "laguna",
    ],
)  # fmt: skip
def test_the_flops_are_those_that_pytorch_counts(ledger, family):
    module, made = small(FAMILIES[family])
    module.config._experts_implementation = "eager"
    # within a window of 5: what the mask of a longer text hides is computed all the same
    length = 4 if "window" in made.kinds else 13
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        module(torch.randint(3, 48, (1, length)), use_cache=False)
    assert counter.get_total_flops() == length * made.flops_per_token(length)
    ledger.holds()


def test_a_model_is_named_or_handed_in_as_mapping_file_folder_or_configuration(tmp_path):
    wanted = anatomy("Qwen3-8B")
    config = configuration("Qwen3-8B")
    config.save_pretrained(tmp_path)
    file = tmp_path / "config.json"
    mapping = json.loads(file.read_text())
    for given in (config, mapping, {"text_config": mapping}, tmp_path, file, str(file)):
        made = anatomy(given)
        assert isinstance(made, Anatomy) and made.layers == wanted.layers
        assert made.parameters == wanted.parameters and made.name == "qwen3"


def test_without_the_package_a_whole_configuration_is_read_as_it_is(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "transformers.models.auto.configuration_auto", None)
    for name in model_names():
        assert anatomy(stored()["models"][name]["config"]).parameters == anatomy(name).parameters


def test_an_unknown_family_is_read_by_the_rules_of_one_that_the_message_names():
    config = stored()["models"]["Hy4"]["config"] | {"model_type": "hy_v9", "novel_size": 3}
    wanted = "nearest is family='hy_v4'.* and may not count what these decide: novel_size"
    with pytest.raises(ValueError, match=wanted):
        anatomy(config)
    made, hy4 = anatomy(config, family="hy_v4"), anatomy("Hy4")
    assert made.layers == hy4.layers and made.parameters == hy4.parameters
    assert (made.name, made.source) == ("hy_v9", "handed in, read as hy_v4")


@pytest.mark.parametrize(
    ("kind", "name"), [("muse_spark", "Muse Spark"), ("dots3_note", "dots3-note")]
)
def test_of_a_model_with_a_vision_part_the_part_of_the_text_is_read(kind, name):
    assert anatomy({"model_type": kind}).layers == anatomy(name).layers


def test_layers_that_share_a_choice_look_at_the_chosen_tokens_alone():
    hy4 = anatomy("Hy4")
    assert hy4.kinds == {"sparse": 34}
    longer = hy4.flops_per_token(200_000) - hy4.flops_per_token(100_000)
    assert longer == 10 * 2 * 16 * 128 * 100_000  # ten indexers of 16 heads of 128
    grows = hy4.cache_bytes(200_000) - hy4.cache_bytes(100_000)
    assert grows == (34 * (512 + 64) + 10 * 128) * 2 * 100_000


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (
            stored()["models"]["Ling 3.0 Flash"]["config"] | {"layer_types": ["conv"] * 42},
            "layer_types='conv' is unknown",
        ),
        ("Qwen3-8b", "Did you mean 'Qwen3-8B'"),
        ({"model_type": "mamba"}, "model_type='mamba' is unknown"),
        ({}, r"model_type='\(none\)' is unknown"),
        (3, "model is a int; it must be a name, a path, a mapping or a configuration"),
    ],
)
def test_what_cannot_be_read_is_refused(model, says):
    with pytest.raises(ValueError, match=says):
        anatomy(model)


@pytest.mark.parametrize(
    ("family", "says"),
    [
        ("hy_v5", "family='hy_v5' is unknown"),
        ("gpt2", "the configuration has no 'n_embd', which gpt2 is read by"),
    ],
)
def test_a_family_that_does_not_fit_is_refused(family, says):
    with pytest.raises(ValueError, match=says):
        anatomy(stored()["models"]["Hy4"]["config"], family=family)


def test_windows_states_and_summaries_bound_what_is_kept():
    def grows(name):
        made = anatomy(name)
        return (made.cache_bytes(200_000) - made.cache_bytes(100_000)) / 100_000

    assert grows("Mistral 7B") == 0
    assert grows("Qwen3-Next-80B-A3B") == 12 * 2 * 2 * 256 * 2
    assert grows("DeepSeek-V4-Flash") < 0.1 * grows("DeepSeek-V3")
