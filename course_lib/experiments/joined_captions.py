"""Does a translator of captions learn to translate several of them at once?

The checkpoint of `course_lib.checkpoints.sentence_translator`, which has seen single captions only, is trained for some
more steps on the same text, half of each batch being two captions joined to one text::

    python -m course_lib.experiments.joined_captions --data multi30k

Recorded are scores on test sentences, joined as in `translation_errors`, before and after. Study 12a reads the record
(one to two minutes of CPU time a seed).
"""

import copy
import random
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

from course_lib.checkpoints import sentence_translator
from course_lib.data import pad
from course_lib.data.sentence_pairs import sentence_pairs
from course_lib.experiments.record import read, text_options, write
from course_lib.experiments.translation_errors import bleu, counts, own_words
from course_lib.train import linear_schedule_with_warmup, next_token_loss, train_step
from course_lib.train.translator import SubwordTranslator
from course_lib.transformer import Transformer

RECORD = Path(__file__).with_suffix(".json")
STEPS, WARMUP, LR, SMOOTHING = 165, 20, 5e-4, 0.1
#: Texts of a batch, half of them two captions; and how many test sentences are translated.
TEXTS, TESTED = 32, 500
#: Of these so many are continued where the model would stop; a continuation ends after so many tokens.
CONTINUED, LONGEST = 300, 40
SEEDS = (0, 1, 2)
#: Captions joined to one text; three are never trained on.
SIZES = (1, 2, 3)
Pairs = list[tuple[str, str]]


def groups(texts: Sequence[str], size: int) -> list[Sequence[str]]:
    """Return so many neighbours each; a rest is left out."""
    return [texts[n : n + size] for n in range(0, len(texts) - size + 1, size)]


def joined(pairs: Sequence[tuple[str, str]], size: int) -> Pairs:
    """Join so many neighbours to one text, in both languages; a rest is left out."""
    sides = (groups(texts, size) for texts in zip(*pairs, strict=True))
    return list(zip(*([" ".join(group) for group in side] for side in sides), strict=True))


def trained(pairs: Pairs, seed: int, steps: int = STEPS) -> SubwordTranslator:
    """Train a copy of the checkpoint for some more steps."""
    translator = copy.deepcopy(sentence_translator())
    model, encode = translator.model, translator.subwords.encode_all
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98))
    generator, half = random.Random(seed), TEXTS // 2
    torch.manual_seed(seed)  # decides dropout

    def loss(model: Transformer, sides: tuple[Tensor, Tensor]) -> Tensor:
        source, target = sides
        return next_token_loss(model(source, target[:, :-1]), target, smoothing=SMOOTHING)

    for step in range(1, steps + 1):
        captions = generator.sample(pairs, 3 * half)
        parts = []  # of one batch: apart, because they differ in length
        for texts in (joined(captions[: 2 * half], 2), captions[2 * half :]):
            sources, targets = zip(*texts, strict=True)
            parts.append((pad(encode(sources, eos=True)), pad(encode(targets, bos=True, eos=True))))
        for group in optimizer.param_groups:
            group["lr"] = linear_schedule_with_warmup(step, LR, steps, min(WARMUP, steps))
        train_step(
            model,
            optimizer,
            loss,
            parts,
            token_count=lambda sides: (sides[1][:, 1:] != 0).sum(),
            precision="bfloat16",
        )
    return translator


@torch.no_grad()
def continued(translator: SubwordTranslator, source: str, start: str) -> str:
    """Translate a source greedily from a given start, after which the end token is forbidden once."""
    model, subwords = translator.model.eval(), translator.subwords
    encoded = subwords.encode(source, eos=True)[None]
    tokens = subwords.encode(start, bos=True).tolist()
    forbidden = subwords.eos_id
    for _ in range(LONGEST):
        logits = model(encoded, torch.tensor([tokens]))[0, -1]
        if forbidden is not None:
            logits[forbidden], forbidden = -torch.inf, None
        tokens.append(int(logits.argmax()))
        if tokens[-1] == subwords.eos_id:
            tokens.pop()
            break
    return subwords.decode(tokens[1:])


def forced_on(translator: SubwordTranslator, pairs: Pairs) -> list[float]:
    """Give the translation of the first of two joined captions; return what `evaluated` returns as "own words"."""
    alone = groups(translator.all([source for source, _ in pairs]), 2)
    texts = [
        continued(translator, source, first)
        for (source, _), (first, _) in zip(joined(pairs, 2), alone, strict=True)
    ]
    references = groups([target for _, target in pairs], 2)
    return [place["joined"] for place in own_words(texts, alone, references)]


def evaluated(translator: SubwordTranslator, pairs: Pairs) -> dict[str, dict]:
    """Translate captions, joined by full stops.

    Returns:
        Number of captions in a text → BLEU, the share of the translations with as many full stops as captions, in %, and
        of the own words of the first, second … caption (see `own_words`) the share found in the translation, in %.
    """
    alone = translator.all([source for source, _ in pairs])
    references = [target for _, target in pairs]
    found = {}
    for size in SIZES:
        sources, targets = zip(*joined(pairs, size), strict=True)
        texts = alone if size == 1 else translator.all(sources)
        places = own_words(texts, groups(alone, size), groups(references, size))
        found[str(size)] = {
            "BLEU": round(bleu(counts(texts, targets).sum(dim=0)).item(), 2),
            "full stops": round(
                100 * sum(text.count(".") == size for text in texts) / len(texts), 1
            ),
            "own words": [place["joined"] for place in places],
        }
    return found


@cache
def recorded() -> dict:
    """Return the recorded result.

    "before" → what `evaluated` returns, "after" → the same of each seed; "forced on" → what `forced_on` returns.
    """
    return read(RECORD)


def main(arguments: list[str] | None = None) -> None:
    """Train and record; what was recorded before is replaced."""
    options = text_options(__doc__, RECORD)
    options.add_argument("--steps", type=int, default=STEPS, help=f"of each training ({STEPS})")
    chosen = options.parse_args(arguments)
    torch.set_num_threads(1)
    pairs = sentence_pairs(chosen.data)
    test = pairs.test[:TESTED]
    checkpoint = sentence_translator()
    result: dict = {
        "forced on": forced_on(checkpoint, test[:CONTINUED]),
        "before": evaluated(checkpoint, test),
        "after": [],
    }
    for seed in SEEDS:
        result["after"].append(evaluated(trained(pairs.train, seed, chosen.steps), test))
        print("seed", seed, result["after"][-1], flush=True)
        write(chosen.record, result)


if __name__ == "__main__":
    main()
