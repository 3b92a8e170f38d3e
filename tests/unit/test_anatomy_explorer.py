"""The anatomy explorer: what it draws and says is what a hand calculation gives."""

import numpy as np
import pytest

from course_lib.topics.anatomy import anatomy
from course_lib.topics.anatomy.stored import stored
from course_lib.widgets import anatomy_explorer
from tests.helpers.explorers import fact, move, panels


def gpt2_by_hand(length):
    """12 layers of keys and values of 768 numbers in two bytes; 85 million parameters in matrices, and the logits."""
    kept = 12 * 2 * 768 * length * 2
    flops = 12 * (2 * 12 * 768**2 + 4 * 768 * length) + 2 * 768 * 50257
    return kept, flops


@pytest.mark.parametrize("context", [100, 1_000_000])
def test_curves_and_markers_of_gpt2_are_those_by_hand(context):
    explorer = move(anatomy_explorer(), model="GPT-2", context=context)
    strip, memory, compute = (panel.data() for panel in panels(explorer))
    kept, flops = gpt2_by_hand(context)
    assert memory["marker at"] == compute["marker at"] == context
    assert memory["height"] == pytest.approx(kept / 1e9)
    assert compute["height"] == pytest.approx(flops / 1e9)
    lengths = panels(explorer)[1].x
    by_hand = np.array([gpt2_by_hand(int(n)) for n in lengths]) / 1e9
    assert memory["kept"] == pytest.approx(by_hand[:, 0])
    assert compute["FLOPs"] == pytest.approx(by_hand[:, 1])
    assert strip["layers"] == strip["global"] == 12 and strip["experts"] == 0
    assert fact(explorer, "parameters").startswith("0.12 billion, 0.12 active (99%)")
    assert fact(explorer, "context") == f"{context:,} tokens"
    assert fact(explorer, "per layer and token") == "global 3.07 kB"


def test_layers_and_experts_of_other_models_are_those_of_their_configurations():
    explorer = anatomy_explorer()
    for name in ("gpt-oss-120b", "Qwen3-Next-80B-A3B", "DeepSeek-V3.2", "Kimi Linear 48B"):
        config = stored()["models"][name]["config"]
        strip = panels(move(explorer, model=name))[0].data()
        kinds = config["layer_types"]
        assert strip["layers"] == len(kinds)
        assert strip["window"] == kinds.count("sliding_attention")
        assert strip["linear"] == kinds.count("linear_attention")
        assert strip["sparse"] == kinds.count("indexed_attention")
        assert strip["global"] == kinds.count("full_attention")
        mlps = config.get("mlp_layer_types")
        assert strip["experts"] == (mlps.count("sparse") if mlps else len(kinds))


def test_own_models_take_the_place_of_the_stored_ones():
    mine = {"mine": anatomy("Mistral 7B")}
    explorer = move(anatomy_explorer(mine), context=1_000_000)
    assert "model" not in explorer.controls
    assert panels(explorer)[1].data()["height"] == pytest.approx(32 * 2 * 8 * 128 * 4095 * 2 / 1e9)
    assert "new" not in explorer.summary.split()
