"""The recorded ladder: what was recorded, how it is read, and one short training."""

import ast

import nbformat
import numpy as np
import pytest
import torch
import torch.nn.functional as F

from course_lib.data import docstring_text
from course_lib.experiments.scaling_ladder import (
    BATCH,
    FITTED_FROM,
    LENGTH,
    RATIOS,
    SEEDS,
    SIZES,
    LadderPoint,
    best_lr,
    held_out_loss,
    ladder_config,
    next_byte_loss,
    pairs,
    recorded_points,
    recorded_surface,
    resampled_surfaces,
    sweep,
    train_size,
    training_batches,
)
from course_lib.tools import normal_form
from course_lib.topics.scaling import LossSurface
from course_lib.transformer import DecoderOnly

SURFACE = LossSurface(0.9, 60.0, 0.35, 400.0, 0.4)


def drawn_points():
    """Points that lie on a known surface."""
    points = []
    for k in range(6):
        size, parameters = list(SIZES)[k], 3000 * 2**k
        for j in range(9):
            tokens = 2 ** (15 + j)
            loss = SURFACE.predict(parameters, tokens)
            points.append(LadderPoint(size, parameters, tokens, 0.01, (loss, loss, loss)))
    return points


def test_the_best_learning_rate_of_each_point_lies_between_two_worse_ones():
    points = recorded_points()
    assert len({point.size for point in points}) >= 8
    compute = [point.counted_flops for point in points]
    assert max(compute) / min(compute) >= 1000
    for point in points:
        first = sweep(point.size, point.tokens)
        assert len(point.losses) == SEEDS and point.lr == best_lr(point.size, point.tokens)
        assert first[point.lr] == min(first.values())
        assert min(first) < point.lr < max(first)
        assert {2 * point.lr, point.lr / 2} <= first.keys()
        model = DecoderOnly(ladder_config(point.size))
        assert point.parameters == sum(p.numel() for p in model.parameters())
        assert point.flops == 6 * point.parameters * point.tokens
        outside = (model.embedding.token_embedding, model.lm_head)
        assert point.without_embeddings == point.parameters - sum(m.weight.numel() for m in outside)


def cell_of_study_11d(start):
    cells = nbformat.read(
        normal_form.NOTEBOOKS / "studies" / "11d_ladder.ipynb", as_version=4
    ).cells
    return next(cell.source for cell in cells if cell.source.startswith(start))


def test_the_losses_on_the_page_of_study_11d_are_the_recorded_means():
    stated = ast.literal_eval(ast.parse(cell_of_study_11d("LOSSES = ")).body[0].value)
    found = [
        (parameters, first * 2**doubled, loss)
        for parameters, (first, losses) in stated.items()
        for doubled, loss in enumerate(losses)
    ]
    wanted = [(p.parameters, p.tokens, pytest.approx(p.loss, abs=5e-4)) for p in recorded_points()]
    assert found == wanted


def test_the_law_of_the_explorer_is_the_one_that_study_11d_fits():
    names = {"np": np}
    for start in ("LOSSES = ", "def loss("):
        exec(cell_of_study_11d(start), names)
    used = names["D"] >= FITTED_FROM
    irreducible, _, _, alpha, beta = names["fit_law"](*(names[one][used] for one in "NDL"))
    law = recorded_surface()
    found = law.irreducible, law.size_exponent, law.token_exponent
    assert found == pytest.approx((irreducible, alpha, beta), abs=0.02)


def test_resampled_surfaces_scatter_around_the_fit():
    points = [p._replace(losses=(0.99 * p.loss, p.loss, 1.01 * p.loss)) for p in drawn_points()]
    found = [surface.a for surface in resampled_surfaces(points, samples=12)]
    assert len(set(found)) == 12 and min(found) < SURFACE.a + 0.05 and max(found) > SURFACE.a - 0.05


def test_pairs_come_in_order_of_their_compute_and_keep_to_the_ratios():
    found = pairs(1e12)
    models = {size: DecoderOnly(ladder_config(size)) for size in SIZES}
    count = {size: sum(p.numel() for p in model.parameters()) for size, model in models.items()}
    flops = [6 * count[size] * tokens for size, tokens in found]
    first = len({size for size, _ in found})
    assert [size for size, _ in found[:first]] == [one for one in SIZES if one != "128x4"]
    for part in (flops[:first], flops[first:]):
        assert part == sorted(part) and part[-1] <= 1e12
    assert len(set(found)) == len(found)
    assert all(RATIOS[0] <= tokens / count[size] <= RATIOS[1] for size, tokens in found)
    assert set(pairs(1e11)) < set(found)


def test_the_text_is_read_once_before_it_is_read_again():
    batches, seen = training_batches(3), set()
    text = bytes(docstring_text().training.tolist())
    for _ in range(20):
        windows = next(batches)
        assert windows.shape == (BATCH, LENGTH + 1) and windows.dtype == torch.int64
        assert all(bytes(window.tolist()) in text for window in windows[:2])
        seen.update(tuple(window.tolist()) for window in windows)
    assert len(seen) > 19 * BATCH
    assert torch.equal(next(training_batches(3)), next(training_batches(3)))
    assert not torch.equal(next(training_batches(3)), next(training_batches(4)))


def test_the_loss_is_that_of_the_next_byte():
    model, windows = DecoderOnly(ladder_config("8x1")), next(training_batches(0))
    log_p = F.log_softmax(model(windows[:, :-1]), dim=-1)
    by_hand = -sum(log_p[b, t, windows[b, t + 1]] for b in range(BATCH) for t in range(LENGTH))
    wanted = by_hand.item() / BATCH / LENGTH
    assert next_byte_loss(model, windows).item() == pytest.approx(wanted, rel=1e-5)
    assert held_out_loss(model) == held_out_loss(model)


def test_a_short_training_lowers_the_loss_and_one_with_a_huge_learning_rate_does_not():
    torch.manual_seed(0)
    before = held_out_loss(DecoderOnly(ladder_config("8x1")))
    short = train_size("8x1", 20 * LENGTH * BATCH, 0.06)
    assert 2.5 < short < before - 0.5
    assert train_size("8x1", 20 * LENGTH * BATCH, 0.06) == short
    assert train_size("8x1", 20 * LENGTH * BATCH, 1e4) > short + 1


def test_bad_input_is_named():
    for call, words in (
        (lambda: ladder_config("9x9"), "size='9x9' is unknown"),
        (lambda: train_size("8x1", 100, 0.1), "tokens=100 is below 2048"),
        (lambda: train_size("8x1", 2048, 0.0), "lr=0 is not"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
