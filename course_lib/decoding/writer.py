"""A model that writes one token after the other, on a cache."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.inputs import require_whole
from course_lib.transformer import DecoderOnly, Transformer


class Writer:
    """Give a model the tokens that were written last, and get logits for the next one.

    Args:
        model: a `Transformer`, which reads `source` and writes from the start token on, or a `DecoderOnly`,
            which continues `source`.
        source: (batch, length).
        bos_id: the start token of a `Transformer`'s target.

    Attributes:
        logits: (batch, vocabulary), for the next token.
        cache: what is kept of the tokens so far.

    Raises:
        ValueError: for another model, a source that it refuses, and a start token outside the vocabulary.
    """

    def __init__(self, model: nn.Module, source: Int[Tensor, "batch length"], *, bos_id: int = 1):
        if not isinstance(model, Transformer | DecoderOnly):
            raise ValueError(
                f"model is a {type(model).__name__}; it must be a Transformer or a DecoderOnly"
            )
        require_whole(0, bos_id=bos_id)
        size = model.config.target_vocabulary
        if bos_id >= size:
            raise ValueError(
                f"bos_id={bos_id}, but the vocabulary has {size} tokens, 0 to {size - 1}"
            )
        self._model, self.cache = model, model.new_cache()
        self._memory = None
        if isinstance(model, Transformer):
            self._memory = model.encode(source)
            source = source.new_full((len(source), 1), bos_id)
        self.logits = self._read(source)

    def write(self, token: Int[Tensor, " batch"]) -> Float[Tensor, "batch vocabulary"]:
        """Write one more token in every sequence; return logits for the one behind it."""
        self.logits = self._read(token[:, None])
        return self.logits

    def select(self, rows: Int[Tensor, " new_batch"]) -> None:
        """Go on with these sequences of the batch, in this order; one may be taken several times."""
        self.cache.select(rows)
        self.logits = self.logits[rows]
        if self._memory is not None:
            self._memory = type(self._memory)(*(part[rows] for part in self._memory))

    @torch.no_grad()
    def _read(self, tokens: Int[Tensor, "batch new"]) -> Float[Tensor, "batch vocabulary"]:
        if self._memory is None:
            return self._model(tokens, cache=self.cache)[:, -1]
        return self._model.decode(tokens, self._memory, cache=self.cache)[:, -1]
