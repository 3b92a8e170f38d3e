"""A training step beside `nn.Transformer`, and multi-head attention beside `nn.MultiheadAttention`.

python -m tests.benchmarks.layers [--threads 1]

The arms take turns, so that a slow moment hits all alike. On a CPU with one thread the time is that of the thread; on a
GPU a step is one of bfloat16 autocast, and its kernels are counted.
"""

import argparse
from collections.abc import Callable
from statistics import median
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

from course_lib.transformer import MultiHeadAttention, Transformer, TransformerConfig
from tests.helpers.peers import PyTorchTransformer, clock

VOCABULARY, LENGTH, ROUNDS = 8000, 64, 8
SIZES = {512: (6, 2048, 8), 128: (4, 512, 4)}  # d_model → layers of each stack, d_ff, heads


def in_turns(arms: dict[str, Callable[[], object]], rounds: int = ROUNDS) -> dict[str, float]:
    """Median seconds of one call of each; the first round is not counted."""
    seconds = {name: [] for name in arms}
    for turn in range(rounds + 1):
        for name, call in arms.items():
            started = clock()
            call()
            seconds[name] += [clock() - started] if turn else []
    return {name: median(each) for name, each in seconds.items()}


def say(what: str, seconds: dict[str, float]) -> None:
    """Print every arm, and how many times as fast the first is."""
    ours = next(iter(seconds.values()))
    for name, each in seconds.items():
        print(f"{what}, {name:22} {1e3 * each:9.2f} ms, {each / ours:.2f} x the first", flush=True)


def training_step(
    model: nn.Module, device: str, batch: int, mixed: bool = False
) -> Callable[[], float]:
    """Return what takes one step: forward, loss, backward, clipping, Adam."""
    model = model.to(device).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(1, VOCABULARY, (2, batch, LENGTH + 1), generator=generator)
    tokens[0, :, LENGTH * 3 // 4 :][: batch // 2] = 0  # half of the sources are shorter
    source, target = tokens.to(device)
    autocast = torch.autocast(device, torch.bfloat16, enabled=device == "cuda" or mixed)

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        with autocast:
            logits = model(source, target[:, :-1])
        loss = F.cross_entropy(logits.float().flatten(0, 1), target[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    return step


def training(device: str) -> None:
    """Print the time of a step at each size, and on a GPU how many kernels it starts."""
    for d_model, (layers, d_ff, heads) in SIZES.items():
        config = TransformerConfig(
            target_vocabulary=VOCABULARY, d_model=d_model, num_heads=heads, encoder_layers=layers, decoder_layers=layers, d_ff=d_ff,
            norm="pre", tie_embeddings=True,
        )  # fmt: skip
        sizes = SimpleNamespace(model_config=lambda _, config=config: config)
        batch = 64 if device == "cuda" else 2048 // d_model
        steps = {
            "this course": training_step(Transformer(config), device, batch),
            "nn.Transformer": training_step(PyTorchTransformer(sizes, VOCABULARY), device, batch),
        }
        say(f"training step, d {d_model}", in_turns(steps))
        if device == "cpu":
            mixed = training_step(Transformer(config), device, batch, mixed=True)
            arms = {"float32": steps["this course"], "bfloat16 autocast": mixed}
            say(
                f"training step, d {d_model}", in_turns(arms, 1)
            )  # without AVX-512 the second takes seconds
        else:
            for name, step in steps.items():
                print(f"training step, d {d_model}, {name}: {kernels(step)} kernels")


def kernels(step: Callable) -> int:
    """Count the kernels of one call."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        step()
        torch.cuda.synchronize()
    return sum(event.count for event in profile.key_averages() if event.self_device_time_total > 0)


def attention(device: str) -> None:
    """Print forward and backward of one layer, 8 heads, without weights, with a causal mask and with padding."""
    d_model, batch = 512, 8
    ours = MultiHeadAttention(d_model, 8).to(device)
    theirs = nn.MultiheadAttention(d_model, 8, batch_first=True).to(device)
    x = torch.randn(batch, 128, d_model, device=device, requires_grad=True)
    causal = torch.ones(128, 128, dtype=torch.bool, device=device).tril()
    padding = torch.arange(128, device=device) < torch.randint(64, 129, (batch, 1), device=device)
    options = {"need_weights": False}
    kinds = {
        "no mask": (lambda: ours(x), lambda: theirs(x, x, x, **options)),
        "causal": (
            lambda: ours(x, is_causal=True),
            lambda: theirs(x, x, x, attn_mask=~causal, is_causal=True, **options),
        ),
        "padding": (
            lambda: ours(x, mask=padding[:, None]),
            lambda: theirs(x, x, x, key_padding_mask=~padding, **options),
        ),
    }
    for name, pair in kinds.items():
        arms = dict(zip(("this course", "nn.MultiheadAttention"), pair, strict=True))
        timed = {arm: lambda call=call: call()[0].sum().backward() for arm, call in arms.items()}
        say(f"attention layer, {name}", in_turns(timed, 4 * ROUNDS))


def main(arguments: list[str] | None = None) -> None:
    options = argparse.ArgumentParser("python -m tests.benchmarks.layers")
    options.add_argument("--threads", type=int, default=1)
    torch.set_num_threads(options.parse_args(arguments).threads)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    attention(device)
    training(device)


if __name__ == "__main__":
    main()
