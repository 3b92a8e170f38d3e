"""The experiment behind notebook 07: deep post-norm stacks, the scale of their residual branches, and warm-up."""

import pytest
import torch

from course_lib.experiments import post_norm
from course_lib.experiments.depth import DeepStack, task_batches
from course_lib.experiments.runs import by_rate

TOKENS = next(task_batches(5))[:3]


def made(kind, *args, **options):
    torch.manual_seed(0)
    return kind(*args, **options)


def test_the_scale_changes_the_output_weights_of_the_branches_and_nothing_else():
    plain = made(DeepStack, 2, "post").state_dict()
    for name, weight in made(post_norm.ScaledStack, 2, "post", scale=0.3).state_dict().items():
        scaled = name.endswith(("attention.out_proj.weight", "feed_forward.down_proj.weight"))
        torch.testing.assert_close(weight, (0.3 if scaled else 1.0) * plain[name])


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_at_scale_1_it_is_the_stack_of_the_depth_experiment(norm):
    stacks = made(DeepStack, 3, norm), made(post_norm.ScaledStack, 3, norm)
    torch.testing.assert_close(stacks[1](TOKENS), stacks[0](TOKENS), rtol=0, atol=0)


def test_the_weighted_variant_starts_as_the_function_of_a_small_scale():
    weighted = made(post_norm.ScaledStack, 4, "post", variant="weighted")
    scaled = made(post_norm.ScaledStack, 4, "post", scale=1 / post_norm.RESIDUAL_WEIGHT)
    torch.testing.assert_close(weighted(TOKENS), scaled(TOKENS), atol=1e-3, rtol=1e-3)


def test_the_embedding_is_added_after_every_block():
    stack = made(post_norm.ScaledStack, 3, "post", variant="embedding added")
    streams = stack.residual_streams(TOKENS)
    assert len(streams) == 4
    for block, before, after in zip(stack.blocks, streams, streams[1:], strict=False):
        torch.testing.assert_close(after, block(before) + stack.embedding(TOKENS))


def test_survival_is_a_similarity_that_falls_with_scale_and_depth():
    assert post_norm.survival(made(post_norm.ScaledStack, 1, "post"), TOKENS) == pytest.approx(1)
    by_scale = [
        post_norm.survival(made(post_norm.ScaledStack, 8, "post", scale=s), TOKENS)
        for s in (0.1, 0.3, 1.0)
    ]
    assert 0.9 < by_scale[0] > by_scale[1] > by_scale[2] < 0.3
    assert post_norm.survival(made(post_norm.ScaledStack, 2, "post"), TOKENS) > by_scale[2] + 0.3


def test_training_ends_once_the_held_out_loss_is_low_enough(monkeypatch):
    monkeypatch.setattr(post_norm, "EVERY", 2)
    whole = post_norm.train(2, steps=6)
    assert post_norm.train(2, steps=6, until=0.0) == whole
    assert post_norm.train(2, steps=6, until=100.0) == whole[:2]


def test_the_best_learning_rate_of_every_arm_has_a_worse_one_on_both_sides():
    for name in post_norm.ARMS:
        means = {lr: sum(each) for lr, each in by_rate(post_norm.runs(name), "loss").items()}
        assert set(post_norm.RATES) <= set(means)
        lr, losses = post_norm.best(name)
        assert min(means) < lr < max(means), name
        assert sum(losses) == means[lr] == min(means.values()) and len(losses) == 3


@pytest.mark.parametrize("initialisation", ["nn.Linear", "PyTorch's layer"])
def test_the_initialisations_are_those_of_pytorch(initialisation):
    block = made(post_norm.ScaledStack, 1, "post", initialisation=initialisation).blocks[0]
    attention, ffn = block.attention, block.feed_forward
    theirs = torch.nn.TransformerEncoderLayer(32, 4, 64)
    linear = torch.nn.Linear(32, 32)
    first = theirs.self_attn.in_proj_weight if initialisation != "nn.Linear" else linear.weight
    biases = initialisation == "nn.Linear"
    for ours, weight in (
        (attention.q_proj, first),
        (attention.k_proj, first),
        (attention.v_proj, first),
        (attention.out_proj, theirs.self_attn.out_proj.weight),
        (ffn.up_proj, theirs.linear1.weight),
        (ffn.down_proj, theirs.linear2.weight),
    ):  # uniform: the largest of a thousand numbers is close to the limit
        assert ours.weight.abs().max().item() == pytest.approx(weight.abs().max().item(), rel=0.02)
    for layer in (attention.q_proj, attention.out_proj):
        assert bool(layer.bias.any()) == biases
    assert ffn.up_proj.bias.any() and ffn.down_proj.bias.any()


def test_stacked_makes_queries_keys_and_values_smaller_and_nothing_else():
    plain = made(post_norm.ScaledStack, 2, "post").state_dict()
    stacked = made(post_norm.ScaledStack, 2, "post", initialisation="stacked").state_dict()
    for name, weight in stacked.items():
        smaller = name.endswith(("q_proj.weight", "k_proj.weight", "v_proj.weight"))
        torch.testing.assert_close(weight, plain[name] * (2**-0.5 if smaller else 1.0))
