"""Training steps."""

import torch
import torch.nn.functional as F
from torch import nn

from course_lib.exercises.catalogue.transformer_blocks._shared import NamedFunction
from course_lib.train import next_token_loss


def training_steps(model, new_optimizer, batches):
    optimizer = new_optimizer(model.parameters())
    for source, target in batches:
        logits = model(source, target[:, :-1])  # (batch, target, vocabulary)
        labels = target[:, 1:]
        loss = F.cross_entropy(logits.mT, labels, ignore_index=0)  # classes on axis 1
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

    def __init__(self, params, lr, momentum):
        self._parameters, self._lr, self._momentum = list(params), lr, momentum
        self._moved = [torch.zeros_like(p) for p in self._parameters]

    def zero_grad(self, set_to_none=True):
        for p in self._parameters:
            p.grad = None

    def step(self, closure=None):
        loss = closure() if closure is not None else None
        for p, moved in zip(self._parameters, self._moved, strict=True):
            if p.grad is not None:
                moved.mul_(self._momentum).add_(p.grad)
                p.data -= self._lr * moved
        return loss


def _optimizer(lr, momentum=0.0):
    name = f"SGD with lr={lr}" + (f" and momentum={momentum}" if momentum else "")
    return NamedFunction(name, lambda params: _SGD(params, lr, momentum))


def reference(model, new_optimizer, batches):
    optimizer = new_optimizer([model.weight])
    for source, target in batches:
        loss = next_token_loss(model(source, target[:, :-1]), target)
        (model.weight.grad,) = torch.autograd.grad(loss, [model.weight])
        optimizer.step()
    return model.weight.detach()


LOGITS = "model(source, target[:, :-1])"
LOSS = "F.cross_entropy(logits.mT, labels, ignore_index=0)"
EACH = 'F.cross_entropy(logits.mT, labels, ignore_index=0, reduction="none")'
LOOP = "for source, target in batches:"
ZERO, BACK, STEP = "optimizer.zero_grad()", "loss.backward()", "optimizer.step()"
CLIP = "torch.nn.utils.clip_grad"
MISTAKES = rf"""
{ZERO} -> pass
    The gradients are not set to zero before each batch, so each step adds the gradients of all steps before it: call
    optimizer.zero_grad() inside the loop.
{ZERO} -> optimizer = new_optimizer(model.parameters()); {ZERO}
    You make a new optimizer for each batch, so what it keeps of the steps before, such as momentum, is lost. Make one,
    before the loop.
{ZERO}\n{BACK} -> {BACK}\n{ZERO}
    The weight does not change: there is no gradient when step is called, or step is never called. For each batch:
    optimizer.zero_grad(), loss.backward(), optimizer.step().
{ZERO}\n{BACK}\n{STEP} -> {STEP}\n{BACK}
{ZERO}\n{BACK}\n{STEP} -> {STEP}\n{ZERO}\n{BACK}
    You step before backward: the first step has no gradients, and each later one uses old ones.
{STEP} -> {CLIP}_norm_(model.parameters(), 1.0); {STEP}
{STEP} -> {CLIP}_norm_(model.parameters(), 0.5); {STEP}
{STEP} -> {CLIP}_value_(model.parameters(), 1.0); {STEP}
{STEP} -> {CLIP}_value_(model.parameters(), 0.5); {STEP}
    You clip the gradients. Here each step uses them as they are.
target[:, 1:] -> target[:, :-1]
    The label of each position is its own input token. The labels are target[:, 1:].
target[:, :-1] -> target
+ target[:, 1:] -> target
    Input and labels are both the whole target: nothing is shifted.
target[:, :-1] -> target[:, 1:]
    Each label is its own input token, because your input lacks the first token. Leave out the last one: target[:,
    :-1].
target[:, :-1] -> target[:, 1:]
+ target[:, 1:] -> target[:, :-1]
    Input and labels are exchanged: the model learns the token before each input.
target[:, :-1] -> target
|| {LOSS} -> F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=0)
    Your input is the whole target, so there is one position more than there are labels. Leave out the last token:
    target[:, :-1].
target[:, 1:] -> target
|| {LOSS} -> F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=0)
    Your labels are the whole target, so there is one more than there are positions. Leave out the first token:
    target[:, 1:].
{LOGITS} -> model(target[:, :-1], source)
    The arguments of the model are exchanged: model(source, inputs).
logits.mT -> logits
    F.cross_entropy takes the classes on axis 1, and your logits have them on axis 2. Use logits.mT, or flatten batch
    and positions.
logits.mT -> logits.flatten(0, 1)
    You flatten the logits and not the labels. F.cross_entropy needs one row of logits for each label:
    labels.flatten().
logits.mT, labels -> logits, labels.flatten()
    You flatten the labels and not the logits. F.cross_entropy needs one row of logits for each label:
    logits.flatten(0, 1).
logits.mT -> logits.reshape(len(logits), logits.shape[2], -1)
    You bring the classes to the second axis with view or reshape, which mixes positions and classes. Exchange the
    axes with transpose(1, 2), or flatten batch and positions.
, ignore_index=0 ->
    Padding counts in your loss. Leave out the labels that are 0: ignore_index=0.
ignore_index=0) -> ignore_index=0, reduction="none").mean()
    Padding has no gradient, but your mean still divides by all positions. Divide by the number of labels that are not
    padding.
ignore_index=0) -> ignore_index=0, reduction="sum")
    You sum the losses. Take their mean, or the step grows with the number of tokens in the batch.
{LOSS} -> ({EACH}.sum(1) / (labels != 0).sum(1)).mean()
    You average within each sequence and then over sequences, so a token of a short sequence counts more. Average over
    all tokens at once.
ignore_index=0) -> ignore_index=0, reduction="sum") / len(labels)
    You divide the sum of the losses by the number of sequences. Divide by the number of labels that are not padding.
ignore_index=0) -> ignore_index=0, reduction="sum") / labels.shape[1]
    You divide the sum of the losses by the length. Divide by the number of labels that are not padding.
, ignore_index=0 -> , reduction="sum"
    You sum the losses, those of padding too. Take the mean over the labels that are not padding: ignore_index=0.
{LOSS} -> F.cross_entropy(logits[target[:, :-1] != 0], labels[target[:, :-1] != 0])
    You leave out the positions whose input is padding. What counts are the labels: at the end token the label is
    padding, and it must not be learned.
ignore_index=0 -> ignore_index=2
    You leave out the labels that are 2, the end token. Padding is 0.
logits.mT -> logits.softmax(-1).mT
    You apply a softmax first. F.cross_entropy takes logits; it applies the softmax itself.
F.cross_entropy( -> F.nll_loss(
    F.nll_loss takes log-probabilities, and you give it logits. F.cross_entropy takes logits.
ignore_index=0 -> ignore_index=0, label_smoothing=0.1
    Your loss has label smoothing 0.1. Here it is the cross-entropy without smoothing.
{BACK} -> (-loss).backward()
    You go uphill: the loss grows. Its sign is wrong.
{ZERO} -> pass
+ {STEP} -> pass
+ return model.weight -> {STEP}; return model.weight
{STEP} -> pass
+ return model.weight -> {STEP}; return model.weight
    You make one step after the last batch. Make one step per batch.
{STEP} -> {STEP}; return model.weight
    You return after the first batch. Is the return inside the loop?
{STEP} -> {STEP}; {STEP}
    You call optimizer.step() twice for each batch. Make one step.
{LOOP} -> for source, target in [batch for batch in batches for _ in range(2)]:
    You make two steps for each batch. Make one.
{LOOP} -> for source, target in [*batches, *batches]:
    You go through the batches twice. Make one step for each batch.
return model.weight -> return model.weight.grad.clone()
    You return the gradient of the last step. Return model.weight.
return model.weight -> return loss
    You return the loss of the last batch. Return model.weight.
{LOOP} -> for source, target in batches[:-1]:
    This is the weight before the last step. Return model.weight at the end, after all steps.
loss.backward() -> (loss / 2).backward()
    You divide the loss by 2. Here every batch makes a step of its own, with its mean loss.
loss.backward() -> (loss / len(batches)).backward()
    You divide the loss by the number of batches, as one does to accumulate gradients. Here every batch makes a step of
    its own.
for source, target in batches: -> for number, (source, target) in enumerate(batches, start=1):
+ optimizer.zero_grad()\nloss.backward()\noptimizer.step() -> loss.backward()\nif number % 2 == 0:\n    optimizer.step(); optimizer.zero_grad()
|| logits.mT, labels, ignore_index=0) -> logits.mT, labels, ignore_index=0) / 2
    You accumulate gradients and make a step after every second batch. Here every batch makes a step of its own.
"""

CASES = (
    dict(
        model=_Model(4),
        new_optimizer=_optimizer(1.0),
        batches=_Batches(
            [
                (torch.tensor([[3]]), torch.tensor([[1, 3, 2]])),
                (torch.tensor([[3]]), torch.tensor([[1, 3, 2]])),
            ]
        ),
    ),
    dict(
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
    dict(  # gradients longer than 1, with components beyond 1
        model=_Model(5),
        new_optimizer=_optimizer(0.25),
        batches=_Batches(
            [
                (torch.tensor([[3]]), torch.tensor([[1, 3, 3, 3, 3]])),
                (torch.tensor([[4]]), torch.tensor([[1, 4, 4, 2, 0]])),
            ]
        ),
    ),
    dict(
        model=_Model(6),
        new_optimizer=_optimizer(0.5, momentum=0.75),
        batches=_Batches(
            [
                (torch.tensor([[3, 5]]), torch.tensor([[1, 5, 4, 2]])),
                (torch.tensor([[4, 4]]), torch.tensor([[1, 3, 5, 2]])),
            ]
        ),
    ),
)
HINTS = """
For each batch: the forward pass, the loss, then three calls on optimizer and loss. In which order?
The input of the decoder is target[:, :-1], the labels are target[:, 1:]; ignore_index=0 leaves padding out.
optimizer.zero_grad(), loss.backward(), optimizer.step(); at the end return model.weight.
"""
DIFFERENTIABLE = False
