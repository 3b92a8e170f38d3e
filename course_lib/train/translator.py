"""Text in, text out: a trained model between two vocabularies."""

import math
import unicodedata
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from functools import cached_property
from itertools import groupby
from typing import NamedTuple

import torch
from torch import Tensor, nn

from course_lib import messages
from course_lib.data import Vocabulary, detokenize, english_words, pad
from course_lib.data.subwords import Subwords
from course_lib.topics.attention_maps import AttentionMap, record_attention
from course_lib.transformer import EmbeddingPositions, Transformer
from course_lib.transformer.decoding import (
    IncrementalDecoder,
    beam_search,
    greedy,
    sample,
    temperature,
)
from course_lib.validation import require_whole

__all__ = ["PhraseTranslator", "SubwordTranslator", "Translation", "Translator"]

_SIMILAR = 0.6  # words below this share of equal letters are no help
_NAMED = 5  # of several unknown words
_AT_ONCE = 100  # sequences that are decoded together


class Translation(NamedTuple):
    """One translated text: its tokens, the generated ones, and the attention weights of each step.

    `source` and `target` are lists of tokens; the last of `target` is the end token if the model generated
    one. `weights` has shape (target, source), or is None for a model without attention.
    """

    source: list[str]
    target: list[str]
    weights: Tensor | None

    @property
    def text(self) -> str:
        """The generated text, without special tokens."""
        special = (Vocabulary.pad, Vocabulary.bos, Vocabulary.eos)
        return "".join(token for token in self.target if token not in special)


class Translator:
    """Translate texts, each character a token.

    Args:
        model: with `generate(tokens, max_length)`, such as a `Seq2Seq`.
        source, target: the vocabularies it was trained with.
        max_length: the longest target, the end token included.
    """

    def __init__(
        self, model: nn.Module, source: Vocabulary, target: Vocabulary, *, max_length: int = 50
    ) -> None:
        self.model, self.source, self.target = model, source, target
        self.max_length = max_length

    def __call__(self, text: str) -> Translation:
        """Translate one text."""
        return self.all([text])[0]

    def all(self, texts: Iterable[str]) -> list[Translation]:
        """Translate several texts at once."""
        texts = _listed(texts)
        sources = pad([self.source.encode(text) for text in texts], self.source.pad_id)
        self.model.eval()
        tokens, weights = self.model.generate(sources, self.max_length)
        translations = []
        for row, text in enumerate(texts):
            target = [self.target.tokens[number] for number in tokens[row].tolist()]
            if self.target.eos in target:
                target = target[: target.index(self.target.eos) + 1]
            attended = None if weights is None else weights[row, : len(target), : len(text)]
            translations.append(Translation(list(text), target, attended))
        return translations


class PhraseTranslator:
    """Translate English sentences of the phrasebook into French, each word a token.

    Args:
        model: a trained `Transformer`.
        source, target: the vocabularies it was trained with.
        max_length: the longest target, the end token included.
    """

    rule = messages.RULE_OF_WORDS

    def __init__(
        self, model: Transformer, source: Vocabulary, target: Vocabulary, *, max_length: int = 24
    ) -> None:
        self.model, self.source, self.target = model, source, target
        self.max_length = max_length

    @property
    def known(self) -> list[str]:
        """The English words of the phrasebook."""
        return [word for word in self.source.tokens if word.isalpha()]

    def __call__(self, text: str) -> str:
        """Translate one typed sentence by greedy decoding."""
        return detokenize(self.all([self.words(text)])[0])

    def all(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        """Translate several sentences at once, from words to words."""
        self.model.eval()
        sources = pad([self.source.encode(words) for words in sentences], self.source.pad_id)
        return [
            self.target.decode(row)
            for row in greedy(self.model, sources, max_length=self.max_length)
        ]

    def words(self, text: str) -> list[str]:
        """Return the tokens of a typed sentence."""
        words = english_words(text)
        unknown = [word for word in words if word not in self.source]
        if unknown:
            unknown = list(dict.fromkeys(unknown))
            near = get_close_matches(unknown[0], self.known, n=3, cutoff=_SIMILAR)
            similar = f"; similar words are {', '.join(map(repr, near))}" if near else ""
            raise ValueError(
                f"{', '.join(map(repr, unknown[:_NAMED]))} {'is' if len(unknown) == 1 else 'are'} not among the "
                f"{len(self.known)} words of the phrasebook{similar}"
            )
        return words

    def sample(self, text: str, t: float, *, seed: int) -> list[str]:
        """Translate a typed sentence by sampling at temperature `t`."""
        source = self.source.encode(self.words(text))[None]
        self.model.eval()
        rows = sample(
            self.model,
            source,
            logits_processors=[lambda logits: temperature(logits, t)],
            max_length=self.max_length,
            seed=seed,
        )
        return self.target.decode(rows[0])

    def detokenize(self, tokens: Sequence[str]) -> str:
        """Join French tokens to text, without the special ones."""
        special = (self.target.pad, self.target.bos, self.target.eos)
        return detokenize(token for token in tokens if token not in special)

    @torch.no_grad()
    def maps(self, text: str, french: Sequence[str] | None = None) -> dict[str, AttentionMap]:
        """Return the attention weights of every layer during a translation, layer → `AttentionMap`.

        A row of the decoder's self-attention is named after the token that was the input of that step; a
        row of its cross-attention after the token that was generated there, because its alignment is
        what one wants to see.

        Args:
            text: the English sentence.
            french: the generated tokens; the greedy translation where left out.
        """
        words = self.words(text)
        if french is None:
            (french,) = self.all([words])
        target = torch.tensor([self.target.bos_id])
        if french:
            target = self.target.encode(french, bos=True)
        steps = min(len(target), self.max_length)  # no row for an end token beyond max_length
        inputs, outputs = [self.target.bos, *french][:steps], [*french, self.target.eos][:steps]
        return _maps(self.model, self.source.encode(words), target[:steps], words, inputs, outputs)


class SubwordTranslator:
    """Translate any text, each subword a token: what ``python -m course_lib.train`` leaves in its folder.

    Args:
        model: a trained `Transformer` with one vocabulary for both languages.
        subwords: the vocabulary it was trained with.
    """

    rule = messages.RULE_OF_TRANSLATIONS

    def __init__(self, model: IncrementalDecoder, subwords: Subwords) -> None:
        self.model, self.subwords = model, subwords

    @cached_property
    def _letters(self) -> frozenset[str]:
        """The letters that the tokens hold."""
        tokens = range(Subwords.smallest - 256, len(self.subwords))
        return frozenset(filter(str.isalpha, "".join(self.subwords.texts_of(tokens))))

    def __call__(self, text: str, *, beam_size: int = 1) -> str:
        """Translate one text."""
        return self.all([text], beam_size=beam_size)[0]

    def all(self, texts: Iterable[str], *, beam_size: int = 1) -> list[str]:
        """Translate several texts, those of similar length together.

        Args:
            texts: sentences; white space around them, such as the end of a line, is no part of them.
            beam_size: 1 for greedy decoding; more for a beam search, with a length penalty of 1.

        Returns:
            A translation of each; "" of a text without a visible character.
        """
        texts = [text.strip() for text in _listed(texts)]
        require_whole(beam_size=beam_size)
        self.model.eval()
        sources = self.subwords.encode_all(texts, eos=True)
        most = positions_of(self.model)
        for number, source in enumerate(sources):
            if len(source) > most:
                raise ValueError(
                    f"texts[{number}] has {len(source)} tokens, and the model {most} positions; split the text"
                )
        order = [number for number, text in enumerate(texts) if not _is_blank(text)]
        order.sort(key=lambda number: len(sources[number]))
        together = _AT_ONCE // beam_size + 1
        # a beam search depends on where it ends: only sources of one length share a batch
        groups = groupby(order, lambda number: len(sources[number]) if beam_size > 1 else 0)
        batches = [rows for _, group in groups for rows in torch.tensor([*group]).split(together)]
        translations = [""] * len(sources)
        for rows in batches:
            source = pad([sources[number] for number in rows]).to(_device_of(self.model))
            longest = min(_longest(source.shape[1]), most)
            if beam_size == 1:
                found = greedy(self.model, source, max_length=longest)
            else:
                beams = beam_search(self.model, source, beam_size, max_length=longest)
                found = beams.tokens[:, 0]
            for number, tokens in zip(rows.tolist(), found, strict=True):
                own = tokens[: _longest(len(sources[number]))]  # whatever its neighbours are
                translations[number] = self.subwords.decode(own)
        return translations

    @torch.no_grad()
    def maps(self, text: str) -> dict[str, AttentionMap]:
        """Return the attention weights of every layer during the greedy translation; see `PhraseTranslator.maps`.

        Raises:
            ValueError: for a text with letters that no token of the vocabulary has.
        """
        if unknown := sorted({one for one in text if one.isalpha()} - self._letters):
            characters = ", ".join(map(repr, unknown[:_NAMED]))
            raise ValueError(messages.NEVER_SEEN.format(characters=characters, rule=self.rule))
        source = self.subwords.encode(text.strip(), eos=True)
        target = self.subwords.encode(self(text), bos=True)
        inputs = [Vocabulary.bos, *self.subwords.texts_of(target[1:])]
        sides = [*self.subwords.texts_of(source[:-1]), Vocabulary.eos], inputs
        return _maps(self.model, source, target, *sides, [*inputs[1:], Vocabulary.eos])


def _longest(source: int) -> int:
    """The longest translation of a source of so many tokens."""
    return source + source // 2 + 20


def positions_of(model: nn.Module) -> float:
    """How many positions a model has for tokens: infinitely many, if it has not learned them."""
    limits = [one.max_length for one in model.modules() if isinstance(one, EmbeddingPositions)]
    return min((limit for limit in limits if limit is not None), default=math.inf)


def _listed(texts: Iterable[str]) -> list[str]:
    """Return the texts of a list, or of what can be read once only; refuse what is none."""
    if isinstance(texts, str):
        raise ValueError(f"texts is a str; it must be a list of texts, e.g. [{texts!r}]")
    texts = list(texts)
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(
                f"texts[{number}] is {text!r}, of type {type(text).__name__}; it must be a str"
            )
    return texts


def _is_blank(text: str) -> bool:
    """Whether nothing of a text can be seen: separators, control and format characters, fillers."""
    empty = ("FILLER", "VARIATION SELECTOR", "BRAILLE PATTERN BLANK")
    return all(
        unicodedata.category(one)[0] == "Z"
        or unicodedata.category(one) in ("Cc", "Cf")
        or any(word in unicodedata.name(one, "") for word in empty)
        for one in text
    )


def _device_of(model: nn.Module) -> torch.device:
    return next(model.parameters()).device


def _maps(
    model: Transformer,
    source: Tensor,
    target: Tensor,
    words: Sequence[str],
    inputs: Sequence[str],
    outputs: Sequence[str],
) -> dict[str, AttentionMap]:
    """Return the weights of every layer, layer → `AttentionMap`, in one pass over source and target.

    Rows are named after the inputs, those of cross-attention after the outputs.
    """
    model.eval()
    with record_attention(model) as recorded:
        model(source[None], target[None])
    sides = {"encoder": (words, words), "self": (inputs, inputs), "cross": (outputs, words)}
    maps = {}
    for name, (weights,) in recorded.items():
        stack, number, layer = name.split(".")
        kind = "encoder" if stack == "encoder" else layer.removesuffix("_attention")
        label = f"{stack} {number}: {'self' if kind == 'encoder' else kind}"
        maps[label] = AttentionMap(weights[0], *sides[kind])
    return maps
