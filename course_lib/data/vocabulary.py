"""From tokens to token ids and back."""

from collections.abc import Iterable, Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from course_lib.checks import data as checks
from course_lib.validation import validated


class Vocabulary:
    """A fixed list of tokens; the id of a token is its index in the list.

    The first three are special: padding, the start of a sequence, its end. A token is any string: a
    character where sequences are strings, a word where they are lists of words.

    Args:
        tokens: all tokens but the special ones, in order, each once.

    Raises:
        ValueError: for a token that is not a string, occurs twice, or is one of the special ones.
    """

    pad, bos, eos = "<pad>", "<bos>", "<eos>"
    pad_id, bos_id, eos_id = 0, 1, 2

    def __init__(self, tokens: Iterable[str]) -> None:
        if isinstance(tokens, Tensor) or not isinstance(tokens, Iterable):
            raise ValueError(f"tokens is a {type(tokens).__name__}; it must be a list of strings")
        self.tokens = (self.pad, self.bos, self.eos, *tokens)
        checks.tokens_of_vocabulary(self.tokens)
        self._ids = {token: number for number, token in enumerate(self.tokens)}

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

    @validated(checks.encode)
    def encode(
        self, sequence: Sequence[str], *, bos: bool = False, eos: bool = False
    ) -> Int[Tensor, " length"]:
        """Return the ids of a sequence's tokens, with `<bos>` before and `<eos>` after where asked for.

        Args:
            sequence: a string, or a list of tokens.
            bos, eos: whether to add the start token and the end token.

        Raises:
            ValueError: for anything but a sequence, an empty one, and a token that is not in the vocabulary.
        """
        ids = [self._ids[token] for token in sequence]
        return torch.tensor([self.bos_id] * bos + ids + [self.eos_id] * eos)

    @validated(checks.decode)
    def decode(self, ids: Int[Tensor, " length"] | Sequence[int]) -> list[str]:
        """Return the tokens before the first `<eos>`, without padding and `<bos>`.

        Raises:
            ValueError: for anything but integers, and for a number that is not a token id.
        """
        tokens = []
        for number in ids.tolist() if isinstance(ids, Tensor) else ids:
            if number == self.eos_id:
                break
            if number not in (self.pad_id, self.bos_id):
                tokens.append(self.tokens[number])
        return tokens

    def text(self, ids: Int[Tensor, " length"] | Sequence[int]) -> str:
        """Return the decoded tokens, joined without spaces."""
        return "".join(self.decode(ids))
