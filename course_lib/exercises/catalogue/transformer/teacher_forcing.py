"""Exercise `teacher_forcing` of notebook 08."""

import torch
import torch.nn.functional as F

from course_lib.exercises.exercise import Case, Exercise, Mistake


def teacher_forcing(target):
    read = target[:, :-1]  # the decoder's input
    said = target[:, 1:]  # the labels
    return torch.stack([read, said])


def _input_and_labels(read, said):
    return torch.stack([read, said])


EXERCISE = Exercise(
    name="teacher_forcing",
    notebook="08_transformer",
    title="What the decoder reads, and what it must say",
    reference=lambda y: _input_and_labels(y[:, :-1], y[:, 1:]),
    solution=teacher_forcing,
    cases=(
        Case(target=torch.tensor([[1, 5, 7, 2]])),
        Case(target=torch.tensor([[1, 4, 6, 3, 2], [1, 8, 2, 0, 0]])),
        Case(target=torch.tensor([[1, 4, 4, 2], [1, 2, 0, 0], [1, 9, 2, 0]])),
    ),
    mistakes=(
        Mistake(
            "not_shifted",
            lambda y: _input_and_labels(y[:, :-1], y[:, :-1]),
            "The target is not shifted: the decoder must say the token that it just read. It learns to copy its "
            "input, with a loss near 0, and can write nothing.",
        ),
        Mistake(
            "not_shifted_at_all",
            lambda y: _input_and_labels(y, y),
            "The target is not shifted: the decoder reads all of it and must say all of it. The start token is never "
            "said, and the last one never read.",
        ),
        Mistake(
            "both_shifted",
            lambda y: _input_and_labels(y[:, 1:], y[:, 1:]),
            "Both are shifted, so the decoder must say the token that it just read, and it never reads the start.",
        ),
        Mistake(
            "wrong_way",
            lambda y: _input_and_labels(y[:, 1:], y[:, :-1]),
            "You shift the wrong way: the decoder reads a token and must say the one before it.",
        ),
        Mistake(
            "by_two",
            lambda y: _input_and_labels(y[:, :-2], y[:, 2:]),
            "You shift by two: the decoder must say the token after the next.",
        ),
        Mistake(
            "end_cut_off",
            lambda y: _input_and_labels(y[:, :-2], y[:, 1:-1]),
            "The last token is cut off from what must be said. A model that never learns to end never stops writing.",
        ),
        Mistake(
            "no_end",
            lambda y: _input_and_labels(y[:, :-1], y[:, 1:].masked_fill(y[:, 1:] == 2, 0)),
            "The end token is replaced by padding in what must be said. A model that never learns to end never stops "
            "writing.",
        ),
        Mistake(
            "rolled",
            lambda y: _input_and_labels(y, y.roll(-1, 1)),
            "torch.roll brings the start token back at the end of what must be said. The start token is never predicted. "
            "Cut: target[:, :-1] as input, target[:, 1:] as labels.",
        ),
        Mistake(
            "padded",
            lambda y: _input_and_labels(y, F.pad(y[:, 1:], (0, 1))),
            "The decoder reads the last token as well, and must say padding behind it. It does no harm, since padding "
            "does not count, and it does no good: leave the last token out of what is read.",
        ),
        Mistake(
            "end_not_read",
            lambda y: _input_and_labels(y[:, :-1].masked_fill(y[:, :-1] == 2, 0), y[:, 1:]),
            "You replace the end token by padding in what is read. It does no harm, and nothing needs it: what would "
            "be said behind it is padding, which does not count. Cut, and leave the rest as it is.",
        ),
        Mistake(
            "starts_with_padding",
            lambda y: _input_and_labels(F.pad(y[:, 1:-1], (1, 0)), y[:, 1:]),
            "Your decoder starts from padding. It starts from the start token: keep the first column of target in "
            "what is read.",
        ),
    ),
    hints=(
        "At each place the decoder has read the tokens so far. Which one is next?",
        "Both have one token less than target. One lacks the first, the other the last.",
        "torch.stack([target[:, :-1], target[:, 1:]]).",
    ),
    differentiable=False,
)
