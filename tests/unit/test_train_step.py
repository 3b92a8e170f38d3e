"""One training step against loops written out by hand."""

import math
import types

import pytest
import torch
from torch import nn

from course_lib.training import (
    Evaluation,
    TrainingConfig,
    fit,
    train_step,
)


class Classifier(nn.Module):
    """An embedding that is averaged, and two layers; float64."""

    def __init__(self, dtype=torch.float64):
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(6)
            self.embedding = nn.Embedding(9, 6, dtype=dtype)
            self.hidden = nn.Linear(6, 5, dtype=dtype)
            self.logits = nn.Linear(5, 4, dtype=dtype)

    def forward(self, tokens):
        return self.logits(self.hidden(self.embedding(tokens)).tanh())


def rows(count, seed=0):
    """Tokens and a class for each, as many as asked for."""
    random = torch.Generator().manual_seed(seed)
    tokens, classes = (torch.randint(n, (count,), generator=random) for n in (9, 4))
    return tokens, classes


def loss(model, batch):
    tokens, classes = batch
    return nn.functional.cross_entropy(model(tokens), classes)


def count(batch):
    return len(batch[0])


def numbers(model, of=lambda parameter: parameter):
    return torch.cat([of(one).detach().flatten().clone() for one in model.parameters()])


OPTIMIZERS = {
    "Adam": lambda model: torch.optim.Adam(model.parameters(), lr=0.02),
    "fused Adam": lambda model: torch.optim.Adam(model.parameters(), lr=0.02, fused=True),
    "AdamW": lambda model: torch.optim.AdamW(model.parameters(), lr=0.02, weight_decay=0.1),
    "SGD": lambda model: torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9),
}


# --- against loops written by hand -----------------------------------------------------------


@pytest.mark.verifies(
    "course_lib.training.train_step", against="a loop with PyTorch's optimizers, by hand"
)
@pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_steps_are_those_of_a_loop_written_by_hand(ledger, make):
    ours, theirs = Classifier(), Classifier()
    optimizer, oracle = make(ours), make(theirs)
    for step in range(8):
        tokens, classes = batch = rows(12, seed=step)
        found = train_step(ours, optimizer, loss, [batch], max_grad_norm=1e9)
        oracle.zero_grad()
        log_p = theirs(tokens).log_softmax(-1)
        wanted = -sum(log_p[row, right] for row, right in enumerate(classes)) / 12
        wanted.backward()
        oracle.step()
        ledger.compare(torch.tensor(found, dtype=torch.float64), wanted, within=1e-12)
        ledger.compare(numbers(ours), numbers(theirs), within=1e-12)


@pytest.mark.verifies("course_lib.training.train_step", against="PyTorch `Adam`, not fused")
def test_fused_adam_the_default_of_fit_is_adam(ledger):
    ours, theirs = Classifier(), Classifier()
    batches = [rows(12, seed=step) for step in range(40)]
    fit(ours, batches, loss, steps=40, lr=0.02)
    fit(theirs, batches, loss, steps=40, lr=0.02, optimizer=OPTIMIZERS["Adam"](theirs))
    ledger.compare(numbers(ours), numbers(theirs), within=1e-12)


@pytest.mark.verifies(
    "course_lib.training.train_step", against="PyTorch, on one batch that is not taken apart"
)
@pytest.mark.parametrize("sizes", [(7, 1, 4), (1, 11), (12,), (5, 5, 2)], ids=str)
def test_unequal_batches_weighted_by_tokens_are_one_big_batch(ledger, sizes):
    tokens, classes = rows(12)
    batches = list(zip(tokens.split(sizes), classes.split(sizes), strict=True))
    ours, theirs = Classifier(), Classifier()
    optimizer = torch.optim.SGD(ours.parameters(), lr=1.0)
    found = train_step(ours, optimizer, loss, batches, max_grad_norm=1e9, token_count=count)
    big = nn.CrossEntropyLoss()(theirs(tokens), classes)
    gradients = torch.autograd.grad(big, list(theirs.parameters()))
    wanted = torch.cat([one.flatten() for one in gradients])
    ledger.compare(torch.tensor(found, dtype=torch.float64), big, within=1e-12)
    ledger.compare(numbers(ours, lambda one: one.grad), wanted, within=1e-12, backward=True)
    ledger.compare(numbers(ours), numbers(theirs) - wanted, within=1e-12)


def test_without_token_counts_the_batches_count_equally():
    tokens, classes = rows(12)
    batches = [(tokens[:10], classes[:10]), (tokens[10:], classes[10:])]
    means = [loss(Classifier(), batch).item() for batch in batches]
    ours = Classifier()
    found = train_step(ours, OPTIMIZERS["SGD"](ours), loss, batches)
    assert found == pytest.approx(sum(means) / 2, abs=1e-15)
    assert abs(found - loss(Classifier(), (tokens, classes)).item()) > 1e-3


@pytest.mark.verifies(
    "course_lib.training.train_step", against="the norm with Python's `math`, and a clip by hand"
)
@pytest.mark.parametrize("max_grad_norm", [0.01, 0.2, 5.0])
def test_gradients_above_the_largest_norm_are_scaled_down_to_it(ledger, max_grad_norm):
    ours, theirs = Classifier(), Classifier()
    train_step(
        ours,
        torch.optim.SGD(ours.parameters(), lr=1.0),
        loss,
        [rows(12)],
        max_grad_norm=max_grad_norm,
    )
    gradients = torch.autograd.grad(loss(theirs, rows(12)), list(theirs.parameters()))
    flat = torch.cat([one.flatten() for one in gradients])
    norm = math.sqrt(math.fsum(one * one for one in flat.tolist()))
    assert 0.2 < norm < 5
    shrunk = flat * min(1.0, max_grad_norm / (norm + 1e-6))
    ledger.compare(numbers(ours, lambda one: one.grad), shrunk, within=1e-12, backward=True)
    ledger.compare(numbers(ours), numbers(theirs) - shrunk, within=1e-12)


@pytest.mark.verifies("course_lib.training.train_step", against="a loop with PyTorch `autocast`")
def test_bfloat16_is_autocast_in_the_forward_pass(ledger):
    ours, theirs = (Classifier(torch.float32) for _ in range(2))
    optimizer, oracle = OPTIMIZERS["SGD"](ours), OPTIMIZERS["SGD"](theirs)
    for step in range(5):
        batch = rows(12, seed=step)
        found = train_step(ours, optimizer, loss, [batch], precision="bfloat16")
        oracle.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            wanted = loss(theirs, batch)
        wanted.backward()
        nn.utils.clip_grad_norm_(theirs.parameters(), 1.0)
        oracle.step()
        assert found == wanted.item()
    ledger.compare(numbers(ours), numbers(theirs), within=0)
    assert not torch.is_autocast_enabled("cpu")


@pytest.mark.verifies(
    "course_lib.training.TrainingConfig", against="a loop with PyTorch `Adam` and `autocast`"
)
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("many", [1, 3])
@pytest.mark.parametrize("max_grad_norm", [0.05, 1.0])
def test_the_settings_of_training_are_those_of_a_loop(ledger, precision, many, max_grad_norm):
    ours, theirs = (Classifier(torch.float32) for _ in range(2))
    batches = [rows(size, seed=size) for size in (5, 9, 2, 11, 3, 6)]
    config = TrainingConfig(
        max_grad_norm=max_grad_norm,
        gradient_accumulation_steps=many,
        token_count=count,
        precision=precision,
    )
    history = fit(ours, batches, loss, steps=6 // many, lr=0.01, config=config)
    oracle = torch.optim.Adam(theirs.parameters(), lr=0.01, fused=True)
    for step, found in enumerate(history.losses):
        group = batches[step * many : (step + 1) * many]
        tokens = sum(len(one) for one, _ in group)
        oracle.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
            wanted = sum(loss(theirs, one) * len(one[0]) for one in group) / tokens
        wanted.backward()
        nn.utils.clip_grad_norm_(theirs.parameters(), max_grad_norm)
        oracle.step()
        assert found == pytest.approx(wanted.item(), rel=1e-3)
    exact = precision == "float32" or many == 1
    ledger.compare(numbers(ours), numbers(theirs), within=1e-6 if exact else 1e-4)


def scripted(scores):
    left = iter(scores)
    return lambda model: next(left)


@pytest.mark.verifies(
    "course_lib.training.Evaluation", against="Hugging Face `EarlyStoppingCallback`"
)
@pytest.mark.parametrize("patience", [1, 2, 3])
def test_patience_is_hugging_faces(ledger, patience):
    from transformers import EarlyStoppingCallback, TrainerControl, TrainerState

    random, stops = torch.Generator().manual_seed(patience), set()
    arguments = types.SimpleNamespace(metric_for_best_model="score", greater_is_better=True)
    for _ in range(20):
        scores = torch.randint(6, (8,), generator=random).tolist()
        callback, state = EarlyStoppingCallback(patience), TrainerState(best_metric=None)
        control, wanted = TrainerControl(), 8
        for step, score in enumerate(scores, 1):
            callback.on_evaluate(arguments, state, control, {"eval_score": score})
            state.best_metric = max(score, state.best_metric or -1)  # as the Trainer does
            if control.should_training_stop:
                wanted = step
                break
        evaluation = Evaluation(scripted(scores), every=1, patience=patience)
        history = fit(Classifier(), [rows(2)] * 8, loss, steps=8, evaluation=evaluation)
        assert len(history.losses) == wanted
        assert history.stopped == ("patience" if control.should_training_stop else "steps")
        assert list(history.scores.values()) == scores[:wanted]
        stops.add(wanted)
    assert len(stops) > 2
    ledger.holds()


# --- the model and its optimizer -------------------------------------------------------------


def test_it_trains_in_training_mode_and_returns_the_loss_before_the_step():
    ours = Classifier().eval()
    batch, optimizer = rows(12), OPTIMIZERS["SGD"](ours)
    before = loss(ours, batch).item()
    assert train_step(ours, optimizer, loss, [batch]) == before
    assert ours.training and loss(ours, batch).item() < before


def test_parameters_that_are_frozen_stay_and_do_not_count_for_the_norm():
    ours = Classifier()
    ours.embedding.requires_grad_(False)
    first = ours.embedding.weight.clone()
    optimizer = torch.optim.SGD([*ours.hidden.parameters(), *ours.logits.parameters()], lr=1.0)
    train_step(ours, optimizer, loss, [rows(12)])
    assert torch.equal(ours.embedding.weight, first) and ours.embedding.weight.grad is None


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_loss_that_is_not_finite_changes_neither_weights_nor_optimizer(bad):
    ours = Classifier()
    optimizer = OPTIMIZERS["Adam"](ours)
    train_step(ours, optimizer, loss, [rows(12)])
    weights = numbers(ours)
    moments = [one["exp_avg"].clone() for one in optimizer.state.values()]
    with pytest.raises(FloatingPointError, match=f"^the loss is {bad}; a smaller lr may help$"):
        train_step(ours, optimizer, lambda *given: loss(*given) * bad, [rows(12)])
    assert torch.equal(numbers(ours), weights)
    for one, before in zip(optimizer.state.values(), moments, strict=True):
        assert one["step"] == 1 and torch.equal(one["exp_avg"], before)


def test_a_gradient_that_is_not_finite_changes_nothing():
    ours = Classifier()
    weights = numbers(ours)

    def steep(model, batch):
        return (loss(model, batch) * 0).sqrt()  # 0, with an infinite slope

    with pytest.raises(FloatingPointError, match="^a gradient is not finite, though the loss is;"):
        train_step(ours, OPTIMIZERS["SGD"](ours), steep, [rows(12)])
    assert torch.equal(numbers(ours), weights)


@pytest.mark.parametrize(
    "lr", [None, 0.05, lambda step: 0.1 / step], ids=["own", "number", "schedule"]
)
def test_the_learning_rate_of_an_optimizer_of_ones_own_stays_unless_one_is_given(lr):
    ours = Classifier()
    groups = [{"params": ours.embedding.parameters()}, {"params": ours.hidden.parameters()}]
    groups.append({"params": ours.logits.parameters(), "lr": 0.7})
    optimizer, seen = torch.optim.SGD(groups, lr=0.2), []
    fit(
        ours,
        [rows(12)] * 3,
        loss,
        steps=3,
        lr=lr,
        optimizer=optimizer,
        callback=lambda _: seen.append([group["lr"] for group in optimizer.param_groups]),
    )
    if lr is None:
        assert seen == [[0.2, 0.2, 0.7]] * 3
    else:
        assert seen == [[lr if lr == 0.05 else lr(step)] * 3 for step in (1, 2, 3)]


def test_an_optimizer_of_ones_own_continues_from_where_it_is():
    ours, theirs = Classifier(), Classifier()
    batches = [rows(12, seed=step) for step in range(8)]
    optimizer = OPTIMIZERS["AdamW"](ours)
    fit(ours, batches[:4], loss, steps=4, optimizer=optimizer)
    fit(ours, batches[4:], loss, steps=4, optimizer=optimizer)
    fit(theirs, batches, loss, steps=8, optimizer=OPTIMIZERS["AdamW"](theirs))
    assert torch.equal(numbers(ours), numbers(theirs))


# --- bad input -------------------------------------------------------------------------------


def stepped(**settings):
    ours = Classifier()
    return lambda: train_step(ours, OPTIMIZERS["SGD"](ours), loss, [rows(4)], **settings)


def fitted(model=None, optimizer=OPTIMIZERS["SGD"]):
    ours = model or Classifier()
    return lambda: fit(ours, [rows(4)], loss, steps=1, optimizer=optimizer(ours))


@pytest.mark.usefixtures("without_annotations")
@pytest.mark.parametrize(
    ("call", "says"),
    [
        (
            fitted(optimizer=lambda model: torch.optim.SGD(model.hidden.parameters())),
            r"optimizer lacks embedding.weight, which requires gradients; make the optimizer from "
            r"model.parameters\(\), or freeze embedding.weight with requires_grad_\(False\)",
        ),
        (
            fitted(optimizer=lambda model: OPTIMIZERS["SGD"](Classifier())),
            r"optimizer lacks embedding.weight",
        ),
        (fitted(model=Classifier().half()), r"model has embedding.weight in float16, in which"),
        (stepped(max_grad_norm=0), r"max_grad_norm=0 is not a finite number above 0"),
        (stepped(precision="float16"), r"precision='float16' is unknown; .* Did you mean"),
    ],
)
def test_what_would_not_train_is_refused_by_name(call, says):
    with pytest.raises(ValueError, match=says):
        call()
