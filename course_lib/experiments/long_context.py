"""How well does SmolLM2 predict a text beyond its context of 8,192 tokens, and how much does scaling RoPE's angles help?

Five disjoint parts of Python's own documentation, the texts of `help("topics")`, are read token by token. The loss is
recorded as a mean over each 512 positions, with the frequencies of the model and with those of three methods that
double its context, without any training::

    python -m course_lib.experiments.long_context

computes with weights in bfloat16 (two minutes of CPU time for each text and method). "unchanged" and "larger θ" are on
record in float32; in bfloat16 the loss of the first text, unchanged, is the same within 0.005 nats.
"""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from course_lib.experiments.runs import fill, grid, read, where
from course_lib.topics.pretrained import CONFIG, Tokenizer, load_smollm2
from course_lib.transformer import DecoderOnly
from course_lib.transformer.positions import RotaryPositions
from course_lib.validation import require_one_of, require_whole

LENGTH, BUCKET, PARTS = 12_288, 512, 5
#: The factor by which each method stretches the context.
FACTOR = 2


def interpolated(omega: Float[Tensor, " pair"]) -> Float[Tensor, " pair"]:
    """Position interpolation (Chen et al., 2023): every pair turns slower."""
    return omega / FACTOR


def with_larger_theta(omega: Float[Tensor, " pair"]) -> Float[Tensor, " pair"]:
    """NTK-aware scaling: θ times s^(d / (d - 2)), so that the slowest pair turns s times slower, the fastest as before."""
    d = 2 * len(omega)
    return omega * FACTOR ** (-torch.arange(0, d, 2, dtype=omega.dtype) / (d - 2))


def as_llama3(omega: Float[Tensor, " pair"]) -> Float[Tensor, " pair"]:
    """Llama 3.1's scaling: pairs with less than one turn in the context turn slower, those with more than four as before."""
    turns = CONFIG.max_length * omega / (2 * math.pi)  # within the context
    kept = ((turns - 1) / (4 - 1)).clamp(0, 1)
    return kept * omega + (1 - kept) * omega / FACTOR


#: Method → the frequencies that it makes of the model's.
METHODS: dict[str, Callable[[Tensor], Tensor]] = {
    "unchanged": lambda omega: omega,
    "larger θ": with_larger_theta,
    "Llama 3": as_llama3,
    "interpolation": interpolated,
}


def documentation_parts(tokenizer: Tokenizer) -> Int[Tensor, "part length"]:
    """Return `PARTS` disjoint parts of Python's documentation, of `LENGTH` + 1 tokens each."""
    from pydoc_data.topics import topics  # half a megabyte that nothing else needs

    text = "\n\n".join(topics[name] for name in sorted(topics))
    tokens = torch.tensor(tokenizer.encode(text)[: PARTS * (LENGTH + 1)])
    return tokens.view(PARTS, LENGTH + 1)


def scale_positions(model: DecoderOnly, method: str) -> None:
    """Give every attention layer rotary positions with the frequencies of a method."""
    require_one_of(METHODS, method=method)
    for block in model.blocks:
        positions = RotaryPositions(CONFIG.d_head, base=CONFIG.rope_theta)
        positions.frequencies = METHODS[method](positions.frequencies)
        block.attention.positions = positions


@torch.no_grad()
def loss_by_position(
    model: DecoderOnly, tokens: Int[Tensor, " length"], bucket: int = BUCKET
) -> Float[Tensor, " bucket"]:
    """Return the mean loss in nats over each `bucket` positions.

    The text goes through the model one bucket at a time, with a KV cache: the logits of all positions at once would take
    gigabytes.
    """
    require_whole(1, bucket=bucket)
    cache, losses = model.new_cache(), []
    inputs, labels = tokens[:-1].split(bucket), tokens[1:].split(bucket)
    for part, wanted in zip(inputs, labels, strict=True):
        logits = model(part[None], cache=cache)[0].float()  # (bucket, vocabulary)
        losses.append(F.cross_entropy(logits, wanted))
    return torch.stack(losses)


def recorded(method: str) -> list[list[float]]:
    """Return the recorded losses by bucket, one list per part of the text."""
    return [row["losses"] for row in where(read("long_context"), method=method)]


def run(part: int, method: str) -> list[dict]:
    """Measure one method on one part of the text."""
    model, tokenizer = load_smollm2(torch.bfloat16)
    scale_positions(model, method)
    losses = loss_by_position(model, documentation_parts(tokenizer)[part])
    return [{"losses": losses.tolist()}]


PLAN = grid(part=range(PARTS), method=METHODS)

if __name__ == "__main__":
    fill("long_context", run, PLAN, __doc__)
