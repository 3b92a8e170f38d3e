"""The decoder-only model against `nn.TransformerEncoder` with a causal mask, and GPT-2."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.transformer import DecoderOnly
from course_lib.transformer.convert import from_torch
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
    compare,
    randomized,
    sinusoids,
    sized,
    words,
)

# PyTorch says so of every model that normalises first.
pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")


@pytest.mark.verifies(
    "course_lib.transformer.decoder_only.DecoderOnly",
    against="PyTorch `nn.TransformerEncoder` with a causal mask",
)
@pytest.mark.parametrize(
    ("dtype", "norm", "padded"),
    [
        (torch.float64, "pre", (0, 0)),
        (torch.float64, "post", (0, 2)),
        (torch.float32, "pre", (0, 2)),
    ],
)
def test_decoder_only_equals_pytorch_encoder_with_causal_mask(ledger, dtype, norm, padded):
    layer = nn.TransformerEncoderLayer(D_MODEL, HEADS, D_FF, batch_first=True, norm_first=norm == "pre")  # fmt: skip
    final = nn.LayerNorm(D_MODEL) if norm == "pre" else None
    theirs = nn.TransformerEncoder(layer, DECODER, final, enable_nested_tensor=False)
    theirs, model = randomized(theirs).eval(), randomized(DecoderOnly(sized(norm=norm)))
    for block, their_block in zip(model.blocks, theirs.layers, strict=True):
        block.load_state_dict(from_torch(their_block).state_dict())
    if final is not None:
        model.norm.load_state_dict(theirs.norm.state_dict())
    leaves = [model.embedding.token_embedding.weight, model.lm_head.weight]
    table, out = (leaf.detach().clone().requires_grad_() for leaf in leaves)
    tokens = words(TARGETS, TARGET, *padded)
    decoded = theirs(
        F.embedding(tokens, table) * D_MODEL**0.5 + sinusoids(TARGET),
        mask=torch.ones(TARGET, TARGET).triu(1) > 0,
        src_key_padding_mask=tokens == PAD,
    )
    ours = model.to(dtype)(tokens)
    compare(ledger, ours, leaves, decoded @ out.T, [table, out], within=5 * ROUNDING[dtype])


@pytest.mark.verifies(
    "course_lib.transformer.decoder_only.DecoderOnly", against="Hugging Face `GPT2LMHeadModel`"
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_decoder_only_equals_gpt2(ledger, dtype):
    sizes = {"n_embd": D_MODEL, "n_layer": DECODER, "n_head": HEADS, "n_inner": D_FF}
    theirs = randomized(gpt2(vocab_size=TARGETS, n_positions=20, **sizes))
    ours, tokens = from_gpt2(theirs).to(dtype), words(TARGETS, 8, 0, 0, 0)
    leaves = [ours.embedding.positions.table, ours.norm.weight, ours.blocks[0].feed_forward.down_proj.bias]  # fmt: skip
    hers = theirs.transformer
    oracles = [hers.wpe.weight, hers.ln_f.weight, hers.h[0].mlp.c_proj.bias]
    logits = theirs(tokens).logits
    compare(ledger, ours(tokens), leaves, logits, oracles, within=5 * ROUNDING[dtype])
