"""The tokenizer of SmolLM2, rebuilt from the GGUF file: byte-level BPE, and the template of its chats."""

import re
from collections.abc import Callable, Iterable, Sequence

import gguf
import tokenizers
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import decoders, models, pre_tokenizers

from course_lib.validation import require_one_of

_CONTROL = 3  # the type of a special token in a GGUF file


class Tokenizer:
    """Text to token ids and back.

    Text is text: what looks like a special token is spelled in ordinary ones, so that a user's message cannot end its
    turn. The special tokens of a chat come from its template.

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
        bpe.encode_special_tokens = True  # as text
        special = [one.content for one in bpe.get_added_tokens_decoder().values()]
        of_chats = [re.escape(token) for token in special if token in chat_template]
        self._special = re.compile(f"({'|'.join(of_chats) or '(?!)'})")
        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        self._template = environment.from_string(chat_template)

    def __len__(self) -> int:
        return self._bpe.get_vocab_size()

    def encode(self, text: str, *, split_special_tokens: bool = True) -> list[int]:
        """Return the ids of the tokens of a text.

        Args:
            text: of any kind.
            split_special_tokens: whether `<|im_start|>` and `<|im_end|>` are spelled in ordinary tokens, as text is;
                False to encode a whole chat that was written by hand. (The default of Hugging Face is False.)
        """
        return self._bpe.encode(text).ids if split_special_tokens else self._parsed(text)

    def _parsed(self, text: str, fill: Callable[[str], str] = str) -> list[int]:
        """Encode a text with the special tokens of chats; `fill` is applied to what lies between them."""
        ids: list[int] = []
        for number, part in enumerate(self._special.split(text)):
            special = number % 2 == 1
            ids += [self._bpe.token_to_id(part)] if special else self._bpe.encode(fill(part)).ids
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of these ids; bytes that are no whole character become "\ufffd"."""
        return self._bpe.decode(list(ids), skip_special_tokens=False)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Return the text of each id by itself."""
        return [self.decode([i]) for i in ids]

    def apply_chat_template(
        self,
        messages: Sequence[dict[str, str]],
        *,
        tokenize: bool = True,
        add_generation_prompt: bool = True,
    ) -> list[int] | str:
        """Return a chat as token ids: each message between `<|im_start|>role` and `<|im_end|>`.

        Whatever a message says is text: `<|im_end|>` in it does not end it.

        Args:
            messages: dictionaries with "role" ("system", "user" or "assistant") and "content". Where the first
                is no system message, the template adds its own.
            tokenize: False for the text, to look at: encoded as a whole, a message could end itself.
            add_generation_prompt: whether the text ends where the assistant's answer begins.
        """
        texts = [isinstance(one, dict) and isinstance(one.get("content"), str) for one in messages]
        if not texts or not all(texts) or not all("role" in one for one in messages):
            raise ValueError(
                f"messages={messages!r} must be a list of at least one message, each with 'role' and "
                f"'content', e.g. [{{'role': 'user', 'content': 'Hello'}}]"
            )
        for message in messages:
            require_one_of(("system", "user", "assistant"), role=message["role"])
        options = {"add_generation_prompt": add_generation_prompt}
        if not tokenize:
            return self._template.render(messages=list(messages), **options)
        places = [one | {"content": f"\0{number}\0"} for number, one in enumerate(messages)]

        def fill(part: str) -> str:
            return re.sub("\0(\\d+)\0", lambda found: messages[int(found[1])]["content"], part)

        return self._parsed(self._template.render(messages=places, **options), fill)


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
