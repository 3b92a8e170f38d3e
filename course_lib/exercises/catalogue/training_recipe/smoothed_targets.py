"""Label smoothing as a target distribution."""

import torch
import torch.nn.functional as F


def smoothed_targets(target, num_classes, smoothing, pad_id):
    true = F.one_hot(target, num_classes).float()  # (…, classes)
    smooth = (1 - smoothing) * true + smoothing / num_classes
    return smooth * (target != pad_id)[..., None]  # no target at padding


def reference(target, num_classes, smoothing, pad_id):
    """From PyTorch's loss: its gradient with respect to the logits is softmax - q."""
    logits = torch.zeros(target.numel(), num_classes, requires_grad=True)
    options = {"ignore_index": pad_id, "label_smoothing": smoothing, "reduction": "sum"}
    F.cross_entropy(logits, target.flatten(), **options).backward()
    q = logits.softmax(dim=-1).detach() - logits.grad
    return q.unflatten(0, target.shape).masked_fill((target == pad_id)[..., None], 0.0)


MIXTURE = "(1 - smoothing) * true + smoothing / num_classes"
REAL = "(target != pad_id)[..., None]"
NOT_PAD = "(torch.arange(num_classes) != pad_id)"
MISTAKES = f"""
* true + smoothing / num_classes -> * true + smoothing / num_classes * (1 - true)
    Your label has 1 - ε and the other classes ε / C each, which sums to less than 1. The probability ε is spread over
    all classes, the label included, so the label has 1 - ε + ε / C.
* true + smoothing / num_classes -> * true + smoothing / (num_classes - 1) * (1 - true)
    You spread ε over the other classes: 1 - ε and ε / (C - 1). That sums to 1 and is another convention. PyTorch and
    Szegedy et al. (2016) spread it over all C.
{MIXTURE} -> torch.where(true > 0, {MIXTURE}, smoothing / (num_classes - 1))
    You mix two conventions: the label as if ε went to all C, the others as if it went to C - 1. That sums to
    more than 1.
(1 - smoothing) * true -> true
    The one-hot row keeps its weight of 1, so that the sum is more than 1. Multiply it by 1 - ε first.
{MIXTURE} -> torch.where(true > 0, 1.0, smoothing / num_classes)
    The label keeps a probability of 1, and the other classes get ε / C on top. Multiply the label's 1 by 1 - ε first.
* true + smoothing -> * true - smoothing
    You subtract the even share. Probabilities below 0 do not exist: add it.
{MIXTURE} -> smoothing * true + (1 - smoothing) / num_classes
    ε and 1 - ε are exchanged: almost everything is spread evenly.
/ num_classes ->
    Every class gets all of ε. Divide it among them: ε / C each.
{MIXTURE} -> (1 - smoothing) * true + smoothing * (1 - true)
    Each class but the label gets all of ε. Divide it among all classes: ε / C each.
/ num_classes -> / len(target)
/ num_classes -> / target.numel()
/ num_classes -> / target.shape[-1]
    You divide ε by a size of target. It is spread over the classes: / num_classes.
{MIXTURE} -> true
    Nothing is smoothed: the label has 1, and smoothing is never used.
{MIXTURE} -> (1 - smoothing) * true
    The probability ε goes to no class. Spread it: ε / C for every class.
* true + smoothing -> * true * {REAL} + smoothing
+ smooth * {REAL} -> smooth
    Smoothing leaks into padding: its rows get ε / C for each class, and so a loss. Set the rows to zero after
    smoothing.
smooth * {REAL} -> smooth
smooth * {REAL} -> torch.where({REAL}, smooth, true)
    The rows at padding have padding as their label. These rows must be zero.
smooth * {REAL} -> torch.where({REAL}, smooth, 1 / num_classes)
    Your rows at padding are uniform distributions. They are zero, so that padding has no loss.
{MIXTURE} -> torch.where(true > 0, 1 - smoothing, smoothing / (num_classes - 2)) * {NOT_PAD}
    You give the class of padding nothing and spread ε over C - 2. The Annotated Transformer does so; PyTorch and
    Szegedy et al. (2016) spread it over all C.
{MIXTURE} -> ((1 - smoothing) * true + smoothing / (num_classes - 1)) * {NOT_PAD}
    You give the class of padding nothing and spread ε over the C - 1 others. PyTorch and Szegedy et al. (2016) spread
    it over all C.
smooth * {REAL} -> smooth * {REAL} * {NOT_PAD}
    You set the column of padding to zero as well, so that no row sums to 1. Only its rows are zero.
smooth * {REAL} -> smooth * {NOT_PAD}
    You set the column of the padding class to zero. It is the rows at padding that are zero: (target != pad_id)[...,
    None].
!= pad_id -> != 0
    You take class 0 for padding. pad_id says which class it is.
!= pad_id -> == pad_id
    Only the rows at padding are left. They are the ones to be zero: target != pad_id is True at real tokens.
(target != pad_id)[..., None] -> (target != pad_id)[:, None]
(target != pad_id)[..., None] -> (target != pad_id)
    The mask of the rows needs an axis for the classes, and it is the last one: (target != pad_id)[..., None].
/ num_classes -> / (num_classes - 1)
    You divide ε by C - 1 and give a share to all C classes, so that a row sums to more than 1. With the label
    included there are C shares: ε / C.
smooth * {REAL} -> smooth * {REAL} / (smooth * {REAL}).sum(-1, keepdim=True)
    You divide each row by its sum, which is 0 at padding: 0/0 is NaN. With the right shares a row sums to 1 already.
true = F.one_hot -> smoothing = 0.1; true = F.one_hot
    Your ε is always 0.1. It is the argument smoothing.
F.one_hot(target, num_classes) -> F.one_hot(target)
    Without num_classes, F.one_hot makes as many classes as the largest token needs.
smooth * {REAL} -> (smooth * {REAL}).reshape(-1, num_classes)
    You flatten batch and positions. The result has the shape of target, with the classes as one more axis.
smooth * {REAL} -> (smooth * {REAL}).movedim(-1, 1)
    Your classes are on the second axis, where F.cross_entropy takes them. Here they are on the last.
smooth * {REAL} -> smooth * {REAL} / (target != pad_id).sum()
    You divide by the number of real tokens. The mean is taken of the losses; each row of a real token sums to 1.
{MIXTURE} -> 0 * true + smoothing / num_classes
    The label has no more than the other classes. It gets 1 - ε on top of its share ε / C.
{MIXTURE} -> (1 - smoothing + smoothing / num_classes) * true
    The label has its share ε / C, but the other classes have none. Spread ε over all: ε / C each.
"""

CASES = (
    dict(target=torch.tensor([2, 0]), num_classes=4, smoothing=0.2, pad_id=0),
    dict(target=torch.tensor([[4, 1, 3], [2, 1, 1]]), num_classes=5, smoothing=0.1, pad_id=1),
    dict(
        target=torch.tensor([[5, 3, 2, 0], [1, 2, 0, 0], [4, 4, 6, 2]]),
        num_classes=7,
        smoothing=0.3,
        pad_id=0,
    ),
)
HINTS = """
A mixture of two rows: one-hot with weight 1 - ε, and uniform (1/C everywhere) with weight ε.
F.one_hot(target, num_classes).float() is the first row. For the second a number is enough.
(1 - smoothing) * true + smoothing / num_classes, and * (target != pad_id)[..., None] at the end.
"""
DIFFERENTIABLE = False
