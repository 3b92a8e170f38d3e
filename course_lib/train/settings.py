"""What a training is made like: everything that a run that resumes must share with the one before."""

import json
import math
import re
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from course_lib.data.sentence_pairs import LANGUAGES, SentencePairs
from course_lib.data.subwords import Subwords
from course_lib.transformer import ENCODINGS, NORMS, TransformerConfig
from course_lib.validation import (
    require_divides,
    require_one_of,
    require_positive,
    require_probability,
    require_whole,
)

PRECISIONS = ("float32", "bfloat16")
_MAY_GROW = ("steps", "minutes")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of a run; its help is that of the command line.

    Attributes:
        data: "phrasebook", "multi30k" or "tatoeba" (both are downloaded), or a folder or a table of your own
        source: language of the sources: of the files of a folder, of named data; (what the data begin with)
        target: language of the targets; it chooses the tokenisation of BLEU, too
        columns: of a table, those of source and target: 1,2, or 2,1 for the other direction
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
        skip_longer: leave out pairs for training of which one side has more tokens than this
        cut_longer: cut sentences for training to so many tokens
        accumulation: batches per step, one after the other
        lr: largest learning rate
        warmup: steps with a rising learning rate
        smoothing: of the labels
        max_grad_norm: gradients with a larger norm are scaled down to it; 0 turns this off
        precision: float32 or bfloat16
        evaluate_every: steps between two measurements of held-out loss, BLEU and chrF
        average: the weights of so many moments, in the last percents of the budget, are averaged in the end
        seed: of initial weights, order of the data and dropout
        fingerprint: of the pairs of sentences; a run notes it
    """

    data: str = "phrasebook"
    source: str | None = None
    target: str | None = None
    columns: str | None = None
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
    skip_longer: int | None = None
    cut_longer: int | None = None
    accumulation: int = 1
    lr: float = 1e-3
    warmup: int = 400
    smoothing: float = 0.1
    max_grad_norm: float = 1.0
    precision: str = "float32"
    evaluate_every: int = 500
    average: int = 5
    seed: int = 0
    fingerprint: str | None = None

    def __post_init__(self) -> None:
        if (self.steps is None) == (self.minutes is None):
            raise ValueError("give either steps or minutes")
        wholes = "steps d_model heads layers d_ff tokens accumulation warmup evaluate_every average"
        require_whole(**self._given(wholes))
        require_whole(Subwords.smallest, vocabulary=self.vocabulary)
        require_whole(3, **self._given("skip_longer cut_longer"))  # start, one token, end
        require_whole(0, seed=self.seed)
        if self.seed >= 2**32:
            raise ValueError(f"seed={self.seed} is not below 2**32")
        if self.skip_longer is not None and self.cut_longer is not None:
            raise ValueError("give either skip_longer or cut_longer")
        require_positive(lr=self.lr, **self._given("minutes"))
        if not 0 <= self.max_grad_norm < math.inf:
            raise ValueError(
                f"max_grad_norm={self.max_grad_norm} is no finite number from 0 on; 0 turns clipping off"
            )
        require_probability(dropout=self.dropout, smoothing=self.smoothing)
        require_one_of(PRECISIONS, precision=self.precision)
        require_one_of(NORMS, norm=self.norm)
        require_one_of(ENCODINGS, positions=self.positions)
        if self.columns is not None and not re.fullmatch(r"[1-9]\d*,[1-9]\d*", self.columns):
            raise ValueError(
                f"columns={self.columns!r} must be two numbers of columns, such as '2,1'"
            )
        require_divides(heads=self.heads, d_model=self.d_model)
        try:
            self.model_config(self.vocabulary).make_positions(bidirectional=True)
        except ValueError as refused:
            raise ValueError(
                f"positions={self.positions!r} with d_model={self.d_model} and heads={self.heads}: {refused}"
            ) from None

    def _given(self, names: str) -> dict[str, float]:
        """Return those of these settings that are not None."""
        return {
            name: getattr(self, name) for name in names.split() if getattr(self, name) is not None
        }

    @property
    def table_columns(self) -> tuple[int, int] | None:
        """The columns as `sentence_pairs` takes them."""
        if self.columns is None:
            return None
        first, second = map(int, self.columns.split(","))
        return first, second

    def of(self, pairs: SentencePairs) -> "Settings":
        """Return the settings with what these pairs are: languages, columns and fingerprint."""
        columns = None if pairs.columns is None else "{},{}".format(*pairs.columns)
        return replace(
            self,
            source=pairs.source or self.source,
            target=pairs.target or self.target,
            columns=columns,
            fingerprint=pairs.fingerprint(),
        )

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
        """Read what `write` wrote, also before there were fingerprints and directions."""
        try:
            said = json.loads(path.read_text(encoding="utf-8"))
            if (
                "fingerprint" not in said
                and said["data"] in LANGUAGES
                and said["data"] != "multi30k"
            ):
                # whatever had been asked for
                said["source"], said["target"] = LANGUAGES[said["data"]]
            return cls(**said)
        except (ValueError, TypeError, KeyError) as error:
            raise ValueError(f"{path} is no file of settings, or is damaged: {error}") from None

    def require_same(self, other: "Settings", folder: Path) -> None:
        """Refuse to continue a run with other settings or other data; a larger budget is allowed.

        The same sentences may be in another place. Without a fingerprint, as in older runs, the place must be the same.
        """
        free = {"fingerprint"}
        if other.fingerprint is not None:
            free |= {"data"}
        elif self.columns is not None:  # a table, which was always read from left to right
            free |= {"source", "target"}
            other = replace(other, columns="1,2")
        for field in fields(self):
            mine, had = getattr(self, field.name), getattr(other, field.name)
            longer = field.name in _MAY_GROW and mine and had and mine > had
            if mine != had and not longer and field.name not in free:
                option = field.name.replace("_", "-")
                raise ValueError(
                    f"--{option} {mine}, but {folder} was trained with --{option} {had}; continue with what it was "
                    f"trained with, or name another folder"
                )
        if other.fingerprint not in (None, self.fingerprint):
            raise ValueError(
                f"the sentences of --data {self.data} are not those that {folder} was trained with (--data "
                f"{other.data}): their fingerprint is {self.fingerprint} and not {other.fingerprint}. Continue with the "
                f"same files, wherever they are, or name another folder"
            )
