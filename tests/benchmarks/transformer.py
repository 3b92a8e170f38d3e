"""The Transformer beside `nn.Transformer`, the cache beside none, and what the trainings of notebook 08 reach.

Run it with ``python -m tests.benchmarks.transformer``; every ratio compares calls that took turns in one run.
"""

from time import perf_counter

import torch

from course_lib.checkpoints import untrained_phrase_translator
from course_lib.data import alignment_error_rate, pad, phrases, strongest_links
from course_lib.decoding import greedy
from course_lib.inspection import record_attention
from course_lib.tools.checkpoints import exact_sentences, train_on_phrases
from course_lib.training import fit, linear_schedule_with_warmup, next_token_loss
from course_lib.transformer import Transformer, TransformerConfig

SIZES = {"d_model": 512, "num_heads": 8, "d_ff": 2048, "dropout": 0.1}


@torch.no_grad()
def cached_decoding(length: int = 256) -> None:
    torch.set_num_threads(1)
    layers = {"encoder_layers": 2, "decoder_layers": 2}
    config = TransformerConfig(target_vocabulary=1000, **SIZES, **layers)
    model, source = Transformer(config).eval(), torch.randint(1, 1000, (1, 20))
    memory, total = model.encode(source), {}
    for cached in (True, False):
        cache, tokens = model.new_cache(), torch.ones(1, 1, dtype=torch.int64)
        started = perf_counter()
        for _ in range(length):
            new = tokens[:, -1:] if cached else tokens
            logits = model.decode(new, memory, cache=cache if cached else None)[:, -1]
            tokens = torch.cat([tokens, logits.argmax(-1, keepdim=True)], dim=1)
        total[cached] = perf_counter() - started
    print(
        f"{length} tokens, d 512, 2 layers: {1000 * total[True] / length:.1f} ms a token with the cache, "
        f"{total[False] / total[True]:.1f} × as fast as without"
    )


def copy_task(seed: int) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    layers = {"encoder_layers": 2, "decoder_layers": 2, "norm": "pre"}
    config = TransformerConfig(
        target_vocabulary=11, d_model=32, num_heads=4, d_ff=64, dropout=0.0, **layers
    )
    model, random = Transformer(config), torch.Generator().manual_seed(seed)

    def draw(count):
        sequences = torch.randint(1, 11, (count, 10), generator=random)
        sequences[:, 0] = 1
        return sequences

    def batches():
        while True:
            yield draw(64)

    history = fit(
        model,
        batches(),
        lambda model, batch: next_token_loss(model(batch, batch[:, :-1]), batch),
        steps=400,
        lr=lambda step: linear_schedule_with_warmup(step, peak_lr=5e-3, steps=400, warmup=40),
        seed=seed,
    )
    fresh = draw(10_000)
    copied = greedy(model, fresh, max_length=9, bos_id=1, eos_id=0)
    right = (copied == fresh[:, 1:]).all(dim=1).double().mean().item()
    print(f"copy task, seed {seed}: {right:.4f} of 10,000 right after {history.seconds:.0f} s")


def phrasebook(seed: int) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    translator, held_out = untrained_phrase_translator(), phrases(2000, split="held out")
    history = train_on_phrases(translator, seed=seed)
    exact = exact_sentences(translator, held_out)
    sources = pad([translator.source.encode(one.english) for one in held_out])
    targets = pad([translator.target.encode(one.french, bos=True) for one in held_out])
    with torch.no_grad(), record_attention(translator.model) as maps:
        translator.model(sources, targets)
    heads = [head for name in maps if "cross" in name for head in maps[name][0].unbind(1)]
    shapes = [(len(pair.french), len(pair.english)) for pair in held_out]
    links = [
        [strongest_links(one[:n, :m]) for one, (n, m) in zip(head, shapes, strict=True)]
        for head in heads
    ]
    print(
        f"phrasebook, seed {seed}: {exact:.4f} of 2,000 held-out sentences exact after "
        f"{history.seconds:.0f} s; alignment error rate of the heads "
        + " ".join(f"{alignment_error_rate(found, held_out):.2f}" for found in links)
    )


if __name__ == "__main__":
    cached_decoding()
    for task in (copy_task, phrasebook):
        for seed in range(3):
            task(seed)
