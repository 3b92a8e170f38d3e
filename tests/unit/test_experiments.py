"""What all experiments have in common: every arm is recorded, training comes again, other names are refused."""

import itertools

import pytest
from torch import nn

from course_lib.checkpoints import pronoun_reader
from course_lib.experiments import (
    beam_size,
    bottleneck,
    context_length,
    date_styles,
    depth,
    efficient,
    heads,
    heads_longer,
    long_context,
    lora,
    one_bit,
    plateau,
    positions,
    post_norm,
    pronouns,
    recipe,
    scale,
    scores,
    warmup,
)

pytestmark = pytest.mark.usefixtures("without_annotations")

#: What is recorded, and the names of all arms.
ARMS = {
    "beam size": (beam_size.recorded(), beam_size.ARMS),
    "bottleneck": (bottleneck.recorded(), [bottleneck.name_of(*arm) for arm in bottleneck.RATES]),
    "encodings": (context_length.recorded()["encodings"], context_length.ENCODINGS),
    "extensions": (context_length.recorded()["extensions"], context_length.EXTENSIONS),
    "date styles": (date_styles.recorded(), date_styles.ARMS),
    "depth": (
        depth.recorded(),
        [
            depth.name_of(*arm)
            for arm in itertools.product((2, 4, 6, 9, 12, 18), ("pre", "post"), (0, 30, 100))
        ],
    ),
    "efficient": (efficient.recorded()["own fact"], efficient.ARMS),
    "heads": (heads.recorded(), heads.ARMS),
    "heads for longer": (heads_longer.recorded(), heads_longer.ARMS),
    "one bit": (one_bit.recorded(), one_bit.CELLS),
    "long context": (long_context.recorded(), long_context.METHODS),
    "LoRA": (lora.recorded(), ["before", *lora.ARMS]),
    "positions": (positions.recorded()["bidirectional"]["the first"], positions.ARMS),
    "plateau": (plateau.recorded(), {name for name, _, _ in plateau.RUNS}),
    "post-norm": (post_norm.recorded(), post_norm.ARMS),
    "pronouns": (
        pronouns.recorded(),
        [
            pronouns.name_of(name, lr, steps)
            for name, arm in pronouns.ARMS.items()
            for lr, steps in itertools.product(arm.rates, arm.budgets)
        ],
    ),
    "recipe": (recipe.recorded(), recipe.ARMS),
    "scale": (scale.recorded(), [*map(str, scale.DIMENSIONS), "start", "scores"]),
    "scores": (scores.recorded()["permuted"], scores.SCORES),
    "warm-up": (
        warmup.recorded(),
        [warmup.arm(*arm) for arm in itertools.product(warmup.NORMS, warmup.WARMUPS)],
    ),
}


@pytest.mark.parametrize("name", ARMS)
def test_every_arm_is_recorded(name):
    recorded, arms = ARMS[name]
    assert set(recorded) == set(arms), "run: python -m course_lib.experiments.NAME"


def mean(runs):
    return sum(runs) / len(runs)


def chosen():
    """What is best, the mean at the learning rate that was chosen, and those at all recorded ones."""
    for task, arms in efficient.recorded().items():
        for arm, budget in itertools.product(arms, efficient.BUDGETS):
            rates = arms[arm][str(budget)].values()
            yield max, mean(efficient.best(task, arm, budget)), rates
    for arm, rates in heads.recorded().items():
        yield max, mean(heads.best(arm)), rates.values()
    for arm, by_steps in post_norm.recorded().items():
        yield min, mean(post_norm.best(arm)), by_steps[str(post_norm.STEPS)].values()
    for arm, rates in warmup.recorded().items():
        for column, budget in enumerate(warmup.BUDGETS):
            runs = [[run[column] for run in runs] for runs in rates.values()]
            yield max, mean(warmup.best(arm, budget)[1]), runs
    for arm, budgets in recipe.recorded().items():
        runs = [[run["exact"] for run in runs] for runs in budgets[str(recipe.SHORT)].values()]
        yield max, recipe.mean(recipe.best(arm, recipe.SHORT)[1]), runs
    for d, arm in itertools.product(scale.DIMENSIONS, ("1", "1/√d", "1/d")):
        rates = scale.recorded()[str(d)][arm].values()
        yield min, mean(scale.best(d, arm, 400)[1]), [runs["400"] for runs in rates]
    for arm, rates in scores.recorded()["permuted"].items():
        runs = [runs["500"] for runs in rates.values()]
        yield max, mean(scores.best("permuted", arm, 500)[1]), runs
    for rates in bottleneck.recorded().values():
        runs = [[runs[0]["validation"]] for runs in rates.values()]
        yield max, rates[bottleneck.best_rate(rates)][0]["validation"], runs


def test_the_learning_rate_of_an_arm_is_the_best_of_those_recorded():
    for best, found, every in chosen():
        assert found == pytest.approx(best(map(mean, every)))


#: From a seed to what a short training gives.
TRAINED = {
    "bottleneck": lambda seed: bottleneck.train_model(
        "copying", "fixed context", steps=10, lr=0.01, seed=seed
    ),
    "depth": lambda seed: depth.train_stack(2, "post", seed=seed, steps=2),
    "heads": lambda seed: heads.trained(num_heads=4, steps=2, seed=seed),
    "positions": lambda seed: positions.trained("t5", "the first", seed=seed, steps=2),
    "post-norm": lambda seed: post_norm.train(2, warmup=0, seed=seed, steps=3),
    "scale": lambda seed: scale.train_scale("1/√d", 16, 0.03, seed=seed, steps=3),
}


@pytest.mark.parametrize("name", TRAINED)
def test_training_again_is_the_same_and_another_seed_is_not(name):
    runs = [TRAINED[name](seed) for seed in (0, 0, 1)]
    if isinstance(runs[0], nn.Module):
        runs = [[parameter.tolist() for parameter in model.parameters()] for model in runs]
    assert runs[0] == runs[1] != runs[2]


REFUSED = [
    (lambda: bottleneck.train_model("sorting", "Bahdanau", steps=10, lr=0.01), "task='sorting' is unknown"),
    (lambda: bottleneck.train_model("copying", "Graves", steps=10, lr=0.01), "decoder='Graves' is unknown"),
    (lambda: context_length.extended(context_length.make_model("rotary"), "YaRN"), "extension="),
    (lambda: depth.train_stack(2, "middle"), "norm='middle' is unknown; it must be one of 'pre', 'post'"),
    (lambda: depth.train_stack(0, "pre"), "depth=0 is below 1"),
    (lambda: depth.train_stack(2, "pre", warmup=-1), "warmup=-1 is below 0"),
    (lambda: efficient.trained("two facts", "dense"), "task='two facts' is unknown"),
    (lambda: efficient.train("one fact", "sparse", (1e-3,)), "arm='sparse' is unknown"),
    (lambda: heads.Retrieval(4, path="skip"), "path='skip' is unknown"),
    (lambda: positions.trained("rotary", "four back"), "task="),
    (lambda: positions.trained("rotor", "three back"), "rotor"),
    (lambda: post_norm.ScaledStack(2, "post", variant="skip"), "variant='skip' is unknown"),
    (lambda: post_norm.ScaledStack(2, "post", scale=0.0), "scale"),
    (lambda: pronouns.train_readers("noun", seeds=(0,), lr=1e-3, budgets=(1,)), "asked='noun' is unknown"),
    (lambda: pronouns.measure_reader(pronoun_reader().model, "noun"), "asked='noun' is unknown"),
    (lambda: pronouns.train_readers("it", seeds=(0,), lr=1e-3, budgets=(1,), projections="two"), "projections='two' is unknown"),
    (lambda: recipe.train("no dropout", 4e-3, 0, 1), "arm='no dropout' is unknown"),
    (lambda: recipe.train("untied", 0.0, 0, 1), "lr"),
    (lambda: scale.train_scale("1/d²", 16, 0.1), "scale='1/d²' is unknown"),
    (lambda: scale.train_scale("1", 16, 0.0), "lr"),
    (lambda: scores.accuracy("product", "identity"), "name='product' is unknown"),
    (lambda: scores.accuracy("dot", "reversed"), "order='reversed' is unknown"),
    (lambda: warmup.train("middle", 0, 1e-3, 0, (1,)), "norm"),
    (lambda: warmup.train("pre", 0, -1.0, 0, (1,)), "lr"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "says"), REFUSED)
def test_what_cannot_be_trained_is_refused_by_name(call, says):
    with pytest.raises(ValueError, match=says):
        call()
