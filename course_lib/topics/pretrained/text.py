"""Text in, text out, piece by piece as it is generated."""

from collections.abc import Iterable, Iterator, Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from course_lib.topics.pretrained.tokenizer import Tokenizer
from course_lib.transformer import DecoderOnly
from course_lib.transformer.decoding import stream
from course_lib.transformer.decoding.logits_processors import LogitsProcessor


def continue_text(
    model: DecoderOnly,
    tokenizer: Tokenizer,
    text: str | Sequence[int],
    *,
    logits_processors: Iterable[LogitsProcessor] | None = None,
    max_length: int = 50,
    seed: int | None = None,
) -> Iterator[str]:
    """Yield pieces of text that continue `text`, each as soon as it is generated. ::

        for piece in continue_text(model, tokenizer, "The capital of France is"):
            print(piece, end="")

    Args:
        model, tokenizer: from `load_smollm2`.
        text: what to continue, or the ids of its tokens.
        logits_processors: None for the most probable token each time; otherwise each token is sampled from the
            distribution that they leave, such as `[lambda z: top_p(temperature(z, 0.8), 0.9)]`.
        max_length: the maximum number of new tokens.
        seed: makes samples reproducible.
    """
    tokens = stream(
        model,
        encode_prompt(model, tokenizer, text, max_length),
        logits_processors=logits_processors,
        max_length=max_length,
        eos_id=tokenizer.eos_id,
        seed=seed,
    )
    return _pieces(tokenizer, (token.item() for token in tokens))


def chat(
    model: DecoderOnly,
    tokenizer: Tokenizer,
    messages: Sequence[dict[str, str]],
    *,
    logits_processors: Iterable[LogitsProcessor] | None = None,
    max_length: int = 200,
    seed: int | None = None,
) -> Iterator[str]:
    """Yield the answer to the last message of a chat, piece by piece: `continue_text` of `apply_chat_template`.

    Args:
        messages: see `Tokenizer.apply_chat_template`.
    """
    tokens = tokenizer.apply_chat_template(messages)
    options = {"logits_processors": logits_processors, "max_length": max_length, "seed": seed}
    return continue_text(model, tokenizer, tokens, **options)


def encode_prompt(
    model: DecoderOnly, tokenizer: Tokenizer, text: str | Sequence[int], max_length: int
) -> Int[Tensor, "1 length"]:
    """Return the token ids of a text that the model can continue by `max_length` tokens."""
    tokens = tokenizer.encode(text) if isinstance(text, str) else list(text)
    most = model.config.max_length
    if not tokens:
        raise ValueError("text is empty; the model continues a text of at least one token")
    if len(tokens) + max_length > most:
        raise ValueError(
            f"text has {len(tokens)} tokens, and with max_length={max_length} new ones there would be "
            f"{len(tokens) + max_length}; the context of the model is {most}"
        )
    return torch.tensor([tokens], device=model.lm_head.weight.device)


def _pieces(tokenizer: Tokenizer, ids: Iterable[int]) -> Iterator[str]:
    """Decode tokens as they come; a character whose bytes are spread over tokens waits for the last of them."""
    waiting: list[int] = []
    for i in ids:
        if i == tokenizer.eos_id:
            break
        waiting.append(i)
        piece = tokenizer.decode(waiting)
        if not piece.endswith("\ufffd"):
            yield piece
            waiting.clear()
    if waiting:
        yield tokenizer.decode(waiting)
