"""Random tensors and masks, and gradients, for the tests of attention."""

import torch

DTYPES = [torch.float64, torch.float32]
HALVES = [torch.float16, torch.bfloat16]
ROUNDING = {torch.float64: 1e-10, torch.float32: 1e-5}


def all_true(*shape):
    return torch.ones(shape, dtype=torch.bool)


def random_mask(*shape):
    """A random mask in which every query attends to the first key."""
    mask = torch.rand(shape) < 0.6
    mask[..., 0] = True
    return mask


def without_second_query(mask):
    """The same mask with the second query fully masked."""
    mask[..., 1, :] = False
    return mask


def in_float64(*tensors):
    return [tensor.detach().double().requires_grad_() for tensor in tensors]


def gradients(attended, leaves, mixes):
    """The gradients of one random mixture of the output and, where there are any, the weights."""
    given = [tensor for tensor in attended if tensor is not None]
    mixture = sum((tensor * mix.to(tensor)).sum() for tensor, mix in zip(given, mixes, strict=True))
    return torch.autograd.grad(mixture, leaves, materialize_grads=True)


def check(ledger, ours, leaves, theirs, oracles, within):
    """Compare one tensor, and the gradients of one random mixture of it, with an oracle in float64."""
    assert ours.dtype == leaves[0].dtype
    ledger.compare(ours, theirs, within=within)
    mix = torch.randn(theirs.shape, dtype=torch.float64)
    mine = torch.autograd.grad(ours, leaves, mix.to(ours), retain_graph=True)
    slopes = torch.autograd.grad(theirs, oracles, mix, retain_graph=True)
    for one, slope in zip(mine, slopes, strict=True):
        ledger.compare(one, slope, within=within, backward=True)
