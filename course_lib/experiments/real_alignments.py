"""Does the cross-attention of a translator of real sentences align words?

The maps of a run of `course_lib.train` are compared with links made by an annotator, and with those of statistical
aligners that have learned from the same 29,000 pairs of Multi30k, in both directions::

    python -m course_lib.experiments.real_alignments --data multi30k "this course=runs/en-de" …

Without a run, only the statistical aligners are recorded anew; the rest of the record stays. With ``--during runs/en-de``,
all weights that a run has kept are compared as well (``course_lib.train --average 100`` keeps them all).

The links of `gold_links.json` are of fifty test sentences that a random generator chose ("0-1": the first word of the
source is surely linked with the second of the target; "0?1": possibly). One annotator, a language model, drew them,
before any aligner was run. The record beside this file has numbers and links, no text. Study 12b reads it (a few
minutes of CPU time).
"""

import json
import re
from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors.torch import load_model
from torch import Tensor

from course_lib.data import pad, strongest_links
from course_lib.data.sentence_pairs import sentence_pairs
from course_lib.data.subwords import Subwords
from course_lib.experiments.record import read, text_options, write
from course_lib.topics.attention_maps import record_attention
from course_lib.train.folder import RunFolder
from course_lib.train.translator import SubwordTranslator

RECORD = Path(__file__).with_suffix(".json")
GOLD = Path(__file__).with_name("gold_links.json")
ROUNDS, OFFSET_ROUNDS, DIAGONAL_ROUNDS = 5, 15, 10
#: As in fast_align: the probability of NULL, and the prior of each number of the table.
P_NULL, ALPHA = 0.08, 0.01
#: Words that offsets reach; longer sentences are not aligned.
LONGEST = 64
#: Which row of a map belongs to a target token: that which generates it, or that which reads it.
ROWS = ("generates", "reads")
#: One source word for each target word, one target word for each source word, the links that both have, and grow-diag.
DIRECTIONS = ("rows", "columns", "both", "grown")
#: The aligner with which all others are compared on the sentences that nobody has annotated.
REFERENCE = "offsets and NULL"
NULL = "NULL"  # in capitals, as no word of the text
Links = set[tuple[int, int]]


class Words(NamedTuple):
    """A sentence cut into words.

    Attributes:
        words: an apostrophe or a hyphen within a word does not end it; neighbouring punctuation marks are a word.
        ends: the position in the text after each word.
    """

    words: list[str]
    ends: list[int]

    @classmethod
    def of(cls, text: str) -> "Words":
        """Cut a text."""
        found = list(re.finditer(r"\w+(?:[-'’]\w+)*|[^\w\s]+", text))
        return cls([one[0] for one in found], [one.end() for one in found])


def word_of_tokens(subwords: Subwords, text: str) -> list[int]:
    """Return for each token of a text the word that it ends in."""
    ids, ends = subwords.encode(text).tolist(), Words.of(text).ends
    lengths = [len(subwords.decode(ids[: n + 1])) for n in range(len(ids))]
    return [sum(end < length for end in ends) for length in lengths]


def word_map(weights: Tensor, source: Sequence[int], target: Sequence[int]) -> Tensor:
    """Turn a map of tokens into one of words: the sum over the tokens of a source word, the mean over a target word's.

    Args:
        weights: (…, target tokens, source tokens).
        source, target: the word of each token, from 0.
    """
    rows = torch.nn.functional.one_hot(torch.tensor(target)).to(weights.dtype)  # (tokens, words)
    columns = torch.nn.functional.one_hot(torch.tensor(source)).to(weights.dtype)
    return (rows / rows.sum(dim=0)).T @ weights @ columns


@torch.no_grad()
def word_maps(
    translator: SubwordTranslator, pairs: Sequence[tuple[str, str]]
) -> Iterator[dict[tuple[str, str], Tensor]]:
    """Yield for each pair (candidate, row) → a map of words; the target is given, as in training.

    Candidates are the heads of the decoder's layers, "layer 2, head 0", the mean of each layer, and the mean of all.
    Weights on <eos> are left out.
    """
    subwords = translator.subwords
    translator.model.eval()
    for start in range(0, len(pairs), 50):
        some = pairs[start : start + 50]
        sources, targets = zip(*some, strict=True)
        source = pad(subwords.encode_all(sources, eos=True))
        target = pad(subwords.encode_all(targets, bos=True))
        with record_attention(translator.model) as maps:
            translator.model(source, target)
        crosses = [each for name, (each,) in maps.items() if name.endswith("cross_attention")]
        weights = torch.stack(crosses, dim=1)  # (pair, layer, head, target, source)
        for pair, layers in zip(some, weights, strict=True):
            cut = [word_of_tokens(subwords, text) for text in pair]
            found = {}
            for row, first in zip(ROWS, (0, 1), strict=True):
                part = layers[:, :, first : first + len(cut[1]), : len(cut[0])]
                part = word_map(part, *cut)  # (layer, head, target word, source word)
                for number, heads in enumerate(part):
                    for head, one in enumerate(heads):
                        found[f"layer {number}, head {head}", row] = one
                    found[f"layer {number}, mean", row] = heads.mean(dim=0)
                found["all layers, mean", row] = part.mean(dim=(0, 1))
            yield found


class Aligner:
    """IBM model 1, and after it rounds with offsets, as in study 08a; a table of the pairs of words that occur together.

    Args:
        pairs: training text.
        null: whether a target word may have no source word; then every source sentence begins with a NULL word, and
            the offsets share their probability with it.
    """

    def __init__(self, pairs: Sequence[tuple[str, str]], *, null: bool = False) -> None:
        texts = [[[w.lower() for w in Words.of(text).words] for text in pair] for pair in pairs]
        texts = [pair for pair in texts if max(map(len, pair)) <= LONGEST]
        self._null = [NULL] if null else []
        texts = [[self._null + source, target] for source, target in texts]
        self._ids: list[dict[str, int]] = [{}, {}]
        for pair in texts:
            for ids, words in zip(self._ids, pair, strict=True):
                for word in words:
                    ids.setdefault(word, len(ids))
        e, f, d, row = [], [], [], []
        rows = 0
        for source, target in texts:
            s, t = (
                torch.tensor([ids[w] for w in words])
                for ids, words in zip(self._ids, (source, target), strict=True)
            )
            e.append(s.repeat(len(t)))
            f.append(t.repeat_interleave(len(s)))
            d.append(self._places(len(s), len(t)).flatten())
            row.append(rows + torch.arange(len(t)).repeat_interleave(len(s)))
            rows += len(t)
        self._e, self._f, self._d, self._row = map(torch.cat, (e, f, d, row))
        self._rows = rows
        key = self._f * len(self._ids[0]) + self._e
        self._keys, self._cell = key.unique(return_inverse=True)
        self.t = torch.ones(len(self._keys))  # t(f | e) of each pair of words
        self.a = torch.ones(2 * LONGEST + 1)  # a(i - j), and that of NULL

    def learn(self, rounds: int, *, offsets: bool) -> None:
        """Take some rounds of expectation maximisation."""
        e_of_cell = self._keys % len(self._ids[0])
        for _ in range(rounds):
            share, count = self._expected()
            self.t = count / summed(count, e_of_cell)[e_of_cell].clamp(min=1e-30)
            if offsets:
                self.a = torch.zeros(len(self.a)).scatter_add(0, self._d, share)
                self.a = self.a / self.a.sum()

    def links(self, pair: tuple[str, str]) -> Links:
        """Link each target word with a source word or with NULL; one never seen with any of them, by its offset."""
        source, target = ([w.lower() for w in Words.of(text).words] for text in pair)
        source = self._null + source
        weights = torch.full((len(target), len(source)), 1e-9)
        weights[:, : len(self._null)] = 0
        for j, f in enumerate(target):
            for i, e in enumerate(source):
                if f in self._ids[1] and e in self._ids[0]:
                    key = self._ids[1][f] * len(self._ids[0]) + self._ids[0][e]
                    cell = int(torch.searchsorted(self._keys, key))
                    if cell < len(self._keys) and self._keys[cell] == key:
                        weights[j, i] += self.t[cell]
        row = torch.arange(len(target)).repeat_interleave(len(source))
        prior = self._prior(self._places(len(source), len(target)).flatten(), row)
        chosen = strongest_links(weights * prior.view_as(weights))
        first = len(self._null)
        return {(i - first, j) for i, j in chosen if i >= first}

    def _expected(self) -> tuple[Tensor, Tensor]:
        """Return the probability of each possible link of the text, and the expected count of each pair of words."""
        share = self.t[self._cell] * self._prior(self._d, self._row)
        share = share / summed(share, self._row)[self._row].clamp(min=1e-30)
        return share, summed(share, self._cell)

    def _prior(self, places: Tensor, row: Tensor) -> Tensor:
        """Return the probability of links by their places alone; `row` is the target word of each."""
        return self.a[places]

    def _places(self, source: int, target: int) -> Tensor:
        """Return which number of `a` each pair of positions has: (target, source with NULL)."""
        offsets = torch.arange(source) - len(self._null) - torch.arange(target)[:, None]
        places = offsets.clamp(1 - LONGEST, LONGEST - 1) + LONGEST
        places[:, : len(self._null)] = 2 * LONGEST
        return places


class DiagonalAligner(Aligner):
    r"""A model like fast_align: links near the diagonal are more probable, and a prior holds the table back.

    Word i of n in the source belongs to word j of m in the target with a probability proportional to
    exp(-λ |j/m - i/n|), NULL with `P_NULL`. The table has a Dirichlet prior; its update is that of variational Bayes.

    Source: Dyer, Chahuneau and Smith (2013), "A simple, fast, and effective reparameterization of IBM model 2".
    """

    def __init__(self, pairs: Sequence[tuple[str, str]]) -> None:
        super().__init__(pairs, null=True)
        self.sharpness = 4.0  # λ

    def learn(self, rounds: int) -> None:
        """Take some rounds of expectation maximisation; λ climbs by steps along its gradient, as in fast_align."""
        e_of_cell = self._keys % len(self._ids[0])
        near = self._d.isfinite()  # all but NULL
        for _ in range(rounds):
            share, count = self._expected()
            count = count + ALPHA
            total = summed(count, e_of_cell)
            self.t = (count.digamma() - total.digamma()[e_of_cell]).exp()
            distance, row, share = self._d[near], self._row[near], share[near]
            each = summed(share, row)[row]
            for _ in range(8):
                prior = self._prior(self._d, self._row)[near] / (1 - P_NULL)
                slope = ((each * prior - share) * distance).sum().item() / self._rows
                self.sharpness = min(max(self.sharpness + 20 * slope, 0.1), 20)

    def _prior(self, distance: Tensor, row: Tensor) -> Tensor:
        near = (-self.sharpness * distance).exp()
        return torch.where(distance.isinf(), P_NULL, (1 - P_NULL) * near / summed(near, row)[row])

    def _places(self, source: int, target: int) -> Tensor:
        """Return the distance of each pair of positions from the diagonal, infinite for NULL: (target, source)."""
        i = torch.arange(1, source) / (source - 1)
        j = torch.arange(1, target + 1) / target
        distance = (j[:, None] - i).abs()
        return torch.cat([torch.full((target, 1), torch.inf), distance], dim=1)


def summed(numbers: Tensor, group: Tensor) -> Tensor:
    """Return the sum of each group, 0 to the last."""
    return torch.zeros(int(group.max()) + 1).scatter_add(0, group, numbers)


def columns_of(weights: Tensor) -> Links:
    """Link each source word with the target word that has the largest weight in its column."""
    return {(i, j) for j, i in strongest_links(weights.T)}


def grown(rows: Links, columns: Links) -> Links:
    """Combine two directions with grow-diag.

    Starts from the links that both have, and adds links of one of them, as long as there is one beside a link (or
    diagonally) whose source or target word has no link yet.

    Source: Koehn, Och and Marcu (2003), "Statistical phrase-based translation", section 3.
    """
    links, rest = rows & columns, sorted(rows ^ columns)
    sources, targets = {i for i, _ in links}, {j for _, j in links}
    added = True
    while added:
        added = False
        for i, j in rest:
            near = any((i + x, j + y) in links for x in (-1, 0, 1) for y in (-1, 0, 1))
            if near and (i, j) not in links and (i not in sources or j not in targets):
                links.add((i, j))
                sources.add(i)
                targets.add(j)
                added = True
    return links


def combined(rows: Links, columns: Links) -> dict[str, Links]:
    """Return direction → links."""
    return dict(zip(DIRECTIONS, (rows, columns, rows & columns, grown(rows, columns)), strict=True))


@cache
def gold() -> dict[int, tuple[Links, Links]]:
    """Return the annotator's links: number of the test sentence → (sure, sure or possible)."""
    found = {}
    for number, text in json.loads(GOLD.read_text(encoding="utf-8")).items():
        links = {
            kind: {tuple(map(int, link.split(kind))) for link in text.split() if kind in link}
            for kind in "-?"
        }
        found[int(number)] = links["-"], links["-"] | links["?"]
    return found


def agreement(links: Links, sure: Links, possible: Links) -> list[int]:
    """Return the counts of which the alignment error rate is made: |A ∩ S|, |A ∩ P|, |A|, |S|."""
    return [len(links & sure), len(links & possible), len(links), len(sure)]


def error_rate(rows: Tensor) -> Tensor:
    """Return the alignment error rate of sums of what `agreement` returns, (…, 4) → (…)."""
    return 1 - (rows[..., 0] + rows[..., 1]) / (rows[..., 2] + rows[..., 3])


def compared(candidates: list[Links], aligner: list[Links]) -> dict:
    """Compare the links of all test sentences with the annotator's, and elsewhere with the aligner's.

    Returns:
        "gold": the counts of `agreement` of each annotated sentence; "agrees": the F1 score of the links against the
        aligner's, in the other sentences.
    """
    annotated = gold()
    counted = [agreement(candidates[n], *annotated[n]) for n in annotated if n < len(candidates)]
    others = [n for n in range(len(candidates)) if n not in annotated]
    same = sum(len(candidates[n] & aligner[n]) for n in others)
    total = sum(len(candidates[n]) + len(aligner[n]) for n in others)
    return {"agrees": round(2 * same / max(total, 1), 4), "gold": counted}


def in_directions(each: Sequence[tuple[Links, Links]]) -> dict[str, list[Links]]:
    """Turn (by rows, by columns) of each sentence into direction → the links of all sentences."""
    directions = [combined(rows, columns) for rows, columns in each]
    return {name: [one[name] for one in directions] for name in DIRECTIONS}


def statistical(
    train: Sequence[tuple[str, str]], test: Sequence[tuple[str, str]]
) -> Iterator[tuple[str, dict[str, list[Links]]]]:
    """Yield (name of an aligner, direction → links), each having learned from source to target and back."""

    def turned(pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        return [(target, source) for source, target in pairs]

    model_1 = {"rounds": ROUNDS, "offsets": False}
    with_offsets = {"rounds": OFFSET_ROUNDS, "offsets": True}
    for name, kind, stages in (
        ("IBM model 1", Aligner, [model_1]),
        (REFERENCE, partial(Aligner, null=True), [model_1, with_offsets]),
        ("like fast_align", DiagonalAligner, [{"rounds": DIAGONAL_ROUNDS}]),
    ):
        there, back = kind(train), kind(turned(train))
        for stage in stages:
            there.learn(**stage)
            back.learn(**stage)
        rows = map(there.links, test)
        columns = ({(i, j) for j, i in back.links(pair)} for pair in turned(test))
        yield name, in_directions(list(zip(rows, columns, strict=True)))


def baselines(pairs: Sequence[tuple[str, str]]) -> dict[str, list[Links]]:
    """Return the links of random source words, and of the source word at the same position."""
    generator = torch.Generator().manual_seed(0)
    found: dict[str, list[Links]] = {"random": [], "diagonal": []}
    for pair in pairs:
        source, target = (len(Words.of(text).words) for text in pair)
        drawn = torch.randint(source, (target,), generator=generator).tolist()
        found["random"].append({(i, j) for j, i in enumerate(drawn)})
        found["diagonal"].append({(min(j, source - 1), j) for j in range(target)})
    return found


def attended(
    translator: SubwordTranslator, pairs: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], tuple[dict[str, list[Links]], float]]:
    """Return (candidate, row) → direction → the strongest links of every pair, and the mean share of weights on words.

    A row that reads a token is taken in the direction "rows" only.
    """
    links: dict[tuple[str, str], list[tuple[Links, Links]]] = {}
    shares: dict[tuple[str, str], list[float]] = {}
    for maps in word_maps(translator, pairs):
        for name, weights in maps.items():
            found = strongest_links(weights), columns_of(weights)
            links.setdefault(name, []).append(found)
            shares.setdefault(name, []).append(weights.sum(dim=-1).mean().item())
    result = {}
    for name, each in links.items():
        one_way = {"rows": [rows for rows, _ in each]}
        directions = in_directions(each) if name[1] == ROWS[0] else one_way
        result[name] = directions, sum(shares[name]) / len(shares[name])
    return result


def during(
    run: RunFolder, pairs: Sequence[tuple[str, str]], aligner: list[Links]
) -> list[dict[str, float | dict]]:
    """Align with all weights that a run has kept: a source word for each target word, by the row that generates it.

    Returns:
        For each: "step", "BLEU" of the held-out sentences then, and in "candidates" name → its agreement with the aligner
        and its alignment error rate.
    """
    result = json.loads(run.result.read_text(encoding="utf-8"))
    scores = {moment["step"]: moment["bleu"] for moment in result["measured"]}
    translator, found = run.translator(), []
    for step in sorted(scores):
        if run.weights(step).exists():
            load_model(translator.model, run.weights(step))
            candidates = {}
            for (name, row), (links, _) in attended(translator, pairs).items():
                if row == "generates":
                    one = compared(links["rows"], aligner)
                    rate = error_rate(torch.tensor(one["gold"]).sum(dim=0)).item()
                    candidates[name] = [one["agrees"], round(rate, 4)]
            found.append({"step": step, "BLEU": scores[step], "candidates": candidates})
    return found


@cache
def recorded() -> dict:
    """Return the recorded result.

    "aligners" is name → direction → what `compared` returns; "runs" is name of the run → row → candidate → the same, and
    the share of the weights that is on words ("on words"; the rest is on <eos>). "during" is what the function of that
    name returns.
    """
    return read(RECORD)


def main(arguments: list[str] | None = None) -> None:
    """Align with each run and record."""
    options = text_options(__doc__, RECORD)
    options.add_argument("--first", type=int, help="so many test and training sentences only")
    options.add_argument("--during", type=Path, help="a run with all its weights")
    options.add_argument("runs", nargs="*", metavar="NAME=FOLDER")
    chosen = options.parse_args(arguments)
    torch.set_num_threads(1)
    pairs = sentence_pairs(chosen.data)
    test = pairs.test[: chosen.first]
    train = pairs.train[: chosen.first and 10 * chosen.first]
    aligners = {name: {"rows": links} for name, links in baselines(test).items()}
    aligners.update(statistical(train, test))
    best = aligners[REFERENCE]

    def all_compared(directions: dict[str, list[Links]]) -> dict:
        return {name: compared(links, best[name]) for name, links in directions.items()}

    compared_aligners = {name: all_compared(links) for name, links in aligners.items()}
    result: dict = {"aligners": compared_aligners, "runs": {}}
    if not chosen.runs:
        result = {**read(chosen.record), "aligners": compared_aligners}
        write(chosen.record, result, indent=None)
    for run in chosen.runs:
        name, _, folder = run.partition("=")
        arms: dict = {row: {} for row in ROWS}
        for (candidate, row), (links, share) in attended(
            RunFolder(folder).translator(), test
        ).items():
            arms[row][candidate] = {"on words": round(share, 4), **all_compared(links)}
        result["runs"][name] = arms
        write(chosen.record, result, indent=None)
    if chosen.during is not None:
        result["during"] = during(RunFolder(chosen.during), test, best["rows"])
        write(chosen.record, result, indent=None)


if __name__ == "__main__":
    main()
