"""Results live where the arguments do, whatever the default device is; models run on the meta device."""

import functools

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from course_lib.data import strongest_links
from course_lib.topics import efficient, pooling
from course_lib.topics.attention_maps import entropy, mean_distance
from course_lib.topics.interpretability import induction_score, logit_lens, surprisal
from course_lib.topics.recurrent import (
    BahdanauDecoder,
    FixedContextDecoder,
    GRUEncoder,
    LuongDecoder,
)
from course_lib.topics.recurrent import Seq2Seq as Recurrent
from course_lib.train import next_token_loss, train_step
from course_lib.transformer import DecoderOnly, Transformer, decoding, masks, positions
from course_lib.transformer.attention import (
    Attention,
    kernel_mask,
    scaled_dot_product_attention,
)
from course_lib.transformer.layers import Dropout
from course_lib.transformer.scoring import GaussianScore
from tests.helpers.decoding import SOURCE, SOURCES, TARGETS, model, words

Q, K, X = torch.randn(2, 3, 4, 6), torch.randn(2, 3, 5, 6), torch.randn(2, 3, 5, 6)
REAL = masks.padding_mask(torch.tensor([3, 5]))  # (batch, 1, key)
WEIGHTS = torch.randn(2, 4, 4).softmax(-1)
TOKENS = words(TARGETS, SOURCE, 0, 0)
BATCHES = [torch.randn(2, 3)]


def recurrent(kind):
    return Recurrent(GRUEncoder(SOURCES, 3, 4), kind(TARGETS, 3, 8, 8)).eval()


def step():
    layer = nn.Linear(3, 1)
    optimizer = torch.optim.Adam(layer.parameters())
    return train_step, layer, optimizer, lambda model, x: model(x).square().mean(), BATCHES


#: Name → what makes a function and its arguments, on the CPU.
CALLS = {
    **{
        f"greedy, {made.__name__}, {name}": lambda made=made, name=name: (
            functools.partial(decoding.greedy, max_length=4), model(made, positions=name), TOKENS,
        )
        for made in (Transformer, DecoderOnly)
        for name in positions.ENCODINGS
    },
    **{
        f"generate, {kind.__name__}": lambda kind=kind: (recurrent(kind).generate, TOKENS, 3)
        for kind in (FixedContextDecoder, BahdanauDecoder, LuongDecoder)
    },
    "beam search": lambda: (decoding.beam_search, model(), TOKENS),
    "sample": lambda: (functools.partial(decoding.sample, seed=0), model(), TOKENS),
    "stream": lambda: (lambda *given: list(decoding.stream(*given)), model(), TOKENS),
    "top_p": lambda: (decoding.top_p, Q, 0.8),
    "train_step": step,
    "next_token_loss": lambda: (next_token_loss, torch.randn(2, 4, TARGETS), TOKENS),
    "dropout": lambda: (Dropout(0.3), Q),
    "logit_lens": lambda: (logit_lens, model(DecoderOnly), TOKENS),
    "surprisal": lambda: (surprisal, model(DecoderOnly), TOKENS),
    "induction_score": lambda: (induction_score, WEIGHTS, 3),
    "entropy": lambda: (entropy, WEIGHTS),
    "mean_distance": lambda: (mean_distance, WEIGHTS),
    "strongest_links": lambda: (strongest_links, WEIGHTS[0]),
    "padding_mask": lambda: (masks.padding_mask, torch.tensor([3, 5])),
    "masked_softmax": lambda: (masks.masked_softmax, Q @ K.mT, REAL[:, None]),
    "additive masks": lambda: (lambda mask: masks.from_additive(masks.to_additive(mask)), REAL),
    "is_causal": lambda: (
        functools.partial(scaled_dot_product_attention, is_causal=True), Q, K, K,
    ),
    "Gaussian score": lambda: (Attention(GaussianScore(0.7)), Q, K, K),
    "attention_pooling": lambda: (pooling.attention_pooling, Q[0, 0, 0], Q[0, 0, 1], Q[0, 0, 2]),
    "leave_one_out_error": lambda: (pooling.leave_one_out_error, Q[0, 0, 0], Q[0, 0, 1]),
    "rotary": lambda: (positions.rotary, X, torch.arange(5)),
    "t5_bucket": lambda: (positions.t5_bucket, torch.arange(-30, 30)),
    "flash": lambda: (
        functools.partial(efficient.flash_attention, causal=True, block_size=2), Q, K, K,
    ),
    "window": lambda: (
        functools.partial(efficient.sliding_window_attention, window=2, causal=True), X, K, K,
    ),
    "block": lambda: (
        functools.partial(efficient.block_attention, block_size=2, causal=True), X, K, K,
    ),
    "longformer": lambda: (
        functools.partial(efficient.longformer_attention, window=1, global_positions=[0, 3]), X, K, K,
    ),
    "linear": lambda: (functools.partial(efficient.linear_attention, causal=True), X, K, K),
    "state": lambda: (efficient.linear_attention_state, K, K),
    "linformer": lambda: (efficient.LinformerAttention(6, 3, 5, 2), X[0], REAL[:1]),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_no_tensor_is_made_on_the_default_device(name, without_annotations):
    """Under another default device, a tensor made without `device=` does not fit the arguments, as with CUDA."""
    results = []
    for default in ("cpu", "meta"):
        torch.manual_seed(0)
        function, *arguments = CALLS[name]()
        torch.manual_seed(1)
        with torch.device(default):
            results.append(tree_leaves(function(*arguments)))
    for wanted, ours in zip(*results, strict=True):
        if isinstance(ours, Tensor):
            assert ours.device.type == "cpu"
            torch.testing.assert_close(ours, wanted, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("made", [Transformer, DecoderOnly])
def test_models_run_on_the_meta_device(made):
    tokens = [TOKENS.to("meta")] * (2 if made is Transformer else 1)
    logits = model(made).to("meta")(*tokens)
    assert logits.is_meta and logits.shape == (2, SOURCE, TARGETS)
    assert masks.causal_mask(3, device="meta").is_meta
    assert positions.relative_positions(3, 4, "meta").is_meta


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("made", [Transformer, DecoderOnly])
def test_on_a_gpu_the_kernel_gets_no_boolean_mask(made, dtype, monkeypatch):
    """cuDNN, where PyTorch sends one in half precision, ignores it in rows without a True."""
    seen, kernel = [], F.scaled_dot_product_attention

    def spy(query, key, value, attn_mask=None, *args, **options):
        seen.append((query.dtype, None if attn_mask is None else attn_mask.dtype))
        return kernel(query, key, value, attn_mask, *args, **options)

    monkeypatch.setattr(F, "scaled_dot_product_attention", spy)
    for name in positions.ENCODINGS:
        if name != "shaw":  # it needs the weights, and calls no kernel in self-attention
            model(made, positions=name).to("meta", dtype)(
                *[TOKENS.to("meta")] * (2 if made is Transformer else 1)
            )
    assert len(seen) >= 6 and {kind for pair in seen for kind in pair if kind} == {dtype}
    assert any(mask for _, mask in seen)
    monkeypatch.undo()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_the_mask_that_a_gpu_gets(dtype):
    """0 and minus infinity in the dtype of the queries; a row without keys gives zeros and finite gradients."""
    mask = torch.tensor([[True, False, True], [False, False, False]])
    ours = kernel_mask(mask, None, dtype, "cuda")
    assert ours.dtype == dtype and ours.tolist() == [[0, -torch.inf, 0], [-torch.inf] * 3]
    bias = torch.tensor([[0.5, 1.0, 2.0]], dtype=dtype)
    assert kernel_mask(mask, bias, dtype, "cuda").tolist() == [
        [0.5, -torch.inf, 2],
        [-torch.inf] * 3,
    ]
    assert kernel_mask(None, bias, dtype, "cuda") is bias
    assert (
        kernel_mask(mask, None, dtype, "cpu") is mask
        and kernel_mask(None, None, dtype, "cuda") is None
    )
    q, k, v = (torch.randn(1, 1, n, 4).to(dtype).requires_grad_() for n in (2, 3, 3))
    output = F.scaled_dot_product_attention(q, k, v, ours)
    assert (output[0, 0, 1] == 0).all()
    assert all(one.isfinite().all() for one in torch.autograd.grad(output.sum(), (q, k, v)))
