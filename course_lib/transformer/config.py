"""What a Transformer is made like."""

from dataclasses import dataclass

from course_lib.blocks import ACTIVATIONS, NORMS
from course_lib.inputs import (
    require_divides,
    require_one_of,
    require_probability,
    require_whole,
)
from course_lib.positions import ENCODINGS


@dataclass(frozen=True, kw_only=True)
class TransformerConfig:
    """The sizes and choices of a `Transformer` or a `DecoderOnly`; the defaults are the paper's base model.

    Attributes:
        target_vocabulary: how many tokens there are to write.
        source_vocabulary: how many there are to read; None for one vocabulary on both sides.
        d_model: the size of every vector between the blocks.
        num_heads: of each attention; divides `d_model`.
        num_kv_heads: how many heads keys and values have; None for `num_heads`.
        encoder_layers, decoder_layers: how many blocks.
        d_ff: the inner size of the networks.
        dropout: of attention weights, inside the networks, of what each sublayer adds, and of the vectors
            that enter the first block; while training.
        norm: "post" as in the paper, or "pre"; see `course_lib.blocks.Residual`.
        final_norm: whether a norm follows the last block; None for "where norm is pre", which needs it.
        positions: one of `course_lib.positions.ENCODINGS`.
        max_length: the longest sequence for "learned" positions; the others have no end.
        tie_embeddings: whether the output layer is the target's embedding table; with one vocabulary the
            source's too, three in one.
        activation: of the networks, "relu" or "gelu".
        pad_id: the token that fills up shorter sequences, and that nobody looks at.

    Raises:
        ValueError: for a configuration that cannot work; it names the field.

    Source: Vaswani and others (2017), table 3.
    """

    target_vocabulary: int
    source_vocabulary: int | None = None
    d_model: int = 512
    num_heads: int = 8
    num_kv_heads: int | None = None
    encoder_layers: int = 6
    decoder_layers: int = 6
    d_ff: int = 2048
    dropout: float = 0.1
    norm: str = "post"
    final_norm: bool | None = None
    positions: str = "sinusoidal"
    max_length: int = 512
    tie_embeddings: bool = False
    activation: str = "relu"
    pad_id: int = 0

    def __post_init__(self) -> None:
        for name in ("target_vocabulary", "d_model", "num_heads", "d_ff", "max_length"):
            require_whole(**{name: getattr(self, name)})
        for name in ("encoder_layers", "decoder_layers"):
            require_whole(**{name: getattr(self, name)})
        require_divides(num_heads=self.num_heads, d_model=self.d_model)
        if self.num_kv_heads is not None:
            require_divides(num_kv_heads=self.num_kv_heads, num_heads=self.num_heads)
        require_probability(dropout=self.dropout)
        require_one_of(NORMS, norm=self.norm)
        require_one_of(ENCODINGS, positions=self.positions)
        require_one_of(ACTIVATIONS, activation=self.activation)
        for name, choices in (
            ("final_norm", (None, True, False)),
            ("tie_embeddings", (True, False)),
        ):
            if getattr(self, name) not in choices:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} must be one of {', '.join(map(repr, choices))}"
                )
        if self.source_vocabulary is not None:
            require_whole(source_vocabulary=self.source_vocabulary)
        require_whole(0, pad_id=self.pad_id)
        for name in ("source_vocabulary", "target_vocabulary"):
            size = getattr(self, name)
            if size is not None and self.pad_id >= size:
                raise ValueError(f"pad_id={self.pad_id} must be below {name}={size}")
        self._require_pairs()

    def _require_pairs(self) -> None:
        """Refuse odd sizes where an encoding works on pairs of numbers."""
        if self.positions == "sinusoidal" and self.d_model % 2:
            raise ValueError(
                f"d_model={self.d_model} is odd, but positions='sinusoidal' needs pairs of numbers; "
                f"use an even d_model"
            )
        if self.positions == "rotary" and self.d_head % 2:
            raise ValueError(
                f"d_model={self.d_model} and num_heads={self.num_heads} make heads of {self.d_head} "
                f"numbers, but positions='rotary' turns pairs; use an even d_model / num_heads"
            )

    @property
    def d_head(self) -> int:
        """The size of a head."""
        return self.d_model // self.num_heads

    @property
    def has_final_norm(self) -> bool:
        """Whether a norm follows the last block."""
        return self.norm == "pre" if self.final_norm is None else self.final_norm
