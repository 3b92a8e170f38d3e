"""Exercise `training_steps` of notebook 08."""

from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from course_lib.exercises.catalogue._shared import token_losses
from course_lib.exercises.catalogue.transformer_blocks._shared import NamedFunction
from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.training import next_token_loss


def training_steps(model, new_optimizer, batches):
    optimizer = new_optimizer(model.parameters())
    for source, target in batches:
        logits = model(source, target[:, :-1])  # (batch, target, vocabulary)
        labels = target[:, 1:].flatten()
        loss = F.cross_entropy(logits.flatten(0, 1), labels, ignore_index=0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.weight


class _Model(nn.Module):
    """The logits are a row per input token, plus the mean of the rows of the source."""

    def __init__(self, vocabulary):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(vocabulary, vocabulary))

    def forward(self, source, inputs):
        return self.weight[inputs] + self.weight[source].mean(dim=1, keepdim=True)

    def __eq__(self, other):
        return isinstance(other, _Model)  # training changes it

    __hash__ = nn.Module.__hash__

    def __deepcopy__(self, memo):
        twin = _Model(len(self.weight))
        twin.load_state_dict(self.state_dict())
        return twin

    def __repr__(self):
        return f"a model whose weight is {len(self.weight)} × {len(self.weight)} zeros"


class _Batches(list):
    """A list whose repr shows the tokens, and that compares and copies by value."""

    def __eq__(self, other):
        pairs = zip(self, other, strict=True)
        return all(torch.equal(a, b) for one, two in pairs for a, b in zip(one, two, strict=True))

    def __deepcopy__(self, memo):
        return _Batches([tuple(part.clone() for part in pair) for pair in self])

    def __repr__(self):
        return ", ".join(f"source {a.tolist()} target {b.tolist()}" for a, b in self)


class _SGD:
    """What `torch.optim.SGD` does, without its first import, which may take longer than a check."""

    def __init__(self, params, lr):
        self._parameters, self._lr = list(params), lr

    def zero_grad(self, set_to_none=True):
        for p in self._parameters:
            p.grad = None

    def step(self):
        for p in self._parameters:
            if p.grad is not None:
                p.data -= self._lr * p.grad


def _optimizer(lr):
    return NamedFunction(f"SGD with lr={lr}", lambda params: _SGD(params, lr))


def _mean(logits, labels):
    return F.cross_entropy(logits.transpose(1, 2), labels, ignore_index=0)


def _steps(
    model,
    new_optimizer,
    batches,
    *,
    order="zbs",
    inputs=lambda y: y[:, :-1],
    labels=lambda y: y[:, 1:],
    loss=_mean,
    sign=1,
):
    optimizer = new_optimizer(model.parameters())
    for source, target in batches:
        value = sign * loss(model(source, inputs(target)), labels(target))
        for action in order:
            {"z": optimizer.zero_grad, "b": value.backward, "s": optimizer.step}[action]()
    return model.weight.detach()


def _reference(model, new_optimizer, batches):
    optimizer = new_optimizer([model.weight])
    for source, target in batches:
        loss = next_token_loss(model(source, target[:, :-1]), target)
        (model.weight.grad,) = torch.autograd.grad(loss, [model.weight])
        optimizer.step()
    return model.weight.detach()


def _one_step(model, new_optimizer, batches):
    optimizer = new_optimizer(model.parameters())
    sum(_mean(model(source, y[:, :-1]), y[:, 1:]) for source, y in batches).backward()
    optimizer.step()
    return model.weight.detach()


def _summed(logits, labels):
    return (token_losses(logits, labels) * (labels != 0)).sum()


def _smoothed_mean(logits, labels):
    return F.cross_entropy(logits.transpose(1, 2), labels, ignore_index=0, label_smoothing=0.1)


def _padding_of_the_inputs(model, new_optimizer, batches):
    """Leave out the positions whose input is padding, not those whose label is."""
    optimizer = new_optimizer(model.parameters())
    for source, target in batches:
        inputs, labels = target[:, :-1], target[:, 1:]
        real = inputs != 0
        optimizer.zero_grad()
        F.cross_entropy(model(source, inputs)[real], labels[real]).backward()
        optimizer.step()
    return model.weight.detach()


EXERCISE = Exercise(
    name="training_steps",
    notebook="08_transformer",
    title="Training steps",
    reference=_reference,
    solution=training_steps,
    cases=(
        Case(
            model=_Model(4),
            new_optimizer=_optimizer(1.0),
            batches=_Batches(
                [
                    (torch.tensor([[3]]), torch.tensor([[1, 3, 2]])),
                    (torch.tensor([[3]]), torch.tensor([[1, 3, 2]])),
                ]
            ),
        ),
        Case(
            model=_Model(7),
            new_optimizer=_optimizer(0.5),
            batches=_Batches(
                [
                    (torch.tensor([[4, 5], [6, 3]]), torch.tensor([[1, 4, 5, 2], [1, 6, 2, 0]])),
                    (torch.tensor([[3, 3], [5, 4]]), torch.tensor([[1, 3, 2, 0], [1, 5, 4, 2]])),
                    (torch.tensor([[6, 4], [4, 4]]), torch.tensor([[1, 2, 0, 0], [1, 4, 6, 2]])),
                ]
            ),
        ),
    ),
    mistakes=(
        Mistake(
            "not_zeroed",
            partial(_steps, order="bs"),
            "The gradients are never set to zero, so each step adds the gradients of all steps before it: "
            "optimizer.zero_grad().",
        ),
        Mistake(
            "nothing_learned",
            partial(_steps, order="bzs"),
            "The weight does not change: there is no gradient when step is called, or step is never called. For each batch: "
            "optimizer.zero_grad(), loss.backward(), optimizer.step().",
        ),
        Mistake(
            "step_first",
            partial(_steps, order="sb"),
            "You step before backward: the first step has no gradients, and each later one uses old ones.",
        ),
        Mistake(
            "not_shifted",
            partial(_steps, labels=lambda y: y[:, :-1]),
            "The label of each position is its own input token. The labels are target[:, 1:].",
        ),
        Mistake(
            "whole_target",
            partial(_steps, inputs=lambda y: y, labels=lambda y: y),
            "Input and labels are both the whole target: nothing is shifted.",
        ),
        Mistake(
            "exchanged",
            partial(_steps, inputs=lambda y: y[:, 1:], labels=lambda y: y[:, :-1]),
            "Input and labels are exchanged: the model learns the token before each input.",
        ),
        Mistake(
            "counts_padding",
            partial(_steps, loss=lambda logits, labels: token_losses(logits, labels).mean()),
            "Padding counts in your loss. Leave out the labels that are 0: ignore_index=0.",
        ),
        Mistake(
            "divides_by_all",
            partial(
                _steps,
                loss=lambda logits, labels: (token_losses(logits, labels) * (labels != 0)).mean(),
            ),
            "Padding has no gradient, but your mean still divides by all positions. Divide by the number of labels that "
            "are not padding.",
        ),
        Mistake(
            "sum",
            partial(
                _steps,
                loss=lambda logits, labels: (token_losses(logits, labels) * (labels != 0)).sum(),
            ),
            "You sum the losses. Take their mean, or the step grows with the number of tokens in the batch.",
        ),
        Mistake(
            "mean_of_means",
            partial(
                _steps,
                loss=lambda logits, labels: (
                    (token_losses(logits, labels) * (labels != 0)).sum(1) / (labels != 0).sum(1)
                ).mean(),
            ),
            "You average within each sequence and then over sequences, so a token of a short sequence counts more. "
            "Average over all tokens at once.",
        ),
        Mistake(
            "softmax_first",
            partial(_steps, loss=lambda logits, labels: _mean(torch.softmax(logits, -1), labels)),
            "You apply a softmax first. F.cross_entropy takes logits; it applies the softmax itself.",
        ),
        Mistake(
            "ascent",
            partial(_steps, sign=-1),
            "You go uphill: the loss grows. Its sign is wrong.",
        ),
        Mistake(
            "one_step",
            _one_step,
            "You make one step after the last batch. Make one step per batch.",
        ),
        Mistake(
            "sum_by_the_batch",
            partial(_steps, loss=lambda logits, labels: _summed(logits, labels) / len(labels)),
            "You divide the sum of the losses by the number of sequences. Divide by the number of labels that are not padding.",
        ),
        Mistake(
            "sum_by_the_length",
            partial(_steps, loss=lambda logits, labels: _summed(logits, labels) / labels.shape[1]),
            "You divide the sum of the losses by the length. Divide by the number of labels that are not padding.",
        ),
        Mistake(
            "first_batch_only",
            lambda model, new_optimizer, batches: _steps(model, new_optimizer, batches[:1]),
            "You return after the first batch. Is the return inside the loop?",
        ),
        Mistake(
            "smoothed",
            partial(_steps, loss=_smoothed_mean),
            "Your loss has label smoothing 0.1. Here it is the cross-entropy without smoothing.",
        ),
        Mistake(
            "gradient",
            lambda model, new_optimizer, batches: (
                _steps(model, new_optimizer, batches),
                model.weight.grad,
            )[1],
            "You return the gradient of the last step. Return model.weight.",
        ),
        Mistake(
            "before_the_last_step",
            lambda model, new_optimizer, batches: _steps(model, new_optimizer, batches[:-1]),
            "This is the weight before the last step. Return model.weight at the end, after all steps.",
        ),
        Mistake(
            "reshaped",
            partial(
                _steps,
                loss=lambda logits, labels: F.cross_entropy(
                    logits.reshape(len(logits), logits.shape[2], -1), labels, ignore_index=0
                ),
            ),
            "You bring the classes to the second axis with view or reshape, which mixes positions and classes. Exchange the axes "
            "with transpose(1, 2), or flatten batch and positions.",
        ),
        Mistake(
            "padding_of_the_inputs",
            _padding_of_the_inputs,
            "You leave out the positions whose input is padding. What counts are the labels: at the end token the label is "
            "padding, and it must not be learned.",
        ),
        Mistake(
            "two_steps",
            lambda model, new_optimizer, batches: _steps(
                model, new_optimizer, [batch for batch in batches for _ in range(2)]
            ),
            "You make two steps for each batch. Make one.",
        ),
        Mistake(
            "sum_with_padding",
            partial(_steps, loss=lambda logits, labels: token_losses(logits, labels).sum()),
            "You sum the losses, those of padding too. Take the mean over the labels that are not padding: ignore_index=0.",
        ),
    ),
    hints=(
        "For each batch: the forward pass, the loss, then three calls on optimizer and loss. In which order?",
        "The input of the decoder is target[:, :-1], the labels are target[:, 1:]; ignore_index=0 leaves padding out.",
        "optimizer.zero_grad(), loss.backward(), optimizer.step(); at the end return model.weight.",
    ),
    differentiable=False,
)
