"""Does an encoding of positions hold beyond the length it was trained at?

One small model, two tasks, all encodings; trained at 16 tokens, asked at 16, 32, 64 and 128::

    python -m course_lib.experiments.positions

trains every encoding from five seeds for 1,000 steps and records the result beside this file.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.inputs import require_one_of, require_whole
from course_lib.masks import causal_mask
from course_lib.multihead import MultiHeadAttention
from course_lib.positions import ENCODINGS, make_positions
from course_lib.training import fit

RECORD = Path(__file__).with_suffix(".json")
SYMBOLS, TRAINED = 16, 16
LENGTHS = (16, 32, 64, 128)
_NOT_ASKED = -100  # as `F.cross_entropy` has it


def _three_back(tokens: Int[Tensor, "batch length"]) -> Int[Tensor, "batch length"]:
    right = tokens.roll(3, dims=1)
    right[:, :3] = _NOT_ASKED
    return right


def _the_first(tokens: Int[Tensor, "batch length"]) -> Int[Tensor, "batch length"]:
    right = tokens[:, :1].expand(tokens.shape).clone()
    right[:, 0] = _NOT_ASKED
    return right


#: Task → from the tokens to what each place has to name. One is about a distance, one about a place.
TASKS: dict[str, Callable[[Tensor], Tensor]] = {
    "three back": _three_back,
    "the first": _the_first,
}


class SmallModel(nn.Module):
    """Two layers of four heads, each followed by a small network; vectors of 32 numbers.

    Args:
        encoding: one of `ENCODINGS`.
        causal: whether a token sees only those before it.
    """

    def __init__(self, encoding: str, *, causal: bool = False) -> None:
        super().__init__()
        self.causal, d_model, num_heads = causal, 32, 4
        options = {"max_length": TRAINED, "bidirectional": not causal}
        made = [make_positions(encoding, d_model, num_heads, **options) for _ in range(2)]
        self.embedding = nn.Embedding(SYMBOLS, d_model)
        self.added = made[0].added
        self.attention = nn.ModuleList(
            MultiHeadAttention(d_model, num_heads, positions=one.inside) for one in made
        )
        self.network = nn.ModuleList(
            nn.Sequential(nn.Linear(d_model, 64), nn.ReLU(), nn.Linear(64, d_model)) for _ in made
        )
        self.norm = nn.ModuleList(nn.LayerNorm(d_model) for _ in range(2 * len(made)))
        self.out = nn.Linear(d_model, SYMBOLS)

    def forward(self, tokens: Int[Tensor, "batch length"]) -> Float[Tensor, "batch length symbols"]:
        """Return logits for every place."""
        x = self.embedding(tokens)  # (batch, length, d_model)
        x = x if self.added is None else self.added(x)
        mask = causal_mask(tokens.shape[1]) if self.causal else None
        for layer, (attention, network) in enumerate(
            zip(self.attention, self.network, strict=True)
        ):
            x = x + attention(self.norm[2 * layer](x), mask=mask).output
            x = x + network(self.norm[2 * layer + 1](x))
        return self.out(x)


def trained(
    encoding: str, task: str, *, seed: int = 0, steps: int = 300, causal: bool = False
) -> SmallModel:
    """Train a `SmallModel` on random sequences of 16 tokens, 32 at a time.

    Raises:
        ValueError: for an encoding or a task that there is not.
    """
    require_one_of(TASKS, task=task)
    require_whole(steps=steps)
    torch.manual_seed(seed)
    model, random = SmallModel(encoding, causal=causal), torch.Generator().manual_seed(seed)

    def batches() -> Iterator[Tensor]:
        while True:
            yield torch.randint(SYMBOLS, (32, TRAINED), generator=random)

    def loss(model: nn.Module, tokens: Tensor) -> Tensor:
        return F.cross_entropy(model(tokens).flatten(0, 1), TASKS[task](tokens).flatten())

    fit(model, batches(), loss, steps=steps, rate=3e-3, seed=seed)
    return model


def accuracies(model: SmallModel, task: str, *, count: int = 100) -> list[float | None]:
    """Return the share of right answers in the second half of fresh sequences, at each of `LENGTHS`.

    None where the encoding has no positions for the length.
    """
    random, shares = torch.Generator().manual_seed(12345), []
    for length in LENGTHS:
        tokens = torch.randint(SYMBOLS, (count, length), generator=random)
        try:
            with torch.no_grad():
                said = model(tokens).argmax(dim=-1)
        except ValueError:  # a learned table ends
            shares.append(None)
            continue
        right = said == TASKS[task](tokens)
        shares.append(right[:, length // 2 :].float().mean().item())
    return shares


def recorded() -> dict[str, dict[str, list[list[float | None]]]]:
    """Return the recorded result of the long version: task → encoding → a list of accuracies per seed."""
    return json.loads(RECORD.read_text(encoding="utf-8"))


def main() -> None:
    """Run the long version and record it."""
    torch.set_num_threads(1)
    result: dict[str, dict[str, list]] = {task: {} for task in TASKS}
    for task in TASKS:
        for encoding in (*ENCODINGS, "none, causal", "alibi, causal"):
            name, _, causal = encoding.partition(", ")
            result[task][encoding] = [
                accuracies(
                    trained(name, task, seed=seed, steps=1000, causal=bool(causal)), task, count=500
                )
                for seed in range(5)
            ]
            print(task, encoding, result[task][encoding], flush=True)
    rounded = json.loads(json.dumps(result), parse_float=lambda number: round(float(number), 3))
    RECORD.write_text(json.dumps(rounded, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
