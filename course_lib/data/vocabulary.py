"""From tokens to token ids and back."""

from collections.abc import Iterable, Sequence

import torch
from jaxtyping import Int
from torch import Tensor


class Vocabulary:
    """A fixed list of tokens; the id of a token is its index in the list.

    The first three are special: padding, the start of a sequence, its end. A token is any string: a
    character where sequences are strings, a word where they are lists of words.

    Args:
        tokens: all tokens but the special ones, in order, each once.
    """

    pad, bos, eos = "<pad>", "<bos>", "<eos>"
    pad_id, bos_id, eos_id = 0, 1, 2

    def __init__(self, tokens: Iterable[str]) -> None:
        self.tokens = (self.pad, self.bos, self.eos, *tokens)
        self._ids = {token: number for number, token in enumerate(self.tokens)}
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
        """Return the ids of a sequence's tokens, with `<bos>` before and `<eos>` after where asked for.

        Args:
            sequence: a string, or a list of tokens.
            bos, eos: whether to add the start token and the end token.
        """
        if len(sequence) == 0:
            raise ValueError("the text is empty; it needs at least one token")
        for position, token in enumerate(sequence):
            if token not in self:
                raise ValueError(
                    f"{token!r} at position {position} of {sequence!r} is not among the {len(self)} tokens "
                    f"of the vocabulary"
                )
        ids = [self._ids[token] for token in sequence]
        return torch.tensor([self.bos_id] * bos + ids + [self.eos_id] * eos)

    def decode(self, ids: Int[Tensor, " length"] | Sequence[int]) -> list[str]:
        """Return the tokens before the first `<eos>`, without padding and `<bos>`."""
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
