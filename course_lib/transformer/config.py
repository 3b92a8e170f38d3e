"""What a Transformer is made like."""

from dataclasses import dataclass

from course_lib.checks import transformer as checks
from course_lib.validation import validated


@dataclass(frozen=True, kw_only=True)
class TransformerConfig:
    """The sizes and choices of a `Transformer` or a `DecoderOnly`; the defaults are the paper's base model.

    Attributes:
        target_vocabulary: the number of target tokens.
        source_vocabulary: the number of source tokens; None for one vocabulary on both sides.
        d_model: the dimension of every vector between the blocks.
        num_heads: of each attention; divides `d_model`.
        num_kv_heads: the number of key/value heads; None for `num_heads`.
        encoder_layers, decoder_layers: the number of blocks.
        d_ff: the number of hidden units of the feed-forward networks.
        dropout: of attention weights, of the hidden units of the FFN, of the output of each sublayer, and of
            the embeddings; in training mode.
        norm: "post" as in the paper, or "pre"; see `course_lib.blocks.Residual`.
        norm_type: "layer" for layer normalisation as in the paper, or "rms" for RMSNorm.
        norm_eps: the epsilon of the normalisations.
        final_norm: whether a normalisation follows the last block; None for "where norm is pre".
        positions: one of `course_lib.positions.ENCODINGS`.
        rope_theta: the base of the wavelengths of "rotary" positions.
        rope_layout: which components "rotary" positions rotate together, "interleaved" or "half".
        max_length: the longest sequence for "learned" positions; the others have no limit.
        scale_embeddings: whether token embeddings are multiplied by the square root of `d_model`.
        tie_embeddings: whether the output layer shares the matrix of the target embedding; with one
            vocabulary the source embedding shares it too.
        activation: of the feed-forward networks, "relu", "gelu" or "swiglu".
        bias: whether the linear layers of attention and feed-forward networks add one.
        pad_id: the token that fills up shorter sequences; no token attends to it.

    Raises:
        ValueError: for a configuration that cannot work; it names the field.

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
    max_length: int = 512
    scale_embeddings: bool = True
    tie_embeddings: bool = False
    activation: str = "relu"
    bias: bool = True
    pad_id: int = 0

    @validated(checks.config)
    def __post_init__(self) -> None:
        pass

    @property
    def d_head(self) -> int:
        """The dimension of a head."""
        return self.d_model // self.num_heads

    @property
    def has_final_norm(self) -> bool:
        """Whether a normalisation follows the last block."""
        return self.norm == "pre" if self.final_norm is None else self.final_norm
