"""Train the models in `course_lib/checkpoints` anew: ``python -m course_lib.workshop.checkpoints``.

With names behind it, "dates" or "phrases", only those.
"""

import sys

from safetensors.torch import save_file, save_model
from torch import manual_seed, nn, set_num_threads

from course_lib.checkpoints import (
    HERE,
    untrained_date_translator,
    untrained_phrase_translator,
)
from course_lib.data import PairBatches, Phrase, WrittenDate, phrases, written_dates
from course_lib.training import History, fit, next_token_loss, warmup_decay
from course_lib.translator import PhraseTranslator, Translator


def train_on_dates(translator: Translator, *, steps: int = 750, seed: int = 0) -> History:
    """Train as notebook 03 does: 20,000 dates, batches of 64, teacher forcing."""
    dates = written_dates(20_000)
    batches = PairBatches(
        [translator.source.encode(one.text) for one in dates],
        [translator.target.encode(one.iso, bos=True, eos=True) for one in dates],
        batch_size=64,
        seed=seed,
    )

    def loss(model: nn.Module, batch):
        logits = model(batch.source, batch.target[:, :-1]).logits
        return next_token_loss(logits, batch.target)

    def rate(step: int) -> float:
        return warmup_decay(step, peak=0.007, steps=steps, warmup=steps // 10)

    return fit(translator.model, batches, loss, steps=steps, rate=rate, seed=seed)


def exact_match(translator: Translator, dates: list[WrittenDate]) -> float:
    """Return the share of dates whose every character is right, free running."""
    done = translator.all([one.text for one in dates])
    return sum(d.text == one.iso for d, one in zip(done, dates, strict=True)) / len(dates)


def train_on_phrases(translator: PhraseTranslator, *, steps: int = 2000, seed: int = 0) -> History:
    """Train as notebook 08 does: 60,000 sentences, batches of 64, teacher forcing."""
    pairs = phrases(60_000)
    batches = PairBatches(
        [translator.source.encode(one.english) for one in pairs],
        [translator.target.encode(one.french, bos=True, eos=True) for one in pairs],
        batch_size=64,
        seed=seed,
    )

    def loss(model: nn.Module, batch):
        return next_token_loss(model(batch.source, batch.target[:, :-1]), batch.target)

    def rate(step: int) -> float:
        return warmup_decay(step, peak=0.004, steps=steps, warmup=steps // 10)

    return fit(translator.model, batches, loss, steps=steps, rate=rate, seed=seed)


def exact_sentences(translator: PhraseTranslator, pairs: list[Phrase]) -> float:
    """Return the share of sentences whose every word is right."""
    done = translator.all([one.english for one in pairs])
    return sum(words == list(one.french) for words, one in zip(done, pairs, strict=True)) / len(
        pairs
    )


def dates() -> None:
    """Train and save the translator of dates."""
    translator = untrained_date_translator()
    train_on_dates(translator)
    reached = {
        split: str(exact_match(translator, written_dates(1000, split=split)))
        for split in ("held-out days", "held-out style")
    }
    save_file(translator.model.state_dict(), HERE / "dates.safetensors", metadata=reached)
    print("course_lib/checkpoints/dates.safetensors", reached)


def sentences() -> None:
    """Train and save the translator of the phrasebook."""
    translator = untrained_phrase_translator()
    train_on_phrases(translator)
    reached = {"held out": str(exact_sentences(translator, phrases(1000, split="held out")))}
    save_model(translator.model, str(HERE / "phrases.safetensors"), metadata=reached)
    print("course_lib/checkpoints/phrases.safetensors", reached)


MODELS = {"dates": dates, "phrases": sentences}


def main() -> None:
    """Train and save."""
    set_num_threads(1)
    for name in sys.argv[1:] or MODELS:
        manual_seed(0)
        MODELS[name]()


if __name__ == "__main__":
    main()
