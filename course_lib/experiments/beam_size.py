"""How do beam size, length normalisation and label smoothing change the translations of a small model?

The Transformer of the phrasebook is trained briefly, so that it makes mistakes, and decoded with several beams::

    python -m course_lib.experiments.beam_size

trains every arm from three seeds at each learning rate of a sweep and from two more at the best one, and decodes 400
held-out sentences with each model of the best learning rate (about twenty minutes of CPU time). Two arms are trained
three times as long, from three seeds, at the learning rate that was best before, and two, without and with label
smoothing, from three seeds at a learning rate that is too small: their models are weak.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache

import torch
from torch import Tensor

from course_lib.checkpoints import untrained_phrase_translator
from course_lib.data import PairBatches, Phrase, pad, phrasebook_vocabularies, phrases
from course_lib.experiments.runs import best as best_of
from course_lib.experiments.runs import fill, read, where
from course_lib.topics.bleu import bleu, brevity_penalty
from course_lib.train import fit, linear_schedule_with_warmup, next_token_loss
from course_lib.train.translator import PhraseTranslator
from course_lib.transformer.decoding import beam_search

SENTENCES, WARMUP, MAX_LENGTH = 10_000, 30, 24
BEAMS, ALPHAS = (1, 2, 4, 8, 16), (0.0, 1.0)
TESTED, VALIDATION = 400, 200  # held-out sentences
RATES = (4e-3, 8e-3, 1.6e-2)
LIVE_RATE = 4e-3  # of the model that notebook 09 trains: too small, so that it makes more mistakes
SEEDS, MORE_SEEDS = range(3), range(3, 5)  # at every learning rate; at the best one
RESAMPLED = 1000

#: Name of an arm → label smoothing and number of training steps.
ARMS: dict[str, tuple[float, int]] = {
    "smoothing 0, 200 steps": (0.0, 200),
    "smoothing 0.2, 200 steps": (0.2, 200),
    "smoothing 0, 300 steps": (0.0, 300),
    "smoothing 0.1, 300 steps": (0.1, 300),
    "smoothing 0.2, 300 steps": (0.2, 300),
    "smoothing 0, 900 steps": (0.0, 900),
    "smoothing 0.2, 900 steps": (0.2, 900),
    "smoothing 0, 300 steps, learning rate 0.004": (0.0, 300),
    "smoothing 0.2, 300 steps, learning rate 0.004": (0.2, 300),
}


def encode_phrases(pairs: Sequence[Phrase]) -> tuple[list[Tensor], list[Tensor]]:
    """Return the tokens of the English sentences, and of the French ones with a start and an end token."""
    english, french = phrasebook_vocabularies()
    sources = [english.encode(one.english) for one in pairs]
    return sources, [french.encode(one.french, bos=True, eos=True) for one in pairs]


@cache
def batches(seed: int = 0) -> PairBatches:
    """Return 10,000 training sentences in batches of 64; the seed is of their order."""
    return PairBatches(*encode_phrases(phrases(SENTENCES)), batch_size=64, seed=seed)


def trained(
    smoothing: float = 0.2, *, seed: int = 0, steps: int = 300, lr: float = LIVE_RATE
) -> PhraseTranslator:
    """Train the Transformer of notebook 8 with few sentences and steps.

    Args:
        smoothing: label smoothing.
        seed: of the initialisation, of dropout and of the order of the batches.
        steps: of training; the learning rate rises for 30 of them and falls linearly for the others.
        lr: the peak learning rate.
    """
    torch.manual_seed(seed)
    translator = untrained_phrase_translator()

    def loss(model: torch.nn.Module, batch: tuple) -> Tensor:
        logits = model(batch.source, batch.target[:, :-1])
        return next_token_loss(logits, batch.target, smoothing=smoothing)

    def schedule(step: int) -> float:
        return linear_schedule_with_warmup(step, peak_lr=lr, steps=steps, warmup=WARMUP)

    fit(translator.model, batches(seed), loss, steps=steps, lr=schedule, seed=seed)
    translator.model.eval()
    return translator


@torch.no_grad()
def log_probabilities(
    translator: PhraseTranslator, source: Tensor, texts: Sequence[list[str]]
) -> Tensor:
    """Return the log-probability of each text and its end token, given its source, (batch,)."""
    words = translator.target
    ends = torch.tensor([words.bos_id]), torch.tensor([words.eos_id])
    middle = [words.encode(text) if text else ends[0][:0] for text in texts]
    target = pad([torch.cat([ends[0], ids, ends[1]]) for ids in middle])  # (batch, length)
    log_p = translator.model(source, target[:, :-1]).log_softmax(dim=-1)
    labels = target[:, 1:]  # (batch, length - 1)
    chosen = log_p.gather(-1, labels[..., None])[..., 0]
    return chosen.masked_fill(labels == translator.target.pad_id, 0.0).sum(dim=-1)


def held_out(translator: PhraseTranslator) -> tuple[Tensor, list[list[str]]]:
    """Return the padded sources of the tested sentences, and their translations."""
    tested = phrases(TESTED + VALIDATION, split="held out")[:TESTED]
    source = pad([translator.source.encode(one.english) for one in tested])
    return source, [list(one.french) for one in tested]


def validation_bleu(translator: PhraseTranslator) -> float:
    """Return greedy BLEU on held-out sentences that are not tested: the learning rate is chosen by it."""
    others = phrases(TESTED + VALIDATION, split="held out")[TESTED:]
    texts = translator.all([one.english for one in others])
    return bleu(texts, [[list(one.french)] for one in others])


def search(
    translator: PhraseTranslator, source: Tensor, beam_size: int, alpha: float
) -> list[list[str]]:
    """Return the best hypothesis of each source."""
    found = beam_search(translator.model, source, beam_size, alpha, max_length=MAX_LENGTH)
    return [translator.target.decode(tokens) for tokens in found.tokens[:, 0]]


def repeats(text: Sequence[str], times: int = 3) -> bool:
    """Return whether some token occurs at least `times` times in a row."""
    return any(len(set(text[i : i + times])) == 1 for i in range(len(text) - times + 1))


def measured(translator: PhraseTranslator) -> dict:
    """Decode the tested sentences with every beam size and both normalisations.

    Returns:
        "empty": the mean log-probability of the empty translation, and for each α, as a string: lists with one
        number per beam size: "bleu", "brevity" (the penalty), "tokens" (mean), "short" (share of translations of
        at most one token), "model error" (share of translations that are wrong, and that the model finds at least as
        probable as the reference), "search error" (share less probable than the reference); and "16 − 4", the 95 %
        interval of the difference in BLEU over resampled sentences.
    """
    source, right = held_out(translator)
    of_right = log_probabilities(translator, source, right)
    empty = log_probabilities(translator, source, [[] for _ in right])
    result: dict = {"empty": round(empty.mean().item(), 2)}
    for alpha in ALPHAS:
        rows, texts = [], {}
        for beam_size in BEAMS:
            texts[beam_size] = found = search(translator, source, beam_size, alpha)
            gap = log_probabilities(translator, source, found) - of_right
            wrong = torch.tensor([text != one for text, one in zip(found, right, strict=True)])
            missed = wrong & (gap < 0)
            lengths = [len(text) for text in found]
            rows.append(
                {
                    "bleu": bleu(found, [[one] for one in right]),
                    "brevity": brevity_penalty(sum(lengths), sum(map(len, right))),
                    "tokens": sum(lengths) / len(lengths),
                    "short": sum(length <= 1 for length in lengths) / len(lengths),
                    "model error": (wrong & ~missed).float().mean().item(),
                    "search error": missed.float().mean().item(),
                }
            )
        result[f"{alpha:g}"] = {key: [round(row[key], 4) for row in rows] for key in rows[0]}
        result[f"{alpha:g}"]["16 − 4"] = paired_interval(texts[16], texts[4], right)
    return result


def paired_interval(
    first: Sequence[list[str]], second: Sequence[list[str]], right: Sequence[list[str]]
) -> list[float]:
    """Return the 95 % interval of BLEU(first) − BLEU(second) over resampled sentences (Koehn 2004)."""
    counts = [
        torch.stack([_counts(*pair) for pair in zip(texts, right, strict=True)])
        for texts in (first, second)
    ]
    generator = torch.Generator().manual_seed(0)
    chosen = torch.randint(len(right), (RESAMPLED, len(right)), generator=generator)
    gap = _bleu(counts[0][chosen].sum(dim=1)) - _bleu(counts[1][chosen].sum(dim=1))
    return [round(q.item(), 4) for q in gap.quantile(torch.tensor([0.025, 0.975]).double())]


def _counts(candidate: list[str], reference: list[str]) -> Tensor:
    """Matched and total n-grams of four orders, and both lengths: (10,)."""
    numbers = []
    for n in range(1, 5):
        mine, theirs = (
            Counter(tuple(text[i : i + n]) for i in range(len(text) - n + 1))
            for text in (candidate, reference)
        )
        numbers += [(mine & theirs).total(), mine.total()]
    return torch.tensor([*numbers, len(candidate), len(reference)], dtype=torch.float64)


def _bleu(sums: Tensor) -> Tensor:
    """BLEU from summed `_counts`, (…, 10) → (…)."""
    matched, total = sums[..., 0:8:2], sums[..., 1:8:2]
    brevity = (1 - sums[..., 9] / sums[..., 8]).clamp(max=0).exp()
    return (brevity * (matched / total).log().mean(dim=-1).exp()).nan_to_num(0.0)


def runs(arm: str) -> list[dict]:
    """Return what is recorded of the models at an arm's best learning rate, one per seed; see `measured`."""
    return [row for row in where(read("beam_size"), arm=arm) if "empty" in row]


def curves(arm: str, alpha: float, what: str = "bleu") -> list[list[float]]:
    """Return one list per seed, one number per beam size."""
    return [run[f"{alpha:g}"][what] for run in runs(arm)]


def plan(rows: list[dict]) -> Iterator[dict]:
    """Train the arms; those that are trained for longer keep the learning rate that was best before."""
    for arm, (smoothing, steps) in ARMS.items():
        shorter = where(rows, arm=f"smoothing {smoothing:g}, 300 steps")
        if steps <= 300 or shorter:
            yield {"arm": arm}


def run(arm: str) -> list[dict]:
    """Sweep the learning rate of an arm; measure every seed at the best one, and two further seeds."""
    smoothing, steps = ARMS[arm]
    rates = [LIVE_RATE] if "learning rate" in arm else RATES
    if steps > 300:
        shorter = where(read("beam_size"), arm=f"smoothing {smoothing:g}, 300 steps")
        rates = [best_of(shorter, "validation")[0]]
    models, rows = {}, []
    for lr in rates:
        for seed in SEEDS:
            models[lr, seed] = trained(smoothing, seed=seed, steps=steps, lr=lr)
            score = validation_bleu(models[lr, seed])
            rows.append({"lr": lr, "seed": seed, "validation": score})
    lr = best_of(rows, "validation")[0]
    for seed in MORE_SEEDS if len(rates) > 1 else ():
        models[lr, seed] = trained(smoothing, seed=seed, steps=steps, lr=lr)
        rows.append({"lr": lr, "seed": seed})
    return [row | (measured(models[lr, row["seed"]]) if row["lr"] == lr else {}) for row in rows]


if __name__ == "__main__":
    fill("beam_size", run, plan, __doc__, spec=".4f")
