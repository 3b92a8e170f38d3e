"""The experiment behind notebook 07: deep post-norm stacks, the scale of their residual branches, and warm-up."""

import pytest
import torch

from course_lib.experiments.depth import DeepStack, task_batches
from course_lib.experiments.post_norm import (
    ARMS,
    LEARNED,
    LONG,
    LONG_ARMS,
    MANY,
    MANY_ARMS,
    MANY_RATE,
    MANY_SEEDS,
    MAP,
    MAP_RATES,
    RATES,
    RESIDUAL_WEIGHT,
    SEEDS,
    STEPS,
    ScaledStack,
    arm,
    best,
    recorded,
    survival,
    train,
)

TOKENS = next(task_batches(5))[:3]


def made(kind, *args, **options):
    torch.manual_seed(0)
    return kind(*args, **options)


def test_the_scale_changes_the_output_weights_of_the_branches_and_nothing_else():
    plain = made(DeepStack, 2, "post").state_dict()
    for name, weight in made(ScaledStack, 2, "post", scale=0.3).state_dict().items():
        scaled = name.endswith(("attention.out_proj.weight", "feed_forward.down_proj.weight"))
        torch.testing.assert_close(weight, (0.3 if scaled else 1.0) * plain[name])


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_at_scale_1_it_is_the_stack_of_the_depth_experiment(norm):
    stacks = made(DeepStack, 3, norm), made(ScaledStack, 3, norm)
    torch.testing.assert_close(stacks[1](TOKENS), stacks[0](TOKENS), rtol=0, atol=0)


def test_the_weighted_variant_starts_as_the_function_of_a_small_scale():
    weighted = made(ScaledStack, 4, "post", variant="weighted")
    scaled = made(ScaledStack, 4, "post", scale=1 / RESIDUAL_WEIGHT)
    torch.testing.assert_close(weighted(TOKENS), scaled(TOKENS), atol=1e-3, rtol=1e-3)


def test_the_embedding_is_added_after_every_block():
    stack = made(ScaledStack, 3, "post", variant="embedding added")
    streams = stack.residual_streams(TOKENS)
    assert len(streams) == 4
    for block, before, after in zip(stack.blocks, streams, streams[1:], strict=False):
        torch.testing.assert_close(after, block(before) + stack.embedding(TOKENS))


def test_survival_is_a_similarity_that_falls_with_scale_and_depth():
    assert survival(made(ScaledStack, 1, "post"), TOKENS) == pytest.approx(1)
    by_scale = [survival(made(ScaledStack, 8, "post", scale=s), TOKENS) for s in (0.1, 0.3, 1.0)]
    assert 0.9 < by_scale[0] > by_scale[1] > by_scale[2] < 0.3
    assert survival(made(ScaledStack, 2, "post"), TOKENS) > by_scale[2] + 0.3


def test_training_comes_again_and_warm_up_starts_slowly():
    runs = [train(2, warmup=w, seed=0, steps=4) for w in (0, 0, 4)]
    assert runs[0] == runs[1]
    assert runs[0][0] == runs[2][0] and runs[0][1] != runs[2][1]


def test_unknown_variants_and_scales_are_refused():
    with pytest.raises(ValueError, match="variant='skip' is unknown"):
        ScaledStack(2, "post", variant="skip")
    with pytest.raises(ValueError, match="scale"):
        ScaledStack(2, "post", scale=0.0)


def test_every_arm_is_recorded_with_every_seed_at_the_rates_it_needs():
    assert set(recorded()) == set(ARMS)
    for name, by_steps in recorded().items():
        more = [str(LONG)] * (name in LONG_ARMS) + [MANY] * (name in MANY_ARMS)
        assert set(by_steps) == {str(STEPS), *more}
        for key, by_rate in by_steps.items():
            count = len(MANY_SEEDS if key == MANY else SEEDS)
            assert all(len(runs) == count for runs in by_rate.values())
        rates = set(by_steps[str(STEPS)])
        swept = {f"{rate:g}" for rate in (MAP_RATES if name in MAP else RATES)}
        assert rates == swept or (name not in MAP and max(best(name)) < LEARNED and rates < swept)
        assert sum(best(name)) == min(map(sum, by_steps[str(STEPS)].values()))


def test_what_the_notebook_says_of_the_map():
    for warmup in (0, 200):
        assert min(best(arm(12, "post", warmup=warmup))) > 2.4
        assert min(best(arm(12, "post", warmup=warmup), LONG)) > 2.1
        assert max(best(arm(12, "post", scale=0.1, warmup=warmup))) < 0.02
    assert max(best(arm(12, "post", scale=0.3, warmup=200))) < 0.03
    assert min(best(arm(12, "post", scale=0.3))) > 0.3
    assert max(best(arm(12, "post", scale=0.3), LONG)) < 0.01


def test_what_the_notebook_says_of_warm_up():
    record = recorded()
    for scale in (0.3, 0.1):
        without, with_it = (record[arm(12, "post", scale=scale, warmup=w)]["300"] for w in (0, 200))
        assert min(without["0.01"]) > 2.7 and max(with_it["0.01"]) < 0.02
    without, with_it = (record[name][MANY][f"{MANY_RATE:g}"] for name in MANY_ARMS)
    assert sum(loss > 2.2 for loss in without) == 8 and max(with_it) < 0.6


def test_both_ways_to_keep_the_embedding_train():
    for variant in ("weighted", "embedding added"):
        assert max(best(arm(12, "post", variant=variant))) < 0.03
