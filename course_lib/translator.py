"""Text in, text out: a trained model between two vocabularies."""

from collections.abc import Sequence
from difflib import get_close_matches
from typing import NamedTuple

import torch
from torch import Tensor, nn

from course_lib.attention import AttentionMap, record_attention
from course_lib.data import Vocabulary, english_words, pad, written
from course_lib.decoding import greedy, sample, temperature
from course_lib.inputs import require_whole
from course_lib.transformer import Transformer

__all__ = ["PhraseTranslator", "Translation", "Translator"]


class Translation(NamedTuple):
    """One text: its tokens, what was written, and where each step looked.

    `source` and `target` are lists of tokens; the last of `target` is the end token if the model wrote
    one. `weights` has shape (target, source), or is None for a model without attention.
    """

    source: list[str]
    target: list[str]
    weights: Tensor | None

    @property
    def text(self) -> str:
        """What was written, without the special tokens."""
        special = (Vocabulary.pad, Vocabulary.bos, Vocabulary.eos)
        return "".join(token for token in self.target if token not in special)


class Translator:
    """Translate texts, each character a token.

    Args:
        model: with `translate(tokens, max_length)`, such as a `Seq2Seq`.
        source, target: the vocabularies it was trained with.
        max_length: the longest target, the end token included.
    """

    def __init__(
        self, model: nn.Module, source: Vocabulary, target: Vocabulary, *, max_length: int = 50
    ) -> None:
        require_whole(max_length=max_length)
        self.model, self.source, self.target = model, source, target
        self.max_length = max_length

    def __call__(self, text: str) -> Translation:
        """Translate one text.

        Raises:
            ValueError: for an empty text, and for a character outside the vocabulary.
        """
        return self.all([text])[0]

    def all(self, texts: Sequence[str]) -> list[Translation]:
        """Translate several texts at once; raises as for one."""
        if isinstance(texts, str):
            raise ValueError(f"texts is a str; it must be a list of texts, e.g. [{texts!r}]")
        if len(texts) == 0:
            raise ValueError("texts is empty; it needs at least one text")
        sources = pad([self.source.encode(text) for text in texts], self.source.pad_id)
        self.model.eval()
        tokens, weights = self.model.translate(sources, self.max_length)
        translations = []
        for row, text in enumerate(texts):
            written = [self.target.tokens[number] for number in tokens[row].tolist()]
            if self.target.eos in written:
                written = written[: written.index(self.target.eos) + 1]
            looked = None if weights is None else weights[row, : len(written), : len(text)]
            translations.append(Translation(list(text), written, looked))
        return translations


class PhraseTranslator:
    """Translate English sentences of the phrasebook into French, each word a token.

    Args:
        model: a trained `Transformer`.
        source, target: the vocabularies it was trained with.
        max_length: the longest target, the end token included.
    """

    def __init__(
        self, model: Transformer, source: Vocabulary, target: Vocabulary, *, max_length: int = 24
    ) -> None:
        require_whole(max_length=max_length)
        self.model, self.source, self.target = model, source, target
        self.max_length = max_length

    def __call__(self, text: str) -> str:
        """Translate one typed sentence, greedily.

        Raises:
            ValueError: for a text without words, one of several sentences, and words it has not learned.
        """
        (french,) = self.all([self.words(text)])
        return written(french)

    def all(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        """Translate several sentences at once, from words to words."""
        self.model.eval()
        sources = pad([self.source.encode(words) for words in sentences], self.source.pad_id)
        return [
            self.target.decode(row)
            for row in greedy(self.model, sources, max_length=self.max_length)
        ]

    def words(self, text: str) -> list[str]:
        """Return the tokens of a typed sentence; raises as for a call."""
        words = english_words(text)
        unknown = [word for word in words if word not in self.source]
        if unknown:
            known = [word for word in self.source.tokens if word.isalpha()]
            near = get_close_matches(unknown[0], known, n=3, cutoff=0.5) or known[:3]
            raise ValueError(
                f"{', '.join(map(repr, unknown))} is not among the {len(known)} words of the phrasebook; "
                f"near are {', '.join(map(repr, near))}"
            )
        return words

    def drawn(self, text: str, t: float, *, seed: int) -> list[str]:
        """Translate a typed sentence with words drawn at random, at temperature `t`.

        Raises:
            ValueError: as for a call, for a `t` that is not above 0, and a negative seed.
        """
        source = self.source.encode(self.words(text))[None]
        self.model.eval()
        rows = sample(
            self.model,
            source,
            filters=[lambda logits: temperature(logits, t)],
            max_length=self.max_length,
            seed=seed,
        )
        return self.target.decode(rows[0])

    def written(self, tokens: Sequence[str]) -> str:
        """Return tokens as one reads them, without the special ones."""
        special = (self.target.pad, self.target.bos, self.target.eos)
        return written(token for token in tokens if token not in special)

    @torch.no_grad()
    def maps(self, text: str, french: Sequence[str] | None = None) -> dict[str, AttentionMap]:
        """Return where every layer looked while a sentence was translated, layer → `AttentionMap`.

        A row of the decoder's self-attention is the token that was read at that step; a row of its
        cross-attention is the token that was written there, whose links one wants to see.

        Args:
            text: the English sentence.
            french: what is written; what the translator would write where left out.

        Raises:
            ValueError: as for a call.
        """
        words = self.words(text)
        if french is None:
            (french,) = self.all([words])
        target = torch.tensor([self.target.bos_id])
        if french:
            target = self.target.encode(french, bos=True)
        steps = min(len(target), self.max_length)  # no row for an end that there was no room for
        self.model.eval()
        with record_attention(self.model) as recorded:
            self.model(self.source.encode(words)[None], target[None, :steps])
        read, wrote = [self.target.bos, *french][:steps], [*french, self.target.eos][:steps]
        sides = {"encoder": (words, words), "self": (read, read), "cross": (wrote, words)}
        maps = {}
        for name, (weights,) in recorded.items():
            stack, number, layer = name.split(".")
            kind = "encoder" if stack == "encoder" else layer.removesuffix("_attention")
            label = f"{stack} {int(number) + 1}: {'self' if kind == 'encoder' else kind}"
            maps[label] = AttentionMap(weights[0], *sides[kind])
        return maps
