"""The experiment on positional encodings of study 06a: its tasks, its model, its record."""

import pytest
import torch

from course_lib.experiments import positions
from course_lib.experiments.positions import (
    SYMBOLS,
    TASKS,
    TRAINED,
    SmallModel,
    accuracies,
    repaired,
    trained,
)
from course_lib.experiments.runs import where
from course_lib.transformer.positions import ENCODINGS, AlibiBias, T5RelativeBias


def test_the_tasks_ask_what_they_say():
    tokens = torch.randint(SYMBOLS, (5, 11))
    for task, first, back in (("three back", 3, lambda at: at - 3), ("the first", 1, lambda at: 0)):
        asked = TASKS[task](tokens)
        for place in range(11):
            wanted = torch.full((5,), -100) if place < first else tokens[:, back(place)]
            assert torch.equal(asked[:, place], wanted), (task, place)


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("causal", [False, True])
def test_the_small_model_answers_at_every_place(encoding, causal):
    model = SmallModel(encoding, causal=causal)
    tokens = torch.randint(SYMBOLS, (3, TRAINED))
    with torch.no_grad():
        said = model(tokens)
        assert said.shape == (3, TRAINED, SYMBOLS) and said.isfinite().all()
        changed = tokens.clone()
        changed[:, -1] = (tokens[:, -1] + 1) % SYMBOLS
        before = model(changed)[:, :-1]
    assert torch.allclose(before, said[:, :-1], atol=1e-6) is causal
    shares = accuracies(model, "three back", count=4)
    beyond = encoding == "learned"
    assert [share is None for share in shares] == [False, beyond, beyond, beyond]
    assert all(0 <= share <= 1 for share in shares if share is not None)


def test_the_second_half_of_fresh_sequences_is_counted():
    class Knows(SmallModel):
        def forward(self, tokens):
            right = TASKS["the first"](tokens).clamp(min=0)
            right[:, : tokens.shape[1] // 2] = 0  # wrong, and not counted
            right[: len(tokens) // 4] = (right[: len(tokens) // 4] + 1) % SYMBOLS
            return torch.nn.functional.one_hot(right, SYMBOLS).float()

    assert accuracies(Knows("none"), "the first", count=40) == [0.75] * 4
    assert accuracies(Knows("none"), "three back", count=400) == pytest.approx(
        [1 / 16] * 4, abs=0.05
    )


@pytest.mark.parametrize(
    ("losses", "kept", "tried"),
    [
        # the lowest loss; the sweep goes on while that is at the edge
        ({1e-3: 0.3, 3e-3: 0.2, 1e-2: 0.4, 3e-2: 0.5}, 3e-3, [3e-3, 1e-2, 3e-2, 1e-3]),
        ({3e-3: 0.2, 1e-2: 0.1, 3e-2: 0.4}, 1e-2, [3e-3, 1e-2, 3e-2]),
        # rates that solve the task differ by noise
        ({3e-3: 1e-6, 1e-2: 1e-4, 3e-2: 0.0}, 1e-2, [3e-3, 1e-2, 3e-2]),
        ({3e-3: 1e-6, 1e-2: 0.2, 3e-2: 0.4}, 3e-3, [3e-3, 1e-2, 3e-2]),
    ],
)
def test_an_arm_keeps_the_learning_rate_with_the_lowest_loss(
    monkeypatch, without_annotations, losses, kept, tried
):
    made = []

    def trained(encoding, task, *, seed, steps, lr, causal):
        made.append((seed, lr))
        return seed, lr

    monkeypatch.setattr(positions, "trained", trained)
    monkeypatch.setattr(positions, "held_out_loss", lambda model, task: losses[model[1]])
    monkeypatch.setattr(positions, "accuracies", lambda model, task, count: list(model))
    rows = positions.run("causal", "the first", "shaw 4")
    chosen, swept = (where(rows, part=part) for part in ("chosen", "swept"))
    assert [row["accuracy"] for row in chosen] == [[0, kept], [1, kept], [2, kept]]
    found = {row["lr"]: (row["loss"], row["accuracy"]) for row in [chosen[0], *swept]}
    assert found == {lr: (losses[lr], [0, lr]) for lr in tried}
    assert made == [*((0, lr) for lr in tried), (1, kept), (2, kept)]


@pytest.mark.parametrize("causal", [False, True])
def test_the_variants_share_parameters_among_offsets_that_training_has(causal):
    for name in positions.VARIANTS:
        model = SmallModel(positions.arm_of(name, causal), causal=causal)
        tokens = torch.randint(SYMBOLS, (2, TRAINED))
        model(tokens).square().sum().backward()
        layer = model.attention[1].positions
        if isinstance(layer, T5RelativeBias):
            shared = layer(60, 60).detach()[:, 59, :45]  # (heads, distances from 15 on)
            assert (shared == shared[:, :1]).all()
        else:
            assert layer.key.grad[0].any(), "the row of the farthest keys is trained"


@pytest.mark.parametrize("causal", [False, True])
def test_the_repair_gives_far_keys_the_last_trained_bias_of_their_side(causal):
    model = SmallModel("t5", causal=causal)
    before, after = (
        one.attention[0].positions(60, 60).detach() for one in (model, repaired(model))
    )
    offset = torch.arange(60) - torch.arange(60)[:, None]  # (query, key)
    near = offset.abs() < TRAINED
    assert torch.equal(before[:, near], after[:, near]) and not torch.equal(before, after)
    for far, edge in ((offset <= 1 - TRAINED, 1 - TRAINED), (offset >= TRAINED - 1, TRAINED - 1)):
        assert (after[:, far] == after[:, offset == edge][:, :1]).all()


def test_an_encoding_of_a_learner_can_be_tried():
    model = SmallModel(lambda: AlibiBias(4), causal=True)
    first, second = (layer.positions for layer in model.attention)
    assert isinstance(first, AlibiBias) and first is not second, "one for each layer"
    assert model.position_embedding is None
    other = SmallModel("alibi", causal=True)
    other.load_state_dict(model.state_dict())
    tokens = torch.randint(SYMBOLS, (2, 9))
    with torch.no_grad():
        assert torch.equal(model(tokens), other(tokens))


def test_a_mask_takes_the_place_of_the_models_own():
    torch.manual_seed(2)
    model, tokens = SmallModel("t5", causal=True), torch.randint(SYMBOLS, (2, 9))
    causal = torch.ones(9, 9).tril().bool()
    alone = causal.clone()
    alone[4, :4] = False
    with torch.no_grad():
        own, given, other = model(tokens), model(tokens, causal), model(tokens, alone)
    assert torch.equal(own, given)
    assert torch.equal(own[:, :4], other[:, :4]) and not torch.allclose(own[:, 4], other[:, 4])


def test_rotary_soon_finds_three_back_and_nothing_does_not(without_annotations):
    one = accuracies(trained("rotary", "three back", steps=300), "three back")
    assert one[0] > 0.95 and one[1] > 0.95
    none = accuracies(trained("none", "three back", steps=100), "three back")
    assert max(none) < 0.4
