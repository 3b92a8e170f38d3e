"""What does fine-tuning SmolLM2 by LoRA teach, at which learning rate, and what does the model forget?

The format: a user writes a date in English, as people write it, and the assistant answers with nothing but its ISO
form. Trained are the low-rank matrices A and B beside the query and value projections of all blocks, with Adam, on the
tokens of the answer; the days of the test are in no training text. Forgetting is measured on three English texts and on
the model's own first answers to twelve questions, and at one rate on twelve that resemble no replayed question::

    python -m course_lib.experiments.lora

measures, for every learning rate of `RATES` and three seeds (one at both ends of the sweep), the scores after each of
`BUDGETS` (about fifteen minutes of one core with AVX-512). The frozen weights are in bfloat16, A and B in float32:
without AVX-512 a backward pass takes 60 times as long as in float32.
"""

import math
import random
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from functools import cache

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from course_lib.data.dates import FIRST_DAY, LAST_DAY, WrittenDate, is_held_out, write_date
from course_lib.experiments.runs import fill, grid, read, where
from course_lib.topics.pretrained import Tokenizer, load_smollm2
from course_lib.transformer import DecoderOnly
from course_lib.validation import require_whole

RANK, ALPHA, BATCH = 8, 16, 4
RATES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)
#: The smallest and the largest are run with the first seed only.
REPEATED = RATES[1:-1]
SEEDS, BUDGETS = range(3), (15, 45)
STYLES = ("long", "full", "medium", "weekday")
#: Held-out dates.
TESTED = 50
TEXTS = (
    "The lighthouse at the end of the pier was built in 1871, after a storm had sunk three ships in one night. A keeper "
    "lived in the small house beside it. Every evening he climbed the ninety-four steps, filled the lamp with oil and "
    "wound up the clockwork that turned the lens. Since 1986 the lighthouse has worked without a keeper.",
    "To make pancakes, mix two eggs, a cup of flour, a cup of milk and a pinch of salt until there are no lumps. Let the "
    "batter rest for half an hour. Heat a little butter in a pan, pour in just enough batter to cover the bottom, and "
    "turn the pancake when its edge becomes brown.",
    "Water expands when it freezes, which is why ice floats. The lakes of cold countries therefore freeze from the top. "
    "Below the ice the water stays at about four degrees, the temperature at which it is densest, and fish can survive "
    "the winter there.",
)
#: Forgetting is measured on these questions.
QUESTIONS = (
    "What is the capital of Australia?",
    "Name three colours.",
    "Why is the sky blue?",
    "Write a sentence about a cat.",
    "How do I boil an egg?",
    "What does a teacher do?",
    "When did the Second World War end?",
    "Who was Albert Einstein?",
    "Give me a tip for learning French.",
    "What is photosynthesis?",
    "How many days are in a week?",
    "Tell me about the moon.",
)
#: With replay, the model is also trained on its own first answers to these.
REPLAYED = (
    "What is the capital of France?",
    "Name four animals.",
    "Why is the grass green?",
    "Write a sentence about the sea.",
    "How do I make tea?",
    "What does a doctor do?",
    "When did the First World War begin?",
    "Who was Marie Curie?",
    "Give me a tip for sleeping well.",
    "What is gravity?",
    "How many months are in a year?",
    "Tell me about the sun.",
)
#: No question of `REPLAYED` resembles one of these.
UNLIKE = (
    "Translate 'good morning' into Spanish.",
    "Write a Python function that adds two numbers.",
    "Summarise Hamlet in one sentence.",
    "Write a short email that cancels a meeting.",
    "What is 12 plus 30?",
    "List the ingredients of a pizza.",
    "Is a tomato a fruit or a vegetable?",
    "Suggest a name for a bakery.",
    "Give the opposite of generous.",
    "Where should I go for a beach holiday?",
    "Correct this sentence: She go to school.",
    "What rhymes with light?",
)
#: The losses of the first answers to `UNLIKE` and to `REPLAYED` are measured at this rate alone.
COMPARED_RATE = 3e-3
#: Three dates that are written in a prompt before a fourth, instead of training.
SHOWN = (
    ("May 7, 1991", "1991-05-07"),
    ("Friday, October 23, 2009", "2009-10-23"),
    ("Dec 1, 2030", "2030-12-01"),
)
#: What is said before a date instead of training the model.
PROMPTS = {
    "instruction": ("Write each date as YYYY-MM-DD.", "Yes."),
    "three examples": tuple(part for pair in SHOWN for part in pair),
}
#: Arm → answers of the model itself in each step.
ARMS = {"dates": 0, "dates and replay": 2}


class LoRALinear(nn.Module):
    """A frozen linear layer plus a trained product of low rank: W x + (alpha / rank) B A x.

    Args:
        linear: the layer, without a bias; its weight is not trained.
        rank, alpha: of the product, and its scale times the rank.

    Source: Hu et al. (2022), "LoRA: low-rank adaptation of large language models".
    """

    def __init__(self, linear: nn.Linear, rank: int, alpha: float) -> None:
        super().__init__()
        self.linear, self.scale = linear.requires_grad_(False), alpha / rank
        self.A = nn.Parameter(torch.randn(rank, linear.in_features) / linear.in_features**0.5)
        self.B = nn.Parameter(torch.zeros(linear.out_features, rank))

    def forward(self, x: Float[Tensor, "*batch in"]) -> Float[Tensor, "*batch out"]:
        """Add the product to the layer's output; it is zero before the first step."""
        low = x @ self.A.to(x.dtype).T  # (*batch, rank)
        return self.linear(x) + self.scale * (low @ self.B.to(x.dtype).T)


def add_lora(model: DecoderOnly, rank: int = RANK, alpha: float = ALPHA) -> list[nn.Parameter]:
    """Put a `LoRALinear` around the query and value projections of every block; return what is trained."""
    require_whole(1, rank=rank)
    model.requires_grad_(False)
    trained = []
    for block in model.blocks:
        for name in ("q_proj", "v_proj"):
            layer = LoRALinear(getattr(block.attention, name), rank, alpha)
            setattr(block.attention, name, layer)
            trained += [layer.A, layer.B]
    return trained


def english_dates(count: int, *, held_out: bool = False, seed: int = 0) -> list[WrittenDate]:
    """Sample days from 1950 to 2049 in four English styles; the held-out days are in no other sample."""
    rng = random.Random(f"{held_out} {seed}")
    days = [FIRST_DAY + timedelta(n) for n in range((LAST_DAY - FIRST_DAY).days + 1)]
    days = [day for day in days if is_held_out(day) == held_out]
    return [write_date(rng.choice(days), "en", rng.choice(STYLES)) for _ in range(count)]


def turns(*messages: str) -> str:
    """Return a chat, user first, up to where the next answer begins, without a system message."""
    roles = ("user", "assistant")
    said = (
        f"<|im_start|>{roles[n % 2]}\n{message}<|im_end|>\n" for n, message in enumerate(messages)
    )
    return "".join(said) + "<|im_start|>assistant\n"


def left_padded(rows: Sequence[Sequence[int]], pad_id: int) -> Int[Tensor, "batch length"]:
    """Return the rows as a batch in which all of them end at the last position."""
    longest = max(map(len, rows))
    return torch.tensor([[pad_id] * (longest - len(row)) + list(row) for row in rows])


def answer_loss(
    model: DecoderOnly, tokenizer: Tokenizer, pairs: Sequence[tuple[str, Sequence[int]]]
) -> Float[Tensor, ""]:
    """Return the mean loss in nats of the tokens of all answers; the questions are no labels."""
    prompts = [tokenizer.encode(turns(one), split_special_tokens=False) for one, _ in pairs]
    rows = [[*prompt, *answer] for prompt, (_, answer) in zip(prompts, pairs, strict=True)]
    tokens = left_padded(rows, model.pad_id)  # (batch, length)
    counts = torch.tensor([len(answer) for _, answer in pairs])
    positions = torch.arange(1, tokens.shape[1])
    labelled = positions >= tokens.shape[1] - counts[:, None]  # (batch, length - 1)
    # Padding stands in front, so what a padded row lacks at its start is never a label.
    hidden = model.hidden_states(tokens[:, :-1])[labelled]  # (labels, d_model)
    return F.cross_entropy(model.lm_head(hidden).float(), tokens[:, 1:][labelled])


@torch.no_grad()
def generated(
    model: DecoderOnly, tokenizer: Tokenizer, prompts: Sequence[str], length: int
) -> list[list[int]]:
    """Return the greedy continuations, of at most this many tokens, with the token that ends a turn."""
    rows = [tokenizer.encode(prompt, split_special_tokens=False) for prompt in prompts]
    new = left_padded(rows, model.pad_id)
    cache, columns = model.new_cache(), []
    for _ in range(length):
        states = model.hidden_states(new, cache=cache)[:, -1]
        new = model.lm_head(states).argmax(dim=-1)[:, None]  # (batch, 1)
        columns.append(new)
    rows, end = torch.cat(columns, dim=1).tolist(), tokenizer.eos_id
    return [row[: row.index(end) + 1] if end in row else row for row in rows]


def exact_match(
    model: DecoderOnly,
    tokenizer: Tokenizer,
    dates: Sequence[WrittenDate],
    before: Sequence[str] = (),
) -> float:
    """Return the share of dates that the model answers with exactly their ISO form.

    Args:
        before: the earlier messages of the chat, such as examples.
    """
    prompts = [turns(*before, one.text) for one in dates]
    answers = generated(model, tokenizer, prompts, length=12)
    right = (
        tokenizer.decode(said) == one.iso + tokenizer.decode([tokenizer.eos_id])
        for said, one in zip(answers, dates, strict=True)
    )
    return sum(right) / len(dates)


@torch.no_grad()
def text_loss(model: DecoderOnly, tokenizer: Tokenizer, texts: Sequence[str] = TEXTS) -> float:
    """Return the loss in nats per token, a mean over the texts."""
    total = 0.0
    for text in texts:
        tokens = torch.tensor([tokenizer.encode(text)])
        logits = model(tokens)[0, :-1].float()
        total += F.cross_entropy(logits, tokens[0, 1:]).item()
    return total / len(texts)


def own_answers(
    model: DecoderOnly, tokenizer: Tokenizer, questions: Sequence[str]
) -> list[tuple[str, list[int]]]:
    """Return each question with the first 24 tokens of the model's greedy answer."""
    prompts = [turns(question) for question in questions]
    return list(zip(questions, generated(model, tokenizer, prompts, length=24), strict=True))


def train(
    model: DecoderOnly,
    tokenizer: Tokenizer,
    trained: Sequence[nn.Parameter],
    *,
    lr: float,
    steps: int,
    seed: int,
    replayed: Sequence[tuple[str, list[int]]] = (),
    replays: int = 0,
) -> Iterator[tuple[int, float]]:
    """Take Adam steps on new dates; yield after each its number, from 1, and its loss.

    Args:
        replayed, replays: answers of the model itself, and how many of them are added to each step.
    """
    rng = random.Random(seed)
    dates = english_dates(steps * BATCH, seed=seed)
    taken = updates(
        model, tokenizer, trained, dates, lr, BATCH, lambda: rng.sample(replayed, replays)
    )
    for step, (loss, _) in enumerate(taken, start=1):
        yield step, loss


def updates(
    model: DecoderOnly,
    tokenizer: Tokenizer,
    trained: Sequence[nn.Parameter],
    dates: Sequence[WrittenDate],
    lr: float,
    batch: int,
    more: Callable[[], Sequence[tuple[str, list[int]]]] = list,
) -> Iterator[tuple[float, list[tuple[str, list[int]]]]]:
    """Take Adam steps, each on the right answers to `batch` dates and on `more()`; yield its loss and these answers."""
    optimizer = torch.optim.Adam(trained, lr=lr)
    for first in range(0, len(dates), batch):
        pairs = [
            (one.text, [*tokenizer.encode(one.iso), tokenizer.eos_id])
            for one in dates[first : first + batch]
        ]
        loss = answer_loss(model, tokenizer, [*pairs, *more()])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item(), pairs


@torch.no_grad()
def evaluated(
    model: DecoderOnly,
    tokenizer: Tokenizer,
    dates: Sequence[WrittenDate],
    own: Sequence[tuple[str, list[int]]],
) -> dict:
    """Return the scores of a model; `own` holds the first answers to `QUESTIONS`."""
    skill = {"exact match": exact_match(model, tokenizer, dates)}
    return skill | forgotten(model, tokenizer, own)


@torch.no_grad()
def forgotten(
    model: DecoderOnly, tokenizer: Tokenizer, own: Sequence[tuple[str, list[int]]]
) -> dict:
    """Return how far a model is from what it was; `own` holds its first answers to `QUESTIONS`."""
    prompts = [turns(question) for question, _ in own]
    said = [tokenizer.decode(row) for row in generated(model, tokenizer, prompts, length=12)]
    return {
        "loss of texts": text_loss(model, tokenizer),
        "loss of own answers": answer_loss(model, tokenizer, own).item(),
        "answered with a date": sum(bool(re.match(r"\d{4}-\d\d-\d\d", one)) for one in said),
        "said": said,
    }


@torch.no_grad()
def other_losses(
    model: DecoderOnly,
    tokenizer: Tokenizer,
    unlike: Sequence[tuple[str, list[int]]],
    replayed: Sequence[tuple[str, list[int]]],
) -> dict[str, float]:
    """Return the loss of the model's own first answers to `UNLIKE` and to `REPLAYED`."""
    return {
        "loss of unlike answers": answer_loss(model, tokenizer, unlike).item(),
        "loss of replayed answers": answer_loss(model, tokenizer, replayed).item(),
    }


def recorded(arm: str, lr: float, budget: int) -> list[dict]:
    """Return the recorded scores of an arm, one per seed."""
    return where(read("lora"), arm=arm, lr=lr, budget=budget)


def before() -> dict:
    """Return the recorded scores before training."""
    (row,) = where(read("lora"), arm="before")
    return row


def by_rate(arm: str, budget: int, key: str) -> list[list[float]]:
    """Return one recorded score of an arm after a budget: for each seed, its values by learning rate; NaN: not run."""
    runs = [{row["seed"]: row[key] for row in recorded(arm, lr, budget)} for lr in RATES]
    return [[run.get(seed, math.nan) for run in runs] for seed in SEEDS]


@cache
def _answers() -> list[list[tuple[str, list[int]]]]:
    """The model's own first answers to `QUESTIONS`, `REPLAYED` and `UNLIKE`."""
    model, tokenizer = load_smollm2(torch.bfloat16)
    return [own_answers(model, tokenizer, some) for some in (QUESTIONS, REPLAYED, UNLIKE)]


def run(arm: str, lr: float | None = None, seed: int = 0) -> list[dict]:
    """Train once; return the scores after each budget, or with the arm "before" those without training."""
    (own, replayed, unlike), dates = _answers(), english_dates(TESTED, held_out=True)
    torch.manual_seed(seed)
    model, tokenizer = load_smollm2(torch.bfloat16)
    if arm == "before":
        scores = evaluated(model, tokenizer, dates, own)
        for name, messages in PROMPTS.items():
            scores[name] = exact_match(model, tokenizer, dates, messages)
        return [scores | other_losses(model, tokenizer, unlike, replayed)]
    options = {"lr": lr, "steps": BUDGETS[-1], "seed": seed, "replays": ARMS[arm]}
    rows, losses = [], []
    for step, loss in train(model, tokenizer, add_lora(model), replayed=replayed, **options):
        losses.append(loss)
        if step in BUDGETS:
            rows.append({"budget": step} | evaluated(model, tokenizer, dates, own))
            if lr == COMPARED_RATE:
                rows[-1] |= other_losses(model, tokenizer, unlike, replayed)
    rows[-1]["losses"] = losses
    return rows


PLAN = (
    {"arm": "before"},
    *grid(seed=[0], arm=ARMS, lr=RATES),
    *grid(seed=SEEDS[1:], arm=ARMS, lr=REPEATED),
)

if __name__ == "__main__":
    fill("lora", run, PLAN, __doc__)
