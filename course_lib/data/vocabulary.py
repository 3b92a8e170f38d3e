"""Tokens to numbers and back."""

from collections.abc import Iterable, Sequence
from numbers import Integral

import torch
from jaxtyping import Int
from torch import Tensor


class Vocabulary:
    """A fixed list of tokens; a token's number is its place in it.

    The first three are special: padding, the start of a sequence, its end. A token is any string: a
    character where sequences are strings, a word where they are lists of words.

    Args:
        tokens: the others, in order, each once.

    Raises:
        ValueError: for a token that is not a string, stands there twice, or is one of the special ones.
    """

    pad, bos, eos = "<pad>", "<bos>", "<eos>"
    pad_id, bos_id, eos_id = 0, 1, 2

    def __init__(self, tokens: Iterable[str]) -> None:
        self.tokens = (self.pad, self.bos, self.eos, *tokens)
        for token in self.tokens:
            if not isinstance(token, str):
                raise ValueError(f"tokens holds {token!r}, a {type(token).__name__}; use strings")
        self._ids = {token: place for place, token in enumerate(self.tokens)}
        if len(self._ids) < len(self.tokens):
            twice = next(token for token in self.tokens if self.tokens.count(token) > 1)
            raise ValueError(f"tokens holds {twice!r} more than once")

    @classmethod
    def of(cls, sequences: Iterable[Sequence[str]]) -> "Vocabulary":
        """Return the vocabulary of every token that occurs, sorted."""
        return cls(sorted({token for sequence in sequences for token in sequence}))

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: str) -> bool:
        return token in self._ids

    def __repr__(self) -> str:
        return f"Vocabulary of {len(self)} tokens"

    def encode(
        self, sequence: Sequence[str], *, bos: bool = False, eos: bool = False
    ) -> Int[Tensor, " length"]:
        """Return the numbers of a sequence's tokens, between the special ones asked for.

        Args:
            sequence: a string, or a list of tokens.
            bos, eos: whether to put the start in front and the end behind.

        Raises:
            ValueError: for what is no sequence, an empty one, and a token that is not in the vocabulary.
        """
        if not isinstance(sequence, Sequence):
            raise ValueError(
                f"sequence is a {type(sequence).__name__}; it must be a string or a list of tokens"
            )
        if len(sequence) == 0:
            raise ValueError("the text is empty; it needs at least one token")
        for place, token in enumerate(sequence):
            if not isinstance(token, str) or token not in self._ids:
                raise ValueError(
                    f"{token!r} at place {place} of {_shortened(sequence)} is not among the "
                    f"{len(self)} tokens of the vocabulary"
                )
        ids = [self._ids[token] for token in sequence]
        return torch.tensor([self.bos_id] * bos + ids + [self.eos_id] * eos)

    def decode(self, ids: Int[Tensor, " length"] | Sequence[int]) -> list[str]:
        """Return the tokens up to the first end; padding and starts are left out.

        Raises:
            ValueError: for what is not a whole number, and for a number that is no token's.
        """
        tokens = []
        for number in ids.tolist() if isinstance(ids, Tensor) else ids:
            if isinstance(number, bool) or not isinstance(number, Integral):
                raise ValueError(
                    f"ids holds {number!r}, a {type(number).__name__}; it must be whole numbers of "
                    f"shape (length,)"
                )
            if not 0 <= number < len(self):
                raise ValueError(
                    f"ids holds {number}; the vocabulary goes from 0 to {len(self) - 1}"
                )
            if number == self.eos_id:
                break
            if number not in (self.pad_id, self.bos_id):
                tokens.append(self.tokens[number])
        return tokens

    def text(self, ids: Int[Tensor, " length"] | Sequence[int]) -> str:
        """Return the decoded tokens as one string, nothing between them."""
        return "".join(self.decode(ids))


def _shortened(sequence: Sequence[str], most: int = 40) -> str:
    return repr(sequence) if len(sequence) <= most else f"{sequence[:most]!r}…"
