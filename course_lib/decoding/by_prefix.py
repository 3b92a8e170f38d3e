"""A language model that is a function of what is written so far, such as a table made by hand."""

import math
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from types import SimpleNamespace

import torch
from torch import Tensor, nn

from course_lib.data import Vocabulary
from course_lib.transformer import DecoderOnly, TransformerConfig

Prefix = tuple[int, ...]

#: A beginning → {token: probability}; `()` is the start, "<eos>" the end.
Table = Mapping[tuple[str, ...], Mapping[str, float]]


class ByPrefix(DecoderOnly):
    """Write with any function from prefixes to logits: by `greedy`, `sample`, `beam_search` or a `Writer`.

    It has no parameters. Of a `DecoderOnly` it has what writing needs: `config`, `new_cache`, and calls that
    return logits for the token behind the last. No prefix is asked for twice.

    Args:
        vocabulary: how many tokens there are.
        following: from prefixes of equal length, each with the start in front, to (prefixes, vocabulary).
    """

    def __init__(self, vocabulary: int, following: Callable[[Sequence[Prefix]], Tensor]) -> None:
        nn.Module.__init__(self)
        self.config = TransformerConfig(target_vocabulary=vocabulary)
        self.input = SimpleNamespace(positions=None)  # none, so prompts may be padded in front
        self._following = following
        self._known: dict[Prefix, Tensor] = {}

    def forward(self, tokens: Tensor, *, cache: "_Prefixes | None" = None) -> Tensor:
        """Return logits (batch, 1, vocabulary) for the token behind these, (batch, length)."""
        cache = self.new_cache() if cache is None else cache
        cache.extend(tokens)
        asked = [one for one in dict.fromkeys(cache.prefixes) if one not in self._known]
        if asked:
            self._known |= zip(asked, self._following(asked), strict=True)
        return torch.stack([self._known[one] for one in cache.prefixes])[:, None]

    def new_cache(self) -> "_Prefixes":
        """Return an empty cache."""
        return _Prefixes()


class _Prefixes:
    """The tokens so far, of each sequence."""

    def __init__(self) -> None:
        self.prefixes: list[Prefix] = []

    def extend(self, tokens: Tensor) -> None:
        before = self.prefixes or [()] * len(tokens)
        self.prefixes = [old + tuple(new) for old, new in zip(before, tokens.tolist(), strict=True)]

    def select(self, rows: Tensor, *, same_sources: bool = False) -> None:
        self.prefixes = [self.prefixes[row] for row in rows.tolist()]


def table_model(table: Table) -> tuple[ByPrefix, Vocabulary]:
    """Make a language model of a table of probabilities, and the vocabulary of its tokens.

    A beginning that the table does not have ends there. ::

        model, vocabulary = table_model({
            (): {"the": 0.6, "a": 0.4},
            ("the",): {"cat": 0.5, "dog": 0.5},
            ("a",): {"bird": 1.0},
        })
        greedy(model, torch.tensor([[vocabulary.bos_id]]))

    Raises:
        ValueError: for a table without the beginning `()`, beginnings that are not tuples of words, and
            probabilities that are not numbers from 0 up that add up to 1.
    """
    _require_table(table)
    end = Vocabulary.eos
    words = dict.fromkeys(word for row in table.values() for word in row if word != end)
    vocabulary = Vocabulary(words)
    known = {}
    for beginning, row in table.items():
        p = torch.zeros(len(vocabulary))
        p[vocabulary.encode(list(row))] = torch.tensor([float(one) for one in row.values()])
        if all(word in vocabulary for word in beginning):  # others cannot be written
            start = [vocabulary.bos_id, *(vocabulary.tokens.index(word) for word in beginning)]
            known[tuple(start)] = p.log()
    ends = torch.full((len(vocabulary),), -math.inf)
    ends[vocabulary.eos_id] = 0.0

    def following(prefixes: Sequence[Prefix]) -> Tensor:
        return torch.stack([known.get(prefix, ends) for prefix in prefixes])

    return ByPrefix(len(vocabulary), following), vocabulary


def _require_table(table: Table) -> None:
    if () not in table:
        raise ValueError(
            "the table has no entry for (), the start: say what the first token can be"
        )
    for beginning, row in table.items():
        if not isinstance(beginning, tuple) or not all(isinstance(one, str) for one in beginning):
            raise ValueError(
                f"the table has the beginning {beginning!r}; it must be a tuple of words, e.g. ('the',)"
            )
        numbers = list(row.values())
        if not all(isinstance(one, Real) and one >= 0 for one in numbers):
            raise ValueError(f"behind {beginning!r} stands {dict(row)!r}; give numbers from 0 up")
        if not math.isclose(sum(numbers), 1, abs_tol=1e-6):
            raise ValueError(
                f"the probabilities behind {beginning!r} add up to {sum(numbers):.4g}; they must add up to 1"
            )
