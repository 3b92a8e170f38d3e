"""Exercises and bug hunts of notebook 08."""

import math
from functools import partial
from itertools import product

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call

from course_lib.attention import scaled_dot_product_attention
from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.masks import causal_mask, masked_softmax
from course_lib.training import LabelSmoothingLoss, noam_rate
from course_lib.transformer.embedding import TokenEmbedding

_NOTEBOOK = "08_transformer"


def _drawn(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def _short(*shape, seed):
    """Drawn as well, with one decimal: for a report that is read."""
    return _drawn(*shape, seed=seed).round(decimals=1) + 0.0  # no -0.0


# --- embed -----------------------------------------------------------------------------------


def embed(tokens, table, positions):
    vectors = table[tokens] * math.sqrt(table.shape[-1])  # (batch, length, d_model)
    return vectors + positions[: tokens.shape[1]]


def _embedded(tokens, table, positions, *, scale=lambda table: math.sqrt(table.shape[-1])):
    return table[tokens] * scale(table) + positions[: tokens.shape[1]]


_EMBED = Exercise(
    name="embed",
    notebook=_NOTEBOOK,
    title="From tokens to the vectors that enter the first block",
    reference=lambda tokens, table, positions: (
        functional_call(TokenEmbedding(*table.shape), {"table.weight": table}, (tokens,))
        + positions[: tokens.shape[1]]
    ),
    solution=embed,
    cases=(
        Case(
            tokens=torch.tensor([[2, 0]]),
            table=_short(3, 3, seed=0),
            positions=_short(4, 3, seed=1),
        ),
        Case(  # as many sequences as tokens in each: nothing raises
            tokens=torch.tensor([[1, 3], [0, 4]]),
            table=_drawn(5, 6, seed=2),
            positions=_drawn(5, 6, seed=3),
        ),
        Case(
            tokens=torch.tensor([[1, 6, 2, 2], [0, 5, 3, 4], [6, 1, 1, 0]]),
            table=_drawn(7, 5, seed=4),
            positions=_drawn(9, 5, seed=5),
        ),
    ),
    mistakes=(
        Mistake(
            "not_scaled",
            partial(_embedded, scale=lambda table: 1),
            "Your rows are not scaled. A table that starts with numbers of size 1/√d is drowned by the positions: "
            "times √d.",
        ),
        Mistake(
            "scaled_after",
            lambda tokens, table, positions: (
                (table[tokens] + positions[: tokens.shape[1]]) * math.sqrt(table.shape[-1])
            ),
            "You scale after the positions were added, so they grow as well and nothing is won. First the factor, "
            "then the positions.",
        ),
        Mistake(
            "positions_scaled",
            lambda tokens, table, positions: (
                table[tokens] + positions[: tokens.shape[1]] * math.sqrt(table.shape[-1])
            ),
            "You scale the positions. It is the rows of the table that are too small.",
        ),
        Mistake(
            "divided",
            partial(_embedded, scale=lambda table: 1 / math.sqrt(table.shape[-1])),
            "You divide by √d, as for scores. Here it multiplies: the table starts small.",
        ),
        Mistake(
            "by_d",
            partial(_embedded, scale=lambda table: table.shape[-1]),
            "You multiply by d. Multiply by its root.",
        ),
        Mistake(
            "by_vocabulary",
            partial(_embedded, scale=lambda table: math.sqrt(len(table))),
            "Your factor is the root of the number of tokens in the table. It is the root of the size of a vector: "
            "table.shape[-1].",
        ),
        Mistake(
            "by_length",
            lambda tokens, table, positions: _embedded(
                tokens, table, positions, scale=lambda table: math.sqrt(tokens.shape[1])
            ),
            "Your factor is the root of the number of tokens in a text. It is the root of the size of a vector: "
            "table.shape[-1].",
        ),
        Mistake(
            "no_positions",
            lambda tokens, table, positions: table[tokens] * math.sqrt(table.shape[-1]),
            "The positions are never added.",
        ),
        Mistake(
            "first_position",
            lambda tokens, table, positions: _embedded(tokens, table, positions[:1]),
            "Every token of yours stands at position 0.",
        ),
        Mistake(
            "last_positions",
            lambda tokens, table, positions: _embedded(
                tokens, table, positions[-tokens.shape[1] :]
            ),
            "You take the last rows of positions. The first token stands at position 0: positions[:length].",
        ),
        Mistake(
            "from_one",
            lambda tokens, table, positions: _embedded(tokens, table, positions[1:]),
            "Your positions begin at 1. The first token stands at position 0.",
        ),
        Mistake(
            "position_of_the_token",
            lambda tokens, table, positions: (
                table[tokens] * math.sqrt(table.shape[-1]) + positions[tokens]
            ),
            "You look the positions up by token: positions[tokens]. Where a token stands has nothing to do with "
            "which one it is: positions[:length].",
        ),
        Mistake(
            "along_the_batch",
            lambda tokens, table, positions: (
                table[tokens] * math.sqrt(table.shape[-1]) + positions[: len(tokens), None]
            ),
            "Your positions lie along the batch: all tokens of a sentence get the same one.",
        ),
    ),
    hints=(
        "table[tokens] looks all tokens up at once. Which shape is that?",
        "The factor is for the rows of the table alone: table[tokens] * math.sqrt(d_model).",
        "Then + positions[:length], which is (length, d_model) and fits every sentence of the batch.",
    ),
)


# --- teacher_forcing -------------------------------------------------------------------------


def teacher_forcing(target):
    read = target[:, :-1]  # all but the last
    said = target[:, 1:]  # all but the first, the start token
    return torch.stack([read, said])


def _pair(read, said):
    return torch.stack([read, said])


_FORCING = Exercise(
    name="teacher_forcing",
    notebook=_NOTEBOOK,
    title="What the decoder reads, and what it must say",
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
            "The target is not shifted: the decoder must say the token that it just read. It learns to copy its "
            "input, with a loss near 0, and can write nothing.",
        ),
        Mistake(
            "not_shifted_at_all",
            lambda y: _pair(y, y),
            "The target is not shifted: the decoder reads all of it and must say all of it. The start token is never "
            "said, and the last one never read.",
        ),
        Mistake(
            "both_shifted",
            lambda y: _pair(y[:, 1:], y[:, 1:]),
            "Both are shifted, so the decoder must say the token that it just read, and it never reads the start.",
        ),
        Mistake(
            "wrong_way",
            lambda y: _pair(y[:, 1:], y[:, :-1]),
            "You shift the wrong way: the decoder reads a token and must say the one before it.",
        ),
        Mistake(
            "by_two",
            lambda y: _pair(y[:, :-2], y[:, 2:]),
            "You shift by two: the decoder must say the token after the next.",
        ),
        Mistake(
            "end_cut_off",
            lambda y: _pair(y[:, :-2], y[:, 1:-1]),
            "The last token is cut off from what must be said. A model that never learns to end never stops writing.",
        ),
        Mistake(
            "no_end",
            lambda y: _pair(y[:, :-1], y[:, 1:].masked_fill(y[:, 1:] == 2, 0)),
            "The end token is replaced by padding in what must be said. A model that never learns to end never stops "
            "writing.",
        ),
        Mistake(
            "rolled",
            lambda y: _pair(y, y.roll(-1, 1)),
            "torch.roll brings the start token back at the end of what must be said. Nobody says the start token. "
            "Cut: all but the last, all but the first.",
        ),
        Mistake(
            "padded",
            lambda y: _pair(y, F.pad(y[:, 1:], (0, 1))),
            "The decoder reads the last token as well, and must say padding behind it. It does no harm, since padding "
            "does not count, and it does no good: leave the last token out of what is read.",
        ),
        Mistake(
            "end_not_read",
            lambda y: _pair(y[:, :-1].masked_fill(y[:, :-1] == 2, 0), y[:, 1:]),
            "You replace the end token by padding in what is read. It does no harm, and nothing needs it: what would "
            "be said behind it is padding, which does not count. Cut, and leave the rest as it is.",
        ),
        Mistake(
            "starts_with_padding",
            lambda y: _pair(F.pad(y[:, 1:-1], (1, 0)), y[:, 1:]),
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


# --- token_loss ------------------------------------------------------------------------------


def token_loss(logits, expected, pad_id):
    log_p = torch.log_softmax(logits, dim=-1)  # (batch, length, vocabulary)
    losses = -log_p.gather(-1, expected[..., None])[..., 0]  # (batch, length)
    return losses[expected != pad_id].mean()  # over all real tokens at once


def _losses(logits, expected):
    return F.cross_entropy(logits.transpose(1, 2), expected, reduction="none")


def _mean_over(logits, expected, pad_id, *, count):
    """The sum over real tokens, divided by what `count` says of (what is real, the batch)."""
    real = expected != pad_id
    return (_losses(logits, expected) * real).sum() / count(real)


def _mean_of_means(logits, expected, pad_id):
    real = expected != pad_id
    return ((_losses(logits, expected) * real).sum(1) / real.sum(1)).mean()


_LOSS = Exercise(
    name="token_loss",
    notebook=_NOTEBOOK,
    title="The mean loss over real tokens",
    reference=lambda logits, expected, pad_id: LabelSmoothingLoss(0.0, pad_id)(logits, expected),
    solution=token_loss,
    cases=(
        Case(logits=_short(1, 3, 4, seed=6), expected=torch.tensor([[3, 2, 0]]), pad_id=0),
        Case(  # padding is not always 0
            logits=_drawn(2, 4, 5, seed=7),
            expected=torch.tensor([[3, 0, 4, 2], [0, 2, 1, 1]]),
            pad_id=1,
        ),
        Case(
            logits=_drawn(3, 4, 6, seed=8),
            expected=torch.tensor([[3, 5, 4, 2], [5, 2, 0, 0], [2, 0, 0, 0]]),
            pad_id=0,
        ),
    ),
    mistakes=(
        Mistake(
            "counts_padding",
            lambda logits, expected, pad_id: _losses(logits, expected).mean(),
            "Padding counts in your loss: the model is rewarded for saying padding behind the end, which is easy, "
            "and the loss looks better than it is.",
        ),
        Mistake(
            "sum",
            partial(_mean_over, count=lambda real: 1),
            "You add the losses up. Take their mean, or the loss grows with the batch.",
        ),
        Mistake(
            "mean_of_means",
            _mean_of_means,
            "You average within each sequence and then over sequences, so a token of a short sequence counts more. "
            "Average over all real tokens at once.",
        ),
        Mistake(
            "divides_by_all",
            partial(_mean_over, count=lambda real: real.numel()),
            "Padding adds nothing to your sum, but you divide by all places, padding included. Divide by the number "
            "of real tokens.",
        ),
        Mistake(
            "divides_by_sequences",
            partial(_mean_over, count=len),
            "You divide by the number of sequences. Divide by the number of real tokens.",
        ),
        Mistake(
            "zero_is_padding",
            lambda logits, expected, pad_id: F.cross_entropy(
                logits.transpose(1, 2), expected, ignore_index=0
            ),
            "You take token 0 for padding. pad_id says which it is.",
        ),
        Mistake(
            "only_padding",
            lambda logits, expected, pad_id: _losses(logits, expected)[expected == pad_id].mean(),
            "You average over padding alone. expected != pad_id is True at real tokens.",
        ),
        Mistake(
            "shifted_again",
            lambda logits, expected, pad_id: F.cross_entropy(
                logits[:, :-1].transpose(1, 2), expected[:, 1:], ignore_index=pad_id
            ),
            "You shift once more. expected is shifted already: its place i is what the logits of place i must say.",
        ),
        Mistake(
            "softmax_first",
            lambda logits, expected, pad_id: F.cross_entropy(
                torch.softmax(logits, -1).transpose(1, 2), expected, ignore_index=pad_id
            ),
            "You take a softmax first. F.cross_entropy takes the logits and does it itself.",
        ),
        Mistake(
            "reshaped",
            lambda logits, expected, pad_id: F.cross_entropy(
                logits.reshape(len(logits), logits.shape[2], -1), expected, ignore_index=pad_id
            ),
            "A view or reshape does not swap axes, it deals the numbers out anew. Use logits.transpose(1, 2).",
        ),
        Mistake(
            "minus",
            lambda logits, expected, pad_id: (
                -F.cross_entropy(logits.transpose(1, 2), expected, ignore_index=pad_id)
            ),
            "The sign is turned around. The loss is minus the log of a probability, so it is never negative.",
        ),
        Mistake(
            "end_left_out",
            lambda logits, expected, pad_id: _losses(logits, expected)[
                (expected != pad_id) & (expected != 2)
            ].mean(),
            "The end token is left out as well. A model that never learns to end never stops writing.",
        ),
    ),
    hints=(
        "Which places count, and how many are they?",
        "F.cross_entropy wants the classes in the second place: logits.transpose(1, 2). It can leave one class out.",
        "F.cross_entropy(logits.transpose(1, 2), expected, ignore_index=pad_id) takes the mean over the rest.",
    ),
)


# --- smoothed_targets ------------------------------------------------------------------------


def smoothed_targets(target, num_classes, smoothing, pad_id):
    true = F.one_hot(target, num_classes).float()  # (…, classes)
    smooth = (1 - smoothing) * true + smoothing / num_classes
    return smooth * (target != pad_id)[..., None]  # padding asks for nothing


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
    """What the true class gets and what each of the others gets."""
    hot = F.one_hot(target, num_classes).bool()
    q = torch.where(hot, true(smoothing, num_classes), others(smoothing, num_classes))
    real = (target != pad_id)[..., None]
    return q * real if padding == "hidden" else q


_SMOOTHED = Exercise(
    name="smoothed_targets",
    notebook=_NOTEBOOK,
    title="Targets that give every class a little",
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
            "Your true class has 1 - ε and the others ε / C each: that sums to less than 1. The share ε goes to all "
            "classes, the true one included, so it has 1 - ε + ε / C.",
        ),
        Mistake(
            "over_the_others",
            partial(_smoothed, true=lambda e, C: 1 - e, others=lambda e, C: e / (C - 1)),
            "You spread ε over the other classes: 1 - ε and ε / (C - 1). That sums to 1 and is another convention. "
            "PyTorch and the paper that invented it spread over all C.",
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
            "The true class gives nothing away: every row sums to 1 + ε. Multiply it by 1 - ε first.",
        ),
        Mistake(
            "true_class_whole",
            partial(_smoothed, true=lambda e, C: 1.0),
            "The true class keeps all, and the others get ε / C on top. It gives ε away first.",
        ),
        Mistake(
            "subtracted",
            partial(_smoothed, true=lambda e, C: 1 - e - e / C, others=lambda e, C: -e / C),
            "You subtract the even share. Probabilities below 0 do not exist: add it.",
        ),
        Mistake(
            "exchanged",
            partial(_smoothed, true=lambda e, C: e + (1 - e) / C, others=lambda e, C: (1 - e) / C),
            "ε and 1 - ε have changed places: almost everything is spread evenly.",
        ),
        Mistake(
            "not_divided",
            partial(_smoothed, true=lambda e, C: 1.0, others=lambda e, C: e),
            "Every class gets all of ε. They share it: ε / C each.",
        ),
        Mistake(
            "not_smoothed",
            partial(_smoothed, true=lambda e, C: 1.0, others=lambda e, C: 0.0),
            "Nothing is smoothed: the true class has 1, and smoothing is never used.",
        ),
        Mistake(
            "only_the_true",
            partial(_smoothed, true=lambda e, C: 1 - e, others=lambda e, C: 0.0),
            "What the true class gives away goes to nobody. Spread it: ε / C for every class.",
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
            "At padding you ask for padding, as if it were a word. These rows are zero.",
        ),
        Mistake(
            "padding_class_left_out",
            lambda target, C, e, pad_id: (
                torch.where(F.one_hot(target, C).bool(), 1 - e, e / (C - 2))
                .masked_fill(torch.arange(C) == pad_id, 0.0)
                .masked_fill((target == pad_id)[..., None], 0.0)
            ),
            "You give the class of padding nothing and spread ε over C - 2. Some programs do so. PyTorch and the paper "
            "that invented it spread over all C.",
        ),
        Mistake(
            "padding_class_emptied",
            lambda *a: _smoothed(*a).masked_fill(torch.arange(a[1]) == a[3], 0.0),
            "You set the column of padding to zero as well, so that no row sums to 1. Only its rows are zero.",
        ),
    ),
    hints=(
        "A mixture: the share 1 - ε of a row that is 1 at the true class, the share ε of a row that is 1/C everywhere.",
        "F.one_hot(target, num_classes).float() is the first row. The second need not be built: a number is enough.",
        "(1 - smoothing) * true + smoothing / num_classes, and * (target != pad_id)[..., None] at the end.",
    ),
    differentiable=False,
)


# --- warmup_rates ----------------------------------------------------------------------------


def warmup_rates(steps, d_model, warmup):
    step = torch.arange(1, steps + 1)  # the first step is step 1
    rise, fall = step * warmup**-1.5, step**-0.5
    return d_model**-0.5 * torch.minimum(rise, fall)


def _rates(
    steps,
    d_model,
    warmup,
    *,
    start=1,
    pick=torch.minimum,
    scale=-0.5,
    fall=-0.5,
    bend=-1.5,
):
    step = torch.arange(start, start + steps).float()
    return d_model**scale * pick(step**fall, step * warmup**bend)


_RATES = Exercise(
    name="warmup_rates",
    notebook=_NOTEBOOK,
    title="The learning rates of the paper, step by step",
    reference=lambda steps, d_model, warmup: torch.tensor(
        [noam_rate(step, d_model, warmup) for step in range(1, steps + 1)]
    ),
    solution=warmup_rates,
    cases=(
        Case(steps=5, d_model=4, warmup=3),
        Case(steps=3, d_model=8, warmup=5),
        Case(steps=40, d_model=32, warmup=10),
    ),
    mistakes=(
        Mistake(
            "larger",
            partial(_rates, pick=torch.maximum),
            "You take the larger of the two: the rate is highest at the first step and then rises for ever. Take the "
            "smaller.",
        ),
        Mistake(
            "from_zero",
            partial(_rates, start=0),
            "You count from step 0, whose rate is 0 (in plain Python, a division by zero). The first step is step 1.",
        ),
        Mistake(
            "divides_by_zero",
            lambda steps, d_model, warmup: torch.tensor(
                [d_model**-0.5 * min(step**-0.5, step * warmup**-1.5) for step in range(steps)]
            ),
            "You count from step 0, and 0 ** -0.5 divides by zero. The first step is step 1: range(1, steps + 1).",
        ),
        Mistake(
            "from_two",
            partial(_rates, start=2),
            "Your first step is step 2. Add 1 once.",
        ),
        Mistake(
            "grows_with_size",
            partial(_rates, scale=0.5),
            "Your rate grows with the size of the model: d_model ** 0.5. Larger models need smaller rates, "
            "d_model ** -0.5.",
        ),
        Mistake(
            "no_size",
            partial(_rates, scale=0),
            "d_model is never used. The rate is divided by its root.",
        ),
        Mistake(
            "by_size",
            partial(_rates, scale=-1),
            "You divide by d_model. Divide by its root.",
        ),
        Mistake(
            "warmup_half",
            partial(_rates, bend=-0.5),
            "The exponent of warmup is -1.5. With -0.5 the rise is so steep that it meets the fall long before step "
            "warmup.",
        ),
        Mistake(
            "warmup_one",
            partial(_rates, bend=-1),
            "The exponent of warmup is -1.5. With -1 the rise meets the fall before step warmup.",
        ),
        Mistake(
            "by_step",
            partial(_rates, fall=-1),
            "Your rate falls with the step itself. It falls with its root: step ** -0.5.",
        ),
        Mistake(
            "rise_only",
            partial(_rates, pick=lambda fall, rise: rise),
            "Your rate rises for ever. After the warm-up it falls, with exponent -0.5 of the step: the smaller of the two.",
        ),
        Mistake(
            "fall_only",
            partial(_rates, pick=lambda fall, rise: fall),
            "There is no warm-up: your rate is highest at the first step. Take the smaller of rise and fall; the exponent "
            "of warmup in the rise is negative.",
        ),
    ),
    hints=(
        "Two curves, one that rises and one that falls. They meet at step warmup. Which of them counts before it?",
        "torch.arange(1, steps + 1) are the steps. The rise is step * warmup ** -1.5, the fall step ** -0.5.",
        "d_model ** -0.5 * torch.minimum(rise, fall).",
    ),
    differentiable=False,
)


# --- accumulated_losses ----------------------------------------------------------------------


def accumulated_losses(losses, counts):
    return losses * counts / counts.sum()  # their sum is the mean over all tokens


_ACCUMULATED = Exercise(
    name="accumulated_losses",
    notebook=_NOTEBOOK,
    title="Small batches that add up to the gradient of a large one",
    reference=lambda losses, counts: losses * counts / counts.sum(),
    solution=accumulated_losses,
    cases=(
        Case(losses=torch.tensor([2.0, 4.0]), counts=torch.tensor([30, 10])),
        Case(losses=torch.tensor([1.5, 0.25, 3.0]), counts=torch.tensor([7, 1, 5])),
        Case(
            losses=torch.tensor([0.5, 2.5, 1.0, 4.0, 3.0]), counts=torch.tensor([12, 3, 40, 8, 21])
        ),
    ),
    mistakes=(
        Mistake(
            "as_they_are",
            lambda losses, counts: losses * 1,
            "You leave the losses as they are, so the gradient is a sum over small batches: as many times too large "
            "as there are batches. Each gets its share.",
        ),
        Mistake(
            "equal_shares",
            lambda losses, counts: losses / len(losses),
            "You divide by the number of batches, a mean of means: a token of a small batch counts for more. The "
            "share of a batch is its tokens among all tokens.",
        ),
        Mistake(
            "not_divided",
            lambda losses, counts: losses * counts,
            "Times the tokens is right, for it makes of a mean a sum. But nothing is divided: over all batches, "
            "divide by all tokens.",
        ),
        Mistake(
            "divided_twice",
            lambda losses, counts: losses * counts / counts.sum() / len(losses),
            "You divide twice: by all tokens, and by the number of batches as well. The shares must sum to 1.",
        ),
        Mistake(
            "divided_by_batches",
            lambda losses, counts: losses * counts / len(losses),
            "You weight by tokens and divide by the number of batches. Divide by the number of tokens.",
        ),
        Mistake(
            "by_own_tokens",
            lambda losses, counts: losses / counts,
            "You divide each loss by its tokens. It is a mean over them already.",
        ),
        Mistake(
            "by_all_tokens",
            lambda losses, counts: losses / counts.sum(),
            "You divide by all tokens, but a loss is a mean over the tokens of its batch: multiply by them first.",
        ),
        Mistake(
            "by_largest",
            lambda losses, counts: losses * counts / counts.max(),
            "You divide by the tokens of the largest batch. Divide by all: the shares must sum to 1.",
        ),
        Mistake(
            "shares",
            lambda losses, counts: counts / counts.sum() * torch.ones_like(losses),
            "These are the shares, and they are right. Multiply the losses by them.",
        ),
        Mistake(
            "added_up",
            lambda losses, counts: (losses * counts).sum() / counts.sum(),
            "The sum is right. But whoever adds up first keeps the graphs of all small batches at once, and saves no "
            "memory. Return one loss per batch.",
        ),
        Mistake(
            "mean",
            lambda losses, counts: losses.mean(),
            "This is a mean of means, in one number. One loss per batch is asked for, and a token must count alike in "
            "each.",
        ),
        Mistake(
            "sum",
            lambda losses, counts: losses.sum(),
            "You add the losses up. One loss per batch is asked for, each with its share of the tokens.",
        ),
    ),
    hints=(
        "Gradients add up: after backward on each, there is the gradient of the sum. Which sum do you want?",
        "The mean over all tokens. A loss times its count is a sum over tokens.",
        "losses * counts / counts.sum().",
    ),
)


# --- steps_after -----------------------------------------------------------------------------


def steps_after(batches, every):
    i = torch.arange(batches)  # counted from 0
    return ((i + 1) % every == 0) | (i == batches - 1)


def _steps(batches, every, *, start=1, last=True):
    i = torch.arange(batches)
    full = (i + start) % every == 0
    return full | (i == batches - 1) if last else full


_STEPS = Exercise(
    name="steps_after",
    notebook=_NOTEBOOK,
    title="After which small batches the optimizer steps",
    reference=lambda batches, every: torch.tensor(
        [number % every == 0 or number == batches for number in range(1, batches + 1)]
    ),
    solution=steps_after,
    cases=(
        Case(batches=5, every=2),
        Case(batches=3, every=1),
        Case(batches=6, every=3),
        Case(batches=11, every=4),
    ),
    mistakes=(
        Mistake(
            "on_the_first",
            partial(_steps, start=0, last=False),
            "i % every == 0 holds for i = 0: you step after the very first batch, with a gradient that is not yet "
            "full, and the last batches are lost. Count from 1: (i + 1) % every.",
        ),
        Mistake(
            "on_the_first_and_last",
            partial(_steps, start=0),
            "i % every == 0 holds for i = 0: you step after the very first batch, with a gradient that is not yet "
            "full. Count from 1: (i + 1) % every.",
        ),
        Mistake(
            "one_late",
            lambda batches, every: (
                _steps(batches, every, start=0, last=False) & (torch.arange(batches) > 0)
            ),
            "The first step comes one batch late, after every + 1 of them, and the last batches are lost. Count from "
            "1: (i + 1) % every.",
        ),
        Mistake(
            "one_late_and_last",
            lambda batches, every: _steps(batches, every, start=0) & (torch.arange(batches) > 0),
            "The first step comes one batch late, after every + 1 of them. Count from 1: (i + 1) % every.",
        ),
        Mistake(
            "rest_lost",
            partial(_steps, last=False),
            "Where the batches do not come out even, the last ones are never used: their gradients wait for a step "
            "that does not come. Step after the last batch too.",
        ),
        Mistake(
            "always",
            lambda batches, every: torch.ones(batches, dtype=torch.bool),
            "You step after each batch: nothing accumulates.",
        ),
        Mistake(
            "only_last",
            lambda batches, every: torch.arange(batches) == batches - 1,
            "You step once, after the last batch. Step after each full group as well.",
        ),
        Mistake(
            "turned_around",
            lambda batches, every: ~_steps(batches, every),
            "Right, with True and False swapped: True means that the optimizer steps.",
        ),
    ),
    hints=(
        "With every = 2, gradients of batches 0 and 1 are added up. After which of them does the optimizer step?",
        "i % every == 0 is True at i = 0. How many batches are done after batch i?",
        "(i + 1) % every == 0, or i == batches - 1, so that the last ones are not lost.",
    ),
    differentiable=False,
)


# --- cached_step -----------------------------------------------------------------------------


class TooMuchWork(RuntimeError):
    """A token was projected that had been projected before."""


class ProjectedTwice(RuntimeError):
    """A new token was projected more than once."""


class _Projection:
    """Multiplies by a matrix, and refuses more tokens than there are new ones."""

    def __init__(self, name, W, new):
        self._name, self._W, self._new, self._seen = name, W, new, 0

    def __call__(self, x):
        if x.shape[-1] != len(self._W):
            raise ValueError(f"{self._name} takes vectors of {len(self._W)} numbers")
        if x.shape[-2] > self._new:
            raise TooMuchWork(f"{self._name}: {self._new} new, but {x.shape[-2]} came")
        self._seen += x.shape[-2]
        if self._seen > self._new:
            raise ProjectedTwice(f"{self._name}: {self._new} new, but {self._seen} came in all")
        return x @ self._W.to(x.dtype)

    def __deepcopy__(self, memo):
        return _Projection(self._name, self._W, self._new)  # has counted nothing

    def __eq__(self, other):
        return isinstance(other, _Projection) and other._W is self._W

    def __repr__(self):
        return f"a projection that counts, {self._new} new"


def cached_step(x, kept, key_of, value_of):
    new = x[:, kept.shape[2] :]  # (batch, new, d_model): not projected yet
    fresh = torch.stack([key_of(new), value_of(new)])  # (2, batch, new, d_head)
    return torch.cat([kept, fresh], dim=2)  # behind those that are kept


def _writing(x, past, d_head, seed):
    """A case: all vectors so far, and keys and values of the first `past` of them."""
    W_k, W_v = _short(2, x.shape[-1], d_head, seed=seed)
    new = x.shape[1] - past
    return Case(
        x=x,
        kept=torch.stack([x[:, :past] @ W_k, x[:, :past] @ W_v]),
        key_of=_Projection("key_of", W_k, new),
        value_of=_Projection("value_of", W_v, new),
    )


def _kept_step(
    x,
    kept,
    key_of,
    value_of,
    *,
    new=lambda x, past: x[:, past:],
    fresh=lambda k, v, new: [k(new), v(new)],
    join=lambda kept, fresh: torch.cat([kept, fresh], dim=2),
):
    return join(kept, torch.stack(fresh(key_of, value_of, new(x, kept.shape[2]))))


_CACHED = Exercise(
    name="cached_step",
    notebook=_NOTEBOOK,
    title="Project what is new, keep what was projected",
    reference=_kept_step,
    solution=cached_step,
    cases=(
        _writing(_short(1, 2, 2, seed=9), past=1, d_head=2, seed=10),
        _writing(_drawn(2, 3, 4, seed=11), past=0, d_head=3, seed=12),  # nothing is kept yet
        _writing(_drawn(2, 5, 4, seed=13), past=2, d_head=3, seed=14),
        _writing(_drawn(3, 6, 4, seed=15), past=5, d_head=3, seed=16),
    ),
    mistakes=(
        Mistake(
            "all_again",
            partial(_kept_step, new=lambda x, past: x, join=lambda kept, fresh: fresh),
            "You project every token again. The numbers come out right and nothing is saved. Project x[:, kept.shape[2]:] "
            "alone, and take the rest from kept.",
        ),
        Mistake(
            "kept_again",
            lambda x, kept, key_of, value_of: torch.stack(
                [
                    key_of(torch.cat([kept[0], x[:, kept.shape[2] :]], dim=1)),
                    value_of(torch.cat([kept[1], x[:, kept.shape[2] :]], dim=1)),
                ]
            ),
            "You project what is kept once more. It is keys and values already: project the new tokens, then join.",
        ),
        Mistake(
            "twice",
            partial(_kept_step, fresh=lambda k, v, new: [k(new), v(new), k(new)][:2]),
            "You project the new tokens twice. Keep the result of the first time.",
        ),
        Mistake(
            "new_in_front",
            partial(_kept_step, join=lambda kept, fresh: torch.cat([fresh, kept], dim=2)),
            "Your new tokens stand in front. They were written last and belong behind, or a causal mask hides the "
            "wrong ones.",
        ),
        Mistake(
            "replaced",
            partial(_kept_step, join=lambda kept, fresh: fresh),
            "The new keys and values replace the old ones, and what was kept is lost. Join them: "
            "torch.cat([kept, fresh], dim=2).",
        ),
        Mistake(
            "newest_only",
            partial(_kept_step, new=lambda x, past: x[:, -1:]),
            "You project the last token alone. Several may be new: all behind the first kept.shape[2].",
        ),
        Mistake(
            "shifted",
            partial(
                _kept_step,
                join=lambda kept, fresh: torch.cat([kept, fresh], dim=2)[:, :, -kept.shape[2] :],
            ),
            "You drop the oldest tokens to make room. The cache grows with the text: nothing is dropped.",
        ),
        Mistake(
            "overwritten",
            partial(
                _kept_step,
                join=lambda kept, fresh: torch.cat([kept[:, :, : -fresh.shape[2]], fresh], dim=2),
            ),
            "Your new tokens overwrite the last ones. They come behind them.",
        ),
        Mistake(
            "first_tokens",
            partial(_kept_step, new=lambda x, past: x[:, : x.shape[1] - past]),
            "You project the first tokens of x. Those are kept; the new ones are the last.",
        ),
        Mistake(
            "nothing_new",
            lambda x, kept, key_of, value_of: kept * 1,
            "You return what was kept, and nothing new.",
        ),
        Mistake(
            "exchanged",
            partial(_kept_step, fresh=lambda k, v, new: [v(new), k(new)]),
            "Keys and values have changed places for the new tokens. First the key, then the value, as in kept.",
        ),
        Mistake(
            "values_are_keys",
            partial(_kept_step, fresh=lambda k, v, new: [(key := k(new)), key]),
            "Your new values are keys: value_of is never used.",
        ),
        Mistake(
            "values_of_keys",
            partial(_kept_step, fresh=lambda k, v, new: [(key := k(new)), v(key)]),
            "Your new values are made of keys. Both are made of x.",
        ),
        Mistake(
            "inputs_kept",
            partial(_kept_step, fresh=lambda k, v, new: [new, new]),
            "You keep the vectors themselves, not projected. Then all of them must be projected at every step.",
        ),
        Mistake(
            "along_the_batch",
            partial(_kept_step, join=lambda kept, fresh: torch.cat([kept, fresh], dim=1)),
            "You join along the batch. kept is (2, batch, past, d_head): the tokens are its third axis, dim=2.",
        ),
        Mistake(
            "along_the_vectors",
            partial(_kept_step, join=lambda kept, fresh: torch.cat([kept, fresh], dim=-1)),
            "You join along the vectors. kept is (2, batch, past, d_head): the tokens are its third axis, dim=2.",
        ),
    ),
    hints=(
        "kept.shape[2] says how many tokens are done. Which are not?",
        "Project x[:, kept.shape[2]:], once with each projection, and stack the two: (2, batch, new, d_head).",
        "torch.cat([kept, fresh], dim=2).",
    ),
)


# --- bug hunts -------------------------------------------------------------------------------


def look_back(query, key, value, training):
    new, seen = query.shape[1], key.shape[1]
    scores = query @ key.mT / math.sqrt(query.shape[-1])  # (batch, new, seen)
    mask = torch.ones(new, seen, dtype=torch.bool).tril(seen - new)  # in training and after it
    scores = scores.masked_fill(~mask, -torch.inf)
    return torch.softmax(scores, dim=-1) @ value


def _given_look_back(query, key, value, training):
    new, seen = query.shape[1], key.shape[1]
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    if training:
        mask = torch.ones(new, seen, dtype=torch.bool).tril(seen - new)
        scores = scores.masked_fill(~mask, -torch.inf)
    return torch.softmax(scores, dim=-1) @ value


def _back(
    query, key, value, training, *, shift=lambda new, seen: seen - new, masked=lambda t: True
):
    new, seen = query.shape[1], key.shape[1]
    mask = torch.ones(new, seen, dtype=torch.bool).tril(shift(new, seen))
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    if masked(training):
        scores = scores.masked_fill(~mask, -torch.inf)
    return torch.softmax(scores, dim=-1) @ value


_HUNT_PEEK = Exercise(
    name="hunt_peek",
    notebook=_NOTEBOOK,
    title="Bug hunt: it looks ahead as soon as training ends",
    reference=lambda q, k, v, training: (
        scaled_dot_product_attention(q, k, v, causal_mask(q.shape[1], k.shape[1])).output
    ),
    solution=look_back,
    cases=(
        Case(
            query=_short(1, 2, 2, seed=17),
            key=_short(1, 2, 2, seed=18),
            value=_short(1, 2, 2, seed=19),
            training=False,
        ),
        Case(  # one new token, which sees all
            query=_drawn(2, 1, 3, seed=20),
            key=_drawn(2, 5, 3, seed=21),
            value=_drawn(2, 5, 3, seed=22),
            training=False,
        ),
        Case(
            query=_drawn(2, 4, 3, seed=23),
            key=_drawn(2, 4, 3, seed=24),
            value=_drawn(2, 4, 3, seed=25),
            training=True,
        ),
        Case(  # several new tokens on a cache
            query=_drawn(2, 3, 4, seed=26),
            key=_drawn(2, 7, 4, seed=27),
            value=_drawn(2, 7, 4, seed=28),
            training=False,
        ),
    ),
    mistakes=(
        Mistake(
            "never",
            partial(_back, masked=lambda training: False),
            "Now nothing is masked, not even in training. The mask is needed always.",
        ),
        Mistake(
            "upside_down",
            partial(_back, masked=lambda training: not training),
            "The switch is turned around: now training looks ahead. The mask is needed always.",
        ),
        Mistake(
            "square",
            partial(_back, shift=lambda new, seen: 0),
            "It masks always now. But your mask has lost its offset: with more keys than queries, the queries are the "
            "last of them, .tril(seen - new).",
        ),
        Mistake(
            "one_too_many",
            partial(_back, shift=lambda new, seen: seen - new + 1),
            "It masks always now. But each query sees the token after its own. The offset was right.",
        ),
        Mistake(
            "one_too_few",
            partial(_back, shift=lambda new, seen: seen - new - 1),
            "It masks always now. But a query does not see its own place. The offset was right.",
        ),
    ),
    hints=(
        "Change the last token. Does the output at the first place change? With training=True, and without.",
        "In evaluation a target of several tokens is read at once too, as in a validation loss. What may each see?",
        "The mask does not depend on the mode: take the two lines out of the if.",
    ),
    given=_given_look_back,
)


def traces(x, y, training):
    def evaluate(model, x, y):
        before = model.training
        model.eval()  # no dropout
        with torch.no_grad():  # no graph, and nothing to go backward through
            loss = F.mse_loss(model(x), y)
        model.train(before)
        return loss

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(x.shape[-1], 1), nn.Dropout(1.0)).train(training)
    score = torch.as_tensor(evaluate(model, x, y))
    gradients = any(parameter.grad is not None for parameter in model.parameters())
    changed = model.training != training
    return torch.tensor([score.item(), gradients, score.requires_grad, changed])


def _given_evaluate(model, x, y):
    loss = F.mse_loss(model(x), y)
    loss.backward()
    return loss


def _traced(x, y, training, *, evaluate):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(x.shape[-1], 1), nn.Dropout(1.0)).train(training)
    score = torch.as_tensor(evaluate(model, x, y))
    gradients = any(parameter.grad is not None for parameter in model.parameters())
    changed = model.training != training
    return torch.tensor([score.item(), gradients, score.requires_grad, changed])


#: Symptom by what is left; "" is right.
_MODES = {
    "": "",
    "dropout": "dropout takes part in the score",
    "left in evaluation": "the model is left in evaluation mode, so training goes on without dropout",
    "set to train": "a model that was in evaluation mode already is set to train",
}
_TRACES = {
    "": "",
    "graph": "the score still carries the graph that it was computed by",
    "backward": "gradients are left behind, and the next step adds its own to them",
}


def _evaluation(model, x, y, *, mode, trace):
    before = model.training
    if mode != "dropout":
        model.eval()
    with torch.set_grad_enabled(trace != ""):
        loss = F.mse_loss(model(x), y)
    if trace == "backward":
        loss.backward()
    if mode == "":
        model.train(before)
    elif mode == "set to train":
        model.train()
    return loss


def _still(mode, trace):
    return f"Still wrong: {'; '.join(one for one in (_MODES[mode], _TRACES[trace]) if one)}."


_HUNT_EVALUATION = Exercise(
    name="hunt_evaluation",
    notebook=_NOTEBOOK,
    title="Bug hunt: an evaluation that leaves traces",
    reference=partial(_traced, evaluate=partial(_evaluation, mode="", trace="")),
    solution=traces,
    cases=(
        Case(x=_short(4, 2, seed=29), y=_short(4, 1, seed=30), training=True),
        Case(x=_short(4, 2, seed=29), y=_short(4, 1, seed=30), training=False),
        Case(x=_drawn(7, 3, seed=31), y=_drawn(7, 1, seed=32), training=True),
    ),
    mistakes=(
        *(
            Mistake(
                "left: " + ", ".join(one for one in (mode, trace) if one),
                partial(_traced, evaluate=partial(_evaluation, mode=mode, trace=trace)),
                _still(mode, trace),
            )
            for mode, trace in product(_MODES, _TRACES)
            if (mode, trace) not in (("", ""), ("dropout", "backward"))
        ),
    ),
    hints=(
        "Four numbers: the score, and three that must be 0. Which of them are not?",
        "model.eval() before, and what after? Which line computes gradients, and which keeps what it needs for them?",
        "before = model.training; model.eval(); with torch.no_grad(): loss = …; model.train(before); return loss.",
    ),
    given=partial(_traced, evaluate=_given_evaluate),
    given_says=_still("dropout", "backward"),
    differentiable=False,
)


class _Copier:
    """A model that was trained to copy, on targets that begin with token 1."""

    def __call__(self, source, written):
        done, length = written.shape[1] - 1, source.shape[1]
        start = written[:, 0]
        lost = torch.where(start == 1, 0, start + 2)  # it knows no other start
        place = (done + lost) % length  # (batch,)
        return source.gather(1, place[:, None])[:, 0]

    def __deepcopy__(self, memo):
        return self

    def __repr__(self):
        return "a model trained on targets that begin with 1"


def write_copy(source, next_token):
    written = torch.ones(len(source), 1, dtype=torch.long)  # the start token of training, 1
    for _ in range(source.shape[1]):
        token = next_token(source, written)  # (batch,)
        written = torch.cat([written, token[:, None]], dim=1)
    return written[:, 1:]  # (batch, length), without the start


def _given_write_copy(source, next_token):
    written = torch.zeros(len(source), 1, dtype=torch.long)
    for _ in range(source.shape[1]):
        token = next_token(source, written)
        written = torch.cat([written, token[:, None]], dim=1)
    return written[:, 1:]


def _written(source, next_token, *, start=None, rounds=0, cut=1, behind=True):
    written = torch.ones_like(source[:, :1]) if start is None else start(source)
    for _ in range(source.shape[1] + rounds):
        token = next_token(source, written)[:, None]
        written = torch.cat([written, token] if behind else [token, written], dim=1)
    return written[:, cut:]


_HUNT_START = Exercise(
    name="hunt_start",
    notebook=_NOTEBOOK,
    title="Bug hunt: trained from one start token, decoded from another",
    reference=_written,
    solution=write_copy,
    cases=(
        Case(source=torch.tensor([[6, 3, 7, 4, 8]]), next_token=_Copier()),
        Case(
            source=torch.tensor([[4, 8, 3, 9, 6, 6, 5], [7, 5, 5, 3, 8, 9, 4]]),
            next_token=_Copier(),
        ),
    ),
    mistakes=(
        Mistake(
            "start_kept",
            partial(_written, cut=0),
            "The start is right now. But it is part of your result: leave it out.",
        ),
        Mistake(
            "first_of_source",
            partial(_written, start=lambda source: source[:, :1]),
            "You start with the first token of the source. In training every target began with the start token, 1.",
        ),
        Mistake(
            "end_token",
            partial(_written, start=lambda source: torch.full_like(source[:, :1], 2)),
            "You start with 2, the end token. In training every target began with 1.",
        ),
        Mistake(
            "two_starts",
            partial(_written, start=lambda source: torch.ones_like(source[:, :2]), cut=2),
            "You start with two tokens. In training every target began with one, so the model believes that it has "
            "copied a token already.",
        ),
        Mistake(
            "one_too_many",
            partial(_written, rounds=1),
            "The start is right now. But you write one token too many.",
        ),
        Mistake(
            "one_too_few",
            partial(_written, rounds=-1),
            "The start is right now. But you write one token too few.",
        ),
        Mistake(
            "backwards",
            partial(_written, behind=False),
            "You put each new token in front of those written before, so the model no longer reads the start first.",
        ),
    ),
    hints=(
        "Which token did every target begin with in training? Which one does this loop begin with?",
        "The start is written in one line only. Tokens are whole numbers.",
        "torch.ones(len(source), 1, dtype=torch.long) begins with token 1.",
    ),
    given=_given_write_copy,
    differentiable=False,
)


def looked_at(x, memory, W_q, W_k, real):
    q = x @ W_q.T  # (batch, target, d_head): who writes, asks
    k = memory @ W_k.T  # (batch, source, d_head)
    scores = q @ k.mT / math.sqrt(q.shape[-1])  # (batch, target, source)
    scores = scores.masked_fill(~real[:, None, :], -torch.inf)
    return torch.softmax(scores, dim=-1)


def _given_looked_at(x, memory, W_q, W_k, real):
    q = memory @ W_q.T
    k = x @ W_k.T
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    scores = scores.masked_fill(~real[:, None, :], -torch.inf)
    return torch.softmax(scores, dim=-1)


def _looked(x, memory, W_q, W_k, real, *, mask="keys", dim=-1, root=None, turned=False):
    scores = (x @ W_q.mT) @ (memory @ W_k.mT).mT / math.sqrt(root or len(W_q))
    if mask == "after":
        return torch.softmax(scores, dim=dim) * real[:, None, :]
    if mask:
        real = real[:, None, :] if mask == "keys" else ~real[:, None, :]
        scores = scores.masked_fill(~real, -torch.inf)
    weights = torch.softmax(scores, dim=dim)
    return weights.mT if turned else weights


def _queries_of_the_source(x, memory, W_q, W_k, real, *, mask, turned):
    scores = (memory @ W_q.mT) @ (x @ W_k.mT).mT / math.sqrt(len(W_q))
    if mask == "queries":
        scores = scores.masked_fill(~real[:, :, None], -1e9)
    weights = torch.softmax(scores.mT if turned == "scores" else scores, dim=-1)
    return weights.mT if turned == "weights" else weights


_HUNT_TURNED = Exercise(
    name="hunt_turned",
    notebook=_NOTEBOOK,
    title="Bug hunt: the source asks, the target answers",
    reference=lambda x, memory, W_q, W_k, real: masked_softmax(
        (x @ W_q.mT) @ (memory @ W_k.mT).mT / math.sqrt(len(W_q)), real[:, None, :]
    ),
    solution=looked_at,
    cases=(
        Case(  # as many tokens in the target as in the source: nothing raises
            x=_short(1, 2, 2, seed=33),
            memory=_short(1, 2, 2, seed=34),
            W_q=_short(2, 2, seed=35),
            W_k=_short(2, 2, seed=36),
            real=torch.tensor([[True, True]]),
        ),
        Case(
            x=_drawn(2, 3, 3, seed=37),
            memory=_drawn(2, 3, 3, seed=38),
            W_q=_drawn(4, 3, seed=39),
            W_k=_drawn(4, 3, seed=40),
            real=torch.tensor([[True, True, True], [True, False, False]]),
        ),
        Case(
            x=_drawn(2, 3, 4, seed=41),
            memory=_drawn(2, 5, 4, seed=42),
            W_q=_drawn(6, 4, seed=43),
            W_k=_drawn(6, 4, seed=44),
            real=torch.tensor([[True] * 4 + [False], [True, True, False, False, False]]),
        ),
    ),
    mistakes=(
        Mistake(
            "queries_of_the_source_unmasked",
            partial(_queries_of_the_source, mask="", turned=""),
            "You took the mask away, and the error with it. But the source still asks: x must make the queries.",
        ),
        Mistake(
            "queries_of_the_source_masked",
            partial(_queries_of_the_source, mask="queries", turned=""),
            "Your mask fits now, (batch, source, 1), but it silences queries. The source still asks: x must make the "
            "queries.",
        ),
        Mistake(
            "weights_turned",
            partial(_queries_of_the_source, mask="", turned="weights"),
            "You turn the weights around at the end. Their shape is right now, but each column sums to 1, not each "
            "row: the source shared out its attention.",
        ),
        Mistake(
            "matrices_exchanged",
            lambda x, memory, W_q, W_k, real: _looked(x, memory, W_k, W_q, real),
            "The weights have the right shape now, but memory meets W_q and x meets W_k. W_q belongs to who asks: x @ W_q.T.",
        ),
        Mistake(
            "right_but_turned",
            partial(_looked, turned=True),
            "The target asks now. But you turn the weights around: they are (batch, target, source) as they come.",
        ),
        Mistake(
            "only_keys",
            lambda x, memory, W_q, W_k, real: _looked(memory, memory, W_q, W_k, real),
            "Keys come from memory now, and so do the queries still: the source looks at itself.",
        ),
        Mistake(
            "only_queries",
            lambda x, memory, W_q, W_k, real: _looked(x, x, W_q, W_k, real),
            "Queries come from x now, and so do the keys still: the target looks at itself.",
        ),
        Mistake(
            "over_queries",
            partial(_looked, dim=-2),
            "The target asks now. But your softmax runs over the target: each row must sum to 1, dim=-1.",
        ),
        Mistake(
            "unmasked",
            partial(_looked, mask=""),
            "The target asks now. But padding is looked at like everything else.",
        ),
        Mistake(
            "after_the_softmax",
            partial(_looked, mask="after"),
            "The target asks now. But padding is hidden after the softmax, and rows no longer sum to 1.",
        ),
        Mistake(
            "upside_down",
            partial(_looked, mask="padding"),
            "The target asks now. But the mask is turned around: real is True where there is no padding.",
        ),
        Mistake(
            "no_scale",
            partial(_looked, root=1),
            "The target asks now. But the scale is gone: divide the scores by the root of the size of a query.",
        ),
    ),
    hints=(
        "Give the target 3 tokens and the source 5. What is raised, and what are the shapes in that line?",
        "In cross-attention the decoder asks. Who makes the queries, and who is looked at?",
        "q = x @ W_q.T and k = memory @ W_k.T: then the weights are (batch, target, source).",
    ),
    given=_given_looked_at,
)

EXERCISES = (
    _HUNT_PEEK,
    _HUNT_EVALUATION,
    _HUNT_START,
    _HUNT_TURNED,
    _EMBED,
    _FORCING,
    _LOSS,
    _SMOOTHED,
    _RATES,
    _ACCUMULATED,
    _STEPS,
    _CACHED,
)
