"""Subwords: byte-level byte-pair encoding by Hugging Face `tokenizers`, one vocabulary for both languages."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import torch
from jaxtyping import Int
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from torch import Tensor

from course_lib.data.vocabulary import Vocabulary


class Subwords:
    """From text to token ids and back: every byte is a token, so there is no unknown word.

    A text comes back in Unicode's composed form (NFC) and without white space around it, and is otherwise the same. The
    name of a special token, such as `<eos>`, is spelled in ordinary tokens where it stands in a text: only `bos` and
    `eos` below put the special ones into a sequence.

    Byte-pair encoding (Sennrich et al., 2016) starts from the 256 bytes and merges, again and again, the most frequent
    pair of neighbours within a word into one token.

    Args:
        tokenizer: whose first three tokens are those for padding, start and end.
    """

    pad_id, bos_id, eos_id = Vocabulary.pad_id, Vocabulary.bos_id, Vocabulary.eos_id
    smallest = 3 + 256  # special tokens and bytes

    def __init__(self, tokenizer: Tokenizer) -> None:
        special = [Vocabulary.pad, Vocabulary.bos, Vocabulary.eos]
        if [tokenizer.id_to_token(number) for number in range(3)] != special:
            raise ValueError(f"the tokenizer's first three tokens must be {', '.join(special)}")
        self._tokenizer = tokenizer
        tokenizer.encode_special_tokens = True  # as text; it is not among what the file says

    @classmethod
    def learned(cls, texts: Iterable[str], size: int) -> "Subwords":
        """Learn the merges from texts, until there are `size` tokens."""
        tokenizer = Tokenizer(models.BPE())
        tokenizer.normalizer = normalizers.NFC()
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
        tokenizer.decoder = decoders.ByteLevel()
        if size < cls.smallest:
            raise ValueError(
                f"size={size}; it must be at least {cls.smallest}: bytes and special tokens"
            )
        trainer = trainers.BpeTrainer(
            vocab_size=size,
            special_tokens=[Vocabulary.pad, Vocabulary.bos, Vocabulary.eos],
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False,
        )
        tokenizer.train_from_iterator(texts, trainer)
        return cls(tokenizer)

    @classmethod
    def from_str(cls, text: str) -> "Subwords":
        """Return what `to_str` made a text of."""
        return cls(Tokenizer.from_str(text))

    def to_str(self) -> str:
        """Return the vocabulary and the merges as JSON."""
        return self._tokenizer.to_str()

    @classmethod
    def read(cls, path: str | Path) -> "Subwords":
        """Read what `write` wrote."""
        try:
            return cls.from_str(Path(path).read_text(encoding="utf-8"))
        except OSError:
            raise
        except Exception as error:  # tokenizers raises plain Exceptions
            raise ValueError(
                f"{str(path)!r} is no file of subwords, or is damaged: {error}"
            ) from None

    def write(self, path: str | Path) -> None:
        """Write the vocabulary and the merges as JSON."""
        Path(path).write_text(self.to_str(), encoding="utf-8")

    def __reduce__(self) -> tuple:  # for copies, which would forget that special tokens are text
        return type(self).from_str, (self.to_str(),)

    def __len__(self) -> int:
        return self._tokenizer.get_vocab_size()

    def __repr__(self) -> str:
        return f"Subwords of {len(self)} tokens"

    def encode(self, text: str, *, bos: bool = False, eos: bool = False) -> Int[Tensor, " length"]:
        """Return the ids of a text's tokens, with `<bos>` before and `<eos>` after where asked for."""
        return self.encode_all([text], bos=bos, eos=eos)[0]

    def encode_all(
        self, texts: Sequence[str], *, bos: bool = False, eos: bool = False
    ) -> list[Int[Tensor, " _length"]]:
        """Encode many texts, in parallel."""
        before, after = [self.bos_id] * bos, [self.eos_id] * eos
        encoded = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [torch.tensor(before + one.ids + after, dtype=torch.long) for one in encoded]

    def decode(self, ids: Int[Tensor, " length"] | Sequence[int]) -> str:
        """Return the text of the tokens before the first `<eos>`."""
        ids = ids.tolist() if isinstance(ids, Tensor) else list(ids)
        if self.eos_id in ids:
            ids = ids[: ids.index(self.eos_id)]
        return self._tokenizer.decode(ids, skip_special_tokens=True).strip()

    def texts_of(self, ids: Int[Tensor, " length"] | Sequence[int]) -> list[str]:
        """Return the text of each token; one that begins a word begins with a space."""
        ids = ids.tolist() if isinstance(ids, Tensor) else ids
        return [self._tokenizer.decode([number]) for number in ids]

    def tokens(self, text: str) -> list[str]:
        """Return the text of each token of a text."""
        return self.texts_of(self.encode(text))
