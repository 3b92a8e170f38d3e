"""Exercise `feed_forward` of notebook 07."""

from functools import partial

import torch
import torch.nn.functional as F
from torch.func import functional_call

from course_lib.blocks import FeedForward
from course_lib.exercises.catalogue._shared import random_tensor
from course_lib.exercises.exercise import Case, Exercise, Mistake


def feed_forward(x, w1, b1, w2, b2):
    wider = torch.relu(x @ w1.T + b1)  # (…, d_ff)
    return wider @ w2.T + b2  # (…, d_model)


def _feed_forward(x, w1, b1, w2, b2, *, activation=torch.relu):
    return activation(x @ w1.mT + b1) @ w2.mT + b2


_SQUARE = {
    "w1": torch.tensor([[1.0, -0.5], [2.0, 0.3]]),
    "b1": torch.tensor([0.2, -0.6]),
    "w2": torch.tensor([[0.4, 1.0], [-1.5, 0.7]]),
    "b2": torch.tensor([0.1, -0.9]),
}

EXERCISE = Exercise(
    name="feed_forward",
    notebook="07_transformer_blocks",
    title="The network that works on every token by itself",
    reference=lambda x, w1, b1, w2, b2: functional_call(
        FeedForward(*w2.shape),
        {"up_proj.weight": w1, "up_proj.bias": b1, "down_proj.weight": w2, "down_proj.bias": b2},
        (x,),
    ),
    solution=feed_forward,
    cases=(
        # as many tokens as numbers in a vector, and no wider inside: nothing raises
        Case(x=torch.tensor([[[1.0, -0.5], [-1.2, 0.8]]]), **_SQUARE),
        Case(
            x=random_tensor(2, 3, 4, seed=6),
            w1=random_tensor(6, 4, seed=7),
            b1=random_tensor(6, seed=8),
            w2=random_tensor(4, 6, seed=9),
            b2=random_tensor(4, seed=10),
        ),
    ),
    mistakes=(
        Mistake(
            "no_bend",
            partial(_feed_forward, activation=lambda u: u),
            "There is no activation. Two linear layers in a row are one linear layer.",
        ),
        Mistake(
            "bend_at_the_end_too",
            lambda *a: torch.relu(_feed_forward(*a)),
            "You have an activation at the end as well. The network could only add to a vector, never take away.",
        ),
        Mistake(
            "bend_at_the_end",
            lambda *a: torch.relu(_feed_forward(*a, activation=lambda u: u)),
            "Your activation stands at the end. It belongs between the two layers.",
        ),
        Mistake(
            "bend_first",
            lambda x, *a: _feed_forward(torch.relu(x), *a, activation=lambda u: u),
            "Your activation stands before the first layer. It belongs between the two.",
        ),
        Mistake(
            "not_transposed",
            lambda x, w1, b1, w2, b2: _feed_forward(x, w1.T, b1, w2.T, b2),
            "You multiply with the matrices as they are. They are (out, in), as nn.Linear holds them: x @ w1.T. "
            "Where they are square, nothing raises an error.",
        ),
        Mistake(
            "first_not_transposed",
            lambda x, w1, b1, w2, b2: _feed_forward(x, w1.T, b1, w2, b2),
            "w1 is (out, in), as nn.Linear holds it: x @ w1.T.",
        ),
        Mistake(
            "second_not_transposed",
            lambda x, w1, b1, w2, b2: _feed_forward(x, w1, b1, w2.T, b2),
            "Right up to the second layer: w2 is (out, in) like the first, so … @ w2.T.",
        ),
        Mistake(
            "over_tokens",
            lambda x, w1, b1, w2, b2: _feed_forward(x.mT, w1, b1, w2, b2).mT,
            "Your matrices mix the tokens. Each token is changed by itself, whatever stands beside it.",
        ),
        Mistake(
            "from_the_left",
            lambda x, w1, b1, w2, b2: w2 @ torch.relu(w1 @ x + b1) + b2,
            "w1 @ x mixes the tokens: it sums over the second axis of x. Each vector is a row here, so x @ w1.T.",
        ),
        Mistake(
            "exchanged",
            lambda x, w1, b1, w2, b2: _feed_forward(x, w2, b2, w1, b1),
            "The two layers have changed places.",
        ),
        Mistake(
            "bias_after_the_bend",
            lambda x, w1, b1, w2, b2: (torch.relu(x @ w1.T) + b1) @ w2.T + b2,
            "You add b1 after the activation. It belongs inside: relu(x @ w1.T + b1).",
        ),
        Mistake(
            "no_b1",
            lambda x, w1, b1, w2, b2: _feed_forward(x, w1, 0 * b1, w2, b2),
            "b1 is never used.",
        ),
        Mistake(
            "no_b2",
            lambda x, w1, b1, w2, b2: _feed_forward(x, w1, b1, w2, 0 * b2),
            "b2 is never used.",
        ),
        Mistake(
            "no_bias",
            lambda x, w1, b1, w2, b2: _feed_forward(x, w1, 0 * b1, w2, 0 * b2),
            "The biases b1 and b2 are never used.",
        ),
        Mistake(
            "way_around",
            lambda x, *a: x + _feed_forward(x, *a),
            "You add x. The residual connection is not part of it: the block adds x.",
        ),
        Mistake(
            "first_layer_only",
            lambda x, w1, b1, w2, b2: torch.relu(x @ w1.T + b1),
            "The second layer is missing, the one that leads back to d_model.",
        ),
        Mistake(
            "gelu",
            partial(_feed_forward, activation=F.gelu),
            "Your activation is a GELU. Later models use it; here it is max(0, u).",
        ),
        Mistake(
            "tanh",
            partial(_feed_forward, activation=torch.tanh),
            "Your activation is a tanh. Here it is max(0, u).",
        ),
        Mistake(
            "sigmoid",
            partial(_feed_forward, activation=torch.sigmoid),
            "Your activation is a sigmoid. Here it is max(0, u).",
        ),
        Mistake(
            "absolute",
            partial(_feed_forward, activation=torch.abs),
            "You take the absolute value. max(0, u) sets what is negative to 0.",
        ),
        Mistake(
            "negative_kept",
            partial(_feed_forward, activation=lambda u: u.clamp(max=0)),
            "You keep what is negative. max(0, u) keeps what is positive.",
        ),
    ),
    hints=(
        "Three steps: wider, bend, back. Write the shape behind each line.",
        "nn.Linear holds its matrix as (out, in), so the first layer is x @ w1.T + b1.",
        "torch.relu(x @ w1.T + b1) @ w2.T + b2.",
    ),
)
