"""Accumulated small batches against big ones, and training in bfloat16 against a loop with autocast."""

import math

import pytest
import torch
from torch import nn

from course_lib.training import fit, next_token_loss

LENGTHS = (9, 2, 6, 3)  # of the sequences of one step, so unequal numbers of targets


class Bigrams(nn.Module):
    """A language model that reads one token."""

    def __init__(self, dtype=torch.float64):
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(3)
            self.embed = nn.Embedding(8, 5, dtype=dtype)
            self.logits = nn.Linear(5, 8, dtype=dtype)

    def forward(self, tokens):
        return self.logits(self.embed(tokens))


def big_batches(steps):
    """(4, 9) each, padded with 0."""
    random = torch.Generator().manual_seed(1)
    for _ in range(steps):
        batch = torch.zeros(len(LENGTHS), max(LENGTHS), dtype=torch.int64)
        for row, length in zip(batch, LENGTHS, strict=True):
            row[:length] = torch.randint(1, 8, (length,), generator=random)
        yield batch


def small_batches(steps):
    """The same sequences, two batches per step: the first three, then the last."""
    for batch in big_batches(steps):
        yield batch[:3]
        yield batch[3:, : LENGTHS[3]]


def loss(model, tokens):
    return next_token_loss(model(tokens[:, :-1]), tokens)


def targets(tokens):
    return (tokens[:, 1:] != 0).sum()


def numbers(model, of=lambda parameter: parameter):
    return torch.cat([of(one).detach().flatten() for one in model.parameters()])


def by_hand(model, batches, clip, cast=False):
    """The losses of a loop around PyTorch's Adam."""
    optimizer, losses = torch.optim.Adam(model.parameters(), lr=0.01), []
    for batch in batches:
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=cast):
            value = loss(model, batch)
        value.backward()
        nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        losses.append(value.item())
    return losses


# --- accumulation ----------------------------------------------------------------------------


@pytest.mark.verifies(
    "course_lib.training.fit", against="a loop with PyTorch `Adam` over batches not taken apart"
)
@pytest.mark.parametrize("clip", [0.1, 1e9])
@pytest.mark.parametrize("weight", [targets, lambda tokens: targets(tokens).item() / 7])
def test_small_batches_add_up_to_big_ones(ledger, weight, clip):
    ours, theirs = Bigrams(), Bigrams()
    settings = {"steps": 8, "rate": 0.01, "clip": clip, "accumulate": 2, "weight": weight}
    history = fit(ours, small_batches(8), loss, **settings)
    losses = [history.losses, by_hand(theirs, big_batches(8), clip)]
    ledger.compare(*torch.tensor(losses, dtype=torch.float64), within=1e-12)
    ledger.compare(numbers(ours), numbers(theirs), within=1e-12)
    # Adam and clipping forgive a gradient that is too long, so it is held against the other directly.
    gradients = [numbers(model, lambda one: one.grad) for model in (ours, theirs)]
    ledger.compare(*gradients, within=1e-12, backward=True)
    assert (gradients[0].norm().item() == pytest.approx(clip, rel=1e-4)) == (clip == 0.1)


def test_equal_weights_for_unequal_batches_learn_something_else():
    right, wrong = Bigrams(), Bigrams()
    settings = {"steps": 8, "rate": 0.01, "accumulate": 2}
    first = fit(right, small_batches(8), loss, weight=targets, **settings)
    second = fit(wrong, small_batches(8), loss, **settings)
    assert (numbers(right) - numbers(wrong)).abs().max() > 1e-3
    assert abs(first.losses[0] - second.losses[0]) > 1e-3
    halves = [loss(Bigrams(), tokens).item() for tokens in small_batches(1)]
    assert second.losses[0] == pytest.approx(sum(halves) / 2, abs=1e-15)


def test_one_batch_counts_for_one_whatever_it_weighs():
    ours, theirs = Bigrams(), Bigrams()
    history = fit(ours, big_batches(5), loss, steps=5, rate=0.01, weight=lambda batch: 0.3)
    assert history.losses == by_hand(theirs, big_batches(5), 1.0)
    assert torch.equal(numbers(ours), numbers(theirs))


def test_it_takes_no_more_batches_than_it_needs():
    batches = small_batches(5)
    fit(Bigrams(), batches, loss, steps=3, accumulate=2)
    assert sum(1 for _ in batches) == 4


def test_a_loss_that_is_not_finite_in_the_last_part_of_a_step_does_no_harm():
    def broken(model, tokens):
        return loss(model, tokens) * (math.nan if len(tokens) == 1 else 1.0)

    ours = Bigrams()
    with pytest.raises(FloatingPointError, match="the loss is nan at step 1"):
        fit(ours, small_batches(1), broken, steps=1, accumulate=2)
    assert torch.equal(numbers(ours), numbers(Bigrams()))


# --- precision -------------------------------------------------------------------------------


def seen_by_a_hook(model):
    dtypes = []
    model.logits.register_forward_hook(lambda module, came, gave: dtypes.append(gave.dtype))
    return dtypes


def score(model):
    with torch.no_grad():
        return -loss(model, next(big_batches(1))).item()


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_model_computes_in_the_precision_that_was_asked_for_and_stays_what_it_is(precision):
    ours = Bigrams(torch.float32)
    dtypes = seen_by_a_hook(ours)
    settings = {"steps": 3, "precision": precision, "accumulate": 2, "evaluate": score, "every": 9}
    fit(ours, small_batches(3), loss, **settings)
    assert dtypes == [getattr(torch, precision)] * 6 + [torch.float32]
    assert {one.dtype for one in ours.parameters()} == {torch.float32}
    assert {one.grad.dtype for one in ours.parameters()} == {torch.float32}
    assert not torch.is_autocast_enabled("cpu")


@pytest.mark.verifies(
    "course_lib.training.fit", against="a loop with PyTorch `Adam` and `autocast`"
)
def test_bfloat16_steps_as_a_loop_with_autocast(ledger):
    ours, theirs, exact = (Bigrams(torch.float32) for _ in range(3))
    history = fit(ours, big_batches(20), loss, steps=20, rate=0.01, precision="bfloat16")
    assert history.losses == by_hand(theirs, big_batches(20), 1.0, cast=True)
    ledger.compare(numbers(ours), numbers(theirs), within=0)
    fit(exact, big_batches(20), loss, steps=20, rate=0.01)
    assert 0 < (numbers(ours) - numbers(exact)).abs().max() < 0.05


def test_it_learns_in_bfloat16():
    ours = Bigrams(torch.float32)
    cycle = torch.arange(1, 8).repeat(2)[None]  # after n comes n + 1
    history = fit(ours, [cycle] * 300, loss, steps=300, rate=0.02, precision="bfloat16")
    assert history.losses[0] > 1.5 and history.losses[-1] < 0.05
    assert ours(cycle[:, :-1]).argmax(-1).equal(cycle[:, 1:])


# --- bad input -------------------------------------------------------------------------------


def trained(**settings):
    given = {"batches": small_batches(4), "loss": loss, "steps": 4} | settings
    return lambda: fit(Bigrams(), **given)


@pytest.mark.usefixtures("without_annotations")
@pytest.mark.parametrize(
    ("call", "says"),
    [
        (trained(accumulate=0), r"accumulate=0 is below 1"),
        (trained(accumulate=1.5), r"accumulate=1.5 is a float; it must be a whole number"),
        (
            trained(accumulate=3),
            r"batches ended before step 3; give 3 per step, or an endless stream",
        ),
        (trained(weight=5), r"weight=5 must be a function"),
        (
            trained(weight=lambda batch: 0),
            r"weight gave 0 at step 1; it must give a finite number above 0",
        ),
        (trained(weight=lambda batch: math.nan), r"weight gave nan at step 1"),
        (trained(weight=lambda batch: None), r"weight gave None at step 1"),
        (trained(weight=lambda batch: torch.ones(2)), r"weight gave tensor.* at step 1"),
        (
            trained(precision="bfloat"),
            r"precision='bfloat' is unknown; it must be one of 'float32', 'bfloat16'. Did you mean",
        ),
    ],
)
def test_bad_input_is_refused_by_name(call, says):
    with pytest.raises(ValueError, match=says):
        call()
