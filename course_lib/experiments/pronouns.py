"""What do the attention weights of a model say about its answers? Readers of notebook 04, over seeds.

A reader is one layer of self-attention that predicts the noun that an adjective describes, at the position of the
adjective or of "it"::

    python -m course_lib.experiments.pronouns

trains readers from five seeds with every learning rate and budget, measures them on held-out sentences and
records the result beside this file (3 to 4 minutes on one CPU core).
"""

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from copy import deepcopy
from functools import cache
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import stack_module_state

from course_lib.checkpoints.pronouns import PronounModel
from course_lib.data import pronoun_sentences, pronoun_vocabulary
from course_lib.experiments.record import read, rounded, write
from course_lib.inspection import record_attention
from course_lib.validation import require_one_of

RECORD = Path(__file__).with_suffix(".json")
LEARNING_RATES = {"adjective": (3e-3,), "it": (1e-3, 3e-3, 1e-2)}
ASKED = tuple(LEARNING_RATES)
BUDGETS = (600, 1800)
SEEDS = range(5)


def train_readers(
    asked: str, *, seeds: Iterable[int], lr: float, budgets: Sequence[int]
) -> dict[int, list[PronounModel]]:
    """Train with Adam on batches of 64 sentences, cross-entropy at the position asked, gradients clipped at norm 1.

    The models are independent and trained side by side, which takes a fraction of the time.

    Returns:
        Steps → one model per seed. The models of a smaller budget are those of the larger, earlier.

    Raises:
        ValueError: for an unknown position.
    """
    require_one_of(ASKED, asked=asked)
    tokens, at, answers = _tensors("train", asked)
    labels, most = tokens[range(len(tokens)), answers], max(budgets)
    starts, batches, trained = [], [], {}
    for seed in seeds:
        torch.manual_seed(seed)
        starts.append(PronounModel(len(pronoun_vocabulary())))  # d_model = 64
        batches.append(torch.randint(len(tokens), (most, 64)))
    parameters, _ = stack_module_state(starts)  # name → (seed, …)
    optimizer = torch.optim.Adam(parameters.values(), lr=lr, fused=True)
    for step, batch in enumerate(torch.stack(batches, dim=1), start=1):  # (seed, 64)
        logits = torch.vmap(_logits)(parameters, tokens[batch], at[batch])
        loss = F.cross_entropy(logits.flatten(0, 1), labels[batch].flatten(), reduction="sum")
        optimizer.zero_grad()
        (loss / 64).backward()
        _clip_each(parameters)
        optimizer.step()
        if step in budgets:
            trained[step] = [deepcopy(start).eval() for start in starts]
            for n, model in enumerate(trained[step]):
                model.load_state_dict({name: p.detach()[n] for name, p in parameters.items()})
    return trained


def _logits(parameters: dict[str, Tensor], tokens: Tensor, at: Tensor) -> Tensor:
    """One `PronounModel` at the positions `at` only, (batch, vocabulary)."""

    def linear(name: str, x: Tensor) -> Tensor:
        return F.linear(x, parameters[f"{name}.weight"], parameters[f"{name}.bias"])

    x = F.embedding(tokens, parameters["embedding.weight"])  # (batch, length, d_model)
    query = linear("attention.q_proj", x[torch.arange(len(x)), at])  # (batch, d_model)
    key, value = linear("attention.k_proj", x), linear("attention.v_proj", x)
    scores = (key @ query[:, :, None]).squeeze(-1) / query.shape[-1] ** 0.5  # (batch, length)
    weights = torch.softmax(scores, dim=-1)
    return linear("out", (weights[:, None] @ value).squeeze(1))


@torch.no_grad()
def _clip_each(parameters: dict[str, Tensor]) -> None:
    """Clip the gradient of each model at norm 1."""
    grads = [parameter.grad for parameter in parameters.values()]
    norm = torch.stack([grad.flatten(1).norm(dim=1) for grad in grads]).norm(dim=0)  # (seed,)
    factor = (1 / (norm + 1e-6)).clamp(max=1)
    for grad in grads:
        grad.mul_(factor.view(-1, *[1] * (grad.dim() - 1)))


@torch.no_grad()
def measure_reader(model: PronounModel, asked: str) -> dict:
    """Measure a reader on the held-out sentences.

    Returns:
        "accuracy"; "on noun": mean weight on the noun that is meant; "ignored": noun → mean weight on it, how
        often it is predicted, and how often it is predicted after it was replaced by "the", for nouns with a mean
        weight below 0.1; "guess": what is predicted most often, after the noun was replaced, for adjectives of
        animals and of places, with its share. For sentences with an adjective of animals and of places, in this
        order: "on adjective": mean weight on it; "weights exchanged" and "values exchanged": how often the other
        noun is predicted if the weights, or the values, are those of the sentence with an adjective of the other
        kind ("wide" or "tired").

    Raises:
        ValueError: for an unknown position.
    """
    require_one_of(ASKED, asked=asked)
    vocabulary, sentences = pronoun_vocabulary(), pronoun_sentences("held out")
    tokens, at, answers = _tensors("held out", asked)
    every = torch.arange(len(tokens))
    labels, word = tokens[every, answers], lambda token: vocabulary.tokens[token]
    three = torch.tensor([[one.animal, one.place, one.adjective] for one in sentences])
    of_animal = answers == three[:, 0]
    others = tokens[every, torch.where(of_animal, three[:, 1], three[:, 0])]

    weights = _weights(model, tokens)
    mine = weights[every, at]  # (count, key)
    on_noun, predicted = mine[every, answers], model(tokens)[every, at].argmax(-1)
    without = tokens.clone()
    without[every, answers] = vocabulary.encode(["the"])
    guessed = model(without)[every, at].argmax(-1)

    wide, tired = vocabulary.encode(["wide", "tired"])
    exchanged = tokens.clone()
    exchanged[every, three[:, 2]] = torch.where(of_animal, wide, tired)

    def by_kind(measured: Tensor) -> list[float]:
        return [_share(measured[group]) for group in (of_animal, ~of_animal)]

    def other_predicted(weights: Tensor, tokens: Tensor) -> list[float]:
        values = model.attention.v_proj(model.embedding(tokens))
        return by_kind(model.out(weights @ values)[every, at].argmax(-1) == others)

    ignored = {}
    for noun in labels.unique():
        group = labels == noun
        if on_noun[group].mean() < 0.1:
            ignored[word(noun)] = [
                on_noun[group].mean().item(),
                _share(predicted[group] == noun),
                _share(guessed[group] == noun),
            ]
    guess = {}
    for name, group in (("animal", of_animal), ("place", ~of_animal)):
        ((token, count),) = Counter(guessed[group].tolist()).most_common(1)
        guess[name] = [word(token), count / group.sum().item()]
    return {
        "accuracy": _share(predicted == labels),
        "on noun": on_noun.mean().item(),
        "ignored": ignored,
        "guess": guess,
        "on adjective": by_kind(mine[every, three[:, 2]]),
        "weights exchanged": other_predicted(_weights(model, exchanged), tokens),
        "values exchanged": other_predicted(weights, exchanged),
    }


def name_of(asked: str, lr: float, steps: int) -> str:
    """Return the key of a reader in the record."""
    return f"{asked} {lr:g} {steps}"


@cache
def recorded() -> dict[str, list[dict]]:
    """Return the recorded result of the long version: `name_of(…)` → what `measure_reader` says, per seed."""
    return read(RECORD)


def _tensors(split: str, asked: str) -> tuple[Tensor, Tensor, Tensor]:
    """Tokens (count, length), and the positions asked and of the answers, (count,) each."""
    sentences = pronoun_sentences(split)
    tokens = torch.stack([pronoun_vocabulary().encode(one.words) for one in sentences])
    at = torch.tensor([getattr(one, asked) for one in sentences])
    return tokens, at, torch.tensor([one.answer for one in sentences])


def _weights(model: PronounModel, tokens: Tensor) -> Tensor:
    with record_attention(model) as maps:
        model(tokens)
    return maps["attention"][0][:, 0]  # (count, query, key)


def _share(hits: Tensor) -> float:
    return hits.float().mean().item()


def main() -> None:
    """Run the long version, or the positions given as arguments, and record it."""
    torch.set_num_threads(1)
    for asked in sys.argv[1:] or ASKED:
        for lr in LEARNING_RATES[asked]:
            readers = train_readers(asked, seeds=SEEDS, lr=lr, budgets=BUDGETS)
            for steps, models in readers.items():
                measured = [measure_reader(model, asked) for model in models]
                _record(name_of(asked, lr, steps), measured)


def _record(name: str, measured: list[dict]) -> None:
    """Add to the record at once, so that parts of the long version can run side by side."""
    kept = rounded(measured, ".3g")
    write(RECORD, dict(sorted((read(RECORD) | {name: kept}).items())))
    print(name, [one["accuracy"] for one in kept], flush=True)


if __name__ == "__main__":
    main()
