"""What do warm-up, label smoothing and tied weights change for the translator of notebook 08?

The post-norm Transformer of the notebook learns the phrasebook with the paper's recipe, and with one part of it
left out::

    python -m course_lib.experiments.recipe

trains every arm from three seeds. With 400 steps the learning rate is swept in factors of two until the best one has
a worse one on either side; with this rate it is then trained for 1,200 steps. Recorded is what each run reaches on
1,000 held-out sentences (half an hour of CPU time).
"""

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import torch

from course_lib.data import (
    PairBatches,
    Phrase,
    Vocabulary,
    alignment_error_rate,
    pad,
    phrasebook_vocabularies,
    phrases,
    strongest_links,
)
from course_lib.experiments.beam_size import encode_phrases
from course_lib.experiments.runs import best as best_of
from course_lib.experiments.runs import by_rate, fill, grid, read, where
from course_lib.topics.attention_maps import record_attention
from course_lib.train import linear_schedule_with_warmup, next_token_loss
from course_lib.train.translator import PhraseTranslator
from course_lib.transformer import Transformer, TransformerConfig


class Recipe(NamedTuple):
    """How an arm is trained: the share of its steps that is warm-up, label smoothing, tied weights."""

    warmup: float = 0.1
    smoothing: float = 0.1
    tied: bool = True


ARMS = {
    "whole recipe": Recipe(),
    "no warm-up": Recipe(warmup=0.0),
    "no label smoothing": Recipe(smoothing=0.0),
    "untied": Recipe(tied=False),
}
MIDDLE, SEEDS, SHORT, LONG = 4e-3, range(3), 400, 1200
#: What is measured of a run.
MEASURES = ("exact", "accuracy", "confidence", "perplexity")


@cache
def _pairs() -> tuple[Vocabulary, Vocabulary, list[Phrase], list[Phrase]]:
    """Both vocabularies, the sentences of training, and those that are held out."""
    return *phrasebook_vocabularies(), phrases(60_000), phrases(1000, split="held out")


@cache
def _training() -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    return encode_phrases(_pairs()[2])


def measured(translator: PhraseTranslator) -> dict[str, float]:
    """Evaluate a translator on the held-out sentences.

    "exact": the share of sentences that greedy decoding translates as the reference does. The others are of the
    next token after a true prefix: "accuracy", how often the most probable one is right; "confidence", its mean
    probability; "perplexity".
    """
    held_out = _pairs()[3]
    done = translator.all([one.english for one in held_out])
    right = [words == list(one.french) for words, one in zip(done, held_out, strict=True)]
    source, target = map(pad, encode_phrases(held_out))
    labels = target[:, 1:]  # (sentence, target)
    with torch.no_grad():
        logits = translator.model(source, target[:, :-1])  # (sentence, target, vocabulary)
    best, token = logits.softmax(dim=-1).max(dim=-1)  # (sentence, target) each
    real = labels != 0
    numbers = (
        torch.tensor(right).float().mean(),
        (token == labels)[real].float().mean(),
        best[real].mean(),
        next_token_loss(logits, target).exp(),
    )
    return dict(zip(MEASURES, map(float, numbers), strict=True))


def aligned(translator: PhraseTranslator) -> dict[str, float]:
    """Score the cross-attention as an aligner of the held-out sentences.

    Candidates are the heads of each layer, and their mean. "aer": the alignment error rate, on all but the first 300
    sentences, of the candidate with the lowest one on these 300; "worst aer": the highest of a candidate.
    """
    held_out = _pairs()[3]
    source, target = map(pad, encode_phrases(held_out))
    with torch.no_grad(), record_attention(translator.model) as maps:
        translator.model(source, target[:, :-1])
    rates = []
    for name, (weights,) in maps.items():
        if name.endswith("cross_attention"):
            for head in (*weights.unbind(1), weights.mean(1)):  # (sentence, target, source)
                links = [
                    strongest_links(one[: len(p.french), : len(p.english)])
                    for one, p in zip(head, held_out, strict=True)
                ]
                parts = slice(300), slice(300, None)
                rates.append([alignment_error_rate(links[s], held_out[s]) for s in parts])
    return {"aer": min(rates)[1], "worst aer": max(rate for _, rate in rates)}


def train(arm: str, lr: float, seed: int, steps: int) -> PhraseTranslator:
    """Train one model.

    Args:
        arm: one of `ARMS`.
        lr: the largest learning rate; it falls linearly to 0 after the warm-up.
        seed: of the initialisation and the batches.
        steps: of 64 sentences.
    """
    english, french = _pairs()[:2]
    recipe = ARMS[arm]
    torch.manual_seed(seed)
    config = TransformerConfig(
        source_vocabulary=len(english),
        target_vocabulary=len(french),
        d_model=64,
        num_heads=4,
        encoder_layers=2,
        decoder_layers=2,
        d_ff=128,
        tie_embeddings=recipe.tied,
    )
    model, warmup = Transformer(config), max(1, round(recipe.warmup * steps))
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    batches = PairBatches(*_training(), batch_size=64, seed=seed)
    for step, (source, target) in zip(range(1, steps + 1), batches, strict=False):
        optimizer.param_groups[0]["lr"] = linear_schedule_with_warmup(step, lr, steps, warmup)
        logits = model(source, target[:, :-1])  # (batch, target, vocabulary)
        loss = next_token_loss(logits, target, smoothing=recipe.smoothing)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return PhraseTranslator(model.eval(), english, french)


def best(arm: str, steps: int, measure: str = "exact") -> list[float]:
    """Return what was measured, one per seed, at the learning rate with the largest mean exact match."""
    rows = where(read("recipe"), arm=arm, steps=steps)
    return by_rate(rows, measure)[best_of(rows, "exact")[0]]


def plan(rows: list[dict]) -> Iterator[dict]:
    """Sweep each arm, then train it for longer at its best learning rate."""
    for arm in ARMS:
        tried = where(rows, arm=arm, steps=SHORT)
        lr = best_of(tried, "exact")[0] if tried else MIDDLE
        rates = lr, lr / 2, 2 * lr
        yield from grid(arm=[arm], steps=[SHORT], lr=rates, seed=SEEDS)
        if set(rates) <= set(by_rate(tried, "exact")):
            yield from grid(arm=[arm], steps=[LONG], lr=[lr], seed=SEEDS)


def run(steps: int, **setting) -> list[dict]:
    """Train and evaluate one model; one that is trained for longer also as an aligner."""
    translator = train(steps=steps, **setting)
    return [measured(translator) | (aligned(translator) if steps == LONG else {})]


if __name__ == "__main__":
    fill("recipe", run, plan, __doc__, spec=".4f")
