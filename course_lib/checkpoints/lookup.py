"""Four heads that look up four letters of twelve in one step: the first explorer of notebook 05."""

import re

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib import messages
from course_lib.topics.attention_maps import AttentionMap, record_attention
from course_lib.transformer.multihead import MultiHeadAttention

LETTERS, POSITIONS, ASKED = "ABCDEFGH", 12, 4
_FORM = re.compile(rf"([{LETTERS}]{{{POSITIONS}}})((?: (?:\d|1[01])){{{ASKED}}})")


class LookupModel(nn.Module):
    """One multi-head attention layer, whose query is the question and whose keys are the letters.

    Args:
        num_heads: heads of the layer.
        d_model: dimension of the vectors.
    """

    def __init__(self, num_heads: int = 4, d_model: int = 32) -> None:
        super().__init__()
        self.letter = nn.Embedding(len(LETTERS), d_model)
        self.position = nn.Embedding(POSITIONS, d_model)
        #: A vector for each position as the first asked for, as the second, …
        self.asked = nn.Embedding(ASKED * POSITIONS, d_model)
        self.attention = MultiHeadAttention(d_model, num_heads)
        self.out = nn.Linear(d_model, ASKED * len(LETTERS))

    def forward(
        self, letters: Int[Tensor, "batch position"], asked: Int[Tensor, "batch rank"]
    ) -> Float[Tensor, "batch rank letter"]:
        """Return the logits of each letter asked for."""
        keys = self.letter(letters) + self.position.weight  # (batch, position, d_model)
        ranks = POSITIONS * torch.arange(ASKED)
        question = self.asked(asked + ranks).sum(dim=1, keepdim=True)  # (batch, 1, d_model)
        output = self.attention(question, keys).output  # (batch, 1, d_model)
        return self.out(output).view(-1, ASKED, len(LETTERS))


class LetterLookup:
    """Look up letters by position: "ABCDEFGHABCD 3 0 7 5" → "DAHF".

    Args:
        model: a trained `LookupModel`.
    """

    rule = messages.RULE_OF_LETTERS

    def __init__(self, model: LookupModel) -> None:
        self.model = model

    @torch.no_grad()
    def __call__(self, text: str) -> str:
        """Return the letters at the four positions, as the model predicts them."""
        predicted = self.model(*_encode(text))[0].argmax(dim=-1)  # (rank,)
        return "".join(LETTERS[letter] for letter in predicted)

    @torch.no_grad()
    def maps(self, text: str) -> dict[str, AttentionMap]:
        """Return the attention weights, one row per head, as layer → `AttentionMap`."""
        letters, asked = _encode(text)
        with record_attention(self.model) as maps:
            self.model(letters, asked)
        keys = [f"{position} {LETTERS[letter]}" for position, letter in enumerate(letters[0])]
        weights = maps["attention"][0][0].transpose(0, 1)  # (1, heads, position)
        heads = [f"head {number}" for number in range(weights.shape[1])]
        return {"attention": AttentionMap(weights, heads, keys)}


def _encode(text: str) -> tuple[Int[Tensor, "1 position"], Int[Tensor, "1 rank"]]:
    match = _FORM.fullmatch(" ".join(text.upper().split()))
    if match is None:
        raise ValueError(f"text={text!r} must be {messages.RULE_OF_LETTERS}")
    letters, asked = match.groups()
    return (
        torch.tensor([[LETTERS.index(letter) for letter in letters]]),
        torch.tensor([[int(position) for position in asked.split()]]),
    )


def lookup_questions(
    count: int, random: torch.Generator
) -> tuple[Int[Tensor, "count position"], Int[Tensor, "count rank"], Int[Tensor, "count rank"]]:
    """Sample letters, four different positions, and the letters at these positions."""
    letters = torch.randint(len(LETTERS), (count, POSITIONS), generator=random)
    asked = torch.rand(count, POSITIONS, generator=random).argsort(dim=-1)[:, :ASKED]
    return letters, asked, letters.gather(1, asked)
