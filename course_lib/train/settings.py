"""What a training is made like: everything that a run that resumes must share with the one before."""

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from course_lib.transformer import TransformerConfig
from course_lib.validation import require_one_of, require_probability, require_whole

PRECISIONS = ("float32", "bfloat16")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of a run; its help is that of the command line.

    Attributes:
        data: "phrasebook", "multi30k" or "tatoeba" (both are downloaded), or a folder or file of your own
        source: language of the sources, as in the names of the files
        target: language of the targets
        vocabulary: number of subwords, for both languages together
        d_model: dimension of the vectors between the layers
        heads: attention heads
        layers: of the encoder, and of the decoder
        d_ff: hidden units of the feed-forward networks
        dropout: probability, in training
        norm: pre or post
        positions: sinusoidal, learned, rotary, shaw, t5, alibi or none
        steps: of the optimizer; or give minutes
        minutes: train for so long; the learning rate reaches 0 at the end
        tokens: in a batch, over all processes: sentences times the longest of them
        accumulation: batches per step, one after the other
        lr: largest learning rate
        warmup: steps with a rising learning rate
        smoothing: of the labels
        max_grad_norm: gradients with a larger norm are scaled down to it
        precision: float32 or bfloat16
        evaluate_every: steps between two measurements of held-out loss and BLEU
        average: the weights of so many moments, in the last percents of the budget, are averaged in the end
        seed: of initial weights, order of the data and dropout
    """

    data: str = "phrasebook"
    source: str = "en"
    target: str = "de"
    vocabulary: int = 8000
    d_model: int = 256
    heads: int = 4
    layers: int = 3
    d_ff: int = 1024
    dropout: float = 0.1
    norm: str = "pre"
    positions: str = "sinusoidal"
    steps: int | None = None
    minutes: float | None = None
    tokens: int = 2048
    accumulation: int = 1
    lr: float = 1e-3
    warmup: int = 400
    smoothing: float = 0.1
    max_grad_norm: float = 1.0
    precision: str = "float32"
    evaluate_every: int = 500
    average: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        if (self.steps is None) == (self.minutes is None):
            raise ValueError("give either steps or minutes")
        wholes = "vocabulary d_model heads layers d_ff tokens accumulation warmup evaluate_every average".split()
        require_whole(**{name: getattr(self, name) for name in wholes})
        require_probability(dropout=self.dropout, smoothing=self.smoothing)
        require_one_of(PRECISIONS, precision=self.precision)

    def model_config(self, vocabulary: int) -> TransformerConfig:
        """Return the sizes of the model: one vocabulary, one matrix for both embeddings and the output layer."""
        return TransformerConfig(
            target_vocabulary=vocabulary,
            d_model=self.d_model,
            num_heads=self.heads,
            encoder_layers=self.layers,
            decoder_layers=self.layers,
            d_ff=self.d_ff,
            dropout=self.dropout,
            norm=self.norm,
            positions=self.positions,
            tie_embeddings=True,
        )

    def lr_at(self, step: int, done: float) -> float:
        """Return the learning rate of a step (1, 2, …), a linear warm-up times a linear decay.

        Args:
            step: of the optimizer.
            done: the share of the budget that lies before it.
        """
        return self.lr * min(1.0, step / self.warmup) * max(0.0, 1.0 - done)

    def write(self, path: Path) -> None:
        """Write the settings as JSON."""
        path.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> "Settings":
        """Read what `write` wrote."""
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path} is no file of settings, or is damaged: {error}") from None

    def require_same(self, other: "Settings", folder: Path) -> None:
        """Refuse to continue a run with other settings; a larger budget is allowed."""
        for field in fields(self):
            mine, had = getattr(self, field.name), getattr(other, field.name)
            longer = field.name in ("steps", "minutes") and mine and had and mine > had
            if mine != had and not longer:
                option = field.name.replace("_", "-")
                raise ValueError(
                    f"--{option} {mine}, but {folder} was trained with --{option} {had}; continue with what it was "
                    f"trained with, or name another folder"
                )
