"""Exercise `smoothed_targets` of notebook 08."""

from functools import partial

import torch
import torch.nn.functional as F

from course_lib.exercises.exercise import Case, Exercise, Mistake


def smoothed_targets(target, num_classes, smoothing, pad_id):
    true = F.one_hot(target, num_classes).float()  # (…, classes)
    smooth = (1 - smoothing) * true + smoothing / num_classes
    return smooth * (target != pad_id)[..., None]  # no target at padding


def _smoothed(
    target,
    num_classes,
    smoothing,
    pad_id,
    *,
    true=lambda e, C: 1 - e + e / C,
    others=lambda e, C: e / C,
    padding="hidden",
):
    """Smoothed targets; `true` and `others` give the probability of the true class and of each other class."""
    hot = F.one_hot(target, num_classes).bool()
    q = torch.where(hot, true(smoothing, num_classes), others(smoothing, num_classes))
    real = (target != pad_id)[..., None]
    return q * real if padding == "hidden" else q


EXERCISE = Exercise(
    name="smoothed_targets",
    notebook="08_transformer",
    title="Label smoothing as a target distribution",
    reference=_smoothed,
    solution=smoothed_targets,
    cases=(
        Case(target=torch.tensor([2, 0]), num_classes=4, smoothing=0.2, pad_id=0),
        Case(target=torch.tensor([[4, 1, 3], [2, 1, 1]]), num_classes=5, smoothing=0.1, pad_id=1),
        Case(
            target=torch.tensor([[5, 3, 2, 0], [1, 2, 0, 0], [4, 4, 6, 2]]),
            num_classes=7,
            smoothing=0.3,
            pad_id=0,
        ),
    ),
    mistakes=(
        Mistake(
            "sums_to_less",
            partial(_smoothed, true=lambda e, C: 1 - e),
            "Your true class has 1 - ε and the others ε / C each: that sums to less than 1. The probability ε is spread "
            "over all classes, the true one included, so that has 1 - ε + ε / C.",
        ),
        Mistake(
            "over_the_others",
            partial(_smoothed, true=lambda e, C: 1 - e, others=lambda e, C: e / (C - 1)),
            "You spread ε over the other classes: 1 - ε and ε / (C - 1). That sums to 1 and is another convention. "
            "PyTorch and Szegedy et al. (2016) spread it over all C.",
        ),
        Mistake(
            "mixed_conventions",
            partial(_smoothed, others=lambda e, C: e / (C - 1)),
            "You mix two conventions: the true class as if ε went to all C, the others as if it went to C - 1. That "
            "sums to more than 1.",
        ),
        Mistake(
            "nothing_given_away",
            partial(_smoothed, true=lambda e, C: 1 + e / C),
            "Every row sums to 1 + ε. Multiply the one-hot row by 1 - ε first.",
        ),
        Mistake(
            "true_class_whole",
            partial(_smoothed, true=lambda e, C: 1.0),
            "The true class keeps a probability of 1, and the others get ε / C on top. Multiply the true class by 1 - ε first.",
        ),
        Mistake(
            "subtracted",
            partial(_smoothed, true=lambda e, C: 1 - e - e / C, others=lambda e, C: -e / C),
            "You subtract the even share. Probabilities below 0 do not exist: add it.",
        ),
        Mistake(
            "exchanged",
            partial(_smoothed, true=lambda e, C: e + (1 - e) / C, others=lambda e, C: (1 - e) / C),
            "ε and 1 - ε are exchanged: almost everything is spread evenly.",
        ),
        Mistake(
            "not_divided",
            partial(_smoothed, true=lambda e, C: 1.0, others=lambda e, C: e),
            "Every class gets all of ε. Divide it among them: ε / C each.",
        ),
        Mistake(
            "not_smoothed",
            partial(_smoothed, true=lambda e, C: 1.0, others=lambda e, C: 0.0),
            "Nothing is smoothed: the true class has 1, and smoothing is never used.",
        ),
        Mistake(
            "only_the_true",
            partial(_smoothed, true=lambda e, C: 1 - e, others=lambda e, C: 0.0),
            "The probability ε goes to no class. Spread it: ε / C for every class.",
        ),
        Mistake(
            "padding_smoothed",
            lambda target, C, e, pad_id: (
                (1 - e) * F.one_hot(target, C) * (target != pad_id)[..., None] + e / C
            ),
            "Smoothing leaks into padding: its rows get ε / C for each class, and so a loss. Set the rows to zero "
            "after smoothing.",
        ),
        Mistake(
            "padding_counted",
            partial(_smoothed, padding="counted"),
            "The rows at padding have padding as their target. These rows are zero.",
        ),
        Mistake(
            "padding_class_left_out",
            lambda target, C, e, pad_id: (
                torch.where(F.one_hot(target, C).bool(), 1 - e, e / (C - 2))
                .masked_fill(torch.arange(C) == pad_id, 0.0)
                .masked_fill((target == pad_id)[..., None], 0.0)
            ),
            "You give the class of padding nothing and spread ε over C - 2. The Annotated Transformer does so; PyTorch "
            "and Szegedy et al. (2016) spread it over all C.",
        ),
        Mistake(
            "padding_class_emptied",
            lambda *a: _smoothed(*a).masked_fill(torch.arange(a[1]) == a[3], 0.0),
            "You set the column of padding to zero as well, so that no row sums to 1. Only its rows are zero.",
        ),
        Mistake(
            "padding_class_emptied_instead",
            lambda *a: _smoothed(*a, padding="counted").masked_fill(
                torch.arange(a[1]) == a[3], 0.0
            ),
            "You set the column of the padding class to zero. It is the rows at padding that are zero: (target != "
            "pad_id)[..., None].",
        ),
        Mistake(
            "zero_is_padding",
            lambda target, C, e, pad_id: _smoothed(target, C, e, 0),
            "You take class 0 for padding. pad_id says which class it is.",
        ),
        Mistake(
            "padding_inverted",
            lambda target, C, e, pad_id: (
                _smoothed(target, C, e, pad_id, padding="counted") * (target == pad_id)[..., None]
            ),
            "Only the rows at padding are left. They are the ones to be zero: target != pad_id is True at real tokens.",
        ),
        Mistake(
            "padding_uniform",
            lambda target, C, e, pad_id: torch.where(
                (target != pad_id)[..., None], _smoothed(target, C, e, pad_id), 1 / C
            ),
            "Your rows at padding are uniform distributions. They are zero, so that padding has no loss.",
        ),
        Mistake(
            "true_class_of_c_minus_1",
            partial(
                _smoothed, true=lambda e, C: 1 - e + e / (C - 1), others=lambda e, C: e / (C - 1)
            ),
            "You divide ε by C - 1 and give a share to all C classes, so that a row sums to more than 1. With the true class "
            "included there are C shares: ε / C.",
        ),
        Mistake(
            "normalised",
            lambda *a: (q := _smoothed(*a)) / q.sum(-1, keepdim=True),
            "You divide each row by its sum, which is 0 at padding: 0/0 is NaN. The rows sum to 1 already.",
        ),
        Mistake(
            "fixed",
            lambda target, C, e, pad_id: _smoothed(target, C, 0.1, pad_id),
            "Your ε is always 0.1. It is the argument smoothing.",
        ),
        Mistake(
            "flattened",
            lambda *a: _smoothed(*a).reshape(-1, a[1]),
            "You flatten batch and positions. The result has the shape of target, with the classes as one more axis.",
        ),
        Mistake(
            "uniform",
            lambda target, C, e, pad_id: (
                torch.full((*target.shape, C), e / C) * (target != pad_id)[..., None]
            ),
            "The true class has no more than the others. It gets 1 - ε on top of its share ε / C.",
        ),
        Mistake(
            "others_empty",
            partial(_smoothed, others=lambda e, C: 0.0),
            "The true class has its share ε / C, but the other classes have none. Spread ε over all: ε / C each.",
        ),
        Mistake(
            "padding_one_hot",
            lambda target, C, e, pad_id: torch.where(
                (target != pad_id)[..., None],
                _smoothed(target, C, e, pad_id),
                F.one_hot(target, C).float(),
            ),
            "Your rows at padding have padding as their target. These rows are zero.",
        ),
    ),
    hints=(
        "A mixture of two rows: one-hot with weight 1 - ε, and uniform (1/C everywhere) with weight ε.",
        "F.one_hot(target, num_classes).float() is the first row. For the second a number is enough.",
        "(1 - smoothing) * true + smoothing / num_classes, and * (target != pad_id)[..., None] at the end.",
    ),
    differentiable=False,
)
