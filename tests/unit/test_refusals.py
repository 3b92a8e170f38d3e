"""What the library refuses itself, because PyTorch would compute something wrong or fail far from the cause."""

import pytest
import torch
from torch import nn

from course_lib.topics.attention_maps import record_attention
from course_lib.transformer import DecoderOnly, Transformer, TransformerConfig
from course_lib.transformer.attention import scaled_dot_product_attention
from course_lib.transformer.cache import CrossAttentionCache, KeyValueCache, ModelCache
from course_lib.transformer.convert import from_torch
from course_lib.transformer.layers import EncoderLayer, FeedForward
from course_lib.transformer.masks import (
    causal_mask,
    combine_masks,
    from_additive,
    masked_softmax,
    padding_mask,
)
from course_lib.transformer.multihead import MultiHeadAttention
from course_lib.transformer.positions import (
    AlibiBias,
    LearnedPositions,
    RotaryPositions,
    SinusoidalPositions,
    make_positions,
    relative_positions,
    rotary,
    t5_bucket,
)
from course_lib.transformer.scoring import GaussianScore

pytestmark = pytest.mark.usefixtures("without_annotations")

X, MEMORY = torch.zeros(2, 4, 12), torch.zeros(2, 5, 12)
Q, K = torch.zeros(2, 3, 4, 6), torch.zeros(2, 3, 5, 6)
MASK = torch.ones(4, 5) > 0
BLOCK = {"d_model": 12, "num_heads": 3, "d_ff": 7}
SIZES = {"target_vocabulary": 9, "encoder_layers": 1, "decoder_layers": 1} | BLOCK


def attend(*args, **options):
    return scaled_dot_product_attention(Q, K, K, *args, **options)


def mha(**options):
    return MultiHeadAttention(12, 3, **options)


def cached(cache, *calls):
    layer = mha()
    for arguments in calls:
        layer(*arguments, cache=cache)


def model(made=Transformer, **options):
    return made(TransformerConfig(**(SIZES | options)))


def decoded(cache, *tokens):
    generator = model(DecoderOnly)
    for some in tokens:
        generator(some, cache=cache)


def recorded(layer, *inputs):
    with record_attention(layer):
        layer(*inputs * 3) if inputs else None


def interrupted():
    generator, tokens = model(DecoderOnly, decoder_layers=2), torch.tensor([[3, 4]])
    cache = generator.new_cache()
    generator(tokens, cache=cache)
    handle = generator.blocks[1].register_forward_pre_hook(lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        generator(tokens, cache=cache)
    handle.remove()
    generator(tokens, cache=cache)


def stacks(**decoder):
    layers = [
        nn.TransformerEncoder(nn.TransformerEncoderLayer(12, 3, 7, batch_first=True), 1),
        nn.TransformerDecoder(nn.TransformerDecoderLayer(12, batch_first=True, **({"nhead": 3, "dim_feedforward": 7} | decoder)), 1),
    ]  # fmt: skip
    return nn.Transformer(
        12, 3, batch_first=True, custom_encoder=layers[0], custom_decoder=layers[1]
    )


# fmt: off
REFUSED = {
    # masks
    "a length above max_length": (lambda: padding_mask(torch.tensor([2, 7]), 5), r"lengths=\[2, 7\] and max_length=5; lengths must hold one number from 0 to max_length"),
    "a negative length": (lambda: padding_mask(torch.tensor([2, -1]), 5), r"lengths=\[2, -1\]"),
    "lengths of two axes": (lambda: padding_mask(torch.tensor([[3]])), r"lengths=\[\[3\]\]"),
    "fewer keys than queries": (lambda: causal_mask(3, 2), r"key_length=2 is below query_length=3; the queries are the last of the keys"),
    "an additive mask to combine": (lambda: combine_masks(MASK, MASK.float()), r"mask is float32; it must be a boolean tensor where True means 'may attend'"),
    "a bias as an additive mask": (lambda: from_additive(torch.tensor([0.0, -2.5])), r"mask holds -2\.5; an additive mask holds 0 and minus infinity"),
    "a bias of -5000": (lambda: from_additive(torch.tensor([0.0, -5000.0])), r"mask holds -5000"),
    "NaN in an additive mask": (lambda: from_additive(torch.tensor([0.0, torch.nan])), r"mask holds nan"),
    "a boolean mask to convert": (lambda: from_additive(MASK), r"mask is boolean already"),
    "a mask of ones and zeros": (lambda: masked_softmax(X, (X == 0).long()), r"mask is int64; .* mask == 1 for one of ones and zeros"),
    "a mask that makes the result larger": (lambda: masked_softmax(X, torch.ones(3, 2, 4, 12) > 0), r"mask has shape \(3, 2, 4, 12\); .* it has 4 axes, at most 3 fit"),
    # scores and attention
    "a Gaussian score of unequal dimensions": (lambda: GaussianScore()(X, MEMORY[..., :1]), r"query has dimension 12, key 1; they must be equal"),
    "a bandwidth of 0": (lambda: GaussianScore(0.0), r"bandwidth=0 is not a finite number above 0"),
    "a transposed mask": (lambda: attend(MASK.mT, need_weights=False), r"mask has shape \(5, 4\); it must broadcast to that of the scores, \(2, 3, 4, 5\): key is 4 and not 5 or 1, query is 5 and not 4 or 1"),
    "a bias that makes the result larger": (lambda: attend(bias=torch.zeros(2, 2, 3, 4, 5)), r"bias has shape \(2, 2, 3, 4, 5\); .* it has 5 axes, at most 4 fit"),
    "the same for the fused kernel": (lambda: attend(bias=torch.zeros(2, 2, 3, 4, 5), need_weights=False), r"bias has shape"),
    "is_causal with fewer keys": (lambda: scaled_dot_product_attention(K, Q, Q, is_causal=True, need_weights=False), r"key_length=4 is below query_length=5"),
    "fewer values than keys": (lambda: scaled_dot_product_attention(Q, K, Q, need_weights=False), r"key has shape \(2, 3, 5, 6\) but value has shape \(2, 3, 4, 6\); there must be one value per key"),
    "groups of unequal heads": (lambda: scaled_dot_product_attention(Q, K[:, :1], K, enable_gqa=True), r"as many heads of both"),
    "a recording of a layer that is not called": (lambda: recorded(nn.MultiheadAttention(12, 3)), r"nothing was recorded: in the block no layer of this MultiheadAttention"),
    "a recording of no attention": (lambda: recorded(nn.Linear(12, 3)), r"nothing was recorded: in the block no layer of this Linear returned an AttentionOutput with weights$"),
    # heads
    "heads that do not divide": (lambda: MultiHeadAttention(10, 3), r"d_model=10 is not divisible by num_heads=3; try num_heads=2 or 5$"),
    "KV heads that do not divide": (lambda: mha(num_kv_heads=2), r"num_heads=3 is not divisible by num_kv_heads=2; try num_kv_heads=1 or 3$"),
    "no heads": (lambda: MultiHeadAttention(12, 0), r"num_heads=0 is below 1"),
    "dropout of heads": (lambda: mha(dropout=-0.1), r"dropout=-0\.1 must be"),
    "positions of the other kind": (lambda: mha(positions=SinusoidalPositions(12)), r"positions is a SinusoidalPositions; it must be an AttentionPositions, .*go before the layer"),
    "positions of another layer": (lambda: mha(positions=RotaryPositions(2)), r"positions was made with d_head=2, but the layer has d_head=4"),
    "cross-attention with positions": (lambda: mha(positions=AlibiBias(3))(X, MEMORY), r"AlibiBias counts positions along one sequence, .*leave key out"),
    "a cache of another batch": (lambda: cached(KeyValueCache(), [X], [X[:1]]), r"the cache holds keys of shape \(2, 3, 4, 4\), the new key has \(1, 3, 4, 4\); use one cache per layer"),
    "a cache of another memory": (lambda: cached(CrossAttentionCache(), [X, MEMORY], [X, MEMORY[:, :3]]), r"the cache holds 2 sequences of 5 keys, the memory has shape \(2, 3, 12\); use a new cache"),
    "a cache of an interrupted step": (lambda: interrupted(), r"the last step was interrupted before all layers; use a new cache"),
    "a model's cache of another batch": (lambda: decoded(ModelCache(1), torch.tensor([[3], [4]]), torch.tensor([[3]])), r"the cache holds 2 sequences, but the new tokens are of 1"),
    # positions
    "an odd head for RoPE": (lambda: RotaryPositions(5), r"a dimension of 5 is odd; it must be even"),
    "more than all of a head": (lambda: RotaryPositions(6, partial_rotary_factor=1.5), r"partial_rotary_factor=1\.5 must be a share of the components, above 0 and at most 1"),
    "nothing of a head": (lambda: rotary(X, torch.arange(4), partial_rotary_factor=0.0), r"partial_rotary_factor=0\.0 must be a share"),
    "an odd part of a head": (lambda: RotaryPositions(6, partial_rotary_factor=0.5), r"partial_rotary_factor=0\.5 of d_head=6 is 3 components; it must be an even number, at least 2"),
    "less than a pair of a head": (lambda: model(positions="rotary", partial_rotary_factor=0.2), r"partial_rotary_factor=0\.2 of d_head=4 is 0 components"),
    "a base of 0": (lambda: rotary(X, torch.arange(4), 0), r"base=0 is not a finite number above 0"),
    "another layout": (lambda: RotaryPositions(6, layout="halves"), r"layout='halves' is unknown; .*Did you mean 'half'\?"),
    "one position for all vectors": (lambda: rotary(X, torch.tensor([3])), r"positions has shape \(1,\); it must be \(4,\), one position per vector"),
    "a position after the table": (lambda: LearnedPositions(5, 12)(X, 2), r"x needs positions 2 to 5, but the table was made with max_length=5"),
    "relative positions of fewer keys": (lambda: relative_positions(3, 2), r"key_length=2 is below query_length=3"),
    "buckets without a shared one": (lambda: t5_bucket(torch.arange(3), num_buckets=8, max_distance=2), r"max_distance must be above 2"),
    "an odd number of buckets": (lambda: t5_bucket(torch.arange(3), num_buckets=9), r"an even number for two"),
    "an unknown encoding": (lambda: make_positions("rotery", 6, 3, max_length=4), r"positions='rotery' is unknown; .*Did you mean 'rotary'\?"),
    # blocks and models
    "another norm": (lambda: EncoderLayer(**BLOCK, norm="middle"), r"norm='middle' is unknown; it must be one of 'pre', 'post'"),
    "another activation": (lambda: FeedForward(12, 7, activation="swish"), r"activation='swish' is unknown"),
    "no layers": (lambda: model(encoder_layers=0), r"encoder_layers=0 is below 1"),
    "a padding token that is none": (lambda: model(pad_id=9), r"pad_id=9 must be 0 or more, and below target_vocabulary=9"),
    "a source token of a larger vocabulary": (lambda: model(source_vocabulary=5)(torch.tensor([[5]]), torch.tensor([[1]])), r"tokens holds 5; the vocabulary has 5 tokens, 0 to 4"),
    "tokens with an axis more": (lambda: model(DecoderOnly)(torch.tensor([[[3], [4]]])), r"tokens has shape \(1, 2, 1\); it must be \(batch, length\)"),
    "a negative token": (lambda: model(DecoderOnly)(torch.tensor([[-1]])), r"tokens holds -1"),
    "a prompt that ends in padding": (lambda: model(DecoderOnly).prefill(torch.tensor([[3, 4], [5, 0]])), r"source\[1\] ends in padding \(pad_id=0\), .*pad on the left"),
    "left padding before absolute positions": (lambda: model(DecoderOnly).prefill(torch.tensor([[3, 4], [0, 5]])), r"source\[1\] holds padding .*positions='sinusoidal' counts them from the start"),
    # conversion
    "a layer without counterpart": (lambda: from_torch(nn.Linear(2, 2)), r"layer is a Linear; it must be an nn\.MultiheadAttention"),
    "a key that no token has": (lambda: from_torch(nn.MultiheadAttention(6, 2, add_zero_attn=True)), r"add_bias_kv or add_zero_attn"),
    "another activation of PyTorch": (lambda: from_torch(nn.TransformerEncoderLayer(12, 3, 7, activation=nn.GELU("tanh"))), r"it must be relu or gelu, exact"),
    "blocks without biases": (lambda: from_torch(nn.TransformerEncoderLayer(12, 3, 7, bias=False)), r"bias=False; the norms of this course have biases"),
    "stacks that differ": (lambda: from_torch(stacks(nhead=4), target_vocabulary=9), r"all must be alike"),
    "one final norm": (lambda: from_torch(with_norm(), target_vocabulary=9), r"both stacks must end in a norm, or neither"),
}
# fmt: on


def with_norm():
    layer = stacks()
    layer.encoder.norm = nn.LayerNorm(12)
    return layer


@pytest.mark.parametrize("name", REFUSED)
def test_refusal(name):
    call, says = REFUSED[name]
    with pytest.raises(ValueError, match=says):
        call()
