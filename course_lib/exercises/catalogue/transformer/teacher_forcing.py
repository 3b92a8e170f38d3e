"""The target, shifted right."""

import torch


def teacher_forcing(target):
    inputs = target[:, :-1]  # what the decoder reads
    labels = target[:, 1:]  # the token that follows each input
    return torch.stack([inputs, labels])


PAD = "torch.nn.functional.pad"
MISTAKES = f"""
target[:, 1:] -> target[:, :-1]
    Nothing is shifted: the label of each position is its own input token. The model learns to copy its input, with a
    loss near 0, and cannot generate anything.
target[:, :-1] -> target
+ target[:, 1:] -> target
    Input and labels are both the whole target, so each label is its own input token. Drop the last token of the input
    and the first of the labels.
target[:, :-1] -> target[:, 1:]
    Both are shifted, so each label is its own input token again, and the start token is never an input.
target[:, :-1] -> target[:, 1:]
+ target[:, 1:] -> target[:, :-1]
target[:, :-1] -> target
+ target[:, 1:] -> target.roll(1, 1)
    Input and labels are exchanged: each label is the token before its input.
target[:, :-1] -> target[:, :-2]
+ target[:, 1:] -> target[:, 2:]
target[:, 1:] -> {PAD}(target[:, 2:], (0, 1))
    You shift by two: each label is the token after the next.
target[:, :-1] -> target[:, :-2]
+ target[:, 1:] -> target[:, 1:-1]
    The last label is missing. In a sequence without padding it is the end token, and a model that never learns to
    predict it does not stop.
target[:, :-1] -> target[:, 1:-1]
+ target[:, 1:] -> target[:, 2:]
    The start token is not in your input. The decoder reads it first, and the label there is the first word.
target[:, 1:] -> target[:, 1:].masked_fill(target[:, 1:] == 2, 0)
    You replace the end token by padding in the labels. A model that never learns to predict it does not stop.
target[:, :-1] -> target
+ target[:, 1:] -> target.roll(-1, 1)
    torch.roll moves the start token to the end of the labels, but nothing should predict it. Slice instead: target[:,
    :-1] and target[:, 1:].
target[:, 1:] -> target.roll(-1, 1)[:, 1:]
    Your labels are shifted by two, and the start token is the last of them: torch.roll shifts, and the slice shifts
    once more. Slice only: target[:, 1:].
target[:, :-1] -> target.roll(1, 1)
+ target[:, 1:] -> target
    torch.roll moves the last token to the front of the input, but the start token comes first. Slice instead:
    target[:, :-1] and target[:, 1:].
target[:, :-1] -> target
+ target[:, 1:] -> {PAD}(target[:, 1:], (0, 1))
    The last token is an input as well, with padding as its label. That does no harm, since padding does not count in
    the loss, and it costs a position: leave it out.
target[:, :-1] -> {PAD}(target[:, 1:-1], (1, 0))
    Your input begins with padding. It begins with the start token, the first column of target.
target[:, :-1] -> target[:, :-1].masked_fill(target[:, :-1] == 2, 0)
    You replace the end token by padding in the input. That does no harm, since its label is padding; but the exercise
    asks for the tokens as they are.
target[:, 1:] -> target[:, 1:].masked_fill(target[:, 1:] == 0, -100)
    You replace padding by -100 in the labels, as Hugging Face does, because F.cross_entropy ignores -100 unless told
    otherwise. Here padding stays 0.
target[:, :-1] -> target[:, :-1].masked_fill(target[:, :-1] == 0, -100)
    You replace padding by -100 in the input. No token has this number, so an embedding would raise an error. Padding
    stays 0.
target[:, :-1] -> target[:-1]
+ target[:, 1:] -> target[1:]
    You drop the last and the first sequence. Positions are the second axis: target[:, :-1] and target[:, 1:].
target[:, :-1] -> target
    Your input is one token longer than the labels. Leave out its last token: target[:, :-1].
target[:, 1:] -> target
    Your labels are one token longer than the input. Leave out their first token: target[:, 1:].
torch.stack([inputs, labels]) -> torch.stack([inputs, labels], dim=1)
    Input and labels are stacked along the second axis. They belong on the first: torch.stack(…, dim=0).
torch.stack([inputs, labels]) -> torch.stack([inputs, labels], dim=-1)
    Input and labels are stacked along the last axis. They belong on the first: torch.stack(…, dim=0).
torch.stack([inputs, labels]) -> torch.cat([inputs, labels])
    Input and labels are concatenated along the batch. torch.stack gives the pair an axis of its own.
torch.stack([inputs, labels]) -> torch.cat([inputs, labels], dim=1)
    Input and labels are concatenated along the positions. torch.stack gives the pair an axis of its own.
torch.stack([inputs, labels]) -> inputs
    You return the input alone. Stack the input and the labels: (2, batch, length - 1).
torch.stack([inputs, labels]) -> labels
    You return the labels alone. Stack the input and the labels: (2, batch, length - 1).
target[:, :-1] -> {PAD}(target, (1, 0))[:, :-1]
+ target[:, 1:] -> target
    You shift the target once more, with padding in front. It begins with the start token already: target[:, :-1] is
    the input and target[:, 1:] the labels.
target[:, :-1] -> target[:, 1:-1]
+ target[:, 1:] -> target[:, 1:-1]
    You remove the first and the last column from both. The input lacks the last, the labels lack the first.
"""

CASES = (
    dict(target=torch.tensor([[1, 5, 7, 2]])),
    dict(target=torch.tensor([[1, 4, 6, 3, 2], [1, 8, 2, 0, 0]])),
    dict(target=torch.tensor([[1, 4, 4, 2], [1, 2, 0, 0], [1, 9, 2, 0]])),
)
HINTS = """
At each position the decoder has read the tokens up to it. The label is the token that comes next.
Both have one token less than target: one lacks the last, the other the first.
torch.stack([target[:, :-1], target[:, 1:]]).
"""
DIFFERENTIABLE = False
