"""Beam searches as trees."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from course_lib.data.table_model import Prefix, PrefixModel, Table, table_model
from course_lib.train.translator import PhraseTranslator
from course_lib.transformer.decoding import BeamStep, beam_search
from course_lib.widgets.explorer import remembered

LARGEST_BEAM, MOST_PENALTY = 5, 2.0


class Node(NamedTuple):
    """A candidate: the `rank`-th of a `step`, from 0 on; `parent` is the number of the node it continues.

    `log_p` is that of the whole hypothesis; `kind` one of `course_lib.plots.tree.KINDS`.
    """

    step: int
    rank: int
    parent: int
    token: str
    log_p: float
    kind: str


def grow(steps: Sequence[BeamStep], tokens: Sequence[str]) -> list[Node]:
    """Return the tree of the search of one source, the start first.

    Args:
        steps: what `beam_search(..., callback=steps.append)` recorded.
        tokens: the vocabulary.
    """
    nodes, beam = [Node(0, 0, -1, "start", 0.0, "kept")], [0]  # node of each row of the beam
    for number, step in enumerate(steps, 1):
        numbers = {}
        *candidates, rows = (field[0].tolist() for field in step)
        for rank, (row, token, log_p, ended, kept) in enumerate(zip(*candidates, strict=True)):
            if log_p > -math.inf:
                numbers[rank] = len(nodes)
                kind = "complete" if ended else "kept" if kept else "dropped"
                nodes.append(Node(number, rank, beam[row], tokens[token], log_p, kind))
        beam = [numbers.get(rank, 0) for rank in rows]
    return nodes


def searcher(
    source: PhraseTranslator | Table, text: str | None
) -> tuple[Callable[[str | None, int, float], list[Node]], int]:
    """Return a search, and the largest number of its steps; results are cached.

    The search takes the text, the beam size and the length penalty.

    Args:
        source: a translator, or a table.
        text: the first source of the translator; None for a table.

    Raises:
        ValueError: for a source of another kind, and a missing or needless text.
    """
    if isinstance(source, PhraseTranslator):
        if text is None:
            raise ValueError("source is a translator; give a text to start with")
        vocabulary, longest = source.target, source.max_length

        @remembered(source.model)
        def model_of(text: str) -> PrefixModel:
            with torch.no_grad():
                memory = source.model.eval().encode(source.source.encode(source.words(text))[None])

            @torch.no_grad()
            def next_token_logits(prefixes: Sequence[Prefix]) -> Tensor:
                parts = (part.expand(len(prefixes), *part.shape[1:]) for part in memory)
                return source.model.decode(torch.tensor(prefixes), type(memory)(*parts))[:, -1]

            model = PrefixModel(len(vocabulary), next_token_logits)
            searched(model, LARGEST_BEAM, MOST_PENALTY)  # others then meet few new prefixes
            return model

    elif isinstance(source, Mapping):
        if text is not None:
            raise ValueError("text needs source to be a translator; a table has no source")
        model, vocabulary = table_model(source)
        longest = max(map(len, source)) + 2  # one more word, and the end

        def model_of(_: None) -> PrefixModel:
            return model

    else:
        raise ValueError(
            f"source is a {type(source).__name__}; it must be a PhraseTranslator, or a table like "
            f"{{(): {{'the': 0.6, 'a': 0.4}}, ('the',): {{'cat': 1.0}}}}"
        )

    @lru_cache(maxsize=64)
    def searched(model: PrefixModel, beam_size: int, length_penalty: float) -> list[Node]:
        steps = []
        start = torch.tensor([[vocabulary.bos_id]])
        beam_search(
            model, start, beam_size, length_penalty, max_length=longest, callback=steps.append
        )
        return grow(steps, vocabulary.tokens)

    def search(text: str | None, beam_size: int, length_penalty: float) -> list[Node]:
        return searched(model_of(text), beam_size, length_penalty)

    return search, longest
