"""Retrain the models in `course_lib/checkpoints`: ``python -m course_lib.tools.checkpoints``.

Arguments select models: "dates", "phrases", "pronouns", "lookup"; all where left out. The translator of real sentences
takes an hour and data that do not travel with the course; "translator=FOLDER" takes over what `course_lib.train` left in
a folder.
"""

import json
import shutil
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file, save_model
from torch import manual_seed, nn, set_num_threads

from course_lib.checkpoints import (
    HERE,
    untrained_date_translator,
    untrained_phrase_translator,
    untrained_pronoun_reader,
)
from course_lib.checkpoints.lookup import LookupModel, lookup_questions
from course_lib.checkpoints.pronouns import PronounReader
from course_lib.data import (
    PairBatches,
    Phrase,
    PronounSentence,
    WrittenDate,
    phrases,
    pronoun_sentences,
    written_dates,
)
from course_lib.experiments.beam_size import encode_phrases
from course_lib.experiments.bottleneck import encode_dates
from course_lib.train import History, fit, linear_schedule_with_warmup, next_token_loss
from course_lib.train.translator import PhraseTranslator, Translator


def train_on_dates(translator: Translator, *, steps: int = 750, seed: int = 0) -> History:
    """Train as notebook 03 does: 20,000 dates, batches of 64, teacher forcing."""
    batches = PairBatches(*encode_dates(written_dates(20_000)), batch_size=64, seed=seed)

    def loss(model: nn.Module, batch):
        logits = model(batch.source, batch.target[:, :-1]).logits
        return next_token_loss(logits, batch.target)

    def lr(step: int) -> float:
        return linear_schedule_with_warmup(step, peak_lr=0.007, steps=steps, warmup=steps // 10)

    return fit(translator.model, batches, loss, steps=steps, lr=lr, seed=seed)


def exact_match(translator: Translator, dates: list[WrittenDate]) -> float:
    """Return the exact-match accuracy of autoregressive decoding on dates."""
    done = translator.all([one.text for one in dates])
    return sum(d.text == one.iso for d, one in zip(done, dates, strict=True)) / len(dates)


def train_on_phrases(translator: PhraseTranslator, *, steps: int = 2000, seed: int = 0) -> History:
    """Train on 60,000 sentences, in batches of 64, with teacher forcing; notebook 08 does so with its own loop."""
    batches = PairBatches(*encode_phrases(phrases(60_000)), batch_size=64, seed=seed)

    def loss(model: nn.Module, batch):
        return next_token_loss(model(batch.source, batch.target[:, :-1]), batch.target)

    def lr(step: int) -> float:
        return linear_schedule_with_warmup(step, peak_lr=0.004, steps=steps, warmup=steps // 10)

    return fit(translator.model, batches, loss, steps=steps, lr=lr, seed=seed)


def exact_sentences(translator: PhraseTranslator, pairs: list[Phrase]) -> float:
    """Return the exact-match accuracy of greedy decoding on sentences."""
    done = translator.all([one.english for one in pairs])
    return sum(words == list(one.french) for words, one in zip(done, pairs, strict=True)) / len(
        pairs
    )


def train_on_pronouns(reader: PronounReader, *, steps: int = 600, seed: int = 0) -> History:
    """Train as study 4b does, for 600 steps: batches of 64 sentences, cross-entropy at the adjective."""
    sentences = pronoun_sentences("train")
    tokens = torch.stack([reader.vocabulary.encode(one.words) for one in sentences])
    adjectives = torch.tensor([one.adjective for one in sentences])
    answers = tokens[range(len(tokens)), [one.answer for one in sentences]]
    random = torch.Generator().manual_seed(seed + 1)
    batches = (torch.randint(len(tokens), (64,), generator=random) for _ in range(steps))

    def loss(model: nn.Module, batch: torch.Tensor):
        logits = model(tokens[batch])[range(64), adjectives[batch]]  # (64, vocabulary)
        return F.cross_entropy(logits, answers[batch])

    return fit(reader.model, batches, loss, steps=steps, lr=3e-3)


def right_nouns(reader: PronounReader, sentences: tuple[PronounSentence, ...]) -> float:
    """Return the share of sentences whose noun is named at the adjective."""
    right = sum(reader(str(one)) == one.words[one.answer] for one in sentences)
    return right / len(sentences)


def train_on_lookup(model: LookupModel, *, steps: int = 600, seed: int = 0) -> History:
    """Train as notebook 05 does: batches of 128 new questions."""
    random = torch.Generator().manual_seed(seed)
    batches = (lookup_questions(128, random) for _ in range(steps))

    def loss(model: nn.Module, batch):
        letters, asked, right = batch
        return F.cross_entropy(model(letters, asked).flatten(0, 1), right.flatten())

    return fit(model, batches, loss, steps=steps, lr=5e-3)


def right_letters(model: LookupModel, *, seed: int = 9) -> float:
    """Return the share of letters predicted for 2,000 new questions."""
    letters, asked, right = lookup_questions(2000, torch.Generator().manual_seed(seed))
    with torch.no_grad():
        return (model(letters, asked).argmax(dim=-1) == right).float().mean().item()


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


def pronouns() -> None:
    """Train and save the layer that names a noun."""
    reader = untrained_pronoun_reader()
    train_on_pronouns(reader)
    reached = {"seed": "0", "held out": str(right_nouns(reader, pronoun_sentences("held out")))}
    save_file(reader.model.state_dict(), HERE / "pronouns.safetensors", metadata=reached)
    print("course_lib/checkpoints/pronouns.safetensors", reached)


def lookup() -> None:
    """Train and save the layer that looks up letters."""
    model = LookupModel()
    train_on_lookup(model)
    reached = {"seed": "0", "letters right": f"{right_letters(model):.4f}"}
    save_file(model.state_dict(), HERE / "lookup.safetensors", metadata=reached)
    print("course_lib/checkpoints/lookup.safetensors", reached)


def translator(run: str) -> None:
    """Take over the weights of a run, in float16, and its subwords."""
    folder = Path(run)
    result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    about = {name: result[name] for name in ("settings", "steps", "minutes", "kept", "test")}
    about["settings"] |= {"data": "multi30k"}  # whatever the folder of its files was called
    about["text"] = "Multi30k (Elliott et al. 2016), CC BY-NC-SA 4.0"
    weights = {name: x.half() for name, x in load_file(folder / "model.safetensors").items()}
    metadata = {name: json.dumps(value) for name, value in about.items()}
    save_file(weights, HERE / "translator.safetensors", metadata=metadata)
    shutil.copyfile(folder / "subwords.json", HERE / "translator.json")
    print("course_lib/checkpoints/translator.safetensors", about["test"])


MODELS = {"dates": dates, "phrases": sentences, "pronouns": pronouns, "lookup": lookup}


def main() -> None:
    """Train and save."""
    set_num_threads(1)
    for name in sys.argv[1:] or MODELS:
        manual_seed(0)
        kind, _, run = name.partition("=")
        translator(run) if kind == "translator" else MODELS[name]()


if __name__ == "__main__":
    main()
