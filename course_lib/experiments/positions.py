"""Do positional encodings generalise beyond the training length, with and without a causal mask?

One small model, two tasks, every encoding that has no last position, both kinds of attention; trained at 16 tokens,
evaluated at 16, 32, 64 and 128::

    python -m course_lib.experiments.positions

sweeps the learning rate of each arm (encoding, task, mask) on seed 0, keeps the one with the lowest loss on new
sequences of the training length, trains with it from three seeds for 1,000 steps and records the result beside
this file. With names of encodings behind it, it trains these alone and keeps what is recorded of the others.
"""

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from course_lib.experiments.record import read, rounded, write
from course_lib.masks import causal_mask
from course_lib.multihead import MultiHeadAttention
from course_lib.positions import ENCODINGS, AttentionPositions, Positions, make_positions
from course_lib.training import fit
from course_lib.validation import require_one_of, require_whole

RECORD = Path(__file__).with_suffix(".json")
SYMBOLS, TRAINED = 16, 16
LENGTHS = (16, 32, 64, 128)
#: Name of the mask → whether it is causal.
MASKS = {"bidirectional": False, "causal": True}
LEARNING_RATES = (1e-3, 3e-3, 1e-2)
SEEDS = (0, 1, 2)
STEPS = 1000
_NAMES = {"none": "NoPE", "shaw": "Shaw", "t5": "T5", "rotary": "RoPE", "alibi": "ALiBi"}
#: The encodings that are compared: a learned table has no positions beyond the training length.
ARMS = tuple(name for name in ENCODINGS if name != "learned")
#: What papers call the encodings.
LABELS = {name: _NAMES.get(name, name) for name in ENCODINGS}
_IGNORED = -100  # the default `ignore_index` of `F.cross_entropy`


def _three_back(tokens: Int[Tensor, "batch length"]) -> Int[Tensor, "batch length"]:
    labels = tokens.roll(3, dims=1)
    labels[:, :3] = _IGNORED
    return labels


def _the_first(tokens: Int[Tensor, "batch length"]) -> Int[Tensor, "batch length"]:
    labels = tokens[:, :1].expand(tokens.shape).clone()
    labels[:, 0] = _IGNORED
    return labels


#: Task → from the tokens to the labels of each position: one needs a relative, one an absolute position.
TASKS: dict[str, Callable[[Tensor], Tensor]] = {
    "three back": _three_back,
    "the first": _the_first,
}


#: A name, or a function that makes an encoding for one layer.
Encoding = str | Callable[[], AttentionPositions]


class SmallModel(nn.Module):
    """A Transformer with two layers, four heads and d_model = 32.

    Args:
        encoding: one of `ENCODINGS`, or a function that makes an encoding for one layer.
        causal: whether attention has a causal mask.
    """

    def __init__(self, encoding: Encoding, *, causal: bool = False) -> None:
        super().__init__()
        self.causal, d_model, num_heads = causal, 32, 4
        options = {"max_length": TRAINED, "bidirectional": not causal}
        made = [
            Positions(attention=encoding())
            if callable(encoding)
            else make_positions(encoding, d_model, num_heads, **options)
            for _ in range(2)
        ]
        self.embedding = nn.Embedding(SYMBOLS, d_model)
        self.position_embedding = made[0].embedding
        self.attention = nn.ModuleList(
            MultiHeadAttention(d_model, num_heads, positions=one.attention) for one in made
        )
        self.feed_forward = nn.ModuleList(
            nn.Sequential(nn.Linear(d_model, 64), nn.ReLU(), nn.Linear(64, d_model)) for _ in made
        )
        self.norm = nn.ModuleList(nn.LayerNorm(d_model) for _ in range(2 * len(made)))
        self.lm_head = nn.Linear(d_model, SYMBOLS)

    def forward(
        self,
        tokens: Int[Tensor, "batch length"],
        mask: Bool[Tensor, "query key"] | None = None,
    ) -> Float[Tensor, "batch length symbols"]:
        """Return the logits of every position; `mask`, if given, takes the place of the model's own."""
        x = self.embedding(tokens)  # (batch, length, d_model)
        if self.position_embedding is not None:
            x = self.position_embedding(x)
        if mask is None and self.causal:
            mask = causal_mask(tokens.shape[1])
        for layer, (attention, feed_forward) in enumerate(
            zip(self.attention, self.feed_forward, strict=True)
        ):
            x = x + attention(self.norm[2 * layer](x), mask=mask).output
            x = x + feed_forward(self.norm[2 * layer + 1](x))
        return self.lm_head(x)


def trained(
    encoding: Encoding,
    task: str,
    *,
    seed: int = 0,
    steps: int = 300,
    lr: float = 3e-3,
    causal: bool = False,
) -> SmallModel:
    """Train a `SmallModel` on random sequences of 16 tokens, 32 at a time.

    Raises:
        ValueError: for an unknown encoding or task.
    """
    require_one_of(TASKS, task=task)
    require_whole(steps=steps)
    torch.manual_seed(seed)
    model, generator = SmallModel(encoding, causal=causal), torch.Generator().manual_seed(seed)

    def batches() -> Iterator[Tensor]:
        while True:
            yield torch.randint(SYMBOLS, (32, TRAINED), generator=generator)

    fit(
        model,
        batches(),
        lambda model, tokens: _loss(model, task, tokens),
        steps=steps,
        lr=lr,
        seed=seed,
    )
    return model


def _loss(model: nn.Module, task: str, tokens: Int[Tensor, "batch length"]) -> Tensor:
    return F.cross_entropy(model(tokens).flatten(0, 1), TASKS[task](tokens).flatten())


def _new_sequences(count: int, length: int, generator: torch.Generator) -> Tensor:
    return torch.randint(SYMBOLS, (count, length), generator=generator)


def held_out_loss(model: SmallModel, task: str, *, count: int = 500) -> float:
    """Return the loss on new sequences of the training length."""
    tokens = _new_sequences(count, TRAINED, torch.Generator().manual_seed(54321))
    with torch.no_grad():
        return _loss(model, task, tokens).item()


def accuracies(model: SmallModel, task: str, *, count: int = 100) -> list[float | None]:
    """Return the accuracy in the second half of new sequences, at each of `LENGTHS`.

    None where the encoding has too few positions for the length.
    """
    generator, shares = torch.Generator().manual_seed(12345), []
    for length in LENGTHS:
        tokens = _new_sequences(count, length, generator)
        try:
            with torch.no_grad():
                predicted = model(tokens).argmax(dim=-1)
        except ValueError:  # a learned table has no more positions
            shares.append(None)
            continue
        correct = predicted == TASKS[task](tokens)
        shares.append(correct[:, length // 2 :].float().mean().item())
    return shares


def recorded() -> dict[str, dict[str, dict[str, dict]]]:
    """Return the record: mask → task → encoding → {"lr": …, "accuracy": for each seed, one per length}."""
    return read(RECORD)


def main() -> None:
    """Run the experiment and record it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("encodings", nargs="*", help=f"of {', '.join(ARMS)}; all where left out")
    chosen = parser.parse_args().encodings or ARMS
    for encoding in chosen:
        require_one_of(ARMS, encoding=encoding)
    torch.set_num_threads(1)
    result = recorded()
    for encoding in chosen:
        for mask, causal in MASKS.items():
            for task in TASKS:
                arm = _arm(encoding, task, causal)
                result.setdefault(mask, {}).setdefault(task, {})[encoding] = arm
                print(mask, task, encoding, arm, flush=True)
        _write(result)


def _write(result: dict) -> None:
    """Write the record, in the order of `ARMS` and with three decimals."""
    ordered = {
        mask: {
            task: {name: result[mask][task][name] for name in ARMS if name in result[mask][task]}
            for task in TASKS
        }
        for mask in MASKS
    }
    write(RECORD, rounded(ordered, ".3f"))


def _arm(encoding: str, task: str, causal: bool) -> dict:
    """Sweep the learning rate of one arm on the first seed; return the best and the accuracies of all seeds."""

    def run(seed: int, lr: float) -> SmallModel:
        return trained(encoding, task, seed=seed, steps=STEPS, lr=lr, causal=causal)

    swept = {lr: run(SEEDS[0], lr) for lr in LEARNING_RATES}
    lr = min(swept, key=lambda lr: held_out_loss(swept[lr], task))
    models = [swept[lr], *(run(seed, lr) for seed in SEEDS[1:])]
    return {"lr": lr, "accuracy": [accuracies(model, task, count=300) for model in models]}


if __name__ == "__main__":
    main()
