"""The times of layers: what is measured computes the same, and the record is complete."""

import time

import pytest
import torch

from course_lib.experiments import layer_times
from tests.helpers.attention import FUSED, Operators


def test_fused_and_stored_weights_give_the_same_output():
    stored, fused = (layer_times.SelfAttentionLayer(fused=fused) for fused in (False, True))
    fused.load_state_dict(stored.state_dict())
    x = torch.randn(2, 5, layer_times.D)
    torch.testing.assert_close(stored(x), fused(x))


@pytest.mark.parametrize("fused", [False, True])
def test_only_the_fused_layer_runs_the_fused_kernel(fused):
    layer = layer_times.SelfAttentionLayer(fused=fused)
    with torch.no_grad(), Operators() as operators:
        layer(torch.randn(1, 5, layer_times.D))
    assert (FUSED in operators.names) == fused
    assert ("aten::bmm" in operators.names) != fused


def test_the_convolution_is_causal_and_keeps_the_length():
    layer, x = layer_times.CausalConvolution(), torch.randn(1, 6, layer_times.D)
    changed = x.clone()
    changed[:, 3] = 0
    same = (layer(x) == layer(changed)).all(dim=-1)[0]
    assert same.tolist() == [True, True, True, False, False, False]


def test_the_least_time_is_that_of_one_call():
    def busy():
        end = time.process_time() + 0.003
        while time.process_time() < end:
            pass

    assert layer_times.least_times({"busy": busy}, repetitions=2)["busy"] == pytest.approx(3, abs=1)


def test_the_record_holds_every_layer_and_operation():
    recorded, layers = layer_times.recorded, list(layer_times.layers())
    assert list(recorded("layers")) == list(recorded("batches")) == layers
    assert list(recorded("operations")) == list(layer_times.operations(4))
    for group, count in (("layers", 8), ("operations", 8), ("batches", 2), ("dimensions", 4)):
        assert all(len(times) == count for times in recorded(group).values())
