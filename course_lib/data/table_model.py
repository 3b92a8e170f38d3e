"""A language model that is a function of the prefix, such as a table of probabilities written by hand."""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from course_lib.data.vocabulary import Vocabulary
from course_lib.validation import require_tokens

#: The token ids so far, start token included.
Prefix = tuple[int, ...]

#: prefix → {token: probability}; `()` is the prefix before the first token, "<eos>" the end token.
Table = Mapping[tuple[str, ...], Mapping[str, float]]


@dataclass
class PrefixState:
    """The decoding state of a `PrefixModel`: the prefix of each sequence of the batch."""

    prefixes: list[Prefix]

    def reorder(self, rows: Int[Tensor, " new_batch"], *, same_sources: bool = False) -> None:
        """Keep these prefixes, in this order."""
        self.prefixes = [self.prefixes[row] for row in rows.tolist()]


class PrefixModel:
    """An `IncrementalDecoder` from any function that gives next-token logits for prefixes.

    It has no parameters, and asks the function for each prefix once.

    Args:
        vocabulary_size: how many tokens there are.
        next_token_logits: from prefixes of equal length to logits, (prefixes, vocabulary).
    """

    pad_id = 0

    def __init__(
        self, vocabulary_size: int, next_token_logits: Callable[[Sequence[Prefix]], Tensor]
    ) -> None:
        self.vocabulary_size = vocabulary_size
        self._next_token_logits = next_token_logits
        self._known: dict[Prefix, Tensor] = {}

    def prefill(
        self, source: Int[Tensor, "batch length"], *, bos_id: int | None = None
    ) -> tuple[Float[Tensor, "batch vocabulary"], PrefixState]:
        """Take the rows of `source`, start token included, as prefixes; `bos_id` is ignored."""
        require_tokens(self.vocabulary_size, source=source)
        state = PrefixState([tuple(row) for row in source.tolist()])
        return self._logits(state), state

    def decode_step(
        self, token: Int[Tensor, " batch"], state: PrefixState
    ) -> Float[Tensor, "batch vocabulary"]:
        """Append one token to every prefix; return logits for the next one."""
        pairs = zip(state.prefixes, token.tolist(), strict=True)
        state.prefixes = [(*prefix, last) for prefix, last in pairs]
        return self._logits(state)

    def next_logits(self, tokens: Int[Tensor, "rows length"]) -> Float[Tensor, "rows vocabulary"]:
        """Return the logits of the token after each prefix; the rows begin with the start token."""
        return self.prefill(tokens)[0]

    def _logits(self, state: PrefixState) -> Float[Tensor, "batch vocabulary"]:
        new = [prefix for prefix in dict.fromkeys(state.prefixes) if prefix not in self._known]
        if new:
            self._known |= zip(new, self._next_token_logits(new), strict=True)
        return torch.stack([self._known[prefix] for prefix in state.prefixes])


def table_model(table: Table) -> tuple[PrefixModel, Vocabulary]:
    """Make a language model from a table of probabilities, and the vocabulary of its tokens.

    After a prefix that is not in the table, the end token has probability 1. ::

        model, vocabulary = table_model({
            (): {"the": 0.6, "a": 0.4},
            ("the",): {"cat": 0.5, "dog": 0.5},
            ("a",): {"bird": 1.0},
        })
        greedy(model, torch.tensor([[vocabulary.bos_id]]))
    """
    if () not in table:
        raise ValueError("the table has no entry for (), the prefix before the first token")
    for prefix, row in table.items():
        if not isinstance(prefix, tuple):
            raise ValueError(f"the prefix {prefix!r} must be a tuple of words, e.g. ('the',)")
        total = sum(row.values())
        if not math.isclose(total, 1, abs_tol=1e-6) or min(row.values()) < 0:
            raise ValueError(
                f"the probabilities after {prefix!r} sum to {total:.4g}; probabilities must be 0 or more "
                f"and sum to 1"
            )
    words = dict.fromkeys(word for row in table.values() for word in row if word != Vocabulary.eos)
    vocabulary = Vocabulary(words)

    def next_token_logits(prefixes: Sequence[Prefix]) -> Tensor:
        texts = [tuple(vocabulary.tokens[i] for i in prefix[1:]) for prefix in prefixes]
        rows = [table.get(text, {Vocabulary.eos: 1.0}) for text in texts]
        p = torch.tensor([[row.get(token, 0.0) for token in vocabulary.tokens] for row in rows])
        return p.log()  # (prefixes, vocabulary)

    return PrefixModel(len(vocabulary), next_token_logits), vocabulary


def random_table(generator: torch.Generator, words: str = "abc", length: int = 3) -> Table:
    """Make a table for `table_model`: random probabilities after every prefix of fewer than `length` words.

    The logits are normal, with a standard deviation of 2; each character of `words` is a word.
    """
    table = {}
    for n in range(length):
        for prefix in itertools.product(words, repeat=n):
            logits = 2 * torch.randn(len(words) + 1, generator=generator)
            p = logits.double().softmax(dim=-1).tolist()
            table[prefix] = dict(zip((*words, Vocabulary.eos), p, strict=True))
    return table
