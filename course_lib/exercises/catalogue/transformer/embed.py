"""Exercise `embed` of notebook 08."""

import math
from functools import partial

import torch
from torch.func import functional_call

from course_lib.exercises.catalogue._shared import random_tensor, rounded_tensor
from course_lib.exercises.exercise import Case, Exercise, Mistake
from course_lib.transformer.embedding import TokenEmbedding


def embed(tokens, table, positions):
    vectors = table[tokens] * math.sqrt(table.shape[-1])  # (batch, length, d_model)
    return vectors + positions[: tokens.shape[1]]


def _embedded(tokens, table, positions, *, scale=lambda table: math.sqrt(table.shape[-1])):
    return table[tokens] * scale(table) + positions[: tokens.shape[1]]


EXERCISE = Exercise(
    name="embed",
    notebook="08_transformer",
    title="From tokens to the vectors that enter the first block",
    reference=lambda tokens, table, positions: (
        functional_call(TokenEmbedding(*table.shape), {"weight": table}, (tokens,))
        + positions[: tokens.shape[1]]
    ),
    solution=embed,
    cases=(
        Case(
            tokens=torch.tensor([[2, 0]]),
            table=rounded_tensor(3, 3, seed=0),
            positions=rounded_tensor(4, 3, seed=1),
        ),
        Case(  # as many sequences as tokens in each: nothing raises
            tokens=torch.tensor([[1, 3], [0, 4]]),
            table=random_tensor(5, 6, seed=2),
            positions=random_tensor(5, 6, seed=3),
        ),
        Case(
            tokens=torch.tensor([[1, 6, 2, 2], [0, 5, 3, 4], [6, 1, 1, 0]]),
            table=random_tensor(7, 5, seed=4),
            positions=random_tensor(9, 5, seed=5),
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
