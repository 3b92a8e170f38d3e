"""The tokenizer of SmolLM2, rebuilt from the GGUF file: byte-level BPE, and the template of its chats."""

from collections.abc import Iterable, Sequence

import gguf
import tokenizers
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import decoders, models, pre_tokenizers

_CONTROL = 3  # the type of a special token in a GGUF file


class Tokenizer:
    """Text to token ids and back.

    Byte-level BPE: text is split into words and single digits, each is written as bytes, and pairs are merged in
    the order in which training found them. Decoding gives the text back exactly, but for six control
    characters (such as U+0004) and unassigned ones, whose bytes the vocabulary lacks: they are left out.

    Args:
        bpe: from `byte_level_bpe`.
        eos_id: the token that ends a turn of a chat.
        chat_template: how messages become one text, in the language Jinja.

    Source: Sennrich et al. (2016) for BPE; Radford et al. (2019), "GPT-2", for bytes.
    """

    def __init__(self, bpe: tokenizers.Tokenizer, *, eos_id: int, chat_template: str) -> None:
        self._bpe, self.eos_id = bpe, eos_id
        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        self._template = environment.from_string(chat_template)

    def __len__(self) -> int:
        return self._bpe.get_vocab_size()

    def encode(self, text: str) -> list[int]:
        """Return the ids of the tokens of a text."""
        return self._bpe.encode(text).ids

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of these ids; bytes that are no whole character become "\ufffd"."""
        return self._bpe.decode(list(ids), skip_special_tokens=False)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Return the text of each id by itself."""
        return [self.decode([i]) for i in ids]

    def apply_chat_template(
        self, messages: Sequence[dict[str, str]], *, add_generation_prompt: bool = True
    ) -> str:
        """Return one text for a chat: each message between `<|im_start|>role` and `<|im_end|>`.

        Args:
            messages: dictionaries with "role" ("system", "user" or "assistant") and "content". Where the first
                is no system message, the template adds its own.
            add_generation_prompt: whether the text ends where the assistant's answer begins.
        """
        if not messages or not all({"role", "content"} <= set(message) for message in messages):
            raise ValueError(
                f"messages={messages!r} must be a list of at least one message, each with 'role' and "
                f"'content', e.g. [{{'role': 'user', 'content': 'Hello'}}]"
            )
        return self._template.render(
            messages=list(messages), add_generation_prompt=add_generation_prompt
        )


def byte_level_bpe(
    tokens: Sequence[str], merges: Iterable[str], special: Sequence[str]
) -> tokenizers.Tokenizer:
    """Return the byte-level BPE with this vocabulary.

    Args:
        tokens: in the order of the ids.
        merges: the pairs that are merged, most frequent first, each as "left right".
        special: tokens that are never split, such as `<|im_end|>`.
    """
    pairs = [tuple(merge.split(" ")) for merge in merges]
    bpe = tokenizers.Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, pairs))
    bpe.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    bpe.decoder = decoders.ByteLevel()
    bpe.add_special_tokens(list(special))
    return bpe


def read_tokenizer(reader: gguf.GGUFReader) -> dict:
    """Return what a GGUF file says of its tokenizer, as plain data for `tokenizer_from`."""

    def content(name: str):
        return reader.fields[f"tokenizer.{name}"].contents()

    tokens, kinds = content("ggml.tokens"), content("ggml.token_type")
    special = [token for token, kind in zip(tokens, kinds, strict=True) if kind == _CONTROL]
    return {
        "bpe": byte_level_bpe(tokens, content("ggml.merges"), special).to_str(),
        "eos_id": content("ggml.eos_token_id"),
        "chat_template": content("chat_template"),
    }


def tokenizer_from(data: dict) -> Tokenizer:
    """Return the tokenizer from its plain data."""
    bpe = tokenizers.Tokenizer.from_str(data["bpe"])
    return Tokenizer(bpe, eos_id=data["eos_id"], chat_template=data["chat_template"])
