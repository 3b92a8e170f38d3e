"""Exercise `teacher_forcing` of notebook 08."""

import torch
import torch.nn.functional as F

from course_lib.exercises.exercise import Case, Exercise, Mistake


def teacher_forcing(target):
    inputs = target[:, :-1]  # what the decoder reads
    labels = target[:, 1:]  # the token that follows each input
    return torch.stack([inputs, labels])


def _pair(inputs, labels):
    return torch.stack([inputs, labels])


EXERCISE = Exercise(
    name="teacher_forcing",
    notebook="08_transformer",
    title="The target, shifted right",
    reference=lambda y: _pair(y[:, :-1], y[:, 1:]),
    solution=teacher_forcing,
    cases=(
        Case(target=torch.tensor([[1, 5, 7, 2]])),
        Case(target=torch.tensor([[1, 4, 6, 3, 2], [1, 8, 2, 0, 0]])),
        Case(target=torch.tensor([[1, 4, 4, 2], [1, 2, 0, 0], [1, 9, 2, 0]])),
    ),
    mistakes=(
        Mistake(
            "not_shifted",
            lambda y: _pair(y[:, :-1], y[:, :-1]),
            "Nothing is shifted: the label of each position is its own input token. The model learns to copy its input, "
            "with a loss near 0, and cannot generate anything.",
        ),
        Mistake(
            "whole_target_twice",
            lambda y: _pair(y, y),
            "Input and labels are both the whole target, so each label is its own input token. Drop the last token of "
            "the input and the first of the labels.",
        ),
        Mistake(
            "both_shifted",
            lambda y: _pair(y[:, 1:], y[:, 1:]),
            "Both are shifted, so each label is its own input token again, and the start token is never an input.",
        ),
        Mistake(
            "exchanged",
            lambda y: _pair(y[:, 1:], y[:, :-1]),
            "Input and labels are exchanged: each label is the token before its input.",
        ),
        Mistake(
            "by_two",
            lambda y: _pair(y[:, :-2], y[:, 2:]),
            "You shift by two: each label is the token after the next.",
        ),
        Mistake(
            "end_cut_off",
            lambda y: _pair(y[:, :-2], y[:, 1:-1]),
            "The last label is missing. In a sequence without padding it is the end token, and a model that never "
            "learns to predict it does not stop.",
        ),
        Mistake(
            "no_end",
            lambda y: _pair(y[:, :-1], y[:, 1:].masked_fill(y[:, 1:] == 2, 0)),
            "You replace the end token by padding in the labels. A model that never learns to predict it does not "
            "stop.",
        ),
        Mistake(
            "rolled",
            lambda y: _pair(y, y.roll(-1, 1)),
            "torch.roll moves the start token to the end of the labels, but nothing should predict it. Slice instead: "
            "target[:, :-1] and target[:, 1:].",
        ),
        Mistake(
            "padded",
            lambda y: _pair(y, F.pad(y[:, 1:], (0, 1))),
            "The last token is an input as well, with padding as its label. That does no harm, since padding does not "
            "count in the loss, and it costs a position: leave it out.",
        ),
        Mistake(
            "starts_with_padding",
            lambda y: _pair(F.pad(y[:, 1:-1], (1, 0)), y[:, 1:]),
            "Your input begins with padding. It begins with the start token, the first column of target.",
        ),
        Mistake(
            "no_end_in_the_input",
            lambda y: _pair(y[:, :-1].masked_fill(y[:, :-1] == 2, 0), y[:, 1:]),
            "You replace the end token by padding in the input. That does no harm, since its label is padding; but the "
            "exercise asks for the tokens as they are.",
        ),
        Mistake(
            "padding_replaced",
            lambda y: _pair(y[:, :-1], y[:, 1:].masked_fill(y[:, 1:] == 0, -100)),
            "You replace padding by -100 in the labels, as Hugging Face does, because F.cross_entropy ignores -100 unless told "
            "otherwise. Here padding stays 0.",
        ),
        Mistake(
            "along_the_batch",
            lambda y: _pair(y[:-1], y[1:]),
            "You drop the last and the first sequence. Positions are the second axis: target[:, :-1] and target[:, 1:].",
        ),
        Mistake(
            "stacked_second",
            lambda y: torch.stack([y[:, :-1], y[:, 1:]], dim=1),
            "The right tokens, but stacked along the second axis. The first axis says input or labels: torch.stack(…, dim=0).",
        ),
        Mistake(
            "stacked_last",
            lambda y: torch.stack([y[:, :-1], y[:, 1:]], dim=-1),
            "The right tokens, but stacked along the last axis. The first axis says input or labels: torch.stack(…, dim=0).",
        ),
        Mistake(
            "concatenated",
            lambda y: torch.cat([y[:, :-1], y[:, 1:]]),
            "The right tokens, but concatenated along the batch. torch.stack gives the pair an axis of its own.",
        ),
        Mistake(
            "shifted_by_padding",
            lambda y: _pair(F.pad(y, (1, 0))[:, :-1], y),
            "You shift the target once more, with padding in front. It begins with the start token already: target[:, :-1] is the "
            "input and target[:, 1:] the labels.",
        ),
        Mistake(
            "both_ends_removed",
            lambda y: _pair(y[:, 1:-1], y[:, 1:-1]),
            "You remove the first and the last column from both. The input lacks the last, the labels lack the first.",
        ),
    ),
    hints=(
        "At each position the decoder has read the tokens up to it. The label is the token that comes next.",
        "Both have one token less than target: one lacks the last, the other the first.",
        "torch.stack([target[:, :-1], target[:, 1:]]).",
    ),
    differentiable=False,
)
