"""Tokens of a language model, as pictures can show them."""

from collections.abc import Iterable

import torch
from torch import Tensor

from course_lib import messages
from course_lib.plots.tokens import SPACES
from course_lib.plots.words import drawable
from course_lib.topics.pretrained import Tokenizer
from course_lib.transformer import DecoderOnly

_LONGEST = 80  # characters of a text that are quoted


def token_name(piece: str) -> str:
    """Return the text of a token with visible spaces and line ends; □ for what no font of the pictures has."""
    return drawable(piece.translate(SPACES))


def token_names(tokenizer: Tokenizer, ids: Iterable[int]) -> list[str]:
    """Return the names of these tokens, with the id where a part cannot be drawn and many would look alike."""
    return [
        f"{name}{i}" if {*name} & {"\ufffd", "□"} else name
        for i in ids
        for name in [token_name(tokenizer.decode([i]))]
    ]


def quoted(text: str) -> str:
    """Return the text as Python writes it, without the middle of a long one."""
    return repr(
        text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]} … {text[-_LONGEST // 2 :]}"
    )


def read_tokens(model: DecoderOnly, tokenizer: Tokenizer, text: str, *, most: int) -> Tensor:
    """Return the ids of the tokens of a text for a model, shape (1, length).

    Raises:
        ValueError: for another kind of model, fewer than two tokens, and more than `most`.
    """
    if not isinstance(model, DecoderOnly):
        raise ValueError(f"model is a {type(model).__name__}; it must be a DecoderOnly")
    ids = tokenizer.encode(text)
    if len(ids) < 2:
        raise ValueError(messages.TOO_FEW_TOKENS.format(length=len(ids)))
    if len(ids) > most:
        raise ValueError(messages.TEXT_OF_TOO_MANY_TOKENS.format(length=len(ids), most=most))
    return torch.tensor([ids], device=model.lm_head.weight.device)
