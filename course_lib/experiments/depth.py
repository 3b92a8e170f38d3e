"""How far do gradients reach, with the norm before the sublayers and behind the sums?

Towers of encoder blocks of several depths, trained to name the token three places back, with and without
warm-up::

    python -m course_lib.experiments.depth

trains every tower from three seeds for 300 steps and records the result beside this file.
"""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.blocks import NORMS
from course_lib.experiments.positions import SYMBOLS, TASKS, TRAINED
from course_lib.inputs import require_one_of, require_whole
from course_lib.training import Progress, fit
from course_lib.transformer import TransformerConfig
from course_lib.transformer.embedding import ModelInput
from course_lib.transformer.stack import initialise, make_encoder, make_final_norm

RECORD = Path(__file__).with_suffix(".json")
DEPTHS = (2, 4, 6, 9, 12, 18)
WARMUPS = (0, 30, 100)
STEPS, RATE = 300, 3e-3
#: After how many steps the gradients are looked at.
SEEN = (0, 10, 30, 100, 300)
#: Every how many steps a loss is recorded.
EVERY = 5


class Tower(nn.Module):
    """Encoder blocks on top of each other; vectors of 32 numbers, four heads, no dropout.

    Args:
        depth: how many blocks.
        norm: "pre", with a norm behind the last block, or "post".
        final_norm: whether a norm follows the last block; None for "where norm is pre".
    """

    def __init__(self, depth: int, norm: str, *, final_norm: bool | None = None) -> None:
        super().__init__()
        config = TransformerConfig(
            target_vocabulary=SYMBOLS,
            d_model=32,
            num_heads=4,
            d_ff=64,
            encoder_layers=depth,
            dropout=0.0,
            norm=norm,
            final_norm=final_norm,
        )
        self.input = ModelInput(SYMBOLS, config)
        self.blocks = make_encoder(config)
        self.norm = make_final_norm(config)
        self.out = nn.Linear(config.d_model, SYMBOLS)
        initialise(self)

    def forward(self, tokens: Int[Tensor, "batch length"]) -> Float[Tensor, "batch length symbols"]:
        """Return logits for every place."""
        x = self.input(tokens=tokens)  # (batch, length, d_model)
        for block in self.blocks:
            x = block(x)
        return self.out(self.norm(x))


def task_loss(model: nn.Module, tokens: Int[Tensor, "batch length"]) -> Float[Tensor, ""]:
    """Mean cross-entropy, in nats, of naming the token three places back."""
    right = TASKS["three back"](tokens)
    return F.cross_entropy(model(tokens).flatten(0, 1), right.flatten())


def task_batches(seed: int = 0) -> Iterator[Int[Tensor, "batch length"]]:
    """Endless batches of 32 random sequences of 16 tokens."""
    random = torch.Generator().manual_seed(seed)
    while True:
        yield torch.randint(SYMBOLS, (32, TRAINED), generator=random)


def gradient_norms(model: Tower, tokens: Int[Tensor, "batch length"]) -> list[float]:
    r"""Return $\lVert \partial L / \partial \theta_b \rVert$ of every block, over all its parameters."""
    gradients = torch.autograd.grad(task_loss(model, tokens), list(model.blocks.parameters()))
    squares = iter([gradient.square().sum() for gradient in gradients])
    per_block = [sum(next(squares) for _ in block.parameters()) for block in model.blocks]
    return [square.sqrt().item() for square in per_block]


def climb(
    depth: int, norm: str, *, warmup: int = 0, seed: int = 0, steps: int = STEPS, rate: float = RATE
) -> tuple[list[float], dict[int, list[float]]]:
    """Train a tower; return its losses, and its gradient norms after the steps in `SEEN`.

    Args:
        depth, norm: of the tower.
        warmup: during so many steps the rate rises to its full height; 0 for none.
        seed: of the weights and the batches.
        steps: how many.
        rate: the full one.

    Raises:
        ValueError: for an unknown norm, numbers that are not whole, and a negative warm-up.
    """
    require_one_of(NORMS, norm=norm)
    require_whole(depth=depth, steps=steps)
    require_whole(0, warmup=warmup)
    torch.manual_seed(seed)
    model, probe = Tower(depth, norm), next(task_batches(12345))
    seen = {0: gradient_norms(model, probe)}

    def watch(now: Progress) -> None:
        if now.step in SEEN:
            seen[now.step] = gradient_norms(model, probe)

    history = fit(
        model,
        task_batches(seed),
        task_loss,
        steps=steps,
        rate=lambda step: rate * min(1.0, step / max(warmup, 1)),
        clip=1e9,  # nothing is shortened: that is what is looked at
        watch=watch,
        seed=seed,
    )
    return history.losses, seen


def name_of(depth: int, norm: str, warmup: int) -> str:
    """Return the key of a tower in the record."""
    return f"{depth} {norm} {warmup}"


@cache
def recorded() -> dict[str, dict]:
    """Return the recorded result of the long version.

    `name_of(…)` → "losses": a list per seed, every fifth step; "gradients": after how many steps, as a
    string → a list per seed, one number per block.
    """
    return json.loads(RECORD.read_text(encoding="utf-8"))


def main() -> None:
    """Run the long version and record it."""
    torch.set_num_threads(1)
    result: dict[str, dict] = {}
    for depth in DEPTHS:
        for norm in NORMS:
            for warmup in WARMUPS:
                runs = [climb(depth, norm, warmup=warmup, seed=seed) for seed in range(3)]
                result[name_of(depth, norm, warmup)] = {
                    "losses": [losses[EVERY - 1 :: EVERY] for losses, _ in runs],
                    "gradients": {str(step): [seen[step] for _, seen in runs] for step in SEEN},
                }
                print(depth, norm, warmup, [losses[-1] for losses, _ in runs], flush=True)
    rounded = json.loads(
        json.dumps(result), parse_float=lambda number: float(f"{float(number):.3g}")
    )
    RECORD.write_text(json.dumps(rounded) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
