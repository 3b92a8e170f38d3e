"""What all experiments have in common: the plan is on record, its cheapest run comes again, other names are refused."""

from importlib import import_module

import pytest
import torch

from course_lib.checkpoints import pronoun_reader
from course_lib.experiments import (
    bottleneck,
    context_length,
    delta_recall,
    depth,
    efficient,
    heads,
    mixture,
    positions,
    post_norm,
    pronouns,
    runs,
    scale,
    scaling_ladder,
    scores,
    sparse_indexer,
)

pytestmark = pytest.mark.usefixtures("without_annotations")

TABLES = sorted(path.stem for path in runs.path_of(".").parent.glob("*.jsonl"))


#: Their plans depend on what is best so far, and do not name again all that it took to find that.
SWEPT = {"heads", "recipe", "post_norm", "scaling_ladder"}


def planned(name):
    module = import_module(f"course_lib.experiments.{name}")
    return module.PLAN if hasattr(module, "PLAN") else list(module.plan(runs.read(name)))


@pytest.mark.parametrize("name", TABLES)
def test_what_is_planned_is_recorded_and_nothing_else(name):
    rows, plan = runs.read(name), planned(name)
    missing = [settings for settings in plan if not runs.where(rows, **settings)]
    assert not missing, f"run: python -m course_lib.experiments.{name}"
    settings = set().union(*plan)
    chosen = [{key: row[key] for key in row.keys() & settings} for row in rows]
    unplanned = [row for row in chosen if not any(one.items() <= row.items() for one in plan)]
    assert not unplanned or name in SWEPT


#: A run of a few seconds of each table that has one.
CHEAPEST = {
    "bottleneck": {"task": "copying", "decoder": "fixed context", "steps": 700, "lr": 0.02, "seed": 0},
    "delta_recall": {"task": "rewritten", "arm": "delta", "lr": 0.016, "seed": 0},
    "depth": {"depth": 2, "norm": "pre", "warmup": 30, "seed": 1},
    "heads": {"arm": "attention only, 4 heads", "lr": 0.005, "seed": 1},
    "heads_longer": {"arm": "32 heads, scores of 8", "lr": 0.01, "seed": 1},
    "ladder_runs": {"size": "16x2", "lr": 0.0625, "steps": 64, "seed": 0},
    "mixture": {"tokens": 2**18, "arm": "dense, equal total", "lr": 0.0625, "seed": 0},
    "one_bit": {"seed": 1, "cell": "RNN", "lr": 0.01},
    "plateau": {"arm": "12 post, scale 0.1, warm-up 0, plain", "lr": 0.003, "seed": 0},
    "post_norm": {"arm": "6 post, scale 0.1, warm-up 0, plain", "steps": 300, "lr": 0.003, "seed": 0},
    "scale": {"d": 16, "scale": "1", "start": "1/√d", "on_scores": True, "lr": 0.001, "steps": 400, "seed": 1},
    "scaling_ladder": {"size": "16x1", "tokens": 32768, "lr": 0.03125, "seed": 0},
    "scores": {"order": "identity", "shift": 1.0, "score": "additive, no bias", "lr": 0.03, "seed": 1},
    "sparse_indexer": {"stage": "dense", "task": "one key", "lr": 0.008, "seed": 0},
    # at a small rate: at a larger one, rounding alone moves what is measured
    "warmup": {"norm": "pre", "warmup": 0, "lr": 0.001, "seed": 1},
}  # fmt: skip


def numbers(thing):
    """All numbers of a nested result, in order."""
    if isinstance(thing, int | float):
        return [float(thing)]
    inner = thing.values() if isinstance(thing, dict) else thing if isinstance(thing, list) else []
    return [number for one in inner for number in numbers(one)]


@pytest.fixture
def one_thread():
    """As when they were recorded; on a busy machine, threads of small tensors wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("name", CHEAPEST)
def test_the_cheapest_run_of_a_table_comes_again(name, one_thread):
    settings = CHEAPEST[name]
    again = import_module(f"course_lib.experiments.{name}").run(**settings)
    recorded = runs.where(runs.read(name), **settings)
    again = [settings | row for row in again]
    assert [row.keys() for row in again] == [row.keys() for row in recorded]
    assert numbers(again) == pytest.approx(
        numbers(recorded), rel=0.05, abs=0.05 if name == "bottleneck" else 0.02
    )


REFUSED = [
    (lambda: bottleneck.train_model("sorting", "Bahdanau", steps=10, lr=0.01), "task='sorting' is unknown"),
    (lambda: context_length.extended(context_length.make_model("rotary"), "YaRN"), "extension="),
    (lambda: delta_recall.sample("twice", 1, torch.Generator()), "task='twice' is unknown"),
    (lambda: next(delta_recall.train("once", "delta, slow", 0.01, 0)), "arm='delta, slow' is unknown"),
    (lambda: depth.train_stack(2, "middle"), "norm='middle' is unknown; it must be one of 'pre', 'post'"),
    (lambda: depth.train_stack(0, "pre"), "depth=0 is below 1"),
    (lambda: depth.train_stack(2, "pre", warmup=-1), "warmup=-1 is below 0"),
    (lambda: efficient.trained("two facts", "dense"), "task='two facts' is unknown"),
    (lambda: efficient.train("one fact", "sparse", (1e-3,)), "arm='sparse' is unknown"),
    (lambda: heads.Retrieval(4, path="skip"), "path='skip' is unknown"),
    (lambda: mixture.trained("3 of 8", 2**16, 0.01, 0), "arm='3 of 8' is unknown"),
    (lambda: positions.trained("rotary", "four back"), "task="),
    (lambda: positions.trained("rotor", "three back"), "rotor"),
    (lambda: post_norm.ScaledStack(2, "post", variant="skip"), "variant='skip' is unknown"),
    (lambda: post_norm.ScaledStack(2, "post", scale=0.0), "scale"),
    (lambda: pronouns.train_readers("noun", seeds=(0,), lr=1e-3, budgets=(1,)), "asked='noun' is unknown"),
    (lambda: pronouns.measure_reader(pronoun_reader().model, "noun"), "asked='noun' is unknown"),
    (lambda: pronouns.train_readers("it", seeds=(0,), lr=1e-3, budgets=(1,), projections="two"), "projections='two' is unknown"),
    (lambda: scale.train_scale("1", 16, -1.0), "learning rate"),
    (lambda: scaling_ladder.best_lr("8x1", 77), r"tokens=77 is not recorded for size='8x1'; \[32768"),
    (lambda: scores.accuracy("general", "identity", -1.0), "learning rate"),
    (lambda: sparse_indexer.Reader("8 × 8"), "size='8 × 8' is unknown"),
    (lambda: sparse_indexer.sample("no key", 1, torch.Generator()), "task='no key' is unknown"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "says"), REFUSED)
def test_what_cannot_be_trained_is_refused_by_name(call, says):
    with pytest.raises(ValueError, match=says):
        call()
