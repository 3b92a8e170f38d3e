r"""Parameters, FLOPs and bytes of a `DecoderOnly` or a `Transformer`, from its configuration alone.

Every function takes `architecture`, since one `TransformerConfig` describes both models: "decoder_only" is a
`DecoderOnly`, "encoder_decoder" a `Transformer` with a source as long as the target.
"""

from typing import NamedTuple

import torch

from course_lib.transformer import TransformerConfig
from course_lib.transformer.positions import make_positions
from course_lib.validation import require_one_of

#: The models that a configuration can make.
ARCHITECTURES = ("decoder_only", "encoder_decoder")


class ParameterCount(NamedTuple):
    """The parameters of a model, by part.

    Attributes:
        embedding: of the token embeddings.
        positions: of learned positional encodings, wherever they are used.
        attention: of the four projections of every attention layer, with their biases.
        feed_forward: of both layers of every FFN, with their biases.
        norm: scale and shift of every layer normalisation.
        lm_head: of the output layer; 0 where it shares the matrix of the embedding.
    """

    embedding: int
    positions: int
    attention: int
    feed_forward: int
    norm: int
    lm_head: int

    @property
    def total(self) -> int:
        """The sum over all parts."""
        return sum(self)


class FlopCount(NamedTuple):
    """Floating-point operations of the matrix products, by part; a multiplication and an addition are two.

    Attributes:
        projections: queries, keys, values and outputs of attention.
        scores: the products of queries and keys, and of weights and values; proportional to the length.
        feed_forward: both layers of the FFN.
        lm_head: the logits.
    """

    projections: float
    scores: float
    feed_forward: float
    lm_head: float

    @property
    def total(self) -> float:
        """The sum over all parts."""
        return sum(self)


class ActivationBytes(NamedTuple):
    """Bytes that the forward pass keeps for the backward pass, by part.

    Attributes:
        attention: of the attention layers.
        feed_forward: of the FFNs.
        norm: of the layer normalisations.
        lm_head: the input of the output layer.
    """

    attention: int
    feed_forward: int
    norm: int
    lm_head: int

    @property
    def total(self) -> int:
        """The sum over all parts."""
        return sum(self)


class _Layers(NamedTuple):
    """How many layers of each kind a model has."""

    self_attention: int
    cross_attention: int
    feed_forward: int
    stacks: int

    @property
    def attention(self) -> int:
        return self.self_attention + self.cross_attention

    @property
    def norms(self) -> int:
        return self.attention + self.feed_forward


def _layers(config: TransformerConfig, architecture: str) -> _Layers:
    require_one_of(ARCHITECTURES, architecture=architecture)
    encoder, decoder = config.encoder_layers, config.decoder_layers
    if architecture == "decoder_only":
        return _Layers(decoder, 0, decoder, 1)
    return _Layers(encoder + decoder, decoder, encoder + decoder, 2)


def _d_kv(config: TransformerConfig) -> int:
    """The dimension of all keys of a token together: d_model, or less with GQA and MQA."""
    return (config.num_kv_heads or config.num_heads) * config.d_head


def _ffn_matrices(config: TransformerConfig) -> int:
    """How many matrices of d × d_ff one FFN has: "swiglu" has a gate."""
    return 3 if config.activation == "swiglu" else 2


def parameter_count(
    config: TransformerConfig, *, embeddings: bool = True, architecture: str = "decoder_only"
) -> ParameterCount:
    r"""Count the parameters of a model, part by part.

    $$\underbrace{2 d\,(d + d_{kv}) + 2 (d + d_{kv})}_{\text{one attention layer}} + \underbrace{2 d\, d_{ff}
      + d_{ff} + d}_{\text{one FFN}} + \underbrace{2 d}_{\text{one norm}}$$

    With $d_{kv} = d$ and $d_{ff} = 4 d$ a block has $12 d^2 + 13 d$ parameters with its two norms. "swiglu" has a third
    matrix in each FFN; `bias=False` leaves out the biases of attention and FFN, RMSNorm has no shift.

    Args:
        config: of the model.
        embeddings: False to leave out token embeddings, positions and output layer, the count that Kaplan et
            al. fit their laws to; Hoffmann et al. count everything.
        architecture: one of `ARCHITECTURES`.

    Source: Kaplan et al. (2020), "Scaling laws for neural language models", table 1.
    """
    d, d_kv, layers = config.d_model, _d_kv(config), _layers(config, architecture)
    final_norms = layers.stacks if config.has_final_norm else 0
    source, target = config.source_vocabulary or config.target_vocabulary, config.target_vocabulary
    separate_source = architecture == "encoder_decoder" and not (
        config.tie_embeddings and config.source_vocabulary is None
    )
    biases = 2 * (d + d_kv) * config.bias
    matrices = _ffn_matrices(config)
    ffn = matrices * d * config.d_ff + ((matrices - 1) * config.d_ff + d) * config.bias
    return ParameterCount(
        embedding=d * (target + source * separate_source) * embeddings,
        positions=_position_parameters(config, architecture) * embeddings,
        attention=layers.attention * (2 * d * (d + d_kv) + biases),
        feed_forward=layers.feed_forward * ffn,
        norm=(layers.norms + final_norms) * (1 if config.norm_type == "rms" else 2) * d,
        lm_head=d * target * (not config.tie_embeddings) * embeddings,
    )


def _position_parameters(config: TransformerConfig, architecture: str) -> int:
    """Count the parameters of one encoding, once per embedding or once per layer of self-attention."""
    with torch.device("meta"):
        added, inside = make_positions(
            config.positions, config.d_model, config.num_heads, max_length=config.max_length
        )
    layers = _layers(config, architecture)
    once = [sum(p.numel() for p in made.parameters()) if made else 0 for made in (added, inside)]
    return layers.stacks * once[0] + layers.self_attention * once[1]


def flops_per_token(
    config: TransformerConfig,
    length: int,
    *,
    training: bool = False,
    architecture: str = "decoder_only",
) -> FlopCount:
    r"""Count the FLOPs of the matrix products, per token of a sequence of `length` tokens.

    $$\underbrace{4 d\,(d + d_{kv})}_{\text{projections}} + \underbrace{4\, n\, d}_{\text{scores, values}} +
      \underbrace{4 d\, d_{ff}}_{\text{FFN}} \text{ per block, and } 2 d\, V \text{ for the logits}$$

    ("swiglu": $6 d\, d_{ff}$.)

    A matrix product takes two FLOPs per parameter and token, and its backward pass twice that: 6 in training,
    the 6 of $C \approx 6 N D$. The rule leaves out `scores`, which have no parameters, and counts embeddings,
    norms and biases, which need no matrix product. All $n^2$ scores are counted: a causal mask hides half of
    them, and plain kernels compute them anyway. Fused kernels compute the scores once more in the backward
    pass, which is not counted.

    Args:
        config: of the model.
        length: $n$, the number of tokens of a sequence.
        training: whether the backward pass is counted too, which makes three times as many.
        architecture: one of `ARCHITECTURES`; with "encoder_decoder" of one source token and one target token.

    Source: Kaplan et al. (2020), table 1; Hoffmann et al. (2022), appendix F.
    """
    d, layers = config.d_model, _layers(config, architecture)
    passes = 3.0 if training else 1.0
    return FlopCount(
        projections=passes * layers.attention * 4 * d * (d + _d_kv(config)),
        scores=passes * layers.attention * 4 * length * d,
        feed_forward=passes * layers.feed_forward * 2 * _ffn_matrices(config) * d * config.d_ff,
        lm_head=passes * 2 * d * config.target_vocabulary,
    )


def activation_bytes(
    config: TransformerConfig, batch: int, length: int, dtype: torch.dtype = torch.float32
) -> ActivationBytes:
    r"""Count the bytes that the forward pass of a `DecoderOnly` keeps until the backward pass.

    Autograd keeps what the derivative of each operation needs: the input of every linear layer, the queries,
    keys, values and the output of attention with one number per row of scores, the input of every
    normalisation with its statistics, and what the activation function needs. PyTorch's fused kernel keeps no
    weights, and sequences without padding need no mask, so nothing grows with $n^2$; with padding, each layer
    turns the mask into numbers of its own, `batch` $\cdot\, n^2$. Not counted: the loss, dropout, and positions
    inside attention.

    Args:
        config: of the model.
        batch: the number of sequences.
        length: $n$, the number of tokens of each.
        dtype: of the parameters and activations.

    Source: Korthikanti et al. (2022), "Reducing activation recomputation in large Transformer models",
    section 4, for kernels that keep the weights.
    """
    layers, size = config.decoder_layers, dtype.itemsize
    tokens, d, d_kv = batch * length, config.d_model, _d_kv(config)
    rows = tokens * config.num_heads * max(size, 4)  # the logarithm of each softmax's denominator
    # before and after the activation; ReLU needs only after, SwiGLU also both factors of a product
    hidden = {"relu": 1, "gelu": 2, "swiglu": 4}[config.activation]
    norms = 2 * layers + config.has_final_norm
    # RMSNorm is no kernel of its own on a CPU (PyTorch 2.13), and computes in float32: input, result, one number
    norm = (2 * d + 1) * max(size, 4) if config.norm_type == "rms" else (d + 2) * size
    return ActivationBytes(
        attention=layers * (tokens * (3 * d + 2 * d_kv) * size + rows),
        feed_forward=layers * tokens * (d + hidden * config.d_ff) * size,
        norm=norms * tokens * norm,
        lm_head=tokens * d * size,
    )


def kv_cache_bytes(
    config: TransformerConfig,
    length: int,
    batch: int = 1,
    dtype: torch.dtype = torch.float32,
    *,
    architecture: str = "decoder_only",
) -> int:
    r"""Count the bytes of the keys and values that generation keeps.

    $$2 \cdot \text{layers} \cdot \text{batch} \cdot n \cdot h_{kv}\, d_\text{head} \cdot \text{bytes per number}$$

    Args:
        config: of the model.
        length: $n$, the number of tokens so far.
        batch: the number of sequences.
        dtype: of the cache.
        architecture: one of `ARCHITECTURES`; the decoder of "encoder_decoder" also keeps the keys and values
            of a source of `length` tokens.

    Source: Shazeer (2019), "Fast Transformer decoding: one write-head is all you need".
    """
    caches = config.decoder_layers + _layers(config, architecture).cross_attention
    return 2 * caches * batch * length * _d_kv(config) * dtype.itemsize
