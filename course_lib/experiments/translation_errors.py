"""Where does a translator of real sentences fail?

A run of `course_lib.train` translates the test sentences of Multi30k, greedily and with a beam::

    python -m course_lib.experiments.translation_errors --data multi30k "this course=runs/en-de" …

Recorded are numbers, no sentences: of each sentence its words, how often its rarest word stands in the training text,
and what BLEU counts in its translation; what is left of several sentences that are joined to one; and how many words of the
references are found, by their frequency in the training text. Study 12a reads the record (a minute of CPU time a run).
A run of `nn.Transformer` is first brought into the course's layers: ``python -m tests.benchmarks.translator convert``.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import torch
from sacrebleu.metrics import BLEU
from torch import Tensor

from course_lib.data.sentence_pairs import sentence_pairs
from course_lib.experiments.record import read, text_options, write
from course_lib.train.folder import RunFolder
from course_lib.train.translator import SubwordTranslator

RECORD = Path(__file__).with_suffix(".json")
#: Sentences joined to one.
JOINED = (1, 2, 3, 4)
#: The first frequency in the training text of each group of words.
FREQUENCIES = (0, 1, 5, 20, 100, 1000)
BEAM, RESAMPLES = 5, 1000
#: First names of many languages; most never stand in the training text.
NAMES = (
    "John Tom Peter Luke Anna Maria Zoe Olga Ravi Lisa Kwame Ingrid Julia Sarah David Thomas Ahmed Fatima Ngozi Hiroshi "
    "Xiomara"
).split()


def words(text: str) -> list[str]:
    """Return the words of a text, in lower case; an apostrophe or a hyphen within a word does not end it."""
    return re.findall(r"\w+(?:[-'’]\w+)*", text.lower())


def counts(translations: Sequence[str], references: Sequence[str]) -> Tensor:
    """Return what BLEU counts of each text, (texts, 10), with the tokens of sacreBLEU's default.

    Matches of n-grams of length 1 to 4, their numbers in the translation, and the lengths of translation and reference.
    """
    statistics = BLEU()._extract_corpus_statistics(list(translations), [list(references)])
    rows = torch.tensor(statistics)  # lengths first, then matches and totals
    return torch.cat([rows[:, 2:6], rows[:, 6:10], rows[:, :2]], dim=1)


def bleu(total: Tensor) -> Tensor:
    """Return BLEU, 0 to 100, of sums of what `counts` returns, (…, 10) → (…)."""
    precisions = total[..., :4] / total[..., 4:8].clamp(min=1)
    brevity = (1 - total[..., 9] / total[..., 8].clamp(min=1)).clamp(max=0).exp()
    return 100 * brevity * precisions.double().log().mean(dim=-1).exp()


def interval(numbers: Tensor) -> list[float]:
    """Return the middle 95 % of numbers."""
    ends = torch.tensor([0.025, 0.975], dtype=numbers.dtype)
    return [round(end, 2) for end in numbers.quantile(ends).tolist()]


def resampled(rows: Tensor, seed: int = 0) -> Tensor:
    """Sum rows drawn with replacement, as many as there are, again and again: (rows, n) → (resamples, n)."""
    generator = torch.Generator().manual_seed(seed)
    chosen = torch.randint(len(rows), (RESAMPLES, len(rows)), generator=generator)
    return torch.stack([rows[some].sum(dim=0) for some in chosen])


def as_clause(text: str, capitalised: Counter) -> str:
    """Return a sentence as it reads within another one: without its full stop, its first letter small.

    Args:
        text: the sentence.
        capitalised: of each word, how often it stands inside sentences with a capital letter, less how often without.
    """
    first, _, rest = text.removesuffix(".").rstrip().partition(" ")
    if capitalised[first.lower()] <= 0:
        first = first[:1].lower() + first[1:]
    return f"{first} {rest}".strip()


def capitals(texts: Sequence[str]) -> Counter:
    """Count the words inside sentences: with a capital letter +1, without −1."""
    found: Counter = Counter()
    for text in texts:
        for word in re.findall(r"\w+", text)[1:]:
            found[word.lower()] += 1 if word[0].isupper() else -1
    return found


def own_words(
    joined: Sequence[str], apart: Sequence[Sequence[str]], references: Sequence[Sequence[str]]
) -> list[dict]:
    """Count, for the first, the second … of joined sentences, the words of its reference that are found.

    Only its own words count, those that the other references of the group have not.

    Args:
        joined: of each group its translation as one text.
        apart: of each group the translations of its sentences.
        references: of each group those of its sentences.

    Returns:
        Of each place in the group how many words are counted, the share found in the translation of the whole and in
        that of the sentence alone, in %, and the 95 % interval of the difference.
    """
    rows = torch.zeros(len(joined), len(references[0]), 3)
    for row, text, alone, group in zip(rows, joined, apart, references, strict=True):
        bags, whole = [Counter(words(reference)) for reference in group], Counter(words(text))
        for place, bag in enumerate(bags):
            others = set().union(*bags[:place], *bags[place + 1 :])
            own = Counter({word: count for word, count in bag.items() if word not in others})
            there = Counter(words(alone[place]))
            row[place] = torch.tensor([(own & whole).total(), (own & there).total(), own.total()])
    total = torch.cat(
        [rows.sum(dim=0, keepdim=True), resampled(rows.flatten(1)).view(-1, *rows[0].shape)]
    )
    shares = 100 * total[..., :2] / total[..., 2:].clamp(min=1)
    return [
        {
            "words": int(total[0, place, 2]),
            "joined": round(shares[0, place, 0].item(), 1),
            "apart": round(shares[0, place, 1].item(), 1),
            "difference": interval(shares[1:, place, 0] - shares[1:, place, 1]),
        }
        for place in range(rows.shape[1])
    ]


def joined(
    translate: Callable[[list[str]], list[str]],
    pairs: list[tuple[str, str]],
    alone: list[str],
    capitalised: tuple[Counter, Counter],
) -> dict[str, dict]:
    """Translate so many neighbours as one text; compare with their translations one by one, joined afterwards.

    Args:
        translate: from texts to their translations.
        pairs: sources with references.
        alone: the translation of each source.
        capitalised: of both languages, what `capitals` counts.

    Returns:
        "full stops" (sentence after sentence) or "and" (one sentence) → number of sentences → mean number of words,
        BLEU of both, 95 % interval of the difference, length of the translations relative to the references, how many
        texts there are, how many translations have one full stop and no more, and what `own_words` returns.
    """
    found: dict[str, dict] = {"full stops": {}, "and": {}}
    parts = [*map(list, zip(*pairs, strict=True)), alone]
    for how in found:
        for size in JOINED:
            texts, singly = [], []
            for number, sentences in enumerate(parts):
                groups = [
                    sentences[n : n + size] for n in range(0, len(sentences) - size + 1, size)
                ]
                singly.append(groups)
                if how == "and":
                    used, link = capitalised[number > 0], (" and ", " und ")[number > 0]
                    groups = [
                        [link.join([group[0].removesuffix("."), *(as_clause(x, used) for x in group[1:])]) + "."]
                        for group in groups
                    ]  # fmt: skip
                texts.append([" ".join(group) for group in groups])
            whole = translate(texts[0])
            at_once = counts(whole, texts[1])
            apart = counts(texts[2], texts[1])
            difference = bleu(resampled(at_once)) - bleu(resampled(apart))
            found[how][str(size)] = {
                "words": round(sum(len(words(text)) for text in texts[0]) / len(texts[0]), 1),
                "joined": round(bleu(at_once.sum(dim=0)).item(), 2),
                "apart": round(bleu(apart.sum(dim=0)).item(), 2),
                "difference": interval(difference),
                "length": round((at_once[:, 8].sum() / at_once[:, 9].sum()).item(), 3),
                "texts": len(whole),
                "one full stop": sum(text.count(".") == 1 for text in whole),
                "own words": own_words(whole, singly[2], singly[1]),
            }
    return found


def recall(
    translations: Sequence[str], references: Sequence[str], frequency: Counter
) -> list[dict[str, float]]:
    """Return, for each group of words, how many stand in the references, and the share that is found, in %.

    A word of a reference counts as found as often as it stands in the translation of the same sentence; "chance" is the
    share that stands in the translation of the sentence before it.
    """
    rows = torch.zeros(len(references), len(FREQUENCIES), 3)
    others = [*translations[-1:], *translations[:-1]]
    for row, reference, *texts in zip(rows, references, translations, others, strict=True):
        there, elsewhere = (Counter(words(text)) for text in texts)
        for word, count in Counter(words(reference)).items():
            group = sum(frequency[word] >= least for least in FREQUENCIES) - 1
            found = min(count, there[word]), count, min(count, elsewhere[word])
            row[group] += torch.tensor(found)
    drawn = resampled(rows.flatten(1)).view(RESAMPLES, len(FREQUENCIES), 3)
    shares = 100 * drawn[..., 0] / drawn[..., 1].clamp(min=1)
    total = rows.sum(dim=0)
    return [
        {
            "from": least,
            "words": int(total[group, 1]),
            "found": round(100 * (total[group, 0] / total[group, 1].clamp(min=1)).item(), 1),
            "interval": interval(shares[:, group]),
            "chance": round(100 * (total[group, 2] / total[group, 1].clamp(min=1)).item(), 1),
        }
        for group, least in enumerate(FREQUENCIES)
    ]


def measured(
    translator: SubwordTranslator,
    pairs: list[tuple[str, str]],
    frequency: Counter,
    capitalised: tuple[Counter, Counter],
) -> dict:
    """Translate the sentences and count.

    Args:
        translator: from the first to the second of each pair.
        pairs: sources with references.
        frequency: of the words of the targets in the training text.
        capitalised: of both languages, what `capitals` counts there.
    """
    sources, references = map(list, zip(*pairs, strict=True))
    found = {"greedy": translator.all(sources), "beam": translator.all(sources, beam_size=BEAM)}
    rows = {name: counts(texts, references) for name, texts in found.items()}
    return {
        "BLEU": {name: round(bleu(each.sum(dim=0)).item(), 2) for name, each in rows.items()},
        **{name: each.tolist() for name, each in rows.items()},
        "joined": joined(translator.all, pairs, found["greedy"], capitalised),
        "recall": recall(found["greedy"], references, frequency),
    }


def training_text(pairs: list[tuple[str, str]]) -> dict[str, int]:
    """Return how many sources are long, negated, questions, …, and how many rare capitalised words are copied."""
    sources = [source for source, _ in pairs]
    bags = [words(source) for source in sources]
    frequency = Counter(word for bag in bags for word in bag)
    unique = [
        (word, target)
        for source, target in pairs
        for word in re.findall(r"\w+(?:[-'’]\w+)*", source)[1:]
        if word[0].isupper() and frequency[word.lower()] == 1
    ]
    return {
        "pairs": len(pairs),
        "longest": max(map(len, bags)),
        "24 words or more": sum(len(bag) >= 24 for bag in bags),
        "no or not": sum(not {"no", "not"}.isdisjoint(bag) for bag in bags),
        "questions": sum(source.rstrip().endswith("?") for source in sources),
        "full stop before a word": sum(bool(re.search(r"\.\s+\w", x)) for x in sources),
        "without": sum("without" in bag for bag in bags),
        "without a shirt": sum("without a shirt" in " ".join(bag) for bag in bags),
        "capitalised and seen once": len(unique),
        "copied of these": sum(word in re.findall(r"\w+(?:[-'’]\w+)*", y) for word, y in unique),
    }


@cache
def recorded() -> dict:
    """Return the recorded result.

    "training" is of the training text, as are the frequencies of the names in "names".
    "words" and "rarest" are of the sources of the test sentences, in their order: how many words, and how often the
    rarest of them stands in the training text. "runs" is name of the run → what `measured` returns.
    """
    return read(RECORD)


def main(arguments: list[str] | None = None) -> None:
    """Translate with each run and record."""
    options = text_options(__doc__, RECORD)
    options.add_argument("--first", type=int, help="so many test sentences only")
    options.add_argument("runs", nargs="+", metavar="NAME=FOLDER")
    chosen = options.parse_args(arguments)
    torch.set_num_threads(1)
    pairs = sentence_pairs(chosen.data)
    test = pairs.test[: chosen.first]
    frequency = [Counter(word for pair in pairs.train for word in words(pair[n])) for n in (0, 1)]
    capitalised = tuple(capitals(side) for side in zip(*pairs.train, strict=True))
    result = {
        "training": training_text(pairs.train),
        "names": {name: frequency[0][name.lower()] for name in NAMES},
        "words": [len(words(source)) for source, _ in test],
        "rarest": [min((frequency[0][w] for w in words(source)), default=0) for source, _ in test],
        "runs": {},
    }
    for run in chosen.runs:
        name, _, folder = run.partition("=")
        result["runs"][name] = measured(
            RunFolder(folder).translator(), test, frequency[1], capitalised
        )
        print(name, result["runs"][name]["BLEU"], flush=True)
        write(chosen.record, result, indent=None)


if __name__ == "__main__":
    main()
