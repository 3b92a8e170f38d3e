"""One layer of self-attention that names the noun an adjective belongs to: the first explorer of notebook 04."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib import messages
from course_lib.data import Vocabulary, pronoun_vocabulary
from course_lib.data.pronouns import OF_ANIMALS, OF_PLACES
from course_lib.topics.attention_maps import AttentionMap, record_attention
from course_lib.transformer.attention import SelfAttention


class PronounModel(nn.Module):
    """Embedding, self-attention, output layer: logits over the vocabulary at every position.

    Args:
        vocabulary_size: the number of words.
        d_model: dimension of the vectors.
    """

    def __init__(self, vocabulary_size: int, d_model: int = 64) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary_size, d_model)
        self.attention = SelfAttention(d_model)
        self.out = nn.Linear(d_model, vocabulary_size)

    def forward(
        self, tokens: Int[Tensor, "batch length"]
    ) -> Float[Tensor, "batch length vocabulary"]:
        """Return the logits."""
        x = self.embedding(tokens)  # (batch, length, d_model)
        return self.out(self.attention(x).output)  # (batch, length, vocabulary)


class PronounReader:
    """Name the noun that the adjective of a sentence belongs to.

    Args:
        model: a trained `PronounModel`.
        vocabulary: the one it was trained with.
    """

    rule = messages.RULE_OF_KNOWN_WORDS

    def __init__(self, model: PronounModel, vocabulary: Vocabulary) -> None:
        self.model, self.vocabulary = model, vocabulary

    @property
    def known(self) -> list[str]:
        """The words of the vocabulary."""
        return [word for word in self.vocabulary.tokens if word.isalpha()]

    @torch.no_grad()
    def __call__(self, text: str) -> str:
        """Return the predicted noun at the adjective, or at the last word of a sentence without one."""
        words, tokens = self._encode(text)
        adjectives = [n for n, word in enumerate(words) if word in OF_ANIMALS + OF_PLACES]
        position = adjectives[0] if adjectives else len(words) - 1
        return self.vocabulary.tokens[self.model(tokens[None])[0, position].argmax()]

    @torch.no_grad()
    def maps(self, text: str) -> dict[str, AttentionMap]:
        """Return the attention weights, layer → `AttentionMap`."""
        words, tokens = self._encode(text)
        with record_attention(self.model) as maps:
            self.model(tokens[None])
        return {"self-attention": AttentionMap(maps["attention"][0][0], words)}

    def _encode(self, text: str) -> tuple[list[str], Int[Tensor, " length"]]:
        words = text.split()
        if not words:
            raise ValueError(messages.EMPTY_TEXT.format(rule=self.rule))
        return words, self.vocabulary.encode(words)


def untrained_pronoun_reader() -> PronounReader:
    """Return the model of `pronoun_reader` before training."""
    vocabulary = pronoun_vocabulary()
    return PronounReader(PronounModel(len(vocabulary)), vocabulary)
