"""The experiment behind the depth explorer: deep stacks, their gradients, and what was recorded of them."""

import math

import pytest
import torch

from course_lib.experiments import depth as deep

NORMS = ("pre", "post")


def loss_by_hand(model, tokens):
    """The mean over the positions that have a token three positions back."""
    said = model(tokens)[:, 3:].log_softmax(-1)
    return -said.gather(-1, tokens[:, :-3, None]).mean()


def test_batches_come_again_and_every_symbol_is_as_frequent():
    one, same, other = deep.task_batches(5), deep.task_batches(5), deep.task_batches(6)
    first = [next(one) for _ in range(3)]
    assert all(torch.equal(batch, next(same)) for batch in first)
    assert not torch.equal(first[0], first[1]) and not torch.equal(first[0], next(other))
    together = torch.cat([next(one).flatten() for _ in range(50)])
    assert together.bincount(minlength=deep.SYMBOLS).min() > 0.9 * len(together) / 16


@pytest.mark.parametrize(
    ("norm", "final_norm", "ends_with_it"),
    [("pre", None, True), ("post", None, False), ("pre", False, False)],
)
def test_a_stack_is_made_of_so_many_blocks_and_ends_as_its_norm_asks(
    norm, final_norm, ends_with_it
):
    model = deep.DeepStack(7, norm, final_norm=final_norm)
    names = {tuple(name.split(".")[:2]) for name, _ in model.named_parameters()}
    assert {number for part, number in names if part == "blocks"} == set("0123456")
    assert any(part == "norm" for part, _ in names) is ends_with_it
    assert not [one for one in model.modules() if getattr(one, "rate", 0.0) or getattr(one, "p", 0)]


@pytest.mark.parametrize(("depth", "norm"), [(1, "pre"), (5, "post")])
def test_gradient_norms_are_those_of_backward(depth, norm):
    model, tokens = deep.DeepStack(depth, norm), next(deep.task_batches(3))
    before = {name: one.clone() for name, one in model.state_dict().items()}
    found = deep.gradient_norms(model, tokens)
    assert all(one.grad is None for one in model.parameters()), "nothing is left behind"
    assert all(torch.equal(before[name], one) for name, one in model.state_dict().items())

    loss_by_hand(model, tokens).backward()
    for block, norm_found in enumerate(found):
        squares = [
            parameter.grad.square().sum().item()
            for name, parameter in model.named_parameters()
            if name.startswith(f"blocks.{block}.")
        ]
        assert norm_found == pytest.approx(math.sqrt(math.fsum(squares)), rel=1e-4)
    assert len(found) == depth and deep.gradient_norms(model, tokens) == pytest.approx(
        found, rel=1e-5
    )


@pytest.mark.parametrize(("norm", "warmup"), [("pre", 0), ("post", 4)])
def test_training_is_adam_by_hand(norm, warmup):
    losses, seen = deep.train_stack(2, norm, warmup=warmup, seed=3, steps=10, lr=2e-3)
    torch.manual_seed(3)
    model, batches, probe = (
        deep.DeepStack(2, norm),
        deep.task_batches(3),
        next(deep.task_batches(12345)),
    )
    assert seen[0] == pytest.approx(deep.gradient_norms(model, probe), rel=1e-4)
    adam = torch.optim.Adam(model.parameters())
    for step in range(1, 11):
        adam.param_groups[0]["lr"] = 2e-3 * (step / warmup if step < warmup else 1)
        adam.zero_grad()
        loss = loss_by_hand(model, next(batches))
        loss.backward()
        adam.step()
        assert losses[step - 1] == pytest.approx(loss.item(), rel=1e-3), step
    assert list(seen) == [0, 10] and len(losses) == 10
    assert seen[10] == pytest.approx(deep.gradient_norms(model, probe), rel=1e-2)
