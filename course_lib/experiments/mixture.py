"""What does a mixture of experts buy? Dense models and mixtures read the same text.

::

    python -m course_lib.experiments.mixture

trains every arm at learning rates that double or halve until the best, in the mean of three seeds, has a worse one on both
sides, and there from three seeds more (seven minutes of CPU time). The text and the windows are those of `scaling_ladder`.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.data import BYTE_VOCABULARY
from course_lib.experiments.runs import best as best_of
from course_lib.experiments.runs import fill, grid, read, sweep, where
from course_lib.experiments.scaling_ladder import (
    BATCH,
    LENGTH,
    WARMUP,
    held_out_loss,
    held_out_windows,
    next_byte_loss,
    training_batches,
)
from course_lib.topics.today import ExpertLayer, Router, Routing
from course_lib.train import fit, linear_schedule_with_warmup
from course_lib.transformer import DecoderOnly, TransformerConfig
from course_lib.validation import require_one_of

D_MODEL, LAYERS = 32, 2
#: Training tokens: 256 steps.
TOKENS = 2**18
#: Arm → experts of a layer, how many a token goes to, hidden units of one, and whether a bias balances them.
ARMS = {
    "dense, equal active": (1, 1, 128, False),
    "dense, equal total": (1, 1, 512, False),
    "2 of 8 experts": (8, 2, 64, False),
    "2 of 8, balanced": (8, 2, 64, True),
}
#: How far a step moves the bias of an expert.
BIAS_RATE = 0.003


class Mixture(nn.Module):
    """A decoder-only language model whose feed-forward networks are expert layers; a dense one has a single expert.

    Args:
        experts: of each layer.
        k: how many of them a token goes to.
        d_ff: the number of hidden units of one.
    """

    def __init__(self, experts: int, k: int, d_ff: int) -> None:
        super().__init__()
        self.model = DecoderOnly(
            TransformerConfig(
                target_vocabulary=BYTE_VOCABULARY,
                d_model=D_MODEL,
                num_heads=2,
                d_ff=1,
                decoder_layers=LAYERS,
                dropout=0.0,
                norm="pre",
                norm_type="rms",
                positions="rotary",
            )  # fmt: skip
        )
        self.routings: list[Routing] = []
        for block in self.model.blocks:
            router = Router(D_MODEL, experts, k, scores="sigmoid")
            router.register_forward_hook(lambda _, __, routing: self.routings.append(routing))
            block.feed_forward = ExpertLayer(router, d_ff)

    @property
    def routers(self) -> list[Router]:
        """One per layer."""
        return [block.feed_forward.router for block in self.model.blocks]

    def forward(self, tokens: Int[Tensor, "batch length"]) -> Float[Tensor, "batch length byte"]:
        """Return logits of the byte after each; `routings` are then those of these tokens."""
        self.routings.clear()
        return self.model(tokens)

    def parameter_counts(self) -> tuple[int, int]:
        """Return how many parameters there are, and how many one token meets."""
        total = active = sum(one.numel() for one in self.parameters())
        for block in self.model.blocks:
            experts = [block.feed_forward.up_gate, block.feed_forward.down]
            idle = len(experts[0]) - block.feed_forward.router.k
            active -= idle * sum(one[0].numel() for one in experts)
        return total, active


def loads(routing: Routing) -> Float[Tensor, " expert"]:
    """Return the load of each expert relative to a uniform one: 1 if all get equally many tokens."""
    counts = routing.experts.flatten().bincount(minlength=routing.scores.shape[-1])
    return counts / counts.float().mean()


def trained(arm: str, tokens: int, lr: float, seed: int) -> Mixture:
    """Train an arm with Adam; the learning rate rises for a tenth of the steps and then falls to 0."""
    require_one_of(ARMS, arm=arm)
    experts, k, d_ff, balanced = ARMS[arm]
    torch.manual_seed(seed)
    model, steps = Mixture(experts, k, d_ff), tokens // (LENGTH * BATCH)
    warmup = max(1, round(WARMUP * steps))

    def loss(model: Mixture, windows: Int[Tensor, "window bytes"]) -> Float[Tensor, ""]:
        nats = next_byte_loss(model, windows)
        if balanced:
            for router, routing in zip(model.routers, model.routings, strict=True):
                router.balance(routing.experts, BIAS_RATE)
        return nats

    schedule = lambda step: linear_schedule_with_warmup(step, lr, steps, warmup)  # noqa: E731
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.99), fused=True)
    fit(
        model,
        training_batches(seed),
        loss,
        steps=steps,
        lr=schedule,
        optimizer=optimizer,
        seed=seed,
    )
    return model


@torch.no_grad()
def held_out_loads(model: Mixture) -> Float[Tensor, "layer expert"]:
    """Return the loads of the experts on held-out text."""
    model(held_out_windows()[:, :-1])
    return torch.stack([loads(routing) for routing in model.routings])


def run(arm: str, tokens: int, lr: float, seed: int) -> list[dict]:
    """Train once; return the held-out loss in nats per byte, and the loads of the experts of each layer."""
    model = trained(arm, tokens, lr, seed)
    return [{"loss": held_out_loss(model), "loads": held_out_loads(model).tolist()}]


def plan(rows: list[dict]) -> list[dict]:
    """Sweep the learning rate of each arm with three seeds; three more train at the best one."""
    arms = grid(tokens=[TOKENS], arm=ARMS)
    options = {"start": 2**-5, "better": min, "compared": 3, "seeds": 6}
    return [one for arm in arms for one in sweep(rows, arm, "loss", **options)]


def best(arm: str) -> list[dict]:
    """Return the recorded runs, one per seed, at the learning rate that is best in the mean of the first three."""
    rows = where(read("mixture"), arm=arm)
    rate, _ = best_of([row for row in rows if row["seed"] < 3], "loss", min)
    return sorted(where(rows, lr=rate), key=lambda row: row["seed"])


if __name__ == "__main__":
    fill("mixture", run, plan, __doc__, spec=".5g")
