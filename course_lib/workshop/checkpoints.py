"""Train the models in `course_lib/checkpoints` anew: ``python -m course_lib.workshop.checkpoints``."""

from safetensors.torch import save_file
from torch import manual_seed, nn, set_num_threads

from course_lib.checkpoints import HERE, untrained_date_translator
from course_lib.data import PairBatches, WrittenDate, written_dates
from course_lib.training import History, fit, next_token_loss, warmup_decay
from course_lib.translator import Translator


def train_on_dates(translator: Translator, *, steps: int = 750, seed: int = 0) -> History:
    """Train as notebook 03 does: 20,000 dates, batches of 64, teacher forcing."""
    dates = written_dates(20_000)
    batches = PairBatches(
        [translator.source.encode(one.text) for one in dates],
        [translator.target.encode(one.iso, bos=True, eos=True) for one in dates],
        batch_size=64,
        seed=seed,
    )

    def loss(model: nn.Module, batch):
        logits = model(batch.source, batch.target[:, :-1]).logits
        return next_token_loss(logits, batch.target)

    def rate(step: int) -> float:
        return warmup_decay(step, peak=0.007, steps=steps, warmup=steps // 10)

    return fit(translator.model, batches, loss, steps=steps, rate=rate, seed=seed)


def exact_match(translator: Translator, dates: list[WrittenDate]) -> float:
    """Return the share of dates whose every character is right, free running."""
    done = translator.all([one.text for one in dates])
    return sum(d.text == one.iso for d, one in zip(done, dates, strict=True)) / len(dates)


def main() -> None:
    """Train and save."""
    set_num_threads(1)
    manual_seed(0)
    translator = untrained_date_translator()
    train_on_dates(translator)
    reached = {
        split: str(exact_match(translator, written_dates(1000, split=split)))
        for split in ("held-out days", "held-out style")
    }
    save_file(translator.model.state_dict(), HERE / "dates.safetensors", metadata=reached)
    print("course_lib/checkpoints/dates.safetensors", reached)


if __name__ == "__main__":
    main()
