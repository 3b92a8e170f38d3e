"""The times of layers: what is measured computes the same, and the record is complete."""

import time

import pytest
import torch

from course_lib.experiments import layer_times


def test_fused_and_stored_weights_give_the_same_output():
    stored, fused = (layer_times.SelfAttentionLayer(fused=fused) for fused in (False, True))
    fused.load_state_dict(stored.state_dict())
    x = torch.randn(2, 5, layer_times.D)
    torch.testing.assert_close(stored(x), fused(x))


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


def test_the_record_holds_every_layer_and_step():
    record = layer_times.recorded()
    assert list(record["layers"]) == list(record["batches"]) == list(layer_times.layers())
    assert list(record["steps"]) == list(layer_times.steps(4))
    for group, count in (("layers", 8), ("steps", 8), ("batches", 2)):
        assert all(len(times) == count for times in record[group].values())


def test_the_record_is_what_study_4a_says_of_it():
    record, columns = layer_times.recorded(), list(layer_times.LENGTHS)
    at_64, at_1024, at_2048 = (columns.index(n) for n in (64, 1024, 2048))
    attention, gru, fused = (
        record["layers"][name] for name in ("self-attention", "GRU", "self-attention, fused")
    )
    assert 7 < gru[at_64] / attention[at_64] < 9
    assert 0.5 < attention[at_1024] / gru[at_1024] < 0.65
    assert attention[at_2048] > gru[at_2048]
    assert all(0.75 < a / b < 1.25 for a, b in zip(fused, attention, strict=True))
    together = [sum(times) for times in zip(*record["steps"].values(), strict=True)]
    whole = [one / four for one, four in zip(attention, together, strict=True)]
    assert all(1 < ratio < 1.3 for ratio in whole[at_64:at_2048])
    assert 1.3 < whole[at_2048] < 1.5
    projections = record["steps"]["four projections"]
    assert projections[at_64] > 0.5 * attention[at_64]
    assert projections[at_1024] < 0.1 * attention[at_1024]
    factors = [gru[i + 2] / gru[i] for i in range(0, 6, 2)]
    assert all(3.5 < factor < 4.5 for factor in factors)
    ratio = {name: many / one for name, (one, many) in record["batches"].items()}
    assert 6 < ratio["GRU"] < 8
    assert 35 < ratio["self-attention"] < 45
