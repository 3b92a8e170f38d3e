"""Exercise `lifetime_flops` of notebook 11."""

from functools import partial

import torch

from course_lib.exercises.exercise import Case, Exercise, Mistake


def lifetime_flops(N, target, E, A, B, alpha, beta, served):
    left = target - E - A / N**alpha  # what finite training may cost, (size,)
    D = torch.where(left > 0, (B / left.clamp(min=1e-12)) ** (1 / beta), torch.inf)
    return 6 * N * D + 2 * N * served


def _flops(
    N, target, E, A, B, alpha, beta, served, *, train=6, serve=2, at_serving="", left="", power=""
):
    term = {"": A / N**alpha, "no size": torch.zeros_like(N), "product": A * N**alpha}
    term = term.get(left, term[""])
    room = target - (0 if left == "no E" else E) - term
    exponent = {"": 1 / beta, "beta": beta, "minus": -1 / beta, "alpha": 1 / alpha}[power]
    share = {
        "absolute": room.abs(),
        "clamped": room.clamp(min=1e-3),
    }.get(left, room)
    D = (B / share) ** exponent
    if left not in ("absolute", "clamped", "nan"):
        D = torch.where(room > 0, D, torch.inf)
    if left == "zero":
        D = torch.where(room > 0, D, 0.0)
    tokens = {"": served, "training": served + D}[at_serving]
    return train * N * D + serve * N * tokens


_SIZES = torch.tensor([1.0, 4.0, 16.0])

EXERCISE = Exercise(
    name="lifetime_flops",
    notebook="11_scaling_laws",
    title="Training and inference for a given loss",
    reference=_flops,
    solution=lifetime_flops,
    cases=(
        Case(N=_SIZES, target=4.0, E=1.0, A=4.0, B=8.0, alpha=0.5, beta=1.0, served=10.0),
        Case(
            N=torch.tensor([1.0, 9.0, 25.0, 100.0, 400.0]),
            target=2.5,
            E=1.5,
            A=4.0,
            B=6.0,
            alpha=0.5,
            beta=0.4,
            served=5000.0,
        ),
    ),
    mistakes=(
        Mistake(
            "training_only",
            partial(_flops, serve=0),
            "Inference is missing: 2 N FLOPs for each token served.",
        ),
        Mistake(
            "inference_only",
            partial(_flops, train=0, left="zero"),
            "Training is missing: 6 N D FLOPs.",
        ),
        Mistake(
            "forward_only",
            partial(_flops, train=2),
            "You train with 2 FLOPs per parameter and token. The backward pass costs 4 more.",
        ),
        Mistake(
            "backward_once",
            partial(_flops, train=4),
            "You train with 4 FLOPs per parameter and token. The backward pass needs two products for each one of the "
            "forward pass: 6 in all.",
        ),
        Mistake(
            "backward_at_inference",
            partial(_flops, serve=6),
            "You serve with 6 FLOPs per parameter and token. Inference has no backward pass: 2.",
        ),
        Mistake(
            "one_flop",
            partial(_flops, serve=1),
            "You serve with 1 FLOP per parameter and token. A multiplication and an addition are 2.",
        ),
        Mistake(
            "training_tokens_served",
            partial(_flops, at_serving="training"),
            "You add the training tokens to those served, which counts their forward pass twice.",
        ),
        Mistake(
            "no_E",
            partial(_flops, left="no E"),
            "E is missing. What is left for the text is target - E - A / N^alpha.",
        ),
        Mistake(
            "no_size",
            partial(_flops, left="no size"),
            "You leave no loss to the size: what is left for the text is target - E - A / N^alpha.",
        ),
        Mistake(
            "product",
            partial(_flops, left="product"),
            "Your size term grows with N. It is A / N^alpha.",
        ),
        Mistake(
            "absolute",
            partial(_flops, left="absolute"),
            "A model whose size term alone is above target - E never reaches the target, however much it reads. Its "
            "FLOPs are infinite.",
        ),
        Mistake(
            "clamped",
            partial(_flops, left="clamped"),
            "A model that is too small for the target gets a large, finite number of tokens. No number is enough: "
            "infinity.",
        ),
        Mistake(
            "nan",
            partial(_flops, left="nan"),
            "A model that is too small for the target gets a negative number of tokens, or NaN. It never reaches the "
            "target: its FLOPs are infinite.",
        ),
        Mistake(
            "beta",
            partial(_flops, power="beta"),
            "Solve B / D^beta = left for D: the exponent is 1 / beta, not beta.",
        ),
        Mistake(
            "alpha",
            partial(_flops, power="alpha"),
            "You take the root with alpha, the exponent of the size. The text has beta.",
        ),
        Mistake(
            "minus",
            partial(_flops, power="minus"),
            "Your fraction is upside down: the less is left for the text, the more tokens are needed. D = (B / left)^(1 "
            "/ beta).",
        ),
    ),
    hints=(
        "Solve target = E + A / N^alpha + B / D^beta for D.",
        "D = (B / (target - E - A / N^alpha))^(1 / beta), and infinity where the bracket is not above 0.",
        "torch.where(left > 0, (B / left) ** (1 / beta), torch.inf), then 6 * N * D + 2 * N * served.",
    ),
    differentiable=False,
)
