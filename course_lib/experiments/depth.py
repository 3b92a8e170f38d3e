"""How do gradient norms change with depth, for pre-norm and post-norm stacks of encoder blocks?

Stacks of several depths are trained to predict the token three positions back, with and without warm-up::

    python -m course_lib.experiments.depth

trains every stack from three seeds for 300 steps.
"""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.experiments.positions import SYMBOLS, TASKS, TRAINED
from course_lib.experiments.runs import fill, grid
from course_lib.train import Progress, fit
from course_lib.transformer import TransformerConfig
from course_lib.transformer.embeddings import InputEmbedding
from course_lib.transformer.layers import NORMS, EncoderLayer
from course_lib.transformer.stacks import initialise, make_final_norm, make_layers
from course_lib.validation import require_one_of, require_whole

DEPTHS = (2, 4, 6, 9, 12, 18)
WARMUPS = (0, 30, 100)
STEPS, LEARNING_RATE = 300, 3e-3
#: After how many steps the gradient norms are recorded.
PROBED = (0, 10, 30, 100, 300)
#: Interval between recorded losses, in steps.
EVERY = 5


class DeepStack(nn.Module):
    """A stack of encoder blocks with d_model = 32, four heads and no dropout.

    Args:
        depth: number of blocks.
        norm: "pre" or "post".
        final_norm: whether a norm follows the last block; None for "if norm is pre".
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
        positions = config.make_positions(bidirectional=True)
        self.embedding = InputEmbedding(SYMBOLS, config, positions.embedding)
        self.blocks = make_layers(EncoderLayer, depth, config, positions, bidirectional=True)
        self.norm = make_final_norm(config)
        self.lm_head = nn.Linear(config.d_model, SYMBOLS)
        initialise(self)

    def forward(self, tokens: Int[Tensor, "batch length"]) -> Float[Tensor, "batch length symbols"]:
        """Return the logits of every position."""
        x = self.embedding(tokens)  # (batch, length, d_model)
        for block in self.blocks:
            x = block(x)
        return self.lm_head(self.norm(x))


def task_loss(model: nn.Module, tokens: Int[Tensor, "batch length"]) -> Float[Tensor, ""]:
    """Mean cross-entropy, in nats, of predicting the token three positions back."""
    labels = TASKS["three back"](tokens)
    return F.cross_entropy(model(tokens).flatten(0, 1), labels.flatten())


def task_batches(seed: int = 0) -> Iterator[Int[Tensor, "batch length"]]:
    """Yield random batches of 32 sequences of 16 tokens, endlessly."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        yield torch.randint(SYMBOLS, (32, TRAINED), generator=generator)


def gradient_norms(model: DeepStack, tokens: Int[Tensor, "batch length"]) -> list[float]:
    r"""Return $\lVert \partial L / \partial \theta_b \rVert$ of every block, over all its parameters."""
    gradients = torch.autograd.grad(task_loss(model, tokens), list(model.blocks.parameters()))
    squares = iter([gradient.square().sum() for gradient in gradients])
    per_block = [sum(next(squares) for _ in block.parameters()) for block in model.blocks]
    return [square.sqrt().item() for square in per_block]


def train_stack(
    depth: int,
    norm: str,
    *,
    warmup: int = 0,
    seed: int = 0,
    steps: int = STEPS,
    lr: float = LEARNING_RATE,
) -> tuple[list[float], dict[int, list[float]]]:
    """Train a stack with Adam; return its losses, and its gradient norms after the steps in `PROBED`.

    Args:
        depth, norm: of the stack.
        warmup: steps of linear warm-up of the learning rate; 0 for none.
        seed: of the initialisation and the batches.
        steps: number of training steps.
        lr: the peak learning rate.

    Raises:
        ValueError: for an unknown norm, numbers that are not whole, and a negative warm-up.
    """
    require_one_of(NORMS, norm=norm)
    require_whole(depth=depth, steps=steps)
    require_whole(0, warmup=warmup)
    torch.manual_seed(seed)
    model, probe = DeepStack(depth, norm), next(task_batches(12345))
    norms = {0: gradient_norms(model, probe)}

    def record(progress: Progress) -> None:
        if progress.step in PROBED:
            norms[progress.step] = gradient_norms(model, probe)

    history = fit(
        model,
        task_batches(seed),
        task_loss,
        steps=steps,
        lr=lambda step: lr * min(1.0, step / max(warmup, 1)),
        callback=record,
        seed=seed,
        max_grad_norm=1e9,  # no clipping: gradients are measured
    )
    return history.losses, norms


def run(**setting) -> list[dict]:
    """Train a stack; return every fifth loss, and the gradient norm of each block after each of the steps `PROBED`."""
    losses, norms = train_stack(**setting)
    return [{"losses": losses[EVERY - 1 :: EVERY], "gradients": [norms[step] for step in PROBED]}]


PLAN = grid(depth=DEPTHS, norm=NORMS, warmup=WARMUPS, seed=range(3))

if __name__ == "__main__":
    fill("depth", run, PLAN, __doc__, spec=".3g")
