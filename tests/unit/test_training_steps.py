"""Accumulated small batches against big ones, and training in bfloat16 against a loop with autocast."""

import math

import pytest
import torch
from torch import nn

from course_lib.training import Evaluation, TrainingConfig, fit, next_token_loss

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


def by_hand(model, batches, max_grad_norm, cast=False):
    """The losses of a loop around PyTorch's Adam."""
    optimizer, losses = torch.optim.Adam(model.parameters(), lr=0.01, fused=True), []
    for batch in batches:
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=cast):
            value = loss(model, batch)
        value.backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_grad_norm)
        optimizer.step()
        losses.append(value.item())
    return losses


# --- accumulation ----------------------------------------------------------------------------


@pytest.mark.verifies(
    "course_lib.training.fit", against="a loop with PyTorch `Adam` over batches not taken apart"
)
@pytest.mark.parametrize("max_grad_norm", [0.1, 1e9])
@pytest.mark.parametrize("token_count", [targets, lambda tokens: targets(tokens).item() / 7])
def test_gradient_accumulation_equals_large_batches(ledger, token_count, max_grad_norm):
    ours, theirs = Bigrams(), Bigrams()
    config = TrainingConfig(
        max_grad_norm=max_grad_norm, gradient_accumulation_steps=2, token_count=token_count
    )
    history = fit(ours, small_batches(8), loss, steps=8, lr=0.01, config=config)
    losses = [history.losses, by_hand(theirs, big_batches(8), max_grad_norm)]
    ledger.compare(*torch.tensor(losses, dtype=torch.float64), within=1e-12)
    ledger.compare(numbers(ours), numbers(theirs), within=1e-12)
    # Adam and clipping forgive a gradient that is too long, so it is compared directly.
    gradients = [numbers(model, lambda one: one.grad) for model in (ours, theirs)]
    ledger.compare(*gradients, within=1e-12, backward=True)
    assert (gradients[0].norm().item() == pytest.approx(max_grad_norm, rel=1e-4)) == (
        max_grad_norm == 0.1
    )


def test_gradient_accumulation_without_token_counts_differs():
    right, wrong = Bigrams(), Bigrams()
    first, second = (
        fit(
            model,
            small_batches(8),
            loss,
            steps=8,
            lr=0.01,
            config=TrainingConfig(gradient_accumulation_steps=2, token_count=token_count),
        )
        for model, token_count in ((right, targets), (wrong, None))
    )
    assert (numbers(right) - numbers(wrong)).abs().max() > 1e-3
    assert abs(first.losses[0] - second.losses[0]) > 1e-3
    halves = [loss(Bigrams(), tokens).item() for tokens in small_batches(1)]
    assert second.losses[0] == pytest.approx(sum(halves) / 2, abs=1e-15)


def test_token_count_of_a_single_batch_has_no_effect():
    ours, theirs = Bigrams(), Bigrams()
    config = TrainingConfig(token_count=lambda batch: 0.3)
    history = fit(ours, big_batches(5), loss, steps=5, lr=0.01, config=config)
    assert history.losses == by_hand(theirs, big_batches(5), 1.0)
    assert torch.equal(numbers(ours), numbers(theirs))


def test_gradient_accumulation_takes_no_more_batches_than_it_needs():
    batches = small_batches(5)
    fit(Bigrams(), batches, loss, steps=3, config=TrainingConfig(gradient_accumulation_steps=2))
    assert sum(1 for _ in batches) == 4


def test_loss_that_is_not_finite_in_an_accumulated_batch_leaves_the_weights():
    def broken(model, tokens):
        return loss(model, tokens) * (math.nan if len(tokens) == 1 else 1.0)

    ours = Bigrams()
    config = TrainingConfig(gradient_accumulation_steps=2)
    with pytest.raises(FloatingPointError, match=r"the loss is nan; .*\nin training step 1"):
        fit(ours, small_batches(1), broken, steps=1, config=config)
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
def test_mixed_precision_computes_in_bfloat16_and_keeps_float32_weights(precision):
    ours = Bigrams(torch.float32)
    dtypes = seen_by_a_hook(ours)
    config = TrainingConfig(precision=precision, gradient_accumulation_steps=2)
    evaluation = Evaluation(score, every=9)
    fit(ours, small_batches(3), loss, steps=3, evaluation=evaluation, config=config)
    assert dtypes == [getattr(torch, precision)] * 6 + [torch.float32]
    assert {one.dtype for one in ours.parameters()} == {torch.float32}
    assert {one.grad.dtype for one in ours.parameters()} == {torch.float32}
    assert not torch.is_autocast_enabled("cpu")


@pytest.mark.verifies(
    "course_lib.training.fit", against="a loop with PyTorch `Adam` and `autocast`"
)
def test_mixed_precision_equals_a_loop_with_autocast(ledger):
    ours, theirs, exact = (Bigrams(torch.float32) for _ in range(3))
    config = TrainingConfig(precision="bfloat16")
    history = fit(ours, big_batches(20), loss, steps=20, lr=0.01, config=config)
    assert history.losses == by_hand(theirs, big_batches(20), 1.0, cast=True)
    ledger.compare(numbers(ours), numbers(theirs), within=0)
    fit(exact, big_batches(20), loss, steps=20, lr=0.01)
    assert 0 < (numbers(ours) - numbers(exact)).abs().max() < 0.05


def test_fit_learns_in_mixed_precision():
    ours = Bigrams(torch.float32)
    cycle = torch.arange(1, 8).repeat(2)[None]  # after n comes n + 1
    config = TrainingConfig(precision="bfloat16")
    history = fit(ours, [cycle] * 300, loss, steps=300, lr=0.02, config=config)
    assert history.losses[0] > 1.5 and history.losses[-1] < 0.05
    assert ours(cycle[:, :-1]).argmax(-1).equal(cycle[:, 1:])


def test_too_few_batches_for_a_step_are_refused():
    config = TrainingConfig(gradient_accumulation_steps=3)
    with pytest.raises(ValueError, match="batches ended before step 3; give 3 per step"):
        fit(Bigrams(), small_batches(4), loss, steps=4, config=config)
