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
    record = layer_times.recorded()
    assert list(record["layers"]) == list(record["batches"]) == list(layer_times.layers())
    assert list(record["operations"]) == list(layer_times.operations(4))
    for group, count in (("layers", 8), ("operations", 8), ("batches", 2), ("dimensions", 4)):
        assert all(len(times) == count for times in record[group].values())


def test_the_record_is_what_study_4a_says_of_it():
    record, columns = layer_times.recorded(), list(layer_times.LENGTHS)
    at_64, at_1024, at_2048 = (columns.index(n) for n in (64, 1024, 2048))
    attention, fused, gru, convolution = record["layers"].values()
    assert 7 < gru[at_64] / attention[at_64] < 9
    assert 0.45 < attention[at_1024] / gru[at_1024] < 0.6
    assert 0.9 < attention[at_2048] / gru[at_2048] < 1.15
    assert 0.85 < fused[at_64] / attention[at_64] < 1.15
    assert 0.75 < fused[at_1024] / attention[at_1024] < 0.87
    assert 0.7 < fused[at_2048] / attention[at_2048] < 0.8
    assert fused[at_2048] < 0.85 * gru[at_2048]
    assert 15 < attention[at_1024] / convolution[at_1024] < 20
    assert attention[2] < 2 * attention[0]
    assert 11 < attention[at_1024] / attention[at_1024 - 2] < 13.5
    projections = record["operations"]["four projections"]
    assert projections[at_64] > 0.5 * attention[at_64]
    assert projections[at_1024] < 0.1 * attention[at_1024]
    factors = [gru[i + 2] / gru[i] for i in range(0, 6, 2)]
    assert all(3.5 < factor < 4.1 for factor in factors)
    batches = record["batches"]
    assert 6 < batches["GRU"][1] / batches["GRU"][0] < 8
    assert 1.25 < batches["GRU"][1] / batches["self-attention"][1] < 1.55
    ratios = [a / b for a, b in zip(*reversed(list(record["dimensions"].values())), strict=True)]
    assert ratios == sorted(ratios, reverse=True) and 7 < ratios[0] < 9 and 1.8 < ratios[-1] < 2.6
