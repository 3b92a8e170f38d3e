"""What a Transformer is made like."""

from dataclasses import dataclass
from typing import Any

from course_lib.transformer.positions import Positions, make_positions
from course_lib.validation import (
    require_divides,
    require_whole,
)

__all__ = ["TransformerConfig"]


@dataclass(frozen=True, kw_only=True)
class TransformerConfig:
    """The sizes and choices of a `Transformer` or a `DecoderOnly`; the defaults are the paper's base model.

    Attributes:
        target_vocabulary: the number of target tokens.
        source_vocabulary: the number of source tokens; None for one vocabulary on both sides.
        d_model: the dimension of every vector between the layers.
        num_heads: of each attention; divides `d_model`.
        num_kv_heads: the number of key/value heads; None for `num_heads`.
        encoder_layers, decoder_layers: how many there are.
        d_ff: the number of hidden units of the feed-forward networks.
        dropout: of attention weights, of the hidden units of the FFN, of the output of each sublayer, and of
            the embeddings; in training mode.
        norm: "post" as in the paper, or "pre"; see `course_lib.transformer.layers`.
        norm_type: "layer" for layer normalisation as in the paper, or "rms" for RMSNorm.
        norm_eps: the epsilon of the normalisations.
        final_norm: whether a normalisation follows the last layer; None for "where norm is pre".
        positions: one of `course_lib.transformer.positions.ENCODINGS`.
        rope_theta: the base of the wavelengths of "rotary" positions.
        rope_layout: which components "rotary" positions rotate together, "interleaved" or "half".
        partial_rotary_factor: the share of a head's components that "rotary" positions rotate.
        max_length: the longest sequence for "learned" positions; the others have no limit.
        scale_embeddings: whether token embeddings are multiplied by the square root of `d_model`.
        tie_embeddings: whether the output layer shares the matrix of the target embedding; with one
            vocabulary the source embedding shares it too.
        activation: of the feed-forward networks, "relu", "gelu" or "swiglu".
        bias: whether the linear layers of attention and feed-forward networks add one.
        pad_id: the token that fills up shorter sequences; no token attends to it.

    Source: Vaswani et al. (2017), table 3; Touvron et al. (2023), "LLaMA", section 2.2, for the choices of
    current language models: norm "pre", norm_type "rms", positions "rotary", activation "swiglu", no biases.
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
    norm_type: str = "layer"
    norm_eps: float = 1e-5
    final_norm: bool | None = None
    positions: str = "sinusoidal"
    rope_theta: float = 10000.0
    rope_layout: str = "interleaved"
    partial_rotary_factor: float = 1.0
    max_length: int = 512
    scale_embeddings: bool = True
    tie_embeddings: bool = False
    activation: str = "relu"
    bias: bool = True
    pad_id: int = 0

    def __post_init__(self) -> None:
        sizes = ("target_vocabulary", "d_model", "num_heads", "d_ff", "max_length", "encoder_layers",
                 "decoder_layers")  # fmt: skip
        require_whole(**{name: getattr(self, name) for name in sizes})
        require_divides(num_heads=self.num_heads, d_model=self.d_model)
        require_divides(num_kv_heads=self.num_kv_heads or self.num_heads, num_heads=self.num_heads)
        for name in ("source_vocabulary", "target_vocabulary"):
            size = getattr(self, name)
            if size is not None and not 0 <= self.pad_id < size:
                raise ValueError(f"pad_id={self.pad_id} must be 0 or more, and below {name}={size}")

    @property
    def d_head(self) -> int:
        """The dimension of a head."""
        return self.d_model // self.num_heads

    @property
    def has_final_norm(self) -> bool:
        """Whether a normalisation follows the last layer."""
        return self.norm == "pre" if self.final_norm is None else self.final_norm

    @property
    def layer_options(self) -> dict[str, Any]:
        """The arguments of a layer, but for its positions."""
        names = ("d_model", "num_heads", "d_ff", "norm", "norm_type", "norm_eps", "dropout", "activation",
                 "bias", "num_kv_heads")  # fmt: skip
        return {name: getattr(self, name) for name in names}

    def make_positions(self, bidirectional: bool) -> Positions:
        """Make the positional encoding of a stack whose tokens may attend to later ones, or may not."""
        return make_positions(
            self.positions,
            self.d_model,
            self.num_heads,
            max_length=self.max_length,
            bidirectional=bidirectional,
            rope_theta=self.rope_theta,
            rope_layout=self.rope_layout,
            partial_rotary_factor=self.partial_rotary_factor,
        )
