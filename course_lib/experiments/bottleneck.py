"""How much does a fixed context vector cost, and what does the training budget change?

Encoder-decoders with and without attention learn to copy digits and to rewrite dates, with two training budgets::

    python -m course_lib.experiments.bottleneck

trains each arm of `RATES` with its learning rates from seed 0, chooses the rate with the best validation accuracy, and
trains with that rate, and with those of `FURTHER`, from two further seeds. For dates and 750 steps it also records in
which fields and at which lengths the errors are, and for the decoder with attention, where its weights fall and what
masking a field changes.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.data import PairBatch, PairBatches, date_vocabularies, written_dates
from course_lib.data.dates import WrittenDate
from course_lib.experiments.runs import fill, grid, read, where
from course_lib.topics.recurrent import (
    BahdanauDecoder,
    EncoderOutput,
    FixedContextDecoder,
    GRUEncoder,
    LuongDecoder,
    Seq2Seq,
)
from course_lib.train import fit, linear_schedule_with_warmup, next_token_loss
from course_lib.validation import require_one_of

TASKS = ("copying", "dates")
#: (task, decoder, training steps) → the learning rates that were tried; of equally good ones the first is taken.
RATES = {
    ("copying", "fixed context", 700): (0.003, 0.01, 0.02, 0.04),
    ("copying", "Bahdanau", 700): (0.003, 0.01, 0.02),
    ("copying", "fixed context", 4000): (0.003, 0.01, 0.02, 0.04),
    ("dates", "fixed context", 750): (0.003, 0.01, 0.02, 0.04, 0.08),
    ("dates", "Bahdanau", 750): (0.003, 0.01, 0.02),
    ("dates", "fixed context", 3000): (0.01, 0.02, 0.04),
    ("copying", "Luong", 700): (0.003, 0.01, 0.02, 0.04),
    ("copying", "Bahdanau", 4000): (0.003, 0.001, 0.01, 0.02),
    ("copying", "Luong", 4000): (0.003, 0.01, 0.02),
}
#: Further learning rates of an arm for every seed: the best one of Bahdanau's decoder, or one as good as the best.
FURTHER = {
    ("dates", "fixed context", 750): (0.01, 0.04),
    ("copying", "Bahdanau", 4000): (0.01,),
}
#: Arms of which errors by field and length, and attention weights, are recorded too.
EXAMINED = (("dates", "fixed context", 750), ("dates", "Bahdanau", 750))
SEEDS = (0, 1, 2)
#: Numbers of digits to copy in training are 1 to 10; the test goes on to 14.
LONGEST, TESTED = 10, 14
#: The positions of a field's digits in an ISO 8601 date.
FIELDS = {"year": [0, 1, 2, 3], "month": [5, 6], "day": [8, 9]}
#: Classes of dates by the number of their characters: from, and up to but not including.
LENGTHS = ((6, 12), (12, 18), (18, 24), (24, 40))

DECODERS: dict[str, Callable[[int], nn.Module]] = {
    "fixed context": lambda vocabulary: FixedContextDecoder(vocabulary, 16, 32, 32),
    "Bahdanau": lambda vocabulary: BahdanauDecoder(vocabulary, 16, 32, 32),
    "Luong": lambda vocabulary: LuongDecoder(vocabulary, 16, 32, 32),
}


def digits(count: int, length: int, seed: int) -> Tensor:
    """Return random strings of digits, the tokens 3 to 12, (count, length)."""
    return torch.randint(3, 13, (count, length), generator=torch.Generator().manual_seed(seed))


def copy_pairs(count: int, seed: int = 0) -> tuple[list[Tensor], list[Tensor]]:
    """Return strings of 1 to `LONGEST` digits, and the same with a start and an end token."""
    random = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, LONGEST + 1, (count,), generator=random).tolist()
    sources = [torch.randint(3, 13, (length,), generator=random) for length in lengths]
    return sources, [F.pad(F.pad(source, (1, 0), value=1), (0, 1), value=2) for source in sources]


def encode_dates(dates: Sequence[WrittenDate]) -> tuple[list[Tensor], list[Tensor]]:
    """Return the tokens of the texts, and of their ISO 8601 form with a start and an end token."""
    source, target = date_vocabularies()
    texts = [source.encode(one.text) for one in dates]
    return texts, [target.encode(one.iso, bos=True, eos=True) for one in dates]


@cache
def date_pairs(split: str, count: int, seed: int = 0) -> tuple[list[Tensor], list[Tensor]]:
    """Return random dates of a split, as `encode_dates` encodes them."""
    return encode_dates(written_dates(count, split=split, seed=seed))


def right_tokens(model: Seq2Seq, sources: Sequence[Tensor], targets: Sequence[Tensor]) -> Tensor:
    """Return which tokens of the targets autoregressive decoding generates, (pair, token)."""
    labels = nn.utils.rnn.pad_sequence(list(targets), batch_first=True)[:, 1:]
    source = nn.utils.rnn.pad_sequence(list(sources), batch_first=True)
    generated = model.generate(source, max_length=labels.shape[1]).tokens
    generated = F.pad(generated, (0, labels.shape[1] - generated.shape[1]))
    return generated == labels


def exact_matches(model: Seq2Seq, sources: Sequence[Tensor], targets: Sequence[Tensor]) -> Tensor:
    """Return which targets autoregressive decoding generates without a mistake, (pair,)."""
    return right_tokens(model, sources, targets).all(dim=1)


def copy_accuracy(model: Seq2Seq, seed: int, count: int = 300) -> list[float]:
    """Return the exact-match accuracy for 1 to `TESTED` digits."""
    accuracies = []
    for length in range(1, TESTED + 1):
        source = digits(count, length, seed + length)
        target = F.pad(F.pad(source, (1, 0), value=1), (0, 1), value=2)
        accuracies.append(exact_matches(model, list(source), list(target)).float().mean().item())
    return accuracies


def date_accuracy(model: Seq2Seq, seed: int, split: str = "held-out days") -> float:
    """Return the exact-match accuracy on 1,000 dates that were not in training."""
    return exact_matches(model, *date_pairs(split, 1000, seed)).float().mean().item()


def date_errors(model: Seq2Seq, count: int = 1000) -> dict:
    """Return in how many held-out dates each field is wrong, and the exact match in each class of lengths."""
    sources, targets = date_pairs("held-out days", count)
    right = right_tokens(model, sources, targets)  # (date, token)
    exact, length = right.all(dim=1).float(), torch.tensor([len(source) for source in sources])
    return {
        "wrong": [(~right[:, digits].all(dim=1)).sum().item() for digits in FIELDS.values()],
        "by length": [
            exact[(length >= low) & (length < high)].mean().item() for low, high in LENGTHS
        ],
    }


@torch.no_grad()
def date_attention(model: Seq2Seq, count: int = 1000) -> dict:
    """Return how the attention weights of a model fall on the fields of held-out dates, and what masking does.

    Returns:
        "share": of the weight of a field's digits, the part on the field's characters. "masked": the accuracy of the
        digits of each field by teacher forcing, with the characters of each field masked in turn.
    """
    dates = written_dates(count, split="held-out days")
    sources, targets = date_pairs("held-out days", count)
    source, target = (
        nn.utils.rnn.pad_sequence(list(each), batch_first=True) for each in (sources, targets)
    )
    weights, share, masked = model.generate(source, target.shape[1] - 1).weights, [], []
    encoded = model.encoder(source)
    for field, digits in FIELDS.items():
        mask = encoded.mask.clone()  # (date, 1, source)
        for row, one in enumerate(dates):
            mask[row, 0, list(one.fields[field])] = False
        on_field = weights * (encoded.mask & ~mask)  # (date, target, source)
        share.append(on_field.sum(dim=-1)[:, digits].mean().item())
        logits = model.decoder(target[:, :-1], encoded._replace(mask=mask)).logits
        right = (logits.argmax(dim=-1) == target[:, 1:]).float()
        masked.append([right[:, each].mean().item() for each in FIELDS.values()])
    return {"share": share, "masked": masked}


def _states(decoder: nn.Module, inputs: Tensor, encoded: EncoderOutput) -> Tensor:
    """Return the hidden states of a decoder whose inputs are known in advance, with one call of PyTorch's GRU."""
    W, U = decoder.cell.W, decoder.cell.U
    weights = [W.weight, U.weight, W.bias, U.bias]
    start = decoder.initial_state(encoded)[None]
    return torch.gru(inputs, start, weights, True, 1, 0.0, True, False, True)[0]


def fixed_context_logits(model: Seq2Seq, batch: PairBatch) -> Tensor:
    """Return what `model(source, target)` returns for a `FixedContextDecoder`, all steps at once."""
    decoder, encoded = model.decoder, model.encoder(batch.source)
    word = decoder.embedding(batch.target[:, :-1])  # (batch, target, embedding_size)
    context = encoded.final_state[:, None].expand(-1, word.shape[1], -1)
    states = _states(decoder, torch.cat([word, context], dim=-1), encoded)
    return decoder.readout(states, word, context)


def luong_logits(model: Seq2Seq, batch: PairBatch) -> Tensor:
    """Return what `model(source, target)` returns for a `LuongDecoder` without input feeding, all steps at once."""
    decoder, encoded = model.decoder, model.encoder(batch.source)
    states = _states(decoder, decoder.embedding(batch.target[:, :-1]), encoded)
    context, _ = decoder.attention(states, encoded.memory, encoded.memory, encoded.mask)
    return decoder.readout(torch.tanh(decoder.combine(torch.cat([context, states], dim=-1))))


def teacher_forcing_loss(model: Seq2Seq, batch: PairBatch) -> Tensor:
    """Mean cross-entropy of each label, given the correct tokens before it."""
    if isinstance(model.decoder, FixedContextDecoder):
        logits = fixed_context_logits(model, batch)
    elif isinstance(model.decoder, LuongDecoder):
        logits = luong_logits(model, batch)
    else:  # Bahdanau's hidden states need the context vectors, step by step
        logits = model(batch.source, batch.target[:, :-1]).logits
    return next_token_loss(logits, batch.target)


def train_model(
    task: str,
    decoder: str,
    *,
    steps: int,
    lr: float,
    seed: int = 0,
    pairs: tuple[list[Tensor], list[Tensor]] | None = None,
) -> Seq2Seq:
    """Train an encoder-decoder by teacher forcing, in batches of 64.

    Args:
        task: "copying" or "dates".
        decoder: a key of `DECODERS`.
        steps: number of training steps.
        lr: the peak learning rate; linear warm-up over a tenth of the steps, then linear decay to 0.
        seed: of the initialisation and the batches.
        pairs: sources and targets; those of the task where left out.
    """
    require_one_of(TASKS, task=task)
    torch.manual_seed(seed)
    if task == "copying":
        pairs, sizes = pairs or copy_pairs(64 * steps, seed), (16, 16)
        vocabularies = (13, 13)
    else:
        pairs, sizes = pairs or date_pairs("train", 20_000), (32, 16)
        vocabularies = tuple(map(len, date_vocabularies()))
    model = Seq2Seq(GRUEncoder(vocabularies[0], *sizes), DECODERS[decoder](vocabularies[1]))
    fit(
        model,
        PairBatches(*pairs, batch_size=64, seed=seed),
        teacher_forcing_loss,
        steps=steps,
        lr=lambda step: linear_schedule_with_warmup(step, lr, steps, warmup=steps // 10),
        seed=seed,
    )
    return model


def run(task: str, decoder: str, steps: int, lr: float, seed: int) -> list[dict]:
    """Train and evaluate one model."""
    model = train_model(task, decoder, steps=steps, lr=lr, seed=seed)
    if task == "copying":
        seen = copy_accuracy(model, 10_000)[:LONGEST]
        return [{"validation": sum(seen) / LONGEST, "test": copy_accuracy(model, 20_000)}]
    result = {
        "validation": date_accuracy(model, 1),
        "test": date_accuracy(model, 0),
        "held-out style": date_accuracy(model, 0, "held-out style"),
    }
    if (task, decoder, steps) in EXAMINED:
        result |= date_errors(model)
        result |= date_attention(model) if decoder == "Bahdanau" else {}
    return [result]


def best_rate(rows: list[dict]) -> float:
    """Return the learning rate of an arm whose first seed has the best validation accuracy."""
    return max(where(rows, seed=0), key=lambda row: row["validation"])["lr"]


def rates(task: str, decoder: str, steps: int) -> tuple[str, float]:
    """Return the learning rates that were tried for an arm, in one text, and the best of them."""
    rows = where(read("bottleneck"), task=task, decoder=decoder, steps=steps)
    return ", ".join(map(str, sorted({row["lr"] for row in rows}))), best_rate(rows)


def runs(task: str, decoder: str, steps: int, lr: float | None = None) -> list[dict]:
    """Return the recorded runs of an arm, one per seed, at a learning rate or at its best one."""
    rows = where(read("bottleneck"), task=task, decoder=decoder, steps=steps)
    return where(rows, lr=best_rate(rows) if lr is None else lr)


def tested(task: str, decoder: str, steps: int, lr: float | None = None) -> list:
    """Return the recorded test results of an arm, one per seed, at a learning rate or at its best one."""
    return [run["test"] for run in runs(task, decoder, steps, lr)]


def plan(rows: list[dict]) -> Iterator[dict]:
    """Sweep each arm with the first seed; then take the others at the best learning rate, and at further ones."""
    for what, tried in RATES.items():
        arm = dict(zip(("task", "decoder", "steps"), what, strict=True))
        yield from ({**arm, "lr": lr, "seed": 0} for lr in tried)
        swept = where(rows, **arm, seed=0)
        if len(swept) == len(tried):
            chosen = dict.fromkeys([best_rate(swept), *FURTHER.get(what, ())])
            yield from ({**arm, **one} for one in grid(lr=chosen, seed=SEEDS[1:]))


if __name__ == "__main__":
    fill("bottleneck", run, plan, __doc__, spec=".4f")
