"""What do the attention weights of a model say about its answers? Readers of study 4b, over seeds.

A reader is one layer of self-attention that predicts the noun that an adjective describes, at the position of the
adjective or of "it"::

    python -m course_lib.experiments.pronouns

trains readers from five seeds with every learning rate and budget of `ARMS`, and measures them on held-out sentences (5
to 6 minutes on one CPU core).
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.checkpoints.pronouns import PronounModel
from course_lib.data import pronoun_sentences, pronoun_vocabulary
from course_lib.experiments.runs import fill, read, where
from course_lib.topics.attention_maps import record_attention
from course_lib.validation import require_one_of

ASKED, PROJECTIONS = ("adjective", "it"), ("three", "shared", "none")
SEEDS = range(5)


class Arm(NamedTuple):
    """Readers that are compared: where they answer, how they are trained, with which learning rates and budgets."""

    asked: str
    rates: tuple[float, ...]
    budgets: tuple[int, ...]
    projections: str = "three"
    removed: float = 0.0


ARMS = {
    "adjective": Arm("adjective", (3e-4, 1e-3, 3e-3), (600, 1800)),
    "it": Arm("it", (3e-4, 1e-3, 3e-3), (1800, 5400)),
    "nouns removed": Arm("adjective", (1e-3,), (1800,), removed=0.25),
    "shared": Arm("adjective", (3e-4, 1e-3, 3e-3, 1e-2), (1800,), projections="shared"),
    "none": Arm("adjective", (3e-4, 1e-3, 3e-3, 1e-2), (1800,), projections="none"),
}


def train_readers(
    asked: str,
    *,
    seeds: Iterable[int],
    lr: float,
    budgets: Sequence[int],
    projections: str = "three",
    removed: float = 0.0,
) -> dict[int, list[PronounModel]]:
    """Train with Adam on batches of 64 sentences, cross-entropy at the position asked, gradients clipped at norm 1.

    Args:
        asked: one of `ASKED`.
        seeds, lr, budgets: of the training.
        projections: "three"; "shared", where queries and keys have one projection; or "none", where the embeddings
            themselves are queries, keys and values.
        removed: the share of training sentences in which "the" stands in place of the noun, and is the label.

    Returns:
        Steps → one model per seed. The models of a smaller budget are those of the larger, earlier.

    Raises:
        ValueError: for an unknown position, and unknown projections.
    """
    require_one_of(ASKED, asked=asked)
    require_one_of(PROJECTIONS, projections=projections)
    tokens, at, answers = _tensors("train", asked)
    labels, (the,) = tokens[range(len(tokens)), answers], pronoun_vocabulary().encode(["the"])
    noun = F.one_hot(answers, tokens.shape[-1]).bool()  # (count, length)
    trained: dict[int, list[PronounModel]] = {steps: [] for steps in sorted(budgets)}
    for seed in seeds:
        torch.manual_seed(seed)
        model = PronounModel(len(pronoun_vocabulary()))  # d_model = 64
        batches = torch.randint(len(tokens), (max(budgets), 64))
        removals = torch.rand(max(budgets), 64) < removed
        parameters = dict(model.named_parameters())
        optimizer = torch.optim.Adam(model.parameters(), lr=lr, fused=True)
        for step, (batch, remove) in enumerate(zip(batches, removals, strict=True), start=1):
            read = tokens[batch].masked_fill(noun[batch] & remove[:, None], the)
            logits = _logits(projections, parameters, read, at[batch])
            loss = F.cross_entropy(logits, labels[batch].masked_fill(remove, the))
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if step in trained:
                reader = PronounModel(len(pronoun_vocabulary()))
                reader.load_state_dict(_spelled_out(projections, model.state_dict()))
                trained[step].append(reader.eval())
    return trained


def _spelled_out(projections: str, parameters: dict[str, Tensor]) -> dict[str, Tensor]:
    """The parameters of a model with three projections that computes the same."""
    if projections == "three":
        return parameters
    spelled = dict(parameters)
    for name in ("q", "k", "v") if projections == "none" else ("k",):
        weight, bias = f"attention.{name}_proj.weight", f"attention.{name}_proj.bias"
        if projections == "none":
            spelled[weight], spelled[bias] = torch.eye(64), torch.zeros(64)
        else:
            spelled[weight] = parameters["attention.q_proj.weight"]
            spelled[bias] = parameters["attention.q_proj.bias"]
    return spelled


def _logits(projections: str, parameters: dict[str, Tensor], tokens: Tensor, at: Tensor) -> Tensor:
    """One `PronounModel` at the positions `at` only, (batch, vocabulary)."""

    def linear(name: str, x: Tensor) -> Tensor:
        if projections == "none" and name != "out":
            return x
        if projections == "shared" and name == "attention.k_proj":
            name = "attention.q_proj"
        return F.linear(x, parameters[f"{name}.weight"], parameters[f"{name}.bias"])

    x = F.embedding(tokens, parameters["embedding.weight"])  # (batch, length, d_model)
    query = linear("attention.q_proj", x[torch.arange(len(x)), at])  # (batch, d_model)
    key, value = linear("attention.k_proj", x), linear("attention.v_proj", x)
    scores = (key @ query[:, :, None]).squeeze(-1) / query.shape[-1] ** 0.5  # (batch, length)
    weights = torch.softmax(scores, dim=-1)
    return linear("out", (weights[:, None] @ value).squeeze(1))


@torch.no_grad()
def measure_reader(model: PronounModel, asked: str) -> dict:
    """Measure a reader on the held-out sentences.

    Returns:
        "accuracy"; "on noun": mean weight on the noun that is meant; "ignored": noun → mean weight on it, how
        often it is predicted, and how often it is predicted after it was replaced by "the" and by "not", for nouns
        with a mean weight below 0.1; "carriers": such a noun → the word that has most of the weight in its place,
        the mean weight on that, and how often the noun is predicted after that word was replaced by "not";
        "never": the nouns that are never predicted; "guess": what is predicted most often after the noun was
        replaced, for adjectives of animals and of places, with its share. For sentences with an adjective of
        animals and of places, in this order: "on adjective": mean weight on it; "weights exchanged" and "values
        exchanged": how often the other noun is predicted if the weights, or the values, are those of the sentence
        with an adjective of the other kind ("wide" or "tired"); "adjective's part": the mean logit of animals
        minus that of places in what the adjective's token adds to the logits.

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
    on_word = torch.zeros(len(tokens), len(vocabulary)).scatter_add_(1, tokens, mine)
    wide, tired, the, no = vocabulary.encode(["wide", "tired", "the", "not"])

    def answered(tokens: Tensor) -> Tensor:
        return model(tokens)[every, at].argmax(-1)

    noun_at = F.one_hot(answers, tokens.shape[-1]).bool()  # (count, length)
    on_noun, predicted = mine[every, answers], answered(tokens)
    guessed, guessed_otherwise = (answered(tokens.masked_fill(noun_at, w)) for w in (the, no))

    exchanged = tokens.clone()
    exchanged[every, three[:, 2]] = torch.where(of_animal, wide, tired)

    def by_kind(measured: Tensor) -> list[float]:
        return [_share(measured[group]) for group in (of_animal, ~of_animal)]

    def other_predicted(weights: Tensor, tokens: Tensor) -> list[float]:
        values = model.attention.v_proj(model.embedding(tokens))
        return by_kind(model.out(weights @ values)[every, at].argmax(-1) == others)

    parts = mine[every, three[:, 2], None] * model.attention.v_proj(
        model.embedding(tokens[every, three[:, 2]])
    )  # (count, d_model)
    animals, places = (tokens[every, three[:, n]].unique() for n in (0, 1))
    added = parts @ model.out.weight.T  # (count, vocabulary)
    gap = added[:, animals].mean(dim=1) - added[:, places].mean(dim=1)

    ignored, carriers, never = {}, {}, []
    for noun in labels.unique():
        group = labels == noun
        if not (predicted[group] == noun).any():
            never.append(word(noun))
        if on_noun[group].mean() < 0.1:
            ignored[word(noun)] = [
                on_noun[group].mean().item(),
                _share(predicted[group] == noun),
                _share(guessed[group] == noun),
                _share(guessed_otherwise[group] == noun),
            ]
            carrier = on_word[group].mean(dim=0).argmax()
            without_it = answered(tokens.masked_fill(tokens == carrier, no))
            carriers[word(noun)] = [
                word(carrier),
                on_word[group, carrier].mean().item(),
                _share(without_it[group] == noun),
            ]
    guess = {}
    for name, group in (("animal", of_animal), ("place", ~of_animal)):
        ((token, count),) = Counter(guessed[group].tolist()).most_common(1)
        guess[name] = [word(token), count / group.sum().item()]
    return {
        "accuracy": _share(predicted == labels),
        "on noun": on_noun.mean().item(),
        "ignored": ignored,
        "carriers": carriers,
        "never": never,
        "guess": guess,
        "on adjective": by_kind(mine[every, three[:, 2]]),
        "weights exchanged": other_predicted(_weights(model, exchanged), tokens),
        "values exchanged": other_predicted(weights, exchanged),
        "adjective's part": [gap[group].mean().item() for group in (of_animal, ~of_animal)],
    }


def recorded(arm: str, lr: float, steps: int) -> list[dict]:
    """Return what `measure_reader` says of the recorded readers, one per seed."""
    return where(read("pronouns"), arm=arm, lr=lr, steps=steps)


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


def run(arm: str, lr: float) -> list[dict]:
    """Train the readers of an arm, and measure them."""
    asked, _, budgets, projections, removed = ARMS[arm]
    how = {"projections": projections, "removed": removed}
    readers = train_readers(asked, seeds=SEEDS, lr=lr, budgets=budgets, **how)
    return [
        {"steps": steps, "seed": seed} | measure_reader(model, asked)
        for steps, models in readers.items()
        for seed, model in zip(SEEDS, models, strict=True)
    ]


PLAN = [{"arm": name, "lr": lr} for name, arm in ARMS.items() for lr in arm.rates]

if __name__ == "__main__":
    fill("pronouns", run, PLAN, __doc__, spec=".3g")
