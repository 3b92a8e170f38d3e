"""A small configuration, random weights and tokens, for the tests of the Transformer."""

import itertools
import math

import torch

from course_lib.transformer import TransformerConfig

DTYPES = [torch.float64, torch.float32]
ROUNDING = {torch.float64: 1e-10, torch.float32: 2e-5}

# No two axes are equally long, so that none can be taken for another.
BATCH, HEADS, TARGET, SOURCE, D_FF, D_MODEL = 2, 3, 5, 6, 7, 12
ENCODER, DECODER = 1, 2
TARGETS, SOURCES = 9, 11  # the two vocabularies
PAD = 0

SIZES = {
    "target_vocabulary": TARGETS,
    "source_vocabulary": SOURCES,
    "d_model": D_MODEL,
    "num_heads": HEADS,
    "encoder_layers": ENCODER,
    "decoder_layers": DECODER,
    "d_ff": D_FF,
    "dropout": 0.0,
    "max_length": 20,
}


def sized(**choices):
    return TransformerConfig(**(SIZES | choices))


#: What makes a `DecoderOnly` a LLaMA, whatever its sizes.
LLAMA = {
    "dropout": 0.0,
    "norm": "pre",
    "norm_type": "rms",
    "positions": "rotary",
    "scale_embeddings": False,
    "activation": "swiglu",
    "bias": False,
}


def randomized(layer, dtype=torch.float64):
    """Weights and biases large enough that every part matters."""
    for parameter in layer.parameters():
        parameter.data = 0.3 * torch.randn(parameter.shape).to(dtype)
    return layer


def words(vocabulary, length, *padded):
    """Tokens, none of them padding but the last `padded[b]` of sequence b."""
    tokens = torch.randint(1, vocabulary, (len(padded), length))
    for row, count in zip(tokens, padded, strict=True):
        row[length - count :] = PAD
    return tokens


def pair(source=(0, 2), target=(0, 1)):
    return words(SOURCES, SOURCE, *source), words(TARGETS, TARGET, *target)


def sinusoids(length, d_model=D_MODEL):
    """Number by number, from the paper's formula."""
    table = torch.empty(length, d_model, dtype=torch.float64)
    for place, number in itertools.product(range(length), range(d_model)):
        angle = place / 10000 ** ((number - number % 2) / d_model)
        table[place, number] = math.cos(angle) if number % 2 else math.sin(angle)
    return table


def compare(ledger, ours, leaves, theirs, oracles, within):
    """Compare logits, and the gradients of a random mixture of them relative to the largest."""
    ledger.compare(ours, theirs, within=within)
    mix = torch.randn(theirs.shape).double()
    mine = torch.autograd.grad(ours, leaves, mix.to(ours.dtype))
    for one, slope in zip(mine, torch.autograd.grad(theirs, oracles, mix), strict=True):
        scale = max(1.0, slope.abs().max().item())
        ledger.compare(one / scale, slope / scale, within=within, backward=True)
