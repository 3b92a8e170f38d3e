"""Text in, text out: a trained model between two vocabularies."""

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor, nn

from course_lib.data.batching import pad
from course_lib.data.vocabulary import Vocabulary
from course_lib.inputs import require_whole

__all__ = ["Translation", "Translator"]


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
