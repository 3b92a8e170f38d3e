"""What does the warm-up change for the small Transformer of notebook 08?

It learns to copy sequences of unequal length::

    python -m course_lib.experiments.warmup

trains it with post-norm and with pre-norm, with and without 50 steps of warm-up, from three seeds at each learning
rate, and measures the exact-match accuracy after 150 and after 300 steps (ten minutes of CPU time).
"""

import torch
from jaxtyping import Int
from torch import Tensor

from course_lib.experiments.runs import fill, grid
from course_lib.train import next_token_loss
from course_lib.transformer import Transformer, TransformerConfig

PAD, BOS, EOS = 0, 1, 2
SHORTEST, LONGEST, VOCABULARY = 3, 10, 13  # ten symbols besides the three special tokens
NORMS, WARMUPS = ("post", "pre"), (0, 50)
RATES = (1e-3, 2e-3, 4e-3, 8e-3, 1.6e-2)
BUDGETS = (150, 300)


def copy_batch(
    count: int, generator: torch.Generator
) -> tuple[Int[Tensor, "count source"], Int[Tensor, "count target"]]:
    """Sample sequences of symbols, padded at the end, and as targets the same between `BOS` and `EOS`."""
    lengths = torch.randint(SHORTEST, LONGEST + 1, (count, 1), generator=generator)
    symbols = torch.randint(EOS + 1, VOCABULARY, (count, LONGEST), generator=generator)
    source = symbols.where(torch.arange(LONGEST) < lengths, PAD)  # (count, source)
    bos, pad = torch.full((count, 1), BOS), torch.full((count, 1), PAD)
    target = torch.cat([bos, source, pad], dim=1)  # (count, target)
    return source, target.scatter(1, lengths + 1, EOS)


def exact_match(model: Transformer, *, count: int = 500) -> float:
    """Return the share of new sequences in which every token is predicted, given those before it.

    These are the sequences that greedy decoding copies without an error: it reads its own tokens, and up to its
    first error they are the true ones.
    """
    source, target = copy_batch(count, torch.Generator().manual_seed(12345))
    labels = target[:, 1:]
    with torch.no_grad():
        predicted = model(source, target[:, :-1]).argmax(dim=-1)  # (count, target)
    return ((predicted == labels) | (labels == PAD)).all(dim=1).float().mean().item()


def run(norm: str, warmup: int, lr: float, seed: int) -> list[dict]:
    """Train once, with a learning rate that rises for `warmup` steps; return the accuracy after each budget."""
    torch.manual_seed(seed)
    config = TransformerConfig(
        target_vocabulary=VOCABULARY,
        source_vocabulary=VOCABULARY,
        d_model=32,
        num_heads=4,
        encoder_layers=2,
        decoder_layers=2,
        d_ff=64,
        dropout=0.0,
        norm=norm,
        tie_embeddings=True,
    )
    model, generator = Transformer(config), torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    found = []
    for step in range(1, BUDGETS[-1] + 1):
        optimizer.param_groups[0]["lr"] = lr * min(1, step / max(warmup, 1))
        source, target = copy_batch(64, generator)
        loss = next_token_loss(model(source, target[:, :-1]), target, smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step in BUDGETS:
            found.append({"budget": step, "exact": exact_match(model)})
    return found


PLAN = grid(norm=NORMS, warmup=WARMUPS, lr=RATES, seed=range(3))

if __name__ == "__main__":
    fill("warmup", run, PLAN, __doc__, spec=".3f")
