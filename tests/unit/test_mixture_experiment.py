"""The experiment behind study 15a: its models, their loads, and what was recorded."""

from statistics import fmean

import torch
import torch.nn.functional as F

from course_lib.experiments import mixture
from course_lib.experiments.runs import by_rate, read, where
from course_lib.topics.today import Routing


def test_the_models_are_equal_in_what_their_names_say():
    counts = {
        name: mixture.Mixture(*arm[:3]).parameter_counts() for name, arm in mixture.ARMS.items()
    }
    small, large, *mixtures = counts.values()
    assert small[0] == small[1] and large[0] == large[1]
    assert len(set(mixtures)) == 1
    routers = mixture.LAYERS * (8 - 1) * mixture.D_MODEL  # 8 rows of the router instead of one
    assert mixtures[0] == (large[0] + routers, small[1] + routers)


def test_a_dense_model_is_a_mixture_of_one_expert():
    model = mixture.Mixture(1, 1, 16)
    layer, x = model.model.blocks[0].feed_forward, torch.randn(3, 5, mixture.D_MODEL)
    gate, up = F.linear(x, layer.up_gate[0]).chunk(2, dim=-1)
    torch.testing.assert_close(layer(x), F.linear(F.silu(gate) * up, layer.down[0]))


def test_loads_are_relative_to_a_uniform_one():
    experts = torch.tensor([[0, 1], [0, 2], [0, 3], [0, 1]])
    routing = Routing(experts, torch.ones(4, 2), torch.rand(4, 4))
    assert mixture.loads(routing).tolist() == [2, 1, 0.5, 0.5]


def test_the_bias_moves_against_the_load_in_the_balanced_arm_alone(monkeypatch):
    """Twenty steps of 0.01: the busiest expert of each layer then has less to do."""
    monkeypatch.setattr(mixture, "BIAS_RATE", 0.01)
    plain, balanced = (
        mixture.trained(arm, 20 * 1024, 1e-3, seed=0) for arm in list(mixture.ARMS)[2:]
    )
    assert not any(router.bias.any() for router in plain.routers)
    assert all(router.bias.any() for router in balanced.routers)
    most = [mixture.held_out_loads(model).amax(dim=1) for model in (plain, balanced)]
    assert (most[1] < most[0]).all()


def losses(arm):
    return [run["loss"] for run in mixture.best(arm)]


def test_the_best_rates_lie_inside_their_sweeps_and_have_six_seeds():
    for arm in mixture.ARMS:
        runs = mixture.best(arm)
        assert [run["seed"] for run in runs] == list(range(6))
        tried = {run["lr"] for run in where(read("mixture"), arm=arm)}
        assert min(tried) < runs[0]["lr"] < max(tried)


def test_a_mixture_lies_between_the_dense_models():
    """What study 15a says: in the mean, and nearly seed by seed; the ranges overlap."""
    small, large, plain, balanced = (fmean(losses(arm)) for arm in mixture.ARMS)
    assert large + 0.03 < plain < balanced < small
    small, large, plain, _ = (losses(arm) for arm in mixture.ARMS)
    assert max(large) > min(plain) and max(plain) > min(small)
    assert all(a < b for a, b in zip(large, plain, strict=True))
    assert sum(a < b for a, b in zip(plain, small, strict=True)) == 5


def test_no_rate_but_the_best_has_a_larger_loss_with_balance():
    """So study 15a speaks of no difference."""
    plain, balanced = (
        by_rate([run for run in where(read("mixture"), arm=arm) if run["seed"] < 3], "loss")
        for arm in list(mixture.ARMS)[2:]
    )
    worse = [lr for lr in plain if fmean(balanced[lr]) > fmean(plain[lr])]
    assert worse == [mixture.best("2 of 8 experts")[0]["lr"]]


def test_the_bias_evens_out_the_load():
    for run in mixture.best("2 of 8, balanced"):
        assert all(0.85 < load < 1.15 for layer in run["loads"] for load in layer)
    for run in mixture.best("2 of 8 experts"):
        _, last = run["loads"]
        assert max(last) > 2.5 and min(last) < 0.06
