"""The decoder-only model against `nn.TransformerEncoder` with a causal mask, and GPT-2."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.transformer import DecoderOnly
from tests.helpers.blocks import norms
from tests.helpers.generate import from_gpt2, gpt2
from tests.helpers.transformer import (
    D_FF,
    D_MODEL,
    DECODER,
    DTYPES,
    HEADS,
    PAD,
    ROUNDING,
    TARGET,
    TARGETS,
    randomized,
    sinusoids,
    sized,
    words,
)

# PyTorch says so of every model that normalises first.
pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")


@pytest.mark.verifies(
    "course_lib.transformer.DecoderOnly",
    against="PyTorch `nn.TransformerEncoder` with a causal mask",
)
@pytest.mark.parametrize("padded", [(0, 0), (0, 2)])
@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_decoder_only_equals_pytorch_encoder_with_causal_mask(ledger, dtype, norm, padded):
    layer = nn.TransformerEncoderLayer(D_MODEL, HEADS, D_FF, batch_first=True, norm_first=norm == "pre")  # fmt: skip
    final = nn.LayerNorm(D_MODEL) if norm == "pre" else None
    theirs = nn.TransformerEncoder(layer, DECODER, final, enable_nested_tensor=False)
    theirs = randomized(theirs).eval()
    model = randomized(DecoderOnly(sized(norm=norm)), dtype)
    with torch.no_grad():
        for block, carried in zip(theirs.layers, model.blocks, strict=True):
            for part, fields in {"up_proj": block.linear1, "down_proj": block.linear2}.items():
                fields.load_state_dict(getattr(carried.feed_forward, part).state_dict())
            for number, ln in enumerate((block.norm1, block.norm2)):
                ln.load_state_dict(norms(carried)[number].state_dict())
            own = carried.attention
            for what in ("weight", "bias"):
                packed = [
                    getattr(getattr(own, part), what) for part in ("q_proj", "k_proj", "v_proj")
                ]
                getattr(block.self_attn, f"in_proj_{what}").copy_(torch.cat(packed))
                getattr(block.self_attn.out_proj, what).copy_(getattr(own.out_proj, what))
        if final is not None:
            theirs.norm.load_state_dict(model.norm.state_dict())
    tokens = words(TARGETS, TARGET, *padded)
    table, out = (w.detach().double().requires_grad_() for w in (model.embedding.token_embedding.weight, model.lm_head.weight))  # fmt: skip
    decoded = theirs(
        F.embedding(tokens, table) * D_MODEL**0.5 + sinusoids(TARGET),
        mask=torch.ones(TARGET, TARGET).triu(1) > 0,
        src_key_padding_mask=tokens == PAD,
    )
    ours, wanted = model(tokens), decoded @ out.T
    ledger.compare(ours, wanted, within=5 * ROUNDING[dtype])
    mix = torch.randn(wanted.shape).double()
    leaves = [model.embedding.token_embedding.weight, model.lm_head.weight, model.blocks[0].feed_forward.up_proj.weight]  # fmt: skip
    mine = torch.autograd.grad(ours, leaves, mix.to(dtype))
    slopes = torch.autograd.grad(wanted, [table, out, theirs.layers[0].linear1.weight], mix)
    for one, slope in zip(mine, slopes, strict=True):
        scale = max(1.0, slope.abs().max().item())
        ledger.compare(one / scale, slope / scale, within=5 * ROUNDING[dtype], backward=True)


def gpt2_pair(dtype=torch.float64):
    """GPT-2 with random weights, and ours with the same: their table is ours times √d, so nothing is tied."""
    theirs = gpt2(
        vocab_size=TARGETS,
        n_positions=20,
        n_embd=D_MODEL,
        n_layer=DECODER,
        n_head=HEADS,
        n_inner=D_FF,
    )
    theirs = randomized(theirs)
    return from_gpt2(theirs).to(dtype), theirs


@pytest.mark.verifies(
    "course_lib.transformer.DecoderOnly", against="Hugging Face `GPT2LMHeadModel`"
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_decoder_only_equals_gpt2(ledger, dtype):
    ours, theirs = gpt2_pair(dtype)
    tokens = words(TARGETS, 8, 0, 0, 0)
    logits, wanted = ours(tokens), theirs(tokens).logits
    ledger.compare(logits, wanted, within=5 * ROUNDING[dtype])
    mix = torch.randn(wanted.shape).double()
    leaves = [
        ours.embedding.positions.table,
        ours.norm.weight,
        ours.blocks[0].feed_forward.down_proj.bias,
    ]
    mine = torch.autograd.grad(logits, leaves, mix.to(dtype))
    hers = theirs.transformer
    slopes = torch.autograd.grad(wanted, [hers.wpe.weight, hers.ln_f.weight, hers.h[0].mlp.c_proj.bias], mix)  # fmt: skip
    for one, slope in zip(mine, slopes, strict=True):
        scale = max(1.0, slope.abs().max().item())
        ledger.compare(one / scale, slope / scale, within=5 * ROUNDING[dtype], backward=True)
