"""What does a deep post-norm stack learn in 300 steps, and what helps it?

The stacks and the task are those of `course_lib.experiments.depth`: predict the token three positions back. What is
varied is the scale of the residual branches at initialisation, warm-up, depth, and the learning rate::

    python -m course_lib.experiments.post_norm

trains every arm from three seeds at several learning rates, and where the seeds disagree from ten (40 minutes of CPU
time). How long the slow arms need is what `course_lib.experiments.plateau` measures.
"""

from collections.abc import Iterator
from itertools import islice

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.experiments.depth import DeepStack, task_batches, task_loss
from course_lib.experiments.runs import best as best_of
from course_lib.experiments.runs import by_rate, fill, grid, read, where
from course_lib.train import Evaluation, fit
from course_lib.validation import require_one_of, require_positive, require_whole

RATES = (3e-4, 1e-3, 3e-3, 1e-2)
#: Learning rates that follow while the largest, or the smallest, one so far is the best.
LARGER_RATES, SMALLER_RATES = (3e-2, 1e-1), (1e-4, 3e-5)
#: A held-out loss at which the task counts as learned; guessing is ln 16 = 2.77.
LEARNED = 0.1
#: How often, in steps, and on how many batches the held-out loss is measured where it ends training.
EVERY, HELD_OUT = 50, 8
SEEDS = range(3)
STEPS, LONG = 300, 1000
#: Two arms whose seeds disagree, scale 0.3 with and without warm-up, are trained from more seeds at this rate.
MANY_SEEDS, MANY_RATE = range(10), 3e-3
#: The recorded loss is a mean over so many steps, the last ones.
LAST = 10
#: How a stack may differ from a plain one: with "weighted" every sublayer is LN(10 x + f(x)); with "embedding added"
#: the embedding is added to the output of every block.
VARIANTS = ("plain", "weighted", "embedding added")
RESIDUAL_WEIGHT = 10.0
#: How the linear layers of the blocks are initialised. "Xavier": every matrix by itself, with gain 1, biases zero.
#: "stacked": the same, but queries, keys and values as one matrix (3 d, d), which makes these three smaller by √2, as
#: `nn.Transformer` does it. "nn.Linear": uniform in ±1/√d_in, weights and biases, as `nn.Linear` makes them.
#: "PyTorch's layer", as `nn.TransformerEncoderLayer` makes them: queries, keys and values as with "stacked", the
#: others as `nn.Linear` makes them, with zeros for the biases of attention.
INITIALISATIONS = ("Xavier", "stacked", "nn.Linear", "PyTorch's layer")


class ScaledStack(DeepStack):
    """A `DeepStack` whose residual branches start smaller.

    Args:
        depth, norm: as in `DeepStack`.
        scale: factor of the output weights of every residual branch, `out_proj` and `down_proj`, at
            initialisation.
        variant: one of `VARIANTS`; all but "plain" are post-norm.
        initialisation: of the blocks, one of `INITIALISATIONS`.
    """

    def __init__(
        self,
        depth: int,
        norm: str,
        *,
        scale: float = 1.0,
        variant: str = "plain",
        initialisation: str = "Xavier",
    ) -> None:
        require_one_of(VARIANTS, variant=variant)
        require_one_of(INITIALISATIONS, initialisation=initialisation)
        require_positive(scale=scale)
        super().__init__(depth, norm)
        self.variant = variant
        with torch.no_grad():
            for block in self.blocks:
                _initialise_again(block, initialisation)
                block.attention.out_proj.weight.mul_(scale)
                block.feed_forward.down_proj.weight.mul_(scale)

    def run_block(
        self, block: nn.Module, x: Float[Tensor, "batch length d_model"]
    ) -> Float[Tensor, "batch length d_model"]:
        """Return the output of one block."""
        if self.variant != "weighted":
            return block(x)
        x = block.norm1(RESIDUAL_WEIGHT * x + block.attention(x).output)
        return block.norm2(RESIDUAL_WEIGHT * x + block.feed_forward(x))

    def residual_streams(
        self, tokens: Int[Tensor, "batch length"]
    ) -> list[Float[Tensor, "batch length d_model"]]:
        """Return the embedding, then the output of every block."""
        streams = [self.embedding(tokens)]
        for block in self.blocks:
            x = self.run_block(block, streams[-1])
            streams.append(x + streams[0] if self.variant == "embedding added" else x)
        return streams

    def forward(self, tokens: Int[Tensor, "batch length"]) -> Float[Tensor, "batch length symbols"]:
        """Return the logits of every position."""
        return self.lm_head(self.norm(self.residual_streams(tokens)[-1]))


def _initialise_again(block: nn.Module, initialisation: str) -> None:
    """Change the initialisation of a block from "Xavier" to another of the `INITIALISATIONS`."""
    attention = block.attention
    if initialisation in ("stacked", "PyTorch's layer"):
        for projection in (attention.q_proj, attention.k_proj, attention.v_proj):
            projection.weight.mul_(2**-0.5)  # √(6 / (d + 3 d)) for √(6 / (d + d))
    if initialisation == "PyTorch's layer":
        for layer in (attention.out_proj, *block.feed_forward.children()):
            if isinstance(layer, nn.Linear):
                layer.reset_parameters()
        attention.out_proj.bias.zero_()
    if initialisation == "nn.Linear":
        for layer in block.modules():
            if isinstance(layer, nn.Linear):
                layer.reset_parameters()


def survival(stack: ScaledStack, tokens: Int[Tensor, "batch length"]) -> float:
    """Return how much of the embedding reaches the last block: the mean cosine similarity of the two.

    The mean vector over all positions is subtracted from both, since a part that is the same for all positions
    says nothing about a token.
    """
    with torch.no_grad():
        streams = stack.residual_streams(tokens)
        first, last = (x - x.mean(dim=(0, 1)) for x in (streams[0], streams[-2]))
        return torch.cosine_similarity(first, last, dim=-1).mean().item()


def train(
    depth: int,
    norm: str = "post",
    *,
    scale: float = 1.0,
    warmup: int = 0,
    variant: str = "plain",
    initialisation: str = "Xavier",
    lr: float = 1e-3,
    seed: int = 0,
    steps: int = STEPS,
    until: float | None = None,
) -> list[float]:
    """Train a stack with Adam; return the loss before each step.

    Args:
        depth, norm, scale, variant, initialisation: of the stack.
        warmup: steps of linear warm-up of the learning rate; 0 for none.
        lr: the peak learning rate.
        seed: of the initialisation and the batches.
        steps: number of training steps.
        until: stop when the loss on held-out batches, measured every `EVERY` steps, is at most this.
    """
    require_whole(0, warmup=warmup)
    evaluation = None
    if until is not None:
        held_out = torch.cat(list(islice(task_batches(12345), HELD_OUT)))
        evaluation = Evaluation(
            lambda model: -task_loss(model, held_out).item(), every=EVERY, target_score=-until
        )
    torch.manual_seed(seed)
    history = fit(
        ScaledStack(depth, norm, scale=scale, variant=variant, initialisation=initialisation),
        task_batches(seed),
        task_loss,
        steps=steps,
        lr=lambda step: lr * min(1.0, step / max(warmup, 1)),
        evaluation=evaluation,
        seed=seed,
        max_grad_norm=1e9,  # no clipping, as in the depth experiment
    )
    return history.losses


def arm(
    depth: int, norm: str, *, scale: float = 1.0, warmup: int = 0, variant: str = "plain"
) -> str:
    """Return the name of an arm."""
    return f"{depth} {norm}, scale {scale:g}, warm-up {warmup}, {variant}"


_OPTIONS = (
    *grid(depth=[12], norm=["post"], scale=[1.0, 0.3, 0.1], warmup=[0, 200]),
    *grid(depth=[12], norm=["post"], variant=VARIANTS[1:]),
    *grid(depth=[12], norm=["pre"], warmup=[0, 200]),
    *grid(depth=[6], norm=["post"], scale=[1.0, 0.3, 0.1]),
    *grid(depth=[18], norm=["post"], scale=[0.3, 0.1]),
)
#: Name of an arm → options of `train`.
ARMS = {arm(**one): one for one in _OPTIONS}
#: Arms that are trained for `LONG` steps as well, at the two learning rates that were best before.
LONG_ARMS = (*(arm(12, "post", warmup=w) for w in (0, 200)), arm(12, "post", scale=0.3))
MANY_ARMS = tuple(arm(12, "post", scale=0.3, warmup=w) for w in (0, 200))


def runs(name: str, steps: int = STEPS, seeds: range = SEEDS) -> list[dict]:
    """Return the recorded runs of an arm from these seeds."""
    return [row for row in where(read("post_norm"), arm=name, steps=steps) if row["seed"] in seeds]


def best(name: str, steps: int = STEPS) -> tuple[float, list[float]]:
    """Return the learning rate with the smallest mean loss, and its final losses, one per seed."""
    return best_of(runs(name, steps), "loss", min)


def plan(rows: list[dict]) -> Iterator[dict]:
    """Sweep each arm until the best learning rate has a worse one on both sides; then the longer runs, and more seeds."""
    for name in ARMS:
        tried = [row for row in where(rows, arm=name, steps=STEPS) if row["seed"] in SEEDS]
        losses, rates = by_rate(tried, "loss"), list(RATES)
        for further, edge in ((LARGER_RATES, max(RATES)), (SMALLER_RATES, min(RATES))):
            for lr in further:
                done = [row for row in tried if row["lr"] in rates]
                if set(rates) <= set(losses) and best_of(done, "loss", min)[0] == edge:
                    rates.append(lr)
                    edge = lr
        yield from grid(arm=[name], steps=[STEPS], lr=rates, seed=SEEDS)
        if name in LONG_ARMS and set(rates) <= set(losses):
            two = sorted(RATES, key=lambda lr: sum(losses[lr]))[:2]
            yield from grid(arm=[name], steps=[LONG], lr=two, seed=SEEDS)
        if name in MANY_ARMS:
            yield from grid(arm=[name], steps=[STEPS], lr=[MANY_RATE], seed=MANY_SEEDS)


def run(arm: str, **setting) -> list[dict]:
    """Train once; return the final loss."""
    return [{"loss": sum(train(**ARMS[arm], **setting)[-LAST:]) / LAST}]


if __name__ == "__main__":
    fill("post_norm", run, plan, __doc__, spec=".3g")
